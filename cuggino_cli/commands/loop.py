"""`cuggino loop`, and `cuggino loop init`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuggino_cli.commands import loop_configure, setup
from cuggino_cli.completing import agent_names
from cuggino_cli.deliver_options import COMPAT, max_iterations, max_retries, read_by
from cuggino_cli.follow import INTERRUPTED, OutputOptions, output_options
from cuggino_cli.loop_settings import load_settings
from cuggino_cli.manual import Sectioned, manual
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
    from cuggino import Runtime
    from cuggino.events import PlanBuildPhase

_OF_THE_RUN = {
    "auto": "--auto",
    "fresh": "--fresh",
    "allow_main": "--allow-main",
    "max_sessions": "--max-iterations",
    "max_retries": "--max-retries",
}
"""What a run that goes on keeps as it began, or does not need."""

_NEW = ("max_sessions", "allow_main", "fresh")
_REFUSED = 2
_COMPATIBLE = {INTERRUPTED: 0, _REFUSED: 1}
"""Lopen's exit codes for what ends before the loop begins."""


class LoopGroup(Sectioned, click.Group):
    """A group with `--compat-exit-codes`: errors then have the exit codes of Lopen (LOP-007)."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error ends with the exit code that is asked for."""
        from cuggino.errors import CugginoError

        try:
            return super().invoke(ctx)
        except CugginoError as error:
            if not ctx.params["compat_exit_codes"]:
                raise
            from cuggino_cli.follow_loop import error_code
            from cuggino_cli.main import complain

            complain(error.message, error.hint)
            raise click.exceptions.Exit(error_code(error)) from error


@click.group(
    "loop",
    cls=LoopGroup,
    invoke_without_command=True,
    epilog=manual(
        ("cuggino loop init", "The two prompts and an empty list of jobs, where they are missing."),
        ("cuggino loop", "Ask what to begin with, then work."),
        ("cuggino loop --auto -n 30 --wait-for-quota", "Ask nothing; at most 30 iterations."),
        ("cuggino loop --resume", "Go on with the latest unfinished run."),
        exits="0 complete, 11 max iterations, 12 usage limit, 13 budget, 14 too many errors or no "
        "progress, 15 all open jobs blocked, 1 failed, 2 wrong usage, configuration or "
        "branch, 130 interrupted (143 by SIGTERM). After 1, 12, 13, 130 and 143 the run can be "
        "resumed.",
        see=("runs", "help exit-codes"),
    ),
)
@click.option("--auto", "-a", is_flag=True, help="Ask nothing: plan, then build.")
@click.option(
    "--config",
    "-c",
    "config_path",
    metavar="PATH",
    help="One more configuration file, which goes before all others.",
)
@click.option("--allow-main", is_flag=True, help="Run on a protected branch, such as main.")
@click.option("--fresh", is_flag=True, help="Remove a lopen.loop.done that is there.")
@click.option(
    "--max-iterations",
    "-n",
    "max_sessions",
    metavar="N",
    callback=read_by(max_iterations),
    help="How many iterations there may be; no limit without it.",
)
@click.option(
    "--max-retries",
    metavar="N",
    callback=read_by(max_retries),
    help="How many sessions in a row may fail and be followed by another.",
)
@click.option("--model", "-m", metavar="M", help=MODEL_HELP)
@policy_options_but_retries
@resume_option
@click.option("--agent", metavar="NAME", help=AGENT_HELP, shell_complete=agent_names)
@click.option(COMPAT, is_flag=True, help="End with Lopen's exit codes, 0 when interrupted.")
@recording_options
@output_options
def command(
    auto: bool,
    config_path: str | None,
    agent: str | None,
    model: str | None,
    resume: str | None,
    output: OutputOptions,
    recording: dict[str, Any],
    compat_exit_codes: bool,
    **given: Any,
) -> int:
    """Plan the work into jobs, then build them one by one until all are verified.

    What the agents are told stands in PLAN.PROMPT.md and BUILD.PROMPT.md (`cuggino loop init`
    writes them), what is required in docs/requirements/. It asks first whether to plan or to build.
    """
    context = click.get_current_context()
    if context.invoked_subcommand is not None:
        context.obj = config_path
        return 0
    from cuggino import Runtime, load_config, resumed_agent
    from cuggino.config.loop_choices import chosen_agent, chosen_options
    from cuggino_cli.follow_loop import LoopWays, follow_loop
    from cuggino_cli.output.plan_build_screen import LoopView

    _check({"auto": auto, **given}, is_resumed=resume is not None)
    folder = Path.cwd()
    settings = load_settings(folder, config_path)
    config = load_config(folder)
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
    runtime = Runtime.live(cwd=folder, config=config, agent=name, **recording)
    checked = runtime.checked_building(runtime.plan_build_options(**options))
    warn_if_loose(config, runtime.agent, roles=checked.roles)
    if resume is None:
        is_asking = not auto and not output.json and setup.on_terminal()
        begin = _beginning(runtime, options, output, is_asking=is_asking, is_told=auto)
        if isinstance(begin, int):
            return _COMPATIBLE.get(begin, begin) if compat_exit_codes else begin
        options["start"] = begin
    ways = LoopWays(
        output=output,
        view=LoopView(
            verbosity=output.verbosity,
            stream=settings.stream,
            log_level="all" if output.verbose else settings.log_level,
        ),
        compat=compat_exit_codes,
        go_on=_how_to_go_on(config_path, journaled=config.journal),
    )
    if resume is not None:
        return follow_loop(
            lambda stop: runtime.resume_plan_build(resume or None, interrupt=stop, **options), ways
        )
    settled = runtime.plan_build_options(**options)
    return follow_loop(lambda stop: runtime.plan_build(settled, interrupt=stop), ways)


def _check(given: dict[str, Any], *, is_resumed: bool) -> None:
    """Wrong usage: what does not go together."""
    if is_resumed:
        refuse_of_the_run(given, _OF_THE_RUN)


def _beginning(
    runtime: Runtime,
    options: dict[str, Any],
    output: OutputOptions,
    *,
    is_asking: bool,
    is_told: bool,
) -> PlanBuildPhase | int:
    """With which phase the loop begins; an exit code when it does not (LOP-002, LOP-010)."""
    from cuggino_cli.loop_questions import ADD_SPECIFICATIONS, BANNER, ask_choice, say

    if not output.json and not output.quiet:
        say(BANNER)
    if not is_asking and not is_told:
        click.echo("cuggino: no terminal to ask on, going on as with --auto", err=True)
    try:
        choice = ask_choice() if is_asking else "plan"
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
    """Whether the branch is none that is protected (LOP-040)."""
    from cuggino.storage.branch import BranchRefused, protected_branch
    from cuggino_cli.loop_questions import ask_branch
    from cuggino_cli.main import complain

    if options.get("allow_main"):
        return True
    branch = protected_branch(folder, options["protected_branches"])
    if branch is None:
        return True
    refusal = BranchRefused(branch)
    complain(refusal.message, refusal.hint)
    return is_asking and ask_branch(folder)


def _look_for_prompts(folder: Path, begin: PlanBuildPhase, options: dict[str, Any]) -> None:
    """Where somebody is asked, nothing starts without a prompt (LOP-051).

    Raises:
        ConfigError: one is missing, or cannot be used.
    """
    from cuggino.prompts.loop_prompts import PromptNotFound, read_prompt

    try:
        if begin == "plan":
            read_prompt("plan", options["plan_prompt"], folder)
        read_prompt("build", options["build_prompt"], folder)
    except PromptNotFound as error:
        hint = f"{error.hint}; `cuggino loop init` writes one"
        raise PromptNotFound(error.message, hint=hint) from error


def _how_to_go_on(config_path: str | None, *, journaled: bool) -> str:
    """What goes on with a run that was cut off; the jobs are kept in any case."""
    loop = "cuggino loop"
    if config_path is not None:
        loop += f" --config {shlex.quote(config_path)}"
    if journaled:
        return f"`{loop} --resume` goes on where it stopped"
    return f"`{loop}` begins a new run with the jobs as they are"


@command.command(
    "init", epilog=manual(("cuggino loop init", "Then change the prompts as you like."))
)
def init() -> int:
    """Write the two prompts and an empty list of jobs, where they are missing.

    What is there is never overwritten.
    """
    from cuggino.prompts.loop_prompts import init_loop
    from cuggino.storage.jobs import JOBS_FILE
    from cuggino_cli.output.sanitize import inert

    folder = Path.cwd()
    settings = load_settings(folder, click.get_current_context().obj)
    plan, build = settings.plan_prompt_path, settings.build_prompt_path
    made = init_loop(folder, plan_path=plan, build_path=build)
    for path in dict.fromkeys((plan, build, JOBS_FILE)):
        what = "created" if path in made else "is there already, left alone"
        click.echo(f"{inert(path)}: {what}")
    return 0


command.add_command(loop_configure.command)
