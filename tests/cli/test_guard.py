"""`cuggino guard check`: one call, and many cases in one process."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cuggino.config import Config, save_config
from cuggino.guard_audit import BadLine, Case, cases as cases_module, read_cases
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


def case(command: str, /, id: str = "a", tool: str = "Bash", **options: Any) -> dict[str, Any]:
    """Return a line of a case file."""
    defaults: dict[str, Any] = {"profiles": None, "allow_destructive": False, "extra_commands": []}
    return {"id": id, "tool": tool, "input": {"command": command}, "options": defaults | options}


def judged(folder: Path, cli: Cli, *lines: dict[str, Any] | str | bytes) -> list[dict[str, Any]]:
    """Return the verdicts for these lines."""
    file = folder / "cases.jsonl"
    texts = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
    data = [line.encode() if isinstance(line, str) else line for line in texts]
    file.write_bytes(b"\n".join(data))
    return [
        json.loads(line)
        for line in cli("guard", "check", "--file", str(file), "--json").splitlines()
    ]


def policies(*lines: dict[str, Any], here: Path = Path("/nowhere")) -> list[Case]:
    """Return the cases parsed from these lines."""
    cases = read_cases([json.dumps(line).encode() for line in lines], here=here)
    return [found for found in cases if isinstance(found, Case)]


def place(case: Case) -> str:
    """Return the project of the case."""
    assert case.policy is not None
    return case.policy.project


def test_a_verdict_a_line(tmp_path: Path, cli: Cli) -> None:
    """Each case gives one line with its ID and verdict, in file order."""
    found = judged(
        tmp_path,
        cli,
        case("ls", "one", cwd=str(tmp_path)),
        case("ls; nc -l 80", "two", cwd=str(tmp_path)),
        {"id": 3, "tool": "Write", "input": {"file_path": "/project/.git/x"}, "options": {}},
        {"id": "four", "command": "ls"},
    )
    assert [["id", "decision", "reason", "parts", "level"]] * 4 == [list(line) for line in found]
    decisions = [(line["id"], line["decision"]) for line in found]
    assert [("one", "allow"), ("two", "deny"), (3, "deny"), ("four", "allow")] == decisions
    assert ["allow", "deny"] == [part["decision"] for part in found[1]["parts"]]


def test_malformed_lines(tmp_path: Path, cli: Cli) -> None:
    """A malformed line is denied with its number, and the others are checked."""
    lines: list[dict[str, Any] | str | bytes] = [
        "{nope",
        b"\xff",
        "[]",
        "[" * 10_000,
        {**case("ls"), "input": "ls"},
        {**case("ls"), "options": []},
        {**case("ls"), "tool": 3},
        case("ls", profiles=["nod"]),
        case("ls", profiles=3),
        case("ls", extra_commands="make"),
        case("ls", allow_destructive=1),
        case("ls", mode="fast"),
        case("ls", cwd=["/project"]),
        case("ls", cwd="/a\0b"),
        case("ls", project_dir="/a\ud800b"),
    ]
    found = judged(tmp_path, cli, *lines, "", case("ls", "last"))
    assert len(lines) + 1 == len(found)
    for number, line in enumerate(found[:-1], start=1):
        assert "deny" == line["decision"]
        assert line["reason"].startswith(f"line {number} ")
    assert [None] * 4 + ["a"] * 11 == [line["id"] for line in found[:-1]]
    assert 'unknown profile "nod"' in found[7]["reason"]
    assert ("last", "allow") == (found[-1]["id"], found[-1]["decision"])


def test_options(tmp_path: Path, cli: Cli) -> None:
    """Every option of a case applies: profiles, commands, targets, destructive mode, level."""
    commands = {"base": ["make"], "run": ["docker"], "sync": ["shellcheck"]}
    cases = [
        ("deny", case("npm test", profiles=["go"])),
        ("allow", case("npm test", profiles="node")),
        ("allow", case("npm test", profiles=[])),
        ("allow", case("make; docker ps", extra_commands=commands)),
        ("deny", case("shellcheck x", extra_commands=commands)),
        ("allow", case("make; shellcheck x", extra_commands=commands, mode="sync")),
        ("deny", case("docker ps", extra_commands=commands, mode="sync")),
        ("allow", case("docker ps", extra_commands=["docker"], mode="run")),
        ("allow", case("pkill server", extra_pkill_targets=["server"])),
        ("deny", case("pkill server")),
        ("allow", case("rm x", allow_destructive=True)),
        ("deny", case("rm x")),
        ("allow", case("nc -h", level="roles")),
    ]
    found = judged(tmp_path, cli, *(line | {"id": n} for n, (_, line) in enumerate(cases)))
    assert [expected for expected, _ in cases] == [line["decision"] for line in found]


def test_the_project_of_a_case(tmp_path: Path) -> None:
    """The project is the given one, the marked parent folder, or that of the other cases."""
    for name in ("one", "two"):
        (tmp_path / name / ".autonoe").mkdir(parents=True)
        (tmp_path / name / "sub").mkdir()
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    cases = policies(
        case("ls", cwd=one),
        case("ls", cwd=f"{one}/sub"),
        case("ls", cwd=f"{one}/sub/none/deeper"),
        case("ls", cwd=two),
        case("ls", cwd=f"{one}/sub", project_dir=f"{one}/sub"),
        case("ls", cwd="/nowhere/else"),
    )
    projects = [place(found) for found in cases]
    assert [one, one, one, two, f"{one}/sub", one] == projects
    assert f"{one}/sub" == cases[1].cwd


@pytest.fixture
def unmarked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep folders of this machine from being taken for projects."""
    monkeypatch.setattr(cases_module, "_MARKS", (".a-mark-that-no-folder-has",))


@pytest.mark.usefixtures("unmarked")
def test_the_placeholder_is_a_project() -> None:
    """`/project` need not exist, and a folder beside it is outside."""
    cases = policies(
        case("ls", cwd="/project"), case("ls", cwd="/project/sub"), case("ls", cwd="/tmp/other")
    )
    assert ["/project"] * 3 == [place(found) for found in cases]
    assert ["/project", "/project/sub", "/tmp/other"] == [found.cwd for found in cases]


@pytest.mark.usefixtures("unmarked")
def test_without_any_mark(tmp_path: Path) -> None:
    """Without a marked folder, the project is the folder of the case or the current one."""
    assert [str(tmp_path)] == [place(c) for c in policies(case("ls", cwd=str(tmp_path)))]
    [found] = policies({"command": "ls"}, here=tmp_path)
    assert (str(tmp_path), str(tmp_path)) == (place(found), found.cwd)
    assert ("Bash", {"command": "ls"}, None) == (found.tool, found.input, found.id)


def test_standard_input(project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash reads standard input; without `--json` each verdict is a marked line."""
    data = "\n".join(json.dumps(case(text, id=text)) for text in ("ls", "nc -l 80")) + "\nx\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data.encode())))
    lines = cli("guard", "check", "--file", "-").splitlines()
    assert ["✓ ls", "✗ nc -l 80", "✗ line 3"] == [line for line in lines if line[0] != " "]


def test_an_unreadable_file(project: Path, cli: Cli) -> None:
    """An unreadable file exits with 2 and the reason."""
    for name in ("missing.jsonl", "."):
        said = cli.both("guard", "check", "--file", name, "--json", code=2)
        assert f"cuggino: --file {name} cannot be read: " in said.err
        assert "" == said.out


def test_bad_lines_have_numbers() -> None:
    """Blank lines count, so numbers match the file."""
    [bad] = read_cases([b"\n", b"  \n", b"x\n"], here=Path("/"))
    assert isinstance(bad, BadLine)
    assert 3 == bad.number


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
option_names = ("profiles", "extra_commands", "cwd", "project_dir", "mode", "level")


@pytest.mark.real_agent
@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.binary(min_size=1).filter(lambda data: b"\n" not in data and data.strip())
        | st.fixed_dictionaries(
            {},
            optional={
                "id": values,
                "tool": values,
                "input": values,
                "options": values | st.dictionaries(st.sampled_from(option_names), values),
            },
        ).map(lambda fields: json.dumps(fields).encode()),
        max_size=4,
    )
)
def test_any_line_is_a_case_or_is_not(lines: list[bytes]) -> None:
    """Every line is either a case with absolute folders or a numbered error."""
    found = read_cases(lines, here=Path("/nowhere"))
    assert len(lines) == len(found)
    for number, case in enumerate(found, start=1):
        if isinstance(case, BadLine):
            assert number == case.number
        else:
            assert case.cwd.startswith("/")
            assert place(case).startswith("/")


def test_cases_of_a_run(tmp_path: Path, cli: Cli) -> None:
    """A case with a role has the policy of a run in its project, `agent.json` included."""
    settle(tmp_path, allowCommands=["nc"], allowedTools=["WebSearch"])
    calls = [("Bash", {"command": "nc -h"}), ("WebSearch", {"query": "x"}), ("WebFetch", {})]
    lines: list[dict[str, Any]] = [
        {"tool": tool, "input": given, "options": {"cwd": str(tmp_path), "role": role}}
        for role in ("deliver", "verify", "implementing")
        for tool, given in calls
    ]
    found = judged(tmp_path, cli, *lines, {"command": "nc -h"})
    assert ["full"] * 6 + ["roles"] * 3 + ["full"] == [line["level"] for line in found]
    expected = "allow allow deny  deny allow deny  allow allow allow  deny"
    assert expected.split() == [line["decision"] for line in found]
    assert "Tool 'WebFetch' is not listed" in found[2]["reason"]
    beside = [
        {**line, "role": line["options"]["role"], "options": {"cwd": str(tmp_path)}}
        for line in lines
    ]
    assert found[:9] == judged(tmp_path, cli, *beside)


def test_options_for_all_cases(tmp_path: Path, cli: Cli) -> None:
    """`--role` and `--level` are for lines without their own."""
    file = tmp_path / "cases.jsonl"
    own = {"options": {"cwd": str(tmp_path), "role": "planning", "level": "full"}}
    lines = [{"command": "nc -h", "options": {"cwd": str(tmp_path)}}, {"command": "nc -h", **own}]
    file.write_text("\n".join(map(json.dumps, lines)))
    options = ["--role", "deliver", "--level", "roles"]
    found = [
        json.loads(line)
        for line in cli("guard", "check", "--json", "--file", str(file), *options).splitlines()
    ]
    assert [("allow", "roles"), ("deny", "full")] == [(v["decision"], v["level"]) for v in found]
    (tmp_path / ".cuggino.json").write_text('{"guard": "off"}')
    found = [
        json.loads(line)
        for line in cli(
            "guard", "check", "--json", "--file", str(file), "--role", "deliver"
        ).splitlines()
    ]
    assert [("allow", "off"), ("deny", "full")] == [(v["decision"], v["level"]) for v in found]


def settle(project: Path, **settings: Any) -> None:
    """Write the project's own agent settings."""
    (project / ".autonoe").mkdir()
    (project / ".autonoe" / "agent.json").write_text(json.dumps(settings))
