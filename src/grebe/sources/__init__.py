"""Where data comes from: the files of a table's version, what changed between two, and how the files are read."""

from grebe.sources.protocol import Deleted, Request, Source, SourceKind, Version
from grebe.sources.registry import open_source
from grebe.sources.settling import Settled, settled_files

__all__ = ["Deleted", "Request", "Settled", "Source", "SourceKind", "Version", "open_source", "settled_files"]
