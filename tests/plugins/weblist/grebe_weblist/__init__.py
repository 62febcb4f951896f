"""A source of another package: files of a web server, listed by version in `manifest.json` beside them.

`{"format": "csv", "versions": [[{"path": "a.csv", "size": 10, "etag": "…"}, …], …]}`: the versions are numbered from 0.
"""

from .source import KIND

__all__ = ["KIND"]
