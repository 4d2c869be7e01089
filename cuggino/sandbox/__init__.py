"""The sandbox: each role's view of the project, enforced by the operating system.

`role_view` returns the paths that a role may write, `probe` the best `Boundary` that this machine
can enforce; `Boundary.enclose` turns a view into an `Enclosure`: the words in front of a command.
`Views` makes those of the programs that cuggino itself starts.
"""

from cuggino.sandbox.boundary import NO_BOUNDARY, Boundary, Engine, probe
from cuggino.sandbox.enclosure import Enclosure
from cuggino.sandbox.git_config import settings_in
from cuggino.sandbox.home import home_of, named_paths
from cuggino.sandbox.logins import (
    LOGIN_VARIABLES,
    OTHER_REPOSITORY,
    login_files,
    withhold,
    without_logins,
    without_repository,
)
from cuggino.sandbox.privileges import drop_privileges, privileged_files
from cuggino.sandbox.protected import Protected, protected_for
from cuggino.sandbox.repository import git_folders, top_of
from cuggino.sandbox.search_path import installed, outside_environment, outside_path
from cuggino.sandbox.view import (
    ROWS,
    SNAPSHOTS,
    RoleView,
    ViewRole,
    instruction_paths,
    make_granted,
    role_view,
    writes_files,
    writes_project,
)
from cuggino.sandbox.views import Views, holds_commands, views_of

__all__ = [
    "LOGIN_VARIABLES",
    "NO_BOUNDARY",
    "OTHER_REPOSITORY",
    "ROWS",
    "SNAPSHOTS",
    "Boundary",
    "Enclosure",
    "Engine",
    "Protected",
    "RoleView",
    "ViewRole",
    "Views",
    "drop_privileges",
    "git_folders",
    "holds_commands",
    "home_of",
    "installed",
    "instruction_paths",
    "login_files",
    "make_granted",
    "named_paths",
    "outside_environment",
    "outside_path",
    "privileged_files",
    "probe",
    "protected_for",
    "role_view",
    "settings_in",
    "top_of",
    "views_of",
    "withhold",
    "without_logins",
    "without_repository",
    "writes_files",
    "writes_project",
]
