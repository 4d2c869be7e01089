"""Commands that reach beyond the project, hide in code, or change the meaning of later words."""

from __future__ import annotations

import pytest

from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy
from tests.guard.commands.listed import allowed, denied

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
    *(
        "goreleaser release --snapshot",
        "uv tool list",
        "npm install x",
        "npm i -D x",
        "pip install x",
    ),
)
INSTALLS = words("install i add ci update up upgrade uninstall remove rm un link ln in r")
CHANGES = (
    *(
        "open('.git/x', 'w')",
        "open('.git/x', mode='a')",
        "open('.git/x','rb+')",
        "dump(a, '.git/x')",
    ),
    *("p('.git').write_text(a)", "rmtree('.git')", "os.remove('.git')", "os.unlink('.git/x')"),
    *("os.rename('.git', 'a')", "p('a').replace('.git')", "os.rmdir('.git')", "fs.rmSync('.git')"),
    *("fs.cpSync('a', '.git')", "copy('a', '.git')", "move('a', '.git')", "os.mkdir('.git/x')"),
    *(
        "os.makedirs('.git/x')",
        "p('.git/x').touch()",
        "os.truncate('.git/x')",
        "symlink('.git', a)",
    ),
    *("fs.linkSync('.git', a)", "os.chmod('.git')", "os.chown('.git')", "fs.append('.git/x')"),
    *("put_contents('.git/x')", "fopen('.git/x')", "fputs('.git/x')", "delete('.git/x')"),
    *("FileUtils.x('.git')", "File.new('.git/x')", "p('.g' + 'it/x').write_text(a)"),
    *("open('.cuggino/x', 'w')", "open('.claude/x', 'w')", "open('.mcp.json', 'w')"),
    *("open('.autonoe/x', 'w')", "open('.cuggino.json', 'w')"),
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
    *(
        "system(1)",
        "exec(1)",
        "shell_exec(1)",
        "passthru(1)",
        "popen(1)",
        "proc_open(1)",
        "spawn(1)",
    ),
    *("pcntl_exec(1)", "fork(1)", "Kernel.x", "IO.x", "Open3.x", "Process.x", "%x(a)"),
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
