"""`cuggino deliver`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from reactivex import Observable

from cuggino import Runtime, __version__, load_config, resumed_agent
from cuggino.config import Config
from cuggino_cli.follow.follower import follow
from cuggino_cli.follow.output import OutputOptions, output_options
from cuggino_cli.follow.views import DeliverView
from cuggino_cli.help.manual import manual
from cuggino_cli.options.deliver import (
    COMPAT,
    THINKING,
    USUAL_THINKING,
    DeliverCommand,
    guarded,
    project_folder,
    read_by,
    session_options,
    thinking_tokens,
)
from cuggino_cli.options.recording import recording_options
from cuggino_cli.options.resuming import refuse_of_the_run, resume_option
from cuggino_cli.options.serving import beside_page, serve_option
from cuggino_cli.options.supervision import (
    AGENT_HELP,
    agent_names,
    policy_options_but_retries,
    warn_if_loose,
    with_policies,
)
from cuggino_cli.options.trusting import check_trust

_OF_THE_RUN = {
    "workflow": "sync",
    "max_sessions": "--max-iterations",
    "max_retries": "--max-retries",
    "verify": "--verify",
    "recheck": "--recheck",
}
"""Options that a resumed run keeps from its start."""


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
        ("cuggino deliver -p ../shop --resume", "Resume an unfinished run of another project."),
        exits="0 all passed or verified, 11 max iterations, 12 usage limit, 13 budget, 14 too many "
        "errors or no progress, 15 all blocked, 1 failed, 2 wrong usage, 130 interrupted (129 by "
        "SIGHUP, 143 by SIGTERM). After 1, 12, 13, 129, 130 and 143 the run can be resumed.",
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
    help="The project, if it is not the current folder.",
)
@session_options("sessions")
@click.option("--plan-model", "-P", metavar="M", help="The model of planning sessions.")
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
    help="Allow rm and mv within the project.",
)
@click.option("--verify", is_flag=True, help="When all deliverables have passed, verify each.")
@click.option("--recheck", is_flag=True, help="Start a session even if all have passed.")
@click.option("--strict-transitions", is_flag=True, help="Refuse to block a passed deliverable.")
@resume_option
@click.option("--agent", "-a", metavar="NAME", help=AGENT_HELP, shell_complete=agent_names)
@click.option("--debug", "-d", is_flag=True, help="Show the prompts and the raw output.")
@click.option(COMPAT, is_flag=True, help="End with Autonoe's exit codes, 0 and 1.")
@recording_options
@serve_option
@output_options
def command(
    folder: Path,
    agent: str | None,
    resume: str | None,
    output: OutputOptions,
    recording: dict[str, Any],
    debug: bool,
    serve: bool,
    compat_exit_codes: bool,
    **given: Any,
) -> int:
    """Work until every deliverable of SPEC.md has passed.

    The first session records the deliverables in .autonoe/status.json; each further session works
    on them with a fresh context.

    `cuggino deliver sync` is for a changed specification: it compares the deliverables with
    SPEC.md, then verifies each. It takes the same options except --verify and --recheck.
    """
    _check(given, is_resumed=resume is not None)
    options = {
        name: given.pop(name)
        for name in ("workflow", "max_sessions", "plan_model", "thinking", "verify", "recheck")
    }
    options["strict_transitions"] = given.pop("strict_transitions")
    config = with_policies(guarded(load_config(folder)), given, autonoe_words=True)
    check_trust(folder)
    run_id = resume or None
    if resume is not None:
        agent = resumed_agent(folder, run_id, kind="deliver", given=agent)
    runtime = Runtime.live(
        cwd=folder, config=config, agent=agent, drafts=output.verbose, **recording
    )
    chosen = {name: value for name, value in options.items() if value}
    warn_if_loose(config, runtime.agent, roles=runtime.deliver_options(**chosen).roles)
    begins = "Resuming" if resume is not None else "Starting"
    opening = () if output.quiet else _opening(begins, folder, config, chosen)
    view = DeliverView(
        output=output,
        opening=opening,
        instruction=runtime.deliver_instruction if debug else None,
        compat=compat_exit_codes,
        go_on=_how_to_resume(folder, chosen, journaled=config.journal),
    )

    def start(stop: Observable[object]) -> Observable[Any]:
        if resume is not None:
            return runtime.resume_delivery(run_id, interrupt=stop, **chosen)
        return runtime.deliver(runtime.deliver_options(**chosen), interrupt=stop)

    return beside_page(lambda: follow(start, view, runtime), folder, serve=serve)


def _check(given: dict[str, Any], *, is_resumed: bool) -> None:
    """Refuse options that exclude each other."""
    if is_resumed:
        refuse_of_the_run(given, _OF_THE_RUN)
    if given["workflow"] is not None and (given["verify"] or given["recheck"]):
        raise click.UsageError("--verify and --recheck are for `cuggino deliver` without sync.")


def _opening(begins: str, folder: Path, config: Config, chosen: dict[str, Any]) -> Iterator[str]:
    """Yield the lines at the start (AUT-242)."""
    what = "sync" if chosen.get("workflow") == "sync" else "coding agent"
    shown = {
        "Working directory": folder,
        "Max iterations": chosen.get("max_sessions"),
        "Model": config.model,
        "Plan model": chosen.get("plan_model"),
        "Thinking": f"{chosen['thinking']} tokens" if "thinking" in chosen else None,
    }
    yield f"cuggino deliver v{__version__}"
    yield ""
    yield f"{begins} {what} session..."
    for name, value in shown.items():
        if value is not None:
            yield f"  {name}: {value}"
    yield ""


def _how_to_resume(folder: Path, chosen: dict[str, Any], *, journaled: bool) -> str:
    """Return how to resume an interrupted run; its deliverables are kept in any case."""
    where = "" if folder == Path.cwd() else f" --project-dir {folder}"
    if journaled:
        return f"`cuggino deliver{where} --resume` continues where it stopped"
    sync = " sync" if chosen.get("workflow") == "sync" else ""
    return f"`cuggino deliver{sync}{where}` starts a new run with the current deliverables"
