"""A PyTorch checkout: find it, inspect it, branch, commit, restore."""
