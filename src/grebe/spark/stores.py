"""The store that a Spark session reaches a place by: the same places, the same credentials.

Object stores are opened by obstore with what the session's Hadoop settings say (`fs.s3a.access.key`, …), since only there is a
conditional put to be had; local files and HDFS as everywhere; any other scheme through Hadoop itself.
"""

from typing import TYPE_CHECKING, Any

from grebe.files import canonical_uri
from grebe.store.hadoop import hadoop_store
from grebe.store.opening import open_store, open_table_store, patient
from grebe.store.protocol import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Hadoop's name of a setting -> obstore's.
_S3 = {
    "fs.s3a.access.key": "access_key_id",
    "fs.s3a.secret.key": "secret_access_key",
    "fs.s3a.session.token": "session_token",
    "fs.s3a.endpoint": "endpoint",
    "fs.s3a.endpoint.region": "region",
}
_HADOOP_SCHEMES = {"s3": "s3a", "abfs": "abfss"}
_WITHOUT_JVM = ("file", "gs", "abfs", "http", "https")


def store_for(session: "SparkSession", uri: str) -> Store:
    """The store at a canonical URI, as the session sees it."""
    canonical = canonical_uri(uri)
    options = storage_options(session, canonical)
    return hadoop_store(session, canonical) if options is None else open_store(canonical, options)


def table_store_for(session: "SparkSession", uri: str) -> Store:
    """The store of a table's own files, which may be read through links of a local disk."""
    canonical = canonical_uri(uri)
    return open_table_store(canonical) if canonical.startswith("file:") else patient(store_for(session, canonical))


def storage_options(session: "SparkSession", uri: str) -> dict[str, str] | None:
    """With these `open_store` opens the store of a canonical URI in any process, as the session sees it; None: only its JVM can."""
    scheme = uri.partition("://")[0]
    if scheme == "s3":
        return _s3_options(session)
    return {} if scheme in _WITHOUT_JVM else None


def hadoop_uri(session: "SparkSession", uri: str) -> str:
    """A canonical URI as Hadoop wants it: under the scheme that has a file system there."""
    scheme, _, rest = uri.partition("://")
    known = _HADOOP_SCHEMES.get(scheme)
    if known is None:
        return uri
    own = _hadoop_setting(session, f"fs.{scheme}.impl")
    return f"{scheme}://{rest}" if own else f"{known}://{rest}"


def qualified_uri(session: "SparkSession", path: str) -> str:
    """A path as the session means it: one without a scheme lies in the file system that Hadoop's settings name."""
    jvm: Any = session._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    files = hadoop_path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    return canonical_uri(str(files.makeQualified(hadoop_path).toString()))


def _s3_options(session: "SparkSession") -> dict[str, str]:
    options = {ours: value for theirs, ours in _S3.items() if (value := _hadoop_setting(session, theirs))}
    endpoint = options.get("endpoint", "")
    if endpoint and "://" not in endpoint:
        plain = (_hadoop_setting(session, "fs.s3a.connection.ssl.enabled") or "true").lower() == "false"
        options["endpoint"] = f"{'http' if plain else 'https'}://{endpoint}"
    if options.get("endpoint", "").startswith("http://"):
        options["allow_http"] = "true"
    if (_hadoop_setting(session, "fs.s3a.path.style.access") or "").lower() == "false":
        options["virtual_hosted_style_request"] = "true"
    return options


def _hadoop_setting(session: "SparkSession", name: str) -> str | None:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    value = None if context is None else context._jsc.hadoopConfiguration().get(name)
    return None if value is None else str(value)
