"""Random bash snippets full of constructs that parsers disagree on; all commands are invented.

The grammar is in `tests/data/shell_grammar.txt`.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

_SYMBOL = re.compile("‹(\\w+)›")
_BLANKS = str.maketrans("⏎⇥␣∅", "\n\t \0")


def rules() -> dict[str, list[str]]:
    """Return the alternatives of each name."""
    text = (Path(__file__).parent / "data" / "shell_grammar.txt").read_text(encoding="utf-8")
    sections = (section.splitlines() for section in text.split("\n== ")[1:])
    return {
        name: [line.translate(_BLANKS).strip("\0") for line in lines if line]
        for name, *lines in sections
    }


class Snippets:
    """A generator of snippets, reproducible by seed; commands are `w` and a number, files `o`."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = 10
        self._left = 0
        self._pending: list[str] = []
        self._functions: list[str] = []
        self._rules = rules()

    def snippet(self) -> str:
        """Return the next snippet; every third has random insertions or deletions."""
        self._number, self._left, self._pending = 10, self._random.randint(6, 45), []
        text = self._expand("script")
        if self._random.random() < 0.3:
            for _ in range(self._random.randint(1, 3)):
                text = self._damaged(text)
        return text

    def _damaged(self, text: str) -> str:
        start = self._random.randrange(len(text) + 1)
        end = min(len(text), start + self._random.choice([0, 0, 0, 0, 1, 1, 2, 5]))
        return text[:start] + self._random.choice([*self._rules["nasty"], "", ""]) + text[end:]

    def _expand(self, name: str) -> str:
        match name:
            case "w" | "o":
                self._number += 1
                return f"{name}{self._number}"
            case "f":
                self._number += 1
                self._functions.append(f"f{self._number}")
                return self._functions[-1]
            case "f1":
                return self._functions.pop()
            case "nl":
                bodies, self._pending = self._pending, []
                return "\n" + "".join(bodies)
            case "hd":
                return self._here_document()
            case _:
                return self._choice(name)

    def _choice(self, name: str) -> str:
        self._left -= 1
        choices = self._rules[name]
        if self._left <= 0:
            choices = choices[: 1 if self._left < -30 else 4]
        chosen = choices[
            int(len(choices) * self._random.random() ** 1.5)
        ]  # prefers plain alternatives
        return _SYMBOL.sub(lambda found: self._expand(found[1]), chosen)

    def _here_document(self) -> str:
        word = self._random.choice(self._rules["delimiter"])
        operator = self._random.choice(["<<", "<<", "<<", "<<-", "<< "])
        outer, self._pending = self._pending, []
        body = self._expand("line")
        end = re.sub(r"[\\'\"]|^\$", "", word)
        end = self._random.choice([end] * 12 + ["\t" + end, end + " ", end + "x", ""])
        self._pending = [*outer, f"{body}{end}\n"]
        return operator + word
