"""Files that survive a stage: the workspace, the journals, and the files of a project's loops."""

from cuggino._lazy import lazy

NAMES = {
    "attempt": "AttemptRecord attempt_file forget_attempt read_attempt write_attempt",
    "backlog": "Backlog Survey text_digest",
    "branch": "BranchRefused current_branch protected_branch",
    "control": "KEY_FILE LONGEST_MESSAGE Command ControlFolder",
    "deliverables": "SPEC_FILE STATUS_FILE DeliverableStore LoadedDeliverables VerifiedFile",
    "editing": (
        "DECISIONS LONGEST Written answer_issue move_item read_written rewrite spec_files "
        "unix_lines"
    ),
    "focus": "check_specs check_specs_not_empty holds_specs read_focus read_text_file",
    "jobs": (
        "DONE_FILE JOBS_FILE REQUIREMENTS_FOLDER SPECIFICATION_FILE JobStore "
        "LoadedJobs UnverifiedJobs check_requirement is_done remove_done "
        "write_done"
    ),
    "journal": (
        "Entry FinishedStage Journal JournalFile RunOrigin decode_outcome encode_outcome find_run "
        "finished_stages has_ended iter_entries list_journals origin_of prune read_journal "
        "run_totals scan_journal"
    ),
    "lock": "LockOwner",
    "moving": "digest_of",
    "origins": "Origin Origins imported_name",
    "proposals": "Proposal Proposals",
    "served": "announce_page served_page",
    "session": "Session",
    "workspace": "WORKSPACE_FOLDER Issue Workspace file_title new_run_id",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
