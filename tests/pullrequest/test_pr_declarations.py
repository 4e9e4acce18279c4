"""pullrequest.toml: what it says, and where it is wrong."""

from __future__ import annotations

import re

from checkouts import CheckoutTestCase

from mpskit.errors import MpskitError
from mpskit.patching import load_patch_set
from mpskit.pullrequest.declarations import LABELS, Exemption, exempt, load_declarations

HEAD = 'format = 1\n[[patch]]\nname = "square"\n'


class DeclarationsTest(CheckoutTestCase):
    def load(self, text: str):
        (self.patch_set / "pullrequest.toml").write_text(text)
        return load_declarations(load_patch_set(self.patch_set))

    def test_none(self) -> None:
        found = load_declarations(load_patch_set(self.patch_set))
        self.assertEqual((found.labels, found.of("square").limits), (LABELS, ()))

    def test_all_keys(self) -> None:
        found = self.load(
            'labels = ["x"]\n' + HEAD + 'limits = ["a"]\nfollow_ups = ["b"]\n'
            '[[patch.fast_math]]\npath = "aten/*"\nwhy = " exact "\n'
        )
        self.assertEqual((found.labels, found.of("square").limits), (("x",), ("a",)))
        entries = found.of("square").fast_math
        self.assertEqual(exempt("aten/x.metal", entries), Exemption("aten/*", "exact"))
        self.assertIsNone(exempt("c10/x.metal", entries))

    def test_mistakes_are_named(self) -> None:
        for text, message in (
            ("", "`format` must be 1"),
            ("format = 1\nlabel = []\n", "`label` is no key"),
            ('format = 1\nlabels = "x"\n', "`labels` must be a list of texts"),
            ("format = 1\npatch = [1]\n", "`patch` must be a list of tables"),
            ('format = 1\n[[patch]]\nname = "cube"\n', "'cube' is no patch of the series (square)"),
            (HEAD + "limit = []\n", "`patch.limit` is no key"),
            (HEAD + '[[patch.skip]]\ntest = "x"\n', "`patch.skip` must have the texts"),
            (HEAD + '[[patch.skip]]\ntest = "x"\nwhy = " "\n', "must have the texts"),
            (HEAD + '[[patch.skip]]\ntest = "x"\nwhy = "y"\nz = 1\n', "`patch.skip.z` is no key"),
            ("format =\n", "cannot be read"),
        ):
            with self.subTest(text), self.assertRaisesRegex(MpskitError, re.escape(message)):
                self.load(text)
