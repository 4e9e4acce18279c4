"""``mpskit demo``."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from mpskit.checkout import Checkout, make_skeleton
from mpskit.cli.options import patch_set_option
from mpskit.cli.output import progress, show
from mpskit.errors import MpskitError
from mpskit.patching import Applied, apply, load_patch_set


@click.command("demo")
@click.argument("directory", type=click.Path(path_type=Path), required=False)
@click.option("-k", "expression", metavar="EXPR", help="Only tests whose names match, as pytest.")
@patch_set_option
def command(directory: Path | None, expression: str | None, patch_set: Path | None) -> None:
    """Run the whole job on a small PyTorch checkout: apply, compile, test, write the PR.

    Everything is made in DIRECTORY, which must not exist yet or be empty; in a new temporary
    directory by default. It is kept, for you to look around in.
    """
    # Imported here: they bring torch, and `mpskit demo --help` should not wait for that.
    from mpskit.cli.pr_command import show_checks
    from mpskit.cli.test_command import show_result
    from mpskit.metal import compile_shader
    from mpskit.pullrequest import Scope, prepare
    from mpskit.verify.suite import Selection, run_suite

    loaded = load_patch_set(patch_set)
    home = _home(directory)
    with _step("1. A small PyTorch checkout from the installed torch wheel") as said:
        with progress("writing files") as update:
            skeleton = make_skeleton(home / "pytorch", update)
        said.append(f"{skeleton.files} files of PyTorch {skeleton.torch_version}")
    checkout = Checkout.open(skeleton.directory)
    with _step("2. The patch set, applied and committed") as said:
        applied = apply(checkout, loaded)
        said += [f"{path}" for path in applied.plan.paths]
        said.append(f"branch {applied.head.name}")
    with _step("3. The Metal kernels, compiled for this machine") as said:
        for source in _kernels(checkout, applied):
            library = compile_shader(source, include_dirs=_include_dirs(checkout))
            said.append(f"{source.name}: {len(dir(library))} kernels")
    with _step("4. PyTorch's OpInfo samples and ours, run on those kernels"):
        with progress("tests") as update:
            brings_ops = (loaded.directory / "opinfo").is_dir()
            tested = loaded.directory if brings_ops else checkout.root
            selection = Selection(expression=expression, patch_set=tested)
            result = run_suite(selection, progress=update)
        show_result(result)
    report = home / "report.json"
    report.write_text(json.dumps(result.to_json(), indent=2))
    with _step("5. The pull request: its text, and what stands in its way"):
        proposal = prepare(checkout, loaded, report=report, scope=Scope(build=False, run=False))
        text = "\n".join(request.text for request in proposal.requests)
        (home / "PR.md").write_text(text)
        click.echo(text)
        show_checks(proposal.findings.checks)
    _show_what_next(home, checkout, applied)
    if not result.ok:
        raise MpskitError("Some tests failed.", hint="Each one's line above runs it again.")


@contextmanager
def _step(title: str) -> Iterator[list[str]]:
    """Prints a heading, then the lines put into the list that it yields, and the time taken."""
    show(title, "bold")
    lines: list[str] = []
    begin = time.perf_counter()
    yield lines
    for line in lines:
        show(f"   {line}")
    show(f"   {time.perf_counter() - begin:.1f} s\n", "dim")


def _home(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="mpskit-demo-"))
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise MpskitError(
            f"{directory} exists and is not an empty directory.",
            hint="Name one that does not exist, or none for a temporary one.",
        )
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _kernels(checkout: Checkout, applied: Applied) -> list[Path]:
    return [checkout.root / path for path in applied.plan.paths if path.endswith(".metal")]


def _include_dirs(checkout: Checkout) -> list[Path]:
    """Where PyTorch's own build looks for a kernel's headers."""
    return [checkout.root, checkout.root / "aten/src"]


def _show_what_next(home: Path, checkout: Checkout, applied: Applied) -> None:
    show("Where everything lies", "bold")
    show(f"   {checkout.root}   the checkout, on branch {applied.head.name}; see git log -p")
    show(f"   {home / 'PR.md'}   the pull request's text")
    show("With a real clone of PyTorch", "bold")
    show("   mpskit status path/to/pytorch    what the patch set would do there")
    show("   mpskit apply path/to/pytorch     commit it on a branch of its own")
    show("   mpskit pr path/to/pytorch --out DIR   check it all, write patch files and texts")
    show("   mpskit revert path/to/pytorch    take it off again")
