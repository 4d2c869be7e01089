"""Command lines that cannot be understood, and how the command is started."""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cuggino._version import __version__
from cuggino.config import Config, parse_config
from cuggino.domain.deliverable_tools import TOOLS
from cuggino.errors import install_extra
from cuggino_cli import console_scripts, main as main_module
from cuggino_cli.commands import COMMANDS, runs
from cuggino_cli.main import main
from cuggino_cli.options.clustering import chosen_cluster
from tests.cli.cli import Cli
from tests.limits import LIMIT
from tests.mcp_server import arguments


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("wach", "No such command 'wach'. Did you mean 'watch'?"),
        ("xyzzy", "No such command 'xyzzy'."),
        ("run", "For a new run, say what to work on, as in `cuggino run"),
        ("run --focus x --resume", "A resumed run has its text: leave out the text, or --resume."),
        ("run x --resume", "A resumed run has its text: leave out the text, or --resume."),
        ("run x --focus y", "Give the text once: as the argument or as --focus."),
        ("run add a page", "Put the text in quotes: cuggino run 'add a page'"),
        ("run x --budget ten", "'ten' is not an amount of US dollars such as 5 or 2.50."),
        ("run x --budget nan", "'nan' is not an amount of US dollars"),
        ("run x --budget 0", "'0' is not an amount of US dollars"),
        ("run --resume --slow", "--review, --slow and --hands are for a new run."),
        ("run --resume --review x", "--review, --slow and --hands are for a new run."),
        ("run --resume --hands 2", "--review, --slow and --hands are for a new run."),
        ("watch --hours 25-7", "'25' is not a time of the day such as 22:00 or 7"),
        ("watch --hours 22-22", "is never open, as it ends when it begins"),
        ("run --focus x --max-duration soon", "'--max-duration': "),
        ("help rum", "There is no command, topic or word 'rum'. Did you mean 'run'?"),
        ("help budgt", "There is no command, topic or word 'budgt'. Did you mean 'budget'?"),
        ("help ReserveQ", "There is no command, topic or word 'ReserveQ'. Did you mean "),
        ("help rum show", "There is no command or topic 'rum'. Did you mean 'run'?"),
        (
            "help events CommitPerform",
            "There is no section or word of `events` 'CommitPerform'. Did you mean ",
        ),
        ("help events x --json", "There is no event 'x'."),
        ("help runs shw", "There is no command of `runs` 'shw'. Did you mean 'show'?"),
        ("help run show", "There is no command of `run` 'show'."),
        ("help safety budget", "There is no section or word of `safety` 'budget'."),
        ("help markers --json", "Only `help events` and `help config` have a JSON Schema."),
        ("help run --json", "Only `help events` and `help config` have a JSON Schema."),
        ("help --json", "Only `help events` and `help config` have a JSON Schema."),
        ("guard check", "Give the COMMAND to judge"),
        ("guard check --tool Bash --path x", "Give the COMMAND to judge"),
        ("guard check ls --tool Write", "Write takes no COMMAND"),
        ("guard check ls --file x", "each line is a whole case"),
        ("guard check --file x --allow-destructive", "each line is a whole case"),
        ("guard check ls --level none", "'none' is not one of"),
        ("guard check ls --role boss", "'boss' is not one of"),
        ("guard check ls --cwd nowhere", "does not exist"),
        ("guard check ls --profile nod", 'unknown profile "nod"'),
        ("guard check ls --allow-command 'npm run'", "plain name"),
        ("guard check ls rm", "unexpected extra argument"),
        ("simulate --right 1.5", "is not in the range"),
        ("simulate --planning -1", "is not in the range"),
        ("simulate --seeds 0", "is not in the range"),
        ("simulate --approves-wrong nan", "--approves-wrong is not a number"),
        ("simulate --planning inf", "--planning is not a number"),
        ("serve nowhere", "nowhere is not a folder"),
        ("serve --host 0.0.0.0", "without TLS"),
        ("serve --host 203.0.113.1 --insecure", "cannot be used"),
        ("serve --host no.such.host.invalid --insecure", "is not an address"),
        ("serve --cert here.pem", "belong together"),
        ("serve --port 70000", "70000 is not in the range"),
        ("top --once shop", "cuggino: shop is not a folder"),
        (
            "top",
            "cuggino: `cuggino top` needs a terminal that can move its cursor\n"
            "  `cuggino top --once` prints the rows and exits\n",
        ),
        ("report", "there is no journal of a run in"),
        ("cluster check", "no cluster is configured"),
    ],
)
def test_a_wrong_command_line(words: str, message: str, here: Path, cli: Cli) -> None:
    """The exit code is 2, and the message names the error or a correction; nothing is written."""
    told = cli.both(*shlex.split(words), code=2)
    assert message in told.err
    assert ("Did you mean" in told.err) == ("Did you mean" in message)
    assert re.search("^(Error|cuggino): ", told.err, re.MULTILINE)
    assert "Traceback" not in told.err
    assert ("", []) == (told.out, list(here.iterdir()))


@pytest.mark.parametrize("words", ["run --focus x", "watch", "doctor", "runs", "agents", "setup"])
def test_a_folder_that_is_gone(words: str, here: Path, cli: Cli) -> None:
    """Every command reports that the current folder was removed."""
    here.rmdir()
    assert 2 == main(words.split())
    told = "cuggino: the current folder does not exist any more\n  change the folder\n"
    assert ("", told) == cli.printed()


def test_the_module_in_a_folder_that_is_gone(here: Path) -> None:
    """Python, which adds the current folder to its path, reports it, too."""
    script = 'rmdir "$PWD" && exec "$0" -m cuggino_cli status'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(Path(main_module.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith("the current folder does not exist any more\n  change the folder\n")


def test_an_error_that_looks_like_the_end_of_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect that raises `EOFError` is not an interruption by the user."""

    def read(_ctx: object) -> int:
        raise EOFError("EOF read where object expected")

    monkeypatch.setattr(runs.command, "invoke", read)
    with pytest.raises(EOFError, match="where object expected"):
        main(["runs"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--slots 4", "options: more than one slot requires"),
        ("--land-on branch", '"landOn": "branch" requires more than one slot'),
        ("--slots 0", "0 is not in the range"),
        ("--slots 401", "401 is not in the range"),
        ("--land-on pr", '"landOn": "pr" requires more than one slot'),
    ],
)
def test_slots_without_a_gate(words: str, message: str, here: Path, cli: Cli) -> None:
    """Slots that cannot work are refused with the reason, before anything is written."""
    assert message in cli.err("watch", "--agent", "scripted:none.toml", *words.split())
    assert not list(here.iterdir())


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Give the signals back their handlers, which last as long as the script's process."""
    before = {sign: signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)}
    yield
    for sign, handler in before.items():
        signal.signal(sign, handler)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run --max-iterations 3", "deliver --max-iterations 3"),
        ("sync -p shop", "deliver sync -p shop"),
        ("run", "deliver"),
        ("--version", "--version"),
        ("", ""),
        ("doctor run", "doctor run"),
    ],
)
def test_autonoe(words: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`autonoe run` is `cuggino deliver`, `autonoe sync` is `cuggino deliver sync`."""
    asked: list[list[str]] = []
    monkeypatch.setattr(sys, "argv", ["autonoe", *words.split()])

    def run(args: list[str]) -> int:
        asked.append(args)
        return 7

    monkeypatch.setattr(main_module, "main", run)
    with pytest.raises(SystemExit) as ended:
        console_scripts.autonoe()
    assert ([expected.split()], 7) == (asked, ended.value.code)


@pytest.mark.parametrize("words", ["run", "sync"])
def test_autonoe_in_a_folder_without_a_specification(
    words: str, here: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """The command is really `deliver`: it asks for SPEC.md, not for a focus."""
    monkeypatch.setattr(sys, "argv", ["autonoe", words])
    with pytest.raises(SystemExit) as ended:
        console_scripts.autonoe()
    assert 2 == ended.value.code
    assert "SPEC.md" in cli.printed().err


def test_scripts_are_declared() -> None:
    """The package installs all three."""
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    for line in ("cuggino = ", "lopen = "):
        assert f'{line}"cuggino_cli.console_scripts:cuggino"' in text
    assert 'autonoe = "cuggino_cli.console_scripts:autonoe"' in text


_INTERRUPTED_IMPORT = """
import signal, sys
from cuggino_cli.console_scripts import {script}

class Person:
    def find_spec(self, name, *_):
        if name == "{module}":
            signal.raise_signal(signal.{sign})

sys.meta_path.insert(0, Person())
sys.argv[1:] = ["status"]
{script}()
"""


@pytest.mark.parametrize(
    ("script", "module", "sign", "code"),
    [
        ("cuggino", "cuggino_cli.main", "SIGINT", 130),
        ("autonoe", "cuggino_cli.main", "SIGTERM", 143),
        ("autonoe", "click", "SIGINT", 130),
        ("cuggino", "cuggino.runs", "SIGTERM", 143),
    ],
)
def test_a_signal_while_the_command_is_imported(
    script: str, module: str, sign: str, code: int, tmp_path: Path
) -> None:
    """It ends with its exit code, without a word."""
    words = _INTERRUPTED_IMPORT.format(script=script, module=module, sign=sign)
    done = subprocess.run(
        [sys.executable, "-c", words], cwd=tmp_path, capture_output=True, timeout=LIMIT, check=False
    )
    assert (code, b"") == (done.returncode, done.stderr.strip())


def test_an_ignored_signal() -> None:
    """A command in the background of a shell, which ignores Ctrl-C, goes on doing so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    console_scripts._handle_signals()
    assert signal.SIG_IGN == signal.getsignal(signal.SIGINT)
    assert console_scripts._leave == signal.getsignal(signal.SIGTERM)


@pytest.mark.parametrize("command", ["run x", "watch"])
def test_no_folder_for_temporary_files(command: str, tmp_path: Path) -> None:
    """On a full disk, where not even a temporary file can be written, a sentence says so."""
    (tmp_path / ".specs").mkdir()
    (tmp_path / ".specs" / "a.md").write_text("a page")
    line = f'ulimit -f 0; exec "{sys.executable}" -P -m cuggino_cli {command}'
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (1, 0) == (done.returncode, done.stderr.count("Traceback"))
    assert f"check the folder for temporary files, {tmp_path} (TMPDIR)\n" in done.stderr


@pytest.mark.parametrize(
    ("sign", "stays"), [("SIGHUP", True), ("SIGINT", True), ("SIGTERM", False)]
)
def test_a_signal_that_is_ignored_at_the_start(sign: str, stays: bool) -> None:
    """Under `nohup` a command outlives its terminal."""
    number = signal.Signals[sign]
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with main_module._termination_as_exception():
            assert stays == (signal.getsignal(number) is signal.SIG_IGN)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_no_garbage_is_searched_for_while_a_command_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is again once the command has been imported, or could not be."""
    searched: list[bool] = []

    def gone(name: str) -> None:
        searched.append(gc.isenabled())
        raise ModuleNotFoundError(name=name)

    monkeypatch.delitem(sys.modules, "cuggino_cli.commands.skip", raising=False)
    monkeypatch.setattr(importlib, "import_module", gone)
    with pytest.raises(ModuleNotFoundError):
        main_module.cli.get_command(click.Context(main_module.cli), "skip")
    assert [False, True] == [*searched, gc.isenabled()]
    monkeypatch.undo()
    assert main_module.cli.get_command(click.Context(main_module.cli), "skip") is not None
    assert gc.isenabled()


_ON_WINDOWS = """
import sys
import click  # would look for the console of a real Windows

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {"fcntl", "grp", "pwd", "resource", "termios", "tty"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
sys.platform = "win32"
import contextlib, io, json
from cuggino_cli.main import entry

for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    sys.argv[1:] = json.loads(line)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            entry()
        except SystemExit as ended:
            code = ended.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""
SENTENCE = "Windows is not supported, only Linux and macOS: use WSL, which works as Linux"


def test_windows() -> None:
    """Without POSIX-only modules there is one sentence, but for the version and the help."""
    refused = [[], ["run", "--focus", "x"], ["guard", "--help"], ["nothing"]]
    asked = [*refused, ["-v"], ["--version"], ["-h"], ["--help"]]
    told = subprocess.run(
        [sys.executable, "-c", _ON_WINDOWS],
        input="".join(f"{json.dumps(words)}\n" for words in asked),
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    *others, v, version, h, help_text = map(json.loads, told.stdout.splitlines())
    assert [[2, "", f"cuggino: {SENTENCE}\n"]] * len(refused) == others
    assert (v, h) == (version, help_text)
    assert [(0, ""), (0, "")] == [(code, err) for code, _, err in (version, help_text)]
    assert __version__ in version[1]
    assert set(COMMANDS) <= set(re.findall(r"(?:\n  |, )(\w+)", help_text[1]))


def test_elsewhere(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """On other systems the command runs, and the process ends with its exit code."""
    monkeypatch.setattr(sys, "argv", ["cuggino", "help", "exit-codes"])
    with pytest.raises(SystemExit) as ended:
        main_module.entry()
    assert 0 == ended.value.code
    assert "interrupted by SIGTERM" in cli.printed().out


def test_mcp_without_its_library(tmp_path: Path) -> None:
    """Neither its help nor its module loads the library; without it, it says what to install."""
    program = """
import sys
import cuggino.mcp_server
import cuggino_cli.commands.mcp
from cuggino_cli.main import main

assert 0 == main(["mcp", "--help"])
assert not {"mcp", "mcp_types", "anyio", "starlette"} & set(sys.modules)
sys.modules["mcp"] = sys.modules["mcp.server"] = None
sys.exit(main(sys.argv[1:]))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments(tmp_path)[2:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert 2 == ended.returncode
    assert ended.stdout.startswith("Usage: ")
    assert [
        "cuggino: the deliverable tools need the MCP library, which is not installed",
        f"  {install_extra('deliver')}",
    ] == ended.stderr.splitlines()


@pytest.mark.parametrize("tools", ["create,nothing", " , ", "create;list"])
def test_unknown_tools(tools: str, tmp_path: Path, cli: Cli) -> None:
    """An unknown tool is a usage error that lists the known ones."""
    assert 2 == main(arguments(tmp_path, tools=tools)[2:])
    assert ", ".join(TOOLS) in " ".join(cli.printed().err.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--cluster tcp://10.0.0.5:8786", "is a remote address without TLS"),
        ("--cluster tls://10.0.0.5:8786 --insecure", "tls://10.0.0.5:8786 needs TLS files"),
        ("--cluster local", "no local cluster runs"),
        ("--cluster 10.0.0.5:port", '"10.0.0.5:port" is not the address of a cluster'),
        ("--detach", "--detach is for a cluster"),
        ("--insecure", "--insecure is for a cluster"),
    ],
)
@pytest.mark.parametrize("command", ["watch", "cluster check"])
def test_refused(
    options: str, message: str, command: str, here: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """One sentence, what to do, and exit code 2, before anything is started."""
    monkeypatch.setenv("XDG_STATE_HOME", str(here))
    if command != "watch":
        options = options.replace("--cluster ", "")
        if options == "--detach":
            message = "No such option"
    error = cli.err(*command.split(), *options.split())
    assert message in error
    assert "Traceback" not in error
    assert [] == list(here.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--hands 2 --cluster tcp://10.0.0.5:8786", "is a remote address without TLS"),
        ("--hands 2 --detach", "--detach is for a cluster"),
        ("--cluster tcp://127.0.0.1:1", "a cluster works for several hands or attempts, and this"),
        ("--attempts 2 --cluster tcp://10.0.0.5:8786", "is a remote address without TLS"),
        ("--detach", "a cluster works for several hands or attempts, and this"),
        ("--resume --cluster local", "there is no unfinished run"),
    ],
)
def test_a_run_that_is_refused(options: str, message: str, here: Path, cli: Cli) -> None:
    """One sentence, what to do, and exit code 2, before anything is started."""
    settings = {"commit": True, "checkCommand": "true"}
    (here / ".cuggino.json").write_text(json.dumps(settings))
    text = [] if "--resume" in options else ["x"]
    error = cli.err("run", *text, *options.split())
    assert message in error
    assert "Traceback" not in error


def test_one_hand_passes_a_configured_cluster_over(here: Path, cli: Cli) -> None:
    """It is for the watch and for several hands or attempts, which look for it."""
    settings = {"cluster": "10.0.0.5", "commit": True, "checkCommand": "true"}
    (here / ".cuggino.json").write_text(json.dumps(settings))
    assert "10.0.0.5" not in cli.err("run", "x")
    for more in ("--hands", "--attempts"):
        assert "tcp://10.0.0.5:8786 is a remote address" in cli.err("run", "x", more, "2")


def test_approvals_are_refused(here: Path, cli: Cli) -> None:
    """Nobody can be asked on a cluster: one sentence and exit code 2, before it is looked for."""
    settings = {"agent": "scripted:a.toml", "approve": ["plan"], "checkCommand": "true"}
    (here / ".cuggino.json").write_text(json.dumps(settings))
    (here / "a.toml").write_text("repeat = true\n")
    subprocess.run(["git", "init", "-q"], check=True)
    assert [
        "cuggino: a watch on a cluster cannot wait for approvals",
        '  remove plan from "approve", or work here: --cluster none',
    ] == cli.err("watch", "--cluster", "tcp://127.0.0.1:1").splitlines()[-2:]


def test_configured_cluster_that_is_not_there(here: Path, cli: Cli) -> None:
    """The configured address is used, and --cluster none works here."""
    config = {"cluster": "10.0.0.5", "commit": True, "checkCommand": "true"}
    (here / ".cuggino.json").write_text(json.dumps(config))
    assert "tcp://10.0.0.5:8786 is a remote address" in cli.err("watch")
    assert "10.0.0.5" not in cli.err("watch", "--cluster", "none")


def test_options_override_the_configuration(tmp_path: Path) -> None:
    """Settings without an option stay as configured."""
    config = parse_config({"cluster": {"address": "127.0.0.1:1", "detach": True}})
    found = chosen_cluster(config, folder=tmp_path, cluster="127.0.0.1:2")
    assert found is not None
    assert ("tcp://127.0.0.1:2", True) == (found.address, found.detach)
    assert chosen_cluster(config, folder=tmp_path, cluster="none", detach=True) is None
    assert chosen_cluster(Config(), folder=tmp_path, cluster=None) is None
