"""The tokens and the cost of an Agent Client Protocol session, as its program reports them."""

from __future__ import annotations

from cuggino.agents.acp.profiles import Profile
from cuggino.agents.base.wire import Json, count_or_zero, dict_or_empty, is_number, text_or_none
from cuggino.events import Usage, UsageUpdate


class Spending:
    """The tokens and the cost of one session, excluding those before it was resumed."""

    def __init__(self, profile: Profile) -> None:
        self.usage: Usage | None = None
        self.model: str | None = None
        """The current model, if the program offers a choice of models."""
        self._unit = profile.usage
        self._usage_before = Usage()
        self._cost: float | None = None
        self._cost_before = 0.0

    @property
    def cost(self) -> float | None:
        """The cost in dollars; None if it was not reported."""
        return None if self._cost is None else max(0.0, self._cost - self._cost_before)

    def configured(self, result: Json, option: Json | None) -> None:
        """Record the model by an answer that describes the session; `option` is that of models."""
        models = dict_or_empty(result.get("models"))
        chosen = (option or {}).get("currentValue") or models.get("currentModelId")
        self.model = text_or_none(chosen) or self.model

    def request(self, told: Json) -> list[UsageUpdate]:
        """Count the tokens of a request."""
        if self._unit != "requests":
            return []
        self.usage = _sum(self.usage or Usage(), _usage(told))
        return [UsageUpdate(usage=self.usage, model=self.model)]

    def turn(self, told: Json) -> list[UsageUpdate]:
        """Count the tokens that the answer to a prompt reports."""
        if self._unit not in ("turns", "session") or not told:
            return []
        if self._unit == "session":
            self.usage = _less(_usage(told), self._usage_before)
        else:
            self.usage = _sum(self.usage or Usage(), _usage(told))
        return [UsageUpdate(usage=self.usage, model=self.model)]

    def before(self, told: Json) -> None:
        """Record the earlier usage of a resumed session if the program reports session totals."""
        if self._unit == "session":
            read = count_or_zero(told.get("cachedTokens"))
            self._usage_before = Usage(
                input_tokens=max(0, count_or_zero(told.get("promptTokens")) - read),
                output_tokens=count_or_zero(told.get("completionTokens")),
                cache_read_tokens=read,
            )

    def total(self, told: Json, *, is_before: bool) -> None:
        """Record the cost of the whole session so far; `is_before`: before its first prompt."""
        amount = told.get("amount")
        if told.get("currency") != "USD" or not is_number(amount):
            return
        if is_before:
            self._cost_before = float(amount)
        else:
            self._cost = float(amount)


def _usage(told: Json) -> Usage:
    """Return the tokens; the program counts cached ones as input."""
    read, written = told.get("cachedReadTokens"), told.get("cachedWriteTokens")
    cached = count_or_zero(read) + count_or_zero(written)
    return Usage(
        input_tokens=max(0, count_or_zero(told.get("inputTokens")) - cached),
        output_tokens=count_or_zero(told.get("outputTokens")),
        cache_read_tokens=count_or_zero(read),
        cache_creation_tokens=count_or_zero(written),
    )


def _less(one: Usage, other: Usage) -> Usage:
    return Usage(
        **{name: max(0, getattr(one, name) - getattr(other, name)) for name in Usage.model_fields}
    )


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(**{name: getattr(one, name) + getattr(other, name) for name in Usage.model_fields})
