"""Programs that start or change others: wrappers, habits, and variables that load code."""

from __future__ import annotations

import pytest

from cuggino.guard.commands.variables import assignment_reason
from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy
from tests.guard.commands.listed import allowed, allowed_when_listed, denied

PUBLISHES = {
    "npm": "publish unpublish deprecate login logout adduser add-user token owner access dist-tag"
    " dist-tags team org profile hook star unstar set edit explore config c",
    "pnpm": "publish login logout config self-update env setup",
    "yarn": "publish login logout owner team tag config global",
    "bun": "publish upgrade",
    "deno": "publish upgrade",
    "uv": "publish self auth",
    "poetry": "publish config self",
    "pdm": "publish self config plugin",
    "hatch": "publish self",
    "flit": "publish",
    "gem": "push yank owner signin signout",
    "cargo": "publish login logout yank owner install uninstall",
    "composer": "global self-update selfupdate",
    "goreleaser": "release publish announce",
    "pipx": "install inject upgrade-all reinstall-all uninstall ensurepath",
    "rustup": "self run",
    "conda": "config init",
    "pip": "config",
    "pip3": "config",
}
REACHES = (
    *("yarn npm publish", "yarn npm login", "uv tool install x", "npm --script-shell x test"),
    *("npm --node-options x test", "npm --globalconfig x test", "npm --userconfig x test"),
    *("npm --init-module x init", "pip install --user x", "pip install --root src x"),
    *("pip --python x install y", "python -m pip config set a b", "python -m pip install --user x"),
    *("conda create -p /x", "conda create --prefix /x", "conda create --prefix=/x", "uv venv ../x"),
    *("virtualenv ../x", "python -m venv ../x", "python3 -m virtualenv ../x", "go env -w A=b"),
    *("go env -u A", "go test -exec id", "go build -toolexec id", "go vet -vettool=id"),
    *("go build -overlay x", "cargo --config x build", "cargo watch -s id", "cargo-watch -s id"),
    *("cargo watch --shell id", "deno run --allow-run x", 'sed "$x" a', 'env CC="gcc$x" ls'),
)
READS = (
    *("npm config get x", "npm config list", "npm c ls", "yarn config get x", "npm dist-tag ls"),
    *("goreleaser release --snapshot", "uv tool list", "npm install x", "npm i -D x"),
    "pip install x",
)
INSTALLS = words("install i add ci update up upgrade uninstall remove rm un link ln in r")
CHANGES = (
    *("open('.git/x', 'w')", "open('.git/x', mode='a')", "open('.git/x','rb+')"),
    *("dump(a, '.git/x')", "p('.git').write_text(a)", "rmtree('.git')", "os.remove('.git')"),
    *("os.unlink('.git/x')", "os.rename('.git', 'a')", "p('a').replace('.git')"),
    *("os.rmdir('.git')", "fs.rmSync('.git')", "fs.cpSync('a', '.git')", "copy('a', '.git')"),
    *("move('a', '.git')", "os.mkdir('.git/x')", "os.makedirs('.git/x')", "p('.git/x').touch()"),
    *("os.truncate('.git/x')", "symlink('.git', a)", "fs.linkSync('.git', a)", "os.chmod('.git')"),
    *("os.chown('.git')", "fs.append('.git/x')", "put_contents('.git/x')", "fopen('.git/x')"),
    *("fputs('.git/x')", "delete('.git/x')", "FileUtils.x('.git')", "File.new('.git/x')"),
    *("p('.g' + 'it/x').write_text(a)", "open('.cuggino/x', 'w')", "open('.claude/x', 'w')"),
    *("open('.mcp.json', 'w')", "open('.autonoe/x', 'w')", "open('.cuggino.json', 'w')"),
)
STARTS = (
    *("import subprocess", "os.system(a)", "os.popen(a)", "os.execv(a)", "os.spawnv(a)"),
    *("os . posix_spawn(a)", "pty.spawn(a)", "from os import system", "from os import path, popen"),
)
STARTS_JS = (
    *("require(`child_process`)", "execSync(a)", "spawnSync(a)", "execFileSync(a)"),
    *("new Deno.Command(a)", "Deno . run(a)", "Bun.spawn(a)", "Bun.spawnSync(a)", "Bun.$(a)"),
    *("import { $ } from x",),
)
STARTS_OTHER = (
    *("system(1)", "exec(1)", "shell_exec(1)", "passthru(1)", "popen(1)", "proc_open(1)"),
    *("spawn(1)", "pcntl_exec(1)", "fork(1)", "Kernel.x", "IO.x", "Open3.x", "Process.x", "%x(a)"),
)
EVALUATORS = (
    *("test -v 'a[$(id)]'", "[ -v 'a[$(id)]' ]", "printf -v 'a[$(id)]' x", "read 'a[$(id)]'"),
    *("unset 'a[$(id)]'", "wait -p 'a[$(id)]'", "getopts x 'a[$(id)]'", "mapfile 'a[$(id)]'"),
    *("readarray 'a[$(id)]'", "let 'a[$(id)]'", "command test -v 'a[`id`]'", "[ 'a[${x}]' -eq 1 ]"),
)
MEANINGS = (
    *("command_not_found_handle() { ls; }", "TRAPINT() { ls; }", "BASH_x() { ls; }"),
    *("precmd() { ls; }", "preexec() { ls; }", "chpwd() { ls; }", "git() { ls; }", "cd() { ls; }"),
    *("ls {PATH}> a", "exec {LD_PRELOAD}>a", "$'\\x6cet' PATH=1", "alias a=b", "hash -p x ls"),
    *("enable -f x y", "set -o posix", "set +B", "set -k", "shopt -s expand_aliases", "jobs -x ls"),
    *("shopt -s extglob", "wait -p PATH", "read PATH", "mapfile -C id a", "printf -v PATH x"),
    *("declare -n a=PATH", "local -n a=PATH", "typeset -n a=PATH", "unset PATH", "getopts x PATH"),
    *("unset -f $x", "read -a PATH", "printf -vPATH x", "export $x", "readonly PATH=1"),
)
HARMLESS = (
    *("set -euo pipefail", "set -o monitor", "shopt -q globstar", "shopt -s nullglob", "jobs"),
    *("unset x", "read -r x", "printf -v x %s y", "mapfile -t x", "hash -r", "wait", "export X=1"),
    *("f() { ls; }; f", "ls 2> /dev/null", "exec {x}>a", "local x=1", "let x=1"),
)


@pytest.mark.real_agent
def test_publishing_and_global_settings_are_denied(project: str) -> None:
    """Under the allowlist a package manager may work only for the project."""
    commands = [f"{name} {verb}" for name, verbs in PUBLISHES.items() for verb in words(verbs)]
    for option in ("-g", "--global", "--location=global", "-Dg"):
        commands += [f"npm {verb} {option} x" for verb in INSTALLS]
    commands += [f"{name} install -g x" for name in ("pnpm", "bun", "deno")]
    assert [] == allowed((*commands, *REACHES), Policy(project, extra_commands=("extended",)))
    assert [] == denied(READS, Policy(project))


def test_inline_code_writing_protected_files_is_denied(project: str) -> None:
    """Inline code that names a protected file and writes is denied."""
    commands = [f'python -c "{code}"' for code in CHANGES]
    policy = Policy(project, extra_commands=("perl", "python3.11"))
    assert [] == allowed(commands, policy)
    starters = ("node -e", "node --eval", "node -p", "node --print", "bun -e", "deno eval")
    others = ("ruby -e", "php -r", "php -B", "php --run", "perl -e", "perl -E", "python3 -c")
    forms = [f"{starter} \"open('.git/x', 'w')\"" for starter in (*starters, *others)]
    forms += ["python3.11 -Wc -c \"open('.git/x', 'w')\"", "python -X a -c \"open('.git/x','w')\""]
    forms += ["node -r a -e \"open('.git/x', 'w')\"", "ruby -I a -e \"open('.git/x', 'w')\""]
    forms += ["echo \"open('.git/x', 'w')\" | python", "perl -i -pe s/a/b/ .git/x"]
    forms += [
        "perl -pi -e s/a/b/ .git/x",
        "ruby -i -pe a .git/x",
        "ruby -C a -e 'open .git/x, \"w\")'",
    ]
    assert [] == allowed(forms, policy)


def test_inline_code_starting_programs_is_denied(project: str) -> None:
    """Under the allowlist, programs must be called directly, not from inline code."""
    commands = [f"python -c '{code}'" for code in STARTS]
    commands += [f"node -e '{code}'" for code in STARTS_JS]
    commands += [f"{name} '{code}'" for name in ("ruby -e", "php -r") for code in STARTS_OTHER]
    assert [] == allowed(commands, Policy(project))
    assert [] == denied(["python -c 'print(1)'", "node -e 'console.log(1)'"], Policy(project))


def test_commands_in_subscripts_are_denied(project: str) -> None:
    """Builtins that expand the subscript of a name could run a command in it."""
    assert [] == allowed(EVALUATORS, Policy(project))


def test_redefining_names_is_denied(project: str) -> None:
    """The guard relies on these functions, variables and options."""
    assert [] == allowed(MEANINGS, Policy(project))
    assert [] == denied(HARMLESS, Policy(project))


def test_writing_after_a_tree_change_is_denied(project: str) -> None:
    """After git changes the tree, nothing may be written in its folders."""
    swaps = words(
        "checkout switch pull merge rebase reset restore stash am apply cherry-pick revert clone"
        " worktree submodule bisect sparse-checkout"
    )
    forms = [f"git {name} x; echo x > src/a" for name in swaps]
    assert [] == allowed(forms, Policy(project))
    plain = ("git log; echo x > src/a", "git stash list; echo x > src/a")
    fresh = ("git checkout -b x; echo x > src/a", "git switch -c x; echo x > src/a")
    assert [] == denied((*plain, *fresh, "git checkout x -- src; echo x > src/a"), Policy(project))


def test_current_folder_decides_relative_writes(project: str) -> None:
    """Writes are resolved against the folder, however it was entered, also for a shell's input."""
    moves = ("cd -- /etc", "cd -P /etc", "cd -L ..", "pushd -n /etc", "command cd ..", "cd -e ..")
    forms = [f"{move}; echo x > a" for move in moves]
    forms += ['bash <<< "$x"', "bash <<< 'rm -rf .git'", "sh <<EOF\nrm -rf .git\nEOF"]
    forms += [f"watch {option} rm -rf .git" for option in ("", "-n 1", "-d", "--interval 1")]
    forms += [f"cp {option} missing/. ." for option in words("-r -R -a --recursive --archive")]
    forms += ["tar xfC a .git", "tar cfX .git/x a b", "sometool --output=~/x"]
    forms += ["trap 'rm -rf .git' EXIT", "trap -- 'rm -rf .git' EXIT"]
    listed = ("rm", "bash", "sh", "watch", "tar", "sometool")
    assert [] == allowed(forms, Policy(project, extra_commands=listed, allow_destructive=True))
    fine = ("cd -- src; echo x > a", "bash <<< ls", "watch -n 1 ls", "cp -a src bin")
    assert [] == denied(fine, Policy(project, level="roles"))


WRAPPERS = (
    *("timeout 5", "timeout -k 5 3", "timeout -s KILL 3", "timeout --kill-after 5 3"),
    *("timeout --signal KILL 3", "timeout --foreground 3", "timeout --preserve-status 3"),
    *("gtimeout 5", "gtimeout -k 5 3", "nohup", "time", "time -p", "\\time -f %e"),
    *("\\time -o src/x", "\\time --format %e", "\\time --output src/x", "\\time -v", "nice"),
    *("nice -n 5", "nice -5", "nice --adjustment 5", "ionice", "ionice -c 3", "ionice -n 5"),
    *("ionice --class 3", "ionice --classdata 3", "chrt 5", "chrt -f 5", "chrt -T 1 5"),
    *("chrt -P 1 5", "chrt -D 1 5", "taskset 3", "taskset -c 1", "stdbuf -o L", "stdbuf -oL"),
    *("stdbuf -i 0 -e 0", "stdbuf --output L", "stdbuf --input 0", "stdbuf --error 0", "setsid"),
    *("setsid -w", "setsid --fork", "setsid --wait", "setsid --ctty", "caffeinate -t 5"),
    *("caffeinate -i", "caffeinate -w 5", "unbuffer", "strace -f", "strace -e open -o src/x"),
    *("strace -s 9", "strace -E a=b", "strace -p 1", "ltrace -e x", "ltrace -o src/x", "xvfb-run"),
    *("xvfb-run -a", "xvfb-run -s x", "xvfb-run -n 9", "xvfb-run --server-args x"),
    *("dbus-run-session", "dbus-run-session --config-file x", "dbus-run-session --"),
    *("cross-env A=b", "dotenv", "dotenv -e src/x", "dotenv -f src/x", "flock src/x"),
    *("flock -w 5 src/x", "flock -E 5 src/x", "flock --timeout 5 src/x", "sudo", "sudo -u x"),
    *("sudo -g x", "sudo -p x", "sudo --user x", "sudo --group x", "sudo A=b", "sudo -C 5"),
    *("sudo --prompt x", "sudo --host x", "sudo -E", "doas", "doas -u x", "doas -C x", "busybox"),
    *("toybox", "env", "env -i", "env A=b", "env -u A", "env --unset A", "env -", "env --"),
    *("genv", "env -C src", "command", "command -p", "builtin command", "exec", "exec -a x"),
    *("exec -cl", "xargs", "xargs -n 1", "xargs -P 2", "xargs -I {}", "xargs -L 1", "xargs -d x"),
    *("xargs -E x", "xargs -s 9", "xargs -a src/x", "xargs -0", "xargs -r", "xargs -t"),
    *("xargs --max-args 1", "xargs --max-procs 2", "xargs --delimiter x", "xargs --arg-file src/x"),
    *("xargs --max-lines 1", "xargs --max-chars 9", "xargs --null", "xargs --no-run-if-empty"),
    *("xargs --process-slot-var X", "gxargs", "xargs -i", "xargs -J %"),
)
OPAQUE = words(
    "su runuser chroot unshare nsenter systemd-run script expect parallel pkexec setpriv capsh "
    "start-stop-daemon batch at crontab"
)
REFUSED = (
    *("dbus-run-session --dbus-daemon=x ls", "flock -c ls", "flock src/x -c 'rm -rf .git'"),
    *("flock --command ls", "sudo -s", "sudo -i", "sudo -e a", "sudo -R x ls", "sudo -D x ls"),
    *("sudo --shell ls", "sudo --login", "sudo --edit a", "sudo --chroot x ls"),
    *("sudo --chdir x ls", "doas -s", "env -S 'rm -rf .git'", "env --split-string 'rm x'"),
    *("env -P x ls", "nohup", "\\time -o .git/x ls", "\\time --output .git/x ls"),
    *("strace -o .git/x ls", "strace --output .git/x ls", "env LD_PRELOAD=x ls"),
    *("sudo LD_PRELOAD=x ls", "cross-env LD_PRELOAD=x ls", "timeout $(x) 3 ls", "xargs"),
)
RUNNERS = (
    *("npx", "npx -y", "npx --yes", "npx -p x", "npx --package x", "bunx", "uvx", "uvx --from x"),
    *("uvx --with x", "uvx --python 3", "uvx -p 3", "pnpx", "uv run", "uv run --with x"),
    *("uv run --python 3", "uv run -p 3", "uv run --extra x", "uv run --group x"),
    *("uv run --no-sync", "uv run --env-file x", "uv run --frozen", "uv run --isolated"),
    *("uv run --package x", "uv run --directory src", "uv run --project src", "uv run --index x"),
    *("uv run --locked", "uv run -n", "uv run -w x", "uv tool run", "poetry run", "pdm run"),
    *("hatch run", "hatch run x:", "bundle exec", "bundler exec", "bundle exec --gemfile x"),
    *("conda run", "conda run -n x", "conda run -p x", "conda run --name x"),
    *("conda run --prefix x", "conda run --live-stream", "conda run --no-capture-output"),
    *("conda run --cwd src", "composer exec", "yarn exec", "yarn dlx", "pnpm exec", "pnpm dlx"),
    *("pnpm --filter x exec", "pnpm -C src exec", "pnpm --dir src exec", "npm exec", "npm x"),
    *("npm exec --", "npm -w x exec", "npm --prefix src exec", "npm --workspace x exec", "bun x"),
    *("pipx run", "pipx run --spec x", "uvx --env-file x", "npx --env-file x", "uv -n run"),
    *("uv --offline run", "composer exec -n", "composer -d src exec"),
    *("composer --working-dir=src exec", "hatch -e x run", "poetry -C src run"),
    *("poetry run -C src", "poetry run -P src", "pdm -p src run", "pdm run -p src"),
    *("npm -C src exec", "pnpm -F x exec", "pnpm exec -C src", "tox -c x exec"),
    *("tox exec -e x --", "tox exec -c x", "mise x --", "mise exec -C src", "mise exec -E x"),
    *("mise -C src x", "rye run", "pipenv run", "symfony run", "tox exec"),
    *("yarn workspace x exec", "yarn --cwd src exec"),
)
SYSTEM = words(
    "rsync scp sftp nc ncat netcat socat telnet ftp sudo su doas ssh kill killall reboot shutdown "
    "halt poweroff mount umount mkfs fdisk systemctl service launchctl crontab at osascript open "
    "xdg-open docker podman kubectl perl lua tclsh vi vim nano emacs ed ex less more man gdb eval "
    "passwd useradd usermod chpasswd iptables gcc cc make security defaults diskutil dscl twine "
    "ln install rm mv sh bash dash zsh ksh fish csh tcsh yash pwsh watch rmdir unlink shred "
    "mkfifo touch truncate tee chown chgrp setfacl chattr dd split csplit gzip gunzip bzip2 xz "
    "zstd awk gawk rg fd sed tar bsdtar unzip zip patch curl wget compress strace chroot script "
    "parallel"
)


@pytest.mark.real_agent
def test_wrapped_program_is_checked(project: str) -> None:
    """Options and their values are not mistaken for the program, at any level."""
    commands = [f"{starter} rm -rf .git" for starter in WRAPPERS]
    assert [] == allowed(commands, Policy(project, level="roles"))
    assert [] == allowed_when_listed(commands, project)


def test_wrapped_harmless_program_is_allowed(project: str) -> None:
    """The value of an option is not checked as the program."""
    commands = [f"{starter} ls" for starter in WRAPPERS if not starter.startswith("builtin")]
    assert [] == denied(commands, Policy(project, level="roles"))


def test_opaque_wrappers_are_denied(project: str) -> None:
    """Commands in an option's text, written files and unusual ways to start a program."""
    commands = [*REFUSED, *(f"{program} ls" for program in OPAQUE)]
    assert [] == allowed_when_listed(commands, project)


def test_package_runner_starts_no_system_program(project: str) -> None:
    """`npx` finds system programs in the path, even without such a package."""
    policy = Policy(project, profiles=("node",))
    assert [] == allowed((f"npx {program} x" for program in SYSTEM), policy)
    others = words("python python3 ruby php deno node")
    assert [] == allowed((f"npx {program} x" for program in others), Policy(project, profiles=()))


def test_package_runners_are_unwrapped(project: str) -> None:
    """The options of a runner, with or without values, hide nothing that it starts."""
    commands = [f"{runner} rm -rf .git" for runner in RUNNERS]
    assert [] == allowed(commands, Policy(project))
    named = ("npx -c 'rm -rf .git'", "npx --call 'rm -rf .git'", "npx --shell x ls", "npx -n x ls")
    more = ("npx --script-shell x ls", "npx --node-options x ls", "npx --userconfig x ls")
    assert [] == allowed((*named, *more), Policy(project))
    text = ("mise exec -c 'rm -rf .git'", "mise x --command 'rm -rf .git'")
    assert [] == allowed(text, Policy(project, level="roles"))


def test_package_runner_starts_package_programs(project: str) -> None:
    """Programs of packages and scripts of the project are allowed."""
    commands = (
        *("uv run --no-sync pytest", "poetry -C src run pytest", "npm exec vitest", "npx -y vite"),
        *("pnpm --filter x exec vitest", "npm run exec", "npm test -- run"),
        *("yarn workspace x test", "pnpm run watch", "yarn install", "bun run test"),
        "composer exec -n phpunit",
    )
    assert [] == denied(commands, Policy(project))


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
    *("GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=:", "PAGER=cat", "GIT_PAGER=", "GIT_AUTHOR_NAME=x"),
    *("GIT_COMMITTER_DATE=x", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null"),
    *("GIT_ASKPASS=true", "GIT_TRACE=1", "CC=clang-15", "CXX=g++"),
    *("NODE_OPTIONS=--max-old-space-size=4096", "GOFLAGS=-mod=mod", "PYTHONWARNINGS=error"),
    *("PYTHONPATHS=x", "LDX=1"),
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
