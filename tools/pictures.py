"""The pictures of the documentation that are drawn by Grebe itself: `python tools/pictures.py` writes them anew."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa

from grebe.advisor.organise.drawing import drawn
from grebe.advisor.organise.regret import regret_of
from grebe.indexes.layout.learn import learn
from grebe.indexes.layout.workload import Query
from grebe.predicate.bind import bind
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse

ASSETS = Path(__file__).parents[1] / "docs" / "assets"


def main() -> None:
    chance = np.random.default_rng(7)
    sample = pa.table({name: chance.normal(0, 1, 20_000) for name in ("lon", "lat")})
    before, after = _asked(sample, (-0.6, -0.4)), _asked(sample, (0.7, 0.5))
    trees = [learn(sample, queries, 200) for queries in (before, after)]
    titles = ("before: learned from last month's queries", "after: learned from this month's")
    drawings = [drawn(tree, sample, after, ("lon", "lat"), title) for tree, title in zip(trees, titles, strict=True)]
    (ASSETS / "layout.svg").write_text(_beside(drawings), encoding="utf-8")
    lost = np.concatenate([np.full(40, 0.01), np.full(60, 0.12)])
    regret = regret_of([(moment, 1.0) for moment in range(100)], lost, read_seconds=2.0, price=6.0)
    (ASSETS / "regret.svg").write_text(_grey(regret.picture()), encoding="utf-8")


def _asked(sample: pa.Table, centre: tuple[float, float]) -> list[Query]:
    chance = random.Random(3)
    texts = []
    for _ in range(80):
        x, y = (middle + chance.gauss(0, 0.3) for middle in centre)
        texts.append(f"lon BETWEEN {x - 0.08} AND {x + 0.08} AND lat BETWEEN {y - 0.15} AND {y + 0.15}")
    return [Query(normalise(bind(parse(text), sample.schema))) for text in texts]


def _beside(drawings: list[str]) -> str:
    wide, tall = 366, 344
    inner = "".join(f'<g transform="translate({number * wide},0)">{one}</g>' for number, one in enumerate(drawings))
    size = f'width="{wide * len(drawings)}" height="{tall}"'
    return _grey(f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{inner}</svg>')


def _grey(svg: str) -> str:
    """A picture by itself has no colour of text around it."""
    return svg.replace("currentColor", "#777")


if __name__ == "__main__":
    main()
