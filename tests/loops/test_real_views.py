"""Every real program in the views of all roles, with `sandbox: require`, as root and another user.

The guard is off, so that nothing but the view confines the agents.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import pytest

from cuggino import events as ev
from cuggino.domain import TOOL_SERVER
from cuggino.guard import find_shfmt
from cuggino.testing import Call, Run, Write
from tests.git_project import GitProject
from tests.limits import LIMIT
from tests.model_script import Block, Message, ModelRequest, Reply, Text
from tests.processes.subscribers import eventually
from tests.real_acp import Kimi, Qwen, Vibe
from tests.real_claude import Claude, needs_sandbox
from tests.real_codex import MODEL, Codex
from tests.real_copilot import Copilot
from tests.real_gemini import MODEL as GEMINI_MODEL, Gemini
from tests.real_opencode import OpenCode
from tests.real_program import CACHE, RealProgram, nothing_leaks
from tests.sandbox.arena import OTHER, PACKAGES, needs_bubblewrap, needs_visible

pytestmark = pytest.mark.real_agent

Turn: TypeAlias = Block | Callable[[ModelRequest], Block]

PROGRAMS = (Claude, Codex, Copilot, Gemini, OpenCode)
ACP = (Kimi, Qwen, Vibe)
USERS = {"root": (), "other": ("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups")}
"""The words that start a command as the user."""

PROTECTED = (
    *(".cuggino.json", ".cuggino/evil.md", ".claude/settings.json", ".autonoe/coding.md"),
    *(".git/config", ".git/hooks/pre-commit", ".git/info/exclude"),
)
JOBS = "docs/requirements/jobs-to-be-done.json"
WRITTEN = {f"src/{role}.txt" for role in ("planning", "implementing", "reviewing")}
NO_GUARD = "cuggino: the guard is off: only the sandbox limits what agents may do\n"

PROBE = """
for path in {paths} ../outside.txt "$HOME/outside.txt"; do
    (echo "# changed by $1" >> "$path") 2> /dev/null
done
case $1 in implementing | initializer | coding | build)
    for path in .git .cuggino .autonoe; do mv "$path" "moved$path" 2> /dev/null; done ;;
esac
mkdir -p src && echo "$1" > "src/$1.txt"
setsid sleep {seconds} > /dev/null 2>&1 < /dev/null &
"""
"""What an agent of each role tries: to change what is protected, the project, and to live on."""


@dataclass
class Site:
    """A project for one program, run by one user."""

    real: RealProgram
    user: Sequence[str]
    python: str
    sessions: dict[str, list[Turn]]
    env: dict[str, str]
    seconds: int

    @property
    def folder(self) -> Path:
        return self.real.project

    def run(self, *words: str, code: int = 0, until: type[ev.Event] | None = None) -> Story:
        """Run cuggino; `until` an event, upon which it is interrupted, if one is given."""
        events: list[ev.Event] = []
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                [*self.user, self.python, "-m", "cuggino_cli", *words, "--json"],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            ) as process,
        ):
            assert process.stdout is not None
            limit = threading.Timer(LIMIT, process.kill)
            limit.start()
            for line in process.stdout:
                events.append(ev.parse_event(line))
                if until is not None and isinstance(events[-1], until):
                    process.send_signal(signal.SIGINT)
                    until = None
            process.wait()
            limit.cancel()
            limit.join()
            errors.seek(0)
            said = errors.read().decode().replace(NO_GUARD, "")
        told = [result.output for result in events if isinstance(result, ev.ToolResult)]
        assert (code, "") == (process.returncode, said), (said, told)
        return Story(events)

    def probe(self, role: str) -> list[Turn]:
        """Return the turns in which an agent tries to change what its role may not."""
        evil = str(self.folder / ".cuggino" / f"{role}.md")
        return [self.real.tool(Run(f"sh probe.sh {role}")), self.real.tool(Write(evil, "evil\n"))]

    def add(self, name: str, text: str) -> None:
        """Add a file to the first commit."""
        self.real.write(name, text)
        for words in (["add", name], ["commit", "--quiet", "--amend", "--no-edit"]):
            subprocess.run(["git", *words], cwd=self.folder, check=True, timeout=LIMIT)

    def shell(self, command: str) -> Block:
        return self.real.tool(Run(command))

    def call(self, tool: str, **given: Any) -> Block:
        """Return a call of a deliverable tool, by the name that the program gives it."""
        server = TOOL_SERVER.replace("-", "_") if isinstance(self.real, Codex) else TOOL_SERVER
        return self.real.tool(Call(server, tool, given))

    def state(self) -> dict[str, str]:
        """Return the contents of the protected files."""
        specs = [path.relative_to(self.folder) for path in (self.folder / ".specs").rglob("*")]
        names = [*PROTECTED, *map(str, specs)]
        paths = {name: self.folder / name for name in names}
        return {name: path.read_text() for name, path in paths.items() if path.is_file()}

    @property
    def written(self) -> set[str]:
        """Return the roles whose files are in the project."""
        return {path.stem for path in (self.folder / "src").glob("*.txt")}

    @property
    def left(self) -> list[int]:
        """Return the processes that agents tried to leave behind."""
        command = ["sleep", str(self.seconds)]
        return [
            process.pid
            for process in psutil.process_iter(["cmdline"])
            if process.info["cmdline"] == command
        ]


@dataclass
class Story:
    """A run."""

    events: list[ev.Event]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class Model:
    """Plays the turns of the role that a request names."""

    def __init__(self, sessions: Mapping[str, Sequence[Turn]]) -> None:
        self._sessions = sessions

    def __call__(self, request: ModelRequest) -> Reply:
        text = f"{request.system_text}\n{request.messages_text}"
        turns = self._sessions[_role_of(text)]
        turn = turns[request.turns] if request.turns < len(turns) else Text("That is all.")
        return Message([turn(request) if callable(turn) else turn])


def _role_of(text: str) -> str:
    _, _, after = text.partition("# Role: ")
    role = after.split(maxsplit=1)[0]
    return "judge" if role == "verifying" else role


@contextmanager
def site(
    kind: type[RealProgram], program: Path, user: str, folder: Path, **settings: Any
) -> Iterator[Site]:
    """Provide a project in which the user may run the program."""
    real = kind(program, folder / "project", folder / "home")
    sessions: dict[str, list[Turn]] = {}
    seconds = 1_000_000 + int.from_bytes(os.urandom(3))
    with nothing_leaks(), real.serve(Model(sessions)) as server:
        if isinstance(real, Codex):
            real.configure(f'model = "{MODEL}"\n')
        env = dict(real.agent(server.url).environments[0])
        real.write("../home/cuggino.json", json.dumps({"trust": "off"}))
        env["CUGGINO_CONFIG"] = str(real.home / "cuggino.json")
        _make_project(real, seconds, settings)
        python = sys.executable
        if user != "root":
            python = str(_python_of(folder / "python"))
            tools = folder / "python" / "bin"
            shutil.copy(find_shfmt(), tools)
            env["PATH"] = f"{tools}:/usr/local/bin:/usr/bin:/bin"
            _give([real.project, real.home, *(Path(env[n]) for n in ("TMPDIR",) if n in env)])
        env["CUGGINO_PYTHON"] = python
        made = Site(real, USERS[user], python, sessions, env, seconds)
        before = made.state()
        try:
            yield made
            assert before == made.state()
        finally:
            left = [] if eventually(lambda: not made.left) else made.left
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        assert not (folder / "outside.txt").exists()
        assert not (real.home / "outside.txt").exists()
        assert [] == left


def _make_project(real: RealProgram, seconds: int, more: Mapping[str, Any]) -> None:
    git = GitProject(real.project)
    settings: dict[str, Any] = {
        "sandbox": "require",
        "guard": "off",
        "commit": True,
        "audit": True,
        "agent": real.agent_name,
        "agentPath": str(real.program),
        **({"model": GEMINI_MODEL} if isinstance(real, Gemini) else {}),
        **more,
    }
    files = {
        ".cuggino.json": json.dumps(settings),
        ".specs/task.md": "There is a file.\n",
        ".claude/settings.json": "{}",
        ".autonoe/agent.json": '{"mcpServers": {}}',
        **{
            f".autonoe/{role}.md": f"# Role: {role} agent\n\nDo what it says.\n"
            for role in ("initializer", "coding", "sync", "verify")
        },
        "SPEC.md": "There is a file.\n",
        "PLAN.PROMPT.md": "# Role: plan agent\n",
        "BUILD.PROMPT.md": "# Role: build agent\n",
        "docs/requirements/bread/SPECIFICATION.md": "## REQ-1\n",
        "src/app.py": "old = 1\n",
        "probe.sh": PROBE.format(paths=" ".join(PROTECTED), seconds=seconds),
        ".git/hooks/post-commit": "#!/bin/sh\n",
        ".gitignore": "/.autonoe/\n/.cuggino/\n",
    }
    for name, text in files.items():
        git.write(name, text)
    git.git("add", "--all")
    git.git("commit", "--quiet", "-m", "Begin")
    git.git("switch", "--quiet", "--create", "bread")


def _give(folders: Sequence[Path]) -> None:
    """Give the folders to the other user."""
    for folder in folders:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, OTHER, OTHER, follow_symlinks=False)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Provide a folder that every user can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="views-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder).resolve()


@pytest.fixture
def make(
    request: pytest.FixtureRequest, tmp_path: Path, open_folder: Path
) -> Callable[[type[RealProgram], str], Any]:
    def make(kind: type[RealProgram], user: str, **settings: Any) -> Any:
        needs_bubblewrap(tmp_path)
        return site(kind, request.getfixturevalue(kind.cli), user, open_folder, **settings)

    return make


def _python_of(folder: Path) -> Path:
    """Return a Python for the other user, with the packages of this one; skip without one."""
    system = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if os.getuid() != 0 or shutil.which("setpriv") is None or system is None:
        pytest.skip("only root can run a command as another user, by setpriv and python3")
    subprocess.run([system, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=LIMIT)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "here.pth").write_text("\n".join(PACKAGES))
    python = folder / "bin" / "python3"
    words = [*USERS["other"], str(python), "-B", "-c", "import cuggino_cli, pydantic"]
    tried = subprocess.run(words, capture_output=True, timeout=LIMIT)
    if tried.returncode != 0:
        pytest.skip(f"user {OTHER} cannot import cuggino: {tried.stderr.decode()[-200:]}")
    return python


def everywhere(
    *others: type[RealProgram], programs: Sequence[type[RealProgram]] = PROGRAMS
) -> pytest.MarkDecorator:
    """Return the parameters: each program as root, some as the other user."""
    cases = [(kind, "root") for kind in programs] + [(kind, "other") for kind in others]
    return pytest.mark.parametrize(
        ("kind", "user"), cases, ids=[f"{kind.__name__}-{user}" for kind, user in cases]
    )


@everywhere(Claude, programs=(*PROGRAMS, *ACP))
def test_run(kind: type[RealProgram], user: str, make: Any) -> None:
    """Plan and review are delivered; of all other files only the implementing agent's stay."""
    with make(kind, user) as project:
        _run(project)


@pytest.mark.parametrize("kind", ACP)
def test_hostile_settings(kind: type[RealProgram], make: Any) -> None:
    """Settings of the project that silence the program change nothing about its views."""
    with make(kind, "root", guard="roles") as project:
        for files in project.real.hostile_settings():
            for name, text in files.items():
                project.add(name, text)
        story = _run(project)
        (chosen,) = story.of(ev.SandboxChosen)
        assert ("planning", "implementing", "reviewing") == chosen.held
        # The guard leaves to the view which files are written.
        assert [] == story.of(ev.GuardDenied)


def _run(project: Site) -> Story:
    """Run the coding loop with agents that try to change what their roles may not."""
    planned = delivered(project, "planning/plan.md", "<PLAN_COMPLETE>1</PLAN_COMPLETE>")
    reviewed = delivered(project, "reviewing/review.md", "<APPROVED>1</APPROVED>")
    project.sessions.update(
        planning=[*project.probe("planning"), *planned],
        implementing=[*project.probe("implementing"), Text("<DONE>Add it</DONE>")],
        reviewing=[*project.probe("reviewing"), *reviewed],
    )
    story = project.run("run", "--focus", "the file")
    assert ["completed"] * 3 == [ended.outcome for ended in story.of(ev.SessionEnded)]
    assert isinstance(story.events[-1], ev.LoopApproved)
    assert [] == story.of(ev.RoleViolated)
    assert {"implementing"} == project.written
    tree = ["git", "-c", "safe.directory=*", "ls-tree", "-r", "--name-only", "HEAD"]
    listed = subprocess.check_output(tree, cwd=project.folder, text=True)
    assert {"src/implementing.txt"} == {*listed.split()} & WRITTEN
    return story


def delivered(project: Site, name: str, said: str) -> list[Turn]:
    """Return the turns that write a file of the session, wherever that is, and see it outside."""
    role, _, base = name.partition("/")
    text = "No findings.\n" if role == "reviewing" else "- [ ] The file\n"

    def path() -> Path:
        (folder,) = (project.folder / ".cuggino" / "wip").glob(f"*.{role}")
        return folder / base

    def write(_request: ModelRequest) -> Block:
        return project.real.tool(Write(str(path()), text))

    def see(_request: ModelRequest) -> Block:
        assert text == path().read_text()
        return Text(said)

    return [write, see]


@everywhere(Claude, programs=(Claude, Codex))  # which name the tools differently
def test_deliver(kind: type[RealProgram], user: str, make: Any) -> None:
    """The tools write the status outside of the view; a sync changes nothing else."""
    item = {"id": "A", "description": "a file", "acceptanceCriteria": ["it is there"]}
    with make(kind, user) as project:
        project.sessions.update(
            initializer=[
                *project.probe("initializer"),
                project.call("create_deliverable", deliverables=[item]),
            ],
            coding=[
                *project.probe("coding"),
                project.call("set_deliverable_status", deliverableId="A", status="passed"),
            ],
            sync=project.probe("sync"),
            verify=[*project.probe("verify"), project.call("verify", deliverableId="A")],
        )
        story = project.run("deliver")
        (ended,) = story.of(ev.DeliverEnded)
        assert ("all_passed", 1, 1) == (ended.reason, ended.passed, ended.total)
        assert {"initializer", "coding"} == project.written
        again = project.run("deliver", "sync")
        (ended,) = again.of(ev.DeliverEnded)
        assert ("all_verified", 1) == (ended.reason, ended.verified)
        begun = [
            event.instruction
            for each in (story, again)
            for event in each.of(ev.DeliverSessionStarted)
        ]
        assert ["initializer", "coding", "sync", "verify"] == begun
        assert [] == [*story.of(ev.RoleViolated), *again.of(ev.RoleViolated)]
        assert {"initializer", "coding"} == project.written


@everywhere(Claude, programs=(Claude,))  # a view is the same for every program: see `test_run`
def test_loop(kind: type[RealProgram], user: str, make: Any) -> None:
    """Planned, built, committed and verified; only the building agent's file stays."""

    def jobs(status: str) -> str:
        job = {"id": "J1", "requirementCode": "REQ-1", "description": "a file", "priority": 1}
        return json.dumps({"jobs": [{**job, "status": status}]})

    parts = ("complete", "testsPass", "documentationExists", "buildSucceeds", "requirementValid")
    with make(kind, user) as project:
        project.sessions.update(
            plan=[*project.probe("plan"), project.shell(f"echo '{jobs('open')}' > {JOBS}")],
            build=[
                *project.probe("build"),
                project.shell(f"echo '{jobs('done')}' > {JOBS}; echo done > lopen.loop.done"),
                project.shell(f"git add -- src {JOBS} && git commit -qm 'feat: add it'"),
            ],
            judge=[*project.probe("judge"), Text(json.dumps(dict.fromkeys(parts, True)))],
        )
        story = project.run("loop", "--auto")
        (ended,) = story.of(ev.PlanBuildEnded)
        assert ("complete", 1) == (ended.reason, ended.done)
        phases = [event.phase for event in story.of(ev.PlanBuildPhaseStarted)]
        assert ["plan", "build", "verify", "verify"] == phases
        assert [True] == [event.passed for event in story.of(ev.JobVerified)]
        assert [] == story.of(ev.RoleViolated)
        assert {"build"} == project.written


@everywhere(Claude, programs=(Claude,))
def test_watch(kind: type[RealProgram], user: str, make: Any) -> None:
    """The audit finds something, changes nothing, and ends with its processes."""
    with make(kind, user) as project:
        said = Text("<TO_BE_DISCUSSED>It has no unit.</TO_BE_DISCUSSED>")
        project.sessions["audit"] = [*project.probe("audit"), said]
        story = project.run("watch", code=130, until=ev.WatchTbdItemFound)
        (found,) = story.of(ev.WatchTbdItemFound)
        assert (project.folder / ".cuggino" / "tbd" / found.filename).exists()
        assert 2 == len(story.of(ev.ToolResult))
        assert set() == project.written


@pytest.mark.parametrize("user", USERS)
def test_the_sandbox_of_claude_within_the_view(user: str, make: Any) -> None:
    """With `sandboxDomains` the program sandboxes each command, too, and commits work."""
    needs_sandbox()
    with make(Claude, user, guard="roles", sandboxDomains=["example.org"]) as project:
        commit = "git add --all && git commit --quiet --message 'Add it' && git log -1 --format=%s"
        project.sessions.update(
            planning=[
                project.shell('echo "in $SANDBOX_RUNTIME"; sh probe.sh planning'),
                *delivered(project, "planning/plan.md", "<PLAN_COMPLETE>1</PLAN_COMPLETE>"),
            ],
            implementing=[
                project.shell('echo "in $SANDBOX_RUNTIME"; sh probe.sh implementing'),
                project.shell(commit),
                Text("<DONE>Add it</DONE>"),
            ],
            reviewing=[
                project.shell('echo "in $SANDBOX_RUNTIME"; sh probe.sh reviewing'),
                *delivered(project, "reviewing/review.md", "<APPROVED>1</APPROVED>"),
            ],
        )
        story = project.run("run", "--focus", "the file")
        told = [result.output for result in story.of(ev.ToolResult)]
        assert 3 == sum(said.startswith("in 1") for said in told), told
        assert 1 == sum(said.endswith("Add it") for said in told), told
        assert isinstance(story.events[-1], ev.LoopApproved)
        assert [] == story.of(ev.RoleViolated)
        assert {"implementing"} == project.written


_CODEX = """
import json, os, sys
from pathlib import Path
from cuggino import SpawnOptions, run
from cuggino.agents.codex import CodexAgent
from cuggino.events import ToolResult
from cuggino.sandbox import role_view
project, program = Path.cwd(), sys.argv[1]
view = role_view("implementing", project=project, folder=project / ".cuggino/wip/x")
options = SpawnOptions(prompt="# Role: x agent", cwd=project, view=view)
events = []
run(CodexAgent(path=program, env=dict(os.environ)).spawn(options), events.append)
print(json.dumps([event.output for event in events if isinstance(event, ToolResult)]))
"""


@pytest.mark.parametrize("user", USERS)
def test_the_sandbox_of_codex_within_the_view(user: str, codex_cli: Path) -> None:
    """Without permission to write, the program's own sandbox confines the commands."""
    # Not in a folder for temporary files, where the program does without its sandbox.
    needs_visible(CACHE)
    with tempfile.TemporaryDirectory(prefix=".home-", dir=CACHE) as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        needs_bubblewrap(folder)
        with site(Codex, codex_cli, user, folder) as project:
            command = "cat src/app.py; touch src/x.txt 2> /dev/null || echo denied"
            project.sessions["x"] = [project.shell(command)]
            said = subprocess.run(
                [*project.user, project.python, "-c", _CODEX, str(project.real.program)],
                cwd=project.folder,
                env=project.env,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=True,
            ).stdout
            (output,) = json.loads(said)
            assert "old = 1" in output
            assert output.endswith("denied\n")
            assert set() == project.written
