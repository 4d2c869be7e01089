"""Public names of `cuggino.sandbox`; written by `python -m tests.stubs`."""

from cuggino.sandbox.boundary import (
    NO_BOUNDARY,
    Boundary,
    Engine,
    probe,
)
from cuggino.sandbox.enclosure import (
    Enclosure,
)
from cuggino.sandbox.view import (
    ROWS,
    RoleView,
    ViewRole,
    make_granted,
    role_view,
)

__all__ = [
    "NO_BOUNDARY",
    "ROWS",
    "Boundary",
    "Enclosure",
    "Engine",
    "RoleView",
    "ViewRole",
    "make_granted",
    "probe",
    "role_view",
]
