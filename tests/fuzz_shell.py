"""Compare the command parser with bash itself on random scripts.

    python -m tests.fuzz_shell --count 20000 --seed 1

bash runs every snippet that the parser accepts, twice, with a PATH that leads nowhere. Every
command word is invented, so nothing is executed; bash's `command_not_found_handle` records the
words it would have run. A recorded command that is missing in the tree with its arguments is a
*miss*: a guard that checks the tree would not have seen it. So is a file created by a redirection
that is not a target in the tree. Any miss makes the exit code 1.

bash runs as `nobody` if possible, with network and process namespaces of `unshare` if available,
with limits on time, processes and file sizes, in a temporary folder.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cuggino.guard.shell.parser import parse
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.shell.tree import Command, Redirect, Refused, Script, Word
from tests.fuzz_shell_grammar import Snippets

_BATCH = 200
_ORACLE = r"""
readonly LOG=$1 PLACE=$PWD PATH=/nonexistent
ulimit -c 0; ulimit -f 1024; ulimit -u 4096
command_not_found_handle() {
    local IFS=$'\037' number=${1//[^0-9]/}
    local line="$ID $*"  # one line is written at once, even by several processes
    line=${line//$'\n'/$'\035'}
    printf '%s\n' "${line/ /$'\037'}" >> "$LOG"
    return $(( (10#${number:-0} + MODE) % 2 ))
}
FUNCNEST=20 x=a
while IFS= read -r -d '' ID && IFS= read -r -d '' SNIPPET; do
    for MODE in 0 1; do
        (
            cd "$PLACE/$ID"; ulimit -t 1; readonly ID MODE
            eval "$SNIPPET"; wait
        ) </dev/null >/dev/null 2>&1
    done
done
"""


class Found(NamedTuple):
    """The result of one round."""

    counts: Counter[str]
    misses: list[tuple[str, list[str]]]
    """Snippets with the words that bash would have run unseen."""


def isolation() -> list[str]:
    """Return the command prefix that isolates bash as far as this machine supports it."""
    unshare, drop = shutil.which("unshare"), shutil.which("setpriv")
    nobody = [drop or "", "--reuid=65534", "--regid=65534", "--clear-groups"]
    candidates: list[list[str]] = []
    if unshare and os.geteuid() == 0 and drop:
        candidates.append([unshare, "-pn", "--fork", "--kill-child", *nobody])
    if drop and os.geteuid() == 0:
        candidates.append(nobody)
    if unshare and os.geteuid() != 0:
        candidates.append([unshare, "-Upn", "--fork", "--kill-child"])
    for command in candidates:
        probe = [*command, "test", "-x", tempfile.gettempdir()]
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return command
    return []


def bash_version(bash: str) -> int:
    """Return the major version of bash."""
    printed = subprocess.run(
        [bash, "-c", "echo $BASH_VERSINFO"], capture_output=True, text=True, check=False
    ).stdout
    return int(printed) if printed.strip().isdigit() else 0


class Run(NamedTuple):
    """The effects of one snippet in bash."""

    commands: list[list[str]]
    """The words of each command that it would have run."""
    files: list[str]
    """The names of the files that it created."""


def runs(snippets: Sequence[str], *, bash: str, wrapper: Sequence[str]) -> list[Run]:
    """Run each snippet in a separate folder and return the results."""
    with tempfile.TemporaryDirectory() as folder:
        place, log = Path(folder, "place"), Path(folder, "log")
        Path(folder).chmod(0o755)
        place.mkdir()
        log.touch()
        log.chmod(0o666)
        for number in range(len(snippets)):
            (place / str(number)).mkdir()
            (place / str(number)).chmod(0o777)
        data = b"".join(f"{index}\0{snippet}\0".encode() for index, snippet in enumerate(snippets))
        process = subprocess.Popen(
            [*wrapper, bash, "--norc", "-c", _ORACLE, "bash", str(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=place,
            env={},
            start_new_session=True,
        )
        try:
            process.communicate(data, timeout=60 + len(snippets))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        ran = [
            Run([], [path.name for path in (place / str(number)).iterdir()])
            for number in range(len(snippets))
        ]
        for record in log.read_bytes().decode(errors="replace").split("\n")[:-1]:
            index, *words = record.replace("\x1d", "\n").split("\x1f")
            ran[int(index)].commands.append(words)
    return ran


def parts(tree: Any) -> Iterator[Command | Redirect]:
    """Yield every command and redirection of a tree, at any depth."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, Command | Redirect):
            yield node
        if isinstance(node, tuple):
            left += node


def is_seen(ran: Sequence[str], script: Script) -> bool:
    """Return True if one of the tree's commands can be the command that bash ran."""
    text = "\x1f".join(ran) + "\x1f"
    for command in parts(script):
        if isinstance(command, Redirect):
            continue
        words = command.words
        if command.kind == "call" and words and words[0].value == "command":
            words = words[2:] if words[1:] and words[1].value == "--" else words[1:]
        if command.kind == "call" and re.fullmatch("".join(map(_pattern, words)), text, re.DOTALL):
            return True
    return False


def is_target(name: str, script: Script) -> bool:
    """Return True if one of the tree's redirections can have created the file."""
    targets = [part.target for part in parts(script) if isinstance(part, Redirect)]
    return any(re.fullmatch(_pattern(target), name + "\x1f", re.DOTALL) for target in targets)


def _pattern(word: Word) -> str:
    """Return a pattern for a word of the tree; an unknown word matches any words or none."""
    if word.value is None or word.has_glob:
        return "(?:.*\x1f)?"
    return "[^\x1f]*\x1f" if word.has_tilde else re.escape(word.value) + "\x1f"


def compare(snippets: Sequence[str], *, shfmt: str, bash: str, wrapper: Sequence[str]) -> Found:
    """Parse the snippets, run the accepted ones with bash, and collect misses."""
    counts: Counter[str] = Counter(snippets=len(snippets))
    accepted: list[tuple[str, Script]] = []
    misses: list[tuple[str, list[str]]] = []
    for snippet in snippets:
        try:
            accepted.append((snippet, parse(snippet, shfmt=shfmt)))
        except Refused as refusal:
            counts["refused"] += 1
            if refusal.__cause__ is not None:
                counts["crashed"] += 1
                misses.append((snippet, [repr(refusal.__cause__)]))
    counts["accepted"] = len(accepted)
    ran = runs([snippet for snippet, _ in accepted], bash=bash, wrapper=wrapper)
    for (snippet, script), run in zip(accepted, ran, strict=True):
        counts["commands run"] += len(run.commands)
        counts["files made"] += len(run.files)
        counts["snippets that ran something"] += bool(run.commands)
        unseen = [" ".join(words) for words in run.commands if not is_seen(words, script)]
        unseen += [f"> {name}" for name in run.files if not is_target(name, script)]
        if unseen:
            misses.append((snippet, sorted(set(unseen))))
    counts["misses"] = len(misses) - counts["crashed"]
    return Found(counts, misses)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; print counts and misses."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_shell", description=__doc__)
    parser.add_argument("--count", type=int, default=20000, help="how many snippets")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same snippets")
    parser.add_argument("--bash", default=shutil.which("bash") or "bash", help="a bash from 5 on")
    options = parser.parse_args(arguments)
    if bash_version(options.bash) < 5:
        print(f"{options.bash} is no bash from version 5 on", file=sys.stderr)
        return 2
    wrapper, shfmt, made = isolation(), find_shfmt(), Snippets(options.seed)
    print("isolation:", " ".join(wrapper) or "none but limits and an empty PATH")
    total: Counter[str] = Counter()
    for start in range(0, options.count, _BATCH):
        snippets = [made.snippet() for _ in range(min(_BATCH, options.count - start))]
        found = compare(snippets, shfmt=shfmt, bash=options.bash, wrapper=wrapper)
        total += found.counts
        for snippet, unseen in found.misses:
            print(f"MISS {unseen}\n{snippet!r}", flush=True)
    for name, count in total.items():
        print(f"{name}: {count}")
    return 1 if total["misses"] or total["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
