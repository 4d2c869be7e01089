"""Variables that scripts set, also by arithmetic: those that load code must not be (AUT-218).

Arithmetic assigns in many ways: `((PATH=1))`, `let "PATH=1"`, `a[PATH=1]=2`, `${PATH:=x}`. The raw
text is searched, even within quotes. Text that only mentions such an assignment is rare; it is
denied too, and has to be reworded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cuggino.guard.commands.base import Site, Trail, first
from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy
from cuggino.guard.profiles import is_extended
from cuggino.guard.shell.tree import Assignment, Command, Word

HIDES_COMMAND = re.compile(r"\[[^\]]*(?:\$[({]|`)")
"""An index in which arithmetic would run a command: `a[$(x)]`."""

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_SHELL = frozenset(
    words(
        "BASH_ENV ENV PROMPT_COMMAND PS0 PS1 PS2 PS4 SHELLOPTS BASHOPTS BASH_LOADABLES_PATH"
        " CDPATH GLOBIGNORE EXECIGNORE POSIXLY_CORRECT BASH_COMPAT BASH_XTRACEFD INPUTRC"
        " BASH_CMDS BASH_ALIASES GCONV_PATH GLIBC_TUNABLES BASH_ARGV0 TERMINFO TERMCAP LOCPATH"
    )
)
"""Variables that change how bash, or every program, interprets the words that were checked."""

_SHELL_START = ("LD_", "DYLD_", "BASH_FUNC_")

_LOADERS = frozenset(
    words(
        "PATH HOME SHELL XDG_CONFIG_HOME PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONUSERBASE"
        " PYTHONEXECUTABLE PYTHONBREAKPOINT PYTHONPLATLIBDIR PYTHONINSPECT PYTHONPYCACHEPREFIX"
        " PYTEST_PLUGINS PERL5OPT PERL5LIB PERLLIB PERL5DB RUBYOPT RUBYLIB NODE_PATH"
        " NODE_REPL_EXTERNAL_MODULE NODE_EXTRA_CA_CERTS JAVA_TOOL_OPTIONS _JAVA_OPTIONS"
        " JDK_JAVA_OPTIONS CLASSPATH LESSOPEN LESSCLOSE LESSEDIT BROWSER SSH_ASKPASS"
        " SUDO_ASKPASS RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTDOC CARGO_HOME"
        " RUSTUP_HOME GOROOT GOTOOLDIR GOENV GOCACHEPROG PHPRC PHP_INI_SCAN_DIR COMPOSER_HOME"
        " TAR_OPTIONS GREP_OPTIONS RSYNC_RSH CVS_RSH FCEDIT WGETRC CURL_HOME MAKEFLAGS MFLAGS"
        " GNUMAKEFLAGS MAKEFILES HISTFILE HISTCMD PIP_PYTHON PIP_TARGET PIP_PREFIX PIP_ROOT"
        " PIP_USER PIP_CONFIG_FILE UV_CONFIG_FILE UV_PYTHON BUN_CONFIG DENO_DIR"
        " NODE_CHANNEL_FD ELECTRON_RUN_AS_NODE PROMPT_DIRTRIM FPATH ZDOTDIR DEBUGINFOD_URLS"
        " HOSTALIASES"
    )
)
_EVERYDAY = frozenset(
    words(
        "PATH HOME SHELL PYTHONPATH PYTHONWARNINGS PYTHONBREAKPOINT PYTHONPYCACHEPREFIX NODE_PATH"
        " NODE_OPTIONS RUBYLIB CLASSPATH CARGO_HOME GOFLAGS RUSTFLAGS MAKEFLAGS EDITOR VISUAL PAGER"
        " BROWSER DENO_DIR IFS"
    )
)
"""Loaders that may be set with the profile `extended`, whose tools also load project code."""
_ENDS_IN_PROGRAM = re.compile(
    r"(CARGO_TARGET_\w+_(RUNNER|LINKER)|CARGO_BUILD_\w*RUSTC\w*|CARGO_\w+_RUSTFLAGS"
    r"|npm_config_(script_shell|shell|git|prefix|userconfig|globalconfig|node_options|init_module"
    r"|viewer|editor|browser|node_gyp|python|onload_script))"
)
_EDITORS = frozenset(words("EDITOR VISUAL PAGER MANPAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER"))
_IDLE = frozenset(("true", ":", "cat", ""))
_GIT_FINE = re.compile(
    r"GIT_((AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|TERMINAL_PROMPT|MERGE_AUTOEDIT|OPTIONAL_LOCKS"
    r"|LFS_SKIP_SMUDGE|CONFIG_NOSYSTEM|ADVICE|REFLOG_ACTION|PAGER_IN_USE|LITERAL_PATHSPECS"
    r"|NO_LAZY_FETCH|ATTR_NOSYSTEM|DISCOVERY_ACROSS_FILESYSTEM|CEILING_DIRECTORIES"
    r"|FLUSH|DEFAULT_HASH|COMMIT|BRANCH|SHA\w*|REF|REV|TAG|HASH|URL|VERSION|ROOT|USER)"
)
_GIT_VALUES = {
    "GIT_CONFIG_GLOBAL": re.compile(r"/dev/null"),
    "GIT_CONFIG_SYSTEM": re.compile(r"/dev/null"),
    "GIT_ASKPASS": re.compile(r"true|:|/bin/true|"),
}
_GIT_TRACE = re.compile(r"0|1|2|true|false|")
_NODE_OPTION = re.compile(
    r"--(max-old-space-size|max-semi-space-size|stack-size|stack-trace-limit|unhandled-rejections"
    r"|dns-result-order|max-http-header-size|heapsnapshot-signal)=\w+"
    r"|--(no-)?(experimental-[a-z-]+|warnings|deprecation|trace-[a-z-]+|throw-deprecation"
    r"|enable-source-maps|openssl-legacy-provider|preserve-symlinks|expose-gc|expose_gc"
    r"|abort-on-uncaught-exception)"
)
_IFS_PLAIN = frozenset(("", "\n", "\t", " ", " \t\n", ",", ":", ";", "|", "\n\t", "\t\n", "\0"))
_COMPILERS = frozenset(words("CC CXX AR LD CPP LINKER"))
_COMPILER = re.compile(r"(gcc|clang|cc|g\+\+|clang\+\+|c\+\+|ar|ld|lld|mold|ccache gcc)(-\d+)?")


def assignment_reason(
    name: str, value: str | None, policy: Policy, *, appends: bool = False
) -> str:
    """Return why the assignment is denied; `value` is None if it is unknown."""
    if not _NAME.fullmatch(name):
        return f"'{name}' is not a variable name"
    if name in _SHELL or name.startswith(_SHELL_START):
        return _loads(name)
    if name.startswith("CUGGINO_"):
        return f"{name} belongs to the run: use a variable of another name"
    if name in _EVERYDAY and is_extended(policy):
        return ""
    if name == "IFS":
        if value is None or value not in _IFS_PLAIN:
            return "IFS changes how every word is split: set it only for read, as 'IFS= read -r'"
        return ""
    if _is_loader(name, value, appends=appends):
        return _loads(name)
    return ""


def _is_loader(name: str, value: str | None, *, appends: bool) -> bool:
    known = None if appends else value
    if name in _LOADERS or _ENDS_IN_PROGRAM.fullmatch(name) or _is_npm(name):
        return True
    if name in _EDITORS:
        return known not in _IDLE
    if name in _COMPILERS:
        return known is None or not _COMPILER.fullmatch(known)
    if name == "NODE_OPTIONS":
        return known is None or not all(map(_NODE_OPTION.fullmatch, known.split()))
    if name in ("GOFLAGS", "RUSTFLAGS", "RUSTDOCFLAGS", "CGO_CFLAGS", "CGO_LDFLAGS"):
        return known is None or any(
            w in known for w in ("exec", "linker", "tool", "plugin", "wrap")
        )
    if name == "PYTHONWARNINGS":
        return known is None or "." in known
    if name.startswith("GIT_"):
        return not _git_is_fine(name, known)
    return False


def _is_npm(name: str) -> bool:
    return bool(_ENDS_IN_PROGRAM.fullmatch(name.lower().replace("pnpm_", "npm_")))


def _git_is_fine(name: str, value: str | None) -> bool:
    if _GIT_FINE.fullmatch(name):
        return True
    if name.startswith(("GIT_TRACE", "GIT_CURL_VERBOSE")):
        return value is not None and bool(_GIT_TRACE.fullmatch(value))
    pattern = _GIT_VALUES.get(name)
    return pattern is not None and value is not None and bool(pattern.fullmatch(value))


def _loads(name: str) -> str:
    hint = {
        "PATH": "call programs by their name, or as node_modules/.bin/NAME and .venv/bin/NAME",
        "PYTHONPATH": "run the module with 'python -m', or install the project with pip",
        "IFS": "set it only for read",
    }.get(name, "run the command without it")
    return f"{name} must not be set: it decides which code programs load or start; {hint}"


# Arithmetic ----------------------------------------------------------------------

_OPENINGS = re.compile(
    r"\(\(|\$\[|(?<=\w)\[|\$\{[#!]?[\w@*]+(?:\[[^\]]*\])?:(?![-=?+])|\[\[(?=\s)|\blet\s"
    r"|\b(?:declare|typeset|local|readonly|export)\s+(?:[-+]\w+\s+)*[-+]\w*i"
)
_CLOSES = {"(": "()", "[": "[]", "{": "{}"}
_OPERATOR = r"(?:[-+*/%&|^]|<<|>>)?=(?![=>~])"
_ASSIGNED = re.compile(
    rf"\b([A-Za-z_]\w*)(?:\[[^\]]*\])?\s*(?:{_OPERATOR}|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)",
    re.ASCII,
)
_OPEN = re.compile(rf"\$(?:\w+|\{{[^}}]*\}}|\([^()]*\))\w*\s*{_OPERATOR}", re.ASCII)
_COMPARES = re.compile(r"\s-(?:eq|ne|lt|le|gt|ge|v|R)\s")
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*)(?:\[[^\]]*\])?:?=", re.ASCII)
_QUOTES = re.compile(r"['\"\\]")
_LONGEST = 4096


def calculated(text: str, policy: Policy) -> str:
    """Return why arithmetic in the text is denied: it assigns a protected variable."""
    for match in _DEFAULT.finditer(text):
        if reason := assignment_reason(match[1], None, policy):
            return reason
    for opening, inside in _regions(text):
        parts = [inside]
        if opening == "[[":
            parts = [part for part in re.split(r"&&|\|\|", inside) if _COMPARES.search(part)]
        for part in parts:
            if reason := names_reason(part, policy):
                return reason
        if opening in ("((", "$[") and _OPEN.search(inside):
            return f"Cannot tell which variable '{inside.strip()}' sets: write its name literally"
    return ""


def calculates(text: str) -> bool:
    """Return whether there is arithmetic, which also evaluates the values of variables."""
    return any(
        opening != "[[" or _COMPARES.search(inside) is not None
        for opening, inside in _regions(text)
    )


def names_reason(text: str, policy: Policy) -> str:
    """Return why evaluating the text is denied: it assigns a protected variable."""
    found: Iterable[str] = dict.fromkeys(m[1] or m[2] for m in _ASSIGNED.finditer(text))
    return next(filter(None, (assignment_reason(name, None, policy) for name in found)), "")


def kept_reason(words: Iterable[Word], site: Site) -> str:
    """Return why a script with arithmetic may not store the words: evaluated, they would assign."""
    if not site.trail.calculates:
        return ""
    return first(names_reason(word.value, site.policy) for word in words if word.value)


def _regions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the opening and the text of each arithmetic expression."""
    text = text.replace("\\\n", "")  # a line that continues on the next one
    yield from _written(text)
    if (bare := _QUOTES.sub("", text)) != text:
        yield from _written(bare)  # `l''et` is `let`


def _written(text: str) -> Iterator[tuple[str, str]]:
    for match in _OPENINGS.finditer(text):
        opening = match[0]
        start = match.end()
        if opening[-1] in "([" or opening.startswith("${"):
            bracket = "{" if opening.startswith("${") else opening[-1]
            depth = 2 if opening in ("((", "[[") else 1
            yield opening, text[start : _close(text, start, _CLOSES[bracket], depth)]
        else:
            end = re.compile(r"[;\n|]|&(?!=)").search(text, start)
            yield "let", text[start : end.start() if end else len(text)]


def _close(text: str, at: int, pair: str, depth: int) -> int:
    for index in range(at, min(len(text), at + _LONGEST)):
        depth += (text[index] == pair[0]) - (text[index] == pair[1])
        if not depth:
            return index
    return min(len(text), at + _LONGEST)


# Commands ----------------------------------------------------------------------

_READERS = ("read", "mapfile", "readarray")
_KEEPERS = frozenset(("set", "read", "printf", "declare", "let"))


def prefix_reason(node: Command, policy: Policy, trail: Trail) -> str:
    """Return why a command with these assignments and words is denied."""
    name = node.words[0].value if node.words else None
    for assignment in node.assignments:
        if assignment.name == "IFS" and name in _READERS:
            continue
        loosen(assignment.name, assignment.values, trail)
        if reason := _assigned(assignment, policy):
            return reason
    if name == "let":
        told = " ".join(word.value or "" for word in node.words[1:])
        if reason := names_reason(told, policy):
            return reason
    if name in (*_READERS, "printf"):
        trail.loose.update(word.value or "" for word in node.words[1:])
    if name in _KEEPERS and (reason := hidden_reason(node.words[1:])):
        return reason
    return _blank(node)


def _assigned(assignment: Assignment, policy: Policy) -> str:
    value = _value(assignment)
    if reason := assignment_reason(assignment.name, value, policy, appends=assignment.appends):
        return reason
    return next(
        (
            f"The text of {assignment.name} would run a command in an arithmetic expression: write"
            " the command itself"
            for word in assignment.values
            if word.value is not None and HIDES_COMMAND.search(word.value)
        ),
        "",
    )


def _value(assignment: Assignment) -> str | None:
    """Return the assigned text, or None if it is unknown or a list."""
    if not assignment.values:
        return ""
    if len(assignment.values) > 1:
        return None
    return assignment.values[0].value


def loosen(name: str, values: tuple[Word, ...], trail: Trail) -> None:
    """Remember a variable whose value may look like an option."""
    for word in values:
        start = word.value if word.value is not None else word.prefix
        is_git = word.text.strip('"').startswith("$(git ")
        if start.startswith("-") or (word.value is None and not start and not is_git):
            trail.loose.add(name)


def hidden_reason(words: tuple[Word, ...]) -> str:
    """Return why later arithmetic could run a stored text."""
    for word in words:
        if word.value is not None and HIDES_COMMAND.search(word.value):
            return (
                f"'{word.text}' would run a command in an arithmetic expression: write it"
                " differently"
            )
    return ""


def _blank(node: Command) -> str:
    """Return why a word with a blank that bash does not split at is denied."""
    for word in node.words:
        odd = (char for char in word.text if char.isspace() and char not in " \t\n")
        if not word.is_quoted and any(odd):
            return (
                f"'{word.text}' contains a space that bash does not treat as one: use plain spaces"
            )
    return ""


def arithmetic_reason(words: tuple[Word, ...]) -> str:
    """Return why `(( ))` or `let` would run a command in quoted text."""
    return first(
        f"'{word.text}' would run a command when it is evaluated: write it differently"
        for word in words
        if word.value is not None and re.search(r"\$\(|`", word.value)
    )
