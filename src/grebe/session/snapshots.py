"""The files that a reader without Spark sees: those of now, or of plain files those of a snapshot."""

import pyarrow.compute as pc

from grebe.errors import SourceChanged
from grebe.files import FileList, RegisteredFiles
from grebe.sources import Source, Version
from grebe.sources.ends import with_ends
from grebe.sources.plain import PlainSource


def files_now(source: Source, identity: str) -> FileList:
    """Return the files of the version, or of now. `identity` is the setting of that name."""
    files = source.files()
    if not isinstance(source, PlainSource):
        return files
    if identity == "times":
        return files.without_etags()
    return with_ends(files, source.store) if identity == "footer" else files


def files_as_of(source: Source, recorded: RegisteredFiles, identity: str) -> FileList:
    """Return the recorded files that are there unchanged. Raises `SourceChanged` if one of them was changed: without it the answer
    would lack rows that the table had then and that it may still have."""
    listed = files_now(source, identity)
    ids = recorded.ids_of(listed)
    there = ids.is_valid().to_numpy(zero_copy_only=False)
    others = listed.filter(~there).uris()
    changed = others.filter(pc.is_in(others, value_set=recorded.files.uris()))
    if len(changed):
        raise SourceChanged(
            f"{len(changed)} files of {source.uri} were changed since the last refresh of all indexes, such as "
            f"{changed[0].as_py()}; what they held then cannot be read any more. Refresh the indexes, or read the table as it "
            "is now (consistency='current')",
            detail="SNAPSHOT",
        )
    return listed.filter(there)


def version_of(recorded: str) -> Version:
    """Return the version of a lake table as its source takes it."""
    return int(recorded) if recorded.lstrip("-").isdecimal() else recorded
