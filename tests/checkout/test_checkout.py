# ruff: noqa: E501 (expected output stands as it is printed)
from __future__ import annotations

from checkouts import TREE, CheckoutTestCase, make_checkout, run_git, write_files

from mpskit.checkout import Checkout
from mpskit.errors import MpskitError


class OpenTest(CheckoutTestCase):
    def refusal(self, name: str) -> str:
        with self.assertRaises(MpskitError) as caught:
            Checkout.open(self.directory / name)
        self.assertIsNotNone(caught.exception.hint)
        outcome = self.mpskit("status", self.directory / name)
        self.assertEqual(outcome.exit_code, 1)
        return self.neutral(str(caught.exception))

    def test_no_such_directory(self) -> None:
        self.assertExpectedInline(
            self.refusal("nowhere"),
            """\
DIR/nowhere does not exist.
Name a PyTorch clone, or make a small one: mpskit skeleton DIR""",
        )

    def test_a_file(self) -> None:
        self.assertExpectedInline(
            self.refusal("pytorch/README.md"),
            """\
DIR/pytorch/README.md is no directory.
Name the checkout's root directory.""",
        )

    def test_no_git_repository(self) -> None:
        (self.directory / "plain").mkdir()
        self.assertExpectedInline(
            self.refusal("plain"),
            """\
DIR/plain is no git repository.
Name a PyTorch clone (`git clone URL`), or make a small one: mpskit skeleton DIR""",
        )

    def test_a_bare_repository(self) -> None:
        run_git(self.directory, "clone", "--quiet", "--bare", "pytorch", "bare.git")
        self.assertExpectedInline(
            self.refusal("bare.git"),
            """\
DIR/bare.git is a bare repository: it has no work tree to patch.
Make one: git -C DIR/bare.git worktree add ../pytorch-mpskit""",
        )

    def test_a_repository_without_commits(self) -> None:
        run_git(self.directory, "init", "--quiet", "empty")
        self.assertExpectedInline(
            self.refusal("empty"),
            """\
DIR/empty has no commit yet.
Name a PyTorch clone, or make a small one: mpskit skeleton DIR""",
        )

    def test_another_projects_repository(self) -> None:
        make_checkout(self.directory / "other", {"README.md": "Another project\n"})
        self.assertExpectedInline(
            self.refusal("other"),
            """\
DIR/other is a git repository but no PyTorch checkout: looked for aten/src/ATen/native/native_functions.yaml and torch in its HEAD; not there: aten/src/ATen/native/native_functions.yaml, torch.
Name a PyTorch clone, or make a small one: mpskit skeleton DIR""",
        )

    def test_a_repository_with_half_of_it(self) -> None:
        half = {path: text for path, text in TREE.items() if not path.startswith("torch")}
        make_checkout(self.directory / "half", half)
        self.assertExpectedInline(
            self.refusal("half"),
            """\
DIR/half is a git repository but no PyTorch checkout: looked for aten/src/ATen/native/native_functions.yaml and torch in its HEAD; not there: torch.
Name a PyTorch clone, or make a small one: mpskit skeleton DIR""",
        )

    def test_a_directory_inside_stands_for_its_root(self) -> None:
        self.assertEqual(Checkout.open(self.root / "torch").root, self.root)


class InspectTest(CheckoutTestCase):
    def test_head_version_and_files(self) -> None:
        checkout = Checkout.open(self.root)
        self.assertEqual(checkout.head().branch, "refs/heads/main")
        self.assertEqual(checkout.version(), "2.13.0")
        self.assertTrue(checkout.has("c10/metal"))
        self.assertFalse(checkout.has("c10/cuda"))
        self.assertEqual(checkout.read("HEAD", "version.txt"), b"2.13.0\n")
        self.assertIsNone(checkout.read("HEAD", "torch"))
        self.git("checkout", "--quiet", "--detach")
        self.assertIsNone(checkout.head().branch)

    def test_every_way_for_a_file_to_be_dirty(self) -> None:
        write_files(
            self.root,
            {"README.md": "changed", "version.txt": "staged", "new.h": "new", "added.h": "added"},
        )
        (self.root / "c10/metal/utils.h").unlink()
        self.git("add", "version.txt", "added.h")
        paths = [
            "README.md", "version.txt", "new.h", "added.h", "c10/metal/utils.h",
            "torch/__init__.py", "nowhere.h",
        ]  # fmt: skip
        dirty = Checkout.open(self.root).dirty(paths)
        self.assertExpectedInline(
            "\n".join(f"{item.path}: {item.what}" for item in dirty),
            """\
README.md: modified
version.txt: modified and staged
new.h: untracked
added.h: added and staged
c10/metal/utils.h: deleted""",
        )

    def test_names_are_taken_literally(self) -> None:
        self.commit({"a*.h": "star\n", "ab.h": "other\n", "tab\there.h": "tab\n"})
        write_files(self.root, {"ab.h": "changed\n", "tab\there.h": "changed\n"})
        checkout = Checkout.open(self.root)
        self.assertEqual(checkout.dirty(["a*.h"]), [])
        self.assertEqual([item.path for item in checkout.dirty(["tab\there.h"])], ["tab\there.h"])
        self.assertEqual(checkout.read_all("HEAD", ["a*.h"]), {"a*.h": b"star\n"})
