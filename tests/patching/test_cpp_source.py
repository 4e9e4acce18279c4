from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpskit.patching.cpp_source import (
    CppSource,
    UnbalancedError,
    find_definitions,
    with_surroundings,
)

HEAD = "TORCH_IMPL_FUNC(op_out)"


def definitions(text: str, head: str = HEAD) -> list[str]:
    return [text[found.start : found.end] for found in find_definitions(CppSource(text), head)]


def cut(text: str, head: str = HEAD) -> str:
    text = textwrap.dedent(text)
    source = CppSource(text)
    (definition,) = find_definitions(source, head)
    span = with_surroundings(source, definition)
    return text[: span.start] + text[span.end :]


# Everything that can stand in a function's body and hold brackets that do not count.
_soup = st.text(alphabet="(){}[];\"'/*\\ab \n#", max_size=12)
_line_soup = _soup.map(lambda text: text.replace("\n", " ").replace("\\", "|"))
_not_code = st.one_of(
    _line_soup.map(lambda text: f"// {text}\n"),
    _soup.map(lambda text: "/* " + text.replace("*/", "* ") + " */"),
    _soup.map(lambda text: 'R"x(' + text.replace(')x"', "") + ')x"'),
    _line_soup.map(lambda text: '"' + text.replace('"', '\\"') + '"'),
    st.sampled_from(["'{'", "'}'", "'\\''", "'\"'", "L'}'", "1'000'000", "0x1'F", '@"}"', 'u8"{"']),
    st.sampled_from(["\n#define OPEN {\n", "\n#define BODY \\\n  {\n", '\n#include "a{b.h"\n']),
    st.sampled_from(["\n#if 0\n}}}\n#endif\n", "\n#if 0\n{\n#else\nx();\n#endif\n"]),
    st.sampled_from(["\n#ifdef A\nif (a) {\n#else\n{\n#endif\n}\n", "x = y;\n", "[graph add:x];"]),
)
_body = st.recursive(
    _not_code,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(" ".join),
        inner.map(lambda text: "{" + text + "}"),
        inner.map(lambda text: "([&] {" + text + "})();"),
    ),
    max_leaves=12,
)


@given(before=_not_code, body=_body, after=_not_code)
def test_a_definition_ends_at_its_own_brace(before: str, body: str, after: str) -> None:
    definition = f"{HEAD}\n(const Tensor& self) {{{body}}}"
    text = f"{before}\n\n{definition}\n{after}\nint unrelated() {{}}\n"
    assert definitions(text) == [definition]


@given(text=st.text(alphabet="(){}[];\"'/*\\ab \n#if0RTORCH_out", max_size=200))
def test_any_text_is_either_read_or_refused(text: str) -> None:
    source = CppSource(text)
    assert len(source.code) == len(text)
    assert source.code.count("\n") == text.count("\n")
    try:
        find_definitions(source, "T")
    except UnbalancedError as error:
        assert "line" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}(const Tensor& self);\n",
        f"// {HEAD} {{}}\n",
        f'const char* name = "\\\n{HEAD} {{}}";\n',
        f"#if 0\n{HEAD} {{}}\n#endif\n",
        "TORCH_IMPL_FUNC(other_op_out) {}\n",
        "TORCH_IMPL_FUNC(op_out_too) {}\n",
        f"  call({HEAD});\n",
    ],
)
def test_what_is_no_definition(text: str) -> None:
    assert definitions(text) == []


def test_whitespace_in_the_head_is_loose() -> None:
    text = "Tensor  relu(\n    const Tensor& self) { return self; }\n"
    assert definitions(text, "Tensor relu( const Tensor& self)") == [text[:-1]]


def test_initialiser_lists_and_trailing_semicolons() -> None:
    constructor = "Graph::Graph() : a{1}, b{{2}} { run(); }"
    assert definitions(constructor + "\nint x;\n", "Graph::Graph()") == [constructor]
    struct = "struct Params { int n; } ;"
    assert definitions(struct + " int y;\n", "struct Params") == [struct]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{HEAD} {{\n  if (x) {{\n}}\n", "the definition at line 1 never closes"),
        (f"{HEAD} {{ ( }}\n", "'}' at line 1 closes nothing"),
        (f"{HEAD} {{\n#if A\n}}\n#endif\n", "ends inside an #if that starts within it"),
        (f"#if A\n{HEAD} {{\n#endif\n}}\n", "#endif at line 3 belongs to an #if ahead of the"),
    ],
)
def test_what_does_not_pair_is_said(text: str, says: str) -> None:
    with pytest.raises(UnbalancedError, match=says):
        definitions(text)


def test_each_branch_of_an_outer_conditional_is_a_definition() -> None:
    text = f"#if A\n{HEAD} {{ a(); }}\n#else\n{HEAD} {{ b(); }}\n#endif\n"
    assert definitions(text) == [f"{HEAD} {{ a(); }}", f"{HEAD} {{ b(); }}"]


def test_comment_and_one_blank_line_go_with_it() -> None:
    assert (
        cut(
            f"""\
        int a;

        // Section

        // What it does,
        /* at
           length. */
        {HEAD} {{
        }} // {HEAD}

        int b;
        """
        )
        == "int a;\n\n// Section\n\nint b;\n"
    )


def test_blank_lines_at_the_end_of_a_namespace() -> None:
    assert cut(f"int a;\n\n{HEAD} {{}}\n}} // namespace\n") == "int a;\n} // namespace\n"
    assert cut(f"int a;\n\n{HEAD} {{}}\n") == "int a;\n"
    assert cut(f"int a; // note\n{HEAD} {{}}\nint b;\n") == "int a; // note\nint b;\n"
    assert cut(f"int a;\r\n\r\n{HEAD} {{}}\r\n\r\nint b;\r\n") == "int a;\r\n\r\nint b;\r\n"
