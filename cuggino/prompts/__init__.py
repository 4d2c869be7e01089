"""Prompts of the agents: one Markdown template per role, and files of the project."""

from cuggino.prompts.deliver import load_instruction
from cuggino.prompts.plan_build import PromptNotFound, init_plan_build, read_prompt
from cuggino.prompts.rendering import Prompts, render

__all__ = [
    "PromptNotFound",
    "Prompts",
    "init_plan_build",
    "load_instruction",
    "read_prompt",
    "render",
]
