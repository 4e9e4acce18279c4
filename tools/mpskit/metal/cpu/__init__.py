"""The cpu backend: Metal kernels compiled as C++, threads of a threadgroup run as fibers."""
