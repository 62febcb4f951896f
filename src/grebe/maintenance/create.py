"""Creates indexes: several at once are one pass over the data where possible, and one commit."""

from collections.abc import Mapping, Sequence

from grebe.clock import SYSTEM
from grebe.errors import InvalidIndex
from grebe.indexes.kind import FromQuery, Kind
from grebe.log.commit import Log, Proposal
from grebe.log.entry import (
    NO_PURPOSE,
    Change,
    IndexCreated,
    IndexDropped,
    Measured,
    Purpose,
    TableInfo,
    TableSeen,
    Verb,
)
from grebe.log.operation import Running
from grebe.log.states import TableState
from grebe.maintenance.build import Built, Planned, build, settled
from grebe.maintenance.logs import Place
from grebe.maintenance.operation import carry_out
from grebe.spark.source import SparkSource
from grebe.spark.view_check import require_same_meaning
from grebe.spark.views import definition_of, require_allowed_bases, with_files


def create(
    source: SparkSource,
    place: Place,
    kinds: Sequence[Kind],
    replace: bool = False,
    heartbeat_seconds: float = 60.0,
    purpose: Purpose = NO_PURPOSE,
) -> Log:
    """The log, right after the commit. `replace`: an index of that name may be there, and is replaced as a whole."""
    planned = _planned(source, kinds)
    log = place.made(TableInfo(source.uri, source.kind, source.reading.to_dict()))

    def work(running: Running) -> Proposal:
        since = SYSTEM.monotonic()
        files = settled(source, log, running)
        built = build(source, log, running, planned, files)
        measured = _measured(purpose, built, SYSTEM.monotonic() - since)

        def changes(state: TableState) -> Sequence[Change]:
            dropped = [IndexDropped(name) for name in planned if replace and name in state.indexes]
            created = [
                IndexCreated(
                    name, made.spec, running.version, made.content, made.covered, source.version, measured.get(name)
                )
                for name, made in built.items()
            ]
            first = [TableSeen(files.covered, source.version)] if state.seen is None else []
            return [*dropped, *created, *first]

        return changes

    specs = {name: one.spec for name, one in planned.items()}
    carry_out(log, Verb.CREATE, list(planned), work, specs, replace, heartbeat_seconds, purpose=purpose)
    return log


def _measured(purpose: Purpose, built: Mapping[str, Built], seconds: float) -> dict[str, Measured]:
    """Of several that were built together each is told its share of the time, by what was predicted for it."""
    told = {name: one for name, one in purpose.predicted.items() if name in built}
    whole = sum(one.seconds for one in told.values())
    if len(told) < len(built) or not whole:
        return {}
    return {
        name: Measured(one, sum(file.size for file in built[name].content), seconds * one.seconds / whole)
        for name, one in told.items()
    }


def _planned(source: SparkSource, kinds: Sequence[Kind]) -> dict[str, Planned]:
    if not kinds:
        raise InvalidIndex('create takes at least one kind: create(grebe.Covering("by_a", on="a"))', detail="SPEC")
    names = [_name(kind) for kind in kinds]
    if len(set(names)) < len(names):
        raise InvalidIndex(f"create names an index twice: {', '.join(names)}", detail="NAME")
    return {name: planned_for(source, kind) for name, kind in zip(names, kinds, strict=True)}


def planned_for(source: SparkSource, kind: Kind) -> Planned:
    """What the kind means for this table, as its session reads it."""
    if isinstance(kind, FromQuery):
        meant = kind.definition or definition_of(source.session, kind.query, source.uri, kind.name)
        require_allowed_bases(meant, source.uri, source.allowed)
        current = with_files(source.session, meant)
        if kind.definition is not None:
            require_same_meaning(source.session, current)
        kind = kind.meaning(current)
    settings = source.session.conf
    zone = str(settings.get("spark.sql.session.timeZone"))
    ansi = settings.get("spark.sql.ansi.enabled") == "true"
    return Planned(kind, kind.spec(source.reading, source.case_sensitive, zone, ansi))


def _name(kind: object) -> str:
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or not hasattr(kind, "spec"):
        raise InvalidIndex(
            f'create takes kinds such as grebe.Covering("by_a", on="a"), not {type(kind).__name__}', detail="KIND"
        )
    return name
