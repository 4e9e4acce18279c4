"""The patch set: its series, its edits, and applying them as one transaction."""
