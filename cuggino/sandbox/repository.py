"""The repository around a project."""

from __future__ import annotations

from pathlib import Path


def top_of(project: Path) -> Path:
    """Return the top folder of the repository around the project; the project without one."""
    folders = (project, *project.parents)
    return next((folder for folder in folders if (folder / ".git").exists()), project)
