"""Programs that start another program are unwrapped, whichever option or subcommand starts it."""

from __future__ import annotations

import pytest

from cuggino.guard.policy import Policy
from tests.guard.commands.listed import allowed, denied

STARTERS = (
    "rustup run stable {0}", "rustup run --install nightly {0}", "rustup +nightly run stable {0}",
    "rustup -v run stable {0}", "valgrind {0}", "valgrind --leak-check=full {0}", "eatmydata {0}",
    "fakeroot {0}", "fakeroot -i src/a -s src/b -- {0}", "fakeroot -l x -b 3 -f y {0}",
    "fakeroot --lib x --faked y {0}", "faketime now {0}", "faketime -p x now {0}",
    "faketime --date-prog x --exclude-monotonic now {0}", "rlwrap {0}", "rlwrap -H src/h {0}",
    "rlwrap -f x -s 9 -C a -S '>' {0}", "ccache {0}", "sccache {0}", "distcc {0}", "bear -- {0}",
    "bear --output a.json -- {0}", "bear --append --config x -- {0}", "bear -o x -c y {0}",
    "pyenv exec {0}", "rbenv exec {0}", "asdf exec {0}", "direnv exec . {0}", "volta run {0}",
    "volta run --node 20 {0}", "perf stat {0}", "perf stat -e cycles -r 5 {0}", "perf stat -j {0}",
    "perf record -o perf.data -F 99 -g -- {0}", "perf trace {0}", "perf record -c 9 -m 8 {0}",
    "perf record --event cycles --output perf.data --call-graph dwarf {0}", "perf stat -x , {0}",
    "perf stat -I 100 -D 5 -G x -C 0 {0}", "perf stat --repeat 3 {0}", "perf stat --pid 1 {0}",
    "perf stat -p 1 -t 1 {0}", "gdb --args {0}", "gdb -batch -ex run -args {0}",
    "hyperfine '{0}'", "hyperfine -w 3 ls '{0}'", "hyperfine --prepare '{0}' ls",
    "hyperfine -s '{0}' ls", "hyperfine -p '{0}' ls", "hyperfine -c '{0}' ls",
    "hyperfine --setup '{0}' ls", "hyperfine --cleanup '{0}' ls", "hyperfine --conclude '{0}' ls",
    "hyperfine --reference '{0}' ls", "cmake -E env {0}", "cmake -E env A=b {0}",
    "cmake -E env --unset=A {0}", "cmake -E time {0}", "cmake -E chdir . {0}",
    "go run -exec '{0}' .", "go test --exec='{0}' ./...", "go build -toolexec '{0}' .",
)  # fmt: skip
WRITES = (
    "cmake -E copy a .git/x", "cmake -E copy_if_different a .git/x",
    "cmake -E copy_if_newer a .git/x", "cmake -E copy_directory src .git/x",
    "cmake -E copy_directory_if_different src .git/x", "cmake -E copy_directory_if_newer a .git/x",
    "cmake -E rename a .git/x", "cmake -E rename .git/x a", "cmake -E remove -f .git/x",
    "cmake -E rm -rf .git", "cmake -E remove_directory .git", "cmake -E make_directory .git/x",
    "cmake -E touch .git/x", "cmake -E touch_nocreate .git/x", "cmake -E create_symlink a .git/x",
    "cmake -E create_hardlink a .git/x", "cmake -E tar cf .git/x a", "cmake -E tar xf a -C .git",
    "cmake -E chdir .git touch x", 'cmake -E "$x" .git/x', "cmake -B .git", "cmake -S . -B.git",
    "cmake --install . --prefix .git", "fakeroot -s .git/x ls", "rlwrap -H .git/x ls",
    "rlwrap -l .git/x ls", "bear --output .git/x -- ls", "bear -o .git/x ls",
    "perf record -o .git/x ls", "perf stat --output .git/x ls", "strace -o '|sh' ls",
    "strace -o '!sh' ls", "strace -o .git/x ls", "ltrace -o .git/x ls", "ltrace --output .git/x ls",
    "xvfb-run -e .git/x ls", "xvfb-run -f .git/x ls", "xvfb-run --error-file .git/x ls",
    "xvfb-run --auth-file .git/x ls", "/usr/bin/time -o .git/x ls",
    "/usr/bin/time --output .git/x ls",
    "flock .git/index.lock ls", "hyperfine --export-json .git/x ls",
    "hyperfine --export-markdown .git/x ls", "hyperfine --export-csv .git/x ls",
    "hyperfine --export-asciidoc .git/x ls", "hyperfine --export-orgmode .git/x ls",
    'hyperfine "$x"', "python -m zipfile -e a.zip .git", "python -m zipfile --extract a.zip .git",
    "python -m zipfile -c .git/x a", "python3 -m tarfile -e a.tar .git",
    "python3 -m tarfile --create .git/x a", "python -m json.tool a .git/x",
    "python3.12 -m venv .git/x", "python -m compileall .git", "python -m py_compile .git/x.py",
    "python -m pip install -t .git x", "python -m black .git/x.py", "python -m isort .git/x.py",
    "python -m ruff format .git/x", "python -m autopep8 -i .git/x",
    "python -m cProfile -o .git/x a",
    "python -m coverage html -d .git", "python -m pytest --junitxml=.git/x",
    "python -m mypy --html-report .git", "python -m flake8 --output-file .git/x",
    "python -m uv export -o .git/x", "python -m poetry run rm -rf .git",
    "python -m virtualenv --app-data-dir=.git x",
)  # fmt: skip
FINE = (
    "rustup run nightly cargo build",
    "rustup toolchain list",
    "rustup run",
    "ccache -s",
    "ccache -o max_size=5G",
    "ccache -M 5G",
    "ccache gcc -o build/x a.c",
    "sccache --show-stats",
    "distcc --version",
    "bear -- make",
    "valgrind --version",
    "direnv allow",
    "pyenv install 3.12",
    "perf report",
    "perf stat",
    "gdb -batch -ex bt ./a.out core",
    "gdb --args ./a.out .git",
    "hyperfine --warmup 3 --export-json build/x.json 'ls' 'cat .git/config'",
    "hyperfine -n rm -N -i ls",
    "cmake -B build -S . -DCMAKE_BUILD_TYPE=Debug",
    "cmake --build build -j4",
    "cmake -E make_directory build/x",
    "cmake -E sha256sum .git/x",
    "cmake -E",
    "flock build.lock make",
    "flock /tmp/x.lock ls",
    "go test -exec sudo ./...",
    "go build -executable x",
    "python -m json.tool .cuggino.json",
    "python -m zipfile -l .git/x",
    "python -m pytest -q",
    "python -m pip install -e .",
    "python -m venv .venv",
    "python -m http.server -d .git",
    "python -m trace --count a.py",
)


@pytest.mark.parametrize("starter", STARTERS)
def test_started_program_is_checked(starter: str, project: str) -> None:
    """A denied program stays denied behind a launcher; a harmless one is allowed."""
    policy = Policy(project, level="roles")
    assert [] == allowed([starter.format("rm -rf .git")], policy)
    assert [] == denied([starter.format("ls src")], policy)


def test_files_of_the_launcher_are_checked(project: str) -> None:
    """Files written by a launcher or by a Python module are checked."""
    assert [] == allowed(WRITES, Policy(project, level="roles"))
    in_project = [command.replace(".git", "src/b") for command in WRITES]
    told = [command for command in in_project if "$x" not in command and "sh'" not in command]
    at_ends = [command for command in told if "-m poetry" not in command]
    assert [] == denied(at_ends, Policy(project, level="roles"))


def test_harmless_launches_are_allowed(project: str) -> None:
    """Harmless launches are allowed, and calls that start nothing."""
    assert [] == denied(FINE, Policy(project, level="roles"))


def test_allowlist_applies_behind_a_launcher(project: str) -> None:
    """The allowlist applies to the started program too."""
    extra = ("valgrind", "cmake", "perf", "hyperfine", "gdb", "ccache")
    policy = Policy(project, extra_commands=extra)
    commands = [f"{name} touch src/b" for name in ("valgrind", "perf stat", "ccache", "gdb --args")]
    commands += ["cmake -E touch src/b", "cmake -E rm src/b", "hyperfine 'touch src/b'"]
    assert [] == allowed(commands, policy)
    assert [] == denied(["valgrind ls", "cmake -E copy a b", "perf stat ls"], policy)
