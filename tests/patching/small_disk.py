"""Run on a disk that is full in earnest: ``python small_disk.py DIRECTORY-ON-A-SMALL-DISK``.

Each operation gets a little more room every time until it comes through. Prints how often the disk
was full as JSON by operation; fails where anything of the user's is not as before.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent.parent))

from faults import CrashTestCase

STEP = 4 * 1024
COUNTS: dict[str, int] = {}


class SmallDiskTest(CrashTestCase):
    disk: Path

    def setUp(self) -> None:
        with mock.patch.object(tempfile, "tempdir", str(self.disk)):
            super().setUp()
        self.saved = Path(self.enterContext_(tempfile.TemporaryDirectory()))

    def leave_room(self, size: int) -> Path:
        """Fill the disk but for ``size`` bytes; gives the file to delete afterwards."""
        filler = self.disk / "filler"
        with filler.open("wb") as file:
            state = os.statvfs(self.disk)
            file.write(b"\0" * max(0, state.f_bavail * state.f_frsize - size))
        return filler

    def walk(self, name: str) -> None:
        operation = self.prepare(name)
        self.save()
        before = self.state()
        operation()
        after = self.state()
        self.put_back()
        for count in range(100):
            filler = self.leave_room(count * STEP)
            try:
                operation()
            except Exception as error:
                self.assertIn("is full", str(error))
            finally:
                filler.unlink()
            self.recover()
            now = self.state()
            if now == after:
                COUNTS[name] = count
                return
            self.assertEqual(now, before)
            self.put_back_patch_set()
        self.fail("it never comes through")

    def test_apply(self) -> None:
        self.walk("apply")

    def test_update(self) -> None:
        self.walk("update")

    def test_refresh(self) -> None:
        self.walk("refresh")

    def test_revert(self) -> None:
        self.walk("revert")


if __name__ == "__main__":
    SmallDiskTest.disk = Path(sys.argv.pop())
    program = unittest.main(exit=False)
    print(json.dumps(COUNTS))
    sys.exit(not program.result.wasSuccessful())
