"""Judging of every command of a script, with the folders in which it may run."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard.policy import Policy
from tests.guard.judging import calls, make_project, parts_of, reason_of


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Create one project for all scripts, none of which runs."""
    return str(make_project(tmp_path_factory.mktemp("walk") / "project"))


def test_each_command_and_redirection_is_a_part_once(project: str) -> None:
    """Parts are in text order and unique, also in a loop that is walked twice."""
    script = "echo a > b; for i in 1 2; do cd src; ls; done; cat <(pwd)"
    texts = [part.text for part in parts_of(script, Policy(project), project)]
    assert ["> b", "echo a", "for i", "cd src", "ls", "pwd", "cat <(pwd)"] == [
        text for text in texts if text
    ]


def test_only_the_denied_part_has_a_reason(project: str) -> None:
    """In a chain only the denied command has a reason."""
    parts = parts_of("ls && curl x | cat", Policy(project), project)
    assert ["curl x"] == [part.text for part in parts if part.reason]


@pytest.mark.parametrize(
    "script",
    [
        "cd src && echo x > a",
        "cd src; cd ..; echo x > a",
        "(cd /etc); echo x > a",
        "cd /etc | cat; echo x > a",
        "cd /etc & echo x > a",
        "if cd src; then echo x > ../a; fi",
        "cd missing || exit 1; echo x > a",
        "pushd src && echo x > a; popd; echo x > b",
        "f() { echo x > a; }; f; cd src; f",
        "for i in 1 2; do cd src; echo x > a; cd ..; done",
        "! cd src || echo x > ../a",
    ],
)
def test_writes_within_the_project_are_allowed(script: str, project: str) -> None:
    """Subshells, pipes and jobs keep their folder to themselves; chains pass it on."""
    assert "" == reason_of(script, Policy(project))


@pytest.mark.parametrize(
    "script",
    [
        "cd ..; echo x > a",
        "cd / && cd tmp/.. && echo x > a",
        "cd missing; cd ..; echo x > a",
        "{ cd ..; }; echo x > a",
        "if true; then cd ..; fi; echo x > a",
        "case x in a) cd ..;; esac; echo x > a",
        "while true; do cd ..; break; done; echo x > a",
        "for i in 1 2; do echo x > a; cd ..; done",
        "f() { cd ..; }; f; echo x > a",
        "f() { echo x > a; }; cd ..; f",
        'cd "$X"; echo x > a',
        "cd; echo x > a",
        "cd - && echo x > a",
        "cd src && cd ~ && echo x > a",
        "command cd ..; echo x > a",
        "builtin cd ..; echo x > a",
        "pushd ..; popd; echo x > a; pushd /; echo x > b",
        "cd .. || true; echo x > a",
        "rm -r src; cd src; cd ..; echo x > a",
        "f() { f; cd ..; }; f; echo x > a",
    ],
)
def test_writes_that_may_leave_the_project_are_denied(script: str, project: str) -> None:
    """Both outcomes of every branch are followed, and an unknown folder counts as outside."""
    assert reason_of(script, Policy(project, allow_destructive=True))


@pytest.mark.parametrize(
    "script",
    [
        "curl x; curl() { ls; }",
        "false && curl() { ls; }; curl x",
        "(curl() { ls; }); curl x",
        "curl() { ls; } | cat; curl x",
        "f() { curl() { ls; }; }; curl x",
        "curl() { ls; }; unset -f curl; curl x",
        "curl() { ls; }; env curl x",
        "curl() { ls; }; command curl x",
        "ls() { pwd; }; ls",
        "greet() { curl x; }",
    ],
)
def test_functions_that_may_be_undefined(script: str, project: str) -> None:
    """A function may be called only where it is certainly defined and shadows nothing."""
    assert reason_of(script, Policy(project))


def test_defined_functions_may_be_called(project: str) -> None:
    """A defined function may call another one, and itself."""
    script = "a() { ls; }; b() { a; [ -f x ] && b; }; b; for i in 1; do a; done"
    assert "" == reason_of(script, Policy(project))


@pytest.mark.parametrize(
    ("script", "needed"),
    [
        ("rm x", "Command 'rm' is not in the allowlist"),
        ("bin/dev.sh x", "bin/dev.sh does not accept arguments"),
        ("chmod 777 x", "chmod numeric modes are not allowed"),
        ("pkill postgres", "pkill target 'postgres' is not allowed, only dev processes permitted"),
        ("echo x > .autonoe/a", "Direct writes to .autonoe/ directory are not allowed"),
        ("echo x > ../a", "Path '../a' escapes project directory"),
    ],
)
def test_required_messages(script: str, needed: str, project: str) -> None:
    """Reasons contain the required messages (AUT-164 to AUT-220)."""
    assert needed in reason_of(script, Policy(project))


@pytest.mark.parametrize(
    "script",
    [
        "for i in 1; do " * 35 + "cd x" + "; done" * 35,
        "".join(f"f{i}() {{ f{i - 1}; f{i - 1}; cd a{i}; }}; " for i in range(1, 60)) + "f59",
        "cd a{1..9}; " * 50,
        "; ".join(f"cd a{i} && ls" for i in range(50)),
    ],
)
def test_deep_and_branching_scripts_take_no_longer_than_long_ones(
    script: str, project: str
) -> None:
    """Nested loops and functions that call each other twice do not multiply the work."""
    policy = Policy(project, level="roles")
    assert calls(lambda: reason_of(script, policy)) < 5_000_000


def test_relative_writes_in_an_unknown_folder(project: str) -> None:
    """In an unknown folder only absolute paths in the project may be written."""
    assert reason_of("echo x > a", Policy(project), "")
    assert "" == reason_of(f"echo x > {project}/a", Policy(project), "")


def test_nested_shells(tmp_path: Path) -> None:
    """At level `roles`, `bash -c` is allowed and its script is judged in place."""
    policy = Policy(str(make_project(tmp_path / "project")), level="roles")
    assert "" == reason_of("bash -c 'make && echo x > a'", policy)
    assert reason_of("""bash -c 'sh -c "rm -rf .git"'""", policy)
    assert reason_of("cd .. && bash -c 'echo x > a'", policy)
    assert "deeply" in reason_of(_nested(6), policy)


def _nested(depth: int) -> str:
    text = "ls"
    for _ in range(depth):
        text = "bash -c '" + text.replace("'", "'\\''") + "'"
    return text
