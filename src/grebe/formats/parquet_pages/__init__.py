"""Single rows out of Parquet files, by the few pages that hold them.

`PageMap` knows where the pages of a file lie; `want` says which bytes hold some rows, and makes a table of them once they
are there; `group_span` and `decode_group` do the same for a whole row group; `bloom` has Parquet's Bloom filters. Only
`PageMap.of` and `read_footer` read anything.
"""

from grebe.formats.parquet_pages.bloom import BloomFilters, bloom_spans, hashes_of
from grebe.formats.parquet_pages.dictionary import Dictionaries, Dictionary
from grebe.formats.parquet_pages.failures import NO_PAGES, naming
from grebe.formats.parquet_pages.footer import Footer, parse_footer, read_footer, read_row_count, tail_length
from grebe.formats.parquet_pages.groups import decode_group, group_span
from grebe.formats.parquet_pages.page_map import PageMap
from grebe.formats.parquet_pages.page_maps import MapDirectory, PageMaps, pack_maps
from grebe.formats.parquet_pages.stored_types import as_stored
from grebe.formats.parquet_pages.wanted import MoreNeeded, Wanted, want
from grebe.formats.parquet_pages.xxh64 import hash_one

__all__ = [
    "NO_PAGES",
    "BloomFilters",
    "Dictionaries",
    "Dictionary",
    "Footer",
    "MapDirectory",
    "MoreNeeded",
    "PageMap",
    "PageMaps",
    "Wanted",
    "as_stored",
    "bloom_spans",
    "decode_group",
    "group_span",
    "hash_one",
    "hashes_of",
    "naming",
    "pack_maps",
    "parse_footer",
    "read_footer",
    "read_row_count",
    "tail_length",
    "want",
]
