"""`grebe completion SHELL`: what the shell needs to complete verbs, options and values."""

import click
from click.shell_completion import get_completion_class

from grebe.cli.output import Json, Output
from grebe.cli.verb import Verb

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_GREBE_COMPLETE"


@click.command("completion", cls=Verb)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, /, shell: str) -> None:
    """Print the script that completes `grebe` in SHELL. In bash: eval "$(grebe completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    output: Output = context.obj
    script = kind(context.find_root().command, {}, "grebe", _VARIABLE).source()
    if isinstance(output, Json):
        output.one({"shell": shell, "script": script})
    else:
        output.note(script)
