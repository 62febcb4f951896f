"""Fixtures that all tests share: the real servers, one of each for a whole run, and one Spark a worker."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grebe.clock import SYSTEM
from testbed import azure
from testbed.azure import AzureServer
from testbed.azure import azure_server as start_azure
from testbed.hdfs import HdfsServer
from testbed.hdfs import hdfs_server as start_hdfs
from testbed.proxy import FaultProxy, fault_proxy
from testbed.recipes import StoreRecipe
from testbed.s3 import S3Server
from testbed.s3 import s3_server as start_s3
from testbed.sharing import shared
from testbed.spark import SHORT_LIVED, drop_views, forget_tables, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run see."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def s3_server(run_folder: Path) -> Iterator[S3Server]:
    with shared(run_folder, S3Server, start_s3) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs_server(run_folder: Path) -> Iterator[HdfsServer]:
    with shared(run_folder, HdfsServer, start_hdfs) as server:
        yield server


@pytest.fixture(scope="session")
def azure_server(run_folder: Path) -> Iterator[AzureServer]:
    if not azure.available():
        pytest.skip("azurite is not installed: `python -m testbed fetch` installs it where there is npm")
    with shared(run_folder, AzureServer, start_azure) as server:
        yield server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    with spark_session(tmp_path_factory.mktemp("spark"), SHORT_LIVED) as session:
        yield session


@pytest.fixture(scope="module", autouse=True)
def views_and_tables_end_with_their_module() -> "Iterator[None]":
    """All tests of a worker share one session, where a view that is left behind hides another module's table, and the tables of
    all modules before would be looked at by whoever asks for those with indexes."""
    yield
    forget_tables()
    if (sql := sys.modules.get("pyspark.sql")) and (session := sql.SparkSession.getActiveSession()):
        drop_views(session)


@pytest.fixture
def local_recipe(tmp_path: Path) -> StoreRecipe:
    return StoreRecipe(str(tmp_path / "store"))


@pytest.fixture
def s3_recipe(s3_server: S3Server) -> StoreRecipe:
    return StoreRecipe(s3_server.uri(SYSTEM.new_id()), s3_server.storage_options)


@pytest.fixture(scope="session")
def worker_proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with fault_proxy(s3_server.endpoint) as started:
        yield started


@pytest.fixture
def proxy(worker_proxy: FaultProxy) -> Iterator[FaultProxy]:
    """In front of the S3 server; lets everything pass until told otherwise."""
    worker_proxy.plan()
    yield worker_proxy
    worker_proxy.plan()


@pytest.fixture
def proxied_s3_recipe(s3_server: S3Server, proxy: FaultProxy) -> StoreRecipe:
    options = {**s3_server.storage_options, "endpoint": proxy.endpoint, "timeout": "2s", "retry_timeout": "5"}
    return StoreRecipe(s3_server.uri(SYSTEM.new_id()), options)


@pytest.fixture
def hdfs_recipe(hdfs_server: HdfsServer) -> StoreRecipe:
    return StoreRecipe(hdfs_server.uri(SYSTEM.new_id()))


@pytest.fixture
def azure_recipe(azure_server: AzureServer) -> StoreRecipe:
    return StoreRecipe(azure_server.uri(SYSTEM.new_id()), azure_server.storage_options)
