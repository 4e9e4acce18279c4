"""Whatever fails or dies at whichever step, nothing of the user's is lost."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from checkouts import Snapshot
from faults import CrashTestCase, Fault, FaultTestCase, Steps, full_disk, interrupt, rewrite

from mpskit.checkout import Checkout, transaction
from mpskit.errors import MpskitError
from mpskit.patching.record import settle_pending


class FailureTest(FaultTestCase):
    """Each step in turn is interrupted or meets a full disk: all is as before at once."""

    def faults(self, names: list[str]) -> Iterator[tuple[int, Fault, bool]]:
        """From the first file written on, every step with each way to break it.

        Of the steps before, which only store objects, some; ``CrashTest`` goes through all.
        """
        for at, name in enumerate(names):
            if at < names.index("journal") and name != "patch set":
                if at % 3 == 0:
                    yield (at, full_disk, True) if at % 2 else (at, interrupt, False)
            else:
                yield from itertools.product([at], [interrupt, full_disk], [False, True])

    def walk(self, name: str) -> None:
        operation = self.prepare(name)
        self.save()
        names = self.count(operation)
        after = self.state()
        self.put_back()
        before = Snapshot.take(self.root)
        first_write = names.index("git checkout" if "git checkout" in names else "journal")
        count = 0
        for at, fault, late in self.faults(names):
            count += 1
            with self.subTest(step=names[at], at=at, fault=fault.__name__, late=late):
                with (
                    Steps(fault, at, late).watched(),
                    self.assertRaises((KeyboardInterrupt, OSError, MpskitError)),
                ):
                    operation()
                now = Snapshot.take(self.root)
                if at < first_write:
                    self.assertEqual(now, before)
                self.assertEqual(now.without_stat_cache(), before.without_stat_cache())
            self.put_back_patch_set()
        operation()
        self.assertEqual(self.state(), after)
        self.report_faults(f"{name} interrupted, or on a full disk", count)
        self.assertGreater(count, 15)

    def test_apply(self) -> None:
        self.walk("apply")

    def test_update(self) -> None:
        self.walk("update")

    def test_refresh(self) -> None:
        self.walk("refresh")

    def test_revert(self) -> None:
        self.walk("revert")


class CrashTest(CrashTestCase):
    """Killed with no chance to clean up: the next run finds all as before, or complete."""

    def walk(self, name: str) -> None:
        operation = self.prepare(name)
        self.save()
        before = self.state()
        names = self.count(operation)
        after = self.state()
        self.put_back()
        found = {"as before": 0, "complete": 0}
        for at in range(len(names)):
            for late in (False, True) if at >= names.index("journal") else (False,):
                self.crash(operation, at, late)
                self.recover()
                self.put_back_patch_set()
                now = self.state()
                if now == before:
                    found["as before"] += 1
                    continue
                self.assertEqual(now, after)
                found["complete"] += 1
                self.put_back()
        # Only after the last step, when nothing is left but to forget the journal.
        self.assertEqual(found["complete"], 1)
        self.report_faults(f"{name} killed", sum(found.values()))
        self.assertGreater(found["as before"], 20)

    def test_apply(self) -> None:
        self.walk("apply")

    def test_update(self) -> None:
        self.walk("update")

    def test_refresh(self) -> None:
        self.walk("refresh")

    def test_revert(self) -> None:
        self.walk("revert")

    def test_a_refresh_that_died_is_finished_by_the_next(self) -> None:
        operation = self.prepare("refresh")
        self.save()
        names = self.count(operation)
        after, files = self.state(), self.patch_set_files()
        for at, name in enumerate(names):
            if name in ("patch set", "journal"):
                self.put_back()
                self.crash(operation, at, late=True)
                operation()
                self.assertEqual(self.state(), after)
                self.assertEqual(self.patch_set_files(), files)

    def patch_set_files(self) -> dict[str, bytes]:
        files = (path for path in self.patch_set.rglob("*") if path.is_file())
        return {str(path.relative_to(self.patch_set)): path.read_bytes() for path in files}

    def test_an_update_that_stops_at_a_conflict(self) -> None:
        operation = self.prepare("conflict")
        self.save()
        before = self.state()
        names = self.count(operation)
        self.put_back()
        count = 0
        for at in range(names.index("git rebase") - 6, len(names)):
            for late in (False, True):
                count += 1
                self.crash(operation, at, late)
                if (self.root / ".git" / "rebase-merge").exists():
                    self.git("rebase", "--abort")
                with transaction.Transaction.begin(Checkout.open(self.root), "test"):
                    settle_pending(Checkout.open(self.root))
                now = self.state()
                for part in ("head", "refs", "index", "work_tree"):
                    self.assertEqual(getattr(now, part), getattr(before, part), names[at])
        self.report_faults("update killed at a conflict", count)


class OrphanTest(CrashTestCase):
    """mpskit is killed while a git of its is at work, and that git carries on to its end."""

    @contextlib.contextmanager
    def killing_git(self, at: int) -> Iterator[None]:
        """Put a git on the PATH that kills its parent in the ``at``-th call, then does its job."""
        tools, real = self.directory / "killing", os.environ["PATH"]
        tools.mkdir(exist_ok=True)
        calls = tools / "calls"
        calls.write_text("")
        rewrite(
            tools / "git",
            f"""\
            #!/bin/sh
            echo >> '{calls}'
            if [ "$(wc -l < '{calls}')" -eq {at + 1} ]; then kill -9 $PPID; sleep 0.1; fi
            PATH='{real}' exec git "$@"
            """,
        )
        with mock.patch.dict(os.environ, {"PATH": f"{tools}:{real}"}):
            yield

    def recover(self) -> None:
        for _ in range(100):
            try:
                return super().recover()
            except MpskitError as error:
                # Its lock outlives it, in the hands of the git that it started.
                self.assertIn("is at work in", error.message)
                time.sleep(0.05)
        return self.fail("the lock is never given back")

    def walk(self, name: str) -> None:
        operation = self.prepare(name)
        self.save()
        before = self.state()
        names = self.count(operation)
        after = self.state()
        self.put_back()
        # From the last objects on; what comes before only reads.
        steps = range(names.index("journal") - 6, len(names))
        gits = [names[:at].count("journal") + names[:at].count("patch set") for at in steps]
        count = 0
        for at, others in zip(steps, gits, strict=True):
            if names[at].startswith("git "):
                count += 1
                self.killed(lambda nth=at - others: self.killing_git(nth), operation)
                self.recover()
                self.put_back_patch_set()
                if self.state() != before:
                    self.assertEqual(self.state(), after, names[at])
                    self.put_back()
        self.report_faults(f"{name} killed while git runs", count)
        self.assertGreater(count, 5)

    def test_apply(self) -> None:
        self.walk("apply")

    def test_update(self) -> None:
        self.walk("update")

    def test_refresh(self) -> None:
        self.walk("refresh")

    def test_revert(self) -> None:
        self.walk("revert")


class FullDiskTest(FaultTestCase):
    def test_a_disk_that_is_full_in_earnest(self) -> None:
        disk = self.directory / "disk"
        disk.mkdir()
        mount = f"mount -t tmpfs -o size=3m none '{disk}'"
        command = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
        if shutil.which("unshare") is None or subprocess.run([*command, mount]).returncode != 0:
            self.skipTest("needs the right to mount a disk; the other tests only say it is full")
        script = Path(__file__).parent / "small_disk.py"
        result = subprocess.run(
            [*command, f"{mount} && exec '{sys.executable}' '{script}' '{disk}'"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        for name, count in json.loads(result.stdout.splitlines()[-1]).items():
            self.assertGreater(count, 0)
            self.report_faults(f"{name} on a disk that is full in earnest", count)
