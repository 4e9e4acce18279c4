"""Checks of the files' texts: what is gone, what must not be there, how they begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from mpskit.patching import Patch
from mpskit.patching.cpp_source import CppSource, UnbalancedError, find_definitions
from mpskit.patching.edits import Edit, RemoveDefinition, State
from mpskit.pullrequest.applied import PatchCommit
from mpskit.pullrequest.checks.check import Check, judged
from mpskit.pullrequest.declarations import Exemption, exempt

_FAST = re.compile(r"\b(?:metal\s*::\s*)?fast\s*::\s*\w+")
_METAL_SUFFIXES = (".metal", ".h")
_LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
_LICENCE = re.compile(r"copyright|licen[cs]e|SPDX", re.IGNORECASE)
_HEAD_LINES = 5
_UPSTREAM_TEST = re.compile(r"^test/(?:.+/)?test_\w+\.py$")
_OWNERS = re.compile(r'^# Owner\(s\): \["[^"]+"(?:, "[^"]+")*\]$')


def replaced_code(item: PatchCommit) -> Check:
    """What the patch replaces is gone, with the includes and cache keys that only it needed."""
    problems = [*_edits_left(item), *_includes_left(item), *_keys_left(item)]
    heads = ", ".join(edit.head for edit in _removals_made(item))
    otherwise = f"{heads or 'no definition'} removed, with its includes and cache keys"
    return judged("replaced code is gone", problems, otherwise, item.patch.name)


def _removals_made(item: PatchCommit) -> list[RemoveDefinition]:
    """The removals of the patch that had something to remove."""
    before = item.texts_before()
    return [
        edit
        for edit in _every_edit(item.patch)
        if isinstance(edit, RemoveDefinition)
        and edit.path in before
        and _definitions(before[edit.path], edit.head)
    ]


def _every_edit(patch: Patch) -> list[Edit]:
    """The edits of the patch on any layout: a patched tree does not show which one it had."""
    return [*patch.common_edits, *(edit for layout in patch.layouts for edit in layout.edits)]


def _definitions(text: str, head: str) -> list[str]:
    try:
        return [text[span.start : span.end] for span in find_definitions(CppSource(text), head)]
    except UnbalancedError:
        return []


def _edits_left(item: PatchCommit) -> Iterator[str]:
    texts = item.texts()
    changed = set(texts) & set(item.texts_before())
    for edit in (edit for edit in _every_edit(item.patch) if edit.path in changed):
        text = texts[edit.path]
        outcome = edit.evaluate(text, texts.get)
        if outcome.state is not State.DONE:
            yield f"{edit.path}: {edit.describe()} is not done"


def _includes_left(item: PatchCommit) -> Iterator[str]:
    """Includes of the replaced functions' headers, in files that no longer define them."""
    roots = {expected.function.partition(".")[0] for expected in item.patch.expects}
    kernels = {name for expected in item.patch.expects for name in expected.dispatch.values()}
    texts = item.texts()
    for path in sorted(set(texts) & set(item.texts_before())):
        text = texts[path]
        code = CppSource(text).code
        if any(re.search(rf"\b{kernel}\b", code) for kernel in kernels):
            continue
        for root in sorted(roots):
            header = f"ATen/ops/{root}_native.h"
            calls_it = re.search(rf"\bat::native::(?:structured_)?{root}\w*\s*\(", code)
            if f"<{header}>" in text and not calls_it:
                yield f"{path} still includes <{header}> and no longer needs it"


def _keys_left(item: PatchCommit) -> Iterator[str]:
    """Keys of cached graphs: literals of the removed code that name the op, seen again."""
    before, texts = item.texts_before(), item.texts()
    for edit in _removals_made(item):
        names = {expected.function.partition(".")[0].strip("_") for expected in item.patch.expects}
        for definition in _definitions(before[edit.path], edit.head):
            keys = {
                key
                for key in _LITERAL.findall(_cache_code(definition))
                if any(name in key for name in names)
            }
            for path, text in texts.items():
                for key in sorted(keys & set(_LITERAL.findall(_cache_code(text)))):
                    yield f'{path} still has the cache key "{key}"'


def _cache_code(text: str) -> str:
    """The statements that make keys: those with a ``key`` or a cached graph in them."""
    statements = text.split(";")
    return ";".join(item for item in statements if re.search(r"\bkey\b|CachedGraph", item))


def fast_math(item: PatchCommit, declared: tuple[Exemption, ...]) -> Check:
    """Metal's imprecise functions are used only where the patch says so."""
    added = {file.path for file in item.patch.files}
    problems = []
    for path, text in item.texts().items():
        if path not in added or not path.endswith(_METAL_SUFFIXES) or exempt(path, declared):
            continue
        source = CppSource(text)
        for match in _FAST.finditer(source.code):
            problems.append(f"{path}:{source.line_of(match.start())} uses {match.group()}")
    reasons = ", ".join(f"{entry.subject} ({entry.why})" for entry in declared)
    otherwise = f"only where declared: {reasons}" if declared else "none in the kernels"
    return judged("no fast math", problems, otherwise, item.patch.name)


def form(item: PatchCommit) -> Check:
    """Files begin as their neighbours do and end in one newline; no tabs, no trailing blanks."""
    texts, before = item.texts(), item.texts_before()
    problems = []
    for path, text in texts.items():
        old_lines = set(before[path].split("\n")) if path in before else set()
        problems += [f"{path}: {problem}" for problem in _line_problems(text, old_lines)]
        if path not in before:
            problems += [f"{path}: {problem}" for problem in _head_problems(item, path, text)]
    return judged("form of the files", problems, f"{len(texts)} files", item.patch.name)


def _line_problems(text: str, old_lines: set[str]) -> Iterator[str]:
    if not text.endswith("\n"):
        yield "no newline at the end"
    elif text.endswith("\n\n"):
        yield "empty lines at the end"
    for number, line in enumerate(text.split("\n"), 1):
        if line in old_lines:
            continue
        if "\t" in line:
            yield f"line {number} has a tab"
        if line != line.rstrip():
            yield f"line {number} ends in blanks"


def _head_problems(item: PatchCommit, path: str, text: str) -> Iterator[str]:
    if _UPSTREAM_TEST.match(path) and not _OWNERS.match(text.partition("\n")[0]):
        yield 'the first line does not name its owners, as in # Owner(s): ["module: mps"]'
    neighbours = _neighbours(item, path)
    if len(neighbours) < 2:
        return
    theirs = [_has_licence(neighbour) for neighbour in neighbours]
    if all(theirs) and not _has_licence(text):
        yield f"no licence head, and all of its {len(neighbours)} neighbours have one"
    if not any(theirs) and _has_licence(text):
        yield f"a licence head, and none of its {len(neighbours)} neighbours has one"


def _has_licence(text: str) -> bool:
    return _LICENCE.search("\n".join(text.splitlines()[:_HEAD_LINES])) is not None


def _neighbours(item: PatchCommit, path: str) -> list[str]:
    """The base's files of the same kind in the same directory."""
    place = PurePosixPath(path)
    folder = [] if place.parent == PurePosixPath() else ["--", f"{place.parent}/"]
    names = item.checkout.git.fields("ls-tree", "-z", "--name-only", item.parent, *folder)
    alike = [name for name in names if PurePosixPath(name).suffix == place.suffix]
    contents = item.checkout.read_all(item.parent, alike)
    return [content.decode(errors="replace") for content in contents.values()]
