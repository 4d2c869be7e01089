"""Judging of every command in a script, with the folders in which it may run.

Nothing is executed: for `a && cd b; c` both outcomes are followed, and a write must be allowed in
each possible folder (facts 2.2). The result of a `cd` is a set of folders; if it is unknown, level
`full` denies relative writes. Variables, arithmetic and redefined names are judged at level `full`
only.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

from cuggino.guard.commands.base import UNKNOWN, Rules, Site, Trail
from cuggino.guard.commands.functions import Functions
from cuggino.guard.commands.places import moved, mover
from cuggino.guard.paths import Paths
from cuggino.guard.policy import Policy
from cuggino.guard.profiles import is_extended, listed, pkill_targets
from cuggino.guard.shell.tree import (
    Binary,
    Case,
    Command,
    Function,
    Group,
    If,
    Loop,
    Redirect,
    Refused,
    Script,
    Statement,
    Timed,
    Word,
)
from cuggino.guard.verdict import Part

Places: TypeAlias = frozenset[str]
Ends: TypeAlias = tuple[Places, Places]
"""The possible folders after success and after failure; empty when that outcome is impossible."""

_DEEPEST = 4


def judge_script(
    script: Script,
    *,
    policy: Policy,
    paths: Paths,
    cwds: frozenset[str],
    shfmt: str | None = None,
) -> tuple[Part, ...]:
    """Return one part for each simple command, redirection and loop variable, in source order.

    `cwds`: the folders that the script may start in, empty if unknown; `shfmt`: the parser for
    nested scripts, looked up when needed.
    """
    walker = _Walker(policy, paths, shfmt, depth=0)
    walker.begin(script, cwds or frozenset({UNKNOWN}))
    return walker.result()


class _Walker:
    def __init__(self, policy: Policy, paths: Paths, shfmt: str | None, *, depth: int) -> None:
        self.parts: dict[tuple[int, str], Part] = {}
        self.kept: list[object] = []
        self.functions = Functions()
        self.visited: Places = frozenset()
        self.shfmt = shfmt
        self.depth = depth
        self.rules = rules = _rules(policy)
        self.site = Site(
            policy, paths, frozenset(), listed(policy), pkill_targets(policy), Trail(), rules.judge,
            self.judge_text, is_open=is_extended(policy),
        )  # fmt: skip

    def result(self) -> tuple[Part, ...]:
        return tuple(self.parts.values())

    def note(self, where: object, text: str, reason: str, kind: str = "") -> None:
        """Record the part once, however often it is walked; a reason is never dropped."""
        key = (id(where), kind)
        known = self.parts.get(key)
        if known is None or (reason and not known.reason):
            self.kept.append(where)
            self.parts[key] = Part(text, reason)

    def judge_text(self, text: str, site: Site) -> str:
        """Return why a script passed to a nested shell is denied, or ""."""
        if self.depth >= _DEEPEST:
            return "Shells are nested too deeply: run the commands directly"
        from cuggino.guard.shell.parser import parse
        from cuggino.guard.shell.shfmt import find_shfmt

        if self.shfmt is None:
            self.shfmt = find_shfmt()
        try:
            script = parse(text, shfmt=self.shfmt, known=site.policy.known())
        except Refused as refused:
            return refused.reason
        inner = _Walker(site.policy, site.paths, self.shfmt, depth=self.depth + 1)
        inner.site = site._replace(judge_text=inner.judge_text)
        inner.begin(script, site.cwds)
        return next((part.reason for part in inner.result() if part.reason), "")

    # Statements ------------------------------------------------------------------------------

    def begin(self, script: Script, cwds: Places) -> None:
        """Walk a whole script after checking its arithmetic."""
        for statement in script:
            if reason := self.rules.text(statement, self.site):
                self.note(statement, statement.text, reason, "calculation")
        self.script(script, cwds)

    def script(self, script: Script, cwds: Places, feed: Site | None = None) -> Ends:
        ends: Ends = (cwds, frozenset())
        here = cwds
        for statement in script:
            ends = self.statement(statement, here, feed)
            here = ends[0] | ends[1] or here
        return ends

    def statement(self, statement: Statement, cwds: Places, feed: Site | None) -> Ends:
        site = (feed or self.site)._replace(cwds=cwds)
        self.visited |= cwds
        for redirect in statement.redirects:
            self.words((redirect.target,), cwds)
            if redirect.body is not None:
                self.words((redirect.body,), cwds)
            reason = self.rules.redirect(redirect, site)
            self.note(redirect, redirect.text, reason)
            if redirect.operator in ("<", "<<", "<<-", "<<<", "<>", "<&"):
                known = _document(redirect)
                text = redirect.body.text if redirect.body is not None else redirect.text
                feed = site._replace(feed=text, is_fed=True, document=known)
        if statement.node is None:
            return cwds, cwds
        if statement.is_background:
            with self.functions.inside():
                self.node(statement, cwds, feed)
            return cwds, frozenset()
        ok, failed = self.node(statement, cwds, feed)
        return (failed, ok) if statement.is_negated else (ok, failed)

    def node(self, statement: Statement, cwds: Places, feed: Site | None) -> Ends:
        node = statement.node
        match node:
            case None:
                return cwds, cwds
            case Command():
                return self.command(node, cwds, feed)
            case Binary():
                return self.binary(node, cwds, feed)
            case Group(is_subshell=True):
                with self.functions.inside():
                    self.script(node.body, cwds, feed)
                return cwds, cwds
            case Group():
                return self.script(node.body, cwds, feed)
            case If():
                with self.functions.inside():
                    return self.branches(node, cwds, feed)
            case Loop():
                with self.functions.inside():
                    return self.loop(node, cwds, feed)
            case Case():
                with self.functions.inside():
                    return self.case(node, cwds, feed)
            case Function():
                return self.define(node, cwds)
            case Timed():
                if node.body is None:
                    return cwds, cwds
                return self.statement(node.body, cwds, feed)
            case _:
                assert_never(node)

    def binary(self, node: Binary, cwds: Places, feed: Site | None) -> Ends:
        if node.operator in ("|", "|&"):
            with self.functions.inside():
                self.statement(node.left, cwds, feed)
            piped = self.site._replace(feed=node.left.text, is_fed=True, document=None)
            with self.functions.inside():
                self.statement(node.right, cwds, piped)
            return cwds, cwds
        ok, failed = self.statement(node.left, cwds, feed)
        start = (ok if node.operator == "&&" else failed) or cwds
        with self.functions.inside():
            then_ok, then_failed = self.statement(node.right, start, feed)
        if node.operator == "&&":
            return then_ok, failed | then_failed
        return ok | then_ok, then_failed

    def branches(self, node: If, cwds: Places, feed: Site | None) -> Ends:
        ok, failed = self.script(node.condition, cwds, feed)
        first = self.script(node.then, ok or cwds, feed)
        other = self.script(node.otherwise, failed or cwds, feed)
        ends = first[0] | first[1] | other[0] | other[1]
        return ends, ends

    def loop(self, node: Loop, cwds: Places, feed: Site | None) -> Ends:
        self.words(node.words, cwds)
        reason = self.rules.loop(node, self.site)
        if node.kind == "arithmetic" or node.name:
            self.note(node, f"for {node.name or '((...))'}", reason)
        ends = self.round(node, cwds, feed)
        if not ends <= cwds and UNKNOWN not in cwds:
            ends |= self.round(node, cwds | ends | {UNKNOWN}, feed)
        return cwds | ends, cwds | ends

    def round(self, node: Loop, cwds: Places, feed: Site | None) -> Places:
        ok, failed = self.script(node.condition, cwds, feed)
        begin = (failed if node.kind == "until" else ok) or cwds
        body = self.script(node.body, begin, feed)
        return ok | failed | body[0] | body[1]

    def case(self, node: Case, cwds: Places, feed: Site | None) -> Ends:
        self.words((node.word, *node.patterns), cwds)
        ends = cwds
        for branch in node.branches:
            done = self.script(branch, ends, feed)
            ends = ends | done[0] | done[1]
        return ends, ends

    def define(self, node: Function, cwds: Places) -> Ends:
        reason = self.rules.function(node.name, self.site)
        self.note(node, f"{node.name}()", reason)
        body = node.body
        self.functions.add(node.name, body)
        self.functions.call(node.name, cwds, self.body)
        return cwds, frozenset()

    def body(self, body: Statement, cwds: Places) -> Places:
        with self.functions.inside():
            ok, failed = self.statement(body, cwds, None)
        return ok | failed or cwds

    # Commands --------------------------------------------------------------------------------

    def words(self, words: tuple[Word, ...], cwds: Places) -> None:
        for script in (script for word in words for script in word.scripts):
            with self.functions.inside():
                self.script(script, cwds)

    def command(self, node: Command, cwds: Places, feed: Site | None) -> Ends:
        self.words(node.words, cwds)
        for assignment in node.assignments:
            self.words(assignment.values, cwds)
        site = (feed or self.site)._replace(cwds=cwds)
        reason = self.rules.prefix(node, site)
        ends: Ends = (cwds, cwds)
        if not reason and node.kind in ("call", "declare"):
            reason, ends = self.run(node, site)
        self.note(node, node.text, reason)
        return ends

    def run(self, node: Command, site: Site) -> tuple[str, Ends]:
        cwds = site.cwds
        words = node.words
        if not words:
            return "", (cwds, cwds)
        name = words[0].value
        if name is not None and self.functions.has(name):
            return "", self.called(name, cwds)
        if going := mover(words):
            places, is_sure = moved(going, site, self.visited)
            return "", (places, frozenset() if is_sure else cwds)
        reason = self.rules.judge(words, site)
        if name == "unset":
            self.functions.forget(words[1:])
        if name == "exit" and not reason:
            return "", (frozenset(), frozenset())
        return reason, (cwds, cwds)

    def called(self, name: str, cwds: Places) -> Ends:
        ends = self.functions.call(name, cwds, self.body)
        return ends, ends


def _rules(policy: Policy) -> Rules:
    if policy.level == "full":
        from cuggino.guard.commands.listed import RULES
    else:
        from cuggino.guard.commands.acts import RULES
    return RULES


def _document(redirect: Redirect) -> str | None:
    """Return the text of a here-document or here-string, or None if it is unknown."""
    if redirect.operator in ("<<", "<<-") and redirect.body is not None:
        return redirect.body.value
    if redirect.operator == "<<<":
        value = redirect.target.value
        return None if value is None else f"{value}\n"
    return None
