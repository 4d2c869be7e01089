"""Variables that load code or start a program are denied however they are set."""

from __future__ import annotations

import pytest

from cuggino.guard.commands.variables import assignment_reason
from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy
from tests.guard.commands.listed import allowed, denied

OF_BASH = words(
    "BASH_ENV ENV PROMPT_COMMAND PS0 PS1 PS2 PS4 SHELLOPTS BASHOPTS BASH_LOADABLES_PATH CDPATH "
    "GLOBIGNORE EXECIGNORE POSIXLY_CORRECT BASH_COMPAT BASH_XTRACEFD INPUTRC BASH_CMDS "
    "BASH_ALIASES GCONV_PATH GLIBC_TUNABLES BASH_ARGV0 TERMINFO TERMCAP LOCPATH LD_PRELOAD "
    "LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES BASH_FUNC_x CUGGINO_PLAN_FILE"
)
LOADERS = words(
    "PATH HOME SHELL XDG_CONFIG_HOME PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONUSERBASE "
    "PYTHONEXECUTABLE PYTHONBREAKPOINT PYTHONPLATLIBDIR PYTHONINSPECT PYTHONPYCACHEPREFIX "
    "PYTEST_PLUGINS PERL5OPT PERL5LIB PERLLIB PERL5DB RUBYOPT RUBYLIB NODE_PATH "
    "NODE_REPL_EXTERNAL_MODULE NODE_EXTRA_CA_CERTS JAVA_TOOL_OPTIONS _JAVA_OPTIONS "
    "JDK_JAVA_OPTIONS CLASSPATH LESSOPEN LESSCLOSE LESSEDIT BROWSER SSH_ASKPASS SUDO_ASKPASS "
    "RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTDOC CARGO_HOME RUSTUP_HOME GOROOT GOTOOLDIR "
    "GOENV GOCACHEPROG PHPRC PHP_INI_SCAN_DIR COMPOSER_HOME TAR_OPTIONS GREP_OPTIONS RSYNC_RSH "
    "CVS_RSH FCEDIT WGETRC CURL_HOME MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKEFILES HISTFILE HISTCMD "
    "PIP_PYTHON PIP_TARGET PIP_PREFIX PIP_ROOT PIP_USER PIP_CONFIG_FILE UV_CONFIG_FILE UV_PYTHON "
    "BUN_CONFIG DENO_DIR NODE_CHANNEL_FD ELECTRON_RUN_AS_NODE PROMPT_DIRTRIM FPATH ZDOTDIR "
    "DEBUGINFOD_URLS HOSTALIASES CARGO_TARGET_X_RUNNER CARGO_TARGET_X_LINKER CARGO_BUILD_RUSTC "
    "CARGO_BUILD_RUSTC_WRAPPER CARGO_ENCODED_RUSTFLAGS npm_config_script_shell NPM_CONFIG_SHELL "
    "npm_config_git npm_config_prefix npm_config_userconfig npm_config_globalconfig "
    "npm_config_node_options npm_config_init_module npm_config_viewer npm_config_editor "
    "npm_config_browser npm_config_node_gyp npm_config_python npm_config_onload_script "
    "pnpm_config_script_shell EDITOR VISUAL PAGER MANPAGER GIT_EDITOR GIT_SEQUENCE_EDITOR "
    "GIT_PAGER CC CXX AR LD CPP LINKER NODE_OPTIONS GOFLAGS RUSTFLAGS RUSTDOCFLAGS CGO_CFLAGS "
    "CGO_LDFLAGS GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_DIR "
    "GIT_WORK_TREE GIT_INDEX_FILE GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG GIT_CONFIG_COUNT "
    "GIT_CONFIG_KEY_0 GIT_CONFIG_PARAMETERS GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_ASKPASS "
    "GIT_TRACE GIT_TRACE2_EVENT GIT_CURL_VERBOSE GIT_ALLOW_PROTOCOL GIT_OBJECT_DIRECTORY "
    "GIT_ALTERNATE_OBJECT_DIRECTORIES IFS"
)
UNLOADED = (
    "GIT_EDITOR=true",
    "GIT_SEQUENCE_EDITOR=:",
    "PAGER=cat",
    "GIT_PAGER=",
    "GIT_AUTHOR_NAME=x",
    "GIT_COMMITTER_DATE=x",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_ASKPASS=true",
    "GIT_TRACE=1",
    "CC=clang-15",
    "CXX=g++",
    "NODE_OPTIONS=--max-old-space-size=4096",
    "GOFLAGS=-mod=mod",
    "PYTHONWARNINGS=error",
    "PYTHONPATHS=x",
    "LDX=1",
)


def test_unknown_values_are_denied() -> None:
    """Under the allowlist, no such variable may get a value that is not known."""
    policy = Policy("/project")
    names = (*OF_BASH, *LOADERS)
    assert [] == [name for name in names if not assignment_reason(name, None, policy)]


@pytest.mark.real_agent
def test_setting_before_a_program_is_denied(project: str) -> None:
    """Literal values are denied too, also with `env` or `export`."""
    names = [name for name in LOADERS if name != "IFS"]
    forms = [f"{name}=src/x/exec ls" for name in names if name != "CPP"]
    forms += [f"export {name}=$(cat x)" for name in names]
    forms += [f'env {name}="$x" ls' for name in names]
    assert [] == allowed(forms, Policy(project))


def test_bash_variables_are_denied_under_the_allowlist(project: str) -> None:
    """They would change the meaning of the checked words."""
    assert [] == allowed((f"{name}=x ls" for name in OF_BASH), Policy(project))


def test_harmless_values_are_allowed(project: str) -> None:
    """A value that starts nothing may be set before an allowed program."""
    assert [] == denied((f"{setting} ls" for setting in UNLOADED), Policy(project))
