"""Public names of `cuggino.trust`; written by `python -m tests.stubs`."""

from cuggino.trust.commands import (
    ProjectCommand,
    project_commands,
)
from cuggino.trust.store import (
    TrustedProject,
    TrustStore,
    check_acceptable,
)

__all__ = [
    "ProjectCommand",
    "TrustStore",
    "TrustedProject",
    "check_acceptable",
    "project_commands",
]
