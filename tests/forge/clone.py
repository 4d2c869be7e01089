"""A clone of a server's repository, whose forge is reached by a real program."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.endurance.place import ROOT
from tests.forge.server import ForgeServer


class Clone:
    """The project `project` in a folder, with a configuration and the specification `page.md`."""

    def __init__(self, server: ForgeServer, program: Path, place: Path, **settings: Any) -> None:
        self.server, self.folder, self.outputs = server, place / "project", place
        self.env = {
            **server.env,
            **server.git_env,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "CUGGINO_CONFIG": str(place / "config.json"),
            "XDG_STATE_HOME": str(place / "state"),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        (place / "config.json").write_text('{"trust": "off"}')
        # As `gh auth setup-git` sets it up.
        login = f"credential.helper=!{program.name} auth git-credential"
        self.folder.mkdir()
        self.git("clone", "-q", "-c", login, f"https://{server.host}/o/r.git", ".")
        for key, value in (("user.name", "Ada"), ("user.email", "ada@example.com")):
            self.git("config", key, value)
        (self.folder / ".git" / "info" / "exclude").write_text(".cuggino*\n.specs\n*.toml\n")
        (self.folder / ".specs").mkdir()
        (self.folder / ".specs" / "page.md").write_text("A file for each page.\n")
        (self.folder / ".cuggino.json").write_text(
            json.dumps({"sandbox": "off", "notify": "none", **settings})
        )

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
