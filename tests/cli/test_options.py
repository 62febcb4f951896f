"""Every option of every verb, given on a command line: one that is added to a verb and to no line here fails."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner

from grebe.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ALL = "--json -v"
CSV = "T --format csv --location ELSEWHERE"
DELTA = "D --format delta --location ELSEWHERE_D -o timeout=30s"
PLACED = "D --format delta --location ELSEWHERE_D --read mergeSchema=false"
SPARK = "--master local[1] --conf spark.ui.enabled=false"
READ = "--read header=true --read inferSchema=true --master local[1] --conf spark.ui.enabled=false"
NUMBERS = "'SELECT id FROM delta.`D`' --master local[1] --conf spark.ui.enabled=false"
QUERY = "'SELECT _c0 FROM csv.`T`' --master local[1] --conf spark.ui.enabled=false"

LINES = f"""
create {CSV} by_id {READ} --kind covering --on id --include price --buckets 2 --lineage --where 'id > 1' --replace {ALL}
create {CSV} sk {READ} --kind skipping --sketches 'min_max(id)' {ALL}
create {CSV} learned {READ} --kind sieve --on id --budget 0.02 {ALL}
create {CSV} placed {READ} --kind spatial --x id --y price {ALL}
create {CSV} boxed {READ} --kind spatial --x id --y price --x-max id2 --y-max price2 {ALL}
create {CSV} curved {READ} --kind zorder --on id,price --curve z {ALL}
create {CSV} learned_from {READ} --kind layout --queries 'price > 1 AND id IN (1, 2); id = 3' {ALL}
create T --format csv sums --kind view --query 'SELECT _c0, count(*) AS n FROM csv.`T` GROUP BY _c0' {ALL}
refresh {CSV} by_id {READ} --mode full {ALL}
optimize {CSV} by_id {READ} --mode full {ALL}
watch {CSV} by_id {READ} --every 0.01 --times 1 --mode quick {ALL}
verify {CSV} {READ} --deep --spark -o timeout=30s {ALL}
repair {CSV} {READ} --deep {ALL}
explain {QUERY} --plans --html PAGE {ALL}
why-not {QUERY} --index by_id {ALL}
what-if {QUERY} --name later --kind covering --on _c0 --include _c1 --buckets 2 --lineage --where '_c0 IS NULL' {ALL}
what-if {QUERY} --kind skipping --sketches 'min_max(_c0)' {ALL}
what-if {QUERY} --kind sieve --on _c0 --budget 0.02 {ALL}
what-if {NUMBERS} --kind spatial --x id --y y --x-max id2 --y-max y2 {ALL}
what-if {QUERY} --kind zorder --on _c0,_c1 --curve z {ALL}
what-if {NUMBERS} --kind layout --queries 'id > 1' {ALL}
what-if {QUERY} --kind view --query 'SELECT _c0, count(*) AS n FROM csv.`T` GROUP BY _c0' {ALL}
recommend --queries QUERIES --budget 20% --most 3 --build-seconds 60 --objective space --master local[1] --conf a.b=c {ALL}
recommend --events EVENTS {ALL}
show {CSV} by_id -o timeout=30s {ALL}
history {CSV} --limit 2 -o timeout=30s {ALL}
workload {CSV} -o timeout=30s --limit 3 {ALL}
workload {CSV} --queries {ALL}
workload {CSV} --columns {ALL}
predictions {CSV} -o timeout=30s --svg PAGE {ALL}
workload {CSV} --clear {ALL}
delete {CSV} by_id -o timeout=30s {ALL}
restore {CSV} by_id -o timeout=30s {ALL}
cancel {CSV} by_id -o timeout=30s {ALL}
vacuum {CSV} by_id --dry-run -o timeout=30s {ALL}
vacuum {CSV} by_id -o timeout=30s {ALL}
list {DELTA} --version 0 {ALL}
list {DELTA} --timestamp 2099-01-01 {ALL}
get {DELTA} id --version 0 --columns id --null {ALL}
get {DELTA} id 1 --timestamp 2099-01-01 {ALL}
files {DELTA} 'id = 1' --version 0 {ALL}
files {DELTA} 'id = 1' --timestamp 2099-01-01 {ALL}
organise {PLACED} --budget 1GB --name laid --share 0.5 --dry-run {SPARK} {ALL}
organise {PLACED} --in-place --yes {SPARK} {ALL}
auto {PLACED} --budget 20% --yes {SPARK} {ALL}
within {DELTA} 0 0 1 1 --version 0 --columns id --on id,y {ALL}
within {DELTA} -1 -1 1 1 --timestamp 2099-01-01 --on id,y {ALL}
nearest {DELTA} 0 -1 -k 2 --version 0 --columns id --on id,y {ALL}
nearest {DELTA} 0 -1 --timestamp 2099-01-01 --on id,y {ALL}
find 1 -t D --columns id -o timeout=30s {ALL}
completion bash {ALL}
doctor FOLDER {ALL}
"""


def test_every_option_is_taken(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREBE_RECORD_WORKLOAD", "true")
    from deltalake import write_deltalake

    places = {
        name: str(tmp_path / name.lower())
        for name in ("T", "D", "ELSEWHERE", "ELSEWHERE_D", "FOLDER", "PAGE", "QUERIES", "EVENTS")
    }
    for name in ("T", "FOLDER"):
        Path(places[name]).mkdir()
    (Path(places["T"]) / "a.csv").write_text("id,price,id2,price2\n1,0.5,1,1\n2,1.5,2,2\n3,,3,\n", encoding="utf-8")
    scan = {"Location": f"[file:{places['D']}]", "ReadSchema": "struct<id:bigint>", "DataFilters": "[(id#1L = 2)]"}
    plan = {"nodeName": "Scan parquet ", "metadata": scan}
    event = {"Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart", "sparkPlanInfo": plan}
    Path(places["EVENTS"]).write_text(json.dumps(event), encoding="utf-8")
    Path(places["QUERIES"]).write_text(f"SELECT id FROM delta.`{places['D']}` WHERE id = 1; SELECT 1", encoding="utf-8")
    write_deltalake(places["D"], pa.table({name: [1, None] for name in ("id", "y", "id2", "y2")}))
    untold = {(verb, option) for verb, options in _options().items() for option in options}
    for line in LINES.strip().splitlines():
        words = [_placed(word, places) for word in _words(line)]
        ran = CliRunner().invoke(main, words)
        assert ran.exit_code == 0, f"{line}: {ran.output}"
        json.loads(ran.stdout)
        untold -= {(words[0], word) for word in words}
    assert untold == set()


def _options() -> dict[str, set[str]]:
    """Of each verb but the demo, which has a test of its own, every option by the one of its names that is used here."""
    context = click.Context(main)
    found = {}
    for verb in set(main.list_commands(context)) - {"demo"}:
        command = main.get_command(context, verb)
        assert command is not None
        found[verb] = {_name(option) for option in command.params if isinstance(option, click.Option)}
    return found


def _name(option: click.Option) -> str:
    return next((name for name in option.opts if name in ("-v", "-o", "-t")), option.opts[-1])


def _words(line: str) -> list[str]:
    return [quoted or plain for plain, quoted in re.findall(r"([^\s']+)|'([^']*)'", line)]


def _placed(word: str, places: dict[str, str]) -> str:
    for name in ("T", "D"):
        word = word.replace(f"`{name}`", f"`{places[name]}`")
    return places.get(word, word)
