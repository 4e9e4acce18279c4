"""The C++ compiler of this machine: found, asked its version, run."""

from __future__ import annotations

import errno
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mpskit.errors import MpskitError
from mpskit.metal import cache

SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"


class CompilerNotFoundError(MpskitError):
    """No C++ compiler on this machine."""


class CompilerFailedError(MpskitError):
    """The compiler refused its input; ``output`` is all that it printed."""

    def __init__(self, message: str, *, output: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.output = output


@dataclass(frozen=True)
class Compiler:
    """A C++20 compiler, by the command that starts it."""

    command: tuple[str, ...]
    version: str

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version

    @property
    def is_zig(self) -> bool:
        return "ziglang" in self.command

    def run(self, arguments: Sequence[str | Path]) -> str:
        """Runs the compiler and returns its standard output.

        Raises:
            CompilerFailedError: with its messages.
            OSError: what it wrote to has no room left.
        """
        done = subprocess.run(
            [*self.command, *map(str, arguments)],
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )
        if done.returncode != 0:
            for code in (errno.ENOSPC, errno.EDQUOT):
                if os.strerror(code) in done.stderr:
                    raise OSError(code, os.strerror(code))
            raise CompilerFailedError(
                f"The C++ compiler ({shlex.join(self.command)}) failed:\n{done.stderr.strip()}",
                output=done.stderr,
                hint="Try another compiler by setting CXX, e.g. CXX=clang++.",
            )
        return done.stdout


def _candidates() -> list[tuple[str, ...]]:
    named = os.environ.get("CXX")
    if named:
        return [tuple(shlex.split(named))]
    found: list[tuple[str, ...]] = [
        (path,) for name in ("clang++", "g++") if (path := shutil.which(name))
    ]
    if importlib.util.find_spec("ziglang"):
        found.append((sys.executable, "-m", "ziglang", "c++"))
    return found


@lru_cache(maxsize=1)
def find_compiler() -> Compiler:
    """The first of ``$CXX``, clang++, g++ and the ziglang package that answers.

    Raises:
        CompilerNotFoundError: none does; the hint names the commands that install one.
    """
    tried = []
    for command in _candidates():
        try:
            version = _version(command)
        except (OSError, subprocess.CalledProcessError) as error:
            tried.append(f"{shlex.join(command)} ({error})")
        else:
            return Compiler(command, version)
    looked = f" Tried: {'; '.join(tried)}." if tried else ""
    raise CompilerNotFoundError(
        f"No C++ compiler was found: CXX, clang++, g++ and the ziglang package.{looked}",
        hint="Install one: pip install 'mpskit[compiler]', or apt install g++, or on a Mac "
        "xcode-select --install. CXX must name a command that runs.",
    )


def _version(command: tuple[str, ...]) -> str:
    """What ``--version`` prints, remembered while the program file stays the same."""
    program = Path(shutil.which(command[0]) or command[0]).resolve()
    stat = program.stat()
    identity = [*command, str(program), str(stat.st_mtime_ns), str(stat.st_size)]

    def ask(file: Path) -> None:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, check=True, timeout=120
        )
        file.write_text(done.stdout)

    return cache.entry(f"compiler-{cache.key(identity)}.txt", ask).read_text()


def machine_flags(compiler: Compiler) -> tuple[str, ...]:
    """Flags for this processor: hardware half conversion where x86 has it."""
    if not _has_x86_64_v3():
        return ()
    # zig spells the levels of x86-64 with an underscore.
    return ("-march=x86_64_v3",) if compiler.is_zig else ("-march=x86-64-v3",)


@lru_cache(maxsize=1)
def _has_x86_64_v3() -> bool:
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    try:
        words = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return False
    return {"avx2", "bmi2", "f16c", "fma"} <= words


def build_shared_library(
    source: str,
    *,
    name: str = "library",
    include_dirs: Sequence[Path] = (),
    flags: Sequence[str] = (),
    depends: Sequence[Path] = (),
) -> Path:
    """Compiles C++20 ``source`` to a shared library, or takes it from the cache.

    Args:
        source: the translation unit.
        name: a word for the library's file name, for whoever looks into the cache.
        include_dirs: searched for ``#include``.
        flags: further compiler flags.
        depends: headers the source includes; their contents take part in the cache's key.

    Returns:
        The path of the library.
    """
    compiler = find_compiler()
    arguments = [
        "-std=c++20",
        "-O2",
        "-fPIC",
        "-shared",
        *machine_flags(compiler),
        *flags,
        *(f"-I{folder}" for folder in include_dirs),
    ]
    parts = [source, *compiler.command, compiler.version, *arguments]
    parts += [header.read_text() for header in depends]

    def build(library: Path) -> None:
        unit = library.with_suffix(".cpp")
        unit.write_text(source)
        compiler.run([*arguments, unit, "-o", library])

    return cache.entry(f"{name}-{cache.key(parts)}{SUFFIX}", build)
