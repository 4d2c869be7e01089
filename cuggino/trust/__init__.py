"""Trust in a project: the commands that it brings, and those that a user has accepted.

A cloned project can name programs that a run would start. `project_commands` lists them, and a
`TrustStore` remembers the digests of those that the user has accepted::

    store = TrustStore(Path.home() / ".local/state/cuggino/trust")
    for command in store.unseen(project):
        print(command.place, command.text)

The command line asks before it starts a run. A program that uses the library decides for itself.
"""

from cuggino.trust.commands import ProjectCommand, project_commands
from cuggino.trust.store import TrustedProject, TrustStore, check_acceptable

__all__ = [
    "ProjectCommand",
    "TrustStore",
    "TrustedProject",
    "check_acceptable",
    "project_commands",
]
