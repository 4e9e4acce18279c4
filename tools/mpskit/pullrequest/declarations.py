"""Read ``pullrequest.toml``: what a pull request says that no other file of a patch set knows.

It stands beside ``series.toml`` and may be missing::

    format = 1
    labels = ["module: mps", "..."]     # mpskit's own four where it is missing

    [[patch]]
    name = "forward"                    # a patch of the series
    limits = ["..."]                    # what the patch does not do
    follow_ups = ["..."]                # what comes after it

    # What the checks are to let pass, each with its reason:
    [[patch.uncovered]]
    kernel = "log_softmax_*_u64"        # host names that no upstream test launches
    why = "..."

    [[patch.fast_math]]
    path = "aten/..."                   # a file that may use Metal's fast:: functions
    why = "..."

    [[patch.slower]]
    workload = "64x1000 dim -1 float32" # a workload that may take longer than before
    why = "..."

    [[patch.skip]]
    test = "test_..."                   # a test that the suite skips
    why = "..."
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mpskit.errors import MpskitError
from mpskit.patching import PatchSet

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DECLARATIONS_FILE = "pullrequest.toml"
FORMAT = 1
LABELS = ("module: mps", "ciflow/mps", "release notes: mps", "topic: performance")

# The key that says what an entry of each kind is about.
_KINDS = {"uncovered": "kernel", "fast_math": "path", "slower": "workload", "skip": "test"}


@dataclass(frozen=True)
class Exemption:
    """Something that a check lets pass: ``subject`` is a pattern with ``*``, ``why`` its reason."""

    subject: str
    why: str

    def covers(self, name: str) -> bool:
        return fnmatchcase(name, self.subject)


@dataclass(frozen=True)
class PatchDeclarations:
    """What one patch declares; ``LABELS`` and nothing else where it has no entry."""

    limits: tuple[str, ...] = ()
    follow_ups: tuple[str, ...] = ()
    uncovered: tuple[Exemption, ...] = ()
    fast_math: tuple[Exemption, ...] = ()
    slower: tuple[Exemption, ...] = ()
    skip: tuple[Exemption, ...] = ()


@dataclass(frozen=True)
class Declarations:
    """A patch set's ``pullrequest.toml``."""

    labels: tuple[str, ...]
    patches: dict[str, PatchDeclarations]

    def of(self, patch_name: str) -> PatchDeclarations:
        return self.patches.get(patch_name, PatchDeclarations())


def exempt(name: str, exemptions: Sequence[Exemption]) -> Exemption | None:
    """The first of ``exemptions`` that covers ``name``."""
    return next((item for item in exemptions if item.covers(name)), None)


def load_declarations(patch_set: PatchSet) -> Declarations:
    """The declarations beside the series of ``patch_set``.

    Raises:
        MpskitError: the file is wrong; names the key.
    """
    file = patch_set.directory / DECLARATIONS_FILE
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Declarations(LABELS, {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise MpskitError(f"{file} cannot be read: {error}", hint="Mend the file.") from None
    return _Reader(file, [patch.name for patch in patch_set.patches]).read(data)


class _Reader:
    def __init__(self, file: Path, patch_names: list[str]) -> None:
        self._file = file
        self._patch_names = patch_names

    def read(self, data: dict[str, Any]) -> Declarations:
        if data.pop("format", None) != FORMAT:
            raise self._wrong("format", f"must be {FORMAT}, the format this mpskit reads")
        labels = self._texts(data, "labels", "labels") if "labels" in data else LABELS
        patches = dict(map(self._patch, self._tables(data, "patch", "patch")))
        self._end(data, "")
        return Declarations(labels, patches)

    def _patch(self, data: dict[str, Any]) -> tuple[str, PatchDeclarations]:
        name = data.pop("name", None)
        if name not in self._patch_names:
            known = ", ".join(self._patch_names)
            raise self._wrong("patch.name", f"{name!r} is no patch of the series ({known})")
        found = PatchDeclarations(
            limits=self._texts(data, "limits", "patch.limits"),
            follow_ups=self._texts(data, "follow_ups", "patch.follow_ups"),
            **{kind: self._exemptions(data, kind) for kind in _KINDS},
        )
        self._end(data, "patch.")
        return name, found

    def _exemptions(self, data: dict[str, Any], kind: str) -> tuple[Exemption, ...]:
        where = f"patch.{kind}"
        found = []
        for entry in self._tables(data, kind, where):
            subject, why = entry.pop(_KINDS[kind], None), entry.pop("why", None)
            if not isinstance(subject, str) or not isinstance(why, str) or not why.strip():
                raise self._wrong(where, f"must have the texts `{_KINDS[kind]}` and `why`")
            self._end(entry, f"{where}.")
            found.append(Exemption(subject, why.strip()))
        return tuple(found)

    def _texts(self, data: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
        values = data.pop(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self._wrong(where, "must be a list of texts")
        return tuple(values)

    def _tables(self, data: dict[str, Any], key: str, where: str) -> list[dict[str, Any]]:
        values = data.pop(key, [])
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise self._wrong(where, "must be a list of tables")
        return values

    def _end(self, data: dict[str, Any], where: str) -> None:
        for key in data:
            raise self._wrong(f"{where}{key}", "is no key that mpskit knows")

    def _wrong(self, key: str, problem: str) -> MpskitError:
        return MpskitError(f"{self._file}: `{key}` {problem}.", hint="Mend the file.")
