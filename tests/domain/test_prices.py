"""The price of tokens, by the bundled price list and by weights."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from genai_prices import data_snapshot

from cuggino.domain import TOKEN_WEIGHTS, Pricing, count_tokens, rates_of
from cuggino.errors import ConfigError
from cuggino.events import Usage

MILLION = 1_000_000
CLASSES = ("input_tokens", "cache_read_tokens", "cache_creation_tokens", "output_tokens")

PRICES = [
    # model as an agent reports it, US dollars of a million tokens of each class
    ("claude-sonnet-4-5", (3, 0.3, 3.75, 15)),
    ("claude-sonnet-4-5-20250929", (3, 0.3, 3.75, 15)),
    ("claude-sonnet-4-5[1m]", (3, 0.3, 3.75, 15)),
    (" Claude-Sonnet-4-5 ", (3, 0.3, 3.75, 15)),
    ("gpt-5.3-codex", (1.75, 0.175, 1.75, 14)),
    ("openai/gpt-5.3-codex", (1.75, 0.175, 1.75, 14)),
    ("github-copilot/claude-sonnet-4.5", (3, 0.3, 3.75, 15)),
    ("anthropic/claude-sonnet-4.5", (3, 0.3, 3.75, 15)),
    ("openrouter/anthropic/claude-sonnet-4.5", (3, 0.3, 3.75, 15)),
    # The base price, however many tokens a session has.
    ("gemini-2.5-pro", (1.25, 0.125, 1.25, 10)),
    # A price list without cache prices charges cached tokens as input.
    ("kimi-k2", (0.57, 0.57, 0.57, 2.3)),
]
UNKNOWN = ["", "gpt-99", "mock/mock-model", "auto", "default", "/", "a/b/c", "<synthetic>", "模型"]


@pytest.mark.parametrize(("model", "dollars"), PRICES)
def test_known_models(model: str, dollars: tuple[float, ...]) -> None:
    """Each class of tokens of a known model has its own price."""
    for name, price in zip(CLASSES, dollars, strict=True):
        assert pytest.approx(price) == Pricing().cost(Usage(**{name: MILLION}), model), name
    each = Usage(**dict.fromkeys(CLASSES, MILLION))
    assert pytest.approx(sum(dollars)) == Pricing().cost(each, model)


@pytest.mark.parametrize("model", [None, *UNKNOWN])
def test_unknown_models(model: str | None) -> None:
    """An unknown model has no price, or that of the named model's input tokens by weights."""
    assert Pricing().cost(Usage(input_tokens=1), model) is None
    weighted = Pricing("claude-sonnet-4-5")
    for name, weight in zip(CLASSES, TOKEN_WEIGHTS, strict=True):
        assert pytest.approx(3 * weight) == weighted.cost(Usage(**{name: MILLION}), model), name


def test_a_known_model_keeps_its_price() -> None:
    """The named model prices unknown models only."""
    pricing = Pricing("claude-sonnet-4-5")
    assert Pricing().rates("gpt-5.3-codex") == pricing.rates("gpt-5.3-codex")


def test_unknown_price_as() -> None:
    """A named model without a known price is an error that names the setting."""
    Pricing().check()
    Pricing("gpt-5.5").check()
    with pytest.raises(ConfigError, match='price of "gpt-99" in priceAs is unknown') as caught:
        Pricing("gpt-99").check()
    assert "claude-sonnet-4-5" in (caught.value.hint or "")
    assert 2 == caught.value.code


def test_nothing_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices come from the installed package: no connection is opened, nothing is updated."""

    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    rates_of.cache_clear()
    assert rates_of("gpt-5.5") is not None
    assert rates_of("gpt-99") is None
    assert not data_snapshot.get_snapshot().from_auto_update
    source = Path(__file__).parents[2] / "cuggino/domain/prices.py"
    assert "UpdatePrices" not in source.read_text(encoding="utf-8")


def test_counted_tokens() -> None:
    """Weighted tokens count by price, plain ones once each without cache reads."""
    used = Usage(
        input_tokens=1000, cache_read_tokens=100_000, cache_creation_tokens=400, output_tokens=20
    )
    assert 1000 + 10_000 + 500 + 100 == count_tokens(used, "weighted")
    assert 1420 == count_tokens(used, "plain")
    assert 0 == count_tokens(None, "weighted")
    # The case of the issue: a plain limit of a million lets millions of cache reads through.
    cached = Usage(input_tokens=MILLION, cache_read_tokens=24 * MILLION)
    assert (MILLION, 3_400_000) == (count_tokens(cached, "plain"), count_tokens(cached, "weighted"))
