"""The verbs on one index that need only the log, and no Spark: show, delete, restore, vacuum, cancel."""

from dataclasses import asdict
from typing import Any

import click

from grebe.cli.output import Output
from grebe.cli.tables import opened, pairs, table_argument
from grebe.cli.verb import Verb
from grebe.config import Config
from grebe.files import canonical_uri
from grebe.log.commit import Log
from grebe.log.describe import NOT_SHOWN
from grebe.maintenance.cancel import cancel as cancel_operations
from grebe.maintenance.delete import delete as delete_index
from grebe.maintenance.delete import restore as restore_index
from grebe.maintenance.logs import Place
from grebe.maintenance.vacuum import retention_of
from grebe.maintenance.vacuum import vacuum as vacuum_indexes
from grebe.store.opening import open_store


@click.command("show", cls=Verb)
@table_argument
@click.argument("name")
@click.pass_obj
def show(output: Output, /, name: str, **asked: Any) -> None:
    """The index NAME of TABLE: its columns, layout, size, and how much of the table it covers."""
    info = opened(**asked).index(name)
    properties = {key: value for key, value in info.properties.items() if key not in NOT_SHOWN}
    output.one({**asdict(info), "properties": properties})


@click.command("delete", cls=Verb)
@table_argument
@click.argument("name")
@click.pass_obj
def delete(output: Output, /, name: str, **asked: Any) -> None:
    """Take the index NAME of TABLE out of use, at once. Its bytes stay, so that it can be restored."""
    config = Config.load({})
    delete_index(_log(config, **asked), name, config.heartbeat_seconds)
    output.one({"name": name, "state": "DELETED"})


@click.command("restore", cls=Verb)
@table_argument
@click.argument("name")
@click.pass_obj
def restore(output: Output, /, name: str, **asked: Any) -> None:
    """Put the deleted index NAME of TABLE back to use."""
    config = Config.load({})
    restore_index(_log(config, **asked), name, config.heartbeat_seconds)
    output.one({"name": name, "state": "ACTIVE"})


@click.command("vacuum", cls=Verb)
@table_argument
@click.argument("name", required=False)
@click.option("--dry-run", is_flag=True, help="Only list what would go.")
@click.pass_obj
def vacuum(output: Output, /, name: str | None, dry_run: bool, **asked: Any) -> None:
    """Remove deleted indexes of TABLE (or just NAME) for good, and bytes that nobody can still be reading.

    A reader may use what it knew for `vacuum_retention_seconds`, a day unless set otherwise; younger bytes wait."""
    config = Config.load({})
    limits = retention_of(config)
    found = vacuum_indexes(_log(config, **asked), name, limits, config.heartbeat_seconds, dry_run=dry_run)
    output.one(asdict(found))


@click.command("cancel", cls=Verb)
@table_argument
@click.argument("name")
@click.pass_obj
def cancel(output: Output, /, name: str, **asked: Any) -> None:
    """End operations on the index NAME of TABLE that died or are to be given up."""
    ended = cancel_operations(_log(Config.load({}), **asked), name)
    output.one({"name": name, "ended": [str(operation.verb) for operation in ended]})


def _log(config: Config, table: str, format_name: str | None, location: str | None, options: tuple[str, ...]) -> Log:
    """By the path alone: an index can be deleted though the table cannot be read."""
    settings = pairs(options)
    place = Place(canonical_uri(table), location, config.location, lambda uri: open_store(uri, settings))
    return place.existing()
