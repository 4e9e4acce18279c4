"""The one exception type that a user sees as a sentence instead of a traceback."""

from __future__ import annotations


class MpskitError(Exception):
    """Something the user can mend.

    ``message`` says what is wrong and where, ``hint`` what to do next. The command line prints
    both and exits with ``exit_code``.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message
