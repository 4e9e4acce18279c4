from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpskit.patching.edits import (
    Edit,
    InsertAfter,
    InsertBefore,
    RemoveDefinition,
    RemoveInclude,
    RemoveLine,
    ReplaceIn,
    State,
)

HEAD = "TORCH_IMPL_FUNC(op_out)"
DEFINITION = f"{HEAD}(const Tensor& self) {{\n  run();\n}}\n"


def no_other_file(path: str) -> None:
    del path


def replacement(path: str) -> str | None:
    return DEFINITION if path == "Op.mm" else None


REMOVE = RemoveDefinition("A.mm", HEAD, replaced_by="Op.mm")
INCLUDE = RemoveInclude("A.mm", "ATen/ops/op_native.h", uses=(r"\bop_out\b",))
REPLACE = ReplaceIn("A.mm", old="old(1,\n  2);", new="new(1,\n  2);")
LINE = RemoveLine("A.metal", "REGISTER(log, T)", replaced_by="Op.mm")
INSERT = InsertAfter("A.mm", anchor='"softmax",\n', text='"log_softmax",\n')
AHEAD = InsertBefore("test.py", anchor="class TestPad:\n", text="class TestOp:\n    pass\n\n\n")


def apply(edit: Edit, text: str) -> str:
    outcome = edit.evaluate(text, replacement)
    assert (outcome.state, outcome.reason) == (State.TODO, "")
    assert outcome.text is not None
    return outcome.text


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        (REMOVE, f"int a;\n\n{DEFINITION}\nint b;\n", "int a;\n\nint b;\n"),
        (INCLUDE, "#include <a.h>\n#  include <ATen/ops/op_native.h> // op\n", "#include <a.h>\n"),
        (INCLUDE, '#include "ATen/ops/op_native.h"\n// op_out\n', "// op_out\n"),
        (LINE, "REGISTER(T)\nREGISTER(log,   T)\n", "REGISTER(T)\n"),
        (
            LINE,
            "#define ALL(T) \\\n  REGISTER(log, T)  \\\n  REGISTER(T)\n",
            "#define ALL(T) \\\n  REGISTER(T)\n",
        ),
        (
            LINE,
            "#define ALL(T) \\\n  REGISTER(T)  \\\n  REGISTER(log, T)\n\nALL(float)\n",
            "#define ALL(T) \\\n  REGISTER(T)\n\nALL(float)\n",
        ),
        (REPLACE, "f();\nold(1,\n  2);\n", "f();\nnew(1,\n  2);\n"),
        (INSERT, '["softmax",\n"tanh"]', '["softmax",\n"log_softmax",\n"tanh"]'),
        (
            AHEAD,
            "x = 1\n\n\nclass TestPad:\n    pass\n",
            "x = 1\n\n\nclass TestOp:\n    pass\n\n\nclass TestPad:\n    pass\n",
        ),
        (dataclasses.replace(REPLACE, old="a(x)", new="a(x, y)"), "a(x);", "a(x, y);"),
        (dataclasses.replace(REPLACE, old="a(x, y)", new="a(x"), "a(x, y);", "a(x;"),
    ],
)
def test_an_edit_is_done_and_then_stays_done(edit: Edit, before: str, after: str) -> None:
    assert apply(edit, before) == after
    assert edit.evaluate(after, replacement).state is State.DONE
    # Windows line ends stay what they are.
    windows = before.replace("\n", "\r\n")
    assert apply(edit, windows) == after.replace("\n", "\r\n")
    assert edit.evaluate(after.replace("\n", "\r\n"), replacement).state is State.DONE


@pytest.mark.parametrize(
    ("edit", "text", "reason"),
    [
        (
            REMOVE,
            "int a;\n",
            f"looked for the definition of {HEAD} in A.mm and in Op.mm, and neither has it",
        ),
        (REMOVE, DEFINITION * 2, f"A.mm defines {HEAD} 2 times (lines 1, 4)"),
        (REMOVE, f"{HEAD} {{", f"{HEAD} in A.mm: the definition at line 1 never closes"),
        (LINE, "REGISTER(T)\n", "looked for `REGISTER(log, T)` in A.metal, and it is not there"),
        (
            LINE,
            "REGISTER(log, T)\nREGISTER(log, T) \\\n",
            "`REGISTER(log, T)` must stand in A.metal once, and stands there 2 times (lines 1, 2)",
        ),
        (REPLACE, "f();\n", "looked for `old(1, ...` in A.mm, and it is not there"),
        (
            REPLACE,
            "old(1,\n  2);\n" * 2,
            "`old(1, ...` must stand in A.mm once, and stands there 2 times (lines 1, 3)",
        ),
        (AHEAD, "pass\n", "looked for `class TestPad:` in test.py, and it is not there"),
        (INSERT, "[]", 'looked for `"softmax",` in A.mm, and it is not there'),
        (
            INSERT,
            '"softmax",\n"softmax",\n',
            '`"softmax",` must stand in A.mm once, and stands there 2 times (lines 1, 2)',
        ),
    ],
)
def test_an_impossible_edit_says_what_was_looked_for(edit: Edit, text: str, reason: str) -> None:
    outcome = edit.evaluate(text, no_other_file)
    assert (outcome.state, outcome.reason) == (State.IMPOSSIBLE, reason)


def test_an_include_in_use_is_kept() -> None:
    text = "#include <ATen/ops/op_native.h>\n\nvoid f() { op_out(); }\n"
    outcome = INCLUDE.evaluate(text, no_other_file)
    assert (outcome.state, outcome.reason) == (State.DONE, "kept: line 3 still uses op_out")


@given(st.text(alphabet='ab"softmax",\n log_'), st.text(alphabet='ab"softmax",\n log_'))
def test_inserting_and_replacing_are_idempotent(before: str, after: str) -> None:
    text = before + INSERT.anchor + after
    outcome = INSERT.evaluate(text, no_other_file)
    if outcome.text is not None:
        assert INSERT.evaluate(outcome.text, no_other_file).state is State.DONE
