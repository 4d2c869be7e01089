"""Prompts of the agents: one Markdown template per role, and files of the project."""

from cuggino.prompts.deliver import choose_instruction, is_planning, load_instruction
from cuggino.prompts.overriding import RUN, SYNC, own_prompts, prompt_version
from cuggino.prompts.plan_build import (
    PromptNotFound,
    PromptPhase,
    build_verification_prompt,
    check_verification_prompts,
    init_plan_build,
    job_verification_prompt,
    read_prompt,
)
from cuggino.prompts.rendering import Prompts, render

__all__ = [
    "RUN",
    "SYNC",
    "PromptNotFound",
    "PromptPhase",
    "Prompts",
    "build_verification_prompt",
    "check_verification_prompts",
    "choose_instruction",
    "init_plan_build",
    "is_planning",
    "job_verification_prompt",
    "load_instruction",
    "own_prompts",
    "prompt_version",
    "read_prompt",
    "render",
]
