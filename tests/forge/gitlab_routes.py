"""The state of a repository as GitLab shows it: REST, version 4."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from tests.forge.state import ME, IssueState, JobOf, Note, PullState, State
from tests.forge.wire import NOT_FOUND, Reply, Request, Route, paged, routed

_LEVELS = {"OWNER": 50, "MEMBER": 40, "COLLABORATOR": 30, "CONTRIBUTOR": 20}
_STATUSES = {"passed": "success", "failed": "failed", "pending": "running", "skipped": "skipped"}


class GitLabRoutes:
    """Answers what `glab api` asks for, below `/api/v4`."""

    def __init__(self, state: State) -> None:
        self._state = state
        here = r"/api/v4/projects/[^/]+"
        self._routes: list[Route] = [
            ("GET", r"/api/v4/user", lambda request: Reply(200, self._person(ME))),
            ("GET", here, self._project),
            ("GET", here + r"/members/all/(\d+)", self._member),
            ("GET", here + r"/issues", self._issues),
            ("GET", here + r"/issues/(\d+)", self._issue),
            ("PUT", here + r"/issues/(\d+)", self._edit_issue),
            ("GET", here + r"/issues/(\d+)/notes", self._notes),
            ("POST", here + r"/issues/(\d+)/notes", self._add_note),
            ("PUT", here + r"/issues/\d+/notes/(\d+)", self._edit_note),
            ("DELETE", here + r"/issues/\d+/notes/(\d+)", self._delete_note),
            ("GET", here + r"/issues/(\d+)/resource_label_events", self._label_events),
            ("GET", here + r"/merge_requests", self._merges),
            ("POST", here + r"/merge_requests", self._open),
            ("GET", here + r"/merge_requests/(\d+)", self._merge_request),
            ("PUT", here + r"/merge_requests/(\d+)", self._edit),
            ("PUT", here + r"/merge_requests/(\d+)/merge", self._merge),
            ("GET", here + r"/merge_requests/(\d+)/discussions", self._discussions),
            ("GET", here + r"/pipelines/(\d+)/jobs", self._jobs),
            ("GET", here + r"/jobs/(\d+)/trace", self._trace),
            ("GET", here + r"/repository/commits/(\w+)/statuses", self._statuses),
        ]

    def answer(self, request: Request) -> Reply:
        parts = request.path.split("/")
        if len(parts) > 4 and parts[3] == "projects":
            name, old = unquote(parts[4]), self._state.renamed_from
            if old is not None and name == old:
                place = request.path.replace(parts[4], self._state.repo.replace("/", "%2F"), 1)
                status = 301 if request.method == "GET" else 307
                return Reply(status, None, {"Location": self._state.url + place})
            if name != self._state.repo:
                return Reply(404, {"message": "404 Project Not Found"})
        return routed(self._routes, request)

    def _project(self, request: Request) -> Reply:
        return Reply(200, {"path_with_namespace": self._state.repo, "default_branch": "main"})

    def _member(self, request: Request, id: str) -> Reply:
        name = list(self._state.people)[int(id) - 1]
        level = _LEVELS[self._state.people[name]]
        return Reply(200, {**self._person(name), "access_level": level})

    def _issues(self, request: Request) -> Reply:
        label = request.query.get("labels")
        found = [
            self._shown(issue)
            for issue in self._state.issues.values()
            if issue.is_open and (label is None or label in issue.labels)
        ]
        return paged(found, request, self._state.url)

    def _issue(self, request: Request, id: str) -> Reply:
        return Reply(200, self._shown(self._state.issues[int(id)]))

    def _edit_issue(self, request: Request, id: str) -> Reply:
        wanted, issue = request.value, self._state.issues[int(id)]
        for label in filter(None, wanted.get("add_labels", "").split(",")):
            self._state.label(int(id), label, by=ME)
        for label in filter(None, wanted.get("remove_labels", "").split(",")):
            if label in issue.labels:
                self._state.unlabel(int(id), label, by=ME)
        if wanted.get("state_event") == "close":
            self._state.close_issue(int(id), by=ME)
        return Reply(200, self._shown(issue))

    def _notes(self, request: Request, id: str) -> Reply:
        issue = self._state.issues[int(id)]
        texts = {"edited": "changed the description", "retitled": "changed title from **a** to b"}
        activity = [
            {
                "id": 1,
                "body": texts[change.kind],
                "author": self._person(change.by),
                "created_at": change.at,
                "system": True,
            }
            for change in issue.changes
            if change.kind in texts
        ]
        notes = [self._note(note) for note in issue.comments]
        if request.query.get("activity_filter") == "only_activity":
            notes = []
        entries = sorted([*activity, *notes], key=lambda note: str(note["created_at"]))
        return paged(entries, request, self._state.url)

    def _add_note(self, request: Request, id: str) -> Reply:
        self._state.issues[int(id)]
        return Reply(201, self._note(self._state.comment(int(id), request.value["body"], by=ME)))

    def _edit_note(self, request: Request, id: str) -> Reply:
        note = self._state.note(int(id))
        note.body = request.value["body"]
        return Reply(200, self._note(note))

    def _delete_note(self, request: Request, id: str) -> Reply:
        note = self._state.note(int(id))
        self._state.delete_note(note)
        return Reply(204)

    def _label_events(self, request: Request, id: str) -> Reply:
        actions = {"labeled": "add", "unlabeled": "remove"}
        events = [
            {
                "user": self._person(change.by),
                "created_at": change.at,
                "label": {"name": change.label},
                "action": actions[change.kind],
            }
            for change in self._state.issues[int(id)].changes
            if change.kind in actions
        ]
        return paged(events, request, self._state.url)

    def _merges(self, request: Request) -> Reply:
        found = [
            self._pull(pull)
            for pull in reversed(self._state.pulls.values())
            if pull.branch == request.query["source_branch"]
        ]
        return paged(found, request, self._state.url)

    def _open(self, request: Request) -> Reply:
        wanted, state = request.value, self._state
        branch, target = wanted["source_branch"], wanted["target_branch"]
        if state.head(branch) is None:
            return Reply(400, {"message": {"source_branch": ["does not exist"]}})
        if (there := state.of_branch(branch)) is not None:
            said = (
                f"Another open merge request already exists for this source branch: !{there.number}"
            )
            return Reply(409, {"message": [said]})
        title = wanted["title"]
        pull = state.open_pull(
            branch,
            target,
            title.removeprefix("Draft: "),
            wanted["description"],
            draft=title.startswith("Draft: "),
        )
        return Reply(201, self._pull(pull))

    def _merge_request(self, request: Request, id: str) -> Reply:
        return Reply(200, self._pull(self._state.pulls[int(id)]))

    def _edit(self, request: Request, id: str) -> Reply:
        pull = self._state.pulls[int(id)]
        title = request.value["title"]
        pull.is_draft = title.startswith("Draft: ")
        pull.title, pull.body = title.removeprefix("Draft: "), request.value["description"]
        return Reply(200, self._pull(pull))

    def _merge(self, request: Request, id: str) -> Reply:
        pull, wanted = self._state.pulls[int(id)], request.value
        if self._state.head_of(pull) != wanted["sha"]:
            return Reply(409, {"message": "SHA does not match HEAD of source branch"})
        jobs = {job.state for job in self._state.jobs_of(pull)}
        if self._state.is_ready(pull):
            self._state.merge(int(id))
        elif "pending" in jobs and wanted.get("merge_when_pipeline_succeeds"):
            pull.is_queued = True
        else:
            return Reply(405, {"message": "405 Method Not Allowed"})
        return Reply(200, self._pull(pull))

    def _discussions(self, request: Request, id: str) -> Reply:
        pull = self._state.pulls[int(id)]
        threads = [
            {
                **self._note(note),
                "resolvable": True,
                "resolved": note.is_resolved,
                "position": {"new_path": note.path, "new_line": note.line},
            }
            for note in pull.threads
        ]
        asked = [
            {**self._note(note), "resolvable": note.verdict == "CHANGES_REQUESTED"}
            for note in pull.reviews
        ]
        notes = [*map(self._note, pull.comments), *asked, *threads]
        return paged([{"id": "d", "notes": [note]} for note in notes], request, self._state.url)

    def _jobs(self, request: Request, id: str) -> Reply:
        return paged(
            list(map(self._job, self._state.jobs_of(self._state.pulls[int(id)]))),
            request,
            self._state.url,
        )

    def _statuses(self, request: Request, commit: str) -> Reply:
        if not self._state.has_commit(commit):
            return NOT_FOUND
        jobs = self._state.jobs.get(commit, [])
        return paged(list(map(self._job, jobs)), request, self._state.url)

    def _trace(self, request: Request, id: str) -> Reply:
        return Reply(200, self._state.log(int(id)))

    def _shown(self, issue: IssueState) -> dict[str, Any]:
        return {
            "iid": issue.number,
            "title": issue.title,
            "description": issue.body,
            "web_url": f"{self._state.url}/{self._state.repo}/-/issues/{issue.number}",
            "author": self._person(issue.author),
            "state": "opened" if issue.is_open else "closed",
            "labels": list(issue.labels),
            "updated_at": issue.updated,
        }

    def _pull(self, pull: PullState) -> dict[str, Any]:
        states = {"open": "opened", "merged": "merged", "closed": "closed"}
        head = self._state.head_of(pull)
        jobs = self._state.jobs_of(pull)
        return {
            "iid": pull.number,
            "title": f"Draft: {pull.title}" if pull.is_draft else pull.title,
            "web_url": f"{self._state.url}/{self._state.repo}/-/merge_requests/{pull.number}",
            "state": states[pull.state],
            "source_branch": pull.branch,
            "target_branch": pull.target,
            "source_project_id": 2 if pull.is_of_fork else 1,
            "target_project_id": 1,
            "sha": head,
            "description": pull.body,
            "draft": pull.is_draft,
            "merge_commit_sha": pull.merged_as or None,
            "squash_commit_sha": None,
            "merge_when_pipeline_succeeds": pull.is_queued,
            "has_conflicts": self._state.conflicts(pull),
            "merge_status": "cannot_be_merged" if self._state.conflicts(pull) else "can_be_merged",
            "head_pipeline": {"id": pull.number, "sha": head, "ref": pull.branch} if jobs else None,
        }

    def _job(self, job: JobOf) -> dict[str, Any]:
        return {
            "id": job.id,
            "name": job.name,
            "status": _STATUSES[job.state],
            "allow_failure": not job.is_required,
            "web_url": f"{self._state.url}/{self._state.repo}/-/jobs/{job.id}",
        }

    def _note(self, note: Note) -> dict[str, Any]:
        return {
            "id": note.id,
            "body": note.body,
            "author": self._person(note.author),
            "created_at": note.at,
            "system": False,
        }

    def _person(self, name: str) -> dict[str, Any]:
        names = list(self._state.people)
        if name not in names:
            self._state.person(name)
            names.append(name)
        return {"id": names.index(name) + 1, "username": name}
