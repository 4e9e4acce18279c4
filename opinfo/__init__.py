"""PyTorch's OpInfo entries and our own, run on the kernels of a patch set.

``definitions`` says what is run for each op: OpInfo entries, a float64 reference, tolerances.
``test_ops`` holds the generic tests, ``test_<op>`` what only one op needs.

    mpskit test                                    progress, and a summary by dtype and kernel
    pytest opinfo --backend cpu --patch-set DIR    the same tests, as pytest shows them

A patch set brings its own ops in a folder ``opinfo`` of its own; the suite then runs on those.
Each module there (names that begin with ``_`` or ``test_`` aside) has a tuple ``DEFINITIONS``::

    # DIR/opinfo/square.py
    DEFINITIONS = (
        Definition(
            name="square",
            function="square.out",
            implementations=(SQUARE,),  # mpskit.verify.Implementation
            reference=lambda sample: sample.input.cpu().double() ** 2,
            upstream=tuple(op for op in op_db if op.name == "square"),
        ),
    )

Its ``test_*.py`` hold what only these ops need; `opinfo.op_test_case.OpTestCase` is their base.
"""
