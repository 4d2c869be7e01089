"""`cuggino loop`, and `cuggino loop init`."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
from reactivex import Observable

from cuggino import Runtime, resumed_agent, run
from cuggino.config import chosen_agent, chosen_options, load_config
from cuggino.errors import CugginoError, ProcessError
from cuggino.events import PlanBuildPhase
from cuggino.git import BranchRefused, Git, protected_branch
from cuggino.operators import Flow, flow
from cuggino.prompts import PromptNotFound, init_plan_build, read_prompt
from cuggino.sandbox import views_of
from cuggino.storage import JOBS_FILE
from cuggino_cli.commands import loop_configure
from cuggino_cli.follow.follower import follow
from cuggino_cli.follow.output import OutputOptions, output_options
from cuggino_cli.follow.views import PlanBuildView, lopen_error_code
from cuggino_cli.help.manual import Sectioned, manual
from cuggino_cli.options.deliver import COMPAT, session_options
from cuggino_cli.options.plan_build import load_settings
from cuggino_cli.options.questions import say, typed
from cuggino_cli.options.recording import recording_options
from cuggino_cli.options.resuming import refuse_of_the_run, resume_option
from cuggino_cli.options.serving import beside_page, serve_option
from cuggino_cli.options.supervision import (
    AGENT_HELP,
    agent_names,
    dirty_option,
    policy_options_but_retries,
    warn_if_loose,
    with_policies,
)
from cuggino_cli.options.trusting import check_trust
from cuggino_cli.screen import console
from cuggino_cli.screen.console import INTERRUPTED, complain
from cuggino_cli.screen.text import inert

_OF_THE_RUN = {
    "auto": "--auto",
    "fresh": "--fresh",
    "allow_main": "--allow-main",
    "max_sessions": "--max-iterations",
    "max_retries": "--max-retries",
}
"""Options that a resumed run keeps from its start, or does not need."""

_NEW = ("max_sessions", "allow_main", "fresh")
_REFUSED = 2
_COMPATIBLE = {INTERRUPTED: 0, _REFUSED: 1}
"""Lopen's exit codes for outcomes before the loop starts."""


BANNER = "Lopen Loop - Autonomous Development Workflow"
QUESTION = "Do you need to add specifications, or shall we commence planning and building?"
OPTIONS = ("Add specifications", "Plan and build (default)", "Go straight to building")
SELECT = "Select (1-3, default=2): "
BRANCH = "Create a branch named (empty: none): "
ADD_SPECIFICATIONS = "Add specifications to docs/requirements/, then re-run loop."

Choice = Literal["specifications", "plan", "build"]

_CHOICES: dict[str, Choice] = {"": "plan", "1": "specifications", "2": "plan", "3": "build"}
_TRIES = 3


class LoopGroup(Sectioned, click.Group):
    """A group with `--compat-exit-codes`: errors get Lopen's exit codes (LOP-007)."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors honor `--compat-exit-codes`."""
        try:
            return super().invoke(ctx)
        except CugginoError as error:
            if not ctx.params["compat_exit_codes"]:
                raise
            console.complain(error.message, error.hint)
            raise click.exceptions.Exit(lopen_error_code(error)) from error


@click.group(
    "loop",
    cls=LoopGroup,
    invoke_without_command=True,
    epilog=manual(
        ("cuggino loop init", "The two prompts and an empty list of jobs, where they are missing."),
        ("cuggino loop", "Ask what to start with, then work."),
        ("cuggino loop --auto -n 30 --wait-for-quota", "Ask nothing; at most 30 iterations."),
        ("cuggino loop --resume", "Resume the latest unfinished run."),
        exits="0 complete, 11 max iterations, 12 usage limit, 13 budget, 14 too many errors or no "
        "progress, 15 all open jobs blocked, 1 failed, 2 wrong usage, configuration or "
        "branch, 130 interrupted (129 by SIGHUP, 143 by SIGTERM). After 1, 12, 13, 129, 130 and "
        "143 the run can be resumed.",
        see=("runs", "help exit-codes"),
    ),
)
@click.option("--auto", "-a", is_flag=True, help="Ask nothing: plan, then build.")
@click.option(
    "--config",
    "-c",
    "config_path",
    metavar="PATH",
    help="A configuration file that overrides all others.",
)
@click.option("--allow-main", is_flag=True, help="Run on a protected branch, such as main.")
@click.option("--fresh", is_flag=True, help="Remove an existing lopen.loop.done.")
@session_options("iterations")
@dirty_option
@policy_options_but_retries
@resume_option
@click.option("--agent", metavar="NAME", help=AGENT_HELP, shell_complete=agent_names)
@click.option(COMPAT, is_flag=True, help="End with Lopen's exit codes, 0 when interrupted.")
@recording_options
@serve_option
@output_options
def command(
    auto: bool,
    config_path: str | None,
    agent: str | None,
    model: str | None,
    resume: str | None,
    output: OutputOptions,
    recording: dict[str, Any],
    serve: bool,
    compat_exit_codes: bool,
    **given: Any,
) -> int:
    """Plan the work into jobs, then build them one by one until all are verified.

    The prompts are PLAN.PROMPT.md and BUILD.PROMPT.md (`cuggino loop init` writes them), the
    requirements are in docs/requirements/. It first asks whether to plan or to build.
    """
    context = click.get_current_context()
    if context.invoked_subcommand is not None:
        context.obj = config_path
        return 0
    if resume is not None:
        refuse_of_the_run({"auto": auto, **given}, _OF_THE_RUN)
    folder = Path.cwd()
    settings = load_settings(folder, config_path).config
    config = load_config(folder)
    check_trust(folder)
    if resume is not None:
        agent = resumed_agent(folder, resume or None, kind="loop", given=agent)
    name = chosen_agent(settings, config, given=agent)
    options = {
        **chosen_options(settings, config, agent=name, model=model),
        **{key: value for key in _NEW if (value := given.pop(key))},
    }
    if (retries := given.pop("max_retries")) is not None:
        options["max_retries"] = retries
    config = with_policies(config, given)
    is_streamed = settings.stream and not (output.quiet or output.json)
    runtime = Runtime.live(
        cwd=folder, config=config, agent=name, drafts=output.verbose or is_streamed, **recording
    )
    checked = runtime.checked_building(runtime.plan_build_options(**options))
    warn_if_loose(config, runtime.agent, roles=checked.roles)
    if resume is None:
        is_asking = not auto and not output.json and console.on_terminal()
        begin = _beginning(runtime, options, output, is_asking=is_asking, is_told=auto)
        if isinstance(begin, int):
            return _COMPATIBLE.get(begin, begin) if compat_exit_codes else begin
        options["start"] = begin
    view = PlanBuildView(
        output=output,
        stream=settings.stream,
        log_level="all" if output.verbose else settings.log_level,
        compat=compat_exit_codes,
        go_on=_how_to_resume(config_path, journaled=config.journal),
    )

    def start(stop: Observable[object]) -> Observable[Any]:
        if resume is not None:
            return runtime.resume_plan_build(resume or None, interrupt=stop, **options)
        return runtime.plan_build(runtime.plan_build_options(**options), interrupt=stop)

    return beside_page(lambda: follow(start, view, runtime), folder, serve=serve)


def _beginning(
    runtime: Runtime,
    options: dict[str, Any],
    output: OutputOptions,
    *,
    is_asking: bool,
    is_told: bool,
) -> PlanBuildPhase | int:
    """Return the first phase, or an exit code if the loop does not start (LOP-002, LOP-010)."""
    if not output.json and not output.quiet:
        say(BANNER)
    if not is_asking and not is_told:
        click.echo("cuggino: no terminal to ask on, continuing as with --auto", err=True)
    try:
        choice = _ask_choice() if is_asking else "plan"
        if choice == "specifications":
            say(ADD_SPECIFICATIONS)
            return 0
        if not _may_run(runtime.cwd, options, is_asking=is_asking):
            return _REFUSED
    except (KeyboardInterrupt, EOFError):
        click.echo("Loop cancelled by user.", err=True)
        return INTERRUPTED
    if is_asking:
        _look_for_prompts(runtime.cwd, choice, options)
    return choice


def _may_run(folder: Path, options: dict[str, Any], *, is_asking: bool) -> bool:
    """Return whether the branch is unprotected (LOP-040)."""
    if options.get("allow_main"):
        return True
    branch = protected_branch(folder, options["protected_branches"])
    if branch is None:
        return True
    refusal = BranchRefused(branch)
    complain(refusal.message, refusal.hint)
    return is_asking and _ask_branch(folder)


def _ask_choice() -> Choice:
    """Ask what to do first; default to planning after three invalid answers.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        EOFError: Ctrl-D on an empty answer, or the terminal was closed.
    """
    say(QUESTION)
    for number, option in enumerate(OPTIONS, start=1):
        say(f"  {number}. {option}", indent="     ")
    for _ in range(_TRIES):
        choice = _CHOICES.get(typed(SELECT))
        if choice is not None:
            return choice
        say("Please answer 1, 2 or 3.")
    say("Continuing with 2.")
    return "plan"


def _ask_branch(folder: Path) -> bool:
    """Ask for the name of a branch, create it and switch to it; return whether it exists now.

    Raises:
        KeyboardInterrupt, EOFError: as `_ask_choice`.
    """
    git = Git(cwd=folder, views=views_of(load_config(folder)))

    def switch(name: str) -> Flow[None]:
        yield from git.must("switch", "--create", name, hooks=True)

    for _ in range(_TRIES):
        name = typed(BRANCH)
        if not name:
            return False
        try:
            run(flow(partial(switch, name)))
        except ProcessError as error:
            say(inert(error.message))
        else:
            say(f"Switched to the new branch {inert(name)}.")
            return True
    return False


def _look_for_prompts(folder: Path, begin: PlanBuildPhase, options: dict[str, Any]) -> None:
    """Check that the prompts exist before an interactive run starts (LOP-051).

    Raises:
        ConfigError: one is missing or unusable.
    """
    try:
        if begin == "plan":
            read_prompt("plan", options["plan_prompt"], folder)
        read_prompt("build", options["build_prompt"], folder)
    except PromptNotFound as error:
        hint = f"{error.hint}; `cuggino loop init` writes one"
        raise PromptNotFound(error.message, hint=hint) from error


def _how_to_resume(config_path: str | None, *, journaled: bool) -> str:
    """Return how to resume an interrupted run; its jobs are kept in any case."""
    loop = "cuggino loop"
    if config_path is not None:
        loop += f" --config {shlex.quote(config_path)}"
    if journaled:
        return f"`{loop} --resume` continues where it stopped"
    return f"`{loop}` starts a new run with the current jobs"


@command.command("init", epilog=manual(("cuggino loop init", "Then edit the prompts.")))
def init() -> int:
    """Write the two prompts and an empty list of jobs, where they are missing.

    Existing files are never overwritten.
    """
    folder = Path.cwd()
    settings = load_settings(folder, click.get_current_context().obj).config
    plan, build = settings.plan_prompt, settings.build_prompt
    made = init_plan_build(folder, plan_path=plan, build_path=build)
    for path in dict.fromkeys((plan, build, JOBS_FILE)):
        what = "created" if path in made else "exists, not changed"
        click.echo(f"{inert(path)}: {what}")
    return 0


command.add_command(loop_configure.command)
