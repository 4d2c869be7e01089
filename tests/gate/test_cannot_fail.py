"""Which check commands can fail."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from cuggino.gate import why_it_cannot_fail
from tests.limits import LIMIT

CAN_FAIL = """
make test
make -k test
make -C sub test
pytest -q
npm test && npm run lint
npm ci && npm test
cargo test --all
go vet ./... && go test ./...
./check.sh
bash check.sh
sh -c 'make test'
bash -ec 'make test; echo done'
bash -euo pipefail -c 'pytest | tee log'
bash -o pipefail -c 'pytest | tee log'
pytest -q | tee log; exit ${PIPESTATUS[0]}
pytest -q | tee log; test ${PIPESTATUS[0]} -eq 0
pytest -q | tee log; (exit ${PIPESTATUS[0]})
set -o pipefail; pytest | tee log
set -o pipefail && pytest | tee log
set -euo pipefail; make test; echo done
set -e; make lint; make test; echo done
set -e; make lint && make test; echo done
make test || exit 1
make test || exit 1; echo done
make test || { echo failed; exit 1; }
make test || (echo failed; exit 1)
make test || make retest
make test; rc=$?; rm -rf tmp; exit $rc
if make test; then echo ok; else exit 1; fi
if [ -f Makefile ]; then make test; fi
if ! make test; then exit 1; fi; echo ok
[ -f Makefile ] || exit 0; make test
for t in tests/*.sh; do bash $t; done
for t in tests/*.sh; do bash $t || exit 1; done
for t in tests/*.sh; do bash $t || exit 1; done; echo done
case $CI in true) make ci;; *) make test;; esac
! grep -rn TODO src
! git grep -q FIXME
git diff --exit-code
test -z "$(gofmt -l .)"
[[ $(wc -l <a) -lt 3 ]]
grep -q ok result.txt
cat result.txt
diff <(./a) expected
./a | diff - expected
./a | grep -q ok
./a | sort -c
cd sub && make test
(cd sub && make test)
{ make lint; make test; }
time make test
timeout 60 make test
env CI=1 make test
nohup make test
CI=1 make test
. venv/bin/activate; pytest
source ci.sh; echo done
run() { make test; }; run
die() { echo "$1"; exit 1; }; make test || die no; echo ok
./server & pytest
./server & pid=$!; pytest; rc=$?; kill $pid; exit $rc
make test & wait $!
trap 'kill 0' EXIT; make test
exec make test
eval "$CHECK"; echo done
out=$(make test)
false
ruff check . && mypy . && pytest -q
pre-commit run --all-files
tox -e py311
docker compose run --rm app pytest
command -v make
""".strip().splitlines()

CANNOT_FAIL = {
    "true": "`true` always succeeds",
    ":": "`:` always succeeds",
    "exit 0": "`exit 0` always succeeds",
    "echo passed | tee out.txt": "the exit code of its last command: `tee out.txt` succeeds",
    "make test; echo done": "the last command: `echo done` always succeeds",
    "make test\necho done": "the last command: `echo done` always succeeds",
    "make test; exit 0": "`exit 0` always succeeds",
    "make test; true": "`true` always succeeds",
    "make test; printf '%s' done": "always succeeds",
    "make test; rm -rf tmp": "`rm -rf tmp` always succeeds",
    "make test; touch done": "`touch done` always succeeds",
    "make test; rc=$?": "`rc=$?` always succeeds",
    "make test; > log": "`> log` always succeeds",
    "cd sub; make test; cd ..": "`cd ..` always succeeds",
    "make test || true": "`|| true` hides the failure of `make test`",
    "make test || :": "`|| :` hides the failure of `make test`",
    "make test || echo failed": "`|| echo failed` hides the failure of `make test`",
    "make test || exit 0": "`|| exit 0` hides the failure of `make test`",
    "make test && echo ok || echo failed": "`|| echo failed` hides",
    "make lint && make test || true": "`|| true` hides the failure of `make lint && make test`",
    "make test || { echo failed; }": "hides the failure of `make test`",
    "(make test || true)": "`|| true` hides",
    "set -e; make test || true": "`|| true` hides",
    "set -e; set +e; make test; echo done": "`echo done` always succeeds",
    "make test &": "`make test` runs in the background",
    "(make test &)": "`make test` runs in the background",
    "nohup make test &": "runs in the background",
    "nohup ./server >log 2>&1 &": "runs in the background",
    "make test & wait": "`wait` always succeeds",
    "setsid -f make test": "only starts a process in the background",
    "screen -dmS check make test": "only starts a process in the background",
    "pytest | tee log": "a pipe has the exit code of its last command: `tee log` succeeds",
    "pytest 2>&1 | tail -20": "`tail -20` succeeds whatever it reads",
    "pytest | grep -v x | cat": "`cat` succeeds whatever it reads",
    "pytest | head -5": "`head -5` succeeds",
    "pytest | sort": "`sort` succeeds",
    "pytest | less": "`less` succeeds",
    "pytest | while read line; do echo $line; done": "`echo $line` always succeeds",
    "if make test; then echo ok; fi": "an `if` without `else` succeeds",
    "if make test; then echo ok; else echo failed; fi": "each branch of the `if` succeeds",
    "if a; then echo 1; elif b; then echo 2; fi": "each branch of the `if` succeeds",
    "for t in *.sh; do bash $t || true; done": "`|| true` hides the failure of `bash $t`",
    "for t in *.sh; do bash $t; echo $t; done": "`echo $t` always succeeds",
    "until make test; do sleep 1; done": "`sleep 1` always succeeds",
    "case $CI in true) echo ci;; *) true;; esac": "always succeeds",
    "! make test": "`! make test` succeeds when the check fails",
    "sh -c 'make test || true'": "`|| true` hides",
    "bash -c 'make test; echo done'": "`echo done` always succeeds",
    'timeout 60 bash -lc "make test; true"': "`true` always succeeds",
    "env CI=1 sh -c 'make test | tee log'": "`tee log` succeeds",
    "run() { make test; echo done; }; run": "`echo done` always succeeds",
    "run() { make test; }": "`run` is only defined",
    "out=$(make test); echo $out": "`echo $out` always succeeds",
    "export OUT=$(make test)": "always succeeds",
    "make -i test": "`make -i test` ignores failures",
    "make --ignore-errors test": "ignores failures",
    "ruff check --exit-zero .": "`ruff check --exit-zero .` ignores failures",
    "time make test || true": "`|| true` hides",
    "# pytest": "it runs nothing",
    "trap 'exit 0' EXIT; make test": "`trap 'exit 0' EXIT` replaces its exit code",
    "eval 'make test; true'": "`true` always succeeds",
    ". venv/bin/activate; pytest; deactivate": "`deactivate` always succeeds",
    "./server & pytest; kill $!": "`kill $!` always succeeds",
}


NEEDS_MORE = (
    "until",
    "activate",
    "setsid",
    "screen",
    "server",
    "-i ",
    "--ignore",
    "--exit-zero",
    "less",
)
"""Words of commands that do not work with a `make` that only fails."""

_ATOMS = st.sampled_from(["check", "true", "echo ok"])
_SCRIPTS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" && ", " || ", " | ", "; "]), inner).map("".join),
        inner.map(lambda one: f"( {one} )"),
        inner.map(lambda one: f"{{ {one}; }}"),
        inner.map(lambda one: f"{{ {one} & }}"),
        inner.map(lambda one: f"set -e; {one}"),
        inner.map(lambda one: f"set -o pipefail; {one}"),
        inner.map(lambda one: f"bash -c '{one}'" if "'" not in one else one),
        inner.map(lambda one: f"{{ {one}; }} || exit 1"),
        st.tuples(inner, inner).map(lambda two: f"if {two[0]}; then {two[1]}; fi"),
        st.tuples(inner, inner, inner).map(
            lambda three: f"if {three[0]}; then {three[1]}; else {three[2]}; fi"
        ),
        inner.map(lambda one: f"for i in 1 2; do {one}; done"),
    ),
    max_leaves=4,
)


@pytest.mark.parametrize("command", CAN_FAIL)
def test_can_fail(command: str) -> None:
    assert None is why_it_cannot_fail(command)


@pytest.mark.parametrize(("command", "reason"), CANNOT_FAIL.items())
def test_cannot_fail(command: str, reason: str) -> None:
    assert reason in (why_it_cannot_fail(command) or "")


@pytest.mark.parametrize("command", ["", "  ", "make 'test", "coproc make", "x" * 100_000])
def test_what_is_not_parsed_may_fail(command: str) -> None:
    assert None is why_it_cannot_fail(command)


def test_the_shell_agrees(tmp_path: Path) -> None:
    """Commands that cannot fail succeed where every check fails."""
    failing = tmp_path / "bin" / "make"
    failing.parent.mkdir()
    (tmp_path / "sub").mkdir()
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    commands = [one for one in CANNOT_FAIL if not any(word in one for word in NEEDS_MORE)]
    codes = {one: _exit_code(one, tmp_path) for one in commands}
    assert dict.fromkeys(commands, 0) == codes


@given(_SCRIPTS)
@settings(max_examples=60, deadline=None)
def test_agrees_with_bash(script: str) -> None:
    """What cannot fail succeeds for every outcome of its checks, and other scripts may fail."""
    parts = script.split("check")
    checks = len(parts) - 1
    named = "".join(f"{part}check {index}" for index, part in enumerate(parts[:-1])) + parts[-1]
    outcomes = subprocess.run(
        ["bash", "-c", _EVERY_OUTCOME, "bash", named, str(2**checks)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    ).stdout.split()
    outcomes = ["0" if code == "141" else code for code in outcomes]  # nobody read from a pipe
    assert len(outcomes) == 2**checks
    why = why_it_cannot_fail(script)
    if why is not None or not re.search("exit|if|set", script):  # which may be unreachable
        assert ({"0"} == set(outcomes)) == (why is not None)


_EVERY_OUTCOME = """
check() { return $((outcome >> $1 & 1)); }
export -f check
for ((outcome = 0; outcome < $2; outcome++)); do
  export outcome
  bash -c "$1" >/dev/null 2>&1
  echo $?
done
"""


def _exit_code(command: str, folder: Path) -> int:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "CI": "true"},
        capture_output=True,
        timeout=LIMIT,
    ).returncode
