"""git: the one room that starts it, and what cuggino knows of a repository.

`Git` runs its commands: those that read or write a work tree in a view, where programs that an
agent has named can do no harm. `commit_of` and `current_branch` read HEAD from files,
`commit_obstacles` tells what would prevent commits, `program_settings` which settings start
programs, `repository_state` the state for people.
"""

from cuggino.git.branch import BranchRefused, current_branch, protected_branch
from cuggino.git.clones import slot_home
from cuggino.git.conversion import settings_of
from cuggino.git.head import commit_at_head, commit_being_merged, commit_of, is_ancestor
from cuggino.git.history import History
from cuggino.git.layout import Layout, checked_out, layout_of
from cuggino.git.listings import (
    EACH_REF,
    EXECUTABLE,
    LINK,
    MODULE,
    PLAIN,
    STATUS,
    STATUS_V2,
    UNMERGED,
    Changed,
    changed_files,
    commits_of_refs,
    differences,
    index_files,
    tracked_changes,
    tree_files,
    unmerged_files,
)
from cuggino.git.locks import remove_stale_locks
from cuggino.git.messages import STALE, command_of, failed, gist, joined, push_gist
from cuggino.git.nested import distrusted_repositories
from cuggino.git.objects import Entry, Objects, blob_name, read_file
from cuggino.git.obstacles import (
    CommitObstacle,
    commit_obstacles,
    git_failure,
    git_refusal,
    has_work_tree,
)
from cuggino.git.program import (
    IDENTITY,
    LIMIT_S,
    NONE,
    SSH_COMMAND,
    Git,
    git_environment,
    ssh_environment,
)
from cuggino.git.settings import (
    STORED_SCOPES,
    GitSetting,
    git_folder,
    list_settings,
    looking_environment,
    ordinary_repository,
    program_settings,
    settings_in_list,
)
from cuggino.git.signing import make_commit
from cuggino.git.state import RepositoryState, repository_state
from cuggino.git.trees import diff_trees, files_of
from cuggino.git.trial import view_obstacles
from cuggino.git.work_tree import MAX_FILE, REFS, Contents, WorkTree, write_private
from cuggino.processes import Said

__all__ = [
    "EACH_REF",
    "EXECUTABLE",
    "IDENTITY",
    "LIMIT_S",
    "LINK",
    "MAX_FILE",
    "MODULE",
    "NONE",
    "PLAIN",
    "REFS",
    "SSH_COMMAND",
    "STALE",
    "STATUS",
    "STATUS_V2",
    "STORED_SCOPES",
    "UNMERGED",
    "BranchRefused",
    "Changed",
    "CommitObstacle",
    "Contents",
    "Entry",
    "Git",
    "GitSetting",
    "History",
    "Layout",
    "Objects",
    "RepositoryState",
    "Said",
    "WorkTree",
    "blob_name",
    "changed_files",
    "checked_out",
    "command_of",
    "commit_at_head",
    "commit_being_merged",
    "commit_obstacles",
    "commit_of",
    "commits_of_refs",
    "current_branch",
    "diff_trees",
    "differences",
    "distrusted_repositories",
    "failed",
    "files_of",
    "gist",
    "git_environment",
    "git_failure",
    "git_folder",
    "git_refusal",
    "has_work_tree",
    "index_files",
    "is_ancestor",
    "joined",
    "layout_of",
    "list_settings",
    "looking_environment",
    "make_commit",
    "ordinary_repository",
    "program_settings",
    "protected_branch",
    "push_gist",
    "read_file",
    "remove_stale_locks",
    "repository_state",
    "settings_in_list",
    "settings_of",
    "slot_home",
    "ssh_environment",
    "tracked_changes",
    "tree_files",
    "unmerged_files",
    "view_obstacles",
    "write_private",
]
