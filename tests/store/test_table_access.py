"""Who gets at indexes, by modes, groups and access control lists: nobody whom any part of the table keeps out."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from grebe.store.table_access import (
    BOTH,
    ENTER,
    GROUP,
    LISTINGS,
    OTHER,
    READ,
    AclEntry,
    Node,
    closed,
    closed_classes,
    excess,
    folder_of_file,
    nodes_below,
    spread,
    without_group,
)

USERS, GROUPS = ("ann", "bob", "cat"), ("g", "h", "i")


@dataclass(frozen=True)
class Person:
    name: str
    groups: frozenset[str]

    def may(self, need: int, node: Node) -> bool:
        """As POSIX.1e and HDFS decide it."""
        if self.name == node.owner:
            return bool(node.mode >> 6 & need)
        mask = node.mode >> GROUP & 0o7
        entries = [("group", node.group, mask)] if not node.acl else []
        entries += [(one.kind, one.name or node.group, one.bits & mask) for one in node.acl or ()]
        for kind, name, bits in entries:
            if kind == "user" and name == self.name:
                return bool(bits & need)
        of_groups = [bits for kind, name, bits in entries if kind == "group" and name in self.groups]
        return any(bits & need for bits in of_groups) if of_groups else bool(node.mode & need)


def _node(chance: random.Random, number: int, *, is_folder: bool) -> Node:
    acl = []
    if chance.random() < 0.4:
        users = chance.sample(USERS, chance.randint(0, 2))
        groups = chance.sample(GROUPS[1:], chance.randint(0, 2))
        acl = [AclEntry("user", one, chance.randint(0, 7)) for one in users]
        acl += [AclEntry("group", one, chance.randint(0, 7)) for one in ("", *groups)]
    mode = chance.choice([0o700, 0o711, 0o750, 0o755, 0o705, 0o770, 0o777, 0o701, 0o644, 0o640, 0o604])
    return Node(f"t/{number}", is_folder, mode | 0o600, "ann", chance.choice(GROUPS[:2]), tuple(acl))


@pytest.mark.parametrize("seed", range(3))
def test_whoever_some_part_of_a_table_keeps_out_is_kept_out_of_its_indexes(seed: int) -> None:
    chance, let_in = random.Random(seed), 0
    for _ in range(4_000):
        table = _node(chance, 0, is_folder=True)
        others = [_node(chance, one, is_folder=chance.random() < 0.5) for one in range(1, chance.randint(1, 3))]
        shut = closed_classes(table, others)
        made = replace(table, mode=closed(table.mode, shut), acl=() if GROUP in shut else table.acl)
        for name in (*USERS[1:], "dan"):
            person = Person(name, frozenset(chance.sample(GROUPS, chance.randint(0, 3))))
            if not person.may(ENTER, made):
                continue
            let_in += 1
            assert person.may(ENTER, table), (person, table)
            for one in others:
                assert person.may(ENTER if one.is_folder else READ, one), (person, table, one)
    assert let_in > 1_000


@pytest.mark.parametrize("seed", range(3))
def test_a_folder_whose_group_cannot_be_set_lets_nobody_in_who_was_kept_out(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(4_000):
        table = _node(chance, 0, is_folder=True)
        shut = closed_classes(table, ())
        mode = without_group(closed(table.mode, shut), had_acl=bool(table.acl))
        made = replace(table, mode=mode, group="of the maker", acl=())
        person = Person("dan", frozenset(chance.sample((*GROUPS, "of the maker"), chance.randint(0, 4))))
        assert not person.may(ENTER, made) or person.may(ENTER, table), (person, table, made)


def test_a_table_of_one_file_is_a_folder_that_its_readers_enter() -> None:
    file = Node("t", False, 0o640, "ann", "g", ())
    assert folder_of_file(file).mode == 0o750
    assert folder_of_file(replace(file, acl=(AclEntry("user", "bob", 4),))).mode & 0o077 == 0


class Counted:
    """A tree in memory."""

    def __init__(self, nodes: dict[str, Sequence[Node]]) -> None:
        self.nodes = nodes
        self.listings = 0

    def listing(self, folder: str, most: int) -> Sequence[Node]:
        self.listings += 1
        return self.nodes.get(folder, ())

    def with_acl(self, node: Node) -> Node:
        return replace(node, acl=())


def _partitions(counts: Sequence[int], folder: str = "t") -> Iterator[tuple[str, list[Node]]]:
    if not counts:
        yield folder, [Node(f"{folder}/{one}.parquet", False, 0o644, "ann", "g", None) for one in range(3)]
        return
    below = [Node(f"{folder}/{len(counts)}={one:05}", True, 0o755, "ann", "g", None) for one in range(counts[0])]
    yield folder, below
    for one in below:
        yield from _partitions(counts[1:], one.path)


TOP = Node("t", True, 0o755, "ann", "g", ())


@pytest.mark.parametrize("counts", [(), (50,), (5_000,), (10, 12, 31), (3, 3, 3, 3, 3, 3, 3)])
def test_the_files_of_a_table_are_reached_with_few_listings(counts: tuple[int, ...]) -> None:
    tree = Counted(dict(_partitions(counts)))
    seen = list(nodes_below(tree, TOP))
    assert any(not one.is_folder for one in seen)
    assert tree.listings <= LISTINGS
    if len(tree.nodes) <= LISTINGS // 2:
        assert tree.listings == len(tree.nodes)
    assert {one.path for one in tree.nodes["t"]} <= {one.path for one in seen}


def test_nothing_more_is_listed_once_nobody_is_let_in() -> None:
    tree = Counted(dict(_partitions((50,))))
    tree.nodes["t"] = [replace(one, mode=0o700) for one in tree.nodes["t"]]
    assert closed_classes(TOP, nodes_below(tree, TOP)) == BOTH
    assert tree.listings == 1
    assert closed_classes(replace(TOP, mode=0o700), nodes_below(tree, TOP)) == BOTH
    assert tree.listings == 1


def test_one_closed_partition_among_many_closes_the_indexes() -> None:
    tree = Counted(dict(_partitions((2_000,))))
    tree.nodes["t"] = [replace(one, mode=0o700) if "01234" in one.path else one for one in tree.nodes["t"]]
    assert closed_classes(TOP, nodes_below(tree, TOP)) == BOTH


def test_hidden_files_say_nothing_about_a_table() -> None:
    hidden = [Node(f"t/{name}", False, 0o600, "ann", "g", ()) for name in ("_SUCCESS", ".part.crc")]
    trash = Node("t/.Trash", True, 0o700, "ann", "g", ())
    assert closed_classes(TOP, nodes_below(Counted({"t": [*hidden, trash]}), TOP)) == frozenset()


def _closed(name: str, *, is_folder: bool) -> Node:
    return Node(f"t/{name}", is_folder, 0o700 if is_folder else 0o600, "ann", "g", ())


@pytest.mark.parametrize("name", ["_tmp", "_temporary", "_x", ".Trash"])
def test_a_closed_folder_that_no_reader_enters_says_nothing_about_a_table(name: str) -> None:
    tree = Counted({"t": [_closed(name, is_folder=True)], f"t/{name}": [_closed(f"{name}/x", is_folder=False)]})
    assert closed_classes(TOP, nodes_below(tree, TOP)) == frozenset()
    assert tree.listings == 1


@pytest.mark.parametrize(
    "name", ["_delta_log", "_delta_index", "_change_data", "_spark_metadata", ".hoodie", "metadata", "_a=1", "a=1", "x"]
)
def test_a_closed_folder_that_readers_need_closes_the_indexes(name: str) -> None:
    tree = Counted({"t": [_closed(name, is_folder=True)]})
    assert closed_classes(TOP, nodes_below(tree, TOP)) == BOTH


@pytest.mark.parametrize("log", [".hoodie", "metadata"])
def test_a_hidden_folder_of_a_table_whose_log_may_name_it_closes_the_indexes(log: str) -> None:
    """A Hudi table names partitions by their values, and an Iceberg table its files by their paths."""
    opened = Node(f"t/{log}", True, 0o755, "ann", "g", ())
    year = Node("t/2024", True, 0o755, "ann", "g", ())
    tree = Counted({"t": [opened, year], "t/2024": [_closed("2024/_x", is_folder=True)]})
    assert closed_classes(TOP, nodes_below(tree, TOP)) == BOTH


@pytest.mark.parametrize("name", ["a.parquet", "README", "_a=1.parquet"])
def test_a_closed_file_that_may_be_data_closes_the_indexes(name: str) -> None:
    tree = Counted({"t": [_closed(name, is_folder=False)]})
    assert closed_classes(TOP, (replace(one, is_folder=False) for one in nodes_below(tree, TOP))) == BOTH


def test_a_node_without_the_sticky_bit_that_is_allowed_lets_its_writers_do_more() -> None:
    allowed = replace(TOP, mode=0o1777)
    assert excess(replace(TOP, mode=0o777), allowed) == BOTH
    assert excess(replace(TOP, mode=0o775), allowed) == {GROUP}
    assert excess(replace(TOP, mode=0o755), allowed) == frozenset()
    assert excess(allowed, allowed) == frozenset()
    assert excess(allowed, replace(TOP, mode=0o777)) == frozenset()


@pytest.mark.parametrize(("count", "most"), [(0, 3), (3, 3), (10, 3), (1000, 64), (65, 64), (5, 1)])
def test_what_is_spread_has_both_ends(count: int, most: int) -> None:
    found = spread(range(count), most)
    assert len(found) == min(count, most) == len(set(found))
    if count:
        assert found[-1] == count - 1
        assert most == 1 or found[0] == 0


def test_a_member_of_a_foreign_group_of_a_partition_is_no_member_of_the_tables() -> None:
    partition = Node("t/day=1", True, 0o750, "ann", "payroll", ())
    assert closed_classes(replace(TOP, mode=0o750), [partition]) == BOTH
    assert closed_classes(TOP, [partition]) == BOTH
    assert closed_classes(TOP, [replace(partition, mode=0o755)]) == frozenset()
    assert closed_classes(TOP, [replace(partition, group="g")]) == {OTHER}
