"""Calls that torch makes of an op on one kind of device, and not on MPS."""

from __future__ import annotations

import torch

from mpskit.verify.op_under_test import OpUnderTest

aten = torch.ops.aten


def test_conversions_that_mps_makes_itself_are_made_where_another_device_is_asked(monkeypatch):
    monkeypatch.setattr("mpskit.verify.log_softmax._is_asked_to_convert", lambda tensor: True)
    x = torch.randn(6, 40)
    half, grad = x.half(), torch.randn_like(x)
    output = torch.log_softmax(half.float(), 1)
    with OpUnderTest() as op:
        actual = aten._log_softmax(half, 1, True)
        grad_input = aten._log_softmax_backward_data(grad, output, 1, torch.float16)
    torch.testing.assert_close(actual, output)
    expected = aten._log_softmax_backward_data(grad, output, 1, torch.float32).half()
    torch.testing.assert_close(grad_input, expected)
    op.require_launches("log_softmax_row_float", "log_softmax_backward_row_float")
