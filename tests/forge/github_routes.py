"""The state of a repository as GitHub shows it: REST and GraphQL."""

from __future__ import annotations

from typing import Any

from tests.forge.github_graphql import GitHubGraphQL
from tests.forge.state import Note, State
from tests.forge.wire import NOT_FOUND, Reply, Request, Route, paged, routed

_PERMISSIONS = {"OWNER": "admin", "MEMBER": "write", "COLLABORATOR": "write"}
_LONGEST = 65_536


class GitHubRoutes:
    """Answers what `gh api` asks for, below `/api/v3` and at `/api/graphql`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._graphql = GitHubGraphQL(state)
        here = r"/api/v3/repos/[^/]+/[^/]+"
        self._routes: list[Route] = [
            ("GET", here, self._repository),
            ("GET", here + r"/issues/(\d+)/comments", self._comments),
            ("POST", here + r"/issues/(\d+)/comments", self._comment),
            ("PATCH", here + r"/issues/comments/(\d+)", self._edit_comment),
            ("DELETE", here + r"/issues/comments/(\d+)", self._delete_comment),
            ("POST", here + r"/issues/(\d+)/labels", self._label),
            ("DELETE", here + r"/issues/(\d+)/labels/([^/]+)", self._unlabel),
            ("PATCH", here + r"/issues/(\d+)", self._edit_issue),
            ("POST", here + r"/pulls", self._open_pull),
            ("PATCH", here + r"/pulls/(\d+)", self._edit_pull),
            ("PUT", here + r"/pulls/(\d+)/merge", self._merge),
            ("PUT", here + r"/pulls/(\d+)/update-branch", self._update),
            ("GET", here + r"/actions/jobs/(\d+)/logs", self._log),
            ("GET", here + r"/collaborators/([^/]+)/permission", self._permission),
        ]

    def answer(self, request: Request) -> Reply:
        if request.path == "/api/graphql":
            return Reply(200, self._graphql.answer(request.value))
        if (moved := self._moved(request)) is not None:
            return moved
        if self._name(request.path) != self._state.repo:
            return NOT_FOUND
        return routed(self._routes, request)

    def _name(self, path: str) -> str:
        return "/".join(path.split("/")[4:6])

    def _moved(self, request: Request) -> Reply | None:
        old = self._state.renamed_from
        if old is None or self._name(request.path) != old:
            return None
        place = request.path.replace(f"/repos/{old}", f"/repos/{self._state.repo}", 1)
        status = 301 if request.method == "GET" else 307
        return Reply(
            status, {"message": "Moved Permanently"}, {"Location": self._state.url + place}
        )

    def _repository(self, request: Request) -> Reply:
        return Reply(200, {"full_name": self._state.repo, "default_branch": "main"})

    def _comments(self, request: Request, number: str) -> Reply:
        place = self._state.issues.get(int(number)) or self._state.pulls[int(number)]
        notes = [self._shown(note, int(number)) for note in place.comments]
        return paged(notes, request, self._state.url)

    def _comment(self, request: Request, number: str) -> Reply:
        body = request.value["body"]
        if int(number) not in {**self._state.issues, **self._state.pulls}:
            return NOT_FOUND
        if len(body) > _LONGEST:
            return self._invalid("body is too long (maximum is 65536 characters)")
        note = self._state.comment(int(number), body, by="cuggino-bot")
        return Reply(201, self._shown(note, int(number)))

    def _edit_comment(self, request: Request, id: str) -> Reply:
        note = self._state.note(int(id))
        note.body = request.value["body"]
        return Reply(200, self._shown(note, 0))

    def _delete_comment(self, request: Request, id: str) -> Reply:
        note = self._state.note(int(id))
        self._state.delete_note(note)
        return Reply(204)

    def _label(self, request: Request, number: str) -> Reply:
        for label in request.value["labels"]:
            self._state.label(int(number), label, by="cuggino-bot")
        return Reply(200, [])

    def _unlabel(self, request: Request, number: str, label: str) -> Reply:
        if label not in self._state.issues[int(number)].labels:
            return Reply(404, {"message": "Label does not exist"})
        self._state.unlabel(int(number), label, by="cuggino-bot")
        return Reply(200, [])

    def _edit_issue(self, request: Request, number: str) -> Reply:
        if request.value["state"] == "closed":
            self._state.close_issue(int(number), by="cuggino-bot")
        return Reply(200, {"number": int(number)})

    def _open_pull(self, request: Request) -> Reply:
        wanted, state = request.value, self._state
        branch, target = wanted["head"], wanted["base"]
        if state.head(branch) is None or state.head(target) is None:
            return self._invalid("head is invalid")
        if state.of_branch(branch) is not None:
            return self._invalid(f"A pull request already exists for o:{branch}.")
        if state.head(branch) == state.head(target):
            return self._invalid(f"No commits between {target} and {branch}")
        pull = state.open_pull(
            branch, target, wanted["title"], wanted["body"], draft=wanted.get("draft", False)
        )
        return Reply(201, {"number": pull.number})

    def _edit_pull(self, request: Request, number: str) -> Reply:
        pull = self._state.pulls[int(number)]
        pull.title = request.value.get("title", pull.title)
        pull.body = request.value.get("body", pull.body)
        return Reply(200, {"number": pull.number})

    def _merge(self, request: Request, number: str) -> Reply:
        pull = self._state.pulls[int(number)]
        if self._state.head_of(pull) != request.value["sha"]:
            return Reply(409, {"message": "Head branch was modified. Review and try again."})
        if not self._state.is_ready(pull):
            return Reply(405, {"message": "Pull Request is not mergeable"})
        self._state.merge(pull.number)
        return Reply(200, {"sha": pull.merged_as, "merged": True})

    def _update(self, request: Request, number: str) -> Reply:
        pull = self._state.pulls[int(number)]
        if self._state.head_of(pull) != request.value["expected_head_sha"]:
            return self._invalid("expected head sha didn't match current head ref.")
        self._state.update_branch(pull.number)
        return Reply(202, {"message": "Updating pull request branch."})

    def _log(self, request: Request, id: str) -> Reply:
        return Reply(200, self._state.log(int(id)))

    def _permission(self, request: Request, login: str) -> Reply:
        association = self._state.people[login]
        return Reply(200, {"permission": _PERMISSIONS.get(association, "read")})

    def _shown(self, note: Note, number: int) -> dict[str, Any]:
        return {
            "id": note.id,
            "body": note.body,
            "user": {"login": note.author},
            "author_association": self._state.people.get(note.author, "NONE"),
            "created_at": note.at,
            "html_url": f"{self._state.url}/o/r/issues/{number}#issuecomment-{note.id}",
        }

    def _invalid(self, message: str) -> Reply:
        return Reply(422, {"message": "Validation Failed", "errors": [{"message": message}]})
