"""The logins of forges, git, registries and clouds, which agents and commands do not get.

Only cuggino calls a forge and pushes. A setting that shows one of the files of a login leaves that
login to agents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from cuggino.sandbox.home import home_of, named_paths


class _Login(NamedTuple):
    name: str
    files: tuple[str, ...]
    """The files that store it, relative to the home folder."""
    variables: tuple[str, ...]
    folder: str = ""
    """The variable that sets another folder for it."""
    hides: bool = True
    """True if its files are withheld, too: a registry's also say where packages come from."""
    needed_with: tuple[str, ...] = ()
    """Variables with which an agent's own program reaches its model by this login."""


_CONFIG = ".config/"
_NOWHERE = "/nonexistent/cuggino"
_MOST_SETTINGS = 1000

LOGINS = (
    _Login(
        "gh",
        (".config/gh",),
        (
            *("GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"),
            *("GITHUB_PERSONAL_ACCESS_TOKEN", "GITHUB_PAT", "GH_PAT", "HOMEBREW_GITHUB_API_TOKEN"),
            *("ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"),
        ),
        "GH_CONFIG_DIR",
    ),
    _Login(
        "glab",
        (".config/glab-cli",),
        (
            *("GITLAB_TOKEN", "GITLAB_ACCESS_TOKEN", "GITLAB_PRIVATE_TOKEN", "GLAB_TOKEN"),
            *("GITLAB_PERSONAL_ACCESS_TOKEN", "OAUTH_TOKEN", "CI_JOB_TOKEN"),
        ),
        "GLAB_CONFIG_DIR",
    ),
    _Login(
        "git",
        (".git-credentials", ".config/git/credentials", ".netrc"),
        ("GIT_ASKPASS", "VSCODE_GIT_IPC_HANDLE"),
    ),
    _Login(
        "registries",
        (".npmrc", ".pypirc", ".cargo/credentials.toml", ".gem/credentials", ".docker/config.json"),
        (
            *("NPM_TOKEN", "NODE_AUTH_TOKEN", "NPM_AUTH_TOKEN", "YARN_NPM_AUTH_TOKEN"),
            *("PYPI_TOKEN", "PYPI_API_TOKEN", "TWINE_PASSWORD", "UV_PUBLISH_TOKEN"),
            *("UV_PUBLISH_PASSWORD", "HATCH_INDEX_AUTH", "FLIT_PASSWORD", "PDM_PUBLISH_PASSWORD"),
            *("POETRY_PYPI_TOKEN_PYPI", "CARGO_REGISTRY_TOKEN", "GEM_HOST_API_KEY"),
            *("RUBYGEMS_API_KEY", "NUGET_API_KEY", "DOCKER_AUTH_CONFIG", "DOCKER_PASSWORD"),
            *(
                "HEX_API_KEY",
                "CLOJARS_PASSWORD",
                "SONATYPE_PASSWORD",
                "ORG_GRADLE_PROJECT_signingKey",
            ),
        ),
        hides=False,
    ),
    _Login(
        "aws",
        (".aws",),
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"),
        hides=False,
        needed_with=("CLAUDE_CODE_USE_BEDROCK",),
    ),
    _Login(
        "gcloud",
        (".config/gcloud",),
        (
            *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN"),
            *("CLOUDSDK_AUTH_ACCESS_TOKEN", "GCP_SERVICE_ACCOUNT_KEY"),
        ),
        hides=False,
        needed_with=("CLAUDE_CODE_USE_VERTEX", "GOOGLE_GENAI_USE_VERTEXAI"),
    ),
    _Login(
        "azure",
        (".azure",),
        (
            "AZURE_CLIENT_SECRET",
            "AZURE_CLIENT_CERTIFICATE_PATH",
            "AZURE_PASSWORD",
            "ARM_CLIENT_SECRET",
        ),
        hides=False,
        needed_with=("CLAUDE_CODE_USE_FOUNDRY",),
    ),
    _Login(
        "clouds",
        (".config/doctl", ".config/hcloud", ".fly", ".terraform.d"),
        (
            *("DIGITALOCEAN_ACCESS_TOKEN", "DIGITALOCEAN_TOKEN", "HCLOUD_TOKEN", "FLY_API_TOKEN"),
            *("CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY", "CF_API_TOKEN", "HEROKU_API_KEY"),
            *(
                "VERCEL_TOKEN",
                "NETLIFY_AUTH_TOKEN",
                "SCW_SECRET_KEY",
                "LINODE_TOKEN",
                "VULTR_API_KEY",
            ),
            *("TF_API_TOKEN", "TFE_TOKEN", "VAULT_TOKEN", "PULUMI_ACCESS_TOKEN"),
        ),
        hides=False,
    ),
)
"""Withheld logins. SSH keys are not among them: an agent may need them to fetch, and the guard
denies pushes."""

_withheld_variables: set[str] = set()
_withheld_files: set[str] = set()


def withhold(*, env: str | None = None, file: str | None = None) -> None:
    """Keep a variable or a file, such as a chat's token, from all that this process starts."""
    _withheld_variables.update(filter(None, [env]))
    _withheld_files.update(filter(None, [file]))


LOGIN_VARIABLES = frozenset(name for login in LOGINS for name in login.variables)


def login_files(env: Mapping[str, str], home: Path | None) -> Iterator[Path]:
    """Yield the files and folders with logins in this environment."""
    for login in LOGINS:
        if login.hides:
            yield from _files(login, env, home)
    yield from named_paths(sorted(_withheld_files), home)


OTHER_REPOSITORY = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE"),
)
"""Variables of another git, such as the one whose hook or alias started this program."""


def without_repository(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which git finds the repository of its own folder."""
    return {name: value for name, value in env.items() if name not in OTHER_REPOSITORY}


def without_logins(env: Mapping[str, str], show: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment without logins, except those with a file in `show`.

    Programs that look for a login file find none, and git calls no helper, even if no sandbox hides
    the files.
    """
    shown = _shown(env, list(show))
    withheld = [login for login in LOGINS if login not in shown and not _is_needed(login, env)]
    whole = {name: value for name, value in env.items() if name not in _withheld_variables}
    for login in withheld:
        for name in login.variables:
            whole.pop(name, None)
        if login.folder:
            whole[login.folder] = _NOWHERE
    has_forge = any(login.hides and login not in withheld for login in LOGINS)
    return whole if has_forge else _without_helpers(whole)


def _is_needed(login: _Login, env: Mapping[str, str]) -> bool:
    return any(env.get(name, "0") not in ("", "0", "false") for name in login.needed_with)


def _files(login: _Login, env: Mapping[str, str], home: Path | None) -> Iterator[Path]:
    own = env.get(login.folder, "")
    if own and own != _NOWHERE:
        yield Path(own)
    config = env.get("XDG_CONFIG_HOME", "")
    for name in login.files:
        if home is not None:
            yield home / name
        if config.startswith("/") and name.startswith(_CONFIG):
            yield Path(config, name.removeprefix(_CONFIG))


def _shown(env: Mapping[str, str], show: list[str]) -> list[_Login]:
    """Return the logins with a named file, or with a named path in their folder."""
    if not show:
        return []
    home = home_of(env)
    named = [path.resolve() for path in named_paths(show, home)]
    return [
        login
        for login in LOGINS
        for files in [[path.resolve() for path in _files(login, env, home)]]
        if any(path.is_relative_to(file) for path in named for file in files)
    ]


def _without_helpers(env: dict[str, str]) -> dict[str, str]:
    """Disable the credential helpers in git's configuration files."""
    given = env.get("GIT_CONFIG_COUNT", "")
    count = int(given) if given.isdecimal() else 0
    for number in range(min(count, _MOST_SETTINGS)):
        name, value = env.get(f"GIT_CONFIG_KEY_{number}"), env.get(f"GIT_CONFIG_VALUE_{number}")
        if name == "credential.helper" and value == "":
            return env
    return {
        **env,
        f"GIT_CONFIG_KEY_{count}": "credential.helper",
        f"GIT_CONFIG_VALUE_{count}": "",
        "GIT_CONFIG_COUNT": str(count + 1),
    }
