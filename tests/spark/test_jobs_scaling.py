"""Decimal text becomes the very integer, or says why it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tardis_fast.spark.scaling import E6, E8, E9, Scale, misfit, scaled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def results(
    spark: SparkSession, texts: list[str | None], scale: Scale, *, rounded: bool = False
) -> dict[str | None, int | str | None]:
    """Return the integer of each text, or the reason."""
    rows = spark.createDataFrame([(text,) for text in texts], "text string")
    valued = rows.selectExpr("text", f"{scaled('text', scale, rounded=rounded)} AS value")
    why = misfit("x", "value", "text", scale, required=True, rounded=rounded)
    found = valued.selectExpr("text", "value", f"{why} AS why").collect()
    return {row["text"]: row["value"] if row["why"] is None else row["why"] for row in found}


def test_a_text_becomes_its_integer_or_a_reason(spark: SparkSession) -> None:
    expected = {
        "0": 0,
        "-0.5": -50_000_000,
        "62350.5": 6_235_050_000_000,
        "0.00000001": 1,
        "0.1000000000000": 10_000_000,
        # Near these, doubles have no room for the last digits.
        "92233720368.54775807": 2**63 - 1,
        "-92233720368.54775808": -(2**63),
        "123456789.12345678": 12_345_678_912_345_678,
        "92233720368.54775808": "x times 1e8 does not fit 64 bits: 92233720368.54775808",
        "1500000000000000000000": "x times 1e8 does not fit 64 bits: 1500000000000000000000",
        "0.123456789": "x has more than 8 decimals: 0.123456789",
        "0." + "0" * 300 + "1": "x has more than 8 decimals: 0." + "0" * 58,
        "NaN": "x is no number: NaN",
        "-Infinity": "x is no number: -Infinity",
        "1e5": "x is no number: 1e5",
        "1.5.2": "x is no number: 1.5.2",
        ".": "x is no number: .",
        "": "x is missing",
        None: "x is missing",
    }
    assert results(spark, list(expected), E8) == expected


def test_scales_of_funding_and_volatility(spark: SparkSession) -> None:
    assert results(spark, ["-0.000012345"], E9) == {"-0.000012345": -12_345}
    assert results(spark, ["69.44"], E6) == {"69.44": 69_440_000}


def test_computed_figures_are_rounded_half_to_even_on_request(spark: SparkSession) -> None:
    expected = {
        "62350.21739130435": 6_235_021_739_130,
        "0.000000005": 0,
        "0.000000015": 2,
        "-0.000000025": -2,
        "0." + "0" * 300 + "1": 0,
        "1500000000000": "x times 1e8 does not fit 64 bits: 1500000000000",
        "NaN": "x is no number: NaN",
    }
    assert results(spark, list(expected), E8, rounded=True) == expected
