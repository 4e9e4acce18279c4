"""Ops as the installed PyTorch's native_functions.yaml declares them.

Read with patterns: a YAML parser takes ten seconds for the whole file.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from mpskit.errors import MpskitError
from mpskit.patching.native_functions import dispatch_table

_FUNCTION = re.compile(r"^- func: (?P<schema>(?P<name>[\w.]+)\(.*)$", re.MULTILINE)
_ARGUMENTS = re.compile(r"\((?P<arguments>.*)\) -> (?P<returns>.*)$")


@dataclass(frozen=True)
class NativeFunction:
    """One function of native_functions.yaml.

    Attributes:
        name: with its overload, e.g. ``special_log_ndtr.out``.
        schema: name, arguments and results, as written there.
        block: all of its lines.
        dispatch: kernel by dispatch key.
    """

    name: str
    schema: str
    block: str
    dispatch: dict[str, str]

    @property
    def arguments(self) -> tuple[str, ...]:
        """``Tensor self``, ``int? dim=None``, ``*``, ... in order."""
        match = _ARGUMENTS.search(self.schema)
        text = match["arguments"] if match else ""
        return tuple(re.split(r", (?![^\[]*\])", text)) if text else ()

    @property
    def is_structured(self) -> bool:
        return self.says("structured") == "True"

    def says(self, key: str) -> str | None:
        """The value of a key of the entry, such as ``python_module``."""
        match = re.search(rf"^  {key}: *(.*?) *(#.*)?$", self.block, re.MULTILINE)
        return match[1] if match else None


@dataclass(frozen=True)
class Op:
    """An op: its functions by overload, the functional one under the empty name."""

    root: str
    functions: dict[str, NativeFunction]

    @property
    def name(self) -> str:
        return f"aten::{self.root}"

    @property
    def opinfo_name(self) -> str:
        """What PyTorch's OpInfo entry of the op is called, where there is one."""
        module = next((f.says("python_module") for f in self.functions.values()), None)
        if module == "nn":
            return f"nn.functional.{self.root}"
        return f"{module}.{self.root.removeprefix(f'{module}_')}" if module else self.root

    @property
    def is_composite(self) -> bool:
        """Whether it is made of other ops where no backend has a kernel of its own."""
        keys = {key for f in self.functions.values() for key in f.dispatch}
        return any(key.startswith("Composite") for key in keys)


def installed_native_functions() -> str:
    """The text of the native_functions.yaml that comes with the installed torch."""
    spec = importlib.util.find_spec("torchgen")
    if spec is None or not spec.submodule_search_locations:
        raise MpskitError("torch is not installed for this Python.", hint="pip install torch")
    folder = Path(next(iter(spec.submodule_search_locations)))
    return (folder / "packaged/ATen/native/native_functions.yaml").read_text(encoding="utf-8")


def find_op(name: str, yaml_text: str) -> Op:
    """The op ``name``, e.g. ``aten::special_log_ndtr``.

    Raises:
        MpskitError: there is none; suggests those of similar names.
    """
    root = name.removeprefix("aten::").partition(".")[0]
    functions = {}
    for match in _FUNCTION.finditer(yaml_text):
        full_name = match["name"]
        found, _, overload = full_name.partition(".")
        if found == root:
            block = _block(yaml_text, match.start())
            dispatch = dispatch_table(block, full_name) or {}
            functions[overload] = NativeFunction(full_name, match["schema"], block, dispatch)
    if not functions:
        raise MpskitError(f"PyTorch has no op {name}.", hint=_suggestion(root, yaml_text))
    return Op(root, functions)


def _block(yaml_text: str, start: int) -> str:
    end = yaml_text.find("\n- ", start)
    return yaml_text[start : end + 1 if end >= 0 else len(yaml_text)]


def _suggestion(root: str, yaml_text: str) -> str:
    names = sorted({match["name"].partition(".")[0] for match in _FUNCTION.finditer(yaml_text)})
    near = [name for name in names if root and name.strip("_").endswith(f"_{root.strip('_')}")]
    near += difflib.get_close_matches(root, names, n=4, cutoff=0.6)
    listed = ", ".join(f"aten::{item}" for item in dict.fromkeys(near))
    return f"Did you mean {listed}?" if listed else "Name it as native_functions.yaml does."


def dispatch_anchor(function: NativeFunction, yaml_text: str) -> str:
    """The fewest lines, down to the last of the function's dispatch, that the file has once."""
    lines = function.block.splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith("  dispatch:"))
    last = start
    while last + 1 < len(lines) and lines[last + 1].startswith("    "):
        last += 1
    for first in range(last, -1, -1):
        anchor = "".join(lines[first : last + 1])
        if yaml_text.count(anchor) == 1:
            return anchor
    raise AssertionError(f"{function.name} stands in native_functions.yaml twice")
