"""Integer constant expressions, as attributes have them: ``[[buffer(FIRST + 1)]]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Lookup = Callable[[str], int | None]
"""The value of a name, None where it is not known."""

_SIZES = {
    **dict.fromkeys(("bool", "char", "uchar", "int8_t", "uint8_t"), 1),
    **dict.fromkeys(("short", "ushort", "half", "bfloat", "int16_t", "uint16_t"), 2),
    **dict.fromkeys(("int", "uint", "unsigned", "float", "int32_t", "uint32_t"), 4),
    **dict.fromkeys(("long", "ulong", "size_t", "ptrdiff_t", "int64_t", "uint64_t"), 8),
}
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)[uUlL]*")
# Lowest first. What is not here is no part of an integer constant expression.
_PRECEDENCE = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="),
    ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_LEVEL = {operator: level for level, group in enumerate(_PRECEDENCE) for operator in group}
# Longer ones are no expressions that people write, and would nest beyond Python's stack.
_MAX_TOKENS = 96


def evaluate(texts: Sequence[str], lookup: Lookup) -> int | None:
    """The value of the expression that these tokens spell, None where it has none here."""
    if not texts or len(texts) > _MAX_TOKENS:
        return None
    parser = _Parser(_joined_shifts(texts), lookup)
    try:
        value = parser.conditional()
    except (_NoConstantError, ZeroDivisionError, ValueError, OverflowError, MemoryError):
        return None
    return value if parser.is_at_end else None


def _joined_shifts(texts: Sequence[str]) -> list[str]:
    joined: list[str] = []
    for text in texts:
        if text in ("<", ">") and joined and joined[-1] == text:
            joined[-1] += text
        else:
            joined.append(text)
    return joined


class _NoConstantError(Exception):
    pass


class _Parser:
    """Precedence climbing over the operators of C."""

    def __init__(self, texts: Sequence[str], lookup: Lookup) -> None:
        self._texts = texts
        self._lookup = lookup
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._texts)

    def _peek(self) -> str:
        return self._texts[self._at] if self._at < len(self._texts) else ""

    def _accept(self, text: str) -> bool:
        found = self._peek() == text
        self._at += found
        return found

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise _NoConstantError

    def conditional(self) -> int:
        condition = self._binary(0)
        if not self._accept("?"):
            return condition
        first = self.conditional()
        self._expect(":")
        second = self.conditional()
        return first if condition else second

    def _binary(self, level: int) -> int:
        value = self._unary()
        while (found := _LEVEL.get(operator := self._peek(), -1)) >= level:
            self._at += 1
            value = _apply(operator, value, self._binary(found + 1))
        return value

    def _unary(self) -> int:
        for operator, function in _UNARY.items():
            if self._accept(operator):
                return function(self._unary())
        if self._accept("("):
            if self._peek() in _SIZES:  # a cast
                self._at += 1
                self._expect(")")
                return self._unary()
            value = self.conditional()
            self._expect(")")
            return value
        return self._primary()

    def _primary(self) -> int:
        text = self._peek()
        self._at += 1
        if number := _NUMBER.fullmatch(text.replace("'", "")):
            digits = number[1]
            is_octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
            return int(digits, 8 if is_octal else 0)
        if text in ("true", "false"):
            return int(text == "true")
        if text == "sizeof":
            self._expect("(")
            size = _SIZES.get(self._peek())
            self._at += 1
            self._expect(")")
            return _known(size)
        if text == "static_cast":
            self._expect("<")
            _known(_SIZES.get(self._peek()))
            self._at += 1
            self._expect(">")
            return self._unary()
        if text in _SIZES and self._peek() == "(":
            return self._unary()
        while self._accept("::"):
            text = self._peek()
            self._at += 1
        return _known(self._lookup(text))


def _known(value: int | None) -> int:
    if value is None:
        raise _NoConstantError
    return value


_UNARY: dict[str, Callable[[int], int]] = {
    "-": lambda a: -a,
    "+": lambda a: a,
    "!": lambda a: int(not a),
    "~": lambda a: ~a,
}


def _apply(operator: str, a: int, b: int) -> int:
    if operator in ("/", "%"):  # C rounds towards zero
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if operator == "/" else a - b * quotient
    if operator in ("<<", ">>") and not 0 <= b < 64:
        raise _NoConstantError
    return int(_OPERATORS[operator](a, b))


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: bool(a) or bool(b),
    "&&": lambda a, b: bool(a) and bool(b),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
