"""Files get their ids: an idempotent commit of its own, made before any index mentions a file.

The log holds pointers to segments, each an object with consecutive ids and their identities. Whoever loses the race for the next
ids registers only what is still missing. So an id is given once, never again, and never changes in a rebase.
"""

from collections.abc import Sequence

import pyarrow as pa

from grebe.errors import CorruptLog, SourceChanged
from grebe.files import FileList, RegisteredFiles, decode, encode
from grebe.files.untrusted import MOST_BYTES
from grebe.log import names
from grebe.log.codec import NEXT_STEP
from grebe.log.commit import Log
from grebe.log.entry import Change, FilesRegistered, Segment, SegmentsMerged
from grebe.log.snapshot import newest_or_empty
from grebe.log.states import TableState
from grebe.store.protocol import ObjectMissing, ObjectTooLarge

MOST_SEGMENTS = 16
"""Reading the file list takes at most this many requests."""


class Registry:
    """The registered files of one log, kept as far as they have been read."""

    def __init__(self, log: Log) -> None:
        self._log = log
        nothing = RegisteredFiles.empty(log.state.table.uri if log.state.table else log.store.uri)
        self._read: tuple[tuple[Segment, ...], RegisteredFiles] = ((), nothing)

    def files(self, state: TableState) -> RegisteredFiles:
        """All files registered in this state."""
        segments, known = self._read
        if state.segments == segments:
            return known
        if state.segments[: len(segments)] != segments:
            segments, known = (), RegisteredFiles.empty(known.files.root)
        known = RegisteredFiles.concat(known, *(self._read_segment(s) for s in state.segments[len(segments) :]))
        self._read = (state.segments, known)
        return known

    def register(self, listing: FileList) -> pa.UInt32Array:
        """The id of each file of the listing, in its order; those that have none yet get one."""
        written: list[Segment] = []

        def changes(state: TableState) -> Sequence[Change]:
            missing = self.files(state).missing(listing)
            if not len(missing):
                return ()
            usable = written and written[-1].first_id == state.next_file_id and written[-1].count == len(missing)
            if not usable:
                written.append(self._write_segment(RegisteredFiles.register(missing, state.next_file_id)))
            return (FilesRegistered(written[-1]),)

        made = self._log.commit("register files", changes)
        ids = self.files(made.state).ids_of(listing)
        for abandoned in (s for s in written if s not in made.state.segments):
            self._log.store.delete(abandoned.path)
        self._merge_if_many()
        return ids

    def _merge_if_many(self) -> None:
        """Merges the tail of small segments, so that each file is written again a logarithmic number of times."""
        if len(self._log.state.segments) <= MOST_SEGMENTS:
            return
        merged = self._write_merged(_tail_to_merge(self._log.state.segments))

        def changes(state: TableState) -> Sequence[Change]:
            paths = tuple(s.path for s in state.segments)
            # Another writer may have merged meanwhile: then there is nothing left to do.
            return (merged,) if set(merged.replaced) <= set(paths) else ()

        made = self._log.commit("merge file segments", changes)
        if merged.segment not in made.state.segments:
            self._log.store.delete(merged.segment.path)

    def _write_merged(self, tail: Sequence[Segment]) -> SegmentsMerged:
        files = RegisteredFiles.concat(*(self._read_segment(s) for s in tail))
        return SegmentsMerged(tuple(s.path for s in tail), self._write_segment(files))

    def _write_segment(self, files: RegisteredFiles) -> Segment:
        first_id, data = files.next_id - len(files), encode(files)
        path = names.segment_path(first_id, len(files), self._log.clock.new_id())
        self._log.store.put(path, data)
        return Segment(path, first_id, len(files), len(data))

    def _read_segment(self, segment: Segment) -> RegisteredFiles:
        where = f"{self._log.store.uri}/{segment.path}"
        try:
            files = decode(self._log.store.get(segment.path, min(segment.size, MOST_BYTES)))
        except ObjectTooLarge as problem:
            raise CorruptLog(f"{problem}. {NEXT_STEP}", detail="FILE_LIST") from problem
        except ObjectMissing as missing:
            if segment in newest_or_empty(self._log.store).state.segments:
                raise CorruptLog(
                    f"{where} is missing. {NEXT_STEP}",
                    detail="FILE_LIST",
                ) from missing
            raise SourceChanged(
                f"{where} is gone: the list of files was merged and vacuumed after this state of the log was read. Reload.",
                detail="FILE_LIST",
            ) from missing
        if len(files) != segment.count or files.next_id != segment.first_id + segment.count:
            raise CorruptLog(f"{where} does not hold the files that the log says. {NEXT_STEP}", detail="FILE_LIST")
        return files


def _tail_to_merge(segments: Sequence[Segment]) -> Sequence[Segment]:
    """The longest tail in which no segment outweighs all that follow it together, and at least the last two."""
    total, start = 0, len(segments)
    while start > 0 and (segments[start - 1].count <= 2 * total or len(segments) - start < 2):
        start -= 1
        total += segments[start].count
    return segments[start:]
