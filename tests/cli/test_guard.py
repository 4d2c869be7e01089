"""`cuggino guard check` on one command or one file operation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import Config, save_config
from cuggino_cli import help
from cuggino_cli.main import main
from tests.cli.cli import Cli


def verdict(cli: Cli, *args: str) -> dict[str, Any]:
    """Return the printed JSON after checking the exit code and the format."""
    code = main(["guard", "check", "--json", *args])
    [line] = cli.printed().out.splitlines()
    found: dict[str, Any] = json.loads(line)
    assert ["decision", "reason", "parts", "level"] == list(found)
    assert code == {"allow": 0, "deny": 1}[found["decision"]]
    assert bool(found["reason"]) == bool(code)
    denied = [part["reason"] for part in found["parts"] if part["decision"] == "deny"]
    assert denied[:1] == ([found["reason"]] if code else [])
    return found


def decision(cli: Cli, *args: str) -> str:
    return str(verdict(cli, *args)["decision"])


def test_part_by_part(project: Path, cli: Cli) -> None:
    """Each part has a line with its mark, a denied one its reason; the verdict comes last."""
    save_config(project, Config(guard="full"))
    lines = cli("guard", "check", "git status && nc -l 80", code=1).splitlines()
    assert ["✓ git status", "✗ nc -l 80"] == lines[:2]
    assert lines[2].startswith("    ")
    assert "Command 'nc' is not in the allowlist" in lines[2]
    assert 'Denied at level "full".' == lines[-1]
    save_config(project, Config())
    out = cli("guard", "check", "git status")
    assert ["✓ git status", 'Allowed at level "roles".'] == out.splitlines()


def test_control_characters(project: Path, cli: Cli) -> None:
    """A command with control characters is denied and printed escaped."""
    assert "\x1b" not in cli("guard", "check", "ls \x1b[2J", code=1)


def test_as_json(project: Path, cli: Cli) -> None:
    """The JSON has the decision, the first denied part's reason, and the parts in order."""
    found = verdict(cli, "ls && nc -l 80 && ls", "--level", "full")
    assert "deny" == found["decision"]
    parts = [(part["text"], part["decision"]) for part in found["parts"]]
    assert [("ls", "allow"), ("nc -l 80", "deny"), ("ls", "allow")] == parts
    assert {
        "decision": "allow",
        "reason": "",
        "parts": [{"text": "ls", "decision": "allow", "reason": ""}],
        "level": "roles",
    } == verdict(cli, "ls")


def test_profiles_and_commands(project: Path, cli: Cli) -> None:
    """Profiles restrict and `--allow-command` adds; both override the configuration."""
    save_config(project, Config(guard="full"))
    assert "allow" == decision(cli, "npm test && cargo build")
    assert "deny" == decision(cli, "npm test && cargo build", "--profile", "node")
    both = ("--profile", "node", "--profile", "rust")
    assert "allow" == decision(cli, "npm test && cargo build", *both)
    assert "deny" == decision(cli, "make")
    assert "allow" == decision(cli, "make", "--allow-command", "make")
    save_config(project, Config(guard="full", profile="go", allow_commands=["make"]))
    assert ["deny", "allow"] == [decision(cli, text) for text in ("npm test", "make")]
    assert "allow" == decision(
        cli, "npm test; make; just", "--profile=node", "--allow-command=just"
    )


def test_destructive(project: Path, cli: Cli) -> None:
    """`rm` and `mv` need `--allow-destructive`, and are confined to the project with it."""
    save_config(project, Config(guard="full"))
    assert "deny" == decision(cli, "rm x")
    assert "allow" == decision(cli, "rm x", "--allow-destructive")
    assert "deny" == decision(cli, "rm /etc/x", "--allow-destructive")
    save_config(project, Config(guard="full", allow_destructive=True))
    assert "allow" == decision(cli, "rm x")


def test_levels(project: Path, cli: Cli) -> None:
    """Without `--level` the level of the run applies, and the answer names it."""
    levels = [verdict(cli, "ls", *more)["level"] for more in ((), ("--role", "planning"))]
    assert ["roles", "roles"] == levels
    assert "allow" == decision(cli, "nc -h")
    assert "deny" == decision(cli, "nc -h", "--level", "full")
    save_config(project, Config(guard="full"))
    assert "deny" == decision(cli, "nc -h", "--role", "implementing")
    assert "allow" == decision(cli, "nc -h", "--level", "roles")
    save_config(project, Config(guard="off"))
    for role in ("planning", "deliver"):
        off = verdict(cli, "nc -h > .git/config", "--role", role)
        assert ("allow", "off", []) == (off["decision"], off["level"], off["parts"])
    assert 'Allowed without a judgment: "guard" is "off".\n' == cli("guard", "check", "nc -h")
    assert "deny" == decision(cli, "nc -h", "--role", "deliver", "--level", "full")


@pytest.mark.parametrize("role", ["deliver", "verify", "sync"])
def test_as_in_a_delivery(role: str, project: Path, cli: Cli) -> None:
    """The roles of `cuggino deliver` have its level and the settings of `agent.json`."""
    asked = ("--role", role)
    assert ("deny", "full") == tuple(
        verdict(cli, "nc -h", *asked)[key] for key in ("decision", "level")
    )
    click, close = (("--tool", f"mcp__playwright__browser_{verb}") for verb in ("click", "fly"))
    assert "allow" == decision(cli, *click, *asked)
    assert "deny" == decision(cli, *close, *asked)
    assert "deny" == decision(cli, "--tool", "WebFetch", *asked)
    assert "deny" == decision(cli, "--tool", "Read", "--path", "/etc/passwd", *asked)
    assert "allow" == decision(cli, "--tool", "Read", "--path", "a.md", *asked)
    settings = {
        "allowCommands": {"base": ["nc"]},
        "allowedTools": ["WebFetch"],
        "permissions": {"allow": ["mcp__playwright", "Read(//etc/**)"]},
    }
    (project / ".autonoe").mkdir()
    (project / ".autonoe" / "agent.json").write_text(json.dumps(settings))
    assert "allow" == decision(cli, "nc -h", *asked)
    assert "allow" == decision(cli, *close, *asked)
    assert "allow" == decision(cli, "--tool", "WebFetch", *asked)
    assert "allow" == decision(cli, "--tool", "Read", "--path", "/etc/passwd", *asked)
    assert "deny" == decision(cli, "--tool", "Write", "--path", ".autonoe/x", *asked)
    (project / ".autonoe" / "agent.json").write_text('{"profile": "cobol"}')
    assert 'unknown profile "cobol"' in cli.err("guard", "check", "ls", *asked)


def test_roles(project: Path, cli: Cli) -> None:
    """Files are checked against the role, whether a tool or a command writes them."""
    write = ("--tool", "Write", "--path", "src/a.py")
    assert "allow" == decision(cli, *write)
    for role, expected in (("implementing", "allow"), ("planning", "deny"), ("audit", "deny")):
        assert expected == decision(cli, *write, "--role", role)
        assert expected == decision(cli, "echo x > src/a.py", "--role", role)
    specs = ("--path", str(project / ".specs" / "a.md"))
    assert "deny" == decision(cli, *specs, "--role", "implementing")
    assert "allow" == decision(cli, *specs, "--role", "pm")
    assert "deny" == decision(cli, "--tool", "NotebookEdit", "--path", ".git/a.ipynb")
    assert "allow" == decision(cli, "--tool", "Read", "--path", ".git/config")
    assert "deny" == decision(cli, "--tool", "Monitor", "echo x > .git/x")


def test_where_the_agent_is(project: Path, cli: Cli) -> None:
    """Paths are relative to `--cwd`; a folder outside is its own project."""
    (project / "sub").mkdir()
    assert "deny" == decision(cli, "echo x > .git/x")
    assert "deny" == decision(cli, "echo x > .git/x", "--cwd", "sub", "--tool", "Bash")
    assert "deny" == decision(cli, "echo x > ../.git/x", "--cwd", "sub")
    assert "allow" == decision(cli, "echo x > ../a", "--cwd", "sub")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "Give the COMMAND to judge"),
        (["--tool", "Bash", "--path", "x"], "Give the COMMAND to judge"),
        (["ls", "--tool", "Write"], "Write takes no COMMAND"),
        (["ls", "--file", "x"], "each line is a whole case"),
        (["--file", "x", "--allow-destructive"], "each line is a whole case"),
        (["ls", "--level", "none"], "'none' is not one of"),
        (["ls", "--role", "boss"], "'boss' is not one of"),
        (["ls", "--cwd", "nowhere"], "does not exist"),
        (["ls", "--profile", "nod"], 'unknown profile "nod"'),
        (["ls", "--allow-command", "npm run"], "plain name"),
        (["ls", "rm"], "unexpected extra argument"),
    ],
)
def test_wrong_usage(args: list[str], words: str, project: Path, cli: Cli) -> None:
    """A usage error exits with 2, gives the reason, and checks nothing."""
    said = cli.both("guard", "check", *args, code=2)
    assert words in said.err
    assert "" == said.out


def test_the_example_of_the_help(project: Path, cli: Cli) -> None:
    """The answer on the help page is the real one."""
    page = (Path(help.__file__).parent / "safety.md").read_text(encoding="utf-8")
    assert "cuggino guard check --role deliver 'make test'" in page
    assert f"```text\n{cli('guard', 'check', '--role', 'deliver', 'make test', code=1)}```" in page


def test_help_is_honest(cli: Cli) -> None:
    """The help states the guard's limits."""
    said = " ".join(cli("guard", "--help").split())
    assert "The guard cannot limit an interpreter, a test, a build or a git hook that is" in said
    assert "the guard is advice, and verification after each session is what protects" in said
