"""Every command of a script is judged, with the folders in which it may run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cuggino.security.policy import Policy
from tests.security.judging import make_project, parts_of, reason_of


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One project for all scripts, none of which runs."""
    return str(make_project(tmp_path_factory.mktemp("walk") / "project"))


def test_each_command_and_redirection_is_a_part_once(project: str) -> None:
    """The parts stand in the order of the text, also those of a loop that is walked twice."""
    script = "echo a > b; for i in 1 2; do cd src; ls; done; cat <(pwd)"
    texts = [part.text for part in parts_of(script, Policy(project), project)]
    assert ["> b", "echo a", "for i", "cd src", "ls", "pwd", "cat <(pwd)"] == [
        text for text in texts if text
    ]


def test_the_denied_part_is_told_from_the_others(project: str) -> None:
    """Of a chain only the command that is at fault has a reason."""
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
def test_writes_that_surely_stay_in_the_project_pass(script: str, project: str) -> None:
    """Subshells, pipes and jobs keep their folder to themselves; chains hand it on."""
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
    """Both ends of every branch are followed, and what nobody can know counts as outside."""
    assert reason_of(script, Policy(project, level="roles"))


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
def test_a_function_means_nothing_where_it_may_not_be_defined(script: str, project: str) -> None:
    """Only a function that is surely defined, and shadows nothing, may be called by its name."""
    assert reason_of(script, Policy(project))


def test_functions_that_are_surely_defined_may_be_called(project: str) -> None:
    """Also one that calls another, and one that calls itself."""
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
def test_reasons_hold_the_required_texts(script: str, needed: str, project: str) -> None:
    """What the requirements say literally stands in the reason (AUT-164 to AUT-220)."""
    assert needed in reason_of(script, Policy(project))


@pytest.mark.parametrize(
    "script",
    [
        "for i in 1; do " * 35 + "cd x" + "; done" * 35,
        "".join(f"f{i}() {{ f{i - 1}; f{i - 1}; cd a{i}; }}; " for i in range(1, 60)) + "f59",
        "cd a{1..9}; " * 200,
        "; ".join(f"cd a{i} && ls" for i in range(200)),
    ],
)
def test_deep_and_branching_scripts_take_no_longer_than_long_ones(
    script: str, project: str
) -> None:
    """Nested loops and functions that call each other twice do not multiply."""
    begun = time.monotonic()
    reason_of(script, Policy(project, level="roles"))
    assert time.monotonic() - begun < 5


def test_without_a_known_folder_nothing_relative_is_written(project: str) -> None:
    """Absolute paths in the project may still be written."""
    assert reason_of("echo x > a", Policy(project), "")
    assert "" == reason_of(f"echo x > {project}/a", Policy(project), "")


def test_a_shell_within_a_shell_is_judged_by_its_text(tmp_path: Path) -> None:
    """Under roles `bash -c` may be used, and what it is given is judged where it runs."""
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
