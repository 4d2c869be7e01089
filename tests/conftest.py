"""Fixtures and marks for all tests."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cuggino import logins, preflight
from cuggino.agents.acp import stream
from cuggino.agents.base import program
from cuggino.doctor import inspect_agents, machine
from cuggino.guard.shell import shfmt
from cuggino.sandbox import Boundary, boundary
from cuggino.storage.journal import writer
from cuggino.testing import no_leaks
from tests.browser_tools import install_server
from tests.limits import LIMIT
from tests.processes.subscribers import children, eventually
from tests.real_acp import Kimi, Qwen, Vibe, install_kimi, install_qwen, install_vibe
from tests.real_claude import Claude, install_claude
from tests.real_codex import Codex, install_codex
from tests.real_copilot import Copilot, install_copilot
from tests.real_gemini import Gemini, install_gemini
from tests.real_opencode import OpenCode, install_opencode
from tests.real_program import RealProgram, in_a_project, required

pytest.register_assert_rewrite("tests.loops.endings", "tests.loops.writing")

for profile, examples in (("quick", 15), ("thorough", 1000)):
    settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],  # a busy machine draws slowly
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

AGENTS: Mapping[str, tuple[type[RealProgram], Callable[[], Path]]] = {
    "claude": (Claude, install_claude),
    "codex": (Codex, install_codex),
    "copilot": (Copilot, install_copilot),
    "gemini": (Gemini, install_gemini),
    "kimi": (Kimi, install_kimi),
    "opencode": (OpenCode, install_opencode),
    "qwen": (Qwen, install_qwen),
    "vibe": (Vibe, install_vibe),
}
"""The agents by the names of their fixtures, which no other fixture may have.

`<name>_cli` is the path of the program.
"""
CLIS = tuple(f"{name}_cli" for name in AGENTS)
PROGRAMS = frozenset({*AGENTS, *CLIS, "browser", "chromium", "installed", "playwright_server"})
"""Fixtures that install or start a real program: agents, Chromium, and cuggino's own wheel.

A test that uses one is a `real_agent` test.
"""


def pytest_configure(config: pytest.Config) -> None:
    """Make the tests independent of the disk and the shell.

    Nothing waits for the disk: only a power failure would show the difference. SIGINT interrupts
    even if a shell starts its background jobs with it ignored. Projects of tests are trusted, and
    everything remembered for a user is removed at the end. The sandbox of this machine is probed in
    the project of one test, not of each.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    patch = pytest.MonkeyPatch()
    patch.setattr(os, "fsync", os.fstat)  # which still fails for a closed file
    patch.setattr(writer, "_syncfs", None)
    for module, name in (
        *((shfmt, "TIMEOUT_SECONDS"), (program, "_VERSION_TIMEOUT"), (boundary, "_TIMEOUT")),
        *((stream, "START_SECONDS"), (logins, "ANSWER_SECONDS"), (preflight, "GIT_LIMIT")),
        (machine, "GIT_SECONDS"),
    ):
        patch.setattr(module, name, LIMIT)  # a busy machine
    defaults = {**(inspect_agents.__kwdefaults__ or {}), "seconds": LIMIT}
    patch.setattr(inspect_agents, "__kwdefaults__", defaults)
    state = tempfile.TemporaryDirectory(prefix="cuggino-state-")
    (Path(state.name) / "config.json").write_text('{"trust": "off"}')
    patch.setenv("XDG_STATE_HOME", state.name)
    patch.setenv("CUGGINO_CONFIG", str(Path(state.name) / "config.json"))
    patch.setattr(boundary, "_probed", _probed_once(boundary._probed))
    config.add_cleanup(state.cleanup)
    config.add_cleanup(patch.undo)


def _probed_once(probed: Callable[..., Boundary]) -> Callable[..., Boundary]:
    """Remember the best boundary that a program can make, for all projects."""
    known: dict[str | None, Boundary] = {}

    @wraps(probed)
    def once(project: Path, home: Path | None, bwrap: str | None, platform: str) -> Boundary:
        if platform == sys.platform and bwrap in known:
            return known[bwrap]
        found = probed(project, home, bwrap, platform)
        if found.overlay:
            known[bwrap] = found
        return found

    return once


@pytest.fixture
def probed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try the sandbox in the project of this test, too."""
    monkeypatch.setattr(boundary, "_probed", vars(boundary._probed)["__wrapped__"])


@pytest.fixture(autouse=True)
def no_child_left() -> Iterator[None]:
    """Fail a test that leaves a process behind, at the test itself and not at a later one."""
    before = children()
    yield
    assert eventually(lambda: not children() - before), children() - before


@pytest.fixture(autouse=True)
def no_signal_handler_left() -> Iterator[None]:
    """Fail a test that changes how signals are handled: a later interrupt would end the worker."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    after = [signal.getsignal(number) for number in numbers]
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    assert before == after


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process and its programs make their temporary files in the test's folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """Fail a test that leaves a process, a thread or a file behind."""
    with no_leaks(within=LIMIT):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Exempt modules and tests from garbage collection, a third of the time of collecting them."""
    gc.disable()
    try:
        _import_a_share(session.config)
        yield
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file whose tests are all of the other suite, unless it is named."""
    if config.args == config.getini("testpaths") and _is_deselected(collection_path, config):
        return True
    return None


def _is_deselected(path: Path, config: pytest.Config) -> bool:
    if config.option.markexpr != "not real_agent" or not path.match("test_*.py"):
        return False
    return "\npytestmark = pytest.mark.real_agent" in path.read_text(encoding="utf-8")


def _import_a_share(config: pytest.Config) -> None:
    """Import a part of the test modules first, another one in each worker.

    In a fresh checkout each module is then compiled by one worker and not by all at once.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args != config.getini("testpaths"):
        return
    modules = sorted(Path(__file__).parent.rglob("test_*.py"))
    for path in modules[int(worker["workerid"][2:]) :: worker["workercount"]]:
        if _is_deselected(path, config):
            continue
        name = ".".join(path.relative_to(config.rootpath).with_suffix("").parts)
        with suppress(Exception, pytest.skip.Exception):  # collecting it reports this
            importlib.import_module(name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start real programs."""
    for item in items:
        names = set(getattr(item, "fixturenames", ()))
        if names & PROGRAMS and item.get_closest_marker("real_agent") is None:
            item.add_marker("real_agent")


def _provide(name: str, kind: type[RealProgram], install: Callable[[], Path]) -> None:
    """Define the fixtures of a real agent: its program, and the program in a project."""

    @pytest.fixture(scope="session", name=f"{name}_cli")
    def cli() -> Path:
        return required(install)

    @pytest.fixture(name=name)
    def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealProgram]:
        program: Path = request.getfixturevalue(f"{name}_cli")
        with in_a_project(kind, program, tmp_path) as made:
            yield made

    globals().update({f"{name}_cli": cli, name: agent})


for each, (kind, install) in AGENTS.items():
    _provide(each, kind, install)


@pytest.fixture(scope="session")
def playwright_server() -> Path:
    return required(install_server)
