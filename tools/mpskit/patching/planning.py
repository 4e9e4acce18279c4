"""What a patch set comes to on one commit of a checkout: edit by edit, with the resulting files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mpskit.checkout.checkout import NATIVE_FUNCTIONS, Checkout
from mpskit.checkout.git import REGULAR_FILE, Entry, Git
from mpskit.errors import MpskitError
from mpskit.patching.edits import Edit, Outcome, State, may_be_left_out
from mpskit.patching.layouts import layouts_of, lost_registrations, unknown_layout
from mpskit.patching.native_functions import dispatch_table
from mpskit.patching.series import (
    Expectation,
    Layout,
    Patch,
    PatchFile,
    PatchSet,
    Requirement,
)


@dataclass(frozen=True)
class EditPlan:
    """One edit or file of a patch and where it stands. ``kind`` is a kind of edit, or ``file``.

    ``difference`` is a unified diff of what upstream has changed there since the patch set was
    applied; only ``status`` looks for one.
    """

    kind: str
    path: str
    what: str
    state: State
    reason: str
    source: Edit | PatchFile = field(repr=False)
    difference: str = ""


@dataclass(frozen=True)
class Unmet:
    """Something the base lacks; ``since`` is the PyTorch that has it, where age explains it."""

    path: str
    reason: str
    since: str | None = None


@dataclass(frozen=True)
class PatchPlan:
    """One patch: what stands in its way, its edits, and the new text of each file it changes.

    ``layout`` names the base's layout; None where the patch declares none, where the base has none
    of them, or where the patch is in already.
    """

    patch: Patch
    layout: str | None
    unmet: tuple[Unmet, ...]
    edits: tuple[EditPlan, ...]
    changes: dict[str, bytes] = field(repr=False)

    @property
    def state(self) -> State:
        states = [edit.state for edit in self.edits]
        if not self.changes and State.IMPOSSIBLE not in states:
            return State.DONE
        if self.unmet or State.IMPOSSIBLE in states:
            return State.IMPOSSIBLE
        return State.TODO


@dataclass(frozen=True)
class Plan:
    """A patch set's plan for ``base``, the commit it was made for."""

    base: str
    patches: tuple[PatchPlan, ...]

    @property
    def state(self) -> State:
        states = {patch.state for patch in self.patches}
        for state in (State.IMPOSSIBLE, State.TODO):
            if state in states:
                return state
        return State.DONE

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that carrying the plan out changes."""
        return tuple(dict.fromkeys(path for patch in self.patches for path in patch.changes))

    def refuse_impossible(self) -> None:
        """Raise where the patch set does not fit the base, with the first reason for it."""
        for planned in self.patches:
            if planned.state is not State.IMPOSSIBLE:
                continue
            impossible = [edit for edit in planned.edits if edit.state is State.IMPOSSIBLE]
            reasons = [item.reason for item in planned.unmet]
            reasons += [edit.reason for edit in impossible]
            if planned.unmet and all(unmet.since for unmet in planned.unmet):
                raise _too_old(planned.patch, planned.unmet)
            raise MpskitError(
                f"Patch {planned.patch.name} does not fit this base: {reasons[0]}.",
                hint="`mpskit status` shows each edit; upstream may have moved this code, so look "
                "for a newer patch set.",
            )


def plan(
    checkout: Checkout,
    patch_set: PatchSet,
    *,
    commit: str = "HEAD",
    allow_old_base: bool = False,
) -> Plan:
    """What applying ``patch_set`` on top of ``commit`` would do; reads git objects, writes nothing.

    ``allow_old_base`` lets a base pass that lacks files only because it is older than they are.
    """
    base = checkout.git.line("rev-parse", "--verify", f"{commit}^{{commit}}")
    tree = _PatchedTree(checkout, base, patch_set.paths)
    plans = []
    for index, patch in enumerate(patch_set.patches):
        ours = _texts_of_files(tree, patch, patch_set.patches[index + 1 :])
        plans.append(_plan_patch(tree, patch, ours, allow_old_base))
    return Plan(base, tuple(plans))


class _PatchedTree:
    """The base's tree with the changes of the patches planned so far laid over it."""

    def __init__(self, checkout: Checkout, base: str, paths: Iterable[str]) -> None:
        self._checkout = checkout
        self._base = base
        self._entries = checkout.git.entries(base, paths)
        self._contents: dict[str, bytes | None] = dict.fromkeys(paths)
        self._contents.update(checkout.read_all(base, paths))

    def read(self, path: str) -> bytes | None:
        if path not in self._contents:
            self._contents[path] = self._checkout.read(self._base, path)
        return self._contents[path]

    def read_text(self, path: str) -> str | None:
        content = self.read(path)
        return None if content is None else decode(content)

    def lay_over(self, changes: dict[str, bytes]) -> None:
        self._contents.update(changes)

    def missing(self, paths: Iterable[str]) -> list[str]:
        wanted = list(paths)
        present = self._checkout.git.entries(self._base, wanted)
        return [path for path in wanted if path not in present and self._contents.get(path) is None]

    def is_special(self, path: str) -> bool:
        """Whether ``path`` is there, but as a symbolic link, a directory or a submodule."""
        return path in self._entries and not self._entries[path].is_file


def decode(content: bytes) -> str:
    """Text whose every byte survives ``encode``, also where it is no UTF-8."""
    return content.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


Texts = Mapping[str, tuple[bytes, ...]]
"""By path, every text that a file of the patch has while the series is applied, the first as added.
"""


def _texts_of_files(tree: _PatchedTree, patch: Patch, behind: tuple[Patch, ...]) -> Texts:
    """The texts of ``patch``'s files, with what the patches ``behind`` it in the series edit."""
    edits = [edit for other in behind for edit in other.edits]
    texts = {}
    for file in patch.files:
        found = [file.content]
        for edit in edits:
            if edit.path == file.path:
                outcome = edit.evaluate(decode(found[-1]), tree.read_text)
                found += [encode(outcome.text)] if outcome.text is not None else []
        texts[file.path] = tuple(found)
    return texts


def _plan_patch(tree: _PatchedTree, patch: Patch, ours: Texts, allow_old_base: bool) -> PatchPlan:
    layouts = _Layouts.look(tree, patch, ours)
    changes: dict[str, bytes] = {}
    # Edits first: they ask what the base has, and our own new files are no part of the base.
    edits = [_plan_edit(tree, edit, changes) for edit in _edits_on(tree, patch, layouts)]
    # The patch may itself add what it expects of native_functions.yaml.
    declared = decode(changes.get(NATIVE_FUNCTIONS, tree.read(NATIVE_FUNCTIONS) or b""))
    unmet = [
        *_unmet_requirements(tree, patch.requires, allow_old_base),
        *(trouble for item in patch.expects for trouble in _unmet_expectation(declared, item)),
        *_unmet_layout(patch, layouts),
    ]
    may_replace = {path for layout in layouts.bases for path in layout.replaces}
    files = [
        _plan_file(tree, file, ours[file.path], file.path in may_replace, changes)
        for file in patch.files
    ]
    tree.lay_over(changes)
    layout = layouts.bases[0].name if len(layouts.bases) == 1 else None
    return PatchPlan(patch, layout, tuple(unmet), (*files, *edits), changes)


@dataclass(frozen=True)
class _Layouts:
    """Layouts that a tree has: ``bases`` by upstream's text, ``is_in`` where only by ours."""

    bases: tuple[Layout, ...]
    is_in: bool

    @classmethod
    def look(cls, tree: _PatchedTree, patch: Patch, ours: Texts) -> _Layouts:
        here = layouts_of(patch, tree.read_text)
        bases = tuple(item for item in here if tree.read(item.path) not in ours.get(item.path, ()))
        return cls(bases, is_in=bool(here) and not bases)


def _unmet_requirements(
    tree: _PatchedTree, requires: tuple[Requirement, ...], allow_old_base: bool
) -> list[Unmet]:
    missing = set(tree.missing(item.path for item in requires))
    unmet = []
    for item in requires:
        if allow_old_base and item.since:
            continue
        if item.path in missing:
            unmet.append(Unmet(item.path, f"no {item.path}: {item.absent}", item.since))
        elif item.contains and item.contains not in (tree.read_text(item.path) or ""):
            reason = f"no `{item.contains}` in {item.path}: {item.absent}"
            unmet.append(Unmet(item.path, reason, item.since))
    return unmet


def _unmet_expectation(declared: str, expectation: Expectation) -> list[Unmet]:
    table = dispatch_table(declared, expectation.function)
    if table is None:
        return [
            Unmet(NATIVE_FUNCTIONS, f"{NATIVE_FUNCTIONS} has no function {expectation.function}")
        ]
    return [
        Unmet(
            NATIVE_FUNCTIONS,
            f"{expectation.function} must dispatch {key} to {kernel}, and native_functions.yaml "
            f"says {table.get(key, 'nothing about ' + key)}",
        )
        for key, kernel in expectation.dispatch.items()
        if table.get(key) != kernel
    ]


def _unmet_layout(patch: Patch, layouts: _Layouts) -> list[Unmet]:
    if not patch.layouts or layouts.is_in or len(layouts.bases) == 1:
        return []
    return [Unmet(patch.layouts[0].path, unknown_layout(patch.layouts, layouts.bases))]


def _edits_on(tree: _PatchedTree, patch: Patch, layouts: _Layouts) -> list[Edit]:
    """The edits to plan: those of the base's layout, and once the patch is in, those of each.

    A tree with the patch in it no longer shows what it was made from; but whichever it was, no
    layout's edits may be left to do there.
    """
    if not layouts.is_in:
        return [*patch.common_edits, *(edit for layout in layouts.bases for edit in layout.edits)]
    every = [edit for layout in patch.layouts for edit in layout.edits]
    return [*patch.common_edits, *(edit for edit in every if tree.read(edit.path) is not None)]


def _plan_file(
    tree: _PatchedTree,
    file: PatchFile,
    ours: tuple[bytes, ...],
    may_replace: bool,
    changes: dict[str, bytes],
) -> EditPlan:
    present = tree.read(file.path)
    state, what, reason = State.TODO, "add", ""
    if tree.is_special(file.path):
        state, reason = State.IMPOSSIBLE, f"{file.path} is no regular file in the base"
    elif present in ours:
        state = State.DONE
    elif present is not None and (file.replaces or may_replace):
        what = "replace"
        lost = lost_registrations(decode(present), decode(file.content))
        if lost:
            state = State.IMPOSSIBLE
            reason = f"upstream's {file.path} also registers {', '.join(lost)}, and ours does not"
    elif present is not None:
        state = State.IMPOSSIBLE
        reason = f"the base has its own {file.path}, with another text"
    if state is State.TODO:
        changes[file.path] = file.content
    return EditPlan("file", file.path, what, state, reason, file)


def _plan_edit(tree: _PatchedTree, edit: Edit, changes: dict[str, bytes]) -> EditPlan:
    content = changes.get(edit.path, tree.read(edit.path))
    if tree.is_special(edit.path):
        outcome = Outcome.impossible(f"{edit.path} is no regular file in the base")
    elif content is None and may_be_left_out(edit):
        outcome = Outcome.done("left out: the base has no such file")
    elif content is None:
        outcome = Outcome.impossible(f"the base has no {edit.path}")
    else:
        outcome = edit.evaluate(decode(content), tree.read_text)
    if outcome.text is not None:
        changes[edit.path] = encode(outcome.text)
    return EditPlan(edit.kind, edit.path, edit.describe(), outcome.state, outcome.reason, edit)


def _too_old(patch: Patch, unmet: tuple[Unmet, ...]) -> MpskitError:
    versions = [item.since for item in unmet if item.since]
    newest = max(versions, key=lambda version: [int(part) for part in version.split(".")])
    return MpskitError(
        f"This base is too old for patch {patch.name}: {unmet[0].reason}.",
        hint=f"Check out PyTorch {newest} or newer, or go on regardless with --allow-old-base.",
    )


def write_patched_tree(checkout: Checkout, git: Git, base: str, changes: dict[str, bytes]) -> str:
    """Store the tree that ``base`` becomes with ``changes`` through ``git``; gives its id."""
    modes = {path: entry.mode for path, entry in checkout.git.entries(base, changes).items()}
    entries = {
        path: Entry(modes.get(path, REGULAR_FILE), git.write_blob(content))
        for path, content in changes.items()
    }
    return git.write_tree(base, entries)
