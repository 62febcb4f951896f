"""By what lies in its folder a table of a lake format is known from plain files."""

from grebe.store.protocol import Store

MARKS = {"delta": "_delta_log", "hudi": ".hoodie", "iceberg": "metadata"}
"""By format the folder that such a table has. Other tables may have a folder of the last name: what is in it decides."""
ICEBERG_SUFFIX = ".metadata.json"


def lake_in(store: Store) -> str | None:
    """The format of the table that lies at the root of a store; None if it is none of a lake format."""
    for lake, mark in MARKS.items():
        if any(lake != "iceberg" or one.path.endswith(ICEBERG_SUFFIX) for one in store.list(mark)):
            return lake
    return None
