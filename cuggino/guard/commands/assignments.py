"""Variables that load code, redirect the look-up of names or start other programs (AUT-218)."""

from __future__ import annotations

import re

from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy
from cuggino.guard.profiles import is_extended

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

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
    if not NAME.fullmatch(name):
        return f"'{name}' is no name of a variable"
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
