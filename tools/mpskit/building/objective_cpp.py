"""Compiles Objective-C++ sources of a checkout to objects, and reads what the compiler says."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpskit.building.context import Context
from mpskit.building.macho import defined_symbols, kernel_symbol
from mpskit.building.process import Finished
from mpskit.building.result import Step
from mpskit.building.shader_header import write_shader_headers
from mpskit.building.toolchain import Toolchain
from mpskit.errors import MpskitError
from mpskit.metal.errors import Diagnostic
from mpskit.metal.frontend.preprocess import read_diagnostics

# As PyTorch's CMakeLists.txt compiles Objective-C++, with the warnings that its CI turns into
# errors; optimised, because zig adds sanitizers to what is not.
_FLAGS = (
    *("-x", "objective-c++", "-fblocks", "-fno-objc-arc", "-O1", "-g0", "-ferror-limit=0"),
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

    @property
    def step_name(self) -> str:
        return f"{Path(self.path).name}, {self.name}"


@dataclass(frozen=True)
class ObjectiveCpp:
    """A compiler for the sources of one checkout.

    Attributes:
        context: of the build.
        toolchain: the compiler proper.
        generated: the include folder with the generated ``ATen/…``.
    """

    context: Context
    toolchain: Toolchain
    generated: Path

    def flags(self) -> list[str]:
        """Language, warnings and include folders: generated headers first, torch's own last."""
        subject = self.context.subject
        before = (self.generated, *subject.include_dirs())
        after = (*self.toolchain.framework_dirs, _torch_headers())
        return [
            f"-std=c++{cxx_standard(subject.root)}",
            *_FLAGS,
            *(f"-I{folder}" for folder in before),
            *(f"-isystem{folder}" for folder in after),
        ]

    def compile(self, variant: Variant, flags: Sequence[str] = ()) -> Step:
        """Compiles a source as it stands in the checkout, and looks into the object.

        Args:
            variant: what, and how.
            flags: added to the compiler's, before the source.
        """
        product = self.context.out / "host" / variant.object_name
        product.parent.mkdir(exist_ok=True)
        product.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=self.context.out, prefix=".host-") as scratch:
            draft = Path(scratch, product.name)
            source = self.context.subject.root / variant.path
            finished = self._run(source, variant, draft, flags)
            messages = [self._shown(item) for item in self._faults(finished)]
            symbols = "" if messages else self._symbols(draft, variant.path, messages)
            if not messages:
                draft.replace(product)
        if messages:
            return _failed(variant, finished.seconds, messages)
        detail = f"arm64 Mach-O object by {self.toolchain.name}{symbols}"
        return Step(variant.step_name, True, finished.seconds, detail, product=str(product))

    def compare(self, variant: Variant, before: str, flags: Sequence[str] = ()) -> Step:
        """Compiles a source and its earlier text ``before``; only new messages make it fail.

        For sources of upstream's that use more of the frameworks than our declarations hold.
        """
        source = self.context.subject.root / variant.path
        with tempfile.TemporaryDirectory(dir=self.context.out, prefix=".host-") as scratch:
            earlier = Path(scratch, source.name)
            earlier.write_text(before, encoding="utf-8")
            old = self._run(earlier, variant, Path(scratch, "old.o"), flags)
            new = self._run(source, variant, Path(scratch, "new.o"), flags)
        known = {item.message for item in self._faults(old, str(earlier))}
        faults = [item for item in self._faults(new) if item.message not in known]
        seconds = old.seconds + new.seconds
        if faults:
            return _failed(variant, seconds, [self._shown(item) for item in faults])
        detail = (
            f"no object: it uses more of the frameworks than mpskit declares, {len(known)} "
            "messages before and after the edit, none of them new"
        )
        return Step(variant.step_name, True, seconds, detail)

    def _run(self, source: Path, variant: Variant, product: Path, flags: Sequence[str]) -> Finished:
        shaders = write_shader_headers(self.context, variant.path, product.with_name("shaders"))
        return self.toolchain.compile(
            [
                *self.flags(),
                f"-I{shaders}",
                *variant.definitions,
                *flags,
                *("-c", source, "-o", product),
            ],
            self.context.log,
        )

    def _faults(self, finished: Finished, *sources: str) -> list[Diagnostic]:
        """Each error, and the warnings about the patch set's own files: PyTorch's CI has -Werror.

        Raises:
            MpskitError: the compiler failed and gave no reason in the form of compilers.
        """
        subject = self.context.subject
        own = {*sources, *(str(subject.root / path) for path in subject.paths)}
        faults = [
            item
            for item in read_diagnostics(finished.output)
            if item.severity == "error"
            or (item.severity == "warning" and item.location.file in own)
        ]
        if not faults and finished.status != 0:
            raise MpskitError(
                f"{self.toolchain.name} failed: "
                + (finished.output.strip() or f"exit status {finished.status}"),
                hint="`mpskit doctor` says whether this compiler is in order.",
            )
        # A template's message comes once for each instantiation.
        return list(dict.fromkeys(faults))

    def _shown(self, item: Diagnostic) -> str:
        location = str(item.location).removeprefix(f"{self.context.subject.root}/")
        return f"{location}: {item.severity}: {item.message}"

    def _symbols(self, file: Path, path: str, messages: list[str]) -> str:
        """Says which kernels the object defines; a kernel that is missing becomes a message."""
        try:
            symbols = defined_symbols(file)
        except MpskitError as error:
            messages.append(error.message)
            return ""
        subject, found = self.context.subject, []
        text = subject.read(path)
        for kernel in dict.fromkeys(item.kernel for item in subject.registrations):
            if not re.search(rf"\b{re.escape(kernel)}\b", text):
                continue
            symbol = kernel_symbol(kernel, symbols)
            if symbol is None:
                messages.append(f"{path}: the object defines no {kernel}")
            else:
                found.append(f"{kernel} as {symbol}")
        return f", defines {', '.join(found)}" if found else ""


def _failed(variant: Variant, seconds: float, messages: list[str]) -> Step:
    return Step(variant.step_name, False, seconds, messages=tuple(messages[:_MAX_MESSAGES]))


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
    match = re.search(r"set\(\s*CMAKE_CXX_STANDARD\s+(\d+)", text)
    return match[1] if match else _DEFAULT_STANDARD
