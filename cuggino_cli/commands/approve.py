"""`cuggino approve`: lets a run go on that waits for an approval."""

from __future__ import annotations

import click

from cuggino.errors import ConfigError
from cuggino.storage import Issue, plan_of
from cuggino_cli.help.manual import manual
from cuggino_cli.options.commanding import awaited_approval, decide
from cuggino_cli.options.completing import issue_names


@click.command(
    "approve",
    epilog=manual(
        ("cuggino approve", "The only thing that waits for an approval."),
        ("cuggino approve 2", "By its number in `cuggino issues list`, its item, or its kind."),
        ("cuggino approve --edit", "Change the plan in your editor first."),
        exits="0 approved, 2 nothing waits for it, or wrong usage.",
        see=("reject", "issues", "run", "help control"),
    ),
)
@click.argument("name", metavar="[ID|ITEM]", required=False, shell_complete=issue_names)
@click.option("--edit", is_flag=True, help="Open the plan in $EDITOR, and approve what you save.")
def command(name: str | None, edit: bool) -> int:
    """Approve a plan, work before it lands, or spending more.

    What is approved is named by `"approve"` in .cuggino.json. The plan counts as it stands in the
    file in .cuggino/spec-issues, where you can also edit it before.
    """
    issue = awaited_approval(name)
    return decide(issue, approves=True, text=_edited(issue) if edit else "")


def _edited(issue: Issue) -> str:
    """Return the plan as a person has saved it in an editor."""
    plan = plan_of(issue)
    if not plan:
        raise click.UsageError("Only a plan can be edited.")
    edited = click.edit(f"{plan}\n", extension=".md")
    if edited is None:
        raise ConfigError("the plan was not saved, so that nothing is approved")
    if not edited.strip():
        raise ConfigError("the plan is empty, so that nothing is approved")
    return edited
