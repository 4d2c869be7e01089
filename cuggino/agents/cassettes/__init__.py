"""Cassettes: recordings of agents, and their replay."""

from cuggino.agents.cassettes.masking import without_secrets
from cuggino.agents.cassettes.recording import RecordingAgent, record_to
from cuggino.agents.cassettes.replaying import ReplayAgent, replay_of, with_speed

__all__ = [
    "RecordingAgent",
    "ReplayAgent",
    "record_to",
    "replay_of",
    "with_speed",
    "without_secrets",
]
