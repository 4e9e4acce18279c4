"""Footnotes that name the file behind a number."""

from __future__ import annotations


class Footnotes:
    """Numbers each text once, in the order in which they are first referred to."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def mark(self, text: str) -> str:
        """What stands in the running text for the footnote ``text``."""
        if text not in self._texts:
            self._texts.append(text)
        return f"[^{self._texts.index(text) + 1}]"

    def render(self) -> str:
        return "\n".join(f"[^{i}]: {text}" for i, text in enumerate(self._texts, 1))
