"""Hyperspace's settings as a session has them now, as far as Grebe has the same thing; what it does not have is told once."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from grebe.config import Config
from grebe.errors import InvalidConfig
from grebe.spark.stores import qualified_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_logger = logging.getLogger("grebe.compat")

PREFIX = "spark.hyperspace."
ENABLED = PREFIX + "apply.enabled"
SYSTEM_PATH = PREFIX + "system.path"

# Their name below the prefix -> our setting.
_SAME = {
    "index.hybridscan.enabled": "hybrid",
    "index.hybridscan.maxAppendedRatio": "hybrid_max_appended",
    "index.hybridscan.maxDeletedRatio": "hybrid_max_deleted",
    "index.cache.expiryDurationInSeconds": "max_age_seconds",
}
# The newer name counts if both are set.
_BUCKETS = ("index.numBuckets", "index.num.buckets")
_LINEAGE = "index.lineage.enabled"
_DISPLAY = "explain.displayMode"
_DISPLAYS = ("console", "plaintext", "html")
IGNORED = (
    "dev.index.nestedColumn.enabled",
    "eventLoggerClass",
    "explain.displayMode.highlight.beginTag",
    "explain.displayMode.highlight.endTag",
    "index.creation.path",
    "index.dataskipping.autoPartitionSketch",
    "index.dataskipping.maxIndexDataFileCount",
    "index.dataskipping.targetIndexDataFileSize",
    "index.filterRule.useBucketSpec",
    "index.optimize.fileSizeThreshold",
    "index.search.paths",
    "index.sources.defaultFileBasedSource.supportedFileFormats",
    "index.sources.fileBasedBuilders",
    "index.zorder.quantile.enabled",
    "index.zorder.quantile.relativeError",
    "index.zorder.targetSourceBytesPerPartition",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """`config` holds only what was set, so that for the rest Grebe's own settings count."""

    config: Config
    buckets: int | None
    lineage: bool
    as_html: bool


def settings_of(session: "SparkSession") -> Settings:
    """`session` is a classic one. Hyperspace's optimizer is off until it is enabled, Grebe's here too."""
    for name in IGNORED:
        if _value(session, name) is not None:
            tell_once(PREFIX + name)
    given: dict[str, Any] = {ours: _value(session, theirs) for theirs, ours in _SAME.items()}
    path = session.conf.get(SYSTEM_PATH, None)
    given["location"] = qualified_uri(session, path) if path else None
    given["enabled"] = session.conf.get(ENABLED, "false")
    return Settings(
        Config(**{name: value for name, value in given.items() if value is not None}),
        next(
            (_checked(session, name, int, "a number") for name in _BUCKETS if _value(session, name) is not None), None
        ),
        _checked(session, _LINEAGE, _switch, "true or false", "true"),
        _checked(session, _DISPLAY, _DISPLAYS.index, ", ".join(_DISPLAYS), "plaintext") == _DISPLAYS.index("html"),
    )


@cache
def tell_once(name: str) -> None:
    _logger.warning("event=hyperspace_setting_ignored name=%s", name)


def _value(session: "SparkSession", name: str) -> str | None:
    value = session.conf.get(PREFIX + name, None)
    return None if value is None else str(value)


def _checked(session: "SparkSession", name: str, parse: Callable[[str], Any], right: str, default: str = "") -> Any:
    value = session.conf.get(PREFIX + name, default)
    try:
        return parse(str(value).strip().lower())
    except ValueError:
        raise InvalidConfig(f"Spark ({PREFIX}{name}): {value!r} is not {right}.", detail="VALUE") from None


def _switch(text: str) -> bool:
    return bool(("false", "true").index(text))
