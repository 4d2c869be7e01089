"""The category of the events of a running agent (CUG-020)."""

from cuggino.events.base import Event, category_guard


class LlmAgentEvent(Event, category=True):
    """Category: events of a running agent."""


is_llm_agent_event = category_guard(LlmAgentEvent)
