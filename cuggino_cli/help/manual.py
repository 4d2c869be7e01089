"""Layout of a command's `--help`: options in sections, examples at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import click

_LIMITS = "Limits (default: as in .cuggino.json)"
_RECORDING = "Recording"
_OUTPUT = "Output"
_SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "budget",
                "price_as",
                "max_tokens",
                "max_duration",
                "wait_for_quota",
                "no_wait_for_quota",
                "quota_reserve",
                "overage",
                "max_retries",
                "no_sandbox",
            ),
            _LIMITS,
        ),
        **dict.fromkeys(("record", "speed"), _RECORDING),
        **dict.fromkeys(("verbose", "quiet", "json", "color"), _OUTPUT),
    }
)
"""The section of each option that several commands share."""


class Sectioned(click.Command):
    """A command with options in sections; also the base of a group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then limits, recording, output, and `--help`."""
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
    """Return the end of a help text: examples with their purpose, exit codes, references.

    `see` lists commands, or topics of `cuggino help`.
    """
    lines = [f"  {line}\n      {purpose}" for line, purpose in examples]
    parts = ["\b\nExamples:\n" + "\n".join(lines)]
    if exits is not None:
        parts.append(f"Exit codes: {exits}")
    if see:
        parts.append("\b\nSee also: " + ", ".join(f"cuggino {name}" for name in see) + ".")
    return "\n\n".join(parts)
