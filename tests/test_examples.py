"""Every example runs as it says: the scripts, the project of its own, and the one for Harbor."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from cuggino import dump_event
from cuggino.events import IterationStart, LoopApproved, StageCost, Usage
from tests.limits import LIMIT

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("[0-9]*.py"))


def test_examples_are_found() -> None:
    """The numbered examples are found."""
    assert len(EXAMPLES) >= 9


@pytest.mark.real_agent
@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_example(path: Path, tmp_path: Path) -> None:
    """The example's output is the text under `# prints:`."""
    _, _, tail = path.read_text(encoding="utf-8").partition("# prints:\n")
    expected = "".join(f"{line.removeprefix('# ')}\n" for line in tail.splitlines())
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT
    )
    assert "" == done.stderr
    assert expected == done.stdout
    assert 0 == done.returncode


PROJECT = Path(__file__).parents[1] / "examples" / "own_project"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Copy the project out of reach of this repository's settings."""
    unwanted = shutil.ignore_patterns(".*", "__pycache__")
    return Path(shutil.copytree(PROJECT, tmp_path / "own_project", ignore=unwanted))


def ran(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a Python module in the project, with no pytest plugin but cuggino's."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": ""}
    # It would close the folder of this run's tests to other users.
    env["PYTEST_DEBUG_TEMPROOT"] = str(project.parent)
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


@pytest.mark.real_agent
def test_project_tests_pass(project: Path) -> None:
    """All tests pass with the fixtures of the plugin."""
    done = ran(project, "pytest", "-q", "-p", "cuggino.pytest_plugin", "-p", "no:cacheprovider")
    assert re.search(r"^1[5-9] passed in", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert 0 == done.returncode


DEFECTS = [
    ("policy.py", "<= commands", "< commands", "but saw   -cr-w-m-(X|)"),
    ("loop.py", "            if restored:\n", "            if False:\n", "there are 0 of TestsRes"),
    ("loop.py", "wait_for_quota(gate=self._gate)", "ops.map(lambda e: e)", "QuotaExceeded"),
    ("loop.py", "== self.loop.patience", "== -1", "the agent in memory has no session 4"),
]
"""Changes of the source, each with a part of the failure it causes."""


@pytest.mark.real_agent
def test_defects_fail_the_tests(project: Path) -> None:
    """Each defect in the loop or the policy fails a test with a message that explains it."""
    for file, before, broken, _ in DEFECTS:
        path = project / "src" / "red_green" / file
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, broken), encoding="utf-8")
    words = ("-q", "-p", "cuggino.pytest_plugin", "-p", "no:cacheprovider")
    done = ran(project, "pytest", *words, "--deselect", "tests/test_for_real.py")
    assert 1 == done.returncode
    assert [] == [message for *_, message in DEFECTS if message not in done.stdout], done.stdout


@pytest.mark.real_agent
@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_project_types(project: Path) -> None:
    """mypy passes with the project's own strict configuration."""
    done = ran(project, "mypy", "--no-error-summary")
    assert ("", 0) == (done.stdout, done.returncode), done.stderr


@pytest.mark.real_agent
def test_project_readme_links() -> None:
    """Every link into the project has a target."""
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", (PROJECT / "README.md").read_text())
    assert len(links) >= 6
    assert [] == [link for link in links if not (PROJECT / link).is_file()]


EXAMPLE = Path(__file__).parents[1] / "examples/harbor_agent.py"
FAKE = """\
#!/bin/sh
echo "$@" >> "$CALLS"
[ "$1" = setup ] && exit "$SETUP_CODE"
mkdir -p .cuggino/journal && touch .cuggino.json .cuggino/journal/run.jsonl work.txt
echo '{}'
exit "$CODE"
"""


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the example, with the classes of Harbor that it imports."""
    doubles: dict[str, dict[str, Any]] = {
        "harbor.agents.installed.claude_code": {
            "ClaudeCode": type("ClaudeCode", (), {}),
            "ClaudeCodeOptions": BaseModel,
        },
        "harbor.environments.base": {"BaseEnvironment": object},
        "harbor.models.agent.context": {"AgentContext": object},
    }
    for name, classes in doubles.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            part = ".".join(parts[:end])
            if part not in sys.modules:
                monkeypatch.setitem(sys.modules, part, ModuleType(part))
        vars(sys.modules[name]).update(classes)
    spec = spec_from_file_location("harbor_agent", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module


@pytest.mark.parametrize(
    ("code", "setup", "expected"),
    [(0, 0, 0), (11, 0, 0), (14, 0, 0), (1, 0, 1), (2, 0, 2), (0, 2, 2), (143, 0, 143)],
)
def test_the_task_is_worked_on(
    example: Any, code: int, setup: int, expected: int, tmp_path: Path
) -> None:
    """Only failures of the run fail the trial; the work stays, and cuggino's own files go."""
    home, logs, task = (tmp_path / name for name in ("home", "logs", "task"))
    for folder in (home / ".local/bin", logs, task):
        folder.mkdir(parents=True)
    program = home / ".local/bin/cuggino"
    program.write_text(FAKE, encoding="utf-8")
    program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", example.run_script(logs=str(logs), check="make 'a b'", budget=2)],
        cwd=task,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CALLS": str(logs / "calls"),
            "CUGGINO_TASK": "Say $HI",
            "CODE": str(code),
            "SETUP_CODE": str(setup),
        },
        timeout=LIMIT,
    )
    assert expected == done.returncode
    calls = (logs / "calls").read_text(encoding="utf-8").splitlines()
    assert "setup --yes --check-command make 'a b' --gate block" == calls[0]
    if setup:
        assert len(calls) == 1
        return
    assert calls[1].endswith("--budget 2")
    assert ["work.txt"] == [path.name for path in task.iterdir()]
    assert (logs / "cuggino-journal/run.jsonl").exists()
    assert "{}\n" == (logs / "cuggino.jsonl").read_text(encoding="utf-8")


def test_totals_of_a_run(example: Any) -> None:
    """The last cost, the iterations and the ending are read from the events; a torn line is not."""
    usage = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3)
    events = [
        IterationStart(iteration=1, max_iterations=10),
        StageCost(phase="planning", total_cost=0.5),
        IterationStart(iteration=2, max_iterations=10),
        StageCost(phase="reviewing", total_cost=1.5, total_usage=usage),
        LoopApproved(iteration=2, checked=True),
    ]
    found = example.totals([*map(dump_event, events), '{"_tag": "Sta'])
    assert found == {
        "iterations": 2,
        "cost_usd": 1.5,
        "usage": usage.model_dump(),
        "ending": "LoopApproved",
    }
    assert example.totals([]) == {"iterations": 0}
