"""Calls through a scripted program: its input, and the handling of its output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cuggino.errors import (
    ConfigError,
    CugginoError,
    ForgeLimited,
    ForgeLoginMissing,
    ForgeRefused,
    ForgeUnreachable,
)
from cuggino.forge import Api
from cuggino.forge.api import one_line
from cuggino.testing import VirtualClock

SCRIPT = """#!/bin/sh
cd "{folder}"
n=$(ls | grep -c '^argv')
for word in "$@"; do printf '%s\\n' "$word"; done > "argv$n"
cat > "stdin$n"
env > "env$n"
pwd > cwd
cat "said$n" 2>/dev/null || cat said
cat errors >&2
exit "$(cat code)"
"""


class Program:
    """A program that prints a test's responses and records its input."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "program"
        self.path.write_text(SCRIPT.format(folder=folder))
        self.path.chmod(0o755)
        self.says(200, {})

    def says(
        self, status: int, body: Any = None, *, turn: int | None = None, **headers: str
    ) -> None:
        """Print this response, in all turns or in one of them, as `gh` does with `--include`."""
        lines = [f"HTTP/2.0 {status} Some Text\n"]
        lines += [f"{name.replace('_', '-').title()}: {text}\r\n" for name, text in headers.items()]
        text = body if isinstance(body, str) else json.dumps(body)
        self.prints("".join([*lines, "\r\n", text]), code=0 if status < 300 else 1, turn=turn)

    def prints(self, text: str, *, code: int, errors: str = "", turn: int | None = None) -> None:
        (self.folder / ("said" if turn is None else f"said{turn}")).write_bytes(text.encode())
        (self.folder / "errors").write_text(errors)
        (self.folder / "code").write_text(str(code))

    def given(self, what: str, turn: int = 0) -> str:
        return (self.folder / f"{what}{turn}").read_text()

    @property
    def calls(self) -> int:
        return len(list(self.folder.glob("argv*")))


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    folder = tmp_path / "script"
    folder.mkdir()
    yield Program(folder)


def api(program: Program, host: str = "github.com", kind: Any = "github", **env: str) -> Api:
    given = {"PATH": "/usr/bin:/bin", **env}
    return Api(kind, host, program=str(program.path), env=given)


def ended(stream: Any, clock: VirtualClock | None = None) -> tuple[list[Any], list[Exception]]:
    seen: list[Any] = []
    errors: list[Exception] = []
    ends: list[None] = []
    clock = clock or VirtualClock()
    stream.subscribe(seen.append, errors.append, lambda: ends.append(None), scheduler=clock)
    clock.advance_to(clock.at("1s"))
    assert errors or ends
    return seen, errors


def error_of(stream: Any, clock: VirtualClock | None = None) -> CugginoError:
    seen, (error,) = ended(stream, clock)
    assert seen == []
    assert isinstance(error, CugginoError)
    return error


class TestWhatIsGiven:
    def test_a_body_is_json_on_standard_input(self, program: Program) -> None:
        body = {"body": "@file\n--input x\n'; rm -rf ~"}
        ended(api(program).request("POST", "repos/o/r/issues/1/comments", body))
        assert json.loads(program.given("stdin")) == body
        assert "rm -rf" not in program.given("argv")
        assert program.given("argv").splitlines()[:5] == [
            *("api", "--include", "--method", "POST", "repos/o/r/issues/1/comments"),
        ]

    def test_the_variables_of_a_query_are_too(self, program: Program) -> None:
        program.says(200, {"data": {}})
        ended(api(program).graphql("query($a: String) { x(a: $a) }", a="rm -rf"))
        assert json.loads(program.given("stdin"))["variables"] == {"a": "rm -rf"}
        assert "rm -rf" not in program.given("argv")

    @pytest.mark.parametrize(
        ("host", "kind", "words", "variable"),
        [
            ("github.com", "github", "--hostname\ngithub.com\n", None),
            ("localhost:8443", "github", None, "GH_HOST=localhost:8443\n"),
            ("gitlab.com", "gitlab", "--hostname\ngitlab.com\n", None),
            ("localhost:8443", "gitlab", None, "GITLAB_HOST=localhost:8443\n"),
        ],
    )
    def test_the_host_is_always_named(
        self, program: Program, host: str, kind: str, words: str | None, variable: str | None
    ) -> None:
        """Neither program accepts a port in `--hostname`."""
        ended(api(program, host, kind).get("user"))
        assert (words or "") in program.given("argv")
        assert ("--hostname" in program.given("argv")) is (words is not None)
        assert (variable or "") in program.given("env")

    def test_nothing_asks_or_prints_more(self, program: Program) -> None:
        ended(api(program, GH_DEBUG="api", GH_FORCE_TTY="1", GH_TOKEN="t").get("user"))
        env = program.given("env").splitlines()
        assert {"NO_COLOR=1", "GH_PROMPT_DISABLED=1", "GH_TOKEN=t"} <= set(env)
        assert not [line for line in env if line.startswith(("GH_DEBUG", "GH_FORCE_TTY"))]


class TestAnswers:
    def test_a_value_without_headers(self, program: Program) -> None:
        program.says(200, {"login": "me"})
        assert ended(api(program).get("user")) == ([{"login": "me"}], [])

    def test_a_list_goes_on_at_the_next_page(self, program: Program) -> None:
        following = '<https://api.github.com/repositories/1/issues?page=2>; rel="next"'
        program.says(200, [1, 2], turn=0, link=following)
        program.says(200, [3], turn=1)
        assert ended(api(program).pages("repos/o/r/issues")) == ([[1, 2, 3]], [])
        assert "repositories/1/issues?page=2\n" in program.given("argv", 1)

    def test_a_page_on_another_host_is_not_asked_for(self, program: Program) -> None:
        """The login is sent to no other host."""
        program.says(200, [1], link='<https://evil.example.com/api/v3/x>; rel="next"')
        assert ended(api(program).pages("repos/o/r/issues")) == ([[1]], [])
        assert program.calls == 1

    @pytest.mark.real_agent
    def test_a_list_without_an_end_is_refused(self, program: Program) -> None:
        program.says(200, [1], link='<https://api.github.com/x?page=2>; rel="next"')
        error = error_of(api(program).pages("x"))
        assert isinstance(error, ForgeRefused)
        assert program.calls == 100

    def test_a_renamed_repository_gets_what_was_sent(self, program: Program) -> None:
        program.says(307, {}, turn=0, location="https://api.github.com/repositories/1/labels")
        program.says(200, {"id": 1}, turn=1)
        (response,), _ = ended(api(program).request("POST", "repos/o/r/labels", {"a": 1}))
        assert response.json() == {"id": 1}
        assert json.loads(program.given("stdin", 1)) == {"a": 1}
        assert "repositories/1/labels" in program.given("argv", 1)

    def test_an_unchanged_value_comes_from_memory(self, program: Program) -> None:
        called = api(program)
        program.says(200, {"n": 1}, turn=0, etag='"abc"')
        program.says(304, "", turn=1)
        assert ended(called.get("x")) == ended(called.get("x"))
        assert 'If-None-Match: "abc"\n' in program.given("argv", 1)


class TestFailures:
    def test_a_limit_ends_by_the_clock_of_the_scheduler(self, program: Program) -> None:
        program.says(403, {"message": "secondary rate limit"}, retry_after="33")
        clock = VirtualClock()
        error = error_of(api(program).get("x"), clock)
        assert isinstance(error, ForgeLimited)
        assert error.until == clock.start_time + timedelta(seconds=33)

    @pytest.mark.parametrize("bad", ["soon", "99999999999999999999", "-"])
    def test_an_end_that_is_no_time_is_unknown(self, program: Program, bad: str) -> None:
        program.says(429, {"message": "slow down"}, retry_after=bad)
        error = error_of(api(program).get("x"))
        assert isinstance(error, ForgeLimited)
        assert error.until is None

    def test_a_message_is_one_line_with_all_reasons(self, program: Program) -> None:
        said = {"message": "Validation\nFailed", "errors": [{"message": "head"}, "base", {"x": 1}]}
        program.says(422, said)
        error = error_of(api(program).get("x"))
        assert isinstance(error, ForgeRefused)
        assert (error.status, error.message) == (422, "Validation Failed: head: base")

    def test_a_message_of_gitlab_has_fields(self, program: Program) -> None:
        program.says(400, {"message": {"source_branch": ["does not exist"]}})
        assert error_of(api(program).get("x")).message == "source_branch does not exist"

    def test_an_empty_refusal_has_its_status(self, program: Program) -> None:
        program.says(404, "")
        assert error_of(api(program).get("x")).message == "HTTP 404"

    @pytest.mark.parametrize(
        ("errors", "kind", "status"),
        [
            ([{"type": "NOT_FOUND", "message": "no"}], ForgeRefused, 404),
            ([{"type": "FORBIDDEN", "message": "no"}], ForgeRefused, 403),
            ([{"message": "Cannot query field"}], ForgeRefused, 422),
            ([{"message": "Something went wrong while executing"}], ForgeUnreachable, None),
            ([{"type": "RATE_LIMITED", "message": "slow"}], ForgeLimited, None),
        ],
    )
    def test_a_query_fails_with_200(
        self, program: Program, errors: list[Any], kind: type[CugginoError], status: int | None
    ) -> None:
        program.says(200, {"data": None, "errors": errors})
        error = error_of(api(program).graphql("{ x }"))
        assert type(error) is kind
        assert getattr(error, "status", None) == status

    def test_no_login_comes_with_the_command(self, program: Program) -> None:
        program.prints("", code=4, errors="To get started with GitHub CLI, please run: ...\n")
        error = error_of(api(program).get("x"))
        assert isinstance(error, ForgeLoginMissing)
        assert error.hint == f"run `{program.path} auth login --hostname github.com`"

    @pytest.mark.parametrize("code", [0, 1])
    def test_no_response_is_an_outage(self, program: Program, code: int) -> None:
        program.prints("\n", code=code, errors="dial tcp: connection\x1b[0m refused\nUsage: ...\n")
        error = error_of(api(program).get("x"))
        assert isinstance(error, ForgeUnreachable)
        assert "\x1b" not in error.message
        assert code == 0 or error.message.startswith("dial tcp")

    def test_a_missing_program_is_named(self) -> None:
        error = error_of(Api("gitlab", "gitlab.com", program="no-such-glab", env={}).get("x"))
        assert isinstance(error, ConfigError)
        assert error.message == "no-such-glab is not installed"


def test_a_text_of_others_becomes_one_short_line() -> None:
    assert one_line("a\r\n b\t\x1b[31mc\u202e") == "a b [31mc"
    assert len(one_line("x" * 1000)) == 300
