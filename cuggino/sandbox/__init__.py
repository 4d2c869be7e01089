"""The sandbox: each role's view of the project, enforced by the operating system.

`role_view` returns the paths that a role may write, `probe` the best `Boundary` that this machine
can enforce; `Boundary.enclose` turns a view into an `Enclosure`: the words in front of a command.
"""

from cuggino.sandbox.boundary import NO_BOUNDARY, Boundary, Engine, probe
from cuggino.sandbox.enclosure import Enclosure
from cuggino.sandbox.home import home_of, named_paths
from cuggino.sandbox.logins import LOGIN_VARIABLES, login_files, without_logins
from cuggino.sandbox.protected import Protected, protected_for
from cuggino.sandbox.view import (
    ROWS,
    RoleView,
    ViewRole,
    git_folders,
    make_granted,
    role_view,
    writes_project,
)

__all__ = [
    "LOGIN_VARIABLES",
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
    "login_files",
    "make_granted",
    "named_paths",
    "probe",
    "protected_for",
    "role_view",
    "without_logins",
    "writes_project",
]
