"""Check of the packages that commands need besides those of a run."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from cuggino.config import Config
from cuggino.doctor.result import CheckResult
from cuggino.errors import install_extra

_PAGE = ("jinja2", "markdown_it", "starlette", "uvicorn")


def packages(config: Config) -> Iterator[CheckResult]:
    """Check that `report`, `serve` and, if one is configured, a cluster can be used."""
    if missing := [name for name in _PAGE if find_spec(name) is None]:
        what = f"report and live page: not installed: {', '.join(missing)}"
        hint = "they belong to cuggino: install it again, with what it depends on"
        yield CheckResult("note", what, hint)
    else:
        yield CheckResult("ok", "report and live page: installed")
    if config.cluster_settings.address is not None and find_spec("distributed") is None:
        hint = install_extra("cluster")
        yield CheckResult("problem", "cluster: the package distributed is not installed", hint)
