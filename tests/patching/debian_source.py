"""PyTorch 2.6.0 as Debian trixie ships its source: a real tree from before c10/metal.

Fetched by apt's own client with a configuration of its own, from the mirror that this machine
already uses, and kept in the user's cache directory.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

SUITE = "trixie"
PACKAGE = "pytorch"
# The whole source has 16,000 files; these are all that our patches look at.
PARTS = ("aten/src/ATen/native/mps/", "aten/src/ATen/native/native_functions.yaml")
WITH = ("version.txt", "c10/CMakeLists.txt", "torch/__init__.py")


def unpack_debian_pytorch(directory: Path) -> None:
    """Unpack what our patches look at; skips the test where apt cannot fetch the source."""
    with tarfile.open(_archive()) as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            if member.isfile() and (path.startswith(PARTS) or path in WITH):
                content = archive.extractfile(member)
                assert content is not None
                place = directory / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content.read())


def _archive() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "mpskit", "tests")
    cache.mkdir(parents=True, exist_ok=True)
    pattern = f"{PACKAGE}_2.6.0*.orig.tar.*"
    if not list(cache.glob(pattern)):
        _fetch(cache)
    for archive in cache.glob(pattern):
        return archive
    pytest.skip(f"needs Debian's source of PyTorch 2.6.0, and {SUITE} has another version now")


def _fetch(cache: Path) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("needs Debian's source of PyTorch 2.6.0, and there is no apt here")
    work = cache / f"apt-{os.getpid()}"
    for name in ("lists/partial", "archives/partial", "sources"):
        (work / name).mkdir(parents=True)
    try:
        (work / "sources" / "debian.sources").write_text(_source_entry())
        options = {
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": str(work / "sources"),
            "Dir::State::lists": str(work / "lists"),
            "Dir::Cache": str(work),
            "Dir::Cache::archives": str(work / "archives"),
            "APT::Sandbox::User": "root" if os.getuid() == 0 else "",
        }
        settings = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
        _apt(work, *settings, "update")
        _apt(work, *settings, "source", "--download-only", "--only-source", PACKAGE)
        for file in work.glob(f"{PACKAGE}_*.orig.tar.*"):
            file.replace(cache / file.name)
    finally:
        shutil.rmtree(work)


def _apt(directory: Path, *arguments: str) -> None:
    result = subprocess.run(
        ["apt-get", "--quiet", *arguments], cwd=directory, capture_output=True, text=True
    )
    if result.returncode != 0:
        pytest.skip(f"apt cannot fetch Debian's source of PyTorch 2.6.0: {result.stderr.strip()}")


def _source_entry() -> str:
    """A source entry for ``SUITE`` on the Debian mirror that this machine is set up with."""
    release = Path("/etc/os-release").read_text()
    codename = re.search(r"^VERSION_CODENAME=(\w+)$", release, re.MULTILINE)
    entries = [*_deb822_entries(), *_one_line_entries()]
    for uri, suites, components in entries:
        if codename and codename.group(1) in suites and "main" in components:
            return (
                f"Types: deb-src\nURIs: {uri}\nSuites: {SUITE}\nComponents: main\n"
                "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
            )
    pytest.skip("needs Debian's source of PyTorch 2.6.0, and apt knows no Debian mirror here")


def _deb822_entries() -> list[tuple[str, list[str], list[str]]]:
    found = []
    for file in sorted(Path("/etc/apt/sources.list.d").glob("*.sources")):
        for stanza in file.read_text().split("\n\n"):
            fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", stanza, re.MULTILINE))
            for uri in fields.get("URIs", "").split():
                found.append((uri, fields["Suites"].split(), fields["Components"].split()))
    return found


def _one_line_entries() -> list[tuple[str, list[str], list[str]]]:
    files = [
        Path("/etc/apt/sources.list"),
        *sorted(Path("/etc/apt/sources.list.d").glob("*.list")),
    ]
    text = "\n".join(file.read_text() for file in files if file.is_file())
    pattern = r"^deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)[ \t]+(.*)$"
    return [
        (uri, [suite], components.split())
        for uri, suite, components in re.findall(pattern, text, re.MULTILINE)
    ]
