"""`cuggino deliver`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuggino_cli.completing import agent_names
from cuggino_cli.deliver_options import (
    COMPAT,
    THINKING,
    USUAL_THINKING,
    DeliverCommand,
    guarded,
    max_iterations,
    max_retries,
    project_folder,
    read_by,
    thinking_tokens,
)
from cuggino_cli.follow import OutputOptions, output_options
from cuggino_cli.manual import manual
from cuggino_cli.policies import (
    AGENT_HELP,
    MODEL_HELP,
    policy_options_but_retries,
    warn_if_loose,
    with_policies,
)
from cuggino_cli.recording_options import recording_options
from cuggino_cli.resuming import refuse_of_the_run, resume_option

if TYPE_CHECKING:
    from cuggino.config import Config
    from cuggino.events import DeliverInstruction
    from cuggino_cli.output.deliver import Line

_OF_THE_RUN = {
    "workflow": "sync",
    "max_sessions": "--max-iterations",
    "max_retries": "--max-retries",
    "verify": "--verify",
    "recheck": "--recheck",
}
"""What a run that goes on keeps as it began."""


@click.command(
    "deliver",
    cls=DeliverCommand,
    epilog=manual(
        ("cuggino deliver", "Work until every deliverable of SPEC.md has passed."),
        (
            "cuggino deliver --verify -n 20 --budget 30",
            "Verify what has passed; at most 20 sessions and 30 dollars.",
        ),
        ("cuggino deliver sync", "After SPEC.md has changed."),
        ("cuggino deliver -p ../shop --resume", "Go on with an unfinished run of another project."),
        exits="0 all passed or verified, 11 max iterations, 12 usage limit, 13 budget, 14 too many "
        "errors or no progress, 15 all blocked, 1 failed, 2 wrong usage, 130 interrupted (143 by "
        "SIGTERM). After 1, 12, 13, 130 and 143 the run can be resumed.",
        see=("doctor", "runs", "help config"),
    ),
)
@click.argument("workflow", type=click.Choice(["sync"]), required=False, metavar="[sync]")
@click.option(
    "--project-dir",
    "-p",
    "folder",
    metavar="PATH",
    default=".",
    callback=read_by(project_folder),
    help="The project, if it is not the present folder.",
)
@click.option(
    "--max-iterations",
    "-n",
    "max_sessions",
    metavar="N",
    callback=read_by(max_iterations),
    help="How many sessions there may be; no limit without it.",
)
@click.option(
    "--max-retries",
    metavar="N",
    callback=read_by(max_retries),
    help="How many sessions in a row may fail and be followed by another.",
)
@click.option("--model", "-m", metavar="M", help=MODEL_HELP)
@click.option("--plan-model", "-P", metavar="M", help="The model of sessions that plan.")
@click.option(
    THINKING,
    metavar="[N]",
    is_flag=False,
    flag_value=str(USUAL_THINKING),
    callback=read_by(thinking_tokens),
    help=f"Let the model think, for so many tokens; {USUAL_THINKING} without a number.",
)
@policy_options_but_retries
@click.option(
    "--allow-destructive",
    "-D",
    is_flag=True,
    default=None,
    help="Let agents use rm and mv within the project.",
)
@click.option("--verify", is_flag=True, help="When all is passed, have each verified.")
@click.option("--recheck", is_flag=True, help="Start a session even when all is passed.")
@click.option("--strict-transitions", is_flag=True, help="Refuse to block what is passed.")
@resume_option
@click.option("--agent", "-a", metavar="NAME", help=AGENT_HELP, shell_complete=agent_names)
@click.option("--debug", "-d", is_flag=True, help="Show what is sent and received.")
@click.option(COMPAT, is_flag=True, help="End with Autonoe's exit codes, 0 and 1.")
@recording_options
@output_options
def command(
    folder: Path,
    agent: str | None,
    resume: str | None,
    output: OutputOptions,
    recording: dict[str, Any],
    debug: bool,
    compat_exit_codes: bool,
    **given: Any,
) -> int:
    """Work until every deliverable of SPEC.md has passed.

    The first session writes down what is to be delivered, in .autonoe/status.json; each further
    one works on it, with a fresh context.

    `cuggino deliver sync` is for a specification that has changed: it compares the deliverables
    with SPEC.md, then has each one verified. It takes the same options but --verify and --recheck.
    """
    from cuggino import Runtime, load_config, resumed_agent
    from cuggino_cli.follow_deliver import Ways, follow_deliver
    from cuggino_cli.output.deliver_screen import Wording

    _check(given, is_resumed=resume is not None)
    options = {
        name: given.pop(name)
        for name in ("workflow", "max_sessions", "plan_model", "thinking", "verify", "recheck")
    }
    options["strict_transitions"] = given.pop("strict_transitions")
    config = with_policies(guarded(load_config(folder)), given)
    run_id = resume or None
    if resume is not None:
        agent = resumed_agent(folder, run_id, kind="deliver", given=agent)
    runtime = Runtime.live(cwd=folder, config=config, agent=agent, **recording)
    chosen = {name: value for name, value in options.items() if value}
    warn_if_loose(config, runtime.agent, roles=runtime.deliver_options(**chosen).roles)
    begins = "Resuming" if resume is not None else "Starting"
    opening = () if output.quiet else _opening(begins, folder, config, chosen)
    ways = Ways(
        output=output,
        wording=Wording(
            output.verbosity,
            opening=opening,
            instruction=(lambda name: _told(name, folder)) if debug else None,
        ),
        debug=debug,
        compat=compat_exit_codes,
        go_on=_how_to_go_on(folder, chosen, journaled=config.journal),
    )
    if resume is not None:
        return follow_deliver(
            lambda stop: runtime.resume_delivery(run_id, interrupt=stop, **chosen), ways
        )
    settled = runtime.deliver_options(**chosen)
    return follow_deliver(lambda stop: runtime.deliver(settled, interrupt=stop), ways)


def _check(given: dict[str, Any], *, is_resumed: bool) -> None:
    """Wrong usage: what does not go together."""
    if is_resumed:
        refuse_of_the_run(given, _OF_THE_RUN)
    if given["workflow"] is not None and (given["verify"] or given["recheck"]):
        raise click.UsageError("--verify and --recheck are for `cuggino deliver` without sync.")


def _opening(begins: str, folder: Path, config: Config, chosen: dict[str, Any]) -> Iterator[Line]:
    """The lines at the start (AUT-242)."""
    from cuggino import __version__
    from cuggino_cli.output.deliver import Line

    what = "sync" if chosen.get("workflow") == "sync" else "coding agent"
    shown = {
        "Working directory": folder,
        "Max iterations": chosen.get("max_sessions"),
        "Model": config.model,
        "Plan model": chosen.get("plan_model"),
        "Thinking": f"{chosen['thinking']} tokens" if "thinking" in chosen else None,
    }
    yield Line("info", f"cuggino deliver v{__version__}")
    yield Line("info", "")
    yield Line("info", f"{begins} {what} session...")
    for name, value in shown.items():
        if value is not None:
            yield Line("info", f"  {name}: {value}")
    yield Line("info", "")


def _how_to_go_on(folder: Path, chosen: dict[str, Any], *, journaled: bool) -> str:
    """What goes on with a run that was cut off; the deliverables are kept in any case."""
    where = "" if folder == Path.cwd() else f" --project-dir {folder}"
    if journaled:
        return f"`cuggino deliver{where} --resume` goes on where it stopped"
    sync = " sync" if chosen.get("workflow") == "sync" else ""
    return f"`cuggino deliver{sync}{where}` begins a new run with the deliverables as they are"


def _told(name: DeliverInstruction, folder: Path) -> str:
    """What a session with this instruction is told."""
    from cuggino.domain.deliverable_tools import TOOLS_OF, agent_tool
    from cuggino.prompts.instructions import load_instruction

    tools: dict[str, str] = {tool: agent_tool(tool) for tool in TOOLS_OF[name]}
    return load_instruction(name, folder, tools=tools).text
