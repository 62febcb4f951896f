"""Grebe's stores as pyiceberg reads them, so that credentials, retries and counted requests are the same for every file."""

from io import BytesIO
from typing import TYPE_CHECKING

from grebe.errors import UnreadableFile, Unsupported
from grebe.files import canonical_uri, relative_path
from grebe.files.untrusted import MOST_BYTES
from grebe.sources.protocol import Request
from grebe.sources.roots import require_allowed
from grebe.store.protocol import ObjectMissing, ObjectTooLarge, Store

if TYPE_CHECKING:
    from pyiceberg.io import FileIO


def located(uri: str, request: Request) -> tuple[Store, str]:
    """The store of the folder of a file, and the file's name there."""
    folder, _, name = uri.rpartition("/")
    return request.open_store(folder, request.storage_options), name


def file_io(request: Request, store: Store) -> "FileIO":
    """`store` is that of the table; a table may keep files elsewhere."""
    from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

    class _Input(InputFile):
        def __init__(self, location: str) -> None:
            super().__init__(location)
            uri = canonical_uri(location)
            require_allowed((uri,), store.uri, request.allowed_roots)
            inside = relative_path(store.uri, uri)
            self._store, self._path = (store, inside) if inside else located(uri, request)

        def __len__(self) -> int:
            return self._store.stat(self._path).size

        def exists(self) -> bool:
            try:
                self._store.stat(self._path)
            except ObjectMissing:
                return False
            return True

        def open(self, seekable: bool = True) -> InputStream:
            try:
                return BytesIO(self._store.get(self._path, MOST_BYTES))
            except ObjectMissing as error:
                raise FileNotFoundError(self.location) from error
            except ObjectTooLarge as error:
                raise UnreadableFile(
                    f"{error.args[0]}; read the table in Spark, or let Iceberg rewrite its manifests", detail="ICEBERG"
                ) from error

    class _Reading(FileIO):
        def new_input(self, location: str) -> InputFile:
            return _Input(location)

        def new_output(self, location: str) -> OutputFile:
            raise Unsupported(f"{location} is not to be written", detail="READ_ONLY")

        def delete(self, location: "str | InputFile | OutputFile") -> None:
            raise Unsupported("nothing of a table is to be removed", detail="READ_ONLY")

    return _Reading()
