"""Old entries are removed while others read and write, with a fault at any call: nobody notices but by a shorter history."""

import pytest

from grebe.log import names
from tests.log.simulation import all_faults, verdict
from tests.log.simulation_removal import schedule_with_removal


def test_old_entries_are_removed_in_the_schedules() -> None:
    world = schedule_with_removal(2)
    assert verdict(world) == []
    there = [names.entry_number(one.path) for one in world.store.peek()]
    assert names.entry_path(0) in world.store.entries
    assert min(number for number in there if number is not None) == 5


@pytest.mark.parametrize("seed", range(12))
def test_no_interleaving_loses_or_forks_anything(seed: int) -> None:
    assert verdict(schedule_with_removal(seed)) == []
    assert verdict(schedule_with_removal(seed, fault_rate=0.05)) == []


@pytest.mark.parametrize("seed", [3, 4])
def test_no_single_fault_loses_or_forks_anything(seed: int) -> None:
    for fault in all_faults(schedule_with_removal(seed))[:: 7 + seed]:
        assert verdict(schedule_with_removal(seed, fault)) == [], fault


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20, 60))
def test_no_fault_at_any_call_loses_or_forks_anything(seed: int) -> None:
    for fault in all_faults(schedule_with_removal(seed)):
        assert verdict(schedule_with_removal(seed, fault)) == [], fault
