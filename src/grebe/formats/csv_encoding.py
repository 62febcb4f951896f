"""Records of CSV in encodings of one byte a character, as UTF-8. Where they lie in the file is not changed by that."""

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import Unsupported
from grebe.formats.protocol import DataFile
from grebe.formats.text_records import Records, spans_of, text_of

UTF_8 = frozenset(("UTF-8", "utf-8", "UTF8", "utf8"))
# As Spark and Java call them -> as Python does.
_ONE_BYTE = {"ISO-8859-1": "latin-1", "iso-8859-1": "latin-1", "US-ASCII": "ascii", "us-ascii": "ascii"}
READABLE = UTF_8 | _ONE_BYTE.keys()


def encoded(text: str, encoding: str) -> bytes:
    """What stands for this text in the file."""
    try:
        return text.encode(_ONE_BYTE.get(encoding, "utf-8"))
    except UnicodeEncodeError as error:
        raise Unsupported(f"{encoding} has no {text!r}", detail="READER_OPTION") from error


def in_utf8(found: Records, encoding: str, file: DataFile) -> Records:
    """The same records as text in UTF-8. Refuses bytes that mean nothing in the encoding."""
    codec = _ONE_BYTE.get(encoding)
    if codec is None or not len(found):
        text_of(found, file)
        return found
    data, starts, ends = spans_of(found.values)
    try:
        text = data.tobytes().decode(codec).encode()
    except UnicodeDecodeError as error:
        raise Unsupported(
            f"{file.uri} is not {encoding} throughout; read it through Spark", detail="ENCODING"
        ) from error
    places = np.concatenate((np.zeros(1, np.int64), np.cumsum(_widths(codec)[data])))
    bounds = places[np.append(starts, ends[-1])]
    values = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(starts), [None, pa.py_buffer(bounds), pa.py_buffer(text)]
    )
    return Records(values, found.offsets)


@cache
def _widths(codec: str) -> npt.NDArray[np.int64]:
    """How many bytes of UTF-8 each byte becomes."""
    return np.array([len(bytes([byte]).decode(codec, "replace").encode()) for byte in range(256)], np.int64)
