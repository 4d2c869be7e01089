"""Resolution of a command word to a program, also with a path before it (AUT-213)."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from cuggino.guard.commands.base import Site
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_SYSTEM = frozenset(
    words(
        "/bin /usr/bin /usr/local/bin /sbin /usr/sbin /opt/homebrew/bin /opt/local/bin"
        " /home/linuxbrew/.linuxbrew/bin /usr/local/sbin"
    )
)
_TOOLS = ("node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin")
_BINSTUBS = frozenset(["rails", "rake", "rspec", "bundle", "rubocop"])
_DEV = "bin/dev.sh"
_PLAIN = re.compile(r"[\w.@%+:\[-][\w.@%+:\]-]*|[.:]", re.ASCII)


class Program(NamedTuple):
    """The program that a command word names."""

    name: str
    reason: str = ""
    is_dev_script: bool = False
    is_script: bool = False
    """A script of the project, which the profile `extended` allows."""


def program(word: Word, site: Site) -> Program:
    """Return the name by which a command is judged, or why it is denied."""
    value = word.value
    if value is None:
        text = word.text.replace("xargs{}", "what is read")
        return Program(
            "", f"Cannot tell which program '{text}' is: write the command's name literally"
        )
    if (word.has_glob and value != "[") or word.has_tilde:
        return Program(
            "", f"Cannot tell which program '{word.text}' is: write the command's name literally"
        )
    if value == "":
        return Program("")
    if value.startswith(("-", "+")):
        return Program(
            value, f"'{value}' is an option, not a program: write the command differently"
        )
    if "/" in value:
        return _qualified(value, site)
    if not _PLAIN.fullmatch(value):
        return Program(value, f"Command '{value}' is not in the allowlist{_odd(value)}")
    return Program(value)


def _odd(value: str) -> str:
    if " " in value:
        return ": it is one quoted word; remove the quotes"
    return "" if value.isascii() else ": it has letters that only look like others"


def _qualified(value: str, site: Site) -> Program:
    folder, name = os.path.split(value)
    if not name:
        return Program(value, f"Command '{value}' is not in the allowlist: it is a folder")
    if name.startswith("git-") and os.path.basename(folder) == "git-core":  # noqa: PTH119
        return Program(name, f"'{value}' is a part of git: write git {name[4:]} instead")
    if folder in _SYSTEM:
        return Program(name)
    if "//" not in value and _is_dev(value, site):
        return Program(_DEV, is_dev_script=True)
    if site.is_open and _is_script(value, site):
        return Program(name, is_script=True)
    if name not in site.listed:
        return Program(name, f"Command '{name}' is not in the allowlist: call listed programs only")
    if _in_tools(folder, name, site):
        return Program(name)
    if name in site.policy.extra_commands and "." in name and _inside(folder, site):
        return Program(name)
    return Program(
        name,
        f"Command '{value}' is not in the allowlist by this path: call '{name}' by its name, or"
        f" from {', '.join(_TOOLS)}",
    )


def _is_dev(value: str, site: Site) -> bool:
    if os.path.basename(value) != "dev.sh" or not site.known:  # noqa: PTH119
        return False
    wanted = os.path.join(site.paths.project, _DEV)  # noqa: PTH118
    return all(
        os.path.normpath(os.path.join(cwd, value)) in (wanted, _given(site))  # noqa: PTH118
        for cwd in site.known
    )


def _given(site: Site) -> str:
    return os.path.join(os.path.normpath(site.policy.project), _DEV)  # noqa: PTH118


def _in_tools(folder: str, name: str, site: Site) -> bool:
    for cwd in site.known or ({"/"} if os.path.isabs(folder) else set()):  # noqa: PTH117
        place = os.path.normpath(os.path.join(cwd, folder))  # noqa: PTH118
        tail = "/" + place.lstrip("/")
        is_stub = place == os.path.join(site.paths.project, "bin") and name in _BINSTUBS  # noqa: PTH118
        if not is_stub and not tail.endswith(tuple(f"/{tool}" for tool in _TOOLS)):
            return False
        if not site.paths.is_inside(place, "/"):
            return False
        if ".." in folder.lstrip("./").split("/"):
            return False
    return bool(site.known) or os.path.isabs(folder)  # noqa: PTH117


def _is_script(path: str, site: Site) -> bool:
    if not site.known or site.paths.guards(path, site.known):
        return False
    return all(site.paths.is_inside(path, cwd) for cwd in site.known)


def _inside(folder: str, site: Site) -> bool:
    return bool(site.known) and all(site.paths.is_inside(folder or ".", cwd) for cwd in site.known)
