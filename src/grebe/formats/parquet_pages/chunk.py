"""A column chunk as the page map knows it."""

from dataclasses import dataclass

# Parquet's codecs. Of LZ4 (5) there are two framings and no mark that tells them apart.
UNCOMPRESSED, SNAPPY, GZIP, LZO, BROTLI, LZ4, ZSTD, LZ4_RAW = range(8)
HIDDEN = 15
"""In place of a codec: encrypted, or in another file."""


@dataclass(frozen=True, slots=True)
class Chunk:
    codec: int
    start: int
    dictionary_length: int
    """Of the dictionary page at `start`; 0 if there is none."""
    dictionary_pages: int | None
    """So many pages, the first ones, are encoded by the dictionary, if the writer is right; None if it does not say."""
    values: int
    """Values and nulls of all levels, as the footer counts them."""
    first_rows: tuple[int, ...]
    """Of each data page, counted in the row group. Chunks of a row group that are cut alike share one tuple."""
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    """Of each data page with its header. A chunk whose rows run over the ends of its pages has one "page": all of it."""

    @property
    def stop(self) -> int:
        return self.offsets[-1] + self.sizes[-1] if self.offsets else self.start
