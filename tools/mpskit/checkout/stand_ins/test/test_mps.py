# Owner(s): ["module: mps"]
# A stand-in of mpskit's for PyTorch's test_mps.py, which the torch wheel does not carry:
# the names that tests put into that file may count on, and the places where they go.

import unittest

import torch
import torch.nn.functional as F
from torch.testing._internal.common_utils import (
    instantiate_parametrized_tests,
    parametrize,
    run_tests,
    serialTest,
    TestCase,
)


# Bytes; as good as endless, as memory that no test touches takes none
total_memory = 2**40


class TestCaseMPS(TestCase):
    pass


class TestMPS(TestCaseMPS):
    pass


class TestPad(TestCaseMPS):
    pass


instantiate_parametrized_tests(TestMPS)

if __name__ == "__main__":
    run_tests()
