"""The state of a repository as GitHub shows it: REST and GraphQL."""

from __future__ import annotations

from typing import Any

from cuggino.forge import Comment
from tests.forge.github_graphql import GitHubGraphQL
from tests.forge.state import State
from tests.forge.wire import NOT_FOUND, Reply, Request, Route, log_of, paged, routed

_PERMISSIONS = {"OWNER": "admin", "MEMBER": "write", "COLLABORATOR": "write"}


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
        return Reply(status, {"message": "Moved Permanently"}, {"Location": request.server + place})

    def _repository(self, request: Request) -> Reply:
        return Reply(200, {"full_name": self._state.repo, "default_branch": "main"})

    def _comments(self, request: Request, number: str) -> Reply:
        notes = [self._shown(note) for note in self._state.comments_now(int(number))]
        return paged(notes, request)

    def _comment(self, request: Request, number: str) -> Reply:
        adding = self._state.add_comment(int(number), request.value["body"])
        return Reply(201, self._shown(self._state.does(adding)))

    def _edit_comment(self, request: Request, id: str) -> Reply:
        editing = self._state.edit_comment(self._issue_of(id), id, request.value["body"])
        return Reply(200, self._shown(self._state.does(editing)))

    def _delete_comment(self, request: Request, id: str) -> Reply:
        self._state.does(self._state.delete_comment(self._issue_of(id), id))
        return Reply(204)

    def _issue_of(self, comment: str) -> int:
        comments = self._state.contents.comments
        return {id: number for number, notes in comments.items() for id in notes}[comment]

    def _label(self, request: Request, number: str) -> Reply:
        return self._labels(number, add=tuple(request.value["labels"]), remove=())

    def _unlabel(self, request: Request, number: str, label: str) -> Reply:
        if label not in self._state.issue_now(int(number)).labels:
            return Reply(404, {"message": "Label does not exist"})
        return self._labels(number, add=(), remove=(label,))

    def _labels(self, number: str, *, add: tuple[str, ...], remove: tuple[str, ...]) -> Reply:
        self._state.does(self._state.change_labels(int(number), add=add, remove=remove))
        return Reply(200, [])

    def _edit_issue(self, request: Request, number: str) -> Reply:
        if request.value["state"] == "closed":
            self._state.does(self._state.close_issue(int(number)))
        return Reply(200, {"number": int(number)})

    def _open_pull(self, request: Request) -> Reply:
        wanted, state = request.value, self._state
        branch, target = wanted["head"], wanted["base"]
        if state.head(branch) == state.head(target):
            return self._invalid(f"No commits between {target} and {branch}")
        known = state.does(state.find_pull_request(branch))
        if known is not None and known.state == "open":
            return self._invalid(f"A pull request already exists for o:{branch}.")
        opening = state.open_pull_request(
            branch=branch,
            target=target,
            title=wanted["title"],
            body=wanted["body"],
            draft=wanted.get("draft", False),
        )
        return Reply(201, {"number": state.does(opening).number})

    def _edit_pull(self, request: Request, number: str) -> Reply:
        self._state.does(self._state.edit_pull_request(int(number), **request.value))
        return Reply(200, {"number": int(number)})

    def _merge(self, request: Request, number: str) -> Reply:
        state = self._state
        if not state.is_ready(state.pull_now(int(number))):
            return Reply(405, {"message": "Pull Request is not mergeable"})
        state.does(state.merge_when_allowed(int(number), head=request.value["sha"]))
        return Reply(200, {"sha": state.pull_now(int(number)).merged_as, "merged": True})

    def _update(self, request: Request, number: str) -> Reply:
        pull = self._state.pull_now(int(number))
        if pull.head != request.value["expected_head_sha"]:
            return self._invalid("expected head sha didn't match current head ref.")
        self._state.merged(pull.branch, pull.target, f"Merge {pull.target}")
        return Reply(202, {"message": "Updating pull request branch."})

    def _log(self, request: Request, id: str) -> Reply:
        return log_of(self._state, id)

    def _permission(self, request: Request, login: str) -> Reply:
        association = self._state.people[login]
        return Reply(200, {"permission": _PERMISSIONS.get(association, "read")})

    def _shown(self, note: Comment) -> dict[str, Any]:
        return {
            "id": int(note.id),
            "body": note.body,
            "user": {"login": note.author},
            "author_association": self._state.people.get(note.author, "NONE"),
            "created_at": note.at.isoformat(),
            "html_url": note.url,
        }

    def _invalid(self, message: str) -> Reply:
        return Reply(422, {"message": "Validation Failed", "errors": [{"message": message}]})
