"""What all verbs share: `--json` and `-v` before or after the verb, negative numbers as values, errors without a traceback."""

import contextlib
import errno
import importlib
import logging
import os
import re
import sys
import traceback
from typing import IO, Any

import click

from grebe.cli.output import Json, Text
from grebe.errors import GrebeError

_OUTPUT_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NEGATIVE_NUMBER = re.compile(r"-((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|Infinity)")

json_option = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, for programs.")
verbose_option = click.Option(["-v", "--verbose"], count=True, help="Say more; twice: tracebacks too.")


class Failed(click.ClickException):
    """Ends the program with code 1 and one line on stderr."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"error: {self.message}", file=file, err=True)


class Cancelled(Failed):
    """Ends the program as a shell expects it after Ctrl-C."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("cancelled by the user")


class Verb(click.Command):
    """A verb; its function gets the `Output` as the context's object."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params += [json_option, verbose_option]

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """As click does, but `-1` is a value and no option."""
        before_dashes = args[: args.index("--")] if "--" in args else list(args)
        # Click reads `-1` as an unknown option; letting these through lets mistyped ones through as well, so look again.
        context.ignore_unknown_options = any(map(_NEGATIVE_NUMBER.fullmatch, before_dashes))
        rest = super().parse_args(context, args)
        if context.ignore_unknown_options:
            taken = {
                value for p in self.params if isinstance(p, click.Argument) for value in _texts(context.params[p.name])
            }
            for text in before_dashes:
                if text in taken and text.startswith("-") and len(text) > 1 and not _NEGATIVE_NUMBER.fullmatch(text):
                    raise click.NoSuchOption(text, ctx=context)
        return rest

    def invoke(self, context: click.Context) -> Any:
        above = context.parent.params if context.parent else {}
        as_json = bool(context.params.pop("as_json") or above.get("as_json"))
        verbose = context.params.pop("verbose") + above.get("verbose", 0)
        context.obj = Json() if as_json else Text()
        if verbose:
            logging.basicConfig(level=logging.DEBUG if verbose > 1 else logging.INFO)
        try:
            return super().invoke(context)
        except GrebeError as error:
            _show_traceback(verbose)
            hint = " (-vv shows it)" if error.code == GrebeError("", detail="SPARK").code and verbose < 2 else ""
            raise Failed(f"{error}{hint}") from error
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:  # the last place to meet a fault of ours: people get a line, `-vv` the traceback
            if _is_of_output(error):
                raise
            _show_traceback(verbose)
            name = type(error).__name__
            raise Failed(
                f"[UNEXPECTED] {name}: a fault in Grebe. Run it again with -vv and report what it says."
            ) from error


class Verbs(click.Group):
    """Verbs by name, each in a module of its own that is loaded when the verb is used: `--help` stays quick."""

    def __init__(self, *arguments: Any, verbs: dict[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.verbs = verbs
        self.params += [json_option, verbose_option]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise Cancelled from interrupt

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Say in one line that the output got lost, wherever that shows: what is printed may wait until the end."""
        code: Any = 1
        try:
            try:
                return super().main(*arguments, **settings)
            except SystemExit as ended:
                code = ended.code or 1
                sys.stdout.flush()
                raise
        except OSError as problem:
            if not _is_of_output(problem):
                raise
            why = problem.strerror
        with contextlib.suppress(OSError, ValueError):  # or Python tries once more at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        Failed(
            f"the output cannot be written ({why}); what was asked for may have been carried out all the same"
        ).show()
        raise SystemExit(code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.verbs:
            return None
        module, _ = self.verbs[cmd_name]
        try:
            home = importlib.import_module(module)
        except ModuleNotFoundError as missing:
            raise Failed(f"the package {missing.name} is not installed: pip install grebe brings it") from missing
        commands = (
            found for found in vars(home).values() if isinstance(found, click.Command) and found.name == cmd_name
        )
        return next(commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, says) for name, (_, says) in self.verbs.items()])


def _is_of_output(error: Exception) -> bool:
    """Tell whether what was printed does not get out. What goes wrong with a file names the file, or is an error of ours."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _OUTPUT_LOST


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)


def _show_traceback(verbose: int) -> None:
    if verbose > 1:
        traceback.print_exc(file=sys.stderr)
