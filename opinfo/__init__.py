"""PyTorch's OpInfo entries and our own, run on the kernels of a patch set.

``definitions`` says what is run for each op: OpInfo entries, a float64 reference, tolerances.
``test_ops`` holds the generic tests, ``test_<op>`` what only one op needs.

    mpskit test                                    progress, and a summary by dtype and kernel
    pytest opinfo --backend cpu --patch-set DIR    the same tests, as pytest shows them
"""
