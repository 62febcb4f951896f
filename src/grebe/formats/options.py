"""Reader options as Spark takes them: names in any case, several names for one option, defaults that need not be
said.

Options are part of a reading only if they can change a record or a value, and a reading is written into the log of the
table. So an option is one of three:
- known to change values: kept as it stands;
- known not to (it chooses files, is for writers, or says how to reach a store: `fs.*`, credentials, encryption keys): ignored;
- unknown: it may change something, and may be a secret. A digest of its value is kept: two readings that differ in it are
  never taken for the same, and nobody learns the value from the log.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from grebe.errors import Unsupported

# These choose files, or say how to find the schema, or how to write. The files and the schema are recorded by
# themselves.
_NOT_A_READING = frozenset(
    (
        *("path", "basepath", "pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter"),
        *("mergeschema", "inferschema", "samplingratio", "preferdate", "prefersdecimal", "primitivesasstring"),
        *("compression", "codec", "quoteall", "escapequotes", "timezone", "inputbuffersize", "maxfilespertrigger"),
    )
)
NO_OPTIONS_OF_A_READING = _NOT_A_READING | {"paths", "avroschemaurl"}
"""What no reading ever holds, so that a log which names one was not written by Grebe: with these a reader opens other files."""
# How a store is reached, who asks, and with which keys: a wrong value makes a read fail, never another value come out of it.
_OF_STORES = (
    "fs.",
    "dfs.",
    "hadoop.",
    "spark.hadoop.",
    "google.cloud.",
    "aws.",
    "azure.",
    "parquet.encryption.",
    "parquet.crypto.",
)
_CREDENTIAL = re.compile(
    r"(?:^|[._-])(?:password|secret|secret[._-]?key|access[._-]?key(?:[._-]id)?|credentials?|session[._-]?token|sas[._-]?token|api[._-]?key)$"
)
# Options that change values and have no default in the tables below.
_CHANGE_VALUES = frozenset(
    (
        *("ignorecorruptfiles", "ignoremissingfiles", "ignoreextension", "avroschema", "recursivefieldmaxdepth"),
        *("enablestableidentifiersforuniontype", "stableidentifierprefixforuniontype"),
    )
)
_FLAGS = frozenset(("true", "false"))
_DIGEST = re.compile(r"digest:[0-9a-f]{32}")
_ROUNDS = 50_000

BY_ID, SESSION_ZONE = "spark.sql.parquet.fieldId.read.enabled", "spark.sql.session.timeZone"
READER_SETTINGS = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "",
    "spark.sql.parquet.int96RebaseModeInRead": "",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.ignoreVariantAnnotation": "false",
    BY_ID: "false",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "orc.force.positional.evolution": "false",
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
    "spark.sql.avro.datetimeRebaseModeInRead": "",
    "spark.sql.legacy.avro.allowIncompatibleSchema": "false",
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.json.enablePartialResults": "true",
    "spark.sql.legacy.json.allowEmptyString.enabled": "false",
    "spark.sql.legacy.json.enableDateTimeParsingFallback": "",
    "spark.sql.legacy.csv.enableDateTimeParsingFallback": "",
    "spark.sql.legacy.timeParserPolicy": "",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.supportSecondOffsetFormat": "true",
    "spark.sql.files.archive.reader.enabled": "false",
    "spark.sql.columnNameOfCorruptRecord": "_corrupt_record",
    "spark.sql.csv.parser.columnPruning.enabled": "true",
    "spark.sql.caseSensitive": "false",
    SESSION_ZONE: "",
}
"""Settings of a Spark session that change what a reader makes of a file, with their defaults; any other is part of a reading."""


@lru_cache(maxsize=1024)
def digest_of(name: str, value: str) -> str:
    """Return what stands in a reading for the value of an unknown option. It is slow to compute, so that guessing values is."""
    found = hashlib.pbkdf2_hmac("sha256", value.encode(), f"grebe reader option {name}".encode(), _ROUNDS, 16)
    return f"digest:{found.hex()}"


def is_digest(value: str) -> bool:
    return _DIGEST.fullmatch(value) is not None


def is_of_store(name: str) -> bool:
    """Return whether an option says how a store is reached, or with which keys."""
    low = name.lower()
    return low.startswith(_OF_STORES) or _CREDENTIAL.search(low) is not None


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options of one format with their defaults, in lower case; other names for them; and per option the values
    with which Grebe reads without Spark (an option that is not listed there is read with any value)."""

    defaults: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    readable: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def complete(self, given: Mapping[str, object]) -> dict[str, str]:
        """What the user gave and the defaults of the rest, under one name each."""
        options = dict(self.defaults)
        for name, value in given.items():
            if value is not None:
                low = self.aliases.get(name.lower(), name.lower())
                text = str(value)
                options[low] = text.lower() if isinstance(value, bool) or self.defaults.get(low) in _FLAGS else text
        return options

    def of_reading(self, given: Mapping[str, object]) -> dict[str, str]:
        """Return the options that count for a reading, as they may be written into a log."""
        options = self.complete(given)
        return self.recorded({name: value for name, value in options.items() if name not in _NOT_A_READING})

    def recorded(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return complete options without those that change nothing, and with digests for the values of unknown ones."""
        return {name: self._kept(name, value) for name, value in options.items() if not is_of_store(name)}

    def _kept(self, name: str, value: str) -> str:
        known = name in self.defaults or name in _CHANGE_VALUES or name in READER_SETTINGS or is_digest(value)
        return value if known else digest_of(name, value)

    def check_readable(self, format_name: str, options: Mapping[str, str]) -> None:
        """Raises `Unsupported` for what only Spark can read."""
        for name, value in options.items():
            known = name in self.defaults
            if known and value == self.defaults[name]:
                continue
            if not known or (name in self.readable and value not in self.readable[name]):
                # The value of an option that nobody knows may be a secret.
                option = f"{name}={value!r}" if known else name
                raise Unsupported(
                    f"{format_name} with the option {option} cannot be read without Spark; read it through `grebe.attach`",
                    detail="READER_OPTION",
                )
