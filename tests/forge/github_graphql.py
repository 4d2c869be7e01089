"""GitHub's GraphQL API: queries are checked and run against GitHub's real public schema.

The schema is of npm's `@octokit/graphql-schema`; graphql-core executes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from reactivex import operators as ops

from cuggino.forge import Issue, Job, PullRequest, Remark
from tests.forge.state import ME, State
from tests.real_program import install, required

SCHEMA_VERSION = "15.26.1"
_LONG_AGO = "2026-11-01T00:00:00Z"

_CONCLUSIONS = {"passed": "SUCCESS", "failed": "FAILURE", "skipped": "SKIPPED", "pending": None}


def schema_file() -> Path:
    """Return GitHub's schema, downloaded on the first call.

    Raises:
        FileNotFoundError: npm is missing.
        RuntimeError: it cannot be downloaded.
    """
    name, package = f"github-schema-{SCHEMA_VERSION}", f"@octokit/graphql-schema@{SCHEMA_VERSION}"
    return install(name, package, "@octokit/graphql-schema/schema.graphql")


@cache
def _schema() -> Any:
    pytest.importorskip("graphql", reason="the dev extra has graphql-core")
    from graphql import GraphQLInterfaceType, GraphQLUnionType, build_schema

    schema = build_schema(required(schema_file).read_text(), assume_valid=True)
    for kind in schema.type_map.values():
        if isinstance(kind, (GraphQLInterfaceType, GraphQLUnionType)):
            kind.resolve_type = lambda value, *_: value["__typename"]
    return schema


class GitHubGraphQL:
    """Executes queries on the state."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._schema = _schema()

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        from graphql import execute_sync, parse, specified_rules, validate

        document = parse(asked["query"])
        # GitHub is laxer here than the specification.
        rules = [rule for rule in specified_rules if "Overlapping" not in rule.__name__]
        if errors := validate(self._schema, document, rules):
            return {"errors": [{"message": error.message} for error in errors]}
        root = {
            "viewer": lambda: self._person(ME),
            "repository": self._repository,
            "search": self._search,
            "enablePullRequestAutoMerge": self._enable_auto_merge,
            "enqueuePullRequest": self._enqueue,
        }
        result = execute_sync(
            self._schema,
            document,
            root,
            variable_values=asked.get("variables"),
            field_resolver=_resolve,
        )
        answer: dict[str, Any] = {"data": result.data}
        if result.errors:
            answer["errors"] = [_error(error) for error in result.errors]
        return answer

    def _repository(self, owner: str, name: str, **_: Any) -> dict[str, Any]:
        state = self._state
        if f"{owner}/{name}" not in (state.repo, state.renamed_from):
            raise LookupError(f"Could not resolve to a Repository with the name '{owner}/{name}'.")

        def issues(labels: Sequence[str] | None = None, **arguments: Any) -> dict[str, Any]:
            found = [
                issue
                for issue in state.contents.issues.values()
                if issue.is_open and (labels is None or set(labels) & set(issue.labels))
            ]
            return _connection(list(map(self._issue, found)), **arguments)

        def pulls(headRefName: str, **arguments: Any) -> dict[str, Any]:  # noqa: N803
            found = [pull for pull in state.pulls() if pull.branch == headRefName]
            return _connection(list(map(self._pull, reversed(found))), **arguments)

        return {
            "viewerDefaultMergeMethod": "MERGE",
            "autoMergeAllowed": state.allows_auto_merge,
            "issues": issues,
            "pullRequests": pulls,
            "issue": lambda number: self._issue(_known(state.contents.issues, number, "an Issue")),
            "object": self._commit,
            "pullRequest": self._pull_request,
        }

    def _search(self, query: str, **arguments: Any) -> dict[str, Any]:
        """Find open issues that have every word of the query, apart from qualifiers."""
        words = [word.lower() for word in query.split() if ":" not in word]
        found = [
            self._issue(issue)
            for issue in self._state.contents.issues.values()
            if issue.is_open and all(word in issue.title.lower() for word in words)
        ]
        return {**_connection(found, **arguments), "issueCount": self._state.found or len(found)}

    def _issue(self, issue: Issue) -> dict[str, Any]:
        changes = self._state.contents.changes[issue.number]
        edits = [change for change in changes if change.kind == "edited"]
        kinds = {"labeled": "LabeledEvent", "retitled": "RenamedTitleEvent"}
        events = [
            {
                "__typename": kinds[change.kind],
                "createdAt": change.at.isoformat(),
                "actor": self._person(change.by),
                "label": {"name": change.label},
            }
            for change in changes
            if change.kind in kinds
        ]
        return {
            **self._written(issue.author),
            "__typename": "Issue",
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "url": issue.url,
            "state": "OPEN" if issue.is_open else "CLOSED",
            "lastEditedAt": edits[-1].at.isoformat() if edits else None,
            "editor": self._person(edits[-1].by) if edits else None,
            "labels": _of([{"name": label} for label in issue.labels]),
            "timelineItems": _of(events),
            "repository": {"nameWithOwner": self._state.repo},
        }

    def _pull_request(self, number: int) -> dict[str, Any]:
        _known(self._state.contents.pulls, number, "a PullRequest")
        return self._pull(self._state.pull_now(number))

    def _pull(self, pull: PullRequest) -> dict[str, Any]:
        state = self._state
        merging = "CLEAN" if state.is_ready(pull) else "BLOCKED"
        if merging == "CLEAN" and state.is_strict and state.is_behind(pull):
            merging = "BEHIND"
        if merging == "CLEAN" and pull.checks in ("pending", "failed"):  # of optional jobs
            merging = "UNSTABLE"
        is_reviewed = {one.id: one.asks_for_changes and not one.path for one in pull.remarks}
        resolved = state.contents.resolved.get(pull.number, [])
        return {
            "__typename": "PullRequest",
            "id": f"PR_{pull.number}",
            "number": pull.number,
            "url": pull.url,
            "state": pull.state.upper(),
            "headRefName": pull.branch,
            "headRefOid": pull.head,
            "baseRefName": pull.target,
            "body": pull.body,
            "isDraft": pull.is_draft,
            "isCrossRepository": pull.number in state.forks,
            "mergeable": "CONFLICTING" if pull.conflicts else "MERGEABLE",
            "mergeStateStatus": merging,
            "isInMergeQueue": pull.is_queued and state.has_queue,
            "isMergeQueueEnabled": state.has_queue,
            "autoMergeRequest": {"enabledAt": _LONG_AGO} if pull.is_queued else None,
            "mergeCommit": {"oid": pull.merged_as} if pull.merged_as else None,
            "commits": _of([{"commit": self._checked(pull.head, pull.jobs)}]),
            "comments": _of(
                [
                    self._note(one, "IssueComment")
                    for one in pull.remarks
                    if not (one.path or is_reviewed[one.id])
                ]
            ),
            "reviews": _of(
                [
                    self._note(one, "PullRequestReview")
                    for one in pull.remarks
                    if is_reviewed[one.id]
                ]
            ),
            "reviewThreads": _of(
                [
                    {
                        "isResolved": one in resolved,
                        "path": one.path,
                        "line": one.line,
                        "comments": _of([self._note(one, "PullRequestReviewComment")]),
                    }
                    for one in (*pull.remarks, *resolved)
                    if one.path
                ]
            ),
        }

    def _commit(self, expression: str) -> dict[str, Any] | None:
        if not self._state.has_commit(expression):
            return None
        jobs = self._state.does(self._state.jobs(expression).pipe(ops.to_list()))
        return self._checked(expression, jobs)

    def _checked(self, commit: str, jobs: Sequence[Job]) -> dict[str, Any]:
        rollup = {"contexts": _of([self._check(job) for job in jobs])} if jobs else None
        return {"__typename": "Commit", "oid": commit, "statusCheckRollup": rollup}

    def _check(self, job: Job) -> dict[str, Any]:
        if job.name.startswith("status:"):
            states = {"passed": "SUCCESS", "failed": "FAILURE"}
            return {
                "__typename": "StatusContext",
                "context": job.name.removeprefix("status:"),
                "state": states.get(job.state, "PENDING"),
                "targetUrl": f"https://ci.example.com/{job.id}",
            }
        return {
            "__typename": "CheckRun",
            "databaseId": int(job.id),
            "name": job.name,
            "status": "IN_PROGRESS" if job.state == "pending" else "COMPLETED",
            "conclusion": _CONCLUSIONS[job.state],
            "detailsUrl": job.url,
        }

    def _note(self, note: Remark, kind: str) -> dict[str, Any]:
        return {
            **self._written(note.author),
            "__typename": kind,
            "id": f"N_{note.id}",
            "body": note.body,
            "createdAt": note.at.isoformat(),
            "state": "CHANGES_REQUESTED",
        }

    def _written(self, login: str) -> dict[str, Any]:
        return {
            "author": self._person(login),
            "authorAssociation": self._state.people.get(login, "NONE"),
            "viewerDidAuthor": login == ME,
        }

    def _person(self, login: str) -> dict[str, Any] | None:
        return {"__typename": "User", "login": login} if login else None

    def _enable_auto_merge(self, input: dict[str, Any]) -> dict[str, Any]:
        if not self._state.allows_auto_merge:
            raise PermissionError("Auto merge is not allowed for this repository")
        if self._state.is_ready(self._of_input(input)):
            raise ValueError("Pull request Pull request is in clean status")
        return self._enqueue(input)

    def _enqueue(self, input: dict[str, Any]) -> dict[str, Any]:
        pull = self._of_input(input)
        self._state.does(self._state.merge_when_allowed(pull.number, head=input["expectedHeadOid"]))
        return {"clientMutationId": None}

    def _of_input(self, input: dict[str, Any]) -> PullRequest:
        number = int(input["pullRequestId"].removeprefix("PR_"))
        _known(self._state.contents.pulls, number, "a node")
        return self._state.pull_now(number)


def _resolve(source: Any, info: Any, **arguments: Any) -> Any:
    value = source.get(info.field_name) if isinstance(source, dict) else None
    return value(**arguments) if callable(value) else value


def _connection(
    nodes: list[Any], first: int | None = None, after: str | None = None, **_: Any
) -> dict[str, Any]:
    begin = int(after) if after else 0
    end = begin + (first or len(nodes))
    return {
        "nodes": nodes[begin:end],
        "pageInfo": {"hasNextPage": end < len(nodes), "endCursor": str(end)},
    }


def _of(nodes: list[Any]) -> Callable[..., dict[str, Any]]:
    """Return a connection that shows at most what a query asks for."""

    def shown(last: int | None = None, first: int | None = None, **_: Any) -> dict[str, Any]:
        return _connection(nodes[-last:] if last else nodes, first)

    return shown


def _known(places: dict[int, Any], number: int, kind: str) -> Any:
    if number not in places:
        raise LookupError(f"Could not resolve to {kind} with the number of {number}.")
    return places[number]


def _error(error: Any) -> dict[str, Any]:
    kinds = {LookupError: "NOT_FOUND", PermissionError: "FORBIDDEN", ValueError: "UNPROCESSABLE"}
    kind = kinds.get(type(error.original_error), "INTERNAL")
    return {"message": error.message, "type": kind, "path": error.path or []}
