"""The lake by Spark to every bus: everything arrives, as it was, with its key and headers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from bus.sample_events import default_key
from spark import destinations
from spark.market_lake import MarketLake, make_lake
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent
from tardis_fast.spark import publish

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from brokers.kafka import KafkaBroker
    from brokers.toxiproxy import Proxy
    from spark.cluster import Cluster
    from spark.destinations import Destination

pytestmark = pytest.mark.broker

BUSES = ("kafka", "redis", "nats", "kinesis", "sqs")
ROWS = {"kafka": 50_000, "redis": 50_000, "nats": 5_000, "kinesis": 500, "sqs": 500}
LONG_ROWS = ROWS | {"kafka": 1_000_000, "redis": 1_000_000, "nats": 100_000}


@pytest.fixture(scope="session")
def lake_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], MarketLake]:
    """Return a way to have a lake with so many trades, made once."""
    made: dict[int, MarketLake] = {}

    def lake(trades: int) -> MarketLake:
        if trades not in made:
            made[trades] = make_lake(tmp_path_factory.mktemp("lake"), trades)
        return made[trades]

    return lake


@pytest.fixture
def destination(request: pytest.FixtureRequest, bus: str) -> Destination:
    """Make a topic, stream or queue of a bus."""
    make = destinations.nats_ if bus == "nats" else getattr(destinations, bus)
    made: Destination = make(request.getfixturevalue(f"{bus}_broker"))
    return made


def check_arrivals(destination: Destination, lake: MarketLake) -> None:
    arrivals = destination.arrivals()
    assert len(arrivals) == lake.trades
    assert sorted(arrival.data for arrival in arrivals) == sorted(lake.events())
    ids = {NormalizedEvent.FromString(arrival.data).trade.trade_id for arrival in arrivals}
    assert ids == {str(number) for number in range(lake.trades)}
    if destination.has_keys:
        assert all(
            arrival.key == default_key(NormalizedEvent.FromString(arrival.data))
            for arrival in arrivals
        )
    if destination.has_headers:
        assert {arrival.case for arrival in arrivals} == {"trade"}


@pytest.mark.parametrize("bus", BUSES)
def test_a_lake_goes_to_every_bus(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    lake_of: Callable[[int], MarketLake],
    destination: Destination,
    bus: str,
) -> None:
    rows = LONG_ROWS if request.config.getoption("--spark") == "long" else ROWS
    lake = lake_of(rows[bus])
    table = spark.read.parquet(str(lake.table)).repartition(3)
    buses: dict[str, Any] = {bus: destination.options}
    ledger = publish(table, **buses).collect()
    assert [row.partition for row in ledger] == [0, 1, 2]
    assert {(row.bus, row.attempt, row.dead_lettered, row.dropped) for row in ledger} == {
        (bus, 0, 0, 0)
    }
    assert sum(row.accepted for row in ledger) == lake.trades
    assert sum(row.acknowledged for row in ledger) == lake.trades
    assert sum(row.possibly_duplicated for row in ledger) == 0
    check_arrivals(destination, lake)


@pytest.mark.parametrize("bus", BUSES)
def test_a_cluster_publishes_from_several_executors(
    cluster: Cluster, lake_of: Callable[[int], MarketLake], destination: Destination, bus: str
) -> None:
    lake = lake_of(ROWS[bus])
    buses = {bus: destination.options}
    ledger = cluster.start(
        "publish_lake", table=str(lake.table), partitions=4, buses=buses
    ).result()
    assert sum(row["acknowledged"] for row in ledger) == lake.trades
    assert len({row["process"] for row in ledger}) == 2
    check_arrivals(destination, lake)


def test_an_executor_that_dies_loses_nothing_and_its_duplicates_are_counted(
    cluster: Cluster,
    lake_of: Callable[[int], MarketLake],
    kafka_broker: KafkaBroker,
    kafka_proxy: Proxy,
) -> None:
    lake = lake_of(20_000)
    destination = destinations.kafka(kafka_broker, kafka_proxy.address)
    # Slow enough to be in the middle of it when the executor ends.
    slow = kafka_proxy.add("bandwidth", stream="upstream", rate=200)
    options = destination.options | {"compression": "none"}
    run = cluster.start(
        "publish_lake", table=str(lake.table), partitions=6, buses={"kafka": options}
    )
    deadline = time.monotonic() + 300
    while destination.count() < lake.trades // 10:
        if not run.is_running() or time.monotonic() > deadline:
            run.fail("the executor was to be killed in the middle of the job")
        time.sleep(0.2)
    cluster.kill_an_executor()
    slow.remove()
    ledger = run.result()
    assert sum(row["acknowledged"] for row in ledger) == lake.trades
    repeated = [row for row in ledger if row["attempt"] > 0]
    assert repeated
    assert sum(row["possibly_duplicated"] for row in ledger) == sum(
        row["acknowledged"] for row in repeated
    )
    arrived = [arrival.data for arrival in destination.arrivals()]
    assert set(arrived) == set(lake.events())
    # How many depends on what the executor had sent; the ledger says how many there may be.
    duplicates = len(arrived) - lake.trades
    assert duplicates <= sum(row["possibly_duplicated"] for row in ledger)
