"""Laws for every input: no crash, no way around a denial, and work that grows linearly."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cuggino.guard.paths import Paths
from cuggino.guard.policy import Level, Policy
from cuggino.guard.roles import PERMISSION_SETS, role_policy
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.tools import judge
from cuggino.guard.verdict import Verdict
from tests.growth import is_linear
from tests.guard.judging import calls, listed_cases, make_project
from tests.vectors import DATA

SHFMT = find_shfmt()
LEVELS: tuple[Level, ...] = ("roles", "full")
slow = settings(
    max_examples=2 * settings().max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a project with folders and links, outside the temporary folders."""
    root = make_project(tmp_path_factory.mktemp("home") / "project")
    for folder in ("src/deep", ".cuggino/wip", ".specs"):
        (root / folder).mkdir(parents=True)
    (root / "link").symlink_to("/etc")
    (root / "lib").symlink_to("src")
    (root / "self").symlink_to(root)
    return root


def decided(policy: Policy, tool: str, data: Any) -> Verdict:
    """Return the verdict in the project's folder."""
    return judge(policy, tool, data, policy.project, shfmt=SHFMT)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
TOOLS = st.sampled_from(
    ["Write", "Edit", "NotebookEdit", "Bash", "Monitor", "Read", "mcp__a__b", "mcp__", "x", ""]
)
KEYS = st.sampled_from(["file_path", "command", "path", "notebook_path", "args", "destination"])


@pytest.mark.real_agent
@slow
@given(
    role=st.sampled_from(PERMISSION_SETS),
    level=st.sampled_from(LEVELS),
    tool=TOOLS | st.text(max_size=10),
    data=st.dictionaries(KEYS | st.text(max_size=5), JSON, max_size=4) | JSON,
    cwd=st.just("/") | st.text(max_size=10),
)
def test_every_call_gets_an_answer(
    project: Path, role: Any, level: Level, tool: str, data: Any, cwd: str
) -> None:
    """No call crashes the guard, and every denial has a reason."""
    policy = role_policy(role, project=project, level=level)
    verdict = judge(policy, tool, data, cwd, shfmt=SHFMT)
    assert (verdict.decision == "deny") == bool(verdict.reason)
    assert "Error" not in verdict.reason


WORDS = (
    "ls rm echo cd git if then fi for in do done while case esac function { } ( ) (( )) [[ ]] | ||"
    " && & ; ;; > >> < << <<- <<< <( >( $( ` \" ' \\ $ ${ ${x} # = x=1 * ? [ ~ ! time exec eval a"
    " .. / -c EOF 2>&1 {a,b} $'x' é \x00 \r"
)
PIECES = st.sampled_from(WORDS.split(" "))


@slow
@given(
    words=st.lists(PIECES | st.text(max_size=3), max_size=30), gap=st.sampled_from([" ", "", "\n"])
)
def test_every_text_is_judged_as_a_command(project: Path, words: list[str], gap: str) -> None:
    """Random shell words never crash the guard."""
    text = gap.join(words)
    for level in LEVELS:
        verdict = decided(Policy(project=str(project), level=level), "Bash", {"command": text})
        assert (verdict.decision == "deny") == bool(verdict.reason)
        assert "The guard failed" not in verdict.reason


STEPS = st.lists(
    st.sampled_from(["./", "/", "src/../", "lib/../", "self/", "missing/../", "src/deep/../../"]),
    max_size=6,
)
TARGETS = st.sampled_from(
    [".autonoe/status.json", ".git/config", ".git/hooks/pre-commit", ".cuggino/x", ".claude/a"]
)
STARTS = st.sampled_from(["", "./", "{0}/", "{0}//", "../project/", "{0}/self/", "/../{0}/"])


@pytest.mark.real_agent
@slow
@given(
    start=STARTS, steps=STEPS, target=TARGETS, upper=st.booleans(), level=st.sampled_from(LEVELS)
)
def test_a_denied_path_stays_denied_in_every_spelling(
    project: Path, start: str, steps: list[str], target: str, upper: bool, level: Level
) -> None:
    """Dots, slashes, links and another case name the same file, for tools and for the shell."""
    head = start.format(project) + "".join(steps)
    if not start.startswith(("{", "/")):
        head = head.lstrip("/")
    path = head + (target.upper() if upper else target)
    policy = Policy(project=str(project), level=level)
    assert "deny" == decided(policy, "Write", {"file_path": path}).decision
    assert "deny" == decided(policy, "mcp__fs__write", {"path": path}).decision
    for command in (f"echo x > '{path}'", f"cp a {path}", f"echo x | tee -a {path}"):
        assert "deny" == decided(policy, "Bash", {"command": command}).decision


PLAIN = re.compile(r"[a-z][a-z0-9]+ [\w./ :+=,~-]+")
BUILTIN = re.compile(
    r"^(sh|bash|time|exec|export|read|local|readonly|typeset|declare|unset|set|shopt)\b"
)
CORPUS = [
    case.command
    for case in listed_cases(DATA / "guard_siblings.txt")
    if case.section == "full deny" and PLAIN.fullmatch(case.command)
]
DENIED: Mapping[Level, tuple[str, ...]] = {
    "full": (
        "rm -rf src", "curl example.org", "sh x.sh", "echo x > .autonoe/a", "cp a /etc/b",
        "git -c alias.x=!id x", "find . -delete", "pkill postgres", "chmod 777 a", "eval ls",
    ),
    "roles": (
        "rm -rf .git", "echo x > /etc/a", "mv a ../b", "tee .autonoe/x", "git push", "mkdir /opt/a",
        "sed -i s/a/b/ .claude/settings.json", "cp a .git/hooks/pre-commit", "touch ~/a",
    ),
}  # fmt: skip
ALLOWED: Mapping[Level, tuple[str, ...]] = {
    "full": ("ls -la", "git status", "npm test", "echo x > src/a", "cp a src/b", "grep -rn x src"),
    "roles": (
        "make all", "rm -rf build", "curl localhost:3000", "sed -i s/a/b/ src/a", "cargo test",
    ),
}  # fmt: skip
STARTERS = (
    "{0}", "env A=1 {0}", "timeout 5 {0}", "nohup {0} &", "FOO=1 {0}", "time {0}", "! {0}",
    "echo `{0}`", "env -i A=1 nice -n 5 {0}", "{0} 2>&1", "x=$({0})", "command {0}", "xargs {0}",
    "2>/dev/null {0}", "{0} # it's fine\n", "env timeout 5 nohup {0}",
)  # fmt: skip
"""Prefixes and wrappers of a simple command."""

WRAPS = (
    "  {0}  ", "{{ {0}\n}}", "( {0} )", "true && {0}", "false || {0}", "ls; {0}", "ls & {0}",
    "{0} | cat", "ls | {0}", "if true; then {0}\nfi", "if {0}\nthen ls; fi", "{0} && ls",
    "for i in 1 2; do {0}\ndone", "while {0}\ndo ls; done", "case x in x) {0}\n;; esac",
    'echo "$({0})"', "cat <({0})", "ls\n{0}\nls", "cat <<E{1}\n$({0})\nE{1}\n", "x=$({0})",
    "f() {{ {0}\n}}; f", "until ls; do {0}\ndone",
)  # fmt: skip
"""Contexts of any command."""

PLAIN_WRAPS = (
    "{0}", "  {0}  ", "{{ {0}; }}", "( {0} )", "true && {0}", "ls; {0}", "{0} | cat", "{0} 2>&1",
    "ls\n{0}\nls", "time {0}", "FOO=1 {0}", "if true; then {0}; fi",
)  # fmt: skip


def quoted(word: str, way: int) -> str:
    """Return another spelling of the same shell word."""
    match way:
        case 0:
            return f"'{word}'"
        case 1:
            return f'"{word}"'
        case 2:
            return word[:1] + f'""{word[1:]}'
        case 3:
            return word[:1] + "\\\n" + word[1:]
        case 4 if word.isalnum():
            return "\\" + word
        case 5:
            return "$'" + "".join(f"\\x{ord(char):02x}" for char in word) + "'"
        case _:
            return word


def rewritten(command: str, way: int, gap: str) -> str:
    """Return the command with a quoted word and other gaps, and the same operators."""
    words = command.split(" ")
    words[0] = quoted(words[0], way)
    if words[-1] not in (">", "|"):
        words[-1] = quoted(words[-1], way) if not words[-1].startswith("~") else words[-1]
    return gap.join(words)


GAPS = st.sampled_from([" ", "  ", "\t", " \\\n "])


@settings(slow, max_examples=5 * settings().max_examples)
@given(
    case=st.sampled_from([(level, command) for level in LEVELS for command in DENIED[level]])
    | st.sampled_from(CORPUS).map(lambda command: ("full", command)),
    starter=st.sampled_from(STARTERS),
    wraps=st.lists(st.sampled_from(WRAPS), max_size=3),
    way=st.integers(0, 6),
    gap=GAPS,
)
def test_a_denied_command_stays_denied(
    project: Path, case: tuple[Level, str], starter: str, wraps: list[str], way: int, gap: str
) -> None:
    """Quotes, blanks, line continuations, wrappers and contexts hide nothing."""
    level, command = case
    text = rewritten(command, way, gap)
    if not BUILTIN.match(command):
        text = starter.format(text)
    for depth, wrap in enumerate(wraps):
        text = wrap.format(text, depth)
    policy = Policy(project=str(project), level=level)
    assert "deny" == decided(policy, "Bash", {"command": text}).decision, text


@slow
@given(
    level=st.sampled_from(LEVELS),
    index=st.integers(0, 20),
    wrap=st.sampled_from(PLAIN_WRAPS),
    way=st.integers(0, 6),
    gap=GAPS,
)
def test_an_allowed_command_stays_allowed(
    project: Path, level: Level, index: int, wrap: str, way: int, gap: str
) -> None:
    """The spelling of a harmless command does not make it denied."""
    text = wrap.format(rewritten(ALLOWED[level][index % len(ALLOWED[level])], way, gap))
    verdict = decided(Policy(project=str(project), level=level), "Bash", {"command": text})
    assert "allow" == verdict.decision, (text, verdict.reason)


@pytest.fixture
def empty_project(tmp_path: Path) -> Path:
    """Create a project outside the temporary folders."""
    root = tmp_path / "home" / "project"
    (root / "src").mkdir(parents=True)
    return root


def decision(policy: Policy, tool: str, data: Mapping[str, object]) -> str:
    """Return the decision in the project's folder."""
    return judge(policy, tool, data, policy.project, shfmt=SHFMT).decision


COMMANDS: Mapping[str, Callable[[int], str]] = {
    "commands": lambda n: "ls\n" * n,
    "pipes": lambda n: "ls |" * n + "ls",
    "words": lambda n: "echo " + "a " * n,
    "paths": lambda n: "cp " + "src/a " * n + "src",
    "long path": lambda n: "echo x > " + "a/" * n + "b",
    "dots": lambda n: "echo x > " + "a/../" * n + "b",
    "redirections": lambda n: "ls " + "> src/a " * n,
    "quotes": lambda n: "echo " + "'a'\"b\"\\c" * n,
    "directories": lambda n: "cd src; cd ..; " * n + "echo > a",
    "assignments": lambda n: "A=1 " * n + "ls",
    "functions": lambda n: "".join(f"f{i}() {{ ls; }}\n" for i in range(n)) + "f0",
    "lists": lambda n: "true && " * n + "ls",
    "substitutions": lambda n: "echo " + "$(ls) " * n,
    "document": lambda n: "cat <<'E'\n" + "a line\n" * n + "E\n",
    "inline": lambda n: "python3 -c '" + "print(1);" * n + "'",
}


@pytest.mark.parametrize("shape", COMMANDS)
@pytest.mark.parametrize("level", LEVELS)
def test_work_grows_linearly_with_a_command(empty_project: Path, shape: str, level: Level) -> None:
    """Four times the length takes about four times the calls."""
    policy = Policy(project=str(empty_project), level=level)

    def work(size: int) -> int:
        text = COMMANDS[shape](size)
        return calls(lambda: decision(policy, "Bash", {"command": text}))

    work(1)
    assert work(100) < 5 * work(25) + 500


@pytest.mark.parametrize(
    "words", ["/a", "a ", "'", "\\a", "..", "{a,", "$(", "((", "*", "=_", "a:/"]
)
def test_time_grows_linearly_with_a_text(empty_project: Path, words: str) -> None:
    """No repetitive text makes a pattern backtrack."""
    policy = Policy(project=str(empty_project), level="roles")

    def work(size: int) -> None:
        text = words * (size // len(words))
        decision(policy, "mcp__x__y", {"path": text, "args": text, text: text, "x": [text]})
        decision(policy, "Write", {"file_path": text})
        decision(policy, "Bash", {"command": text})

    assert is_linear(work, small=1_000, large=8_000)


def test_each_part_of_a_path_is_looked_up_a_few_times(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part of a path causes only a few look-ups on the disk."""
    asked: list[object] = []
    real = os.readlink

    def readlink(path: str) -> str:
        asked.append(path)
        return str(real(path))

    monkeypatch.setattr("os.readlink", readlink)
    guard = Paths(Policy(project=str(empty_project)))

    def count(size: int) -> int:
        asked.clear()
        guard.write("src/../" * size + "a", [str(empty_project)])
        return len(asked)

    assert count(200) <= 4 * count(50) + 100


def test_nested_links_are_limited(tmp_path: Path) -> None:
    """Links that double at each step are followed only as far as the system follows them."""
    empty_project = tmp_path / "home" / "project"
    empty_project.mkdir(parents=True)
    (empty_project / "l0").symlink_to(".")
    for level in range(1, 30):
        (empty_project / f"l{level}").symlink_to(f"l{level - 1}/l{level - 1}")
    count = calls(
        lambda: Paths(Policy(project=str(empty_project))).write("l29/a", [str(empty_project)])
    )
    assert count < 5_000
