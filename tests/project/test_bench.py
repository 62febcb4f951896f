"""The runner of the benchmarks: turns, medians, ratios, and what it writes."""

import json
import math
import os
from pathlib import Path

import pytest

from bench.__main__ import main, names
from bench.harness import Report, Scale, in_fresh_process, medians, ratio_interval, samples, timed


def test_contestants_take_turns_and_another_one_starts_each_round() -> None:
    order: list[str] = []

    def contestant(name: str) -> float:
        order.append(name)
        return 1.0

    medians({"a": lambda: contestant("a"), "b": lambda: contestant("b")}, runs=2, warm_up=0)
    assert order == ["a", "b", "b", "a"]


def test_the_median_leaves_out_the_warm_up() -> None:
    costs = iter([100.0, 3.0, 1.0, 2.0])
    assert medians({"a": lambda: next(costs)}, runs=3) == {"a": 2.0}


def test_samples_are_kept_in_the_order_of_their_rounds() -> None:
    costs = iter([100.0, 3.0, 1.0, 2.0])
    assert samples({"a": lambda: next(costs)}, runs=3) == {"a": [3.0, 1.0, 2.0]}


def test_the_interval_of_a_ratio_holds_it_and_shrinks_with_the_noise() -> None:
    quiet = ratio_interval([1.1, 1.1, 1.1], [1.0, 1.0, 1.0])
    assert quiet == pytest.approx((1.1, 1.1))
    low, high = ratio_interval([1.0, 2.0, 1.2, 0.9, 1.1], [1.0, 1.1, 0.9, 1.3, 1.0])
    assert low < 1.1 < high


def test_only_what_is_slower_beyond_doubt_is_called_slower(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report("x")
    assert report.add("q1", "s", 1.2, "no index", 1.0, interval=(1.06, 1.3)).slower
    assert "[1.060, 1.300] SLOWER" in capsys.readouterr().out
    assert not report.add("q2", "s", 1.2, "no index", 1.0, interval=(1.04, 1.3)).slower
    assert not report.add("q3", "s", 1.2, "no index", 1.0).slower


def test_preparation_is_off_the_clock() -> None:
    done: list[str] = []
    cost = timed(lambda: done.append("work"), before=lambda: done.append("before"))()
    assert done == ["before", "work"]
    assert cost >= 0


def test_a_ratio_is_ours_over_the_rivals() -> None:
    report = Report("x")
    assert report.add("commit", "s", 1.0, "deltalake", 4.0, runs=5).ratio == 0.25
    assert report.add("alone", "s", 1.0).ratio is None


def test_a_rival_without_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match="a rival comes with its value"):
        Report("x").add("commit", "s", 1.0, "deltalake")


def test_results_are_written_as_an_array_of_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report("commit")
    report.add("alone", "s", 1.0, "deltalake", 4.0, runs=5)
    report.add("often", "s", 1.0, "deltalake", 4.0, interval=(0.2, 0.3))
    report.write(tmp_path / "results.json")
    assert json.loads((tmp_path / "results.json").read_text()) == [
        {
            "bench": "commit",
            "case": "alone",
            "unit": "s",
            "ours": 1.0,
            "rival": "deltalake",
            "rival_value": 4.0,
            "ratio": 0.25,
            "runs": 5,
        },
        {
            "bench": "commit",
            "case": "often",
            "unit": "s",
            "ours": 1.0,
            "rival": "deltalake",
            "rival_value": 4.0,
            "ratio": 0.25,
            "runs": 1,
            "interval": [0.2, 0.3],
        },
    ]
    assert "alone" in capsys.readouterr().out


def test_work_in_a_fresh_process_tells_its_memory_and_not_ours() -> None:
    mine = b"x" * 300_000_000
    fresh = in_fresh_process(os.getpid)
    assert fresh.value != os.getpid()
    assert 1_000_000 < fresh.peak_bytes < len(mine)


def test_every_benchmark_can_be_named_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert "imports" in names()
    assert not {"harness", "__main__"} & set(names())
    with pytest.raises(SystemExit) as left:
        main(["nonsense"])
    assert left.value.code == 2
    assert "imports" in capsys.readouterr().err


def test_only_parts_that_a_benchmark_has_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for name, said in (
        ("imports", "parts of imports: none"),
        ("needle", "parts of needle: lance, "),
        ("refresh", "parts of refresh: covering, "),
    ):
        with pytest.raises(SystemExit) as left:
            main([name, "--part", "nonsense"])
        assert left.value.code == 2
        assert said in capsys.readouterr().err


def test_imports_runs_to_its_end(tmp_path: Path) -> None:
    main(["imports", "--json", str(tmp_path / "imports.json")])
    results = json.loads((tmp_path / "imports.json").read_text())
    assert all(math.isfinite(result["ratio"]) for result in results)


def test_a_scale_picks_the_amount_of_work() -> None:
    assert Scale("small").pick(1, 2) == 1
    assert Scale("full").pick(1, 2) == 2
