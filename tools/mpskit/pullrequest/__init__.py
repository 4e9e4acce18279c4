"""The text of the upstream pull request."""
