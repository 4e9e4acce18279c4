"""What there is to build: the files of an applied patch set, as they stand in the work tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mpskit.checkout.checkout import Checkout
from mpskit.errors import MpskitError
from mpskit.patching import PatchSet, State, plan, read_record
from mpskit.patching.planning import Plan


@dataclass(frozen=True)
class Registration:
    """What native_functions.yaml says: ``function`` runs ``kernel`` under a dispatch key."""

    function: str
    key: str
    kernel: str


@dataclass(frozen=True)
class Subject:
    """An applied patch set. Paths are relative to ``root``, the checkout's root.

    Attributes:
        metal_sources: the ``.metal`` files that the patch set adds.
        host_sources: the ``.mm`` files that it adds.
        edited_host_sources: upstream's ``.mm`` files that it edits, each with its text before
            that, None where it is not known.
        paths: every file of the patch set, for telling its messages from other files'.
        version: what the base's version.txt says.
        registrations: which of its kernels the dispatcher must reach.
    """

    root: Path
    metal_sources: tuple[str, ...]
    host_sources: tuple[str, ...]
    edited_host_sources: Mapping[str, str | None]
    paths: tuple[str, ...]
    version: str | None
    registrations: tuple[Registration, ...]

    @classmethod
    def find(cls, checkout: Checkout, patch_set: PatchSet) -> Subject:
        """The subject of a build: ``patch_set`` in ``checkout``, with edits of the user's to it.

        Raises:
            MpskitError: the patch set is not applied there.
        """
        planned = plan(checkout, patch_set, allow_old_base=True)
        files = [path for path, kind in _edits(planned) if kind == "file"]
        edited = [path for path, kind in _edits(planned) if kind != "file"]
        _refuse_unapplied(checkout.root, planned, files)
        return cls(
            root=checkout.root,
            metal_sources=_with_suffix(files, ".metal"),
            host_sources=_with_suffix(files, ".mm"),
            edited_host_sources=_before(checkout, _with_suffix(edited, ".mm")),
            paths=tuple(dict.fromkeys([*files, *edited])),
            version=checkout.version(),
            registrations=tuple(
                Registration(expected.function, key, kernel)
                for patch in planned.patches
                for expected in patch.patch.expects
                for key, kernel in expected.dispatch.items()
            ),
        )

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def include_dirs(self) -> tuple[Path, ...]:
        """Where the checkout's own headers are: ``ATen/…``, then ``c10/…`` and ``torch/…``."""
        return self.root / "aten/src", self.root


def _edits(planned: Plan) -> list[tuple[str, str]]:
    return [(edit.path, edit.kind) for patch in planned.patches for edit in patch.edits]


def _with_suffix(paths: list[str], suffix: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in paths if path.endswith(suffix)))


def _before(checkout: Checkout, paths: tuple[str, ...]) -> dict[str, str | None]:
    """Each file's text in the commit that the patch set was applied to."""
    record = read_record(checkout, checkout.head().branch)
    contents = checkout.read_all(record.base, paths) if record else {}
    return {
        path: contents[path].decode(errors="replace") if path in contents else None
        for path in paths
    }


def _refuse_unapplied(root: Path, planned: Plan, files: list[str]) -> None:
    missing = [path for path in files if not (root / path).is_file()]
    if planned.state is State.TODO or missing:
        what = f"{missing[0]} is not there" if missing else "some of its edits are not made"
        raise MpskitError(
            f"The patch set is not applied in {root}: {what}.",
            hint=f"Apply it first: mpskit apply {root}",
        )
