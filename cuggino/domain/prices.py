"""The price of tokens: of known models by their price list, of others by weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from cuggino.errors import ConfigError
from cuggino.events import Usage

TokenCount: TypeAlias = Literal["weighted", "plain"]
"""`weighted`: tokens by `TOKEN_WEIGHTS`; `plain`: input, output and cache writes, one each."""


class Rates(NamedTuple):
    """The price of one token of each class."""

    input: float
    cache_read: float
    cache_creation: float
    output: float

    def of(self, usage: Usage) -> float:
        return (
            self.input * usage.input_tokens
            + self.cache_read * usage.cache_read_tokens
            + self.cache_creation * usage.cache_creation_tokens
            + self.output * usage.output_tokens
        )


TOKEN_WEIGHTS = Rates(input=1.0, cache_read=0.1, cache_creation=1.25, output=5.0)
"""The usual prices of each class of tokens, relative to an input token."""


def count_tokens(usage: Usage | None, count: TokenCount) -> int:
    """Return the tokens that a limit counts.

    `plain` counts every token once, when the model first reads or writes it, and no cache reads.
    """
    if usage is None:
        return 0
    if count == "weighted":
        return round(TOKEN_WEIGHTS.of(usage))
    return usage.input_tokens + usage.output_tokens + usage.cache_creation_tokens


@lru_cache(maxsize=256)
def rates_of(model: str) -> Rates | None:
    """Return the US dollars per token of a model, or None if its price is unknown.

    The model is named as agents report it, such as `gpt-5.5`, or `openrouter/x-ai/grok-4` with its
    provider. The prices are those of the installed `genai-prices`: nothing is downloaded. They are
    base prices, without surcharges for long contexts or faster service.
    """
    # Loaded only here: most commands need no prices.
    from genai_prices import Usage as Tokens, calc_price

    def price(name: str, provider: str | None, **tokens: int) -> float:
        priced = calc_price(Tokens(**tokens), name, provider_id=provider)
        return float(priced.total_price) / _SAMPLE

    for provider, name in _references(model):
        try:
            return Rates(
                input=price(name, provider, input_tokens=_SAMPLE),
                cache_read=price(name, provider, input_tokens=_SAMPLE, cache_read_tokens=_SAMPLE),
                cache_creation=price(
                    name, provider, input_tokens=_SAMPLE, cache_write_tokens=_SAMPLE
                ),
                output=price(name, provider, output_tokens=_SAMPLE),
            )
        except (LookupError, ValueError):
            continue
    return None


_SAMPLE = 1000
"""Tokens whose price is asked: below every long context."""


def _references(model: str) -> Iterator[tuple[str | None, str]]:
    """Yield the providers, if known, and names by which the price list may have the model."""
    name = model.strip()
    yield None, name
    while "/" in name:
        provider, _, name = name.partition("/")
        yield provider, name
        yield None, name


def load_prices() -> None:
    """Load the price list now, as its package may be replaced while a loop works or waits."""
    rates_of("gpt-5.5")


@dataclass(frozen=True, slots=True)
class Pricing:
    """The estimate of the cost of tokens where an agent reports no dollars."""

    price_as: str | None = None
    """The model that prices unknown ones: its input price, and `TOKEN_WEIGHTS`."""

    def check(self) -> None:
        """Check that the price of `price_as` is known.

        Raises:
            ConfigError: it is not.
        """
        if self.price_as is not None and rates_of(self.price_as) is None:
            raise ConfigError(
                f'the price of "{self.price_as}" in priceAs is unknown',
                hint='name a model with a known price, such as "claude-sonnet-4-5" or "gpt-5.5"',
            )

    def rates(self, model: str | None) -> Rates | None:
        """Return the US dollars per token; None if the price is unknown."""
        known = rates_of(model) if model else None
        if known is not None or self.price_as is None:
            return known
        base = rates_of(self.price_as)
        return None if base is None else Rates(*(base.input * weight for weight in TOKEN_WEIGHTS))

    def cost(self, usage: Usage, model: str | None) -> float | None:
        """Return the estimated US dollars of these tokens; None if the price is unknown."""
        rates = self.rates(model)
        return None if rates is None else rates.of(usage)
