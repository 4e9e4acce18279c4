"""Ops routed to the patch's kernels, so that PyTorch's own tests run on them."""
