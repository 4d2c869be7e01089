"""Prompts that a project brings: those that replace built-in ones, and those of its own loops."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from cuggino.files import read_regular
from cuggino.prompts.rendering import BUILT_IN, Prompts

InstructionName: TypeAlias = Literal["initializer", "coding", "sync", "verify"]

OVERRIDES = ".autonoe"
"""The folder of a project's own instructions, as `<name>.md`."""
PLAN_PROMPT = "PLAN.PROMPT.md"
BUILD_PROMPT = "BUILD.PROMPT.md"
_VERSION = 8
"""Characters of a version."""


class Workflow(NamedTuple):
    """The instruction for planning, and the one for every later session (AUT-271)."""

    planning: InstructionName
    working: InstructionName


RUN = Workflow("initializer", "coding")
SYNC = Workflow("sync", "verify")


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


def prompt_version(
    project: Path,
    overrides: Path,
    *,
    plan_prompt: str = PLAN_PROMPT,
    build_prompt: str = BUILD_PROMPT,
) -> str:
    """Return a short digest of all templates: the built-in ones, and those of `own_prompts`."""
    digest = hashlib.sha256()
    own = own_prompts(project, overrides, plan_prompt=plan_prompt, build_prompt=build_prompt)
    texts = ((path, text.encode()) for path, text in sorted(BUILT_IN.items()))
    for path, content in (*texts, *own):
        for part in (path.name.encode("utf-8", "surrogateescape"), content):
            digest.update(b"%d:%b" % (len(part), part))
    return digest.hexdigest()[:_VERSION]
