"""Which files there are: canonical URIs, lists of identities and their differences, sets of file ids, and the bytes
of a list.

Pure: nothing here reads a store. Sources make lists, the log keeps them, and every index says by ids which files it
covers.
"""

from grebe.files.ids import FileIds
from grebe.files.listing import Diff, FileList, diff
from grebe.files.registered import RegisteredFiles, decode, encode
from grebe.files.uri import canonical_uri, join_uri, location_given, path_given, relative_path

__all__ = [
    "Diff",
    "FileIds",
    "FileList",
    "RegisteredFiles",
    "canonical_uri",
    "decode",
    "diff",
    "encode",
    "join_uri",
    "location_given",
    "path_given",
    "relative_path",
]
