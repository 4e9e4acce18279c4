"""The contributor's toolkit for Metal kernels in PyTorch's MPS backend."""

__version__ = "0.1.0"
