"""What this package raises when bytes are not what they should be, or cannot be read page by page."""

import contextlib
import struct
import zlib
from collections.abc import Iterator

import pyarrow as pa

from grebe.errors import UnreadableFile, Unsupported

# What reading damaged bytes ends in: a field may lack, lie beyond the end, or hold anything of any type.
_DAMAGE = (
    IndexError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
    OSError,
    struct.error,
    zlib.error,
    pa.ArrowException,
)


NO_PAGES = "UNSUPPORTED_PAGES"
"""The code of the error that says: read row groups instead."""


class Damaged(ValueError):
    """Found by a check of ours."""


class NoPages(ValueError):
    """Sound, but of a kind that is not read page by page."""


@contextlib.contextmanager
def naming(uri: str) -> Iterator[None]:
    """What goes wrong with the bytes inside as errors of this file. Nothing is to be read from stores inside: that fails
    in other ways."""
    try:
        yield
    except NoPages as reason:
        raise Unsupported(
            f"{uri} cannot be read page by page: {reason}; read its row groups instead", detail="PAGES"
        ) from reason
    except _DAMAGE as error:
        what = str(error) if isinstance(error, Damaged) else f"its pages end in {type(error).__name__}"
        raise UnreadableFile(f"{uri} is no Parquet file that can be read: {what}", detail="PARQUET") from error
