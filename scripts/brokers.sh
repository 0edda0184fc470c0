# Sourced after debian.sh: installs the brokers that tests and benches start, outside of the work tree.
# What is installed, and in which version, stands in tests/brokers/install.
# shellcheck shell=bash

brokers=$cache/brokers
pins=$root/tests/brokers/install

check_broker_tools() {
  need Maven "$(version mvn --version)" 3.6 "Install Maven: Kafka and ElasticMQ come from Maven Central."
  need Go "$(version go version)" 1.26 "Install Go: nats-server and Toxiproxy are built with it."
}

# copy_jars NAME: the jars of NAME.pom.xml, without those of an older pin.
copy_jars() {
  say "Broker: $1"
  rm -rf "${brokers:?}/$1"
  mvn --batch-mode --quiet -f "$pins/$1.pom.xml" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$brokers/$1"
}

install_kinesis() {
  say "Broker: kinesis-mock"
  mkdir -p "$brokers/kinesis"
  cp "$pins"/package{,-lock}.json "$brokers/kinesis"
  (cd "$brokers/kinesis" && npm ci --silent --no-audit --no-fund)
}

install_go_tools() {
  say "Brokers: nats-server, Toxiproxy"
  (cd "$pins" && GOBIN=$brokers/bin go install tool)
  # Go names a program after its folder.
  mv -f "$brokers/bin/server" "$brokers/bin/toxiproxy-server"
}

setup_brokers() {
  check_broker_tools
  once "$brokers/kafka/.stamp" "$pins/kafka.pom.xml" -- copy_jars kafka
  once "$brokers/elasticmq/.stamp" "$pins/elasticmq.pom.xml" -- copy_jars elasticmq
  once "$brokers/kinesis/.stamp" "$pins/package-lock.json" -- install_kinesis
  once "$brokers/bin/.stamp" "$pins/go.mod" "$pins/go.sum" -- install_go_tools
  # Redis is in no package registry; the distribution's own serves.
  install_debian_package redis-server redis-server
  export TARDIS_FAST_BROKERS=$brokers
}
