"""A project that tries to run programs on whoever looks at it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.git_project import GitProject

GIT_PROGRAMS = (
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.sshCommand",
    "core.askPass",
    "diff.external",
    "diff.evil.textconv",
    "diff.evil.command",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.Evil Too.process",
    "gpg.program",
    "gpg.ssh.program",
    "credential.helper",
    "merge.evil.driver",
    "remote.origin.uploadpack",
    "sequence.editor",
)
"""Settings that name a program."""
_NO_PROGRAMS = ("alias.status", "alias.config", "alias.diff")
"""Settings that git ignores for its own commands."""
_HOOKS = ("pre-commit", "post-index-change", "reference-transaction", "post-checkout")


class HostileProject:
    """A repository at `root` whose programs leave a line each in a file beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._told = root.with_name(f"{root.name}.ran")
        self.git = GitProject(root)
        self.git.write("a.txt", "one\n")
        self.git.write("b.bin", "one\n")
        self.git.write(".gitattributes", "*.txt filter=evil diff=evil\n*.bin filter='Evil Too'\n")
        self.git.git("add", "--all")
        self.git.git("commit", "--message", "Begin")

    def ran(self) -> list[str]:
        """Return what was run, in order, and forget it."""
        lines = self._told.read_text().splitlines() if self._told.exists() else []
        self._told.unlink(missing_ok=True)
        return lines

    def program(self, path: str, says: str = "") -> Path:
        """Write a program that reports its start, and prints a text."""
        script = f"#!/bin/sh\necho '{path}' \"$@\" >> '{self._told}'\n"
        file = self.git.write(path, f"{script}echo '{says}'\ncat > /dev/null\n")
        file.chmod(0o755)
        return file

    def configure(self, **settings: Any) -> None:
        """Write `.cuggino.json`."""
        self.git.write(".cuggino.json", json.dumps(settings))

    def module(self, name: str) -> None:
        """Write a module that reports its import, with a class that reports its creation."""
        told = f"open({str(self._told)!r}, 'a').write('{name} %s\\n')"
        self.git.write(
            f"{name}.py",
            f"{told % 'imported'}\nclass Agent:\n    def __init__(self, **given):\n"
            f"        {told % 'created'}\n",
        )

    def break_git(self) -> None:
        """Let git start programs wherever it can, and change the files that have a filter."""
        program = self.program("evil.sh")
        lines = [
            "[core]\n\thooksPath = hooks\n[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = true"
        ]
        for name in (*GIT_PROGRAMS, *_NO_PROGRAMS):
            section, _, rest = name.partition(".")
            middle, _, key = rest.rpartition(".")
            words = str(program) if section == "gpg" else f"{program} {name}"
            lines.append(f'[{section} "{middle}"]' if middle else f"[{section}]")
            lines.append(f"\t{key} = {words}" + "\n\trequired = true" * (section == "filter"))
        with (self.root / ".git" / "config").open("a") as config:
            config.write("\n".join(lines) + "\n")
        for name in _HOOKS:
            self.program(f"hooks/{name}")
        for name in ("a.txt", "b.bin"):
            self.git.write(name, "changed\n")
        self.ran()
