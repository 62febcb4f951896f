"""What a sieve may be asked to be."""

import pytest

import grebe
from grebe.errors import InvalidIndex


@pytest.mark.parametrize("budget", [0, -0.1, 1.5, float("nan")])
def test_a_budget_is_a_share_of_the_bytes(budget: float) -> None:
    with pytest.raises(
        InvalidIndex, match=f"index i: budget is a share .* above 0 and at most 1, not {budget}"
    ) as refused:
        grebe.Sieve("i", on="a", budget=budget)
    assert refused.value.code == "INVALID_INDEX_BUDGET"


def test_a_budget_is_a_number() -> None:
    with pytest.raises(InvalidIndex, match="index i: budget is a number, not 'much'") as refused:
        grebe.Sieve("i", on="a", budget="much")  # type: ignore[arg-type]  # wrong on purpose
    assert refused.value.code == "INVALID_INDEX_BUDGET"
