"""Fill the templates of a kind in, and write the patch set that comes of it."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from string import Template

from mpskit.checkout.checkout import NATIVE_FUNCTIONS
from mpskit.checkout.git import disk_errors_explained
from mpskit.errors import MpskitError
from mpskit.new_directory import new_directory
from mpskit.patching import load_patch_set
from mpskit.pullrequest.checks.style import in_pytorch_style
from mpskit.scaffolding.formulas import Formula
from mpskit.scaffolding.kinds import Kernel, Target, find_target
from mpskit.scaffolding.native_functions import (
    Op,
    dispatch_anchor,
    find_op,
    installed_native_functions,
)

_TEMPLATES = Path(__file__).parent / "templates"
_MPS = "aten/src/ATen/native/mps"
# By path in the patch set: the template below the folder of the kind, which may leave some out.
_FILES = {
    "series.toml": "series.toml",
    "pullrequest.toml": "../pullrequest.toml",
    f"{_MPS}/kernels/${{Name}}.h": "params.h",
    f"{_MPS}/kernels/${{Name}}.metal": "kernels.metal",
    f"{_MPS}/operations/${{Name}}.mm": "host.mm",
    f"{_MPS}/operations/${{Name}}Plan.h": "plan.h",
    "opinfo/${name}.py": "definition.py.template",
    "opinfo/test_${name}.py": "test_of_op.py.template",
    "test/test_mps_${name}.py": "upstream_test.py.template",
}
_WIDTH = 80
_WHY = re.compile(r'^why = """(?P<text>.*?)"""', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Scaffold:
    """A patch set just made: its directory, what it is for, and its files."""

    directory: Path
    target: Target
    files: tuple[str, ...]


def make_scaffold(
    name: str,
    op_name: str,
    directory: Path,
    *,
    kind: str | None = None,
    formula: Formula | None = None,
) -> Scaffold:
    """Make ``directory``, a patch set that gives an op Metal kernels.

    Nothing is left behind when it fails or is interrupted.

    Args:
        name: of the patch set and its kernels, in snake_case.
        op_name: e.g. ``aten::special_log_ndtr``.
        kind: of KIND_NAMES; None for the first that the op fits.
        formula: what the kernels compute; None for what mpskit knows of the op.

    Raises:
        MpskitError: the directory is taken, or no scaffold can be made for the op; says why.
    """
    _refuse_name(name)
    yaml_text = installed_native_functions()
    op = find_op(op_name, yaml_text)
    _refuse_without_place(op)
    target = find_target(op, kind, formula, lambda other: find_op(other, yaml_text))
    texts = _texts(target, _places(name, target, yaml_text))
    place = directory.expanduser().resolve()
    with disk_errors_explained(place.parent), new_directory(place) as draft:
        for path, text in texts.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            (draft / path).write_text(in_pytorch_style(path, text), encoding="utf-8")
        load_patch_set(draft)
    return Scaffold(place, target, tuple(texts))


def _texts(target: Target, places: dict[str, str]) -> dict[str, str]:
    folder = _TEMPLATES / target.kind.replace("-", "_")
    return {
        Template(path).substitute(places): _filled(folder / template, places)
        for path, template in _FILES.items()
        if (folder / template).is_file()
    }


def _refuse_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise MpskitError(
            f"{name!r} cannot name kernels.",
            hint="Use words of lower-case letters and digits with '_' between them: log_ndtr.",
        )


def _refuse_without_place(op: Op) -> None:
    """An op that upstream runs on MPS already, or that no backend has a kernel for."""
    for function in op.functions.values():
        theirs = function.dispatch.get("MPS")
        if theirs is not None:
            raise MpskitError(
                f"{function.name} runs on MPS already, by {theirs}: where that is defined, and "
                "what else its file is for, a scaffold cannot know.",
                hint="Begin with an op that does not. Then, in series.toml, have `expects` name "
                f"{theirs}, drop the edit of native_functions.yaml, and add a [[patch.layout]] "
                "with upstream's file as `path`, the head of the definition as `defines`, and a "
                "remove_definition edit, as mpskit's own patch set has: mpskit list.",
            )
    if not any(function.dispatch for function in op.functions.values()):
        raise MpskitError(
            f"{op.name} has no dispatch: it is made of other ops on every backend.",
            hint="A kernel of its own needs a dispatch in native_functions.yaml and a formula in "
            "derivatives.yaml first: discuss that with PyTorch's maintainers.",
        )


def _places(name: str, target: Target, yaml_text: str) -> dict[str, str]:
    op = target.op
    return {
        "name": name,
        "Name": "".join(word.capitalize() for word in name.split("_")),
        "NAME": name.upper(),
        "op": op.name,
        "root": op.root,
        "opinfo": op.opinfo_name,
        "function": target.kernels[0].name,
        "why": _why(target),
        "dispatch_edits": "\n".join(_dispatch_edit(each, yaml_text) for each in target.kernels),
        **target.places,
    }


def _why(target: Target) -> str:
    root = target.op.root
    if target.op.is_composite:
        return (
            f"{root} on MPS is made of other ops, each of which reads and writes whole tensors in "
            "memory."
        )
    return (
        f"{root} has no kernel for MPS: it raises there, or goes to the CPU and back where "
        "PYTORCH_ENABLE_MPS_FALLBACK is set."
    )


def _dispatch_edit(kernel: Kernel, yaml_text: str) -> str:
    """The edit that puts ``MPS: ...`` behind the last dispatch key."""
    anchor = dispatch_anchor(kernel.function, yaml_text)
    return (
        "[[patch.edit]]\n"
        'kind = "insert_after"\n'
        f'path = "{NATIVE_FUNCTIONS}"\n'
        f"anchor = '''\n{anchor}'''\n"
        f"text = '''\n    MPS: {kernel.name}\n'''\n"
    )


def _filled(template: Path, places: dict[str, str]) -> str:
    text = Template(template.read_text(encoding="utf-8")).substitute(places)
    return _WHY.sub(_wrapped, text).rstrip("\n") + "\n"


def _wrapped(why: re.Match[str]) -> str:
    """The body of a commit message, whose lines have become longer with the names in them."""
    paragraphs = why["text"].strip("\n").split("\n\n")
    filled = (textwrap.fill(each, _WIDTH, break_on_hyphens=False) for each in paragraphs)
    return 'why = """\n' + "\n\n".join(filled) + '\n"""'
