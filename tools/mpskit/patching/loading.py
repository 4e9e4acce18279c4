"""Read ``series.toml``.

A patch set is a directory that mirrors the PyTorch tree and holds a ``series.toml``::

    format = 1
    name = "log_softmax"                # the branch is mpskit/<name> unless told otherwise

    [[patch]]
    name = "forward"
    title = "[MPS] ..."                 # the commit's subject
    why = "..."                         # the commit's body
    trailers = { Reviewed-by = "..." }  # the commit's trailers (optional)
    files = ["aten/..."]                # added as they stand in the patch set's directory
    replaces = ["aten/..."]             # those of `files` that may exist upstream with other text

    [[patch.kernel]]
    name = "log_softmax_row"            # a kernel of the patch
    when = "..."                        # and when the plan launches it

    [[patch.requires]]
    path = "c10/metal/utils.h"          # a file or directory that the base must have
    contains = "..."                    # and a text that the file must have in it (optional)
    since = "2.7"                       # the first PyTorch with it, where its absence means age
    absent = "..."                      # what its absence means for the patch

    [[patch.expects]]
    function = "_log_softmax.out"       # what native_functions.yaml must dispatch once the
    dispatch = { MPS = "log_softmax_mps_out" }  # patch's edits are made, and to what

    [[patch.edit]]                      # made on every base
    kind = "remove_definition"          # or another of mpskit.patching.edits, with its fields
    path = "aten/..."
    head = "TORCH_IMPL_FUNC(log_softmax_mps_out)"
    replaced_by = "aten/..."
    optional = true                     # insertions and replacements: do without, where the base
                                        # has no such file (optional)
    text_from = "inserts/..."           # insertions: a file that holds `text`, in its place

    [[patch.layout]]                    # a way in which bases are laid out; with any declared,
    name = "mpsgraph"                   # a base must be laid out in exactly one of them
    about = "..."                       # what such a base looks like, in words
    path = "aten/..."                   # such a base has this file,
    defines = "TORCH_IMPL_FUNC(...)"    # with this definition in it
    replaces = ["aten/..."]             # as above, on such a base alone

    [[patch.layout.edit]]               # as above, on such a base alone
    ...
"""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from mpskit.errors import MpskitError
from mpskit.patching.edits import EDIT_KINDS, Edit, RemoveInclude, ReplaceIn
from mpskit.patching.series import (
    SERIES_FILE,
    Expectation,
    KernelUse,
    Layout,
    Patch,
    PatchFile,
    PatchSet,
    Requirement,
    default_patch_set_directory,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMAT = 1


def load_patch_set(path: Path | str | None = None) -> PatchSet:
    """The patch set in the directory ``path``, mpskit's own where ``path`` is None.

    Raises:
        MpskitError: there is none, or its series.toml is wrong; names the file and the key.
    """
    directory = default_patch_set_directory() if path is None else Path(path).expanduser()
    series = directory / SERIES_FILE
    try:
        data = tomllib.loads(series.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise MpskitError(
            f"{directory} is no patch set: it has no {SERIES_FILE}.",
            hint="Name the directory that holds series.toml with --patch-set DIR.",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise MpskitError(f"{series} cannot be read: {error}", hint="Mend the file.") from None
    return _Loader(directory.resolve(), series).patch_set(data)


class _Loader:
    """Turns parsed TOML into dataclasses and says where a value is not what it must be."""

    def __init__(self, directory: Path, series: Path) -> None:
        self.directory = directory
        self.series = series

    def patch_set(self, data: dict[str, Any]) -> PatchSet:
        table = _Table(self, data, "")
        if table.take("format", int) != FORMAT:
            raise self.wrong("format", f"must be {FORMAT}, the format this mpskit reads")
        name = self._name(table)
        patches = tuple(self._patch(item) for item in table.tables("patch"))
        table.end()
        if not patches:
            raise self.wrong("patch", "must hold one patch at least")
        names = [patch.name for patch in patches]
        for index, patch_name in enumerate(names):
            if patch_name in names[:index]:
                raise self.wrong(f"patch[{index}].name", f"{patch_name!r} is taken already")
        return PatchSet(self.directory, name, patches)

    def _name(self, table: _Table) -> str:
        name: str = table.take("name", str)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
            raise self.wrong(
                table.at("name"), "must be letters, digits, '_' and '-': it names a branch"
            )
        return name

    def _patch(self, table: _Table) -> Patch:
        patch = Patch(
            name=self._name(table),
            title=table.take("title", str),
            why=table.take("why", str, ""),
            trailers=self._trailers(table),
            requires=tuple(self._requirement(item) for item in table.tables("requires")),
            expects=tuple(self._expectation(item) for item in table.tables("expects")),
            kernels=tuple(self._kernel(item) for item in table.tables("kernel")),
            files=self._files(table),
            common_edits=tuple(self._edit(item) for item in table.tables("edit")),
            layouts=self._layouts(table),
        )
        table.end()
        self._check_patch(patch, table)
        return patch

    def _check_patch(self, patch: Patch, table: _Table) -> None:
        if "\n" in patch.title or not patch.title.strip():
            raise self.wrong(table.at("title"), "must be one line: it is the commit's subject")
        if not patch.files and not patch.edits:
            raise self.wrong(table.at("files"), "is empty, and there is no edit either")
        files = [file.path for file in patch.files]
        for layout in patch.layouts:
            for path in layout.replaces:
                if path not in files:
                    raise self.wrong(table.at("layout"), f"replaces {path}, not one of `files`")

    def _trailers(self, table: _Table) -> tuple[tuple[str, str], ...]:
        trailers: dict[str, Any] = table.take("trailers", dict, {})
        for key, value in trailers.items():
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", key) or not isinstance(value, str):
                raise self.wrong(table.at("trailers"), f"{key!r} is no trailer with a text")
        return tuple(trailers.items())

    def _kernel(self, table: _Table) -> KernelUse:
        kernel = KernelUse(table.text("name"), table.text("when"))
        table.end()
        return kernel

    def _layouts(self, table: _Table) -> tuple[Layout, ...]:
        layouts = tuple(self._layout(item) for item in table.tables("layout"))
        names = [layout.name for layout in layouts]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise self.wrong(table.at(f"layout[{index}].name"), f"{name!r} is taken already")
        return layouts

    def _layout(self, table: _Table) -> Layout:
        layout = Layout(
            name=self._name(table),
            about=table.text("about"),
            path=table.path("path"),
            defines=table.text("defines"),
            replaces=tuple(table.paths("replaces")),
            edits=tuple(self._edit(item) for item in table.tables("edit")),
        )
        table.end()
        return layout

    def _requirement(self, table: _Table) -> Requirement:
        requirement = Requirement(
            path=table.path("path"),
            absent=table.take("absent", str),
            contains=table.take("contains", str, None),
            since=table.take("since", str, None),
        )
        table.end()
        if requirement.since and not re.fullmatch(r"\d+(\.\d+)*", requirement.since):
            raise self.wrong(table.at("since"), "must be a PyTorch version such as 2.7")
        return requirement

    def _expectation(self, table: _Table) -> Expectation:
        function, dispatch = table.take("function", str), table.take("dispatch", dict)
        table.end()
        if not dispatch or not all(isinstance(kernel, str) for kernel in dispatch.values()):
            raise self.wrong(table.at("dispatch"), "must give a kernel's name by dispatch key")
        return Expectation(function, dispatch)

    def _files(self, table: _Table) -> tuple[PatchFile, ...]:
        paths, replaces = table.paths("files"), table.paths("replaces")
        for path in replaces:
            if path not in paths:
                raise self.wrong(table.at("replaces"), f"{path} is not among `files`")
        return tuple(
            PatchFile(path, self._content(path, table.at("files")), path in replaces)
            for path in paths
        )

    def _content(self, path: str, key: str) -> bytes:
        try:
            return (self.directory / path).read_bytes()
        except OSError as error:
            reason = error.strerror or str(error)
            raise self.wrong(key, f"{path} cannot be read: {reason}") from None

    def _edit(self, table: _Table) -> Edit:
        kind = table.take("kind", str)
        if kind not in EDIT_KINDS:
            raise self.wrong(table.at("kind"), f"{kind!r} is none of {', '.join(EDIT_KINDS)}")
        values: dict[str, Any] = {}
        for field in dataclasses.fields(EDIT_KINDS[kind]):
            if field.name == "optional":
                values[field.name] = table.flag(field.name)
            elif field.name == "text" and "text_from" in table.data:
                values[field.name] = self._text_from(table)
            elif field.name in ("path", "replaced_by"):
                values[field.name] = table.path(field.name)
            elif field.name == "uses":
                values[field.name] = tuple(table.strings(field.name))
            else:
                values[field.name] = table.text(field.name)
        table.end()
        edit = EDIT_KINDS[kind](**values)
        self._check_edit(edit, table)
        return edit

    def _text_from(self, table: _Table) -> str:
        """The text of an edit that stands in a file of its own, ``text_from``."""
        path, key = table.path("text_from"), table.at("text_from")
        try:
            return self._content(path, key).decode()
        except UnicodeDecodeError:
            raise self.wrong(key, f"{path} is no UTF-8") from None

    def _check_edit(self, edit: Edit, table: _Table) -> None:
        if isinstance(edit, ReplaceIn) and edit.old == edit.new:
            raise self.wrong(table.at("new"), "is the same as `old`")
        for pattern in edit.uses if isinstance(edit, RemoveInclude) else ():
            try:
                re.compile(pattern)
            except re.error as error:
                raise self.wrong(
                    table.at("uses"), f"{pattern!r} is no regular expression: {error}"
                ) from None

    def wrong(self, key: str, problem: str) -> MpskitError:
        return MpskitError(f"{self.series}: `{key}` {problem}.", hint="Mend the file.")


_REQUIRED = object()
_TYPE_NAMES = {str: "text", int: "a number", list: "a list", dict: "a table"}


class _Table:
    """One TOML table whose keys are taken one by one; what is left over at the end is wrong."""

    def __init__(self, loader: _Loader, data: dict[str, Any], where: str) -> None:
        self.loader = loader
        self.data = dict(data)
        self.where = where

    def at(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def take(self, key: str, kind: type, default: Any = _REQUIRED) -> Any:
        if key not in self.data:
            if default is _REQUIRED:
                raise self.loader.wrong(self.at(key), "is missing")
            return default
        value = self.data.pop(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.loader.wrong(self.at(key), f"must be {_TYPE_NAMES[kind]}")
        return value

    def text(self, key: str) -> str:
        value: str = self.take(key, str)
        if not value:
            raise self.loader.wrong(self.at(key), "must not be empty")
        return value

    def flag(self, key: str) -> bool:
        value = self.data.pop(key, False)
        if not isinstance(value, bool):
            raise self.loader.wrong(self.at(key), "must be true or false")
        return value

    def strings(self, key: str) -> list[str]:
        values: list[str] = self.take(key, list, [])
        if not all(isinstance(value, str) for value in values):
            raise self.loader.wrong(self.at(key), "must be a list of texts")
        return values

    def path(self, key: str) -> str:
        return self._inside(key, self.text(key))

    def paths(self, key: str) -> list[str]:
        return [self._inside(key, path) for path in self.strings(key)]

    def _inside(self, key: str, path: str) -> str:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or str(pure) != path or path == ".":
            raise self.loader.wrong(
                self.at(key), f"{path!r} must be a plain path relative to the PyTorch tree's root"
            )
        if ".git" in pure.parts:
            raise self.loader.wrong(self.at(key), f"{path!r} lies in git's own directory")
        return path

    def tables(self, key: str) -> list[_Table]:
        values = self.take(key, list, [])
        if not all(isinstance(value, dict) for value in values):
            raise self.loader.wrong(self.at(key), "must be a list of tables")
        return [
            _Table(self.loader, value, f"{self.at(key)}[{index}]")
            for index, value in enumerate(values)
        ]

    def end(self) -> None:
        for key in self.data:
            raise self.loader.wrong(self.at(key), "is no key that mpskit knows")
