"""Every event of cuggino, by category.

An event's base class is its category, and each category has a guard (`is_llm_agent_event`, ...). On
the wire an event is one JSON object with its class name under `_tag`: `dump_event` writes it,
`parse_event` reads it. The events of a loop are loaded when one of them is first used.
"""

from cuggino._lazy import lazy
from cuggino.events.names import NAMES as NAMES

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
