"""`cuggino agents`: the available agents and their capabilities."""

from __future__ import annotations

from dataclasses import asdict

import click

from cuggino.agents import make_agent
from cuggino.doctor import inspect_agents
from cuggino.errors import ConfigError
from cuggino_cli.follow.output import color_option, plain_lines, table_columns, write_json
from cuggino_cli.help.manual import manual
from cuggino_cli.options.naming import one_line
from cuggino_cli.options.project import project_folder
from cuggino_cli.options.trusting import check_trust, is_trusted
from cuggino_cli.screen.agents import agents_fragments
from cuggino_cli.screen.terminal import ColorMode


@click.group(
    "agents",
    invoke_without_command=True,
    epilog=manual(
        ("cuggino agents", "A table."),
        (
            "cuggino agents --json | jq -r 'select(.state == \"ready\") | .name'",
            "The names of the ready agents.",
        ),
        ("cuggino agents check acp:mine", "Whether a program keeps the protocol."),
        see=("doctor", "help config"),
    )
    + """\n\n\b
GUARD    calls: every tool call is checked before it runs; files: commands
         cannot write protected files; asked: calls that the agent asks about
         are checked before they run, others afterwards; no: the agent is
         unguarded
COST     what a session reports about its cost
SANDBOX  whether commands can run in a sandbox of the system
DELTAS   whether text is shown while it is being written
*        an agent of this project""",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")
@color_option
@click.pass_context
def command(ctx: click.Context, as_json: bool, color: ColorMode) -> int:
    """List the installed agents and their capabilities.

    Agents come with cuggino and with other packages. The version of each is checked; for a missing
    one the install hint is shown.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    reports = inspect_agents(project_folder(), trusted=is_trusted(project_folder()))
    if as_json:
        for report in reports:
            write_json(report.to_json())
        return 0
    lines = plain_lines(color)
    lines.print(agents_fragments(reports, columns=table_columns(lines)))
    return 0


@command.command(
    "check",
    epilog=manual(
        ("cuggino agents check acp:qwen", "One line for each rule."),
        exits="0 all rules kept, 1 one is not, 2 wrong usage.",
        see=("agents", "help providers"),
    ),
)
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")
def check_command(name: str, as_json: bool) -> int:
    """Check a program of the Agent Client Protocol without a model.

    NAME is `acp:` and the name of a program. Its sessions are opened in an empty folder and end
    before their prompt, so nothing is sent to a model.
    """
    from cuggino.agents.acp import AcpAgent  # the models of the protocol are not listed
    from cuggino.testing import try_offline

    agent = make_agent(name, cwd=project_folder())
    if not isinstance(agent, AcpAgent):
        raise ConfigError(
            f"{name} does not speak the Agent Client Protocol",
            hint="name one as acp:NAME (see `cuggino help providers`)",
        )
    check_trust(project_folder())
    has_failed = False
    for verdict in try_offline(agent):
        has_failed = has_failed or verdict.outcome == "failed"
        if as_json:
            write_json(asdict(verdict))
        else:
            message = one_line(verdict.message)
            rule = verdict.rule.replace("_", " ")
            click.echo(f"{verdict.outcome:<8} {rule}" + (f": {message}" if message else ""))
    return int(has_failed)
