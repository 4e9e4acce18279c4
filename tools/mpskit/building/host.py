"""The ``host`` target: each .mm file of the patch set as Objective-C++ for arm64 macOS."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpskit.building import codegen
from mpskit.building.context import Context
from mpskit.building.macho import defined_symbols, kernel_symbol
from mpskit.building.process import Finished
from mpskit.building.result import Built, Step
from mpskit.building.shader_header import write_shader_headers
from mpskit.building.subject import Subject
from mpskit.building.toolchain import Toolchain, open_toolchain
from mpskit.errors import MpskitError
from mpskit.metal.errors import Diagnostic
from mpskit.metal.frontend.preprocess import read_diagnostics

_SDK_LIMITS = "The objects are compiled; nothing is linked or run."
_LIMITS = (
    "Compiled against mpskit's declarations of Apple's frameworks, not the SDK's; nothing is "
    "linked or run."
)

_JIT_MACRO = "PYTORCH_JIT_COMPILE_SHADERS"
# As PyTorch's CMakeLists.txt compiles Objective-C++, with the warnings that its CI turns into
# errors; optimised, because zig adds sanitizers to what is not.
_FLAGS = (
    *("-x", "objective-c++", "-fblocks", "-fno-objc-arc", "-O1", "-g0"),
    *("-DUSE_MPS", "-DNDEBUG", "-DAT_PER_OPERATOR_HEADERS"),
    *("-Wall", "-Wextra", "-Wnarrowing", "-Wsuggest-override", "-Wnewline-eof"),
    *("-Wno-unused-parameter", "-Wno-missing-field-initializers", "-Wno-unused-function"),
    *("-Wno-missing-braces", "-Wno-unknown-pragmas"),
)
_DEFAULT_STANDARD = "20"
_MAX_MESSAGES = 20


@dataclass(frozen=True)
class Variant:
    """One way in which PyTorch's build compiles a source: the shaders' place, and its macros."""

    path: str
    name: str
    definitions: tuple[str, ...] = ()

    @property
    def object_name(self) -> str:
        return f"{Path(self.path).stem}{'-jit' if self.definitions else ''}.o"


def build(context: Context) -> Built:
    """Compiles each ``.mm`` file, once for each place that its shader library can come from."""
    with open_toolchain() as toolchain:
        context.announce("generated headers", 0, 1)
        generated = codegen.generate(context)
        variants = list(_variants(context.subject, toolchain))
        steps = []
        for done, variant in enumerate(variants):
            context.announce(f"{Path(variant.path).name}, {variant.name}", done, len(variants))
            steps.append(compile_variant(context, toolchain, generated, variant))
    context.announce("host code", len(variants), len(variants))
    return Built(tuple(steps), _limits(context.subject, toolchain))


def _limits(subject: Subject, toolchain: Toolchain) -> str:
    if toolchain.has_sdk:
        return _SDK_LIMITS
    edited = ", ".join(subject.edited_host_sources)
    return f"{_LIMITS} Not compiled, since it needs the SDK: {edited}." if edited else _LIMITS


def _variants(subject: Subject, toolchain: Toolchain) -> Iterator[Variant]:
    # Upstream's own files use far more of the frameworks than our declarations hold.
    edited = subject.edited_host_sources if toolchain.has_sdk else ()
    for path in (*subject.host_sources, *edited):
        if _JIT_MACRO not in subject.read(path):
            yield Variant(path, "no shaders")
            continue
        yield Variant(path, "bundled shaders")
        yield Variant(path, "shaders compiled at run time", (f"-D{_JIT_MACRO}",))


def compile_variant(
    context: Context,
    toolchain: Toolchain,
    generated: Path,
    variant: Variant,
    flags: Sequence[str] = (),
) -> Step:
    """Compiles one source one way, and looks into the object.

    Args:
        context: of the build.
        toolchain: compiles.
        generated: the include folder with the generated ``ATen/…``.
        variant: what, and how.
        flags: added to the compiler's, before the source.
    """
    subject = context.subject
    product = context.out / "host" / variant.object_name
    product.parent.mkdir(exist_ok=True)
    product.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=context.out, prefix=".host-") as scratch:
        shaders = write_shader_headers(context, variant.path, Path(scratch, "shaders"))
        draft = Path(scratch, product.name)
        finished = toolchain.compile(
            [
                *compile_flags(subject, toolchain, generated),
                f"-I{shaders}",
                *variant.definitions,
                *flags,
                *("-c", subject.root / variant.path, "-o", draft),
            ],
            context.log,
        )
        messages = _messages(finished, subject)
        symbols = "" if messages else _symbols(draft, subject, variant.path, messages)
        if not messages:
            draft.replace(product)
    name = f"{Path(variant.path).name}, {variant.name}"
    if messages:
        return Step(name, False, finished.seconds, messages=tuple(messages[:_MAX_MESSAGES]))
    detail = f"arm64 Mach-O object by {toolchain.name}{symbols}"
    return Step(name, True, finished.seconds, detail, product=str(product))


def compile_flags(subject: Subject, toolchain: Toolchain, generated: Path) -> list[str]:
    """Language, warnings and include folders: generated headers first, torch's own last."""
    before = (generated, *subject.include_dirs())
    after = (*toolchain.framework_dirs, _torch_headers())
    return [
        f"-std=c++{cxx_standard(subject.root)}",
        *_FLAGS,
        *(f"-I{folder}" for folder in before),
        *(f"-isystem{folder}" for folder in after),
    ]


def _torch_headers() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise MpskitError("torch is not installed for this Python.", hint="pip install torch")
    return Path(spec.origin).parent / "include"


def cxx_standard(root: Path) -> str:
    """The C++ standard that the base's CMakeLists.txt sets, such as ``20``."""
    try:
        text = (root / "CMakeLists.txt").read_text(errors="replace")
    except OSError:
        return _DEFAULT_STANDARD
    # The standard stands behind the cache variable's name, which a builder may override.
    match = re.search(r"set\(\s*CMAKE_CXX_STANDARD\s+(\d+)", text)
    return match[1] if match else _DEFAULT_STANDARD


def _messages(finished: Finished, subject: Subject) -> list[str]:
    """Every error, and the warnings about the patch set's own files: PyTorch's CI has -Werror."""
    own = {str(subject.root / path) for path in subject.paths}
    found: dict[str, None] = {}
    for item in read_diagnostics(finished.output):
        if item.severity == "error" or (item.severity == "warning" and item.location.file in own):
            found[_shown(item, subject.root)] = None
    if not found and finished.status != 0:
        found[finished.output.strip() or f"the compiler ended with {finished.status}"] = None
    return list(found)


def _shown(item: Diagnostic, root: Path) -> str:
    location = str(item.location).removeprefix(f"{root}/")
    return f"{location}: {item.severity}: {item.message}"


def _symbols(file: Path, subject: Subject, path: str, messages: list[str]) -> str:
    """Says which kernels the object defines; a kernel that is missing becomes a message."""
    try:
        symbols = defined_symbols(file)
    except MpskitError as error:
        messages.append(error.message)
        return ""
    text, found = subject.read(path), []
    for kernel in dict.fromkeys(item.kernel for item in subject.registrations):
        if not re.search(rf"\b{re.escape(kernel)}\b", text):
            continue
        symbol = kernel_symbol(kernel, symbols)
        if symbol is None:
            messages.append(f"{path}: the object defines no {kernel}")
        else:
            found.append(symbol)
    return f", defines {', '.join(found)}" if found else ""
