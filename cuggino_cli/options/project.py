"""The project that a command works in, and files as they are typed in a folder of it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cuggino.files import find_project
from cuggino_cli.options.naming import one_line

_WITH_FILE = ("scripted:", "replay:")
"""Agents that are files."""


def project_folder(*, announce: bool = False) -> Path:
    """Return the project of the current folder; with `announce`, report one that is above it."""
    here = Path.cwd()
    folder = find_project(here)
    if announce and folder != here:
        click.echo(f"cuggino: in the project {one_line(str(folder))}", err=True)
    return folder


def from_project(path: str, folder: Path) -> str:
    """Return a path that was typed in the current folder, relative to the project's folder."""
    here = Path.cwd()
    return path if here == folder else os.path.relpath(here / path, folder)


def focus_from_project(focus: str, folder: Path) -> str:
    """Return the focus with the path of `@FILE` relative to the project's folder."""
    return f"@{from_project(focus[1:], folder)}" if focus[:1] == "@" and focus != "@" else focus


def agent_from_project(agent: str | None, folder: Path) -> str | None:
    """Return the agent; the path of one that is a file becomes relative to the project's folder."""
    for kind in _WITH_FILE:
        if agent is not None and agent.startswith(kind) and agent != kind:
            return kind + from_project(agent.removeprefix(kind), folder)
    return agent
