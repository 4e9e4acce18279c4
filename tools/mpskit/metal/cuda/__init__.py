"""The cuda backend: Metal kernels compiled by NVRTC, a warp of the GPU for each simdgroup."""
