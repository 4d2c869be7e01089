"""The needs of an item from its worker, and whether some worker can ever meet them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from cuggino.config import Config, RoleAgent
from cuggino.errors import ConfigError
from cuggino.placement import amounts_of
from cuggino.placement.needs import item_needs, roles_agents, unmet_needs

NEEDS = "---\nneeds: [gpu=2, big]\n---\n# Train it\n"
AMOUNTS = st.dictionaries(st.sampled_from("abc"), st.integers(1, 3).map(float))


def test_amounts() -> None:
    """A name alone is one of it; numbers may have fractions."""
    assert {"claude": 2.0, "gpu": 1.0, "ram": 0.5} == amounts_of(
        ["claude=2", "gpu", "ram = 0.5"], where="x"
    )


@pytest.mark.parametrize("word", ["", "=2", "gpu=", "gpu=0", "gpu=-1", "gpu=x", "a b", "gpu=inf"])
def test_invalid_amount(word: str) -> None:
    """The error names the place and the word."""
    with pytest.raises(ConfigError) as caught:
        amounts_of([word], where="007-train.md")
    assert f'007-train.md: "{word}" is not an amount of a resource' == caught.value.message


def test_agents_are_needed_where_some_worker_offers_them() -> None:
    """An agent that no worker offers takes nothing, as its workers are not limited by it."""
    offered = [{"claude": 2.0}, {"codex": 1.0}]
    assert {"claude": 1.0} == item_needs("# x", agents=["claude", "pi"], offered=offered)
    assert {} == item_needs("# x", agents=["claude"], offered=[])


def test_own_needs_win() -> None:
    """The item's own amounts replace those of the settings."""
    settings = {"gpu": 1.0, "linux": 1.0}
    found = item_needs(NEEDS, agents=[], offered=[], settings=settings)
    assert {"gpu": 2.0, "linux": 1.0, "big": 1.0} == found
    with pytest.raises(ConfigError, match=r"^7\.md: "):
        item_needs("---\nneeds: a b\n---\n", agents=[], offered=[], item="7.md")


@pytest.mark.parametrize(
    ("needs", "why"),
    [
        ({}, ""),
        ({"claude": 1.0}, ""),
        ({"claude": 2.0, "gpu": 1.0}, ""),
        ({"tpu": 1.0}, "no worker offers tpu"),
        ({"gpu": 4.0}, "no worker offers gpu=4, at most gpu=1"),
        ({"codex": 1.0, "gpu": 1.0}, "no worker offers codex and gpu together"),
    ],
)
def test_unmet(needs: dict[str, float], why: str) -> None:
    """A need that no single worker can meet is one sentence."""
    assert why == unmet_needs(needs, [{"claude": 2.0, "gpu": 1.0}, {"codex": 1.0}])


def test_no_workers() -> None:
    """Without workers nothing can be placed, not even an item without needs."""
    assert "the cluster has no workers" == unmet_needs({}, [])


@given(AMOUNTS, st.lists(AMOUNTS, min_size=1))
def test_met_by_one_worker(needs: dict[str, float], offered: list[dict[str, float]]) -> None:
    """The needs are met if and only if a single worker offers all of them."""
    is_met = any(all(one.get(name, 0) >= needs[name] for name in needs) for one in offered)
    assert is_met == (unmet_needs(needs, offered) == "")


def test_agents_of_the_roles() -> None:
    """Roles have the usual agent or their own; fallback agents do not count."""
    config = Config(agents={"reviewing": RoleAgent(agent="codex"), "audit": RoleAgent(agent="pi")})
    assert ("claude", "codex") == roles_agents(config)
    assert ("gemini", "codex") == roles_agents(config, "gemini")
    assert ("claude",) == roles_agents(Config(agents={"planning": RoleAgent(model="opus")}))
