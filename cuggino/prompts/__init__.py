"""What an agent is told: one Markdown template a role, and a strict renderer (CUG-006)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from cuggino.errors import ConfigError

_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_TEMPLATES = Path(__file__).parent / "templates"


class Prompts:
    """The templates of the package, of which a project may override any.

    An override is `<role>.md` in `overrides` (`.cuggino/prompts`); it may use the same variables.
    """

    def __init__(self, overrides: Path | None = None) -> None:
        self._overrides = overrides

    def render(self, role: str, variables: Mapping[str, str]) -> str:
        """The prompt of the role. Values are put in as they are: a `{{...}}` in them stays text.

        Raises:
            ConfigError: the template uses a variable that the role does not have, or is unreadable.
        """
        path = self.template(role)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"prompt template {path} cannot be read: {error}") from error
        return render(text, variables, name=str(path))

    def template(self, role: str) -> Path:
        """The file that the role's prompt is made from."""
        if self._overrides is not None and (own := self._overrides / f"{role}.md").exists():
            return own
        return _TEMPLATES / f"{role}.md"


def render(text: str, variables: Mapping[str, str], *, name: str) -> str:
    """Put the values for `{{name}}` into the text, in one pass; an unknown name is an error."""

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
