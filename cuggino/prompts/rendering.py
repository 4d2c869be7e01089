"""The strict renderer of prompt templates (CUG-006)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from cuggino.errors import ConfigError

_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_TEMPLATES = Path(__file__).parent / "templates"
BUILT_IN = MappingProxyType(
    {path: path.read_text(encoding="utf-8") for path in _TEMPLATES.iterdir()}
)
"""The built-in templates, read before the package can be replaced under a run."""


class Prompts:
    """The built-in templates, any of which a project may override.

    An override is `<role>.md` in `overrides` (`.cuggino/prompts`); it may use the same variables.
    """

    def __init__(self, overrides: Path | None = None) -> None:
        self._overrides = overrides

    def render(self, role: str, variables: Mapping[str, str]) -> str:
        """Return the prompt of the role; a `{{...}}` in a value stays text.

        Raises:
            ConfigError: the template uses an unknown variable, or is unreadable.
        """
        path = self.template(role)
        try:
            text = BUILT_IN[path] if path in BUILT_IN else path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"prompt template {path} cannot be read: {error}") from error
        return render(text, variables, name=str(path))

    def template(self, role: str) -> Path:
        if self._overrides is not None and (own := self._overrides / f"{role}.md").exists():
            return own
        return _TEMPLATES / f"{role}.md"


def render(text: str, variables: Mapping[str, str], *, name: str) -> str:
    """Replace each `{{name}}` in the text by its value; an unknown name is an error."""

    def value(match: re.Match[str]) -> str:
        key = match.group(1)
        if key not in variables:
            line = text.count("\n", 0, match.start()) + 1
            raise ConfigError(
                f"{name} line {line}: unknown variable {{{{{key}}}}}",
                hint="variables of this role: " + ", ".join(sorted(variables)),
            )
        return variables[key]

    return _VARIABLE.sub(value, text)
