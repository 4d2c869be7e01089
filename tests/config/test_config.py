"""`.cuggino.json`: what is read, saved and rejected, and its sections."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cuggino.config import (
    CONFIG_FILE,
    OCCASIONS,
    ClusterSettings,
    Config,
    FallbackAgent,
    NotifySettings,
    PullRequestSettings,
    RoleAgent,
    changed_config,
    config_path,
    load_config,
    parse_config,
    save_config,
)
from cuggino.errors import ConfigError
from cuggino.guard.roles import ROLES, Role
from tests.chat.services import TOKEN
from tests.vectors import not_followed, rows, snake

READ_ROWS = [row for row in rows("cuggino_config") if row["op"] == "read"]


def write(folder: Path, text: str | bytes) -> None:
    config_path(folder).write_bytes(text.encode() if isinstance(text, str) else text)


def refused(folder: Path, text: str | bytes) -> ConfigError:
    """Return the error for a file with this text."""
    write(folder, text)
    with pytest.raises(ConfigError) as caught:
        load_config(folder)
    assert 2 == caught.value.code
    assert "\n" not in caught.value.message
    return caught.value


def test_reads_as_the_original(tmp_path: Path) -> None:
    """A recorded row is parsed as recorded, or listed as an exception with the reason."""
    for row in READ_ROWS:
        folder = tmp_path / row["id"]
        folder.mkdir()
        if row["file"] is not None:
            write(folder, row["file"])
        if row["id"] in not_followed():
            with pytest.raises(ConfigError):
                load_config(folder)
            continue
        config = load_config(folder)
        assert {key: getattr(config, snake(key)) for key in row["expected"]} == row["expected"]


def test_the_schema_of_editors(tmp_path: Path) -> None:
    """`$schema` has no effect, and is kept when the file is written again."""
    write(tmp_path, '{"$schema": "./cuggino.schema.json", "maxIterations": 3}')
    assert Config(max_iterations=3) == load_config(tmp_path)
    save_config(tmp_path, Config(max_iterations=4))
    raw = json.loads(config_path(tmp_path).read_text())
    assert ("./cuggino.schema.json", 4) == (raw["$schema"], raw["maxIterations"])
    assert 'unknown key "$scheme"' in refused(tmp_path, '{"$scheme": "x"}').message


def test_the_gate_needs_a_check(tmp_path: Path) -> None:
    """A gate that decides needs a check command that is not blank, and so does `must-pass`."""
    for setting in ('"gate": "block"', '"gate": "clean"', '"baseline": "must-pass"'):
        for text in (f"{{{setting}}}", f'{{{setting}, "checkCommand": " "}}'):
            assert f'{setting} requires a "checkCommand"' in refused(tmp_path, text).message
    for gate in ("block", "clean"):
        write(tmp_path, f'{{"gate": "{gate}", "checkCommand": "make", "baseline": "must-pass"}}')
        config = load_config(tmp_path)
        assert (gate, "must-pass") == (config.gate, config.baseline)


GATED = {"commit": True, "checkCommand": "make check"}


def test_attempts() -> None:
    """A number makes all attempts alike; in a list each is a name, or what it differs in."""
    assert 1 == len(Config().choices)
    given = {**GATED, "attempts": ["codex", {"hint": "test first"}, {}]}
    named, hinted, usual = parse_config(given).choices
    assert ("codex", None) == (named.agent, named.hint)
    assert (None, "test first") == (hinted.agent, hinted.hint)
    assert (usual,) * 3 == parse_config({**GATED, "attempts": 3}).choices


def test_slots(tmp_path: Path) -> None:
    """One slot is the default and needs nothing; with a gate there can be up to 64."""
    assert (Config().slots, Config().slot_folder, Config().land_on) == (1, None, "follow")
    raw = {**GATED, "slots": 64, "slotFolder": "../elsewhere", "landOn": "branch"}
    write(tmp_path, json.dumps(raw))
    config = load_config(tmp_path)
    assert (config.slots, config.slot_folder, config.land_on) == (64, "../elsewhere", "branch")


@pytest.mark.parametrize("text", ["\ufeff{}", "{}\n", ' {"maxIterations": 10}'])
def test_an_empty_object_is_all_defaults(tmp_path: Path, text: str) -> None:
    """An object without settings is all defaults, with a byte order mark or without."""
    write(tmp_path, text)
    assert Config() == load_config(tmp_path)


@pytest.mark.parametrize(
    ("written", "expected"),
    [("", None), ("  \t", None), (None, None), (" npm ci ", "npm ci"), ("a\nb", "a\nb")],
)
def test_commands_are_trimmed_and_blank_ones_absent(
    tmp_path: Path, written: str | None, expected: str | None
) -> None:
    """A blank command is None; whitespace around a command is stripped."""
    write(tmp_path, json.dumps({"setupCommand": written, "checkCommand": written}))
    config = load_config(tmp_path)
    assert (expected, expected) == (config.setup_command, config.check_command)


def test_numbers(tmp_path: Path) -> None:
    """Seconds may be written without a fraction, and a large budget is none."""
    write(tmp_path, '{"commandTimeout": 90, "budget": 1' + "0" * 306 + "}")
    config = load_config(tmp_path)
    assert (90.0, 1e306) == (config.command_timeout, config.budget)


SHOWN = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(str.strip)
FALLBACKS = st.lists(
    st.builds(FallbackAgent, agent=SHOWN, model=st.none() | SHOWN, path=st.none() | SHOWN),
    max_size=3,
)
ROLE_AGENTS: st.SearchStrategy[dict[Role, RoleAgent]] = st.dictionaries(
    st.sampled_from(ROLES),
    st.builds(
        RoleAgent,
        agent=st.none() | SHOWN,
        model=st.none() | SHOWN,
        path=st.none() | SHOWN,
        fallback=st.none() | FALLBACKS,
    ),
    max_size=3,
)


class TestSaving:
    def test_the_six_keys_are_always_saved(self, tmp_path: Path) -> None:
        """The original's keys are saved, absent ones left out, others if not the default."""
        save_config(tmp_path, Config(setup_command="make", gate="context", max_tasks_per_plan=7))
        assert (
            '{\n  "specsPath": ".specs",\n  "maxIterations": 10,\n  "maxTasksPerPlan": 7,\n'
            '  "setupCommand": "make",\n  "commit": false,\n  "audit": false\n}\n'
        ) == config_path(tmp_path).read_text()

    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    commands = SHOWN.filter(lambda text: "\0" not in text)
    seconds = st.floats(0.001, 1e6)

    @settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture],
        max_examples=2 * settings().max_examples,
    )
    @given(
        st.builds(
            Config,
            specs_path=SHOWN,
            max_iterations=st.integers(1, 10**9),
            max_tasks_per_plan=st.integers(1, 10**9),
            setup_command=st.none() | commands,
            check_command=commands,
            setup_strict=st.booleans(),
            command_timeout=st.none() | seconds,
            gate=st.sampled_from(["context", "block", "clean"]),
            baseline=st.sampled_from(["run", "skip", "must-pass"]),
            commit=st.booleans(),
            commit_timeout=seconds,
            audit=st.booleans(),
            agent=SHOWN,
            agent_path=st.none() | texts,
            model=st.none() | texts,
            agents=ROLE_AGENTS,
            fallback=FALLBACKS,
        )
    )
    def test_configurations_round_trip(self, tmp_path: Path, config: Config) -> None:
        """Any configuration survives saving, loading and a change, and leaves no other file."""
        save_config(tmp_path, config)
        assert config == load_config(tmp_path)
        assert [CONFIG_FILE] == [path.name for path in tmp_path.iterdir()]
        assert config.agents == changed_config(config, {"max_retries": 1}).agents

    def test_its_permissions_are_kept(self, tmp_path: Path) -> None:
        """A file with a notifier's password stays private."""
        save_config(tmp_path, Config())
        config_path(tmp_path).chmod(0o600)
        save_config(tmp_path, Config(notify="tgram://secret/1"))
        assert 0o600 == stat.S_IMODE(config_path(tmp_path).stat().st_mode)

    def test_a_symlink_is_kept(self, tmp_path: Path) -> None:
        """A configuration shared by several projects is written at its target."""
        shared = tmp_path / "shared.json"
        shared.write_text("{}")
        config_path(tmp_path).symlink_to(shared)
        save_config(tmp_path, Config(notify="tgram://secret/1"))
        assert config_path(tmp_path).is_symlink()
        assert '"notify"' in shared.read_text()

    def test_a_missing_folder(self, tmp_path: Path) -> None:
        """A missing folder is an error that names it."""
        place = tmp_path / "file"
        place.write_text("")
        with pytest.raises(ConfigError, match=r"file/.* cannot be written: "):
            save_config(place, Config())

    def test_a_failure_keeps_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If the new file cannot replace the old one, the old one remains, and nothing else."""
        save_config(tmp_path, Config(max_iterations=3))

        def refuse(*_: object) -> None:
            raise OSError(28, os.strerror(28))

        monkeypatch.setattr(Path, "replace", refuse)
        with pytest.raises(ConfigError, match="No space left"):
            save_config(tmp_path, Config(max_iterations=4))
        assert 3 == load_config(tmp_path).max_iterations
        assert [CONFIG_FILE] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("maxIteration", "maxIterations"),
        ("maxIterations ", "maxIterations"),
        ("max_iterations", "maxIterations"),
        ("specspath", "specsPath"),
        ("checkcommand", "checkCommand"),
        ("check", "checkCommand"),
        ("agnts", "agents"),
        ("Commit", "commit"),
    ],
)
def test_an_unknown_key_has_a_suggestion(tmp_path: Path, key: str, nearest: str) -> None:
    """A key that is almost right is rejected with the right one as a suggestion."""
    error = refused(tmp_path, json.dumps({key: None}))
    assert f'{CONFIG_FILE}: unknown key "{key}"' == error.message
    assert f'did you mean "{nearest}"?' == error.hint


@pytest.mark.parametrize("key", ["colour", "", "telegram", "modelConfig"])
def test_an_unknown_key_without_a_suggestion_lists_all(tmp_path: Path, key: str) -> None:
    """A key unlike any valid one is rejected, with valid ones in the hint."""
    error = refused(tmp_path, json.dumps({key: "blue"}))
    assert f'{CONFIG_FILE}: unknown key "{key}"' == error.message
    assert error.hint is not None
    assert any(f.alias and f.alias in error.hint for f in Config.model_fields.values())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("maxIterations", 0),
        ("maxIterations", -1),
        ("maxIterations", 2.5),
        ("maxIterations", True),
        ("maxIterations", "3"),
        ("maxTasksPerPlan", 0),
        ("commit", "yes"),
        ("commit", 1),
        ("audit", None),
        ("specsPath", ""),
        ("specsPath", "  "),
        ("specsPath", None),
        ("specsPath", ["a"]),
        ("setupCommand", False),
        ("checkCommand", ["make", "check"]),
        ("commandTimeout", 0),
        ("commandTimeout", -5),
        ("commandTimeout", 1e300),
        ("commitTimeout", None),
        ("gate", "hard"),
        ("baseline", True),
        ("baseline", "block"),
        ("push", "origin"),
        ("push", "/main"),
        ("push", "origin/+main"),
        ("push", "--all/main"),
        ("push", "origin//main"),
        ("push", "host:x/main"),
        ("notify", 7),
        ("notify", ["bell", 7]),
        ("notify", {"on": ["often"]}),
        ("notify", {"on": "end"}),
        ("notify", {"at": "7 am"}),
        ("notify", {"at": "24:00"}),
        ("notify", {"command": " "}),
        ("notify", {"to": "belll"}),
        ("loginCheck", "no"),
        ("allowSleep", 1),
        ("agent", " "),
        ("model", 4),
        ("setupCommand", {"very": "long " * 100}),
    ],
    ids=lambda value: str(value)[:24].encode("ascii", "replace").decode(),
)
def test_an_invalid_value_is_reported_with_its_key(tmp_path: Path, key: str, value: Any) -> None:
    """A value of a wrong type or range is rejected with place and value in one short line."""
    error = refused(tmp_path, json.dumps({"maxIterations": 3, key: value}))
    assert error.message.startswith(f'{CONFIG_FILE}: "{key}')
    assert ": must " in error.message
    assert len(error.message) < 250


TELEGRAM = {"token": "env:SHOP_BOT", "chat": 42}
INVALID: list[tuple[dict[str, Any], str]] = [
    # Slots and attempts need a gate.
    ({"slots": 2}, 'requires "commit": true and a "checkCommand"'),
    ({"slots": 2, "commit": True}, 'requires a "checkCommand"'),
    ({"slots": 2, "commit": True, "checkCommand": " "}, 'requires a "checkCommand"'),
    ({"slots": 2, "checkCommand": "make"}, 'requires "commit": true,'),
    ({**GATED, "slots": 2, "push": "origin/main"}, '"push" requires a single slot'),
    ({**GATED, "landOn": "branch"}, '"landOn": "branch" requires more than one slot'),
    ({**GATED, "slots": 0}, '"slots" is 0'),
    ({**GATED, "slots": 401}, '"slots" is 401'),
    ({**GATED, "slots": "4"}, '"slots" is "4"'),
    ({**GATED, "slots": 2, "slotFolder": " "}, "must name a folder"),
    ({**GATED, "slots": 2, "slotFolder": "a\0b"}, "must name a folder"),
    ({**GATED, "landOn": "pr"}, '"landOn": "pr" requires more than one slot'),
    ({"attempts": 2}, 'more than one attempt requires "commit": true and a "checkCommand"'),
    ({**GATED, "attempts": 2, "push": "origin/main"}, '"push" requires a single attempt'),
    ({**GATED, "attempts": 9}, '"attempts" is 9: must be at most 8'),
    ({**GATED, "attempts": []}, "must be 1 to 8 attempts"),
    ({**GATED, "attempts": "3"}, "must be a whole number or a list"),
    ({**GATED, "attempts": [{"hints": "x"}]}, 'unknown key "hints" in "attempts[0]"'),
    ({**GATED, "choose": "worst"}, 'must be "first" or "best"'),
    ({**GATED, "slots": 2, "landOn": "tag"}, '"landOn" is "tag"'),
    # The guard.
    ({"guard": "on"}, 'must be "roles", "full" or "off"'),
    ({"guard": False}, '"guard" is false: must be "roles", "full" or "off"'),
    ({"profile": ""}, 'unknown profile ""; valid profiles: base, node, bun, python, ruby, go'),
    ({"profile": ["go", "phyton"]}, 'unknown profile "phyton"; did you mean "python"?'),
    ({"profile": 3}, '"profile" is 3: must be a string or a list'),
    ({"allowCommands": None}, "is null: must be a list or an object"),
    ({"allowCommands": "make"}, "must be a list or an object"),
    ({"allowCommands": {"all": ["make"]}}, 'unknown key "all" in "allowCommands"'),
    ({"allowCommands": {"run": "make"}}, '"allowCommands.run" is "make": must be a list'),
    ({"allowCommands": [3]}, '"allowCommands[0]" is 3: must be a string'),
    ({"allowCommands": ["npm run"]}, 'must be a plain name such as "make"'),
    ({"allowCommands": {"base": ["./build"]}}, "plain name"),
    ({"allowPkillTargets": ["bin/server"]}, "plain name"),
    ({"allowPkillTargets": {"run": ["server"]}}, "must be a list"),
    ({"allowDestructive": 1}, "must be true or false"),
    # The cluster.
    ({"cluster": 7}, '"cluster" is 7: must be a string or an object'),
    ({"cluster": "two words"}, '"cluster" is "two words": must be an address such as'),
    ({"cluster": {"adress": "local"}}, 'unknown key "adress" in "cluster"'),
    ({"cluster": {"ca": "ca.pem", "key": "key.pem"}}, "ca, cert and key: cert missing"),
    ({"cluster": {"ca": "ca.pem"}}, "cert and key missing"),
    ({"cluster": {"needs": {"gpu": 0}}}, '"cluster.needs.gpu" is 0: must be greater than 0'),
    ({"cluster": {"needs": {"two words": 1}}}, '"two words" in "cluster.needs": must be'),
    ({"cluster": {"needs": ["gpu"]}}, '"cluster.needs" is ["gpu"]: must be an object'),
    ({"cluster": {"insecure": "yes"}}, '"cluster.insecure" is "yes": must be true or false'),
    ({"cluster": {"remote": "--upload-pack=x"}}, '"cluster.remote" is "--upload-pack=x"'),
    # Notifications.
    (
        {"notify": {"on": ["often"]}},
        '"notify.on[0]" is "often": must be "end", "failed", "spec_issue"',
    ),
    ({"notify": {"when": []}}, 'unknown key "when" in "notify"'),
    ({"notify": {"to": "tgram//x"}}, 'is "tgram//x": must be "bell", "none", or an Apprise URL'),
    ({"notify": {"at": "soon"}}, '"notify.at" is "soon": must be a time such as "07:00"'),
    # Chats.
    ({"chat": {"telegram": {"token": TOKEN, "chat": 42}}}, 'token" must be "env:NAME" or'),
    ({"chat": {"telegram": {"token": "env:A-B", "chat": 42}}}, '"chat.telegram.token" must be'),
    ({"chat": {"telegram": {"token": "file:token", "chat": 42}}}, 'token" must be'),
    ({"chat": {"telegram": {"chat": 42}}}, '"chat.telegram" has no "token"'),
    ({"chat": {"telegram": {**TELEGRAM, "chat": "me"}}}, "must be a whole number"),
    ({"chat": {"telegram": {**TELEGRAM, "url": "ftp://x"}}}, "must be a URL such as"),
    ({"chat": {"ntfy": {"topic": "shop"}}}, '"chat.ntfy.topic" must be "env:NAME"'),
    ({"chat": {"own": {"channel": " "}}}, "must not be blank"),
    ({"chat": {"matrix": {}}}, 'unknown key "matrix"'),
    # Agents.
    ({"agents": {"reviwing": "codex"}}, '"reviwing" in "agents"; did you mean "reviewing"?'),
    ({"agents": {"x": "codex"}}, 'unknown key "x" in "agents"; valid keys: planning, '),
    ({"agents": "codex"}, '"agents" is "codex": '),
    ({"agents": None}, 'correct the value; for example "agents": {'),
    ({"agents": ["codex"]}, '"agents" is ["codex"]: '),
    ({"agents": {"planning": 5}}, '"agents.planning" is 5: must be the name of an agent, or an'),
    ({"agents": {"planning": None}}, '"agents.planning" is null: must be the name'),
    (
        {"agents": {"planning": {"modle": "m"}}},
        'unknown key "modle" in "agents.planning"; did you mean "model"?',
    ),
    ({"agents": {"planning": {"model": 5}}}, '"agents.planning.model" is 5: '),
    ({"agents": {"planning": " "}}, '"agents.planning" is " ": must not be blank; correct'),
    (
        {"agents": {"planning": {"fallback": "codex"}}},
        '"agents.planning.fallback" is "codex": ',
    ),
    (
        {"agents": {"planning": {"fallback": [{"model": "m"}]}}},
        '"agents.planning.fallback[0]" has no "agent"; add it',
    ),
    ({"fallback": "codex"}, '"fallback" is "codex": must be a list'),
    ({"fallback": ["codex", 5]}, '"fallback[1]" is 5: '),
    ({"fallback": [""]}, '"fallback[0]" is "": must not be blank'),
    (
        {"fallback": [{"agent": "codex", "fallback": []}]},
        'unknown key "fallback" in "fallback[0]"; valid keys: agent, model, path',
    ),
    # Half of a surrogate pair, other odd texts, and numbers out of range.
    ({"g\ud800": 1}, "a key must be text without half a surrogate pair"),
    ({"gate": "\ud800"}, '"gate" is "\ud800": must be text without half a surrogate pair'),
    ({"checkCommand": "a\0b"}, ": must not contain NUL"),
    ({"budget": -1}, '"budget" is -1: must be greater than 0'),
    ({"quotaReserve": 1}, '"quotaReserve" is 1: must be less than 1'),
    ({"quotaReserve": -0.1}, '"quotaReserve" is -0.1: must be at least 0'),
    ({"overage": "ask"}, '"overage" is "ask": must be "pay" or "stop"'),
    ({"maxDuration": 1e300}, '"maxDuration" is 1e+300: must be at most 31622400'),
    # URLs, which may contain passwords.
    ({"push": {"slack": "slack://geheim"}}, "://…"),
    ({"push": "origin://me:geheim@host/main"}, "://…"),
    # Keys of an older version.
    ({"hookTimeout": 30}, '"hookTimeout" was removed: '),
    ({"hookTimeout": 30}, "; delete the key"),
]


@pytest.mark.parametrize(("raw", "words"), INVALID, ids=lambda value: ascii(value)[:40])
def test_invalid_settings(raw: dict[str, Any], words: str, tmp_path: Path) -> None:
    """An invalid setting is rejected with its place and what it must be; no secret is shown."""
    error = refused(tmp_path, json.dumps(raw))
    assert error.message.startswith(f"{CONFIG_FILE}: ")
    assert error.hint
    assert words in f"{error.message}; {error.hint}"
    assert not [
        secret for secret in (TOKEN, "geheim") if secret in f"{error.message}; {error.hint}"
    ]
    assert len(error.message) < 250


_VALUES: list[dict[str, Any]] = [
    {"acp": {"mine": {"command": ["my-agent", "--acp"]}}},
    {"agents": {"planning": "codex", "audit": {"model": "haiku"}}},
    {"agents": {"reviewing": {"fallback": ["claude", {"agent": "codex", "model": "x"}]}}},
    {"fallback": ["codex", {"agent": "gemini", "path": "/opt/gemini"}]},
    {"cluster": {"address": "tls://host:8786", "detach": True, "needs": {"gpu": 1.0}}},
    {"backlogSources": [{"type": "github", "label": "agent", "closeIssues": True}]},
    {"pullRequests": {"draft": True}},
    {"hooks": {"item.landed": "make"}},
    {"notify": {"to": "none", "on": ["end"]}},
    {"notify": {"to": ["bell"], "command": "mail me", "on": list(OCCASIONS), "at": None}},
    {"guard": "full", "profile": "node", "allowCommands": ["make", "g++"]},
    {"guard": "off", "profile": ["base", "go", "extended"], "allowPkillTargets": ["server"]},
    {"allowCommands": {"base": ["make"], "sync": []}, "allowDestructive": True},
    {"allowCommands": {}, "profile": []},
]


@pytest.mark.parametrize("raw", _VALUES, ids=lambda raw: json.dumps(raw)[:40])
def test_values_are_written_as_read(raw: dict[str, Any], tmp_path: Path) -> None:
    """A value is dumped and saved as it was read, with a change of another one too."""
    config = parse_config(raw)
    given = config.model_dump(by_alias=True, exclude_unset=True)
    assert raw == given == json.loads(json.dumps(given))
    assert given == json.loads(config.model_dump_json(by_alias=True, exclude_unset=True))
    assert config == parse_config(config.model_dump(by_alias=True)) == changed_config(config, {})
    assert config != Config()
    changed = changed_config(config, {"max_iterations": 3})
    save_config(tmp_path, changed)
    assert changed == load_config(tmp_path)


@pytest.mark.parametrize(
    ("raw", "name", "expected"),
    [
        ({}, "cluster_settings", ClusterSettings(address=None, remote="origin", needs={})),
        (
            {"notify": {}},
            "notifications",
            NotifySettings(to="bell", on=["end", "failed", "spec_issue", "login"], at="07:00"),
        ),
        *(
            ({"notify": short}, "notifications", NotifySettings(to=short))
            for short in ("bell", "none", ["bell", "ntfy://topic"], list[str]())
        ),
        (
            {"cluster": "tls://host:8786"},
            "cluster_settings",
            ClusterSettings(address="tls://host:8786"),
        ),
        ({"cluster": {}}, "cluster_settings", ClusterSettings()),
        ({"agents": {"planning": "codex"}}, "agents", {"planning": RoleAgent(agent="codex")}),
        (
            {"agents": {"audit": {"path": "bin/x", "fallback": ["a", {"agent": "b"}]}}},
            "agents",
            {
                "audit": RoleAgent(
                    path="bin/x", fallback=[FallbackAgent(agent="a"), FallbackAgent(agent="b")]
                )
            },
        ),
        ({"fallback": ["codex"]}, "fallback", [FallbackAgent(agent="codex")]),
    ],
)
def test_short_forms_and_defaults(raw: dict[str, Any], name: str, expected: object) -> None:
    """A name, a string or a list stands for the model; what is left out is the default."""
    assert expected == getattr(parse_config(raw), name)


def test_values_have_their_types() -> None:
    """Values are instances of the imported models, by whichever name a key is given."""
    config = Config(pull_requests=PullRequestSettings(draft=True), notify={"on": ["end"]})  # type: ignore[arg-type]
    assert config.pull_requests.draft
    assert isinstance(config.notify, NotifySettings)


def test_agents_and_clusters_are_written_in_the_shortest_form(tmp_path: Path) -> None:
    """An agent with only a name is saved as that; defaults are left out."""
    agents: dict[Role, RoleAgent] = {"audit": RoleAgent(agent="codex")}
    cluster = ClusterSettings(address="local", detach=True)
    fallback = [FallbackAgent(agent="x", model="m")]
    save_config(tmp_path, Config(agents=agents, fallback=fallback, cluster=cluster))
    raw = json.loads(config_path(tmp_path).read_text())
    assert {"audit": "codex"} == raw["agents"]
    assert [{"agent": "x", "model": "m"}] == raw["fallback"]
    assert {"address": "local", "detach": True} == raw["cluster"]
    save_config(tmp_path, Config())
    assert not {"agents", "fallback"} & json.loads(config_path(tmp_path).read_text()).keys()


def test_changing_keeps_defaults_unset() -> None:
    """Changing a configuration marks the changed values and the agent as given, and no other."""
    changed = changed_config(parse_config({"audit": True}), {"max_iterations": 3})
    assert {"agent", "audit", "max_iterations"} == changed.model_fields_set


def test_a_part_of_a_section_is_left_out() -> None:
    """The exclusions of a dump apply within a section, too."""
    config = parse_config({"pullRequests": {"repo": "a/b", "draft": True}})
    dumped = config.model_dump(include={"pull_requests"}, exclude={"pull_requests": {"repo"}})
    assert "repo" not in dumped["pull_requests"]
    assert dumped["pull_requests"]["draft"]
