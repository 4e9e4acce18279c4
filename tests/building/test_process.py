"""Running a build's programs: output, log, and that no child is left."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from pathlib import Path

from mpskit.building.process import Log, run
from mpskit.errors import MpskitError


class ProcessTest(unittest.TestCase):
    def test_both_streams_are_one_text_and_go_to_the_log(self) -> None:
        program = "import sys; print('out', flush=True); print('error', file=sys.stderr); exit(3)"
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "log")
            with Log.open(file) as log:
                finished = run([sys.executable, "-c", program], log=log, environment={"A": "b c"})
            text = file.read_text()
        self.assertEqual((finished.status, finished.output), (3, "out\nerror\n"))
        self.assertIn("$ 'A=b c' ", text)
        self.assertIn("out\nerror\nexit status 3, ", text)

    def test_an_error_while_it_runs_ends_it(self) -> None:
        children = []

        def fail(line: str) -> None:
            children.append(int(line))
            raise RuntimeError("no more")

        program = "import os, time; print(os.getpid(), flush=True); time.sleep(100)"
        with self.assertRaisesRegex(RuntimeError, "no more"):
            run([sys.executable, "-c", program], log=Log(), on_line=fail)
        with self.assertRaises(ProcessLookupError):
            os.kill(children[0], 0)

    def test_program_that_is_not_there(self) -> None:
        with self.assertRaisesRegex(MpskitError, "no-such-program cannot be run: No such file"):
            run(["no-such-program"], log=Log())
