"""The checks of the files' texts, each with a case in which it fails."""

from __future__ import annotations

from checkouts import ACTIVATION, OPERATIONS
from proposals import (
    BASE,
    HOST,
    METAL,
    REMOVED_INCLUDE,
    SERIES,
    UPSTREAM_TEST,
    UPSTREAM_TESTS,
    ProposalTestCase,
)

from mpskit.pullrequest.checks import texts
from mpskit.pullrequest.declarations import Exemption


class ReplacedCodeTest(ProposalTestCase):
    def test_passes(self) -> None:
        check = texts.replaced_code(self.only_commit())
        self.assert_passes(check, "TORCH_IMPL_FUNC(log_softmax_mps_out) removed")

    def test_an_include_that_nothing_needs(self) -> None:
        item = self.only_commit(**{"series.toml": SERIES})
        self.assert_fails(
            texts.replaced_code(item), ACTIVATION, "still includes <ATen/ops/_log_softmax_native.h>"
        )

    def test_an_edit_that_is_undone_by_the_next(self) -> None:
        again = f"""
    [[patch.edit]]
    kind = "insert_after"
    path = "{ACTIVATION}"
    anchor = "}} // namespace at::native"
    text = '''

    TORCH_IMPL_FUNC(log_softmax_mps_out)(const Tensor& self) {{}}
    '''
    """
        item = self.only_commit(**{"series.toml": SERIES + REMOVED_INCLUDE + again})
        self.assert_fails(
            texts.replaced_code(item), "remove TORCH_IMPL_FUNC(log_softmax_mps_out) is not done"
        )

    def test_a_cache_key_that_is_left(self) -> None:
        key = 'std::string key = "log_softmax_mps:" + name;'
        old = BASE[ACTIVATION].replace('const char* text = "}";', key).replace("return self;", key)
        self.assertEqual(old.count(key), 3)
        self.commit({ACTIVATION: old})
        item = self.only_commit()
        self.assert_fails(texts.replaced_code(item), 'cache key "log_softmax_mps:"')


class FastMathTest(ProposalTestCase):
    def test_a_fast_function(self) -> None:
        item = self.only_commit(**{METAL: "// fast::log is fine\nfloat f = fast::exp(1.0);\n"})
        self.assert_fails(texts.fast_math(item, ()), f"{METAL}:2 uses fast::exp")
        declared = (Exemption("*.metal", "it is exact there"),)
        self.assert_passes(texts.fast_math(item, declared), "it is exact there")

    def test_none(self) -> None:
        item = self.only_commit(**{METAL: "float f = exp(1.0); // not fast::exp\n"})
        self.assert_passes(texts.fast_math(item, ()), "none in the kernels")


class FormTest(ProposalTestCase):
    def test_passes(self) -> None:
        self.assert_passes(texts.form(self.only_commit()), "6 files")

    def test_lines(self) -> None:
        host = self.files[HOST]
        for text, why in (
            (host.rstrip("\n"), "no newline at the end"),
            (host + "\n", "empty lines at the end"),
            ("\t// a tab\n" + host, "line 1 has a tab"),
            ("// blanks  \n" + host, "line 1 ends in blanks"),
        ):
            with self.subTest(why):
                self.assertIn(why, "; ".join(texts._line_problems(text, set())))

    def test_old_lines_of_an_edited_file_are_upstreams(self) -> None:
        self.commit({ACTIVATION: "int old;\t\n" + BASE[ACTIVATION]})
        self.assert_passes(texts.form(self.only_commit()))

    def test_no_owners(self) -> None:
        headless = UPSTREAM_TESTS.replace('# Owner(s): ["module: mps"]\n', "")
        item = self.only_commit(**{UPSTREAM_TEST: headless})
        self.assert_fails(texts.form(item), UPSTREAM_TEST, "does not name its owners")

    def test_licence_heads_are_as_the_neighbours(self) -> None:
        licensed = "//  Copyright (c) 2022 Somebody\nint x;\n"
        self.commit({ACTIVATION: licensed + BASE[ACTIVATION], f"{OPERATIONS}/Other.mm": licensed})
        self.assert_fails(
            texts.form(self.only_commit()), HOST, "no licence head, and all of its 2 neighbours"
        )

    def test_a_licence_head_that_no_neighbour_has(self) -> None:
        self.commit({f"{OPERATIONS}/Other.mm": "int x;\n"})
        item = self.only_commit(**{HOST: "// Copyright (c) Me\n" + self.files[HOST]})
        self.assert_fails(texts.form(item), "a licence head, and none of its 2 neighbours")
