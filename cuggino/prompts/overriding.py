"""Prompts that a project brings: those that replace built-in ones, and those of its own loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cuggino.files import read_regular
from cuggino.prompts.deliver import OVERRIDES, RUN, SYNC
from cuggino.prompts.plan_build import BUILD_PROMPT, PLAN_PROMPT
from cuggino.prompts.rendering import Prompts


def own_prompts(
    project: Path,
    overrides: Path,
    *,
    plan_prompt: str = PLAN_PROMPT,
    build_prompt: str = BUILD_PROMPT,
) -> Iterator[tuple[Path, bytes]]:
    """Yield the file and the content of each prompt that differs from the built-in one.

    `overrides` is the folder with the project's own templates.
    """
    built_in = Prompts()
    templates = {path: path.stem for path in sorted(overrides.glob("*.md"))}
    templates |= {project / OVERRIDES / f"{name}.md": name for name in (*RUN, *SYNC)}
    templates[project / plan_prompt] = "plan_prompt"
    templates[project / build_prompt] = "build_prompt"
    for path, name in templates.items():
        with suppress(OSError, ValueError):
            content = read_regular(path)
            usual = built_in.template(name)
            if not usual.exists() or content != usual.read_bytes():
                yield path, content
