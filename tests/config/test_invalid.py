"""Values of `.cuggino.json` that are rejected: one sentence with the place, and advice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import CONFIG_FILE, Config
from tests.chat.services import TOKEN
from tests.config.test_config import GATED, refused


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
