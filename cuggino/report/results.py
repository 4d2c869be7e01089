"""The lower sections of a report: commits, commands, reviews, tools."""

from __future__ import annotations

from collections.abc import Sequence

from cuggino.report.markup import Html, join, tag
from cuggino.report.model import (
    FileChange,
    ReportCommand,
    ReportCommit,
    ReportFinding,
    RunReport,
    ToolUse,
)
from cuggino.report.sections import badge, first_rows, section, table
from cuggino.report.times import Times
from cuggino.report.wording import counted, duration, first_line, number

_LONGEST_OUTPUT = 20_000
_MOST_FILES = 200


def commits(report: RunReport, times: Times) -> Html | None:
    """Render the commits with their changed files."""
    if not report.commits:
        return None
    shown, note = first_rows(report.commits)
    rows = [
        (
            tag("code", commit.commit_hash, class_="hash"),
            tag("span", times.short(commit.at), class_="id"),
            _message(commit),
            *_change_cells(commit),
        )
        for commit in shown
    ]
    heads = ["Commit", "Time", "Message", "Files", "Added", "Deleted"]
    changes = [change for commit in report.commits for change in commit.changes or ()]
    sums = join(_added(changes), " and ", _deleted(changes), " lines") if changes else None
    rendered = table(heads, rows, numeric="   nnn")
    return section("Commits", rendered, note, name="commits", note=sums)


def _message(commit: ReportCommit) -> Html:
    title = first_line(commit.message) or "(no message)"
    pushed = tag("span", f"pushed to {commit.pushed_to}", class_="quiet")
    parts = [title, tag("br"), pushed] if commit.pushed_to else [title]
    if commit.gone:
        parts += [
            tag("br"),
            tag("span", "The repository does not have it any more.", class_="quiet"),
        ]
    body = commit.message.strip()
    if body != title:
        parts.append(tag("details", tag("summary", "Whole message"), tag("pre", body)))
    if commit.changes:
        files = [
            (tag("code", change.path), _lines(change.added, "+"), _lines(change.deleted, "−"))
            for change in commit.changes[:_MOST_FILES]
        ]
        more = len(commit.changes) - len(files)
        parts.append(
            tag(
                "details",
                tag("summary", counted(len(commit.changes), "file")),
                table(["File", "Added", "Deleted"], files, numeric=" nn"),
                tag("p", f"{number(more)} more", class_="note") if more else None,
            )
        )
    return join(*parts)


def _change_cells(commit: ReportCommit) -> tuple[Html | str, ...]:
    if commit.changes is None:
        return ("–", "–", "–")
    return (number(len(commit.changes)), _added(commit.changes), _deleted(commit.changes))


def _added(changes: tuple[FileChange, ...] | list[FileChange]) -> Html:
    return tag("span", f"+{number(sum(c.added or 0 for c in changes))}", class_="added")


def _deleted(changes: tuple[FileChange, ...] | list[FileChange]) -> Html:
    return tag("span", f"−{number(sum(c.deleted or 0 for c in changes))}", class_="deleted")


def _lines(count: int | None, sign: str) -> str:
    return "binary" if count is None else f"{sign}{number(count)}"


def commands(report: RunReport, times: Times) -> Html | None:
    """Render the setup and check commands with their output."""
    if not report.commands:
        return None
    failed = sum(command.exit_code != 0 for command in report.commands)
    shown, note = first_rows(report.commands)
    said = f"{number(len(report.commands) - failed)} passed, {number(failed)} failed"
    listed = [_command(command, times) for command in shown]
    return section("Checks and setups", listed, note, name="commands", note=said)


def _command(command: ReportCommand, times: Times) -> Html:
    code = "no exit code" if command.exit_code is None else f"exit code {command.exit_code}"
    output = command.output
    cut = len(output) - _LONGEST_OUTPUT
    if cut > 0:
        output = output[cut:]
    partly = command.truncated or cut > 0
    return tag(
        "details",
        tag(
            "summary",
            badge(code, "good" if command.exit_code == 0 else "bad"),
            f" {command.kind}, round {number(command.round)} ",
            tag("span", times.short(command.at), class_="quiet"),
        ),
        tag("p", "Only the end of the output is here.", class_="note") if partly else None,
        tag("pre", output) if output.strip() else tag("p", "It printed nothing.", class_="note"),
        class_="item",
    )


def findings(report: RunReport, times: Times) -> Html | None:
    """Render the findings of reviewers and the audit."""
    if not report.findings:
        return None
    shown, note = first_rows(report.findings)
    listed = [_finding(finding, times) for finding in shown]
    return section("Reviews and findings", listed, note, name="findings")


def _finding(finding: ReportFinding, times: Times) -> Html:
    where = " ".join(part for part in (finding.stage, times.short(finding.at)) if part)
    return tag(
        "article",
        tag("p", badge(finding.kind, finding.tone), " ", tag("span", where, class_="quiet")),
        tag("div", finding.text.strip(), class_="prose") if finding.text.strip() else None,
        class_="item",
    )


def tools(report: RunReport) -> Html | None:
    """Render the tools with calls, durations and errors."""
    if not report.tools:
        return None
    most = max(use.calls for use in report.tools)
    shown, note = first_rows(report.tools)
    rows = [
        (
            use.name,
            _bar(use, most),
            number(use.calls),
            number(use.errors) if use.errors else "",
            number(use.unanswered) if use.unanswered else "",
            *_times(use.seconds),
        )
        for use in shown
    ]
    heads = ["Tool", "", "Calls", "Errors", "No answer", "Median", "Longest", "In all"]
    return section("Tool calls", table(heads, rows, numeric="  nnnnnn"), note, name="tools")


def _bar(use: ToolUse, most: int) -> Html:
    """Render the calls as a bar that ends with the errors."""
    good = 100 * (use.calls - use.errors) / most
    bad = 100 * use.errors / most
    return tag(
        "div",
        tag("i", style=f"width:{good:.2f}%"),
        tag("i", class_="bad", style=f"width:{bad:.2f}%") if use.errors else None,
        class_="bar",
    )


def _times(seconds: Sequence[float]) -> tuple[str, str, str]:
    """Return median, longest and sum of the times, which are ascending."""
    if not seconds:
        return ("–", "–", "–")
    middle = len(seconds) // 2
    median = seconds[middle] if len(seconds) % 2 else (seconds[middle - 1] + seconds[middle]) / 2
    return (duration(median), duration(seconds[-1]), duration(sum(seconds)))
