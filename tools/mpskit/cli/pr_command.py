"""``mpskit pr``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from mpskit.cli.options import checkout_argument, json_option, patch_set_option
from mpskit.cli.output import show, show_json

if TYPE_CHECKING:
    from mpskit.pullrequest import Check, Proposal

_STYLES = {"pass": "", "fail": "red", "not run": "yellow"}
_FILE = click.Path(path_type=Path)


@click.command("pr")
@checkout_argument
@click.option("--out", type=_FILE, metavar="DIR", help="Where to write; outside the checkout.")
@click.option(
    "--bench",
    "benches",
    type=_FILE,
    metavar="FILE",
    multiple=True,
    help="What `mpskit bench --json` printed; may be given several times.",
)
@click.option("--report", type=_FILE, metavar="FILE", help="What `mpskit test --json` printed.")
@click.option("--base", metavar="COMMIT", help="Check that the series applies to this one, e.g. "
              "origin/main; the one that it was applied to by default.")  # fmt: skip
@click.option("--check", "only_check", is_flag=True, help="Only check; write nothing.")
@click.option("--draft", is_flag=True, help="Print the texts; write nothing.")
@click.option("--skip-build", is_flag=True, help="Leave out the checks that build.")
@click.option("--skip-tests", is_flag=True, help="Leave out the checks that run upstream's tests.")
@click.option("--push", "remote", metavar="REMOTE", help="Push the branch there if no check "
              "fails; that branch only, never with force.")  # fmt: skip
@patch_set_option
@json_option
def command(
    checkout: Path,
    out: Path | None,
    benches: tuple[Path, ...],
    report: Path | None,
    base: str | None,
    only_check: bool,
    draft: bool,
    skip_build: bool,
    skip_tests: bool,
    remote: str | None,
    patch_set: Path | None,
    as_json: bool,
) -> int:
    """Check the patch set applied in CHECKOUT, and write its pull requests into DIR.

    \b
    DIR/0001-....patch      for `git am`, a file a patch
    DIR/NAME/PR.md          title and text of the pull request of the patch NAME
    DIR/NAME/message.txt    its commit's message

    Exits with 1 when a check fails; the files are written all the same.
    """
    if out is None and not (only_check or draft):
        raise click.UsageError("Give --out DIR, or --draft or --check to write nothing.")

    from mpskit.checkout import Checkout
    from mpskit.patching import load_patch_set
    from mpskit.pullrequest import Scope, commands, prepare, push, text_files, write

    with _announcer() as announce:
        proposal = prepare(
            Checkout.open(checkout),
            load_patch_set(patch_set),
            report=report,
            benches=benches,
            scope=Scope(base, not skip_build, not skip_tests, announce),
        )
    written: list[Path] = []
    ways: list[tuple[str, list[str]]] = []
    if out is not None and not (only_check or draft):
        written = write(proposal.series, proposal.requests, out)
        texts = text_files(proposal.requests, out.expanduser().resolve())
        ways = commands(
            proposal.series, proposal.requests, texts, proposal.material.declarations.labels
        )
    failed = bool(proposal.findings.failed)
    pushed = push(proposal.series, remote) if remote and not failed else None
    if as_json:
        show_json(_as_data(proposal, written, ways, pushed))
    else:
        _show(proposal, written, ways, draft)
        _show_push(remote, pushed)
    return 1 if failed else 0


@contextmanager
def _announcer() -> Iterator[Callable[[str], None]]:
    """Shows on a terminal, with a spinner, what is being checked; elsewhere nothing."""
    terminal = Console(file=sys.stderr)
    if not terminal.is_terminal:
        yield lambda text: None
        return
    with terminal.status("checks") as status:
        yield lambda text: status.update(f"checks: {text}")


def _show(
    proposal: Proposal,
    written: Sequence[Path],
    ways: Sequence[tuple[str, list[str]]],
    draft: bool,
) -> None:
    if draft:
        for request in proposal.requests:
            click.echo(request.text)
    show_checks(proposal.findings.checks)
    if written:
        show("Written", "bold")
    for path in written:
        show(f"  {path}")
    for heading, lines in ways:
        show(heading, "bold")
        for line in lines:
            show(f"  {line}")


def show_checks(checks: Sequence[Check]) -> None:
    """Prints a line a check: outcome, name, why; the last line counts them."""
    several = len({item.patch for item in checks if item.patch}) > 1
    for item in checks:
        name = f"{item.patch}: {item.name}" if several and item.patch else item.name
        show(f"  {item.outcome.value:<8}{name}: {item.why}", _STYLES[item.outcome.value])
    counts = [
        f"{sum(item.outcome.value == outcome for item in checks)} {outcome}" for outcome in _STYLES
    ]
    show(", ".join(counts), "dim")


def _show_push(remote: str | None, pushed: str | None) -> None:
    if pushed:
        show(f"pushed {pushed}")
    elif remote:
        show(f"not pushed to {remote}: a check fails", "red")
    else:
        show("Nothing was pushed.", "dim")


def _as_data(
    proposal: Proposal,
    written: Sequence[Path],
    ways: Sequence[tuple[str, list[str]]],
    pushed: str | None,
) -> dict[str, Any]:
    return {
        "branch": proposal.series.record.branch_name,
        "base": proposal.series.record.base,
        "passed": not proposal.findings.failed,
        "checks": [item.to_json() for item in proposal.findings.checks],
        "requests": [
            {"patch": request.patch, "title": request.title, "text": request.text}
            for request in proposal.requests
        ],
        "written": [str(path) for path in written],
        "commands": dict(ways),
        "pushed": pushed,
    }
