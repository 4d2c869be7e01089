"""The state of a repository as GitLab shows it: REST, version 4."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from reactivex import operators as ops

from cuggino.forge import Comment, Issue, PullRequest, Remark
from tests.forge.state import ME, State
from tests.forge.wire import NOT_FOUND, Reply, Request, Route, log_of, paged, routed

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
            ("PUT", here + r"/issues/(\d+)/notes/(\d+)", self._edit_note),
            ("DELETE", here + r"/issues/(\d+)/notes/(\d+)", self._delete_note),
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
                return Reply(status, None, {"Location": request.server + place})
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
        found = self._state.issues(label=request.query.get("labels"), query=None)
        issues = self._state.does(found.pipe(ops.to_list()))
        return paged(list(map(self._shown, issues)), request)

    def _issue(self, request: Request, id: str) -> Reply:
        return Reply(200, self._shown(self._state.does(self._state.issue(int(id)))))

    def _edit_issue(self, request: Request, id: str) -> Reply:
        wanted, state = request.value, self._state
        add, remove = (
            tuple(filter(None, wanted.get(key, "").split(",")))
            for key in ("add_labels", "remove_labels")
        )
        state.does(state.change_labels(int(id), add=add, remove=remove))
        if wanted.get("state_event") == "close":
            state.does(state.close_issue(int(id)))
        return self._issue(request, id)

    def _notes(self, request: Request, id: str) -> Reply:
        texts = {"edited": "changed the description", "retitled": "changed title from **a** to b"}
        activity = [
            {
                "id": 1,
                "body": texts[change.kind],
                "author": self._person(change.by),
                "created_at": change.at.isoformat(),
                "system": True,
            }
            for change in self._state.contents.changes[int(id)]
            if change.kind in texts
        ]
        notes = list(map(self._note, self._state.comments_now(int(id))))
        if request.query.get("activity_filter") == "only_activity":
            notes = []
        return paged(sorted([*activity, *notes], key=lambda note: str(note["created_at"])), request)

    def _add_note(self, request: Request, id: str) -> Reply:
        adding = self._state.add_comment(int(id), request.value["body"])
        return Reply(201, self._note(self._state.does(adding)))

    def _edit_note(self, request: Request, number: str, id: str) -> Reply:
        editing = self._state.edit_comment(int(number), id, request.value["body"])
        return Reply(200, self._note(self._state.does(editing)))

    def _delete_note(self, request: Request, number: str, id: str) -> Reply:
        self._state.does(self._state.delete_comment(int(number), id))
        return Reply(204)

    def _label_events(self, request: Request, id: str) -> Reply:
        actions = {"labeled": "add", "unlabeled": "remove"}
        events = [
            {
                "user": self._person(change.by),
                "created_at": change.at.isoformat(),
                "label": {"name": change.label},
                "action": actions[change.kind],
            }
            for change in self._state.contents.changes[int(id)]
            if change.kind in actions
        ]
        return paged(events, request)

    def _merges(self, request: Request) -> Reply:
        branch = request.query["source_branch"]
        found = [self._pull(pull) for pull in self._state.pulls() if pull.branch == branch]
        return paged(found[::-1], request)

    def _open(self, request: Request) -> Reply:
        wanted, state = request.value, self._state
        branch, title = wanted["source_branch"], wanted["title"]
        known = state.does(state.find_pull_request(branch))
        if known is not None and known.state == "open":
            there = f"Another open merge request already exists: !{known.number}"
            return Reply(409, {"message": [there]})
        opening = state.open_pull_request(
            branch=branch,
            target=wanted["target_branch"],
            title=title.removeprefix("Draft: "),
            body=wanted["description"],
            draft=title.startswith("Draft: "),
        )
        return Reply(201, self._pull(state.does(opening)))

    def _merge_request(self, request: Request, id: str) -> Reply:
        return Reply(200, self._pull(self._state.pull_now(int(id))))

    def _edit(self, request: Request, id: str) -> Reply:
        title, body = request.value["title"], request.value["description"]
        edits = self._state.edit_pull_request(
            int(id), title=title.removeprefix("Draft: "), body=body
        )
        self._state.does(edits)
        if not title.startswith("Draft: "):
            self._state.by(ME).readies(int(id))
        return self._merge_request(request, id)

    def _merge(self, request: Request, id: str) -> Reply:
        state, wanted = self._state, request.value
        pull = state.pull_now(int(id))
        if not state.is_ready(pull) and pull.checks != "pending":
            return Reply(405, {"message": "405 Method Not Allowed"})
        state.does(state.merge_when_allowed(int(id), head=wanted["sha"]))
        return self._merge_request(request, id)

    def _discussions(self, request: Request, id: str) -> Reply:
        resolved = self._state.contents.resolved.get(int(id), [])
        notes = [
            {
                **self._note(remark),
                "resolvable": remark.asks_for_changes or bool(remark.path),
                "resolved": remark in resolved,
                "position": {"new_path": remark.path, "new_line": remark.line},
            }
            for remark in (*self._state.pull_now(int(id)).remarks, *resolved)
        ]
        return paged([{"id": "d", "notes": [note]} for note in notes], request)

    def _jobs(self, request: Request, id: str) -> Reply:
        return paged(self._listed(self._state.pull_now(int(id)).head), request)

    def _statuses(self, request: Request, commit: str) -> Reply:
        if not self._state.has_commit(commit):
            return NOT_FOUND
        return paged(self._listed(commit), request)

    def _trace(self, request: Request, id: str) -> Reply:
        return log_of(self._state, id)

    def _shown(self, issue: Issue) -> dict[str, Any]:
        times = [change.at for change in self._state.contents.changes[issue.number]]
        times += [comment.at for comment in self._state.comments_now(issue.number)]
        return {
            "iid": issue.number,
            "title": issue.title,
            "description": issue.body,
            "web_url": f"{self._state.url}/-/issues/{issue.number}",
            "author": self._person(issue.author),
            "state": "opened" if issue.is_open else "closed",
            "labels": list(issue.labels),
            "updated_at": max(times).isoformat(),
        }

    def _pull(self, pull: PullRequest) -> dict[str, Any]:
        states = {"open": "opened", "merged": "merged", "closed": "closed"}
        number, title = pull.number, self._state.contents.titles[pull.number]
        pipeline = {"id": number, "sha": pull.head, "ref": pull.branch}
        return {
            "iid": number,
            "title": f"Draft: {title}" if pull.is_draft else title,
            "web_url": f"{self._state.url}/-/merge_requests/{number}",
            "state": states[pull.state],
            "source_branch": pull.branch,
            "target_branch": pull.target,
            "source_project_id": 2 if number in self._state.forks else 1,
            "target_project_id": 1,
            "sha": pull.head,
            "description": pull.body,
            "draft": pull.is_draft,
            "merge_commit_sha": pull.merged_as or None,
            "squash_commit_sha": None,
            "merge_when_pipeline_succeeds": pull.is_queued,
            "has_conflicts": bool(pull.conflicts),
            "merge_status": "cannot_be_merged" if pull.conflicts else "can_be_merged",
            "head_pipeline": pipeline if pull.jobs else None,
        }

    def _listed(self, commit: str) -> list[dict[str, Any]]:
        """Return the jobs of a commit."""
        required = {
            run.name for run in self._state.contents.ci.get(commit, ("", ()))[1] if run.is_required
        }
        return [
            {
                "id": int(job.id),
                "name": job.name,
                "status": _STATUSES[job.state],
                "allow_failure": job.name not in required,
                "web_url": f"{self._state.url}/-/jobs/{job.id}",
            }
            for job in self._state.does(self._state.jobs(commit).pipe(ops.to_list()))
        ]

    def _note(self, note: Comment | Remark) -> dict[str, Any]:
        return {
            "id": int(note.id),
            "body": note.body,
            "author": self._person(note.author),
            "created_at": note.at.isoformat(),
            "system": False,
        }

    def _person(self, name: str) -> dict[str, Any]:
        names = list(self._state.people)
        if name not in names:
            self._state.joins(name)
            names.append(name)
        return {"id": names.index(name) + 1, "username": name}
