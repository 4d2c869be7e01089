"""Cassettes: recordings of agents, and their replay."""

from cuggino._lazy import lazy

NAMES = {
    "masking": "without_secrets",
    "recording": "RecordingAgent record_to",
    "replaying": "ReplayAgent replay_of with_speed",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
