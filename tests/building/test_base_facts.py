"""What a base's own build files say: its options, its C++ standard."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from checkouts import write_files

from mpskit.building.full import known_options
from mpskit.building.objective_cpp import cxx_standard


class BaseFactsTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)

    def test_cxx_standard(self) -> None:
        self.assertEqual(cxx_standard(self.root), "20")
        cmake = 'set(CMAKE_CXX_STANDARD\n    17\n    CACHE STRING "The C++ standard")\n'
        write_files(self.root, {"CMakeLists.txt": cmake})
        self.assertEqual(cxx_standard(self.root), "17")

    def test_options(self) -> None:
        self.assertEqual(known_options(self.root), frozenset())
        write_files(
            self.root,
            {
                "CMakeLists.txt": "OPTION(USE_A 'a')\ncmake_dependent_option(\n  USE_B 'b' ON)\n",
                "setup.py": "#   USE_C=0\n#     disables C\n",
            },
        )
        self.assertEqual(known_options(self.root), {"USE_A", "USE_B", "USE_C"})
