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
    dispatch_anchor,
    find_op,
    installed_native_functions,
)

_TEMPLATES = Path(__file__).parent / "templates"
_MPS = "aten/src/ATen/native/mps"
# By path in the patch set: the template, in the folder of the kind or in the one that all share.
_FILES = {
    "series.toml": "series.toml",
    "pullrequest.toml": "../pullrequest.toml",
    f"{_MPS}/kernels/${{Name}}.h": "params.h",
    f"{_MPS}/kernels/${{Name}}.metal": "kernels.metal",
    f"{_MPS}/operations/${{Name}}.mm": "host.mm",
    f"{_MPS}/operations/${{Name}}Plan.h": "plan.h",
    "opinfo/${name}.py": "definition.py.template",
    "test/test_mps_${name}.py": "upstream_test.py.template",
}
_WIDTH = 80


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
    target = find_target(op, kind, formula, lambda other: find_op(other, yaml_text))
    for kernel in target.kernels:
        _refuse_dispatched(kernel)
    places = _places(name, target, yaml_text)
    texts = {
        Template(path).substitute(places): _filled(_TEMPLATES / _folder(target) / template, places)
        for path, template in _FILES.items()
    }
    place = directory.expanduser().resolve()
    with disk_errors_explained(place.parent), new_directory(place) as draft:
        for path, text in texts.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            (draft / path).write_text(in_pytorch_style(path, text), encoding="utf-8")
        load_patch_set(draft)
    return Scaffold(place, target, tuple(texts))


def _folder(target: Target) -> str:
    return target.kind.replace("-", "_")


def _refuse_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise MpskitError(
            f"{name!r} cannot name kernels.",
            hint="Use words of lower-case letters and digits with '_' between them: log_ndtr.",
        )


def _refuse_dispatched(kernel: Kernel) -> None:
    """A function that upstream runs on MPS already needs more than a scaffold can know."""
    theirs = kernel.function.dispatch.get("MPS")
    if theirs is None:
        if kernel.function.dispatch:
            return
        raise MpskitError(
            f"{kernel.function.name} dispatches to no backend: it is made of other ops everywhere.",
            hint="A kernel of its own needs a `dispatch` in native_functions.yaml and a formula in "
            "derivatives.yaml first: discuss that with PyTorch's maintainers.",
        )
    raise MpskitError(
        f"{kernel.function.name} runs on MPS already, by {theirs}: where its code is, and what "
        "else needs that file, a scaffold cannot know.",
        hint="Begin with an op that has no MPS dispatch; then, in series.toml, put `expects` to "
        f"{theirs}, drop the edit of native_functions.yaml, and add a [[patch.layout]] with the "
        f"upstream file as `path`, TORCH_IMPL_FUNC({theirs}) as `defines` and a "
        "remove_definition edit of it, as mpskit's own aten_patch/series.toml has.",
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
        text = (
            f"{root} on MPS is made of other ops, each of which reads and writes whole tensors in "
            "memory."
        )
    else:
        text = (
            f"{root} has no kernel for MPS: it raises there, or goes to the CPU and back where "
            "PYTORCH_ENABLE_MPS_FALLBACK is set."
        )
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False)


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
    return text.rstrip("\n") + "\n"
