"""The settings: their names, defaults and checks, and the places they come from.

The same names hold in every place. From the highest rank to the lowest: an argument of the call, a `Config` made in code,
`spark.grebe.<name>`, the environment's `GREBE_<NAME>`, `<name> = …` in `grebe.toml`, the default.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from grebe.errors import InvalidConfig
from grebe.setting_values import (
    or_none,
    parse_bytes,
    parse_consistency,
    parse_count,
    parse_days,
    parse_identity,
    parse_literals,
    parse_place,
    parse_places,
    parse_positive_seconds,
    parse_price,
    parse_seconds,
    parse_share,
    parse_switch,
    parse_time_zone,
)

SPARK_PREFIX = "spark.grebe."
ENVIRONMENT_PREFIX = "GREBE_"
TOML_NAME = "grebe.toml"

FORMER_NAMES = {"micd_seconds": "vacuum_retention_seconds"}
"""Settings that have another name now. The former one still works in every place."""
_CALLER = 4
"""Calls between a warning and whoever made the settings."""
_MOST_SHOWN = 200
"""Characters of a value in a message."""

# Variables that are about a machine (where downloads go, how they are resolved), not about how Grebe works.
MACHINE_VARIABLES = frozenset({"GREBE_CACHE", "GREBE_IVY_SETTINGS"})

_WARNED: set[str] = set()
"""Names of unknown variables that this process was warned of."""


def _setting(default: object, parse: Callable[[object], Any], says: str) -> Any:
    return field(default=default, metadata={"parse": parse, "says": says})


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings, checked. What is not given has its default; only what is given outranks the other places."""

    enabled: bool = _setting(True, parse_switch, "whether queries use indexes; false leaves every plan alone")
    hybrid: bool = _setting(
        True, parse_switch, "whether an index that covers only a part of the files is used for that part"
    )
    hybrid_max_appended: float = _setting(
        0.3, parse_share, "up to which share of the table's bytes files that the index does not cover are read directly"
    )
    hybrid_max_deleted: float = _setting(
        0.2, parse_share, "up to which share of the indexed bytes may belong to files that are gone"
    )
    consistency: str = _setting(
        "current", parse_consistency, "`current`, or `snapshot`: the table as of the last refresh of all its indexes"
    )
    identity: str = _setting(
        "stat",
        parse_identity,
        "what tells a data file from an earlier one of its name: `stat`, all that the store says; `footer`, a digest of its end "
        "besides; `times`, size and time alone, where inodes or ctimes change by themselves",
    )
    location: str | None = _setting(
        None, or_none(parse_place), "a folder for the indexes of all tables; none: beside each table"
    )
    allowed_roots: tuple[str, ...] = _setting(
        (),
        parse_places,
        "folders outside of a table where its log may name files; also text, separated by commas",
    )
    cache_bytes: int = _setting(
        256 * 1024**2, parse_bytes, 'memory for what was read of logs, indexes and page maps; also text: "256MB"'
    )
    verify_index_data: bool = _setting(
        True,
        parse_switch,
        "whether all that Spark reads of index files is compared with its checksums; false trusts the store",
    )
    guard_decoders: bool = _setting(
        True,
        parse_switch,
        "whether ORC files are decoded in a process of their own and manifests of Iceberg with all checks; false trusts the files",
    )
    vacuum_retention_seconds: float = _setting(
        86_400.0,
        parse_seconds,
        "how long bytes out of use stay, for those who still read them; less than an hour only as 0 or without "
        "`vacuum_retention_check`",
    )
    micd_seconds: InitVar[object] = None
    """The former name of `vacuum_retention_seconds`."""
    vacuum_retention_check: bool = _setting(
        True, parse_switch, "whether vacuum refuses a `vacuum_retention_seconds` above 0 and below an hour"
    )
    log_retention_days: float = _setting(
        30.0, parse_days, "for how many days entries of the log stay that a checkpoint has made superfluous"
    )
    keep_versions: int = _setting(
        1, parse_count, "how many replaced versions of an index are kept, for queries of older versions of a lake table"
    )
    keep_bytes: int | None = _setting(
        None, or_none(parse_bytes), 'what the kept versions of an index may take together, as `"10GB"`; none: any size'
    )
    heartbeat_seconds: float = _setting(
        60.0, parse_positive_seconds, "how long after its last sign of life an operation counts as dead"
    )
    max_age_seconds: float | None = _setting(
        None,
        or_none(parse_seconds),
        "when an open table looks for a newer version; none: at `reload()` only; 0: at every call",
    )
    time_zone: str | None = _setting(
        None, or_none(parse_time_zone), "the time zone without Spark; none: the one recorded with the table, else UTC"
    )
    price_thousand_requests: float = _setting(
        0.0004, parse_price, "what a thousand read requests cost, in dollars, for explanations; as S3 asks it"
    )
    price_gigabyte: float = _setting(
        0.0,
        parse_price,
        "what reading a gigabyte (10^9 bytes) costs, in dollars, for explanations; free within a region of S3",
    )
    price_core_hour: float = _setting(
        0.05, parse_price, "what a core that works for an hour costs, in dollars, for what_if and recommend"
    )
    record_workload: bool = _setting(
        False, parse_switch, "whether queries are recorded: their shapes and literals are stored beside the indexes"
    )
    workload_literals: str = _setting(
        "plain", parse_literals, "`plain`, or `hashed`: recorded queries hold digests in the place of values"
    )
    workload_days: float = _setting(90.0, parse_days, "for how many days recorded queries are kept")
    workload_bytes: int = _setting(
        64 * 1024**2, parse_bytes, 'what the recorded queries of a table may take, as `"64MB"`; the oldest go first'
    )

    def __new__(cls, **settings: object) -> Self:
        for name in settings:
            _check_name(name, "grebe.Config")
        named = _by_present_names(settings, "grebe.Config")
        config = super().__new__(cls)
        # Which settings the caller named: an explicit default outranks the environment, one left out does not.
        object.__setattr__(config, "_given", frozenset(named))
        return config

    def __post_init__(self, micd_seconds: object) -> None:
        if micd_seconds is not None:
            object.__setattr__(self, "vacuum_retention_seconds", micd_seconds)
        for setting in fields(self):
            value = _parsed(setting.name, getattr(self, setting.name), "grebe.Config")
            object.__setattr__(self, setting.name, value)
        for former, present in FORMER_NAMES.items():
            object.__setattr__(self, former, getattr(self, present))

    @property
    def given(self) -> Mapping[str, object]:
        """The settings that were named when this was made."""
        names: frozenset[str] = self.__dict__["_given"]
        return {name: getattr(self, name) for name in sorted(names)}

    @classmethod
    def load(
        cls,
        overrides: Mapping[str, object] | None = None,
        *,
        config: "Config | None" = None,
        spark_conf: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        toml_path: Path | None = None,
    ) -> Self:
        """The settings from all places by their rank.

        `overrides` are the arguments of a call (None there means: not given), `config` is one made in code, `spark_conf` any
        settings of Spark, of which only ours count. `env` is the process's own unless given; `toml_path` is looked for beside the
        program, then in the working folder, unless given.
        """
        if config is not None and not isinstance(config, Config):
            raise InvalidConfig(
                f"config is of the type {type(config).__name__}; give settings as config=grebe.Config(name=value, …)",
                detail="VALUE",
            )
        if toml_path is None:
            toml_path = next((path for path in _toml_places() if path.is_file()), None)
        settings: dict[str, Any] = {}
        if toml_path is not None:
            settings |= _checked(_toml(toml_path), lambda name: str(toml_path))
        environment = os.environ if env is None else env
        # An empty variable is one that is not set.
        named = {key: text for key, text in environment.items() if text and key not in MACHINE_VARIABLES}
        settings |= _checked(
            _known(_below(ENVIRONMENT_PREFIX, named, str.lower)),
            lambda name: f"the environment ({ENVIRONMENT_PREFIX}{name.upper()})",
        )
        settings |= _checked(_below(SPARK_PREFIX, spark_conf or {}, str), lambda name: f"Spark ({SPARK_PREFIX}{name})")
        settings |= config.given if config is not None else {}
        settings |= _checked({k: v for k, v in (overrides or {}).items() if v is not None}, lambda name: "the call")
        return cls(**settings)


def describe() -> list[tuple[str, object, str]]:
    """Name, default and one sentence for every setting."""
    return [(setting.name, setting.default, setting.metadata["says"]) for setting in fields(Config)]


def _checked(values: Mapping[str, object], place: Callable[[str], str]) -> dict[str, object]:
    parsed = {name: _parsed(name, value, place(name)) for name, value in values.items()}
    return _by_present_names(parsed, place("…")) if FORMER_NAMES.keys() & parsed.keys() else parsed


def _by_present_names(values: Mapping[str, object], place: str) -> dict[str, object]:
    """Return settings under the names that they have now, with a warning for each former one."""
    named: dict[str, object] = {}
    for name, value in values.items():
        present = FORMER_NAMES.get(name, name)
        if present != name:
            if values.get(present, value) != value:
                raise InvalidConfig(
                    f"{place}: {name} and {present} are the same setting. Give one of them.", detail="NAME"
                )
            warnings.warn(
                f"{place}: the setting {name} is called {present} now", DeprecationWarning, stacklevel=_CALLER
            )
        named[present] = value
    return named


def _parsed(name: str, value: object, place: str) -> object:
    _check_name(name, place)
    try:
        return Config.__dataclass_fields__[FORMER_NAMES.get(name, name)].metadata["parse"](value)
    except ValueError as problem:
        raise InvalidConfig(f"{place}: {name} = {_shown(value)} is {problem}.", detail="VALUE") from None


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes no number of thousands of digits
        return "…"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _check_name(name: str, place: str) -> None:
    known = Config.__dataclass_fields__
    if name not in known:
        raise InvalidConfig(f"{place}: there is no setting {name!r}. {_hint(name, known)}", detail="NAME")


def _known(values: Mapping[str, object]) -> dict[str, object]:
    """Those of the environment that are settings. Others may be anybody's: each is warned of once, and left alone."""
    known = Config.__dataclass_fields__
    for name in values.keys() - known.keys() - _WARNED:
        _WARNED.add(name)
        variable = f"{ENVIRONMENT_PREFIX}{name.upper()}"
        warnings.warn(f"{variable} in the environment is no setting of Grebe. {_hint(name, known)}", stacklevel=3)
    return {name: value for name, value in values.items() if name in known}


def _hint(name: str, known: Iterable[str]) -> str:
    import difflib  # only here: `import grebe` does not pay for it

    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"The settings are {', '.join(known)}."


def _below(prefix: str, values: Mapping[str, str], spell: Callable[[str], str]) -> dict[str, object]:
    return {spell(key.removeprefix(prefix)): value for key, value in values.items() if key.startswith(prefix)}


def _toml_places() -> list[Path]:
    program = getattr(sys.modules.get("__main__"), "__file__", None)
    beside = [Path(program).parent / TOML_NAME] if program else []
    return [*beside, Path(TOML_NAME)]


def _toml(path: Path) -> dict[str, object]:
    import tomllib  # only here: `import grebe` does not pay for it

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidConfig(f"{path} cannot be read: {problem}. Give it as UTF-8 text.", detail="FILE") from problem
    except tomllib.TOMLDecodeError as problem:
        raise InvalidConfig(
            f"{path} is no TOML: {problem}. Settings are lines such as: hybrid = true", detail="FILE"
        ) from problem
    except (ValueError, RecursionError) as problem:  # a number of thousands of digits, lists within lists
        raise InvalidConfig(
            f"{path} holds a value that no setting can have ({type(problem).__name__}). Settings are lines such as: hybrid = true",
            detail="FILE",
        ) from problem
