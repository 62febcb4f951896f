"""`python -m testbed fetch`: gets everything that the tests run against into the cache, once."""

import argparse
import subprocess
import sys

from grebe.spark.java import find_java
from grebe.store.own_folder import cache_folder
from testbed import azure, maven, tpcds, tpch


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed", description=__doc__)
    parser.add_argument("verb", choices=["fetch"])
    parser.parse_args()
    java = find_java()
    say(f"Java {java.version} from {java.origin}")
    say(f"cache: {cache_folder()}")
    say(f"HDFS for tests: {len(maven.minicluster_jars())} jar")
    if jars := maven.s3a_jars():
        say(f"s3a for Spark: {len(jars)} jars")
    else:
        say(f"SKIPPED s3a for Spark: its jars are chosen for Hadoop 3.4, this Spark has {maven.hadoop_version()}")
    lakes = [jar.name.partition("_")[2] for jar in maven.lake_jars()]
    say(f"lake formats for Spark {maven.spark_version()}: {', '.join(lakes) or 'SKIPPED, none has a runtime for it'}")
    if azure.install():
        say("Azure emulator: azurite")
    else:
        say("SKIPPED the Azure emulator: it needs node and npm, which are not installed. Its tests will be skipped.")
    say(f"TPC-H: {tpch.generate_tested('parquet')} and {tpch.generate_tested('csv')}")
    try:
        say(f"TPC-DS: {tpcds.generate(tpcds.TESTED_SCALE)}")
    except subprocess.CalledProcessError as failed:
        say(f"SKIPPED TPC-DS: DuckDB's extension tpcds cannot be had here ({failed}). Its tests will be skipped.")
    return 0


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
