"""The files of a coding run: plan, progress log, review, command output (CUG-060 to CUG-063)."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from cuggino.domain import unticked_tasks
from cuggino.errors import SessionError
from cuggino.events import LlmMarkerEvent
from cuggino.files import read_regular, storing, write_atomic
from cuggino.protection import own_write

PROGRESS_LOG = "# Progress Log"


class Session:
    """`<id>.md` in the wip folder and its companions; created by `Workspace.session`."""

    def __init__(
        self, session_id: str, folder: Path, *, reviewer: int = 0, reviewers: int = 1
    ) -> None:
        self.id = session_id
        self.keep = False
        """Keep the files at the end, because the run may be resumed."""
        self.session_file = folder / f"{session_id}.md"
        """The plan and the progress log, which all agents of the run read."""
        self.plan_file = folder / f"{session_id}.planning" / "plan.md"
        """The file that the planning agent writes, in its own folder."""
        self._review_files = tuple(
            folder / f"{session_id}.reviewing{f'-{n}' if n else ''}" / "review.md"
            for n in range(reviewers)
        )
        self.review_file = self._review_files[reviewer]
        """The file that the reviewing agent writes, in its own folder."""
        self.tools_folder = folder / f"{session_id}.tools"
        """The folder through which agents call tools that this process runs."""
        self.hands = folder / f"{session_id}.hands"
        """The journals of the tasks that several hands work on."""
        self.instructions = folder / f"{session_id}.instructions"
        """Copies of the files that instruct agents, as the run found them."""
        self.check_file = folder / f"{session_id}.check.txt"
        """The whole output of the latest check command."""
        self.copy_check_file = folder / f"{session_id}.copy.txt"
        """The whole output of the latest check command in a copy of the project."""
        self.setup_file = folder / f"{session_id}.setup.txt"
        """The whole output of the latest setup command."""
        self.verified_file = folder / f"{session_id}.verified.json"
        """The ids of the verified deliverables."""

    @property
    def files(self) -> tuple[Path, ...]:
        return (
            self.session_file,
            self.plan_file,
            *self._review_files,
            *self.outputs,
            self.verified_file,
        )

    @property
    def outputs(self) -> tuple[Path, ...]:
        """The files that commands of the run fill."""
        return self.check_file, self.copy_check_file, self.setup_file

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders in which agents deliver: they may write a file beside and rename it."""
        reviews = (file.parent for file in self._review_files)
        return (self.plan_file.parent, *reviews, self.tools_folder)

    def reviewers(self, count: int) -> tuple[Session, ...]:
        """Return this session for each of several reviewers at once, each with its review file."""
        wip = self.session_file.parent
        return tuple(Session(self.id, wip, reviewer=n, reviewers=count) for n in range(count))

    def create(self) -> None:
        """Create an empty session file, unless a resumed run has left one."""
        with storing("create session", self.session_file):
            self.session_file.touch()

    def size(self) -> int:
        """Return the length of the session file in bytes, 0 if it was removed."""
        with storing("read session", self.session_file):
            return self.session_file.stat().st_size if self.session_file.exists() else 0

    def text_since(self, size: int) -> str:
        """Return what was appended to the session file after its first `size` bytes."""
        with storing("read session", self.session_file), suppress(FileNotFoundError, ValueError):
            return read_regular(self.session_file)[size:].decode("utf-8", "replace")
        return ""

    def rewind(self, size: int) -> None:
        """Truncate the file to `size`, because the stage that appended starts again."""
        with storing("rewind session", self.session_file):
            if self.session_file.exists() and self.session_file.stat().st_size > size:
                os.truncate(self.session_file, size)

    def append(self, marker: LlmMarkerEvent) -> None:
        """Append the marker to the session file, as the block that the agent wrote."""
        tag = marker.tag_name()
        block = f"\n<{tag}>\n{marker.content}\n</{tag}>\n".encode(errors="replace")
        with (
            storing("append marker", self.session_file),
            own_write(self.session_file, block, appends=True),
            self.session_file.open("ab") as file,
        ):
            file.write(block)

    def commit_plan(self) -> None:
        """Replace the session file by the plan file, followed by an empty progress log.

        A plan without a `# Plan` heading gets one.

        Raises:
            SessionError: the planning agent wrote no plan file, or a blank one.
        """
        try:
            plan = _text(self.plan_file).strip()
        except (OSError, ValueError) as error:
            raise SessionError("commitTempPlan", self.id, hint=_NO_PLAN) from error
        if not plan:
            raise SessionError("commitTempPlan", self.id, hint=_NO_PLAN)
        if not plan.startswith("# Plan"):
            plan = f"# Plan\n\n{plan}"
        with storing("commit plan", self.session_file):
            self.replace_plan(plan)
            self.plan_file.unlink()

    def plan_text(self) -> str:
        """Return what the planning agent has written; "" if there is nothing to read."""
        try:
            return _text(self.plan_file).strip()
        except (OSError, ValueError):
            return ""

    def committed_plan(self) -> str:
        """Return the plan in the session file."""
        with storing("read plan", self.session_file):
            return _text(self.session_file).partition(f"\n\n{PROGRESS_LOG}\n")[0].strip()

    def replace_plan(self, plan: str) -> None:
        """Replace the plan in the session file, before the first implementing agent."""
        with storing("replace plan", self.session_file):
            write_atomic(self.session_file, f"{plan}\n\n{PROGRESS_LOG}\n")

    def clear_plan(self) -> None:
        """Make the folder for the plan, and remove what an earlier planning agent has left."""
        with storing("clear plan", self.plan_file):
            self.plan_file.parent.mkdir(exist_ok=True)
            self.plan_file.unlink(missing_ok=True)

    def clear_review(self) -> None:
        """Make the folder for the review, and remove an earlier one."""
        with storing("clear review", self.review_file):
            self.review_file.parent.mkdir(exist_ok=True)
            self.review_file.unlink(missing_ok=True)

    def review_text(self, fallback: str) -> str:
        """Return the review that the agent wrote; without one, write and return `fallback`."""
        with storing("read review", self.review_file):
            try:
                text = _text(self.review_file)
            except (FileNotFoundError, ValueError):
                text = ""
            if text.strip():
                return text
            self.review_file.unlink(missing_ok=True)  # a pipe would block who writes to it
            self.review_file.parent.mkdir(exist_ok=True)
            self.review_file.write_text(fallback, encoding="utf-8", errors="replace")
        return fallback

    def written_review(self) -> str:
        """Return what the reviewing agent has written; "" if there is nothing to read."""
        try:
            return _text(self.review_file).strip()
        except (OSError, ValueError):
            return ""

    def tasks(self) -> tuple[int, int]:
        """Return the unticked tasks of the plan, and the reports of implementing agents since."""
        try:
            text = _text(self.session_file)
        except (OSError, ValueError):
            return 0, 0
        plan, heading, log = text.partition(f"\n{PROGRESS_LOG}\n")
        if not heading:
            return 0, 0
        return unticked_tasks(plan), len(_REPORTS.findall(log))

    def remove(self) -> None:
        wip = self.session_file.parent
        older = (wip / f"{self.id}.plan.md", wip / f"{self.id}.review.md")
        for file in (*self.files, *older):
            with storing("remove session", file):
                file.unlink(missing_ok=True)
        reviews = wip.glob(f"{self.id}.reviewing-*")
        for folder in (*self.folders, *reviews, self.hands, self.instructions):
            with storing("remove session", folder):
                if folder.is_dir() and not folder.is_symlink():
                    shutil.rmtree(folder)


_REPORTS = re.compile(r"^<(?:PROGRESS|DONE|NO_MORE_WORK)>$", re.MULTILINE)


def _text(path: Path) -> str:
    """Return the text of a file that an agent has written.

    Raises:
        ValueError: it is not a regular file, or too large.
        OSError: it is missing or cannot be read.
    """
    text = read_regular(path).decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


_NO_PLAN = "the planning agent declared its plan complete but wrote no plan file"
