"""Whether the files of a spatial index are those that were written: sizes and digests, and, if asked, every page of them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from grebe.errors import CorruptIndex, GrebeError
from grebe.files.untrusted import MOST_BYTES
from grebe.formats import DataFile
from grebe.indexes.content import checks
from grebe.indexes.content.checks import check_file
from grebe.indexes.content.copies import by_folder
from grebe.indexes.content.directory import NAME as DIRECTORY
from grebe.indexes.faults import Fault, fault
from grebe.indexes.spatial.shape import WKB, Corner, places_of
from grebe.indexes.spatial.tree import NAME, read_root
from grebe.log.entry import ContentFile
from grebe.log.states import IndexState
from grebe.store.protocol import ObjectMissing, Store

_AT_ONCE = 16


def faults_of(index: IndexState, store: Store, deep: bool) -> list[Fault]:
    """`deep` reads every byte."""
    places = places_of(index.name, index.spec)
    runs = by_folder(index.content)
    # Release 0.1 wrote no directory for geometries.
    described = places.form != WKB or any(file.path.endswith(f"/{DIRECTORY}") for file in index.content)

    def check(file: ContentFile) -> Fault | None:
        try:
            if not described:
                check_file(file, store, None, deep)
            if file.path.endswith(f"/{NAME}"):
                check_tree(file, runs[file.path.rpartition("/")[0]], store, places.corners)
        except GrebeError as problem:
            return fault(index.name, file.path, problem)
        return None

    listed = checks.faults_of(index, store, deep) if described else []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(dict.fromkeys([*listed, *(found for found in pool.map(check, index.content) if found)]))


def check_tree(file: ContentFile, run: Sequence[ContentFile], store: Store, corners: tuple[Corner, ...]) -> None:
    try:
        data = store.get(file.path, MOST_BYTES)
    except ObjectMissing as missing:
        raise CorruptIndex(f"{store.uri}/{file.path} is missing", detail="MISSING") from missing
    root = read_root(DataFile(store, file.path, file.size), file.footer, data, corners)
    for twig in root.twigs:
        twig.branch(data[twig.start : twig.start + twig.length], corners)
    listed = {twig.file.path: twig.file.size for twig in root.twigs}
    if any(listed.get(one.path) != one.size for one in run if one.rows):
        raise CorruptIndex(
            f"{root.tree.uri} does not list the files that the log names; refresh the index with mode='full'",
            detail="TREE",
        )
