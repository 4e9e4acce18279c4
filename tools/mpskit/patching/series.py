"""A patch set: patches in order, each with what it needs of a base and what it changes there."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mpskit.errors import MpskitError
from mpskit.patching.edits import Edit

SERIES_FILE = "series.toml"


@dataclass(frozen=True)
class Requirement:
    """A file or directory the base must have, with the text ``contains`` in it where given.

    ``since``, a PyTorch version, is set where its absence means that the base is older.
    """

    path: str
    absent: str
    contains: str | None = None
    since: str | None = None


@dataclass(frozen=True)
class Expectation:
    """Kernel by dispatch key that native_functions.yaml must give ``function``."""

    function: str
    dispatch: dict[str, str]


@dataclass(frozen=True)
class PatchFile:
    """A whole file the patch adds; ``replaces`` allows another text under its name upstream."""

    path: str
    content: bytes
    replaces: bool = False


@dataclass(frozen=True)
class Layout:
    """One way in which bases are laid out, told by ``path`` holding the definition ``defines``.

    On such a base the patch makes ``edits`` besides its common ones, and may overwrite the files
    ``replaces`` with its own of that name.
    """

    name: str
    about: str
    path: str
    defines: str
    replaces: tuple[str, ...]
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class KernelUse:
    """A Metal kernel of the patch and, in words, when the plan launches it."""

    name: str
    when: str


@dataclass(frozen=True)
class Patch:
    """One commit's worth of changes."""

    name: str
    title: str
    why: str
    trailers: tuple[tuple[str, str], ...]
    requires: tuple[Requirement, ...]
    expects: tuple[Expectation, ...]
    kernels: tuple[KernelUse, ...]
    files: tuple[PatchFile, ...]
    common_edits: tuple[Edit, ...]
    layouts: tuple[Layout, ...]

    @property
    def message(self) -> str:
        """The commit message: title, why, trailers."""
        trailers = "\n".join(f"{key}: {value}" for key, value in self.trailers)
        parts = (self.title, self.why.strip(), trailers)
        return "\n\n".join(part for part in parts if part) + "\n"

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits on a base of the first layout, the one that the patch is written for."""
        return self.common_edits + (self.layouts[0].edits if self.layouts else ())

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path the patch may touch or look into on some layout, each once."""
        edits = [*self.common_edits, *(edit for item in self.layouts for edit in item.edits)]
        places = [item.path for item in (*self.files, *edits, *self.layouts)]
        return tuple(dict.fromkeys(places))

    @property
    def digest(self) -> str:
        """SHA-256 over everything the patch says and carries."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


@dataclass(frozen=True)
class PatchSet:
    """The patches of one directory, in the order in which they are applied."""

    directory: Path
    name: str
    patches: tuple[Patch, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that any of the patches may touch, each once."""
        return tuple(dict.fromkeys(path for patch in self.patches for path in patch.paths))

    @property
    def digest(self) -> str:
        """SHA-256 over the patches' digests."""
        return hashlib.sha256("".join(patch.digest for patch in self.patches).encode()).hexdigest()

    def select(self, names: Iterable[str] = (), up_to: str | None = None) -> PatchSet:
        """The same set with the patches ``names`` alone, or those up to and with ``up_to``.

        Raises:
            MpskitError: there is no patch of such a name.
        """
        wanted = list(names)
        for name in (*wanted, *((up_to,) if up_to else ())):
            self._refuse_unknown(name)
        patches = self.patches
        if up_to:
            last = next(i for i, patch in enumerate(patches) if patch.name == up_to)
            patches = patches[: last + 1]
        if wanted:
            patches = tuple(patch for patch in patches if patch.name in wanted)
        if not patches:
            raise MpskitError(
                f"None of {', '.join(wanted)} comes up to {up_to} in the series.",
                hint="Give --patch or --up-to, not both.",
            )
        return dataclasses.replace(self, patches=patches)

    def _refuse_unknown(self, name: str) -> None:
        known = [patch.name for patch in self.patches]
        if name not in known:
            raise MpskitError(
                f"The patch set {self.name} has no patch {name}.",
                hint=f"Its patches, in order: {', '.join(known)}.",
            )


def default_patch_set_directory() -> Path:
    """The patch set that comes with mpskit: in a wheel inside the package, else in its repository.

    Raises:
        MpskitError: it is in neither place.
    """
    package = Path(__file__).resolve().parent.parent
    candidates = (package / "aten_patch", package.parent.parent / "aten_patch")
    for directory in candidates:
        if (directory / SERIES_FILE).is_file():
            return directory
    raise MpskitError(
        f"mpskit's own patch set is missing: no {SERIES_FILE} in "
        + " or ".join(str(directory) for directory in candidates),
        hint="Install mpskit again, or name a patch set with --patch-set DIR.",
    )
