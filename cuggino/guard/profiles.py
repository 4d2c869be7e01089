"""Programs that the command policy lists, by language (AUT-164, AUT-171, AUT-172)."""

from __future__ import annotations

from typing import NamedTuple

from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy


class Profile(NamedTuple):
    """The programs for one language."""

    commands: tuple[str, ...]
    pkill_targets: tuple[str, ...] = ()


READING = words(
    "ls pwd cat head tail wc find grep tree sort diff date printf uniq cut tr tac jq git"
    " which ps lsof echo sleep timeout"
)
"""Allowed in every session."""

WRITING = ("mkdir", "cp", "chmod", "pkill")
"""Allowed in sessions that do work; their arguments are checked."""

DESTRUCTIVE = ("rm", "mv")
"""Allowed only in sessions that do work, and only if the user permits it (AUT-164, AUT-165)."""

BUILTINS = words(
    "cd pushd popd dirs test [ true false : exit return break continue shift wait type"
    " export declare typeset local readonly unset set read mapfile readarray getopts times"
    " jobs disown umask let hash source . trap shopt"
)
"""Builtins of bash; those that can run a script are checked (AUT-218)."""

TRANSPARENT = words("env timeout nohup nice stdbuf setsid command builtin exec xargs time")
"""Judged by the program that they start."""

PROFILES: dict[str, Profile] = {
    "node": Profile(
        words(
            "node bun deno npm npx yarn pnpm tsc esbuild vite webpack rollup jest vitest"
            " playwright mocha eslint prettier biome next nuxt astro remix"
        ),
        ("node", "npm", "npx", "vite", "next"),
    ),
    "bun": Profile(("bun", "bunx"), ("bun",)),
    "python": Profile(
        words(
            "python python3 pip pip3 pipx uv uvx venv virtualenv conda poetry pdm hatch flit"
            " pytest tox nox ruff black mypy pyright flake8 pylint django-admin flask uvicorn"
            " gunicorn"
        ),
        ("python", "python3", "uvicorn", "gunicorn"),
    ),
    "ruby": Profile(
        words(
            "ruby irb gem bundle bundler rake thor rspec minitest cucumber rubocop standard rails"
            " hanami puma unicorn"
        ),
        ("ruby", "puma", "unicorn", "rails"),
    ),
    "go": Profile(
        words("go gofmt goimports golint golangci-lint staticcheck gopls dlv goreleaser"),
        ("go",),
    ),
    "rust": Profile(
        words("rustc rustup cargo rustfmt cargo-fmt clippy cargo-clippy rust-analyzer cargo-watch"),
        ("cargo",),
    ),
    "php": Profile(
        words(
            "php composer phpunit pest codeception phpcs phpcbf phpstan psalm php-cs-fixer"
            " artisan symfony laminas"
        ),
        ("php", "artisan"),
    ),
}
"""Profiles by name; `base` stands for the lists above and is always active."""

EXTENDED = words(
    "rg fd fdfind ag ack sed awk gawk mawk egrep fgrep zgrep zcat zless touch tee truncate ln"
    " install rmdir mktemp rsync tar unzip zip gzip gunzip xz bzip2 zstd patch make curl wget http"
    " basename dirname realpath readlink stat file du df seq nl comm cmp paste column rev fold"
    " expand fmt split shuf join sha256sum sha1sum md5sum shasum cksum base64 xxd od hexdump"
    " strings nm ldd objdump readelf less more bat man tldr env printenv history id uname hostname"
    " whoami nproc free uptime lscpu vmstat top ulimit locale getconf getent cal tty tput clear yes"
    " expr factor bc numfmt tsort yq watch ping dig nslookup ss netstat ip nc bash sh zsh kill"
    " killall pgrep pidof fuser screen tmux strace cmake ctest ninja meson bazel gcc g++ cc c++"
    " clang clang++ perl docker docker-compose kubectl helm terraform gh glab sqlite3 psql pg_dump"
    " pg_restore pg_isready createdb redis-cli mysql mongosh tsx ts-node nodemon turbo nx lerna ng"
    " vue cypress storybook serve http-server concurrently wait-on corepack rimraf prisma coverage"
    " isort bandit alembic celery ipython jupyter streamlit pip-compile pip-audit sphinx-build"
    " mkdocs hypercorn pre-commit pyenv pipenv rye gotestsum air protoc buf sqlc mockgen wire"
    " wasm-pack trunk cargo-nextest just task hyperfine java javac jar kotlin kotlinc mvn gradle"
    " sbt scala dotnet swift xcodebuild mix elixir flutter dart zig shellcheck shfmt hadolint"
    " yamllint markdownlint actionlint openssl ssh-keygen nvm fnm mise rbenv pandoc dot convert"
    " ffmpeg inotifywait"
)
"""Everyday tools missing from the seed's list; the user allows them all with `extended`."""

EXTENDED_NAME = "extended"


def is_extended(policy: Policy) -> bool:
    """Return whether the user allows the everyday tools."""
    return EXTENDED_NAME in (policy.profiles or ()) or EXTENDED_NAME in policy.extra_commands


def active(policy: Policy) -> tuple[Profile, ...]:
    """Return the active language profiles: all when none is chosen."""
    if policy.profiles is None:
        return tuple(PROFILES.values())
    return tuple(PROFILES[name] for name in policy.profiles if name in PROFILES)


def listed(policy: Policy) -> frozenset[str]:
    """Return the programs allowed under `full`; `rm` and `mv` only if the user permits them."""
    names = {*READING, *BUILTINS, *TRANSPARENT, *policy.extra_commands}
    for profile in active(policy):
        names.update(profile.commands)
    if is_extended(policy):
        names.update(EXTENDED)
    names.difference_update(DESTRUCTIVE)
    if policy.mode == "run":
        names.update(WRITING)
        if policy.allow_destructive:
            names.update(DESTRUCTIVE)
    else:
        names.difference_update(WRITING)
    return frozenset(names)


def pkill_targets(policy: Policy) -> frozenset[str]:
    """Return the process names that `pkill` may end (AUT-167)."""
    own = (target for profile in active(policy) for target in profile.pkill_targets)
    return frozenset((*own, *policy.pkill_targets))
