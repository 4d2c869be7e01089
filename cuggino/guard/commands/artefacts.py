"""Files and folders that builds and tests make, by their usual names."""

from __future__ import annotations

import re

from cuggino.guard.commands.wordlist import words

_FOLDERS = frozenset(
    words(
        "build dist out target node_modules coverage htmlcov .next .nuxt .turbo .cache"
        " .parcel-cache .svelte-kit .vite .output .pytest_cache .mypy_cache .ruff_cache .tox .nox"
        " .hypothesis .eggs __pycache__ .gradle .nyc_output .angular .dart_tool obj tmp temp logs"
        " test-results playwright-report storybook-static _build .terraform"
    )
)
_FILES = re.compile(
    r".*\.(pyc|pyo|pyd|o|a|obj|class|log|tmp|temp|tsbuildinfo|orig|rej|swp|bak|gcda|gcno|prof|out"
    r"|egg-info|tgz|whl|map|pid)|\.coverage(\..+)?|coverage\.(xml|json|lcov)|\.DS_Store|core"
    r"|\.eslintcache|.*~"
)


def is_artefact(path: str) -> bool:
    """Return whether a relative path, or pattern, names only artefacts."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or path.startswith(("/", "~")) or ".." in parts:
        return False
    in_folder = any(part in _FOLDERS for part in parts)
    return in_folder or _FILES.fullmatch(parts[-1]) is not None
