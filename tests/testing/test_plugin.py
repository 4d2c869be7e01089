"""The pytest fixtures, each in a project of its own, and the help page about testing."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import cuggino.testing
from cuggino import pytest_plugin as plugin
from tests.limits import LIMIT
from tests.vectors import each

pytest_plugins = ["pytester"]

Ran = Callable[..., pytest.RunResult]


@pytest.fixture
def ran(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Run pytest on a test file with only this plugin."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(tests: str, *words: str, ini: str = "") -> pytest.RunResult:
        pytester.makepyfile(tests)
        pytester.makeini(f"[pytest]\naddopts = --strict-markers --strict-config\n{ini}")
        options = ("-p", "cuggino.pytest_plugin", "-p", "no:cacheprovider", *words)
        return pytester.runpytest_subprocess(*options, timeout=LIMIT)

    return run


def test_plugin_entry_point() -> None:
    """The package declares the plugin to pytest."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert {"cuggino": "cuggino.pytest_plugin"} == project["project"]["entry-points"]["pytest11"]


def test_unused_plugin_loads_nothing(ran: Ran) -> None:
    """A project that does not use the plugin loads none of cuggino."""
    heavy = ("reactivex", "pydantic", "psutil", "watchdog", "git", "cuggino.events")
    result = ran(
        f"""
        import sys

        def test_it():
            assert "cuggino.pytest_plugin" in sys.modules
            assert [] == [name for name in {heavy!r} if name in sys.modules]
        """
    )
    result.assert_outcomes(passed=1)


@pytest.mark.real_agent
def test_all_together(ran: Ran) -> None:
    """A loop runs in virtual time with drawn, listed or scripted agents and leaves nothing."""
    result = ran(
        """
        import pytest
        from cuggino import Config
        from cuggino.events import AgentMessage, LoopPhaseEvent, QuotaLifted
        from cuggino.errors import QuotaExceeded
        from cuggino.testing import AgentRun, CommandResult, Say

        pytestmark = pytest.mark.usefixtures("cuggino_no_leaks")
        PLAN = [AgentRun([Say("<PLAN_COMPLETE>x</PLAN_COMPLETE>")], plan="# Plan")]

        def test_listed(cuggino_runtime, cuggino_clock):
            limit = QuotaExceeded("limit", resets_at=cuggino_clock.at("5h"))
            cousin = cuggino_runtime(
                {
                    "planning": PLAN,
                    "implementing": [[limit], [Say("<DONE>x</DONE>")]],
                    "reviewing": [[Say("<APPROVED>x</APPROVED>")]],
                },
                config=Config(wait_for_quota=True, commit=True, check_command="make"),
                commands={"make": CommandResult("fine")},
                files={"README.md": "x"},
                git=True,
            )
            story = cousin.run(focus="it").check()
            assert [18060] == story.times(QuotaLifted)
            assert 18060 == cuggino_clock.elapsed

        def test_drawn(cuggino_runtime, cuggino_agent, marbles, cuggino_clock):
            t = marbles(clock=cuggino_clock, s=AgentMessage(text="<SPEC_ISSUE>x</SPEC_ISSUE>"))
            agent = cuggino_agent({"planning": [t.cold("--s|")]})
            story = cuggino_runtime(agent).run(focus="it")
            assert "LoopSpecIssue" == story.tags()[-1]
            t.check_subscriptions(t._drawn[0], "^--!")

        def test_scripted(cuggino_runtime, cuggino_scripted):
            agent = cuggino_scripted('''
                [[planning]]
                [[planning.steps]]
                say = "<SPEC_ISSUE>How?</SPEC_ISSUE>"
            ''')
            assert "LoopSpecIssue" == cuggino_runtime(agent).run(focus="it").tags()[-1]

        def test_scripted_file(cuggino_runtime, cuggino_scripted, tmp_path):
            file = tmp_path / "own.toml"
            file.write_text('[[planning]]\\nsteps = [{ say = "<SPEC_ISSUE>x</SPEC_ISSUE>" }]\\n')
            story = cuggino_runtime(cuggino_scripted(file)).run(focus="it")
            assert "LoopSpecIssue" == story.tags()[-1]

        def test_two_projects(cuggino_runtime):
            first = cuggino_runtime({})
            second = cuggino_runtime({}, folder="other")
            assert "other" == second.folder.name
            assert first.clock is second.clock
        """
    )
    result.assert_outcomes(passed=5)


@pytest.mark.real_agent
def test_git_is_isolated(ran: Ran, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the machine's git settings nor a surrounding git process affect a project."""
    settings = tmp_path / "gitconfig"
    settings.write_text("[commit]\n\tgpgSign = true\n[core]\n\thooksPath = /nowhere\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    result = ran(
        """
        def test_it(cuggino_runtime):
            cousin = cuggino_runtime({}, files={"a": "x"}, git=True)
            assert "a" in cousin.git("ls-files").split()
            assert cousin.git("config", "--get", "user.name") == "Tester"
        """
    )
    result.assert_outcomes(passed=1)


@pytest.mark.real_agent
def test_open_subscription_fails_the_test(ran: Ran) -> None:
    """A stream that is still subscribed at the end fails the test."""
    result = ran(
        """
        def test_it(marbles):
            t = marbles(a=1)
            t.cold("-a").subscribe(scheduler=t.clock)
        """,
        "-q",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E * still subscribed:", 'E * cold("-a") since 0 s'])


IMPATIENT = """
    import functools
    import cuggino.testing

    cuggino.testing.no_leaks = functools.partial(cuggino.testing.no_leaks, within=0.5)
"""
"""Waits half a second for what is left behind, instead of five."""

LEAKING = """
    import subprocess
    import pytest

    class TestLeaks:
        def test_it(self):
            TestLeaks.left = subprocess.Popen(["sleep", "30"])

        @classmethod
        def teardown_class(cls):
            cls.left.kill()
            cls.left.wait()
"""


@pytest.mark.real_agent
def test_leak_check_is_optional(ran: Ran) -> None:
    """Without the option, or with the exempting mark, nothing is checked."""
    ran(LEAKING).assert_outcomes(passed=1)
    exempt = LEAKING.replace(
        "def test_it", "@pytest.mark.cuggino_may_leak('x')\n        def test_it"
    )
    ran(exempt, ini="cuggino_no_leaks = true").assert_outcomes(passed=1)


@pytest.mark.real_agent
def test_leaked_threads_and_files(ran: Ran, pytester: pytest.Pytester) -> None:
    """A thread is named, an open file has its path; those of wider fixtures are no leaks."""
    pytester.makeconftest(IMPATIENT)
    result = ran(
        """
        import threading
        import pytest

        @pytest.fixture(scope="module")
        def over():
            over = threading.Event()
            yield over
            over.set()

        @pytest.fixture(scope="module")
        def shared(tmp_path_factory):
            with open(tmp_path_factory.mktemp("x") / "shared", "w") as file:
                yield file

        @pytest.fixture
        def own(tmp_path):
            with open(tmp_path / "own", "w") as file:
                yield file

        def test_none(shared, own, over):
            pass

        kept = []

        def test_file(tmp_path):
            kept.append(open(tmp_path / "forgotten", "w"))

        def test_thread(over):
            kept[0].close()
            threading.Thread(target=over.wait, name="forgotten-thread").start()
        """,
        "-q",
        ini="cuggino_no_leaks = true",
    )
    result.assert_outcomes(passed=3, errors=2)
    result.stdout.fnmatch_lines(
        ["E * left behind: open files */forgotten", "E * left behind: thread forgotten-thread *"]
    )


def test_fixtures_are_described(ran: Ran) -> None:
    """`pytest --fixtures` lists each; all but the marbles have the project's prefix."""
    result = ran("", "--fixtures", "-q")
    told = [line for line in result.outlines if "cuggino/pytest_plugin.py" in line]
    names = {line.split()[0] for line in told}
    assert {
        "marbles",
        "cuggino_agent",
        "cuggino_clock",
        "cuggino_no_leaks",
        "cuggino_runtime",
        "cuggino_scripted",
    } == names
    assert "no docstring available" not in "\n".join(result.outlines).partition("plugin.py")[2]


def test_plugin_imports_little() -> None:
    """Loading the plugin imports one module beside the package doors."""
    import subprocess

    code = (
        "import sys, pytest; before = set(sys.modules); import cuggino.pytest_plugin;"
        "print(sorted(set(sys.modules) - before))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LIMIT
    ).stdout
    doors = ["cuggino", "cuggino._version"]
    assert f"{[*doors, 'cuggino.pytest_plugin']}\n" == said


PAGE = Path(__file__).parents[2] / "cuggino_cli" / "help" / "testing.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.real_agent
def test_documented_python_runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """All code blocks form one test file in which every test passes."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    tests = "\n".join(BLOCKS)
    pytester.makepyfile(tests)
    options = ("-p", "cuggino.pytest_plugin", "-p", "no:cacheprovider")
    result = pytester.runpytest_subprocess(*options, timeout=LIMIT)
    result.assert_outcomes(passed=tests.count("def test_"))
    assert tests.count("def test_") >= 6


def test_documented_names_exist() -> None:
    """Documented names of `cuggino.testing` and of the plugin exist."""
    names = set(re.findall(r"`(?:cuggino\.testing\.)?([A-Z]\w+)[`(]", TEXT))
    known = {*cuggino.testing.__all__, *vars(plugin)}
    elsewhere = {"Runtime", "SessionEnded", "AgentFailed"}
    assert names - known - elsewhere == set()
    assert {"Marbles", "VirtualRuntime", "Story", "MakeRuntime"} <= names


def test_documented_fixtures_are_complete() -> None:
    """The table lists exactly the fixtures of the plugin."""
    table = TEXT.partition("## Fixtures")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    made = {
        name for name, value in vars(plugin).items() if type(value).__name__.startswith("Fixture")
    }
    assert made == told


def test_documented_links_resolve() -> None:
    """Links to files and to sections resolve."""
    sections = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    }
    for link in re.findall(r"\]\(([^)]+)\)", TEXT):
        if link.startswith("#"):
            assert link[1:] in sections
        else:
            assert (PAGE.parent / link).exists(), link


@each("name", cuggino.testing.__all__)
def test_public_name(name: str) -> None:
    """Every public name resolves and has a docstring unless it is a plain alias."""
    value = getattr(cuggino.testing, name)
    assert not isinstance(value, type) or value.__doc__
