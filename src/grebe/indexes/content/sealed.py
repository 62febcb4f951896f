"""Small files of an index that are believed without looking at data again: a flipped bit in them must not lose a row.

digest (8 bytes) and the content
"""

import hashlib

from grebe.errors import CorruptIndex

_DIGEST = 8


def digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


def sealed(data: bytes) -> bytes:
    return digest(data) + data


def unsealed(data: bytes, uri: str) -> bytes:
    """Raises `CorruptIndex` where it is not what was sealed."""
    content = data[_DIGEST:]
    require(content, data[:_DIGEST], uri)
    return content


def require(data: bytes, expected: bytes, uri: str) -> None:
    if digest(data) != expected:
        raise CorruptIndex(f"{uri} is damaged; refresh the index with mode='full'", detail="DAMAGED")
