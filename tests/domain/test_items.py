"""Backlog items and plans: front matter, titles, tasks, and the orders of work and landing."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from cuggino import events as ev
from cuggino.domain import (
    LandingQueue,
    after_of,
    attempts_of,
    held_of,
    is_marked_imported,
    most_at_once,
    needs_of,
    plan_tasks,
    ready_order,
    split_front_matter,
    task_order,
    task_titles,
    title_of,
    unticked_tasks,
    with_held,
    without_file,
)
from tests.growth import is_linear
from tests.report.nights import PLAN
from tests.vectors import each


@pytest.mark.parametrize(
    ("front", "names"),
    [
        ("after: 001-login.md", ["001-login.md"]),
        ("after: a.md, b.md", ["a.md", "b.md"]),
        ("after: [a.md, b]", ["a.md", "b"]),
        ("after: []", []),
        ("after:", []),
        ("after: [ a.md ,b.md, ]", ["a.md", "b.md"]),
        ("after:\n  - a.md\n  - b.md", ["a.md", "b.md"]),
        ("after:\n- a.md\n-\n- b.md", ["a.md", "b.md"]),
        ("after: [a.md,\n  b.md]", ["a.md", "b.md"]),
        ("after: [a.md, a.md]", ["a.md"]),
        ("after: a b.md", ["a b.md"]),
        ("after: 'a, b.md'", ["a, b.md"]),
        ('after: ["[x] c.md", d.md] # first', ["[x] c.md", "d.md"]),
        ("after: a.md # because", ["a.md"]),
        ("after: a#1.md", ["a#1.md"]),
        ("# a comment\nafter: a.md", ["a.md"]),
        ("priority: 1\nafter: a.md\nlabels:\n  - x", ["a.md"]),
        ("labels:\n  - x\n\nafter: ünïcode.md", ["ünïcode.md"]),
        ("hereafter: a.md", []),
    ],
)
def test_names_under_after(front: str, names: list[str]) -> None:
    """A value, a list on one line and a list of lines are read, with quotes and comments."""
    for newline in ("\n", "\r\n"):
        text = f"---\n{front}\n---\n# Title\n\nafter: z.md\n".replace("\n", newline)
        assert tuple(names) == after_of(text)
        assert f"# Title{newline}{newline}after: z.md{newline}" == split_front_matter(text)[1]
        assert "Title" == title_of(text)


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("after: a.md", None),
        ("attempts: 3", 3),
        ("after: a.md\nattempts: 8 # costs", 8),
        ("attempts: '2'", 2),
        ("attempts:", None),
        *((f"attempts: {bad}", ValueError) for bad in ("0", "9", "30", "three", "[2, 3]", "-1")),
    ],
)
def test_number_of_attempts(front: str, expected: int | type[ValueError] | None) -> None:
    """A number from 1 to 8 under `attempts`; anything else is an error that says so."""
    text = f"---\n{front}\n---\n# Title\n"
    if isinstance(expected, type):
        with pytest.raises(expected, match="attempts must be a number from 1 to 8"):
            attempts_of(text)
    else:
        assert expected == attempts_of(text)


def test_words_under_needs() -> None:
    """`needs` is read like `after`, beside it."""
    text = "---\nafter: a.md\nneeds: [gpu, memory=64]\n---\n# Title\n"
    assert ("gpu", "memory=64") == needs_of(text)
    assert ("a.md",) == after_of(text)
    assert () == needs_of("# Title\n\nneeds: gpu\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Title\n\nafter: a.md\n",
        "---\nafter: a.md\n",
        "---\n\nSome text\n\n---\n",
        "---\n---\n",
        "---\n# only a heading\n---\n",
        "---\n- after: a.md\n---\n",
        "---\nNote to myself: after: x\n---\n",
        " ---\nafter: a.md\n---\n",
        "----\nafter: a.md\n----\n",
        "---\nafter: a.md\nand then some prose\n---\n",
    ],
)
def test_text_without_front_matter(text: str) -> None:
    """Markdown with rules, and front matter without an end, is text."""
    assert ("", text) == split_front_matter(text)
    assert () == after_of(text)


def test_a_byte_order_mark_and_other_ends() -> None:
    """Front matter may follow a byte order mark and end with three dots."""
    assert ("after: a\n", "text") == split_front_matter("\ufeff---\nafter: a\n...\ntext")
    assert ("after: a\n", "") == split_front_matter("--- \nafter: a\n---")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Title\n\nheld: no\n",
        "---\nafter: a.md\nneeds: gpu\n---\n# Title\n",
        "---\n# a comment\nafter:\n  - a.md\n---\n",
    ],
)
def test_an_item_is_held_and_let_go(text: str, newline: str) -> None:
    """The reason replaces an earlier one, and all else stays as it is."""
    text = text.replace("\n", newline)
    held = with_held(with_held(text, "broken\n build"), 'by "me", until #1')
    assert "by 'me', until #1" == held_of(held)
    assert (after_of(text), needs_of(text)) == (after_of(held), needs_of(held))
    assert split_front_matter(text)[1] == split_front_matter(held)[1]
    assert "" == held_of(text)
    assert text == with_held(held, "") == with_held(text, " ")


def test_the_lines_of_an_earlier_reason_go_with_it() -> None:
    """A list of reasons is replaced by one line, at the end."""
    text = "---\nheld:\n  - a\n  - b\nafter: a.md\n---\ntext"
    assert "a, b" == held_of(text)
    assert '---\nafter: a.md\nheld: "c"\n---\ntext' == with_held(text, "c")
    assert "---\nafter: a.md\n---\ntext" == with_held(text, "")


def test_line_ends_of_two_kinds() -> None:
    """The front matter may end its lines in another way than the text."""
    text = "---\rneeds: gpu\r---\rfirst\nsecond"
    assert '---\rneeds: gpu\rheld: "c"\n---\rfirst\nsecond' == with_held(text, "c")


@pytest.mark.parametrize(
    ("front", "is_imported"),
    [("source: forge\nid: 1", True), ("source: forge", False), ("id: 1", False), ("id:", False)],
)
def test_imported_items(front: str, is_imported: bool) -> None:
    """An imported item has both `source` and `id`."""
    assert is_marked_imported(f"---\n{front}\n---\n") == is_imported


@each(
    "plan, titles",
    [
        (PLAN, ("Sign-in form with validation", "Session cookie")),
        ("# Plan\n\n### task 3. a\n### Task 4: b ##\n", ("a", "b")),
        ("## Task 1: the two\n\n- [ ] x\n## Task 2 : b: c\n## Tasks\n", ("the two", "b: c")),
        ("## Task 1: a\n\n### Step 1: of a\n\n## Task 2: b\n", ("a", "b")),
        ("- [x] one\n* [ ] two\n1. [ ] three\n  - [ ] below\n", ("one", "two", "three")),
        ("## Task 1\n", ("",)),
        ("Just do it.", ()),
        ("", ()),
    ],
)
def test_tasks(plan: str, titles: tuple[str, ...]) -> None:
    """Tasks are the headings of a plan on one level, or its check boxes."""
    assert titles == task_titles(plan)


@each(
    "text, title",
    [
        ("Add a login page.\n\nSoon.", "Add a login page."),
        ("Why not.\n\n## Log in  ##\n", "Log in"),
        ("---\nafter: a.md\n---\n\n# Log in\n", "Log in"),
        ("The file `a.md`, with this content:\n\nBlue,\nnot green.", "Blue,"),
        ("The file `a.md`, which says:\n---\nneeds: gpu\n---\nBlue.", "Blue."),
        ("", ""),
        ("\n \n", ""),
        ("\n  first\tline\n\nsecond", "first line"),
        ("text\n\n## A  heading ##\n", "A heading"),
        ("# " + "x" * 120, "x" * 120),
        ("# " + "x" * 121, "x" * 119 + "…"),
        ("x" * 200, "x" * 119 + "…"),
    ],
)
def test_titles_of_texts(text: str, title: str) -> None:
    """The first heading or line, at most 120 characters, without front matter and file name."""
    assert title == title_of(text)


def test_text_of_a_focus() -> None:
    """The sentence that names the file of a focus is removed, and nothing else."""
    assert "# A" == without_file("The file `a.md`, with this content:\n\n# A")
    assert " The file `a.md` is wrong." == without_file(" The file `a.md` is wrong.")


@each(
    "plan,count",
    [
        ("", 0),
        ("# Plan\n\n- [ ] a\n- [x] b\n* [ ] c\n1. [ ] d\n", 3),
        ("## Task 1: a\n- [ ] one\n- [ ] two\n## Task 2: b\n- [x] one\n- [ ] two\n", 2),
        ("## Task 1: a\n- [x] one\n## Task 2: b\nno box\n", 0),
        ("- [ ] first\n\n## Task 1: a\n- [ ] one\n### Task 1: sub\n- [ ] two\n", 2),
        ("## Tasks\n- [ ] a\n  - [ ] a.1\n- [ ] b\n", 2),
        ("```\n- [ ] a\n```\n- [ ] b\n~~~\n- [ ] c\n", 1),
    ],
)
def test_unticked_tasks(plan: str, count: int) -> None:
    """A section of a task counts once, whatever its boxes; elsewhere each box counts."""
    assert count == unticked_tasks(plan)


TASKS = """\
# Plan

## Task 1: the parser

after: none
files: `parser.py`, ./tests/test_parser.py

- [ ] read a line

```
after: 7
```

## Task 2: the printer
- files: printer.py
- **after:** Task 1

## Task 4: the command
After: 1, task 2, 4 and 9
"""


def test_a_plan_says_what_each_task_comes_after_and_changes() -> None:
    """Numbers are those of the headings; code, unknown numbers and the task itself are ignored."""
    parser, printer, command = plan_tasks(TASKS)
    assert [(1, "the parser"), (2, "the printer"), (3, "the command")] == [
        (task.number, task.title) for task in (parser, printer, command)
    ]
    assert ((), ("parser.py", "tests/test_parser.py")) == (parser.after, parser.files)
    assert ((1,), ("printer.py",)) == (printer.after, printer.files)
    assert ((1, 2), ()) == (command.after, command.files)
    assert parser.text.startswith("## Task 1: the parser\n")
    assert parser.text.endswith("after: 7\n```")


@each(
    "line, attempts, note",
    [
        ("", None, ""),
        ("attempts: 3", 3, ""),
        ("- **attempts:** 2 (nobody knows how)", 2, ""),
        ("attempts: 20", 8, "`attempts: 20` counts as 8: a task has 1 to 8 attempts"),
        ("attempts: 0", 1, "`attempts: 0` counts as 1: a task has 1 to 8 attempts"),
        ("attempts: many", None, "`attempts: many` is ignored: it has no number"),
    ],
)
def test_the_attempts_at_a_task(line: str, attempts: int | None, note: str) -> None:
    """A wrong number is brought within its bounds, and the note says so."""
    (task,) = plan_tasks(plan(line))
    assert (attempts, note) == (task.attempts, task.note)


def test_a_plan_of_boxes_has_no_tasks_for_hands() -> None:
    """Check boxes alone are a list for one agent after another."""
    assert () == plan_tasks("# Plan\n\n- [ ] one\n- [ ] two\n")


def plan(*fields: str) -> str:
    """Return a plan with a task for each of the fields below its heading."""
    return "\n".join(f"## Task {n}: t\n{field}\n" for n, field in enumerate(fields, 1))


@each(
    "fields, order, most",
    [
        (("", "", ""), {1: (), 2: (1,), 3: (2,)}, 1),
        (("after: none", "", ""), {1: (), 2: (), 3: ()}, 3),
        (("files: a", "files: b", "files: c"), {1: (), 2: (), 3: ()}, 3),
        (("files: a", "files: b", "files: a, b"), {1: (), 2: (), 3: (1, 2)}, 2),
        (("files: src", "files: src/a.py", "files: srcs"), {1: (), 2: (1,), 3: ()}, 2),
        (("after: 2\nfiles: a", "files: a"), {1: (2,), 2: ()}, 1),
        (("", "after: 1", "after: 1", "after: 2, 3"), {1: (), 2: (1,), 3: (1,), 4: (2, 3)}, 2),
        (("after: 2", "after: 1", ""), {1: (), 2: (1,), 3: (2,)}, 1),
        ((), {}, 0),
    ],
)
def test_the_order_of_tasks(
    fields: tuple[str, ...], order: dict[int, tuple[int, ...]], most: int
) -> None:
    """Tasks that name the same file follow each other; a plan that says nothing is a list."""
    found = task_order(plan_tasks(plan(*fields)))
    assert order == found
    assert most == most_at_once(found)


def test_without_dependencies_all_are_ready() -> None:
    """The order is that of the backlog."""
    order = ready_order({"b.md": (), "a.md": (), "c.md": ()})
    assert ("b.md", "a.md", "c.md") == order.ready
    assert not order.waiting
    assert not order.held


def test_a_chain() -> None:
    """Each item waits until the one before it has landed."""
    items = {"a.md": (), "b.md": ("a.md",), "c.md": ("b.md", "a.md")}
    first = ready_order(items)
    assert ("a.md",) == first.ready
    assert {"b.md": ("a.md",), "c.md": ("b.md", "a.md")} == first.waiting
    del items["a.md"]
    second = ready_order(items, landed=["a.md"])
    assert ("b.md",) == second.ready
    assert {"c.md": ("b.md",)} == second.waiting
    assert {"b.md": ("a.md",), "c.md": ("a.md",)} == second.landed
    del items["b.md"]
    assert ("c.md",) == ready_order(items, landed={"a.md", "b.md"}).ready


def test_a_name_may_lack_its_suffix() -> None:
    """A name that fits exactly comes first; otherwise all with a suffix are meant."""
    items = {"login": (), "login.md": (), "x.md": ("login",)}
    assert {"x.md": ("login",)} == ready_order(items).waiting
    items = {"a.b.md": (), "a.txt": (), "a.md": (), "x.md": ("a", "a.b")}
    assert {"x.md": ("a.md", "a.txt", "a.b.md")} == ready_order(items).waiting
    assert ("x.md",) == ready_order({"x.md": ("login",)}, landed=["login.md"]).ready


def test_an_item_of_the_backlog_has_not_landed() -> None:
    """An item that was added again after one of the same name is waited for."""
    items = {"a.md": (), "b.md": ("a.md",)}
    assert ("a.md",) == ready_order(items, landed=["a.md"]).ready


def test_unknown_names_hold_an_item() -> None:
    """The reason names them; what comes after the item is held as well, all else goes on."""
    items = {"a.md": ("nothing", "b.md", "none"), "b.md": (), "c.md": ("a",), "d.md": ("c",)}
    order = ready_order(items)
    assert ("b.md",) == order.ready
    reason = "comes after nothing and none, which are not in the backlog"
    assert {
        "a.md": reason,
        "c.md": f"comes after a.md, which {reason}",
        "d.md": "comes after c.md, which is held",
    } == order.held
    assert not order.waiting


@pytest.mark.parametrize("in_backlog", [True, False])
def test_held_items_hold_those_after_them(in_backlog: bool) -> None:
    """A spec issue holds its item and those after it; so does a parked item."""
    items = {"a.md": (), "b.md": ("a",), "c.md": ()}
    if not in_backlog:
        del items["a.md"]
    order = ready_order(items, held={"a.md": "has a spec issue"}, landed=["a.md"])
    assert ("c.md",) == order.ready
    own = {"a.md": "has a spec issue"} if in_backlog else {}
    assert {**own, "b.md": "comes after a.md, which has a spec issue"} == order.held


def test_circles_are_held() -> None:
    """Each item of a circle is named with the way around; the rest goes on."""
    items = {
        "a.md": ("c.md",),
        "b.md": ("a.md",),
        "c.md": ("b.md",),
        "d.md": ("a.md",),
        "e.md": ("e.md",),
        "f.md": (),
    }
    order = ready_order(items)
    assert ("f.md",) == order.ready
    assert {
        "a.md": "comes after itself: a.md -> c.md -> b.md -> a.md",
        "b.md": "comes after itself: b.md -> a.md -> c.md -> b.md",
        "c.md": "comes after itself: c.md -> b.md -> a.md -> c.md",
        "d.md": ("comes after a.md, which comes after itself: a.md -> c.md -> b.md -> a.md"),
        "e.md": "comes after itself: e.md -> e.md",
    } == order.held


def test_a_long_circle_is_shortened() -> None:
    """The reason stays readable."""
    items = {str(n): (str((n + 1) % 100),) for n in range(100)}
    assert "comes after itself: 0 -> 1 -> 2 -> 3 -> 4 -> ... -> 0" == ready_order(items).held["0"]


@each("seed", range(200))
def test_every_item_is_in_one_place(seed: int) -> None:
    """Landing ready items lands all that are not held, each after its prerequisites."""
    chance = random.Random(seed)
    names = [f"{n}.md" for n in range(12)]
    items = {
        name: tuple(chance.sample([*names, "missing"], chance.choice([0, 0, 1, 1, 2])))
        for name in names
    }
    held = {chance.choice(names): "is parked"} if chance.random() < 0.3 else {}
    begun = ready_order(items, held=held)
    left, landed = dict(items), list[str]()
    while (order := ready_order(left, landed=landed, held=held)).ready:
        assert sorted(left) == sorted([*order.ready, *order.waiting, *order.held])
        assert begun.held == order.held
        for name in order.ready:
            assert set(items[name]) <= set(landed)
            del left[name]
        landed += order.ready
    assert left.keys() == begun.held.keys()
    for name in left:
        stuck = name in held or {*items[name]} & (left.keys() | {"missing"})
        assert stuck, f"{name} is held without a reason"


def test_ten_thousand_items() -> None:
    """A long chain and thousands of circles are ordered in linear time."""

    def work(count: int) -> None:
        chain: dict[str, tuple[str, ...]]
        chain = {f"{n:05}": (f"{n - 1:05}",) if n else () for n in range(count)}
        circles: dict[str, tuple[str, ...]] = {f"x{n:05}": (f"x{n ^ 1:05}",) for n in range(count)}
        order = ready_order(chain | circles)
        assert ("00000",) == order.ready
        assert circles.keys() == order.held.keys()

    assert is_linear(work, small=1_250, large=10_000)


def after(*events: ev.Event, queue: LandingQueue | None = None) -> LandingQueue:
    folded = queue or LandingQueue()
    for event in events:
        folded = folded.after(event)
    return folded


def candidates(names: Iterable[str]) -> list[ev.Event]:
    return [
        ev.WatchCandidate(filename=name, slot=1, commit="c", base="b", attempt=1) for name in names
    ]


def landing(name: str) -> ev.Event:
    return ev.WatchLanding(filename=name, commit="c", trunk="t")


def sent_back(name: str, times: int = 1) -> list[ev.Event]:
    """Return the events of an item that was sent back so often."""
    return [
        event
        for n in range(1, times + 1)
        for event in (
            *candidates(name),
            landing(name),
            ev.WatchSentBack(filename=name, reason="conflict", returns=n),
        )
    ]


def test_candidates_land_one_after_the_other() -> None:
    """While one lands nothing else does, and the others keep their order."""
    queue = after(*candidates("abc"))
    assert ("a", "b", "c") == queue.waiting
    assert "a" == queue.next()
    queue = after(landing("a"), queue=queue)
    assert "a" == queue.landing
    assert queue.next() is None
    queue = after(ev.WatchLanded(filename="a", commit="n", trunk_was="t"), queue=queue)
    assert ("b", None) == (queue.next(), queue.landing)


def test_items_sent_back_land_before_new_ones() -> None:
    """Among themselves they keep their order."""
    queue = after(*sent_back("x"), *sent_back("y"), *candidates("abyx"))
    assert ("y", "x", "a", "b") == queue.waiting
    assert {"x": 1, "y": 1} == queue.returns
    assert ["x", "y", "c", "d"] == queue.first("cxdy")
    assert ["y", "x", "c"] == after(*sent_back("y"), queue=queue).first("cxy")


def test_after_two_returns_an_item_has_the_queue_to_itself() -> None:
    """Nothing else lands while it is at work or waits; without it the queue goes on."""
    queue = after(*candidates("ab"), *sent_back("x", 2))
    assert queue.next(active=["x", "c"]) is None
    assert "a" == queue.next(active=["c"]), "it was stopped, or waits for its next attempt"
    queue = after(*candidates("x"), queue=queue)
    assert "x" == queue.next()
    landed = after(ev.WatchLanded(filename="x", commit="n", trunk_was="t"), queue=queue)
    assert "a" == landed.next(active=["x"])


def test_one_item_at_a_time_has_the_queue_to_itself() -> None:
    """It is the one that was sent back twice first, however often the other is."""
    queue = after(*sent_back("x", 2), *sent_back("y", 3), *candidates("y"))
    assert queue.next(active=["x"]) is None
    assert "x" == after(*candidates("x"), queue=queue).next()
    queue = after(*sent_back("y"), *sent_back("x", 2), *sent_back("y"), *candidates("xy"))
    assert "x" == queue.next()


def test_new_items_are_held_back_while_the_queue_is_long() -> None:
    """Two may wait beside the one that lands."""
    queue = after(*candidates("abc"))
    assert not queue.admits_new
    assert after(landing("a"), queue=queue).admits_new


def test_an_item_is_parked_after_its_last_attempt() -> None:
    """Landing or parking forgets its returns."""
    queue = after(*sent_back("x", 3))
    assert queue.is_exhausted("x", 3)
    assert not queue.is_exhausted("x", 4)
    assert not queue.is_exhausted("y", 1)
    for end in (
        ev.WatchItemParked(filename="x", reason=""),
        ev.WatchItemCompleted(filename="x"),
        ev.WatchLanded(filename="x", commit="n", trunk_was="t"),
    ):
        assert LandingQueue() == after(end, queue=queue)


def test_a_proposed_candidate_leaves_the_queue() -> None:
    """It keeps its returns: it has not landed yet."""
    queue = after(*sent_back("x"), *candidates("x"), landing("x"))
    event = ev.WatchProposed(filename="x", number=7, url="u", branch="b", commit="c", candidate="c")
    assert LandingQueue(returns={"x": 1}) == after(event, queue=queue)


def test_an_interrupted_landing_is_repeated_first() -> None:
    """A candidate whose landing did not end is not lost."""
    queue = after(*candidates("ab"), landing("b"), ev.AgentMessage(text="")).interrupted()
    assert LandingQueue(waiting=("b", "a")) == queue
    assert queue == queue.interrupted()
    assert queue == after(*candidates("a"), queue=queue), "a candidate is in the queue once"
