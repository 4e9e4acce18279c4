"""The ``mpskit`` command: one module a subcommand, imported only when it is called."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn

import click

from mpskit import __version__
from mpskit.errors import MpskitError

# Name and one-line help stand here, so that `mpskit --help` imports neither torch nor git.
COMMANDS = {
    "demo": "Run the whole job on a small checkout: apply, compile, test, draft the PR.",
    "list": "List the patches of the patch set and what each one changes.",
    "new": "Make a patch set of your own: the first Metal kernels of an op.",
    "skeleton": "Make a small PyTorch checkout from the installed torch wheel.",
    "status": "Say which edits a PyTorch checkout still needs.",
    "apply": "Apply the patch set to a PyTorch checkout, on a branch of its own.",
    "refresh": "Take edits made in a PyTorch checkout back into the patch set.",
    "diff": "Show what the patch set changes in a PyTorch checkout.",
    "revert": "Remove the applied patch set from a PyTorch checkout.",
    "build": "Build what can be built of the applied patch set on this machine.",
    "doctor": "Say what this machine can do, and how to get what it lacks.",
    "run": "Launch one kernel of a .metal file, with the sanitizer if wanted.",
    "check": "Say what is wrong with Metal files: lint and compile them, as on a Mac or better.",
    "test": "Run PyTorch's OpInfo data and our samples through the patch's kernels.",
    "bench": "Measure the patch's kernels beside torch's op and a three-read design.",
    "pr": "Check the applied patch set and write its pull requests.",
}


class LazyGroup(click.Group):
    """Imports ``mpskit.cli.<name>_command`` and takes its ``command`` when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"mpskit.cli.{name}_command")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mpskit")
def cli() -> None:
    """Write, run, prove and upstream Metal kernels for PyTorch's MPS backend, on any machine.

    New here? `mpskit demo` runs the whole job in a temporary directory and says what it did.
    """


def main() -> NoReturn:
    """Entry point: errors of the user's become a sentence, an interrupt exits with 130."""
    try:
        status = cli.main(standalone_mode=False)
    except MpskitError as error:
        click.secho(f"error: {error.message}", fg="red", err=True)
        if error.hint:
            click.echo(f"  next: {error.hint}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)
