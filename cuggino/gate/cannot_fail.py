"""Check commands whose exit code is always 0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, assert_never

from cuggino.errors import ConfigError
from cuggino.guard import find_shfmt
from cuggino.guard.shell import (
    Binary,
    Case,
    Command,
    Function,
    Group,
    If,
    Loop,
    Node,
    Refused,
    Script,
    Statement,
    Timed,
    Word,
    parse,
)


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


_SHELLS = _set("sh bash dash ksh zsh")
_WRAPPERS = _set(
    "builtin command env exec ionice nice nohup setsid stdbuf sudo time timeout xvfb-run"
)
_ALWAYS_SUCCEED = _set(
    ": break clear continue date deactivate disown echo export kill popd printf pwd set sleep times"
    " touch trap true umask unset"
)
"""Commands that succeed, or whose failure says nothing about what ran before them."""

_PASS_ON = _set(
    "awk cat column cut fold gawk head less more nl paste rev sed sort tac tail tee tr ts uniq wc"
)
"""Programs that succeed at the end of a pipe, whatever they read."""

_RUNNERS = _set(
    "ant ava bazel bun bundle cargo cmake composer ctest deno dotnet eslint flake8 go gradle"
    " gradlew jest just make mocha mvn mypy ninja node nox npm npx php phpunit pnpm poetry pylint"
    " pyright pytest python python3 rake rspec ruff swift tox tsc uv vitest yarn"
)
"""Programs that run the checks of projects."""

_EXITS_WELL = re.compile(r"\bexit 0\W*\s(?:EXIT|0)\b")
"""The end of `trap 'exit 0' EXIT`."""

_Why: TypeAlias = str | None
"""Why the exit code is always 0; None if it may be another one."""


class _Shell(NamedTuple):
    """The state of a shell as far as exit codes depend on it."""

    shfmt: str
    errexit: bool = False
    pipefail: bool = False
    functions: Mapping[str, Statement] = MappingProxyType({})
    depth: int = 4
    """How many shells may be nested."""

    @property
    def ignoring(self) -> _Shell:
        """The shell where a failure does not end it, as on the left of `||`."""
        return self._replace(errexit=False)


def why_it_cannot_fail(command: str) -> str | None:
    """Return why a shell command always succeeds, as a clause; None if it may fail.

    Only its own words count, not what its programs do. What cannot be parsed may fail.
    """
    try:
        return _text(command, _Shell(find_shfmt())) if command.strip() else None
    except ConfigError:
        return None


def _text(command: str, shell: _Shell) -> _Why:
    if shell.depth == 0:
        return None
    try:
        script = parse(command, shfmt=shell.shfmt)
    except Refused:
        return None
    return _script(script, shell._replace(depth=shell.depth - 1))


def _script(script: Script, shell: _Shell) -> _Why:
    why: _Why = "it runs nothing"
    for statement in script:
        if _name(statement.node) == "trap" and _EXITS_WELL.search(statement.text):
            return f"`{statement.text}` replaces its exit code"
        if any(map(_fails_the_shell, _commands(statement))):
            return None
        shell = _after(statement, shell)
        why = _statement(statement, shell)
        if shell.errexit and why is None:
            return None
        if _name(statement.node) == "exit":
            break
    if why is not None and len(script) > 1 and isinstance(script[-1].node, Command):
        return f"its exit code is that of the last command: {why}"
    return why


def _statement(statement: Statement, shell: _Shell) -> _Why:
    node = statement.node
    if statement.is_background:
        return f"`{statement.text}` runs in the background, where its exit code is lost"
    if statement.is_negated:
        is_check = _name(node) in _RUNNERS
        return f"`{statement.text}` succeeds when the check fails" if is_check else None
    match node:
        case None:
            return f"`{statement.text}` always succeeds"
        case Command():
            return _command(node, shell)
        case Binary(operator="&&"):
            left = _statement(node.left, shell.ignoring)
            return None if left is None else _statement(node.right, shell)
        case Binary(operator="||"):
            return _either(node, shell)
        case Binary():
            return _pipe(node, shell)
        case Group():
            return _script(node.body, shell)
        case If():
            return _branches(node, shell)
        case Loop():
            return _script(node.body, shell)
        case Case():
            return _first_if_all(_script(branch, shell) for branch in node.branches)
        case Function():
            return f"`{node.name}` is only defined"
        case Timed():
            return None if node.body is None else _statement(node.body, shell)
        case _:
            assert_never(node)


def _either(node: Binary, shell: _Shell) -> _Why:
    left = _statement(node.left, shell.ignoring)
    if left is not None:
        return left
    if _statement(node.right, shell) is None:
        return None
    return f"`|| {node.right.text}` hides the failure of `{node.left.text}`"


def _pipe(node: Binary, shell: _Shell) -> _Why:
    last = _statement(node.right, shell)
    if last is None and _passes_on(node.right):
        last = f"`{node.right.text}` succeeds whatever it reads"
    if last is None or (shell.pipefail and _statement(node.left, shell.ignoring) is None):
        return None
    return f"a pipe has the exit code of its last command: {last}"


def _passes_on(statement: Statement) -> bool:
    """Return whether the end of a pipe succeeds on any input."""
    node = statement.node
    if statement.is_negated or _name(node) not in _PASS_ON:
        return False
    text = statement.text
    return not re.search(r"\bexit\b|q\d| -[bdfghik-nruz]*[cC]\b| --check\b", text)


def _branches(node: If, shell: _Shell) -> _Why:
    if _script(node.then, shell) is None:
        return None
    if not node.otherwise:
        return "an `if` without `else` succeeds when its condition fails"
    if _script(node.otherwise, shell) is None:
        return None
    return "each branch of the `if` succeeds"


def _first_if_all(reasons: Iterable[_Why]) -> _Why:
    """Return the first reason, or None if one of them is None."""
    found = [*reasons]
    return found[0] if found and None not in found else None


# Commands ------------------------------------------------------------------------------------


def _command(node: Command, shell: _Shell) -> _Why:
    always = f"`{node.text}` always succeeds"
    if node.kind == "declare":
        return always
    if node.kind != "call":
        return None
    if not node.words:
        scripts = [word for item in node.assignments for word in item.values if word.scripts]
        return None if scripts else always
    words = _unwrapped(node.words)
    name = _program(words)
    arguments = [word.value or "" for word in words[1:]]
    if name in shell.functions:
        functions = {key: body for key, body in shell.functions.items() if key != name}
        return _statement(shell.functions[name], shell._replace(functions=functions))
    if name in _SHELLS:
        return _nested(words[1:], shell)
    if name == "eval":
        return _text(" ".join(arguments), shell) if _is_plain(words[1:]) else None
    if name in _ALWAYS_SUCCEED or _is_certain(name, arguments):
        return always
    if "--exit-zero" in arguments or (name == "make" and any(map(_ignores_errors, arguments))):
        return f"`{node.text}` ignores failures"
    if _is_detached(_program(node.words), node.words[1:]):
        return f"`{node.text}` only starts a process in the background"
    return None


def _is_certain(name: str, arguments: Sequence[str]) -> bool:
    """Return whether the command succeeds with these arguments."""
    match name:
        case "exit" | "return":
            return arguments == ["0"]
        case "cd":
            return arguments in (["-"], [".."], ["../.."])
        case "rm":
            return any(re.fullmatch(r"-\w*f\w*|--force", word) for word in arguments)
        case "mkdir":
            return "-p" in arguments
        case "wait":
            return not arguments
        case _:
            return False


def _ignores_errors(argument: str) -> bool:
    return re.fullmatch(r"-[BdeknpqrsStw]*i[BdeiknpqrsStw]*|--ignore-errors", argument) is not None


def _is_detached(name: str, arguments: Iterable[Word]) -> bool:
    """Return whether a program starts another one and does not wait for it."""
    options = {word.value or "" for word in arguments}
    match name:
        case "daemonize":
            return True
        case "setsid":
            return not options.isdisjoint({"-f", "--fork"})
        case "screen":
            return any(option.startswith("-dm") for option in options)
        case "tmux":
            return "-d" in options
        case _:
            return False


def _nested(words: Sequence[Word], shell: _Shell) -> _Why:
    """Return why `sh -c TEXT` cannot fail."""
    options = _Shell(shell.shfmt, depth=shell.depth)
    for index, word in enumerate(words):
        if word.value is None or word.value[:1] not in ("-", "+"):
            if index == 0 or (words[index - 1].value or "")[-1:] != "o":
                return None  # a file
            continue
        options = _with_options(words[index : index + 2], options)
        if re.fullmatch(r"-\w*c", word.value):
            left = [other for other in words[index + 1 :] if other.value != "pipefail"]
            text = left[0].value if left else None
            return None if text is None else _text(text, options)
    return None


def _with_options(words: Sequence[Word], shell: _Shell) -> _Shell:
    """Return the shell with options such as `-e`, `+e` and `-euo pipefail`."""
    is_on = True
    for word in words:
        value = word.value or ""
        if value[:1] in ("-", "+"):
            is_on = value.startswith("-")
            if "e" in value[1:] and not value.startswith("--"):
                shell = shell._replace(errexit=is_on)
        elif value == "errexit":
            shell = shell._replace(errexit=is_on)
        elif value == "pipefail":
            shell = shell._replace(pipefail=is_on)
    return shell


def _after(statement: Statement, shell: _Shell) -> _Shell:
    """Return the shell with the options and functions that a statement sets."""
    for command in _commands(statement):
        if _program(command.words) == "set":
            shell = _with_options(command.words[1:], shell)
    if isinstance(statement.node, Function):
        functions = {**shell.functions, statement.node.name: statement.node.body}
        return shell._replace(functions=MappingProxyType(functions))
    return shell


def _fails_the_shell(command: Command) -> bool:
    """Return whether a command may end the shell with an error, or change how it ends."""
    if command.kind != "call" or not command.words:
        return False
    name = _program(command.words)
    arguments = [word.value or "" for word in command.words[1:]]
    match name:
        case "exit" | "return":
            return arguments != ["0"]
        case "exec":
            return bool(arguments)
        case "." | "source":
            return not re.search(r"(?:^|/)activate$|\.env$|/\.profile$", "".join(arguments[:1]))
        case "eval":
            return not _is_plain(command.words[1:])
        case "trap":
            return "ERR" in arguments or any("exit" in word for word in arguments)
        case "kill":
            return any(word.text in ("$$", '"$$"') for word in command.words)
        case _:
            return False


def _is_plain(words: Sequence[Word]) -> bool:
    """Return whether the text of an `eval` is written out, and cannot end the shell."""
    texts = [word.value for word in words]
    return all(texts) and not re.search(
        r"\b(?:exec|exit|return|set|trap)\b", " ".join(map(str, texts))
    )


def _commands(statement: Statement) -> Iterator[Command]:
    """Yield the commands that run in the shell itself, at any depth, also in functions."""
    left = [statement]
    while left:
        one = left.pop()
        if one.is_background:
            continue
        match one.node:
            case None | Group(is_subshell=True) | Binary(operator="|" | "|&"):
                pass
            case Command() as command:
                yield command
            case Binary() as binary:
                left += (binary.left, binary.right)
            case Group() as group:
                left += group.body
            case If() as choice:
                left += (*choice.condition, *choice.then, *choice.otherwise)
            case Loop() as loop:
                left += (*loop.condition, *loop.body)
            case Case() as case:
                left += (inner for branch in case.branches for inner in branch)
            case Function() as function:
                left.append(function.body)
            case Timed() as timed:
                left += () if timed.body is None else (timed.body,)
            case _ as never:
                assert_never(never)


def _unwrapped(words: Sequence[Word]) -> Sequence[Word]:
    """Return the command that `timeout 60`, `env A=b` and similar programs run."""
    while words and _program(words) in _WRAPPERS:
        rest = list(words[1:])
        while rest and re.fullmatch(r"-.*|\w+=.*|[\d.]+[smhd]?", rest[0].value or "-"):
            if rest[0].value in ("-v", "-V"):
                return words
            rest.pop(0)
        if not rest:
            return words
        words = rest
    return words


def _name(node: Node | None) -> str:
    """Return the name of the program that a simple command runs."""
    is_call = isinstance(node, Command) and node.kind == "call"
    return _program(_unwrapped(node.words)) if isinstance(node, Command) and is_call else ""


def _program(words: Sequence[Word]) -> str:
    return PurePosixPath(words[0].value or "").name if words else ""
