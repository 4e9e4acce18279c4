"""How fast the patch's kernels are, beside torch's op and a plain three-read design."""
