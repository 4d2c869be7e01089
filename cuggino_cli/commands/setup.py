"""`cuggino setup`: asks for the settings of a project and saves them (CUG-074, CUG-075)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import click
from pydantic.alias_generators import to_camel

from cuggino.agents import make_agent
from cuggino.config import CONFIG_FILE, Config, config_path, load_config, parse_config, save_config
from cuggino.doctor import try_clean_checkout
from cuggino.errors import ConfigError, ProcessError
from cuggino.files import describe, find_project, read_regular, storing
from cuggino.gate import why_it_cannot_fail
from cuggino.git import Git
from cuggino_cli.help.manual import manual
from cuggino_cli.options.naming import one_line
from cuggino_cli.options.questions import Question, Value, ask, y_or_n, yes_or_no
from cuggino_cli.options.supervision import agent_names
from cuggino_cli.options.trusting import accept_typed
from cuggino_cli.screen import console
from cuggino_cli.screen.text import inert

_KEY_COLUMNS = 16


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("A folder is needed")
    return text.strip()


def _whole_number(text: str) -> int:
    # `int` would accept "1_000" and other scripts' digits, and fail differently on huge numbers.
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits) >= 1):
        raise ValueError("A whole number of at least 1 is needed")
    return int(digits)


def _gate(text: str) -> Literal["context", "block"]:
    return "block" if yes_or_no(text) else "context"


GATE = Question(
    field="gate",
    flag="--gate",
    message="Count an approval only if the check command passes (recommended)",
    parse=_gate,
    show=y_or_n,
    toggle=True,
)
"""Asked only when there is a check command."""

CLEAN = Question(
    field="gate",
    flag="--gate",
    message="Run the last check on a clean checkout of HEAD, too (it passes there; recommended)",
    parse=lambda text: "clean" if yes_or_no(text) else "block",
    show=lambda value: y_or_n(value == "clean"),
    toggle=True,
)
"""Asked only when the gate is on and the check passes on a clean checkout."""

NIGHT: Mapping[str, Value] = MappingProxyType(
    {"slots": 3, "budget": 30.0, "max_duration": 28_800.0, "wait_for_quota": True}
)
"""The settings of a night alone (`cuggino help overnight`), besides a check, a gate and commits."""

OVERNIGHT = Question(
    field="overnight",
    flag="--overnight",
    message="Set up a night alone, too (3 items at once, at most 30 dollars and 8 hours)",
    parse=yes_or_no,
    show=y_or_n,
    toggle=True,
)
"""Asked only when the gate and commits are on, and there is no budget yet."""

IGNORED = Question(
    field="ignored",
    flag="",
    message="Add .cuggino/ to .gitignore (runs, backlog and questions of this machine)",
    parse=yes_or_no,
    show=y_or_n,
    toggle=True,
)
"""Asked only in a git repository that does not ignore the folder, nor has it in a commit."""

_TRIAL_S = 60.0
"""Seconds for the trial of the check on a clean checkout."""

QUESTIONS = (
    Question(
        field="specs_path",
        flag="--specs-path",
        message="Path to the specifications folder",
        parse=_not_blank,
    ),
    Question(
        field="max_iterations",
        flag="--max-iterations",
        message="Maximum iterations per loop run",
        parse=_whole_number,
    ),
    Question(
        field="setup_command",
        flag="--setup-command",
        message="Setup command (install deps, build, etc.) — leave empty to skip",
        parse=str.strip,
    ),
    Question(
        field="check_command",
        flag="--check-command",
        message="Check command (linting, type checking, tests) — leave empty to skip",
        parse=str.strip,
    ),
    GATE,
    Question(
        field="commit",
        flag="--commit/--no-commit",
        message="Auto-commit after each implementation step",
        parse=yes_or_no,
        show=y_or_n,
        toggle=True,
    ),
    Question(
        field="audit",
        flag="--audit/--no-audit",
        message="Run audit agent during idle time",
        parse=yes_or_no,
        show=y_or_n,
        toggle=True,
    ),
)
"""All questions, in the order in which they are asked."""


@click.command(
    "setup",
    epilog=manual(
        ("cuggino setup", "Ask six to ten questions."),
        (
            'cuggino setup --yes --check-command "make test" --commit',
            "For scripts: ask nothing, and take the recommended gate.",
        ),
        (
            'cuggino setup --yes --overnight --check-command "make test"',
            "The settings of a night: gate, commits, slots, budget, time limit.",
        ),
        ("cuggino setup --yes --guard full", "Change one setting, keep the others."),
        exits="0 saved, 2 nothing was saved, 130 interrupted.",
        see=("doctor", "run", "help config"),
    ),
)
@click.option("--specs-path", metavar="FOLDER", help="Where the specifications are.")
@click.option("--max-iterations", type=click.IntRange(min=1), help="Maximum iterations of a run.")
@click.option("--setup-command", metavar="COMMAND", help='Run after each planning; "" for none.')
@click.option("--check-command", metavar="COMMAND", help='Run before each review; "" for none.')
@click.option(
    "--gate",
    type=click.Choice(["context", "block", "clean"]),
    help="Whether a failing check command blocks an approval; clean: also on a checkout of HEAD. "
    "Default: what a trial of the check recommends.",
)
@click.option(
    "--guard",
    type=click.Choice(["roles", "full", "off"]),
    help="What agents are limited to: their roles, listed programs too, or nothing.",
)
@click.option("--commit/--no-commit", default=None, help="Commit after each task.")
@click.option("--audit/--no-audit", default=None, help="Audit in the idle time of a watch.")
@click.option(
    "--agent",
    "-a",
    metavar="NAME",
    help="See `cuggino agents`; or scripted:FILE.",
    shell_complete=agent_names,
)
@click.option(
    "--overnight",
    is_flag=True,
    help="Also set what a night alone needs: 3 slots, 30 dollars, 8 hours, waiting for quota.",
)
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: keep the current values.")
def command(yes: bool, overnight: bool, **flags: Any) -> int:
    """Save the settings of this project in .cuggino.json.

    Settings passed as options are not asked for. Commands that you give here are accepted: a run
    does not ask about them.
    """
    folder = Path.cwd()
    _note_project_above(folder)
    existing = read_existing(folder)
    given: dict[str, Value] = {name: value for name, value in flags.items() if value is not None}
    if existing.problem is not None:
        _note(f"{existing.problem.message}; using the defaults.")
    if overnight:
        given.setdefault("commit", True)
    if not yes:
        given = _ask_rest(folder, existing, given, overnight=overnight)
        overnight = bool(given.pop(OVERNIGHT.field, overnight))
    command = str(given.get("check_command") or "").strip()
    if yes and command and "gate" not in given and existing.config.gate == "context":
        given["gate"] = _gate_of_trial(folder, existing.config, given, asks=False)
    if overnight:
        if not (command or existing.config.check_command):
            raise click.UsageError("--overnight needs a check command: pass --check-command.")
        given = {**_night(existing.config), **given}
    _note_if_it_cannot_fail(command)
    config = _settled(folder, existing.config, given)
    if existing.problem is not None and existing.content.strip():
        kept = keep_beside(folder, existing.content)
        _note(f"The unusable file was saved as {kept.name}.")
    save_config(folder, config)
    accept_typed(folder, CONFIG_FILE, map(to_camel, given))
    click.echo(summary(config), nl=False)
    if not yes and console.on_terminal() and _is_not_ignored(folder):
        with suppress(KeyboardInterrupt, EOFError):
            if ask(IGNORED, True):
                _ignore(folder)
    _print_next_step(folder, config, overnight=overnight)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingConfig:
    """The `.cuggino.json` that a project already has."""

    config: Config
    """The settings in it; the defaults if it is missing or unusable."""
    new: bool
    """True if there are no settings yet: no file, an empty one, or an unusable one."""
    problem: ConfigError | None = None
    """The reason why the file is unusable."""
    content: bytes = b""
    """The bytes of the file."""


def read_existing(folder: Path) -> ExistingConfig:
    """Read the configuration of a project; an unusable one is reported as its `problem`.

    Raises:
        ConfigError: the file cannot be read, so it could not be kept as a backup.
    """
    problem = None
    config = Config()
    try:
        config = load_config(folder)
    except ConfigError as error:
        problem = error
    try:
        content = read_regular(config_path(folder))
    except FileNotFoundError:
        content = b""
    except (OSError, ValueError) as error:
        raise problem or ConfigError(f"{CONFIG_FILE}: {describe(error)}") from error
    new = problem is not None or not content
    return ExistingConfig(config=config, new=new, problem=problem, content=content)


def keep_beside(folder: Path, content: bytes) -> Path:
    """Write the content to `.cuggino.json.bak`, or `.bak.1`, `.bak.2` and so on; return the path.

    The backup gets the permissions of the configuration.

    Raises:
        ConfigError: it cannot be written.
    """
    number = 0
    while True:
        path = folder / (f"{CONFIG_FILE}.bak" + (f".{number}" if number else ""))
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            with open(os.open(path, flags, 0o600), "wb") as file:  # noqa: PTH123
                file.write(content)
            with suppress(FileNotFoundError):
                shutil.copymode(config_path(folder), path)
        except FileExistsError:
            number += 1
        except OSError as error:
            raise ConfigError(
                f"{path.name} cannot be written in {folder}: {error.strerror}",
                hint="check the permissions of the folder",
            ) from error
        else:
            return path


def summary(config: Config) -> str:
    """Return the saved settings, one aligned line per key."""
    rows = {
        "specsPath": config.specs_path,
        "maxIterations": str(config.max_iterations),
        "setupCommand": config.setup_command or "(none)",
        "checkCommand": config.check_command or "(none)",
        "commit": str(config.commit).lower(),
        "audit": str(config.audit).lower(),
    }
    if config.gate != "context":
        rows["gate"] = config.gate
    if config.guard != "roles":
        rows["guard"] = config.guard
    default = type(config)()
    for name, value in ((name, getattr(config, name)) for name in NIGHT):
        if value != getattr(default, name):
            rows[to_camel(name)] = f"{value:g}" if isinstance(value, float) else str(value).lower()
    text = "\nConfiguration saved to .cuggino.json:\n\n"
    for key, value in rows.items():
        shown = inert(value).replace("\n", "\n" + " " * (2 + _KEY_COLUMNS))
        text += f"  {key + ':':<{_KEY_COLUMNS}}{shown}\n"
    return text + "\n"


def _note(text: str) -> None:
    """Print a note on standard error."""
    click.echo(inert(text), err=True)


def _ask_rest(
    folder: Path, existing: ExistingConfig, given: Mapping[str, Value], *, overnight: bool
) -> dict[str, Value]:
    """Return the given settings with the answers to the remaining questions."""
    values = dict(given)
    terminal = console.on_terminal()
    missing = []
    try:
        for question in QUESTIONS:
            needless = question is GATE and not str(values.get("check_command") or "").strip()
            if question.field in given or needless:
                continue
            if not terminal:
                missing.append(question.flag)
                continue
            default = getattr(existing.config, question.field)
            if question is GATE and existing.new:
                default = "block"
            values[question.field] = ask(question, default)
            if question is GATE and values["gate"] == "block":
                values["gate"] = _gate_of_trial(folder, existing.config, values, asks=True)
        if terminal and not overnight and _can_last_a_night(existing.config, values):
            values[OVERNIGHT.field] = ask(OVERNIGHT, False)
    except (KeyboardInterrupt, EOFError):
        _note("Nothing was saved.")
        raise click.Abort from None
    if missing:
        raise click.UsageError(f"No terminal to ask on: pass --yes or {', '.join(missing)}.")
    return values


def _can_last_a_night(config: Config, given: Mapping[str, Value]) -> bool:
    """Return whether the settings of a night can be used, and are not there yet."""
    has_gate = str(given.get("check_command") or "").strip() and given.get("gate") != "context"
    return bool(has_gate and given.get("commit")) and config.budget is None


def _night(config: Config) -> dict[str, Value]:
    """Return the settings of a night that the project does not have yet."""
    default = type(config)()
    return {
        name: value
        for name, value in NIGHT.items()
        if getattr(config, name) == getattr(default, name)
    }


def _is_not_ignored(folder: Path) -> bool:
    """Return whether git would offer `.cuggino/` for a commit, and has nothing of it yet."""
    git = Git(cwd=folder)
    try:
        ignored = git.now("check-ignore", "-q", ".cuggino/lock").code
        return ignored == 1 and not git.now("ls-files", ".cuggino").output
    except ProcessError:
        return False


def _ignore(folder: Path) -> None:
    """Add `.cuggino/` to the project's `.gitignore`.

    Raises:
        StorageError: the file cannot be written.
    """
    path = folder / ".gitignore"
    with storing("add .cuggino/", path), path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            file.write(b"" if file.read() == b"\n" else b"\n")
        file.write(b"/.cuggino/\n")


def _note_project_above(folder: Path) -> None:
    above = find_project(folder)
    if above != folder:
        where = one_line(str(above))
        _note(f"{where} is a project already; this gives the current folder a {CONFIG_FILE}, too.")


def _gate_of_trial(
    folder: Path, config: Config, given: Mapping[str, Value], *, asks: bool
) -> Value:
    """Return the gate for the given check command: what a trial of it on HEAD recommends.

    If the check passes on a clean checkout, and could fail there, `clean`, unless the answer is no;
    else `block`.
    """
    settled = _settled(folder, config, {**given, "gate": "block"})
    if why_it_cannot_fail(settled.check_command or ""):
        return "block"  # a trial would prove nothing
    _note("Trying the check command on a clean checkout of HEAD...")
    trial = try_clean_checkout(folder, settled, limit=_TRIAL_S)
    took = f"{trial.seconds:.0f} s"
    if trial.passed:
        _note(f'It passes there, in {took}: "gate": "clean" costs that once more per approval.')
        return ask(CLEAN, "clean") if asks else "clean"
    missing = f"; the checkout lacks {', '.join(trial.missing)}" if trial.missing else ""
    _note(f'"gate" is "block", not "clean": {trial.reason}{missing} ({took}).')
    return "block"


def _note_if_it_cannot_fail(command: str) -> None:
    if why := why_it_cannot_fail(command):
        _note(f"The check command cannot fail: {why}.")


def _settled(folder: Path, config: Config, given: Mapping[str, Value]) -> Config:
    """Return the configuration with the given settings.

    Raises:
        ConfigError: a setting is invalid, or the settings contradict each other.
    """
    raw = config.model_dump(by_alias=True)
    raw |= {to_camel(name): value for name, value in given.items()}
    raw["specsPath"] = str(raw["specsPath"]).strip()
    has_check = bool(str(raw["checkCommand"] or "").strip())
    if raw["gate"] != "context" and not has_check and "gate" not in given:
        raw["gate"] = "context"
        _note("The gate was turned off: there is no check command.")
    hint = "nothing was saved; correct the option"
    for key, value in raw.items():
        if not _storable(str(value)):
            raise ConfigError(f'"{key}" is not UTF-8', hint=hint)
    try:
        settled = parse_config(raw)
    except ConfigError as error:
        raise ConfigError(error.message, hint=hint) from error
    if "agent" in given:
        make_agent(settled.agent, cwd=folder, path=settled.agent_path)
    return settled


def _storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _print_next_step(folder: Path, config: Config, *, overnight: bool) -> None:
    if not (folder / config.specs_path).is_dir():
        click.echo(
            f"Next: write the specifications in the folder {inert(config.specs_path)}, "
            "which does not exist yet."
        )
    if overnight:
        click.echo(
            "For the night: cuggino backlog add TITLE --text TEXT, then "
            "cuggino doctor && cuggino watch --serve"
        )
