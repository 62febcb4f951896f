"""A table in a Spark session: the verbs on its indexes, one line each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Literal, overload

from grebe.advisor.auto.deciding import Tended, auto
from grebe.advisor.auto.report import AutoReport
from grebe.advisor.measured.predictions import Predictions, predictions_of
from grebe.advisor.organise.in_place import OrganisedInPlace, organise_in_place
from grebe.advisor.organise.learned import columns_asked
from grebe.advisor.organise.organising import Organised, Organising, organise
from grebe.advisor.recommend.suggestion import Suggestions
from grebe.advisor.what_if.suppose import columns_read, cores_of, ground_of, imagined_on
from grebe.advisor.workload.observed import Observed, from_table
from grebe.advisor.workload.reading import Recorded, places_of
from grebe.config import Config
from grebe.credentials import refuse_credentials
from grebe.errors import GrebeError, IndexNotFound, Unsupported
from grebe.files import FileIds, canonical_uri, location_given, path_given
from grebe.formats import Reading
from grebe.indexes.faults import Report
from grebe.indexes.kind import Kind
from grebe.indexes.registry import kind_of
from grebe.log.commit import Log
from grebe.log.describe import HistoryEntry, IndexInfo, describe_history, describe_indexes, no_indexes
from grebe.log.entry import NO_PURPOSE, Keep, Prediction, Purpose
from grebe.log.registration import Registry
from grebe.log.snapshot import history
from grebe.log.states import ACTIVE, TableState
from grebe.maintenance.cancel import cancel
from grebe.maintenance.create import create
from grebe.maintenance.delete import delete, restore
from grebe.maintenance.logs import Place
from grebe.maintenance.optimize import optimize
from grebe.maintenance.refresh import refresh
from grebe.maintenance.reorganise import Chosen, reorganise
from grebe.maintenance.repair import repair
from grebe.maintenance.vacuum import Vacuumed, retention_of, vacuum
from grebe.maintenance.verify import changed_files, verify
from grebe.maintenance.verify_rows import compare
from grebe.shown.records import Records
from grebe.spark.frames import frame_of_arrow
from grebe.spark.jobs import cancel_jobs
from grebe.spark.opening import spark_source
from grebe.spark.readings import reader_for
from grebe.spark.source import SparkSource
from grebe.spark.stores import store_for
from grebe.store.access import taking_access_of
from grebe.store.protocol import Store

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Changed = Callable[[str, str | None], None]
"""Told of a table's URI and of its location= after each commit, so that queries look at the log again."""
Suggests = Callable[[str, Sequence[Observed], float], Suggestions]
"""Indexes of the table at a URI that would help these queries, within so many bytes."""
SHARE = 0.4
"""Of the rows of a layout, what is written anew at the most."""
# Their files do not say how they are to be read, so a path without options means: as when the first index was created.
_READ_AS_RECORDED = ("csv", "json")


class LakeTable:
    """One table and its indexes. `location` is where they lie, if not beside the table; it is the only place looked at then."""

    def __init__(
        self,
        session: "SparkSession",
        source: "str | PathLike[str] | DataFrame",
        format: str | None = None,
        options: Mapping[str, str] | None = None,
        location: str | PathLike[str] | None = None,
        config: Config | None = None,
        changed: Changed = lambda table, location: None,
        heard: Callable[[], object] = lambda: None,
        suggests: "Suggests | None" = None,
    ) -> None:
        """`heard` waits until all is known of queries that have run."""
        if isinstance(source, str | PathLike):
            refuse_credentials(path_given(source))
        location = None if location is None else location_given(location)
        refuse_credentials(location or "")
        self._suggests = suggests
        self._session = session
        self._config = config or Config.load({})
        self._location = None if location is None else canonical_uri(location)
        self._told = changed
        self._heard = heard
        source = path_given(source) if isinstance(source, str | PathLike) else source
        if isinstance(source, str) and format in (None, *_READ_AS_RECORDED) and not options and _is_path(source):
            source = self._as_recorded(source, format)
        self._source = spark_source(session, source, format, options, self._config.allowed_roots)
        self._place = self._place_of(self._source.uri)
        if location is not None:
            self._changed()

    def __repr__(self) -> str:
        return f"LakeTable({self.uri!r})"

    @property
    def uri(self) -> str:
        return self._source.uri

    @property
    def newest(self) -> SparkSource:
        """The table as it is now."""
        return self._newest()

    def create(self, *kinds: Kind, replace: bool = False) -> list[IndexInfo]:
        """Creates indexes, in one commit: all of them, or none. `replace`: those of the same name are replaced."""
        predicted = self._predicted(kinds) if self._config.record_workload else {}
        return self._created(kinds, replace, Purpose(predicted=predicted))

    def _created(self, kinds: Sequence[Kind], replace: bool, purpose: Purpose) -> list[IndexInfo]:
        log = create(self._newest(), self._place, kinds, replace, self._config.heartbeat_seconds, purpose)
        return self._committed(log, [kind.name for kind in kinds])

    def _predicted(self, kinds: Sequence[Kind]) -> dict[str, Prediction]:
        """What building them will take, so that it can be told how right that was."""
        source = self._newest()
        try:
            ground = ground_of(source, self._place, lambda roots: (), columns_read(source, kinds))
            return {one.kind.name: one.prediction for one in imagined_on(ground, kinds, cores_of(self._session))}
        except GrebeError:
            return {}  # whatever is wrong with them, building says it better

    def refresh(self, *names: str, mode: str = "incremental") -> list[IndexInfo]:
        """Bring these indexes (all, if none is named) up to the table as it is now, in one commit. One that cannot be refreshed any
        more (a column of it was dropped) does not keep the others from it: it is marked with its `problem`. Raises that problem
        where the index was named, or where none can be refreshed."""
        if not names and self._place.find() is None:
            return []
        infos, failed = self._refreshed(names, mode, NO_PURPOSE)
        if failed and (names or len(failed) == len(infos)):
            raise next(iter(failed.values()))
        return infos

    def _refreshed(
        self, names: Sequence[str], mode: str, purpose: Purpose
    ) -> tuple[list[IndexInfo], Mapping[str, GrebeError]]:
        log, seconds = self._place.existing(), self._config.heartbeat_seconds
        done = refresh(self._newest(), log, names, mode, seconds, self._keep, purpose)
        return self._committed(log, done.names), done.failed

    def optimize(self, *names: str, mode: str = "quick") -> list[IndexInfo]:
        """Lays the content of these indexes (all, if none is named) out anew: `quick` merges small runs, `full` all of them. Gives
        those that changed."""
        log = self._place.find() if not names else self._place.existing()
        if log is None:
            return []
        return self._committed(
            log, optimize(self._newest(), log, names, mode, self._config.heartbeat_seconds, self._keep)
        )

    def delete(self, name: str) -> None:
        """Out of use at once; `restore` brings it back."""
        delete(self._place.existing(), name, self._config.heartbeat_seconds)
        self._changed()

    def restore(self, name: str) -> None:
        """Back in use, as it was when it was deleted."""
        restore(self._place.existing(), name, self._config.heartbeat_seconds)
        self._changed()

    def vacuum(self, name: str | None = None, dry_run: bool = False) -> Vacuumed:
        """Removes deleted indexes for good, and bytes that nobody can still be reading (`vacuum_retention_seconds`): of one index,
        or all. `dry_run`: only lists what would go."""
        log = self._place.find() if name is None else self._place.existing()
        if log is None:
            return Vacuumed((), 0, 0, 0, dry_run)
        found = vacuum(log, name, retention_of(self._config), self._config.heartbeat_seconds, dry_run=dry_run)
        self._changed()
        return found

    def cancel(self, name: str) -> list[str]:
        """Ends operations on this index that died or are to be given up, and the jobs of those that this session runs. Gives their
        verbs."""
        ended = cancel(self._place.existing(), name)
        for operation in ended:
            cancel_jobs(self._session, operation.id)
        self._changed()
        return [str(operation.verb) for operation in ended]

    def verify(self, deep: bool = False) -> Report:
        """Whether the log and the files of the indexes are as they were written; `deep` reads all their bytes, derives the rows of
        the indexes anew from the table, and compares."""
        log = self._place.find()
        if log is None:
            return Report()
        report = verify(log, deep)
        source = self._newest()
        report = replace(report, unchecked=changed_files(log, source.files()))
        if not deep:
            return report
        compared = compare(source, log, log.state, report.findings)
        unchecked = report.unchecked + compared.unchecked
        return replace(report, findings=report.findings + compared.findings, unchecked=unchecked)

    def repair(self, deep: bool = True) -> list[IndexInfo]:
        """Mends what `verify` finds, in one commit, deriving only anew what is broken. Gives the indexes that were mended."""
        log = self._place.find()
        return (
            []
            if log is None
            else self._committed(log, repair(self._newest(), log, deep, self._config.heartbeat_seconds))
        )

    def indexes(self) -> Records[IndexInfo]:
        """All indexes of the table, by name."""
        log = self._place.find()
        return no_indexes() if log is None else self._described(log)

    def index(self, name: str) -> IndexInfo:
        """Raises `IndexNotFound`."""
        by_name = {info.name: info for info in self.indexes()}
        if name not in by_name:
            raise IndexNotFound(f"no index {name} on {self.uri}; there are: {', '.join(by_name) or 'none yet'}")
        return by_name[name]

    def history(self, limit: int | None = None) -> Records[HistoryEntry]:
        """The last `limit` entries of the log (all, if None), newest last."""
        log = self._place.find()
        return describe_history(() if log is None else history(log.store, log.newest.number, limit))

    @overload
    def organise(
        self, budget: object = None, *, name: str = ..., share: float = ..., dry_run: bool | None = ...
    ) -> Organised: ...

    @overload
    def organise(
        self, budget: object = None, *, in_place: Literal[True], dry_run: bool | None = ...
    ) -> OrganisedInPlace: ...

    def organise(
        self,
        budget: object = None,
        *,
        name: str = "layout",
        share: float = SHARE,
        in_place: bool = False,
        dry_run: bool | None = None,
    ) -> Organised | OrganisedInPlace:
        """Learns from the recorded queries how the rows should lie, and lays a copy of the columns that they read out so: within
        `budget` (bytes, `"10GB"`, or a share of the table, `"20%"`). Where there is such a layout already, the parts of it are laid
        out anew that help most, at most this `share` of the rows. `dry_run`: only says what it would do.

        `in_place`: no copy is made, but a table of Delta Lake or Iceberg itself is rewritten, at most `budget` of it, by a commit
        of that format that changes no row; only said unless `dry_run=False` is given."""
        if in_place:
            told = organise_in_place(self._newest(), from_table(self._observed()), budget, dry_run is not False)
            self._changed()
            return told
        return self._organised(budget, name, share, bool(dry_run))

    def _organised(
        self, budget: object, name: str, share: float, dry_run: bool, within: Purpose | None = None
    ) -> Organised:
        """`within`: only where it is due, and for this purpose."""
        source = self._newest()
        log = self._place.find()
        known = None if log is None else log.state.indexes.get(name)
        observed = from_table(self._observed())
        columns = columns_asked(observed, source.uri)
        if known is not None:
            columns |= kind_of(name, known.spec).reads(known.spec)
        ground = ground_of(source, self._place, lambda roots: (), columns)
        table = Organising(
            ground,
            known,
            lambda kind, purpose: self._created([kind], known is not None, within or purpose),
            lambda name, chosen, purpose: self._rewritten(name, chosen, within or purpose),
            cores_of(self._session),
        )
        return organise(table, observed, name, budget, share, dry_run, within is not None)

    def _rewritten(self, name: str, chosen: Chosen, purpose: Purpose) -> bool:
        log = self._place.existing()
        written = reorganise(self._newest(), log, name, chosen, self._config.heartbeat_seconds, self._keep, purpose)
        self._changed()
        return written

    def auto(self, budget: object = None, *, dry_run: bool = True) -> AutoReport:
        """Looks after the table's indexes by itself: drops those of its own that do not pay, refreshes, lays out anew, and builds
        what would have paid for itself by the recorded queries, all indexes together within `budget` (bytes, `"10GB"`, or a share
        of the table, `"20%"`). Only says what it would do unless `dry_run=False` is given."""
        if self._suggests is None:
            raise Unsupported(
                "auto plans queries: open the table by grebe.attach(spark).table(...)", detail="NOT_ATTACHED"
            )
        observed, suggests = from_table(self._observed()), self._suggests
        table = Tended(
            self.uri,
            self._newest().files().total_bytes,
            lambda: TableState() if (log := self._place.find()) is None else log.reload().state,
            self.indexes,
            observed,
            lambda bytes: suggests(self.uri, observed, bytes),
            lambda kind, purpose: self._created([kind], False, purpose),
            lambda names, purpose: self._refreshed(names, "incremental", purpose)[0],
            lambda name, purpose: self._organised(None, name, SHARE, dry_run, purpose),
            self._dropped,
        )
        return auto(table, budget, dry_run)

    def _dropped(self, name: str, purpose: Purpose) -> None:
        log = self._place.existing()
        if log.reload().state.indexes[name].state == ACTIVE:
            delete(log, name, self._config.heartbeat_seconds, purpose)
        self.vacuum(name)

    def predictions(self) -> Predictions:
        """Predicted beside measured: of every index whose building was predicted, and of recorded queries that used an index."""
        log = self._place.find()
        return predictions_of(None if log is None else log.state, from_table(self._observed()))

    def _observed(self) -> "pa.Table":
        self._heard()
        return self._recorded().queries()

    def workload(self) -> "DataFrame":
        """The queries on the table that were recorded (`record_workload`), by Spark and without, one row each, oldest first."""
        return frame_of_arrow(self._session, self._observed())

    def forget_workload(self) -> int:
        """Removes what was recorded of queries; gives how many blocks of them."""
        self._heard()
        return self._recorded().clear()

    def _recorded(self) -> Recorded:
        log = self._place.find()
        where = places_of(self.uri, self._location, self._config.location, None if log is None else log.store.uri)
        return Recorded(tuple(where), lambda place: taking_access_of(self._store(place), self.uri))

    def _committed(self, log: Log, names: list[str]) -> list[IndexInfo]:
        self._changed()
        by_name = {info.name: info for info in self._described(log)}
        return [by_name[name] for name in names if name in by_name]

    def _described(self, log: Log) -> Records[IndexInfo]:
        found = Registry(log).files(log.state).ids_of(self._newest().files())
        return describe_indexes(log.state, FileIds.of(found.drop_null().to_numpy()), found.null_count)

    @property
    def _keep(self) -> Keep:
        return Keep(self._config.keep_versions, self._config.keep_bytes)

    def _newest(self) -> SparkSource:
        """Of a lake table its newest version; plain files are listed whenever they are asked for."""
        self._source = replace(
            self._source.newest(), identity=self._config.identity, guard_decoders=self._config.guard_decoders
        )
        return self._source

    def _changed(self) -> None:
        self._told(self.uri, self._location)

    def _place_of(self, table: str) -> Place:
        return Place(table, self._location, self._config.location, self._store)

    def _store(self, uri: str) -> Store:
        return store_for(self._session, uri)

    def _as_recorded(self, path: str, format: str | None) -> "str | DataFrame":
        """The path, or what reads it as the log remembers."""
        log = self._place_of(canonical_uri(path)).find()
        if log is None or log.state.table is None or not log.state.table.reading:
            return path
        reading = Reading.from_dict(log.state.table.reading)
        if reading.format not in _READ_AS_RECORDED or format not in (None, reading.format):
            return path
        return reader_for(self._session, reading).load(path)


def _is_path(text: str) -> bool:
    return "/" in text and not any(sign in text for sign in "*?[{")
