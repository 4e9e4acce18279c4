"""Signatures of native kernels: as torchgen declares them and as host code defines them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mpskit.patching.cpp_source import CppSource, Span, UnbalancedError, find_definitions


@dataclass(frozen=True)
class Signature:
    """A kernel and the types of its parameters, written so that equal types are equal texts."""

    kernel: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kernel}({', '.join(self.parameters)})"


def declared_signature(header: str, kernel: str) -> Signature | None:
    """What a generated ``*_native.h`` declares for ``kernel``; None where it does not."""
    name = re.escape(kernel)
    structured = rf"struct TORCH_API structured_{name} :[^{{]*\{{\s*void impl(?P<head>\()"
    plain = rf"^TORCH_API [^;(]*[\s&]{name}(?P<head>\()"
    match = re.search(structured, header) or re.search(plain, header, re.MULTILINE)
    return Signature(kernel, _parameters(header, match.start("head"))) if match else None


def defined_signature(source: str, kernel: str) -> Signature | None:
    """What host code defines for ``kernel``; None where it does not."""
    cpp = CppSource(source)
    span = _definition(cpp, f"TORCH_IMPL_FUNC({kernel})")
    if span:
        head = cpp.code.index(")", span.start) + 1
        return Signature(kernel, _parameters(cpp.code, cpp.code.index("(", head)))
    match = re.search(rf"^\w[\w:<>,&* ]*[\s&*]{re.escape(kernel)}(?P<head>\()", cpp.code, re.M)
    return Signature(kernel, _parameters(cpp.code, match.start("head"))) if match else None


def _definition(cpp: CppSource, head: str) -> Span | None:
    try:
        return next(iter(find_definitions(cpp, head)), None)
    except UnbalancedError:
        return None


def _parameters(text: str, opening: int) -> tuple[str, ...]:
    """The types between the parenthesis at ``opening`` and its partner."""
    types, depth, start = [], 0, opening + 1
    for position in range(opening, len(text)):
        character = text[position]
        if character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
        if depth == 0 or (depth == 1 and character == ","):
            types.append(_type(text[start:position]))
            start = position + 1
        if depth == 0:
            break
    return tuple(item for item in types if item)


def _type(parameter: str) -> str:
    """``const Tensor &`` of ``const at::Tensor& self``, ``int64_t`` of ``const int64_t dim``."""
    text = " ".join(re.sub(r"([&*<>,])", r" \1 ", parameter.partition("=")[0]).split())
    text = re.sub(r"(?<!\w)(::)?(at|c10)::", "", text).replace("::std::", "std::")
    text = re.sub(r"(?<=[\w&*>]) \w+$", "", text) if re.search(r"[ &*>] ?\w+$", text) else text
    # const says nothing to a caller where the parameter is a copy.
    return text if re.search(r"[&*]", text) else re.sub(r"^const ", "", text)
