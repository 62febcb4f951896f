"""The entry point of the command line and the list of its verbs."""

import click

from grebe.cli.verb import Verbs

# Verb: the module that holds it, and what it does in a few words.
VERBS = {
    "demo": ("grebe.cli.demo", "See it work: a table, two racing writers, and the history."),
    "list": ("grebe.cli.tables", "The indexes of a table: what each covers, and what is under way."),
    "history": ("grebe.cli.tables", "What happened to a table and its indexes, commit by commit."),
    "doctor": ("grebe.cli.doctor", "Check Python, Java, Spark and a store: what works and what to do."),
}


@click.command(
    cls=Verbs,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed, 2 wrong use.",
)
@click.version_option(package_name="grebe", prog_name="grebe", message="%(prog)s %(version)s")
def main(as_json: bool, verbose: int) -> None:
    """Indexes for data lakes."""
