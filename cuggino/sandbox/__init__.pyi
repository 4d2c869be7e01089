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
from cuggino.sandbox.home import (
    home_of,
)
from cuggino.sandbox.protected import (
    Protected,
    protected_for,
)
from cuggino.sandbox.view import (
    ROWS,
    RoleView,
    ViewRole,
    git_folders,
    make_granted,
    named_paths,
    protected_paths,
    role_view,
    writes_project,
)

__all__ = [
    "NO_BOUNDARY",
    "ROWS",
    "Boundary",
    "Enclosure",
    "Engine",
    "Protected",
    "RoleView",
    "ViewRole",
    "git_folders",
    "home_of",
    "make_granted",
    "named_paths",
    "probe",
    "protected_for",
    "protected_paths",
    "role_view",
    "writes_project",
]
