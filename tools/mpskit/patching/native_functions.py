"""The one thing we ask of native_functions.yaml: which kernel an op dispatches to.

Read with patterns and not with a YAML parser, which takes ten seconds for the 16,000 lines.
"""

from __future__ import annotations

import re

_DISPATCH = re.compile(r"^  dispatch:[^\n]*\n(?P<entries>(?:    [^\n]*\n|\s*\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(?P<keys>[\w, ]+):\s*(?P<kernel>[\w:]+)", re.MULTILINE)


def dispatch_table(yaml_text: str, function: str) -> dict[str, str] | None:
    """Kernel by dispatch key of ``function`` (such as ``_log_softmax.out``).

    None where the file has no such function; empty where the function has no ``dispatch``.
    """
    text = yaml_text.replace("\r\n", "\n")
    start = re.search(rf"^- func: {re.escape(function)}\(", text, re.MULTILINE)
    if not start:
        return None
    end = text.find("\n- ", start.end())
    dispatch = _DISPATCH.search(text[start.start() : end + 1 if end >= 0 else len(text)])
    if not dispatch:
        return {}
    return {
        key.strip(): entry.group("kernel")
        for entry in _ENTRY.finditer(dispatch.group("entries"))
        for key in entry.group("keys").split(",")
    }
