"""Reader options as Spark takes them: names in any case, several names for one option, defaults that need not be
said.

Options are part of a reading only if they can change a record or a value. What is not known here is kept as it
stands: it may change something, and two readings that differ in it are never taken for the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
_FLAGS = frozenset(("true", "false"))


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
        """Those that count for a reading."""
        return {name: value for name, value in self.complete(given).items() if name not in _NOT_A_READING}

    def check_readable(self, format_name: str, options: Mapping[str, str]) -> None:
        """Raises `Unsupported` for what only Spark can read."""
        for name, value in options.items():
            known = name in self.defaults
            if known and value == self.defaults[name]:
                continue
            if not known or (name in self.readable and value not in self.readable[name]):
                raise Unsupported(
                    f"{format_name} with the option {name}={value!r} cannot be read without Spark; read it through `grebe.attach`",
                    detail="READER_OPTION",
                )
