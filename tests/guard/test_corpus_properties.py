"""A denied command stays denied in any spelling and any context."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cuggino.guard.policy import Policy
from tests.guard.judging import listed_cases, make_project, reason_of
from tests.vectors import DATA

PLAIN = re.compile(r"[a-z][a-z0-9]+ [\w./ :+=,~-]+")
BARE = re.compile(
    r"^(sh|bash|time|exec|export|read|local|readonly|typeset|declare|unset|set|shopt)\b"
)
DENIED = [
    case.command
    for case in listed_cases(DATA / "guard_siblings.txt")
    if case.section == "full deny" and PLAIN.fullmatch(case.command)
]
PROGRAMS = [command for command in DENIED if not BARE.match(command)]
"""Denied commands that begin with a program, which another program can start."""


def _quoted(command: str, mark: str) -> str:
    head, _, rest = command.partition(" ")
    return f"{mark}{head}{mark} {rest}"


SPELLINGS: list[Callable[[str], str]] = [
    lambda c: f"  {c}  ",
    lambda c: c.replace(" ", "\t ", 1),
    lambda c: c.replace(" ", " \\\n ", 1),
    lambda c: c[0] + "\\\n" + c[1:],
    lambda c: c[0] + "''" + c[1:],
    lambda c: "\\" + c,
    lambda c: _quoted(c, "'"),
    lambda c: _quoted(c, '"'),
    lambda c: "$'" + c.split(" ", maxsplit=1)[0] + "' " + c.partition(" ")[2],
    lambda c: " ".join([c.split(" ")[0], *(f'"{word}"' for word in c.split(" ")[1:])]),
    lambda c: f"{c} # it's fine",
    lambda c: f"2>/dev/null {c}",
]
WRAPPINGS: list[Callable[[str], str]] = [
    lambda c: f"( {c} )",
    lambda c: f"{{ {c}; }}",
    lambda c: f"{c} | cat",
    lambda c: f"echo x | {c}",
    lambda c: f"{c} &",
    lambda c: f"ls; {c}",
    lambda c: f"ls\n{c}",
    lambda c: f"true && {c}",
    lambda c: f"false || {c}",
    lambda c: f"! {c}",
    lambda c: f'echo "$({c})"',
    lambda c: f"cat <({c})",
    lambda c: f"if true; then {c}; fi",
    lambda c: f"while {c}; do ls; done",
    lambda c: f"for i in 1; do {c}; done",
    lambda c: f"case x in x) {c};; esac",
    lambda c: f"go_on() {{ {c}; }}; go_on",
    lambda c: f"time {c}",
    lambda c: f"X=1 {c}",
]
STARTERS: list[Callable[[str], str]] = [
    lambda c: f"env {c}",
    lambda c: f"env A=1 {c}",
    lambda c: f"timeout 5 {c}",
    lambda c: f"nohup {c}",
    lambda c: f"nice -n 5 {c}",
    lambda c: f"command {c}",
    lambda c: f"xargs {c}",
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Create one project for all commands, with a link that leaves it."""
    folder = make_project(tmp_path_factory.mktemp("properties") / "project")
    (folder / "link").symlink_to("/etc")
    return str(folder)


@pytest.mark.real_agent
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    command=st.sampled_from(DENIED),
    spelling=st.sampled_from(SPELLINGS),
    wrappings=st.lists(st.sampled_from(WRAPPINGS), max_size=2),
)
def test_a_denied_command_stays_denied(
    project: str,
    command: str,
    spelling: Callable[[str], str],
    wrappings: list[Callable[[str], str]],
) -> None:
    """Quoting, blanks, line continuations, groups, subshells and pipelines hide nothing."""
    text = spelling(command)
    for wrapping in wrappings:
        text = wrapping(f"{text}\n" if "#" in text else text)
    assert reason_of(text, Policy(project)), text


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(command=st.sampled_from(PROGRAMS), starters=st.lists(st.sampled_from(STARTERS), max_size=3))
def test_a_denied_program_stays_denied_when_another_starts_it(
    project: str, command: str, starters: list[Callable[[str], str]]
) -> None:
    """A wrapper is judged by the program it starts, at any depth."""
    for starter in starters:
        command = starter(command)
    assert reason_of(command, Policy(project)), command
