"""Prompts of the agents: one Markdown template per role, and files of the project."""

from cuggino._lazy import lazy

NAMES = {
    "deliver": "choose_instruction is_planning load_instruction",
    "overriding": "RUN SYNC own_prompts",
    "plan_build": (
        "PromptNotFound PromptPhase build_verification_prompt check_verification_prompts "
        "init_plan_build job_verification_prompt read_prompt"
    ),
    "rendering": "Prompts render",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
