"""`cuggino reject`: sends back what a run waits to have approved."""

from __future__ import annotations

import click

from cuggino_cli.help.manual import manual
from cuggino_cli.options.commanding import awaited_approval, decide


@click.command(
    "reject",
    epilog=manual(
        ('cuggino reject "Without a new dependency"', "A plan or work is planned again."),
        ('cuggino reject 2 "Too large"', "One of several, as in `cuggino approve`."),
        exits="0 rejected, 2 nothing waits for it, or wrong usage.",
        see=("approve", "issues", "help control"),
    ),
)
@click.argument("words", metavar='[ID|ITEM] "WHY"', nargs=-1)
def command(words: tuple[str, ...]) -> int:
    """Reject a plan, work before it lands, or spending more.

    The planner gets WHY as a review. After a rejected sum the run ends as at its budget (exit code
    13), and can be resumed.
    """
    if not 1 <= len(words) <= 2 or not words[-1].strip():
        raise click.UsageError('Say why, in quotes: cuggino reject "without a new dependency"')
    issue = awaited_approval(words[0] if len(words) == 2 else None)
    return decide(issue, approves=False, text=words[-1].strip())
