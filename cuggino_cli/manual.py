"""How the help of a command is laid out: options by what they are about, examples at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import click

_LIMITS = "Limits (what is not given is as in .cuggino.json)"
_RECORDING = "Recording"
_OUTPUT = "Output"
_SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "budget",
                "max_tokens",
                "max_duration",
                "wait_for_quota",
                "no_wait_for_quota",
                "max_retries",
                "no_sandbox",
            ),
            _LIMITS,
        ),
        **dict.fromkeys(("record", "speed"), _RECORDING),
        **dict.fromkeys(("verbose", "quiet", "json", "color"), _OUTPUT),
    }
)
"""Of each option that several commands have the section that it is shown in."""


class Sectioned(click.Command):
    """A command whose many options are shown in sections; also the base of a group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options: first its own, then limits, recording, output, and `--help` last."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for title in (_LIMITS, _RECORDING, _OUTPUT, "Help"):
            sections[title] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_help = parameter.name == "help"
                title = "Help" if is_help else _SECTIONS.get(parameter.name or "", "Options")
                sections[title].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)


def manual(*examples: tuple[str, str], exits: str | None = None, see: Sequence[str] = ()) -> str:
    """The end of a help text: examples, each with what it is for, exit codes, what else to read.

    `see` names commands, or topics of `cuggino help`.
    """
    lines = [f"  {line}\n      {purpose}" for line, purpose in examples]
    parts = ["\b\nExamples:\n" + "\n".join(lines)]
    if exits is not None:
        parts.append(f"Exit codes: {exits}")
    if see:
        parts.append("\b\nSee also: " + ", ".join(f"cuggino {name}" for name in see) + ".")
    return "\n\n".join(parts)
