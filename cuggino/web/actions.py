"""Actions of a person on the page: items, answers, specifications, and control of the run.

Each action is a plain function on a workspace, and a route that calls it. If an action fails, its
form is shown again with everything that was written in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote_plus

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from cuggino import events as ev
from cuggino.config import load_config
from cuggino.domain import item_name, options_of
from cuggino.errors import ConfigError, CugginoError, FileChanged, StorageError
from cuggino.files import state_folder
from cuggino.report import Diffs, commit_diffs, slot_of
from cuggino.runs import RecordedRun, Runs, working_process
from cuggino.storage import (
    KEY_FILE,
    Backlog,
    ControlFolder,
    Workspace,
    Written,
    answer_issue,
    decide,
    file_title,
    iter_entries,
    list_journals,
    move_item,
    read_start,
    read_written,
    rewrite,
    spec_files,
)
from cuggino.web import forms, pages
from cuggino.web.board import Asked, Item
from cuggino.web.names import id_named, run_name
from cuggino.web.site import Place, Site

CONFIRMED = ("stop", "stop-now", "skip")
"""Acts whose buttons lead to a page that asks for a confirmation."""
LONGEST_TITLE = 200
_REFUSED = 409
_LONGEST_FIELD = 48_000
"""Bytes of a text in a form; a form has at most 64 kB."""
T = TypeVar("T")

Values = Mapping[str, str]
"""The fields of a form."""


# Actions; an action that raises a `CugginoError` has changed nothing


def add_item(workspace: Workspace, values: Values) -> str:
    """Add an item at the end of the backlog; return its name."""
    title = " ".join(values.get("title", "").split())
    if len(title) > LONGEST_TITLE:
        raise ConfigError(
            f"the title is longer than {LONGEST_TITLE} characters", hint="put the rest in the text"
        )
    return Backlog(workspace).add(title, values.get("text", ""))


def read_item(workspace: Workspace, name: str) -> Item:
    """Return an item of the backlog, or a parked one.

    Raises:
        StorageError: there is none of this name.
    """
    backlog = Backlog(workspace)
    parked = backlog.parked()
    if backlog.is_item(name) and name in backlog.items():
        path, reason = backlog.path(name), ""
    elif name in parked:
        path, reason = workspace.parked / name, parked[name]
    else:
        raise StorageError("read item", f"there is no item {name!r} in the backlog any more")
    at_work = not reason and name in items_with_runs(workspace)
    try:
        return Item(name, file_title(path), _read_short(path), "", reason, at_work)
    except StorageError as error:
        return Item(name, file_title(path), None, error.message, reason, at_work)


def edit_item(workspace: Workspace, name: str, values: Values) -> None:
    """Replace the text of an item, unless it has changed since it was shown."""
    item = read_item(workspace, name)
    folder = workspace.parked if item.parked else workspace.backlog
    rewrite(folder / name, values.get("text", ""), digest=values.get("digest", ""))


def retry_item(workspace: Workspace, name: str, values: Values) -> str:
    """Put a parked item back into the backlog, with a changed text if one is given."""
    item = read_item(workspace, name)
    if not item.parked:
        return name
    if "text" in values and item.written and values["text"].strip() != item.written.text.strip():
        edit_item(workspace, name, values)
    return Backlog(workspace).unpark(name)


def reorder_item(workspace: Workspace, name: str, *, up: bool) -> str:
    """Move the item up or down by one; return its new name."""
    return move_item(Backlog(workspace), name, up=up, keep=items_with_runs(workspace))


def items_with_runs(workspace: Workspace) -> frozenset[str]:
    """Return the items with an unfinished run, which is found by their names."""
    names: set[str] = set()
    with suppress(CugginoError):
        for run in Runs(workspace.root).all():
            if isinstance(run, RecordedRun) and (run.resumable or run.state == "running"):
                names.add(item_name(run.started.item))
    return frozenset(names - {""})


def read_issue(workspace: Workspace, name: str) -> Asked:
    """Return a spec issue or finding by its file or its name in URLs.

    Raises:
        StorageError: there is none of this name.
    """
    found = workspace.issue(id_named(name, (issue.name for issue in workspace.issues())))
    text = read_start(found.path, 100_000)
    options = () if found.is_approval else options_of(text)
    return Asked(found, text, tuple(spec_files(specs_folder(workspace))), options)


def settle_issue(workspace: Workspace, name: str, values: Values, *, at: datetime) -> None:
    """Answer, resolve or dismiss a spec issue or finding; approve or reject an approval."""
    issue = read_issue(workspace, name).issue
    text = values.get("text", "")
    match values.get("do"):
        case "approve" if issue.is_approval:
            decide(workspace, issue, approves=True, text=values.get("plan", ""))
        case "reject" if issue.is_approval:
            decide(workspace, issue, approves=False, text=text)
        case _ if issue.is_approval:
            raise ConfigError("approve or reject it")
        case "answer":
            answer_issue(workspace, issue, text, specs=specs_folder(workspace), at=at)
        case "resolve":
            workspace.resolve(issue)
        case "dismiss":
            if not text.strip():
                raise ConfigError("the reason is empty", hint="say why it is not an issue")
            workspace.dismiss(issue, text, at=at)
        case _:
            raise ConfigError("no such action")


def specs_folder(workspace: Workspace) -> Path:
    """Return the folder of the specifications."""
    return workspace.root / load_config(workspace.root).specs_path


def spec_path(workspace: Workspace, name: str) -> Path:
    """Return the path of a specification.

    Raises:
        StorageError: the file may not be edited here.
    """
    folder = specs_folder(workspace)
    if name not in spec_files(folder):
        raise StorageError("read specification", f"there is no specification {name!r}")
    return folder / name


def edit_spec(workspace: Workspace, name: str, values: Values, *, at: datetime) -> None:
    """Replace the text of a specification; settle the issue that led to it, if one is named."""
    rewrite(spec_path(workspace, name), values.get("text", ""), digest=values.get("digest", ""))
    if values.get("issue") and values.get("do") == "settle":
        settle_issue(workspace, values["issue"], {"do": "resolve"}, at=at)


def control(workspace: Workspace, values: Values) -> None:
    """Ask the run at work to pause, continue, stop, skip an item, or steer its agent.

    Raises:
        ConfigError: nothing runs, or the message is empty or too long.
    """
    item = values.get("item") or None
    text = values.get("text", "").strip()
    command: ev.ControlEvent
    match values.get("do"):
        case "pause":
            command = ev.PauseAsked()
        case "continue":
            command = ev.ContinueAsked()
        case "stop":
            command = ev.StopAsked()
        case "stop-now":
            command = ev.StopAsked(now=True)
        case "skip":
            command = ev.SkipAsked(item=item)
        case "steer":
            command = ev.SteerAsked(text=text, item=item)
        case _:
            raise ConfigError("no such action")
    command_at_work(workspace)
    state = state_folder(os.environ)
    ControlFolder(workspace.control, key=state / KEY_FILE if state else None).send(command)


def command_at_work(workspace: Workspace) -> str:
    """Return the command that works on the project.

    Raises:
        ConfigError: none does.
    """
    owner = working_process(workspace)
    if owner is None:
        raise ConfigError("nothing is running here to receive it")
    return owner.command or "cuggino"


def run_named(workspace: Workspace, name: str) -> str:
    """Return the id of a run by its name in URLs."""
    return id_named(name, (path.stem for path in list_journals(workspace.journal)))


def commit_message(workspace: Workspace, run_id: str, wanted: str) -> str:
    """Return the message of a commit of the run.

    Raises:
        StorageError: the run has made no such commit.
    """
    path = next((one for one in list_journals(workspace.journal) if one.stem == run_id), None)
    for entry in iter_entries(path, only=("CommitPerformed", "CommitSeen")) if path else ():
        match entry.event:
            case ev.CommitPerformed(commit_hash=known, message=message) if known == wanted:
                return message
            case ev.CommitSeen(commit_hash=known, subject=subject) if known == wanted:
                return subject
            case _:
                pass
    raise StorageError("read commit", "this run has made no such commit")


# Routes


async def _add(request: Request) -> Response:
    place, site = _place(request), _site(request)
    if request.method == "GET":
        return HTMLResponse(pages.add_page(site, place, {}))
    values = await forms.read(request)
    try:
        await _thread(partial(add_item, place.workspace, values))
    except CugginoError as error:
        return HTMLResponse(pages.add_page(site, place, values, error), _REFUSED)
    return _back(request, f"board-{place.key}")


async def _item(request: Request) -> Response:
    place, site, name = _place(request), _site(request), _name(request)
    workspace = place.workspace
    if request.method == "GET":
        item = await _thread(partial(read_item, workspace, name))
        return HTMLResponse(pages.item_page(site, place, item))
    values = await forms.read(request)
    acts: Mapping[str, Callable[[], object]] = {
        "save": partial(edit_item, workspace, name, values),
        "retry": partial(retry_item, workspace, name, values),
        "up": partial(reorder_item, workspace, name, up=True),
        "down": partial(reorder_item, workspace, name, up=False),
    }
    try:
        await _thread(acts.get(values.get("do", ""), _no_such_action))
    except FileChanged as error:
        item = await _thread(partial(read_item, workspace, name))
        return HTMLResponse(pages.item_page(site, place, item, values["text"], error), _REFUSED)
    except CugginoError as error:
        return _unsaved(request, place, values, error)
    return _back(request, f"board-{place.key}")


async def _issue(request: Request) -> Response:
    place, site, name = _place(request), _site(request), _name(request)
    read = partial(read_issue, place.workspace, name)
    if request.method == "GET":
        chosen = {"text": request.query_params.get("text", "")}
        return HTMLResponse(pages.issue_page(site, place, await _thread(read), chosen))
    values = await forms.read(request)
    now = datetime.now().astimezone()
    try:
        await _thread(partial(settle_issue, place.workspace, name, values, at=now))
    except CugginoError as error:
        try:
            question = await _thread(read)
        except CugginoError:
            return _unsaved(request, place, values, error)
        return HTMLResponse(pages.issue_page(site, place, question, values, error), _REFUSED)
    return _back(request, f"waits-{place.key}")


async def _spec(request: Request) -> Response:
    place, site, name = _place(request), _site(request), _name(request)
    read = partial(_read_spec, place.workspace, name)
    if request.method == "GET":
        issue = request.query_params.get("issue", "")
        return HTMLResponse(pages.spec_page(site, place, name, await _thread(read), issue))
    values = await forms.read(request)
    issue = values.get("issue", "")
    now = datetime.now().astimezone()
    try:
        await _thread(partial(edit_spec, place.workspace, name, values, at=now))
    except FileChanged as error:
        text, written = values["text"], await _thread(read)
        page = pages.spec_page(site, place, name, written, issue, text, error)
        return HTMLResponse(page, _REFUSED)
    except CugginoError as error:
        return _unsaved(request, place, values, error)
    return _back(request, f"waits-{place.key}")


def _diffs_of(place: Place, run: str, commit: str) -> Diffs:
    journal = place.workspace.journal / f"{run}.jsonl"
    return commit_diffs(place.folder, [commit], slot=slot_of(journal))


async def _commit(request: Request) -> Response:
    place = _place(request)
    run = await _thread(partial(run_named, place.workspace, request.path_params["run"]))
    wanted = request.path_params["sha"]
    message = await _thread(partial(commit_message, place.workspace, run, wanted))
    diffs = await _thread(partial(_diffs_of, place, run, wanted))
    return HTMLResponse(pages.commit_fragment(diffs.get(wanted), message))


async def _control(request: Request) -> Response:
    if request.method == "GET":
        return await _confirm(request)
    place, values = _place(request), await forms.read(request)
    run = values.get("run", "")
    try:
        await _thread(partial(control, place.workspace, values))
    except CugginoError as error:
        return _unsaved(request, place, values, error)
    _site(request).poke()
    return forms.back(request, *(("p", place.key, "runs", run_name(run)) if run else ()))


async def _confirm(request: Request) -> Response:
    place, values = _place(request), dict(request.query_params)
    if values.get("do") not in CONFIRMED:
        return forms.back(request)
    try:
        command = await _thread(partial(command_at_work, place.workspace))
    except CugginoError as error:
        return _unsaved(request, place, values, error)
    return HTMLResponse(pages.confirm_page(_site(request), place, values, command=command))


def _read_spec(workspace: Workspace, name: str) -> Written:
    return _read_short(spec_path(workspace, name))


def _read_short(path: Path) -> Written:
    """Return the text of a file that fits into a form, with room for more.

    Raises:
        StorageError: as in `read_written`, or the text does not fit.
    """
    written = read_written(path)
    if len(quote_plus(written.text)) > _LONGEST_FIELD:
        raise StorageError(
            "read", f"{path} cannot be edited here: too long for a form", hint="use an editor"
        )
    return written


def _unsaved(request: Request, place: Place, values: Values, error: CugginoError) -> Response:
    page = pages.unsaved_page(_site(request), place, values, error)
    return HTMLResponse(page, _REFUSED)


def _name(request: Request) -> str:
    name: str = request.path_params["name"]
    return name


def _back(request: Request, anchor: str) -> Response:
    _site(request).poke()
    return forms.back(request, anchor=anchor)


def _no_such_action() -> None:
    raise ConfigError("no such action")


async def _thread(act: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(act)


def _site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


def _place(request: Request) -> Place:
    """Return the workspace of the URL.

    Raises:
        StorageError: there is none.
    """
    place = _site(request).place(request.path_params["place"])
    if place is None:
        raise StorageError("find project", "there is no such project")
    return place


ROUTES = (
    Route("/p/{place}/runs/{run}/commit/{sha}", _commit),
    Route("/p/{place}/items", _add, methods=["GET", "POST"]),
    Route("/p/{place}/items/{name}", _item, methods=["GET", "POST"]),
    Route("/p/{place}/questions/{name}", _issue, methods=["GET", "POST"]),
    Route("/p/{place}/specs/{name:path}", _spec, methods=["GET", "POST"]),
    Route("/p/{place}/control", _control, methods=["GET", "POST"]),
)
"""Routes below the secret path."""
