"""The kinds that are there: our own in one tuple, and those that packages announce in the entry point group `grebe.kinds`.

`grebe.Covering`, `USING covering` and `--kind covering` all come from here.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points

from grebe.errors import CorruptIndex, InvalidConfig, InvalidIndex
from grebe.files.untrusted import decoding
from grebe.indexes.covering.spec import Covering
from grebe.indexes.kind import Kind, KindType
from grebe.indexes.layout.spec import Layout
from grebe.indexes.lookup.spec import Lookup
from grebe.indexes.sieve.spec import Sieve
from grebe.indexes.skipping.spec import Skipping
from grebe.indexes.spatial.spec import Spatial
from grebe.indexes.view.spec import View
from grebe.indexes.zorder.spec import ZOrder
from grebe.log.entry import IndexSpec

GROUP = "grebe.kinds"
OWN: tuple[KindType, ...] = (Covering, Lookup, Skipping, Sieve, Spatial, ZOrder, Layout, View)
_MEMBERS = ("kind", "copy_of", "pruner_of", "faults_of", "from_spec")


@cache
def kinds() -> Mapping[str, KindType]:
    """All kinds by their names in the log."""
    found: dict[str, KindType] = {kind.kind: kind for kind in OWN}
    for kind in _announced():
        if kind.kind in found:
            raise InvalidConfig(f"two packages bring an index kind {kind.kind!r}; uninstall one", detail="PLUG_IN")
        found[kind.kind] = kind
    return found


def kind_named(name: str) -> KindType:
    """By its name in the log, in SQL and on the command line, in any case."""
    found = kinds().get(name.lower())
    if found is None:
        raise InvalidIndex(
            f"no index kind {name!r} is known here; there are: {', '.join(kinds())}. Another package may have brought it",
            detail="KIND",
        )
    return found


def class_named(name: str) -> KindType | None:
    """By the name of its class: `grebe.Covering`."""
    return next((kind for kind in kinds().values() if getattr(kind, "__name__", "") == name), None)


def kind_of(name: str, spec: IndexSpec) -> Kind:
    """What makes the index of that name and spec again."""
    with decoding(lambda why: CorruptIndex(f"what the log says of index {name} does not fit: {why}", detail="SPEC")):
        return kind_named(spec.kind).from_spec(name, spec)


def _announced() -> Iterator[KindType]:
    for point in entry_points(group=GROUP):
        try:
            kind: KindType = point.load()
        except (ImportError, AttributeError) as error:
            raise InvalidConfig(
                f"the index kind {point.name!r} cannot be loaded from {point.value}: {error}", detail="PLUG_IN"
            ) from error
        lacking = [member for member in _MEMBERS if not hasattr(kind, member)]
        if lacking:
            raise InvalidConfig(
                f"the index kind {point.name!r} at {point.value} lacks {', '.join(lacking)}", detail="PLUG_IN"
            )
        yield kind
