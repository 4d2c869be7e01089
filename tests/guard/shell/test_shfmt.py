"""The parser program: found, fed, always ended, and compared with bash."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import psutil
import pytest

from cuggino.errors import ConfigError
from cuggino.guard.shell import shfmt
from cuggino.guard.shell.parser import parse
from cuggino.guard.shell.shfmt import find_shfmt, run_shfmt
from cuggino.guard.shell.tree import Refused
from tests.fuzz_shell import bash_version, compare, isolation, runs
from tests.fuzz_shell_grammar import Snippets
from tests.guard.shell.parsed import SHFMT, refusal
from tests.limits import LIMIT


def program(folder: Path, body: str) -> str:
    path = folder / "shfmt"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def held() -> tuple[int, int]:
    """Return the number of descriptors and children of this process."""
    return psutil.Process().num_fds(), len(psutil.Process().children())


def test_the_program_is_found() -> None:
    """The path is absolute and executable."""
    assert Path(SHFMT).is_absolute()
    assert os.access(SHFMT, os.X_OK)


def test_the_path_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one next to Python, the first on PATH is used; relative folders never."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "no" / "python"))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "no"))
    monkeypatch.setattr(shfmt, "__file__", str(tmp_path / "a/b/c/d/e/f/g/shfmt.py"))
    expected = program(tmp_path, "exit 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{tmp_path}")
    assert expected == find_shfmt()
    monkeypatch.setenv("PATH", ".:")
    with pytest.raises(ConfigError) as raised:
        find_shfmt()
    assert "shfmt-py" in str(raised.value.hint)


def test_it_returns_the_tree() -> None:
    """The result is shfmt's syntax tree."""
    assert "File" == run_shfmt(SHFMT, "a b")["Type"]


def test_it_gets_no_environment(tmp_path: Path) -> None:
    """Nothing of the environment reaches the program."""
    path = program(tmp_path, '[ "$HOME$USER$CUGGINO" = "" ] && echo "{}"; exit 0')
    os.environ["CUGGINO"] = "x"
    try:
        assert {} == run_shfmt(path, "a")
    finally:
        del os.environ["CUGGINO"]


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("exit 1", "cannot be parsed"),
        ("echo no; exit 0", "cannot be read"),
        ("echo '[1]'", "cannot be read"),
        ('echo \'{"Stmts": [{"Cmd": {"Type": "New"}}]}\'', "not judged"),
        ("echo '{\"Stmts\": [[1]]}'", "cannot be judged"),
        ("kill -9 $$", "was killed by signal 9"),
        (
            "printf 'runtime: no\\nfatal error: no memory\\n\\nstack:\\n\\tmain.go' >&2; exit 2",
            r"exited with code 2 \(fatal error: no memory\); with",
        ),
    ],
)
def test_a_program_that_fails_refuses(tmp_path: Path, body: str, part: str) -> None:
    """When the program fails, the text is refused and nothing stays open."""
    before = held()
    with pytest.raises(Refused, match=part):
        parse("a", shfmt=program(tmp_path, body))
    assert before == held()


@pytest.mark.parametrize(
    "body", ["exec sleep 600", "cat >/dev/null; exec sleep 600", "exec >&- 2>&-; exec sleep 600"]
)
def test_a_program_that_hangs_is_ended(
    tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that times out is killed, and the text is refused."""
    monkeypatch.setattr(shfmt, "TIMEOUT_SECONDS", 0.2)
    before, start = held(), time.monotonic()
    with pytest.raises(Refused, match="too long"):
        parse("a", shfmt=program(tmp_path, body))
    assert before == held()
    assert LIMIT > time.monotonic() - start


def test_endless_output_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that prints too much is killed."""
    monkeypatch.setattr(shfmt, "_LARGEST_ANSWER", 100_000)
    before = held()
    with pytest.raises(Refused, match="too long"):
        parse("a", shfmt=program(tmp_path, "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaa; done"))
    assert before == held()


def test_a_program_that_reads_nothing_does_not_block(tmp_path: Path) -> None:
    """Writing a long text to a program that has ended does not block."""
    with pytest.raises(Refused, match="exited with code 3"):
        parse("a " + "b" * 65000, shfmt=program(tmp_path, "exit 3"))


def test_long_text_and_a_longer_answer_do_not_block() -> None:
    """The longest text with a much longer answer is exchanged without blocking."""
    before = held()
    assert "" == refusal("git add " + "file " * 8000)
    assert before == held()


def test_it_is_found_next_to_unpacked_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found in the `bin` of a package folder, where a single-file program unpacks it."""
    empty = tmp_path / "empty"
    packages = tmp_path / "x" / "y" / "z" / "packages"
    monkeypatch.setattr(shfmt, "__file__", str(packages / "cuggino/guard/shell/shfmt.py"))
    monkeypatch.setattr(sys, "executable", str(empty / "python3"))
    monkeypatch.setattr(sys, "prefix", str(empty))
    monkeypatch.setenv("PATH", str(empty))
    with pytest.raises(ConfigError, match="is not installed"):
        shfmt.find_shfmt()
    program = packages / "bin" / "shfmt"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    assert str(program) == shfmt.find_shfmt()


def test_a_folder_that_cannot_be_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder on the PATH that cannot be read is passed over."""
    empty, useful = tmp_path / "empty", tmp_path / "useful"
    useful.mkdir()
    (useful / "shfmt").touch(mode=0o755)
    monkeypatch.setattr(shfmt, "__file__", str(empty / "1/2/3/shfmt.py"))
    monkeypatch.setattr(sys, "executable", str(empty / "python3"))
    monkeypatch.setattr(sys, "prefix", str(empty))
    monkeypatch.setenv("PATH", f"/{'too-long' * 1000}:{useful}")
    assert str(useful / "shfmt") == shfmt.find_shfmt()


BASH = shutil.which("bash") or ""
needs_bash = pytest.mark.skipif(
    not os.environ.get("CI") and (not BASH or bash_version(BASH) < 5),
    reason="the parser is compared with bash from version 5 on",
)


@needs_bash
@pytest.mark.real_agent
def test_every_command_of_bash_is_in_the_tree() -> None:
    """Of 150 snippets, every command that bash would run is in the tree."""
    made = Snippets(4)
    found = compare(
        [made.snippet() for _ in range(150)], shfmt=find_shfmt(), bash=BASH, wrapper=isolation()
    )
    assert [] == found.misses
    assert 40 < found.counts["snippets that ran something"]


@needs_bash
def test_the_oracle() -> None:
    """The oracle reports the words that bash would run for each branch, and its files."""
    first, second = runs(["w1 'a b' $(w2); w3 || w4", "w5 > o6"], bash=BASH, wrapper=isolation())
    assert {("w1", "a b"), ("w2",), ("w3",), ("w4",)} == {tuple(words) for words in first.commands}
    assert ([["w5"], ["w5"]], ["o6"]) == second
