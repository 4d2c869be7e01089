"""Wrappers are unwrapped, whichever options precede the program they start."""

from __future__ import annotations

import pytest

from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy
from tests.guard.commands.listed import allowed, allowed_when_listed, denied

STARTERS = (
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
    *(
        "sudo --shell ls",
        "sudo --login",
        "sudo --edit a",
        "sudo --chroot x ls",
        "sudo --chdir x ls",
    ),
    *("doas -s", "env -S 'rm -rf .git'", "env --split-string 'rm x'", "env -P x ls", "nohup"),
    *("\\time -o .git/x ls", "\\time --output .git/x ls", "strace -o .git/x ls"),
    *("strace --output .git/x ls", "env LD_PRELOAD=x ls", "sudo LD_PRELOAD=x ls"),
    *("cross-env LD_PRELOAD=x ls", "timeout $(x) 3 ls", "xargs"),
)
RUNNERS = (
    *("npx", "npx -y", "npx --yes", "npx -p x", "npx --package x", "bunx", "uvx", "uvx --from x"),
    *("uvx --with x", "uvx --python 3", "uvx -p 3", "pnpx", "uv run", "uv run --with x"),
    *(
        "uv run --python 3",
        "uv run -p 3",
        "uv run --extra x",
        "uv run --group x",
        "uv run --no-sync",
    ),
    *("uv run --env-file x", "uv run --frozen", "uv run --isolated", "uv run --package x"),
    *("uv run --directory src", "uv run --project src", "uv run --index x", "uv run --locked"),
    *("uv run -n", "uv run -w x", "uv tool run", "poetry run", "pdm run", "hatch run"),
    *("hatch run x:", "bundle exec", "bundler exec", "bundle exec --gemfile x", "conda run"),
    *("conda run -n x", "conda run -p x", "conda run --name x", "conda run --prefix x"),
    *("conda run --live-stream", "conda run --no-capture-output", "conda run --cwd src"),
    *("composer exec", "yarn exec", "yarn dlx", "pnpm exec", "pnpm dlx", "pnpm --filter x exec"),
    *(
        "pnpm -C src exec",
        "pnpm --dir src exec",
        "npm exec",
        "npm x",
        "npm exec --",
        "npm -w x exec",
    ),
    *("npm --prefix src exec", "npm --workspace x exec", "bun x", "pipx run", "pipx run --spec x"),
    *(
        "uvx --env-file x",
        "npx --env-file x",
        "uv -n run",
        "uv --offline run",
        "composer exec -n",
        "composer -d src exec",
    ),
    *(
        "composer --working-dir=src exec",
        "hatch -e x run",
        "poetry -C src run",
        "poetry run -C src",
    ),
    *("poetry run -P src", "pdm -p src run", "pdm run -p src", "npm -C src exec", "pnpm -F x exec"),
    *("pnpm exec -C src", "tox -c x exec", "tox exec -e x --", "tox exec -c x", "mise x --"),
    *(
        "mise exec -C src",
        "mise exec -E x",
        "mise -C src x",
        "rye run",
        "pipenv run",
        "symfony run",
    ),
    *("tox exec", "yarn workspace x exec", "yarn --cwd src exec"),
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
    commands = [f"{starter} rm -rf .git" for starter in STARTERS]
    assert [] == allowed(commands, Policy(project, level="roles"))
    assert [] == allowed_when_listed(commands, project)


def test_wrapped_harmless_program_is_allowed(project: str) -> None:
    """The value of an option is not checked as the program."""
    commands = [f"{starter} ls" for starter in STARTERS if not starter.startswith("builtin")]
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
        *(
            "pnpm --filter x exec vitest",
            "npm run exec",
            "npm test -- run",
            "yarn workspace x test",
        ),
        *("pnpm run watch", "yarn install", "bun run test", "composer exec -n phpunit"),
    )
    assert [] == denied(commands, Policy(project))
