"""Processes that race on one log, on real stores, with faults: every transaction is in the log exactly once.

`make bench NAME=commit` does the same with 8 processes and 200 commits each.
"""

import pytest

from testbed.proxy import SOME_OF_EACH, FaultProxy, Step
from testbed.racing import race
from testbed.recipes import StoreRecipe


@pytest.fixture(params=["local_recipe", "s3_recipe", "hdfs_recipe"])
def recipe(request: pytest.FixtureRequest) -> StoreRecipe:
    found: StoreRecipe = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("fault_rate", [0.0, 0.15])
def test_every_transaction_is_in_the_log_exactly_once(recipe: StoreRecipe, fault_rate: float) -> None:
    outcome = race(recipe, processes=4, commits=12, fault_rate=fault_rate, in_step=True)
    assert (outcome.twice, outcome.missing) == ([], [])
    assert outcome.entries == 1 + 4 * 12
    assert outcome.attempts > outcome.entries, "nobody ever lost a race: this tested nothing"


@pytest.mark.soak
@pytest.mark.parametrize("fault_rate", [0.0, 0.15, 0.4])
def test_every_transaction_of_eight_times_two_hundred_is_in_the_log_exactly_once(
    recipe: StoreRecipe, fault_rate: float
) -> None:
    outcome = race(recipe, processes=8, commits=200, fault_rate=fault_rate)
    assert (outcome.twice, outcome.missing) == ([], [])
    assert outcome.entries == 1 + 8 * 200


def test_faults_of_the_network_neither_lose_nor_double_a_commit(
    proxied_s3_recipe: StoreRecipe, proxy: FaultProxy
) -> None:
    """503s, resets, lost replies and false conflicts between the client's own retries and a real server."""
    surely = [
        Step(fault, "GET" if fault == "cut short" else "PUT IF ABSENT") for fault in (*SOME_OF_EACH, "slow reply")
    ]
    proxy.plan(surely, seed=7, rates={**SOME_OF_EACH, "slow reply": 0.01}, slow=3.0)
    outcome = race(proxied_s3_recipe, processes=4, commits=12, in_step=True)
    assert (outcome.twice, outcome.missing) == ([], [])
    assert outcome.entries == 1 + 4 * 12
    met = {seen.fault for seen in proxy.seen() if seen.fault}
    assert met == {*SOME_OF_EACH, "slow reply"}, "a fault that never happened tested nothing"
