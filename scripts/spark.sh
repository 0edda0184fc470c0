# Sourced after setup.sh: fetches the jars that the Spark jobs and their tests need, outside of the work
# tree. Which, and in which version, stands in spark/jars/pom.xml.
# shellcheck shell=bash

spark_jars=$cache/spark-jars
spark_pins=$root/spark/jars/pom.xml

fetch_spark_jars() {
  say "Jars for Spark"
  rm -rf "${spark_jars:?}"
  mvn --batch-mode --quiet -f "$spark_pins" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$spark_jars"
}

setup_spark_jars() {
  need Maven "$(version mvn --version)" 3.6 "Install Maven: Delta Lake and Spark's Kafka connector come from Maven Central."
  once "$spark_jars/.stamp" "$spark_pins" -- fetch_spark_jars
  export TARDIS_FAST_SPARK_JARS=$spark_jars
}
