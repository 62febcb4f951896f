"""The entry point of the command line and the list of its verbs."""

import click

from grebe.cli.verb import Verbs

# Verb: the module that holds it, and what it does in a few words.
VERBS = {
    "demo": ("grebe.cli.demo", "See it work: a table, two racing writers, and the history."),
    "list": ("grebe.cli.tables", "The indexes of a table: what each covers, and what is under way."),
    "show": ("grebe.cli.indexes", "One index: its columns, layout, size and freshness."),
    "history": ("grebe.cli.tables", "What happened to a table and its indexes, commit by commit."),
    "get": ("grebe.cli.lookups", "The rows in which a column has a value."),
    "files": ("grebe.cli.lookups", "The files, and the rows of them, that can match a predicate."),
    "within": ("grebe.cli.places", "The rows that lie in a box."),
    "nearest": ("grebe.cli.places", "The rows nearest to a point."),
    "find": ("grebe.cli.lookups", "Where in the lake a value occurs: table, column, file, row."),
    "explain": (
        "grebe.cli.explaining",
        "What a query uses of which index, and what that saves; in a Spark of its own.",
    ),
    "why-not": ("grebe.cli.explaining", "Why a query does not use an index, and what to do about it."),
    "what-if": ("grebe.cli.explaining", "What a query would save by an index that does not exist."),
    "recommend": ("grebe.cli.advising", "The indexes that would help a workload most."),
    "organise": ("grebe.cli.advising", "Lay a table's rows out as its recorded queries ask for them."),
    "auto": ("grebe.cli.advising", "Let a table look after its indexes by itself, within a budget."),
    "verify": ("grebe.cli.checking", "Whether the files of a table's indexes are as they were written."),
    "repair": ("grebe.cli.checking", "Mend what verify finds, in a Spark of its own."),
    "workload": ("grebe.cli.workload", "The recorded queries on a table: shapes, times, and what was read."),
    "predictions": ("grebe.cli.workload", "What was predicted of indexes and queries, beside what was measured."),
    "create": ("grebe.cli.making", "Create an index, in a Spark of its own."),
    "refresh": ("grebe.cli.making", "Bring indexes up to the table as it is now."),
    "watch": ("grebe.cli.watch", "Refresh at intervals, until Ctrl-C."),
    "optimize": ("grebe.cli.making", "Merge the runs that refreshes have added to indexes."),
    "delete": ("grebe.cli.indexes", "Take an index out of use; its bytes stay."),
    "restore": ("grebe.cli.indexes", "Put a deleted index back to use."),
    "vacuum": ("grebe.cli.indexes", "Remove deleted indexes for good, and bytes out of use."),
    "cancel": ("grebe.cli.indexes", "End an operation that died or is to be given up."),
    "completion": ("grebe.cli.completion", "The script that completes verbs and options in bash, zsh or fish."),
    "doctor": ("grebe.cli.doctor", "Check Python, Java, Spark and a store: what works and what to do."),
}


@click.command(
    cls=Verbs,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed, 2 wrong use, 130 cancelled by Ctrl-C.",
)
@click.version_option(package_name="grebe", prog_name="grebe", message="%(prog)s %(version)s")
def main(as_json: bool, verbose: int) -> None:
    """Indexes for data lakes."""
