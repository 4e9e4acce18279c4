"""Build hook: a wheel carries the patch set inside the package.

An editable install must not: a copy would shadow the package, and go stale.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PatchSetHook(BuildHookInterface):
    """Adds aten_patch to standard wheels."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """``version`` is the kind of build: standard or editable."""
        if version == "standard":
            build_data["force_include"]["aten_patch"] = "mpskit/aten_patch"
