"""The shell commands of README and help pages, run as they are written, with a scripted agent.

A shell runs each block; `cuggino` in it is this checkout. Only what asks a person gets `--yes`.
`ELSEWHERE` has the blocks that other tests run, and those that no test can run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cuggino.storage import Workspace, list_journals
from tests.cli import deliveries, loops
from tests.git_project import GitProject, isolate_git
from tests.limits import LIMIT
from tests.processes.subscribers import eventually
from tests.test_readme import PAGES, ROOT

RUN = {
    "setup": ("README.md", "cuggino setup "),
    "first": ("README.md", "cuggino run "),
    "completion": ("README.md", 'eval "$(_CUGGINO'),
    "afterwards": ("README.md", "git log -p"),
    "limits": ("README.md", "cuggino run "),
    "night": ("README.md", "git switch -c overnight"),
    "evening": ("overnight.md", "git switch -c overnight"),
    "morning": ("overnight.md", "cuggino status"),
    "decide": ("overnight.md", "cuggino issues answer"),
    "merge": ("overnight.md", "git switch main"),
    "again": ("exit-codes.md", "cuggino run "),
    "attempts": ("attempts.md", "cuggino run "),
    "status": ("control.md", "cuggino status --json"),
    "example": ("library.md", 'cd "$(mktemp -d)"'),
    "deliver": ("loops.md", "cuggino deliver "),
    "loop": ("loops.md", "cuggino loop init"),
    "guard": ("safety.md", "cuggino guard check"),
    "undo": ("safety.md", "cuggino undo "),
    "confined": ("sandbox.md", "cuggino doctor "),
    "serve": ("page.md", "cuggino serve "),
    "certificate": ("page.md", "cuggino serve --host"),
    "import": ("trackers.md", "cuggino backlog import"),
    "jira": ("trackers.md", "#!/bin/sh"),
}
"""The page and the beginning of each block that a test below runs."""

ELSEWHERE = {
    ("README.md", "python3 -m venv .venv && .venv/bin/pip install -q . "): "CI",
    ("README.md", "python3 -m venv .venv && .venv/bin/pip install -q -e"): "CI",
    ("README.md", ".venv/bin/pytest -q -m real_agent"): "CI",
    ("contributing.md", "python3 -m venv .venv"): "CI",
    ("start.md", "cuggino demo"): "CI",
    ("start.md", "cuggino setup\n"): "test_first_run",
    ("start.md", 'cuggino run "'): "test_first_run",
    ("start.md", "git log -p"): "test_first_run",
    ("start.md", "cuggino setup --overnight"): "test_night_of_the_readme",
    ("start.md", "cuggino status"): "test_night",
    ("clusters.md", "pip install 'cuggino[cluster]'"): "tests/placement/test_local.py",
    ("clusters.md", "cuggino cluster check"): "parsed only: needs a cluster of other machines",
    ("clusters.md", "mkdir -p ~/.local/state"): "tests/placement/test_recipes.py",
    ("clusters.md", "dask worker"): "tests/placement/test_recipes.py",
    ("clusters.md", "kubectl create"): "parsed only: needs Kubernetes",
    ("control.md", "cuggino approve"): "tests/cli/test_waiting.py",
    ("page.md", "ssh -L"): "parsed only: needs another machine",
    ("safety.md", "docker build"): "tests/test_dockerfile.py: its targets; needs Docker",
    ("safety.md", "docker run"): "parsed only: needs Docker",
    ("speed.md", "python -m tests.benchmarks\n"): "tests/benchmarks/test_program.py",
    ("speed.md", "python -m tests.benchmarks --against"): "tests/benchmarks/test_program.py",
    ("trackers.md", "gh auth login"): "parsed only: needs a login",
}

SCENARIO = """\
repeat = true

[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n## Task 1: the page\\n\\n## Task 2: its tests\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>Two tasks.</PLAN_COMPLETE>"

%s
[[implementing]]
cost_usd = 0.01
[[implementing.steps]]
run = "date +%%s%%N >> page-$$.txt"
[[implementing.steps]]
say = "<PROGRESS>Write the page</PROGRESS>"

[[implementing]]
[[implementing.steps]]
run = "date +%%s%%N >> page-$$.txt"
[[implementing.steps]]
say = "<DONE>Write the tests</DONE>"

[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>As specified.</APPROVED>"
"""
_ASK = """\
[[planning]]
[[planning.steps]]
say = "<SPEC_ISSUE># How long is a link valid?</SPEC_ISSUE>"

[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n## Task 1: the page\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"
"""

_VERIFIES = """
[[sync]]
steps = [{ say = "Nothing differs." }]

[[verify]]
[[verify.steps]]
tool = "verify"
input = { deliverableId = "DL-001" }
[[verify.steps]]
say = "All is verified."
"""


def block(name: str) -> str:
    """Return the block, which begins with the text in `RUN`."""
    page, start = RUN[name]
    found = [text for text in _blocks(page) if text.startswith(start)]
    return found[-1 if name == "limits" else 0]


def _blocks(page: str) -> list[str]:
    (text,) = [text for path, text in PAGES.items() if path.endswith(page)]
    return re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_every_block_is_run_or_listed() -> None:
    """A new block of commands is run by a test, or listed with the reason why not."""
    known = [*RUN.values(), *ELSEWHERE]
    for page in PAGES:
        name = page.rpartition("/")[2]
        for text in _blocks(page):
            starts = [start for at, start in known if at == name and text.startswith(start)]
            assert starts, f"{page}: no test runs {text!r}"
    for page, start in known:
        assert any(text.startswith(start) for text in _blocks(page)), (page, start)


class Desk:
    """A project on the branch `main`, a home folder, and a shell that finds `cuggino`."""

    def __init__(self, place: Path, *, ask: bool = False, **config: object) -> None:
        self.place = place
        self.folder = place / "project"
        self.git = GitProject(self.folder)
        self.workspace = Workspace(self.folder)
        (place / "home").mkdir(exist_ok=True)
        (place / "scratch").mkdir()
        (place / "scenario.toml").write_text(SCENARIO % (_ASK if ask else ""))
        settings = {"agent": f"scripted:{place}/scenario.toml", "sandbox": "off", **config}
        self.git.write(".cuggino.json", json.dumps(settings))
        self.git.write(".specs/login.md", "# Login\n")
        self.git.write(".gitignore", ".cuggino\n*.html\n")
        self.git.write("Makefile", "check test:\n\t@true\n")
        self.git.git("add", "-A")
        self.git.git("commit", "-q", "-m", "Begin")
        (place / "bin").mkdir()
        asks = 'case $1 in setup|trust|undo) set -- "$@" --yes ;; esac\n'
        self.program("cuggino", f'{asks}exec {shlex.quote(sys.executable)} -m cuggino_cli "$@"')

    def program(self, name: str, script: str) -> None:
        """Put a shell script on the `PATH`."""
        path = self.place / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    @property
    def env(self) -> dict[str, str]:
        config = self.place / "home" / "trust.json"
        config.write_text('{"trust": "off"}')
        return {
            **os.environ,
            "PATH": f"{self.place / 'bin'}:{os.environ['PATH']}",
            "CUGGINO_CONFIG": str(config),
            "TMPDIR": str(self.place / "scratch"),
        }

    def run(self, text: str, *codes: int) -> str:
        """Run the lines in one shell; return the output. `codes` may end it, default 0."""
        done = subprocess.run(
            ["bash", "-euc", text],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode in (codes or (0,)), done.stdout
        return done.stdout

    @contextmanager
    def running(self, text: str, code: int = 130) -> Iterator[Path]:
        """Run the lines beside the test, which ends them; yield the file of their output."""
        log = self.place / f"log-{len(list(self.place.glob('log-*')))}"
        with log.open("w") as out:
            shell = subprocess.Popen(
                ["bash", "-euc", text],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._shell = shell
        try:
            yield log
            assert code == shell.wait(LIMIT), log.read_text()
        finally:
            if shell.poll() is None:
                self.interrupt()
                shell.wait(LIMIT)

    def interrupt(self) -> None:
        """Press Ctrl-C in the shell: its processes get the signal."""
        os.killpg(self._shell.pid, signal.SIGINT)

    def serves(self, line: str) -> None:
        """Run a server until it has printed its link."""
        with self.running(line) as log:
            assert eventually(
                lambda: "https://" in log.read_text() or "http://" in log.read_text()
            ), self.said()
            self.interrupt()

    def archived(self, count: int) -> None:
        """Wait until `count` items are done."""
        folder = self.folder / ".cuggino" / "archive"
        assert eventually(lambda: len(list(folder.glob("*-approved-*"))) >= count), self.said()

    def followed(self) -> None:
        """Wait until the branch has what has landed."""
        names = ("overnight", "refs/cuggino/trunk")
        assert eventually(lambda: len({self.git.git("rev-parse", name) for name in names}) == 1), (
            self.said()
        )

    def said(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.place.glob("log-*")))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose git and home are its own."""
    found = tmp_path.resolve()
    isolate_git(monkeypatch, found / "home")
    monkeypatch.setenv("XDG_STATE_HOME", str(found / "state"))
    monkeypatch.delenv("AUTONOE_NO_SANDBOX", raising=False)
    return found


many_processes = pytest.mark.real_agent


@many_processes
def test_first_run(place: Path) -> None:
    """A project is set up, checked, worked on, looked at, and restored."""
    desk = Desk(place, checkCommand="make test", commit=True)
    desk.run(block("setup"))
    desk.run("complete -p cuggino || true\n" + block("completion") + "complete -p cuggino")
    assert "Approved" in desk.run(block("first"))
    printed = desk.run(block("afterwards"))
    assert "Write the tests" in printed
    assert [*desk.folder.glob(".cuggino/reports/*-run-*.html")]
    assert "Approved" in desk.run(block("limits"))
    assert "Approved" in desk.run(block("again"))
    if shutil.which("jq"):
        assert "null" in desk.run(block("status"))  # nothing runs now
    run_id = list_journals(desk.workspace.journal)[-1].stem
    assert "Denied" in desk.run(block("guard").replace("0193b2c1", run_id), 1)
    for line in block("guard").splitlines():
        desk.run(line.replace("0193b2c1", run_id), 0, 1)
    for line in block("undo").splitlines():
        desk.run(line.replace("0193b2c1/coding-3", f"{run_id}/implementing-1"))
    assert "Landed     1" in desk.run(block("attempts"))


@many_processes
def test_night(place: Path) -> None:
    """The recipe of a night: one item lands, one asks and is answered, one is retried."""
    config = json.loads(_json("overnight.md"))
    desk = Desk(place, ask=True, **{**config, "fallback": [], "sandbox": "off"})
    parked = desk.folder / ".cuggino" / "parked" / "003-mail.md"
    with desk.running(block("evening")):
        desk.archived(1)
        assert eventually(lambda: bool(desk.workspace.issues()))
        parked.parent.mkdir(exist_ok=True)
        parked.write_text("# Mail\n")
        printed = ""
        for line in block("morning").splitlines():
            printed += desk.run(line, 0, 4)
        assert "How long is a link valid?" in printed
        assert "003-mail" in printed
        desk.run(block("decide"))
        desk.archived(3)
        desk.followed()
        desk.run("cuggino stop")
    desk.run(block("merge"))
    assert len(list(desk.folder.glob("page-*.txt"))) >= 3


@many_processes
def test_night_of_the_readme(place: Path) -> None:
    """The short recipe works through its two items."""
    desk = Desk(place, **json.loads(_json("README.md")))
    with desk.running(block("night")):
        desk.archived(2)
        desk.run("cuggino stop")


@many_processes
def test_confined(place: Path) -> None:
    """A run that requires the sandbox works where there is one."""
    desk = Desk(place, sandbox="auto")
    if "confines all roles" not in desk.run("cuggino doctor", 0, 1):
        pytest.skip("no engine confines every role here")
    assert "Approved" in desk.run(block("confined"))


def _json(page: str) -> str:
    (text,) = [text for path, text in PAGES.items() if path.endswith(page)]
    found: list[str] = re.findall(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return found[0]


@many_processes
def test_deliver(place: Path) -> None:
    """Deliverables are laid down, worked on, compared and verified."""
    desk = Desk(place)
    deliveries.project_of(desk.folder, deliveries.SCENARIO + _VERIFIES)
    assert "1/1 verified" in desk.run(block("deliver"))


@many_processes
def test_loop(place: Path) -> None:
    """Prompts are made, then jobs planned and built, with and without `--auto`."""
    desk = Desk(place)
    loops.project_of(desk.folder, loops.SCENARIO)
    desk.git.git("checkout", "-q", "-b", "work")
    for line in block("loop").splitlines():
        desk.run(line)
        (desk.folder / "lopen.loop.done").unlink(missing_ok=True)


@many_processes
def test_pages(place: Path) -> None:
    """Each command that serves a page prints a link, until it is ended."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    desk = Desk(place)
    for folder in (desk.folder / "shop", place / "home" / "code" / "blog"):
        folder.mkdir(parents=True)
    desk.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=x -keyout page.key "
        "-out page.pem"
    )
    for line in [*block("serve").splitlines()[1:], block("certificate")]:
        desk.serves(line)


@many_processes
def test_tracker(place: Path) -> None:
    """The script for Jira prints items, which are imported, listed and worked on."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    source = {"type": "command", "name": "jira", "command": ".cuggino/jira"}
    desk = Desk(place, backlogSources=[source])
    issue = {"key": "SHOP-7", "fields": {"summary": "Greet", "description": "Say hello."}}
    desk.program("curl", f"echo {shlex.quote(json.dumps({'issues': [issue]}))}")
    script = desk.folder / ".cuggino" / "jira"
    script.parent.mkdir()
    script.write_text(block("jira"))
    script.chmod(0o755)
    with desk.running("export JIRA_USER=a JIRA_TOKEN=b JIRA_URL=c\n" + block("import")) as log:
        desk.archived(1)
        desk.run("cuggino stop")
    assert "jira-shop-00007" in log.read_text()


@many_processes
def test_example_in_a_clone(place: Path) -> None:
    """An example runs from a clone with its environment, in an empty folder."""
    desk = Desk(place)
    (desk.folder / "examples").symlink_to(ROOT / "examples")
    python = desk.folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    assert "# prints:" in (ROOT / "examples" / "02_coding_loop.py").read_text()
    assert desk.run(block("example"))
