"""The sandbox: each role's view of the project, enforced by the operating system.

`role_view` returns the paths that a role may write, `probe` the best `Boundary` that this machine
can enforce; `Boundary.enclose` turns a view into an `Enclosure`: the words in front of a command.
"""

from cuggino._lazy import lazy

NAMES = {
    "boundary": "NO_BOUNDARY Boundary Engine probe",
    "enclosure": "Enclosure",
    "home": "home_of named_paths",
    "logins": "LOGIN_VARIABLES login_files without_logins",
    "protected": "Protected protected_for",
    "view": "ROWS RoleView ViewRole git_folders make_granted role_view writes_project",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
