"""Files and streams that others spoil: links, secrets, broken files, full disks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino.config import AGENT_FILE, CONFIG_FILE, PLAN_BUILD_CONFIG_FILE, Config, save_config
from cuggino.events import RunStarted
from cuggino.storage import STATUS_FILE, Journal, new_run_id
from cuggino.storage.jobs import JOBS_FILE
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.rounds import APPROVES, PLANS, agent, implements, plans, reviews
from tests.git_project import GitProject, isolate_git
from tests.limits import LIMIT

SCENARIO = (
    PLANS
    + agent(
        "implementing",
        {"write": "settings.ini", "text": "[db]\npassword = gr33n!Eggs\n"},
        {"say": "It answered `Set-Cookie: sid=aB3dE5fG7hJ9kL1m`."},
        {"say": "<DONE>Add \x1b[31msettings\x1b[0m\a</DONE>"},
    )
    + APPROVES
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    isolate_git(monkeypatch, tmp_path / "home")
    git = GitProject(tmp_path / "project")
    git.write(".specs/a.md", "# A\n")
    git.git("add", "--all")
    git.git("commit", "--message", "Begin")
    (tmp_path / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    save_config(
        git.root, Config(agent="scripted:../scenario.toml", commit=True, guard="off", sandbox="off")
    )
    monkeypatch.chdir(git.root)
    return git


def _files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of every file below the folder."""
    found = sorted(folder.rglob("*"))
    modes = {str(path.relative_to(folder)): path.lstat().st_mode for path in (folder, *found)}
    content = {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}
    return {name: (mode, content.get(name, b"")) for name, mode in modes.items()}


@pytest.mark.parametrize("name", [".cuggino", ".cuggino/journal"])
def test_links_to_files_of_others(project: GitProject, tmp_path: Path, name: str, cli: Cli) -> None:
    """No run starts in a workspace that is a link to the files of others, which stay."""
    other = tmp_path / "transcripts"
    other.mkdir(mode=0o755)
    for stem in ("notes", "5f0c2b1e-6d1f-4c5e-9d1e-0123456789ab"):
        (other / f"{stem}.jsonl").write_text('{"type":"user"}\n')
        os.utime(other / f"{stem}.jsonl", (1, 1))
    (project.root / name).parent.mkdir(exist_ok=True)
    (project.root / name).symlink_to("../" * (1 + name.count("/")) + "transcripts")
    before = _files(other)
    for command in (["run", "--focus", "x"], ["watch"]):
        assert f"{name} is a link to ../" in cli.err(*command)
    assert 0 == main(["runs"])
    assert before == _files(other)


@pytest.mark.real_agent
@pytest.mark.parametrize("name", [".cuggino", ".cuggino/journal"])
def test_links_to_a_folder_of_ones_own(project: GitProject, tmp_path: Path, name: str) -> None:
    """A user can keep the workspace, or the journals, elsewhere; nothing is pruned there."""
    other = tmp_path / "elsewhere"
    other.mkdir(mode=0o755)
    (project.root / name).parent.mkdir(exist_ok=True)
    (project.root / name).symlink_to(other)
    for count in (1, 2):
        assert 0 == main(["run", "--focus", "x", "--quiet"])
        assert count == len([*other.rglob("*.jsonl")])
    assert 0o755 == other.stat().st_mode & 0o777


def test_a_link_to_the_journal_of_another_project(
    project: GitProject, tmp_path: Path, cli: Cli
) -> None:
    """A link among the journals is neither resumed nor listed, and its target stays."""
    started = RunStarted(run_id=new_run_id(), kind="run", command="cuggino run", focus="x")
    with closing(Journal.create(tmp_path / "other", started, at=datetime.now(UTC))) as journal:
        path = journal.path
    content = path.read_bytes()
    (project.root / ".cuggino/journal").mkdir(parents=True)
    (project.root / ".cuggino/journal" / path.name).symlink_to(path)
    assert "there is no unfinished run" in cli.err("run", "--resume")
    assert 0 == main(["runs"])
    assert started.run_id[:8] not in cli.printed().out
    assert content == path.read_bytes()


def test_links_in_place_of_the_digests(project: GitProject, tmp_path: Path) -> None:
    """A run writes no digest where a link leads."""
    other = tmp_path / "other"
    other.mkdir()
    (project.root / ".cuggino").mkdir()
    (project.root / ".cuggino/digests").symlink_to(other)
    assert 0 == main(["run", "--focus", "x", "--quiet"])
    assert [] == [*other.iterdir()]


def test_the_message_of_a_commit(project: GitProject) -> None:
    """A marker's control characters are in no commit message."""
    assert 0 == main(["run", "--focus", "x", "--quiet"])
    assert "Add settings\n" == project.message()


def test_secrets_in_a_recording(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cassette has no password of the environment, although an agent wrote it into a file."""
    monkeypatch.setenv("DB_PASSWORD", "gr33n!Eggs")
    assert 0 == main(["run", "--focus", "x", "--quiet", "--record", "../c.jsonl"])
    text = (tmp_path / "c.jsonl").read_text(encoding="utf-8")
    assert "gr33n!Eggs" in (project.root / "settings.ini").read_text()
    assert "gr33n!Eggs" not in text
    assert "password = ⟦masked " in text


LOOP = ["loop", "--auto"]
COMMANDS = {
    CONFIG_FILE: [
        *(
            ["run", "-f", "x"],
            ["run", "--resume"],
            ["watch"],
            ["deliver"],
            LOOP,
            ["plan"],
        ),
        *(
            ["slots", "list"],
            ["guard", "check", "ls"],
            ["cluster", "check"],
            ["loop", "configure", "--show"],
        ),
    ],
    AGENT_FILE: [["deliver"], ["guard", "check", "--role", "deliver", "ls"]],
    STATUS_FILE: [["deliver"]],
    PLAN_BUILD_CONFIG_FILE: [LOOP, ["loop", "init"], ["loop", "configure", "--show"]],
    JOBS_FILE: [LOOP],
}
"""The commands that read each file."""

CONTENTS = {
    "": "the file is empty",
    "{": "line 1 column 2: not valid JSON (Expecting property name enclosed in double quotes)",
    '{"a": 1, "a": 1}': 'the key "a" is there twice',
}
CASES = [
    (file, command, content)
    for file, commands in COMMANDS.items()
    for number, command in enumerate(commands)
    for content in (CONTENTS if number == 0 else ["{"])
]
"""Each content of each file with one command, and one content with all others."""


ENDLESS = (
    plans("## Task 1: a")
    + implements("a.txt", "a", said="<DONE>a</DONE>")
    + reviews("<REQUEST_CHANGES>Again.</REQUEST_CHANGES>")
)
"""An iteration whose review asks for another one."""


@pytest.fixture
def looping(ready: Path) -> Path:
    """A project in which each loop could start."""
    (ready / "SPEC.md").write_text("A page.\n")
    for name in ("PLAN.PROMPT.md", "BUILD.PROMPT.md"):
        (ready / name).write_text("Do it.\n")
    for file in COMMANDS:
        (ready / file).parent.mkdir(parents=True, exist_ok=True)
    return ready


def write(project: Path, file: str, content: str) -> None:
    (project / file).write_text(content, encoding="utf-8")


@pytest.mark.parametrize(("file", "command", "content"), CASES)
def test_nothing_is_started(
    file: str, command: list[str], content: str, looping: Path, cli: Cli
) -> None:
    """Each command that reads the file ends with the sentence about it, and writes nothing."""
    write(looping, file, content)
    before = sorted(looping.rglob("*"))
    (line,) = [line for line in cli.err(*command).splitlines() if line.startswith("cuggino:")]
    assert Path(file).name in line
    assert line.endswith(CONTENTS[content])
    assert before == sorted(looping.rglob("*"))
    assert content == (looping / file).read_text()


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("file", COMMANDS)
def test_doctor(file: str, content: str, looping: Path, cli: Cli) -> None:
    """A diagnosis reports the file as a problem."""
    write(looping, file, content)
    problems = [x for x in cli("doctor", code=1).splitlines() if x.startswith("problem")]
    assert any(Path(file).name in x and x.endswith(CONTENTS[content]) for x in problems)


def test_the_users_own_file(looping: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """An empty configuration of the user may have required trust, so nothing is started."""
    write(looping, "mine.json", "")
    monkeypatch.setenv("CUGGINO_CONFIG", str(looping / "mine.json"))
    assert f"{looping / 'mine.json'}: the file is empty" in cli.err("run", "-f", "x")


def test_a_change_during_a_run(ready: Path) -> None:
    """The limits of a run are those of its start, whatever becomes of the file meanwhile."""
    content = '{"maxIterations": 99, "maxIterations": 99}'
    write(ready, "new.json", content)
    write(ready, "scenario.toml", ENDLESS * 4)
    settings = {
        "agent": "scripted:scenario.toml",
        "maxIterations": 2,
        "sandbox": "off",
        "setupCommand": "cp new.json .cuggino.json",
    }
    write(ready, CONFIG_FILE, json.dumps(settings))
    assert 11 == main(["run", "-f", "x", "--quiet"])
    assert content == (ready / CONFIG_FILE).read_text()


def test_setup_keeps_an_unusable_file(ready: Path, cli: Cli) -> None:
    """`setup` starts from the defaults and keeps the file; an empty one needs no copy."""
    for content, kept in (("", []), ("{", [".cuggino.json.bak"])):
        write(ready, CONFIG_FILE, content)
        assert "using the defaults" in cli.err("setup", "--yes", code=0)
        assert kept == [path.name for path in ready.glob("*.bak")]
        assert ".specs" == json.loads((ready / CONFIG_FILE).read_text())["specsPath"]


CUGGINO = (sys.executable, "-m", "cuggino_cli")
MUCH = agent("planning", {"say": "word " * 60_000}, {"sleep": 600})


def shell(command: str, folder: Path, **env: str) -> tuple[int, str]:
    """Run a shell command, with `cuggino` as `$@`; return its code and standard error."""
    argv = ["sh", "-c", command, "sh", *CUGGINO]
    ran = subprocess.run(
        argv, cwd=folder, env={**os.environ, **env}, capture_output=True, timeout=LIMIT
    )
    return ran.returncode, ran.stderr.decode()


@pytest.mark.parametrize(
    "words",
    [
        "runs >&- <&-",
        # More commands: with the second command.
        *(
            pytest.param(f"{one} >&- {more}<&-", marks=pytest.mark.real_agent)
            for one in ("runs", "help config", "--version", "doctor")
            for more in ("", "2>&- ")
            if (one, more) != ("runs", "")
        ),
    ],
)
def test_closed(ready: Path, words: str) -> None:
    """Closed streams are as good as `/dev/null`."""
    assert (0, "") == shell(f'"$@" {words}', ready)


@pytest.mark.parametrize(
    "command", ["runs", pytest.param("--version", marks=pytest.mark.real_agent)]
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_full(ready: Path, command: str) -> None:
    """A full disk under the output is one sentence and exit code 1; under errors it is silent."""
    full = "cuggino: standard output cannot be written: No space left on device\n"
    assert (1, full) == shell(f'"$@" {command} >/dev/full', ready)
    if command == "runs":
        assert (2, "") == shell('"$@" runs show nope 2>/dev/full', ready)


@pytest.mark.real_agent
def test_a_file_in_the_project(ready: Path) -> None:
    """Output of a run to a project file is not blamed on an agent that may not write."""
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run([*git, "init", "-q"], cwd=ready, check=True)
    (ready / "scenario.toml").write_text(PLANS + implements() + APPROVES)
    subprocess.run([*git, "add", "-A"], cwd=ready, check=True)
    subprocess.run([*git, "commit", "-qm", "begin"], cwd=ready, check=True)
    code, told = shell('"$@" run --focus x >log.txt 2>errors.txt', ready)
    assert (0, "") == (code, told)
    log = (ready / "log.txt").read_text()
    assert "[Planning] Starting..." in log
    assert "[Summary] Approved" in log


def test_a_reader_that_leaves(ready: Path) -> None:
    """`| head` ends the command quietly."""
    assert (0, "") == shell('"$@" help config | head -n 1', ready)


@pytest.mark.parametrize(
    ("number", "options"),
    [
        (signal.SIGINT, ("--verbose",)),
        pytest.param(signal.SIGTERM, ("--json", "--verbose"), marks=pytest.mark.real_agent),
    ],
)
def test_a_reader_that_does_not_read(
    ready: Path, number: signal.Signals, options: tuple[str, ...]
) -> None:
    """A signal ends a run whose output fills an unread pipe."""
    (ready / "scenario.toml").write_text(MUCH, encoding="utf-8")
    with subprocess.Popen(
        [*CUGGINO, "run", "--focus", "x", *options],
        cwd=ready,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as run:
        assert run.stdout is not None
        os.read(run.stdout.fileno(), 1)  # the agent has begun to talk
        run.send_signal(number)
        assert 128 + number == run.wait(timeout=LIMIT)


@pytest.mark.real_agent
def test_a_locale_without_other_letters(ready: Path) -> None:
    """Names and arguments are UTF-8 where the locale knows only ASCII."""
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, told = shell('"$@" run --focus "@größe.md"', ready, **ascii_only)
    assert 2 == code
    assert "größe.md" in told
