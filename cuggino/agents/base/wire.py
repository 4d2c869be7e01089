"""JSON and text printed by a program, where any value may have any type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, TypeAlias, TypeGuard

from pydantic_core import from_json

from cuggino.domain import size_text, without_escapes
from cuggino.events import AgentMessage, McpServerFailed, MessageDelta, Usage

Json: TypeAlias = dict[str, Any]

MOST_LEVELS = 100
"""An event holds at most 255 levels."""

_TOO_DEEP = "(nested too deeply to be shown)"
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff]")
_RAW_CONTROLS = {0xDC00 + code: code for code in range(0x80, 0xA0)}
"""Controls of 8 bits that are not encoded in UTF-8."""
_DECODER = json.JSONDecoder()
_OBJECT = re.compile(r"\{\s*\"")
"""The beginning of an object that has members."""


def parse_json_line(line: bytes, *, surrogates: bool = False) -> Json | None:
    """Return the JSON object on this line, or None for anything else (CUG-082).

    Terminal sequences, control characters and a byte order mark are left out, and so is plain text
    before a message of a program, for example a spinner without an end of line. Invalid UTF-8
    becomes U+FFFD, and so do lone surrogates, so that every text can be encoded; with `surrogates`
    these are kept, as another line may complete them.
    """
    return next(iter(parse_json_lines(line, surrogates=surrogates)), None)


def parse_json_lines(line: bytes, *, surrogates: bool = False) -> list[Json]:
    """Return the JSON objects on this line, as `parse_json_line` does; it may hold several."""
    try:
        value = from_json(line, cache_strings="keys")
    except ValueError:  # it is stricter, for example about lone surrogates
        return _parse_leniently(line, surrogates=surrogates)
    return [value] if isinstance(value, dict) else []


def plain_text(line: bytes) -> str:
    """Return a line of a program's output as a terminal shows it, without sequences and blanks."""
    text = _cleaned(line).rstrip()
    return text.rpartition("\r")[2].strip()


def dict_or_empty(value: Any) -> Json:
    """Return the object, or an empty one for any other type."""
    return value if isinstance(value, dict) else {}


def list_or_empty(value: Any) -> list[Any]:
    """Return the list, or an empty one for any other type."""
    return value if isinstance(value, list) else []


def text_or_none(value: Any) -> str | None:
    """Return the text, or None for any other type."""
    return value if isinstance(value, str) else None


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return True for a finite number of sensible size; booleans are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def count_or_zero(value: Any) -> int:
    """Return the value as a count, or 0 for any other type."""
    return max(0, int(value)) if is_number(value) else 0


def tokens_of(told: Json, *, sent: str, written: str, read: str, created: str) -> Usage:
    """Return the tokens reported under these names, where those of the cache count as input."""
    cached, new = count_or_zero(told.get(read)), count_or_zero(told.get(created))
    return Usage(
        input_tokens=max(0, count_or_zero(told.get(sent)) - cached - new),
        output_tokens=count_or_zero(told.get(written)),
        cache_read_tokens=cached,
        cache_creation_tokens=new,
    )


def without(usage: Usage, before: Usage | None) -> Usage:
    """Return the usage since `before`."""
    known = before or Usage()
    return Usage(**{name: max(0, count - getattr(known, name)) for name, count in usage})


def shown(value: Any, levels: int = MOST_LEVELS) -> Any:
    """Return a tool's input in a form that events can hold; deeply nested parts are left out."""
    if levels == 0:
        return _TOO_DEEP
    if isinstance(value, dict):
        return {str(key): shown(item, levels - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [shown(item, levels - 1) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def compact(value: Any) -> str:
    """Return the value as JSON in one line."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return _TOO_DEEP


_TYPES = ("mimeType", "media_type", "mime_type", "mediaType", "mime")
_DATA = ("data", "blob", "base64", "file_data")
_LINKS = ("url", "uri", "image_url", "fileUri", "file_url")
_HOLDERS = ("source", "resource", "image_url", "inlineData", "inline_data", "fileData", "file")
"""Members in which the programs and their APIs keep the content of a part that is not text."""
_KINDS = frozenset({"image", "audio", "video", "document", "file", "resource_link", "blob"})
_BASE64 = re.compile(r"[A-Za-z0-9+/_\r\n-]*={0,2}\s*")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]{0,99})*;base64,", re.ASCII)
_LONG_URL = re.compile(_DATA_URL.pattern + r"([\w+/=-]{1000,})", re.ASCII)
_LONG_DATA = re.compile(r"(\"[\w-]{1,40}\"\s{0,9}:\s{0,9})\"([\w+/-]{1000,}={0,2})\"", re.ASCII)
"""Content within a text; short ones, such as an icon in a page, are kept."""
_LONG = 1000
_BEGINNINGS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
}
"""Beginnings of common types in base64."""


def output_text(content: Any) -> str:
    """Return the text of a tool's result: a text, or parts, each on a line.

    A part that is not text is named by its type and size, as in `[image/png, 1.5 MB]`, also within
    other values, and in a text that holds it in base64. Other parts are JSON.
    """
    if isinstance(content, str):
        return _text(content)
    return "\n".join(map(_part_text, content if isinstance(content, list) else [content]))


def _part_text(part: Any) -> str:
    match part:
        case (
            {"text": str(text)}
            | {"resource": {"text": str(text)}}
            | {"source": {"type": "text", "data": str(text)}}
        ):
            return _text(text)
        case dict() if named := _media(part):
            return named
        case str() if named := _data_url(part):
            return named
        case _:
            return _text(compact(_without_media(part, MOST_LEVELS)))


def _text(text: str) -> str:
    if named := _data_url(text):
        return named
    if ";base64," in text:
        text = _LONG_URL.sub(lambda found: _named(found[1] or "data", _decoded(found[2])), text)
    return _LONG_DATA.sub(lambda found: f'{found[1]}"{_named_data(found[2])}"', text)


def media_texts(parts: Any) -> list[str]:
    """Return the names of the parts that are not text, for a result that has a text beside them."""
    found = (_media(part) for part in list_or_empty(parts) if isinstance(part, dict))
    return [text for text in found if text]


def _media(part: Json) -> str | None:
    """Return the name of a part that is not text, or None for any other value."""
    told = text_or_none(part.get("type")) or ""
    kind = told.removeprefix("input_").removesuffix("_url")
    for holder in (part, *(dict_or_empty(part.get(name)) for name in _HOLDERS)):
        named = _first(holder, _TYPES) or _first(part, _TYPES)
        for text in filter(None, (_first(holder, _DATA), _first(holder, _LINKS))):
            if found := _data_url(text):
                return found
        data, link, size = _first(holder, _DATA), _first(holder, _LINKS), holder.get("byteLength")
        if data is not None and (named or kind in _KINDS) and _BASE64.fullmatch(data):
            return _named(named or kind, _decoded(data))
        if is_number(size) and (named or kind in _KINDS):
            return _named(named or kind, size)
        if link is not None and kind in _KINDS:
            return f"[{named or kind}, {link}]"
    return None


def _first(holder: Json, names: Iterable[str]) -> str | None:
    return next((value for name in names if isinstance(value := holder.get(name), str)), None)


def _data_url(text: str) -> str | None:
    """Return the name of the content of a data URL, or None for any other text."""
    found = _DATA_URL.match(text)
    if found is None or not _BASE64.fullmatch(text, found.end()):
        return None
    return _named(found[1] or "data", _decoded(text[found.end() :]))


def _named_data(data: str) -> str:
    """Return the name of content in base64 whose type is known by its beginning, if at all."""
    kinds = (kind for begin, kind in _BEGINNINGS.items() if data.startswith(begin))
    return _named(next(kinds, "base64"), _decoded(data))


def _named(kind: str, size: float) -> str:
    return f"[{kind}, {size_text(size)}]"


def _decoded(data: str) -> int:
    """Return the number of bytes that the text encodes in base64."""
    blanks = sum(data.count(blank) for blank in " \r\n\t")
    return (len(data) - blanks - data.count("=")) * 3 // 4


def _without_media(value: Any, levels: int) -> Any:
    if levels == 0:
        return _TOO_DEEP
    match value:
        case str() if len(value) >= _LONG and _BASE64.fullmatch(value):
            return _named_data(value)
        case str():
            return _data_url(value) or value
        case dict():
            named = _media(value)
            return named or {key: _without_media(item, levels - 1) for key, item in value.items()}
        case list():
            return [_without_media(item, levels - 1) for item in value]
        case _:
            return value


def failed_servers(servers: Any) -> list[McpServerFailed]:
    """Return one event for each MCP server of the list that failed."""
    return [
        McpServerFailed(server=text_or_none(server.get("name")) or "unknown")
        for server in (servers if isinstance(servers, list) else [])
        if isinstance(server, dict) and server.get("status") == "failed"
    ]


def _cleaned(line: bytes) -> str:
    """Return the line without terminal sequences and controls, which JSON does not contain."""
    text = line.decode("utf-8", "surrogateescape").translate(_RAW_CONTROLS)
    return _SURROGATE.sub("\ufffd", _CONTROLS.sub("", without_escapes(text)))


def _parse_leniently(line: bytes, *, surrogates: bool) -> list[Json]:
    text, found, at = _cleaned(line).strip(), list[Json](), 0
    while (begin := _OBJECT.search(text, at)) is not None:
        try:
            value, at = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            break
        if not surrogates and ("\\ud" in text or "\\uD" in text):
            value = _without_surrogates(value)
        if begin.start() > 0 and not is_message(value):
            break
        found.append(value)
    return found


def is_message(value: Json) -> bool:
    """Return whether the object is a message of a program, not data in its plain text.

    The body of an API's error also has a type.
    """
    if value.get("jsonrpc") == "2.0":
        return True
    is_body = value.get("type") == "error" and isinstance(value.get("error"), dict)
    return isinstance(value.get("type"), str) and (not is_body or "sessionID" in value)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value


class Pieces:
    """Texts that arrive in pieces, each with a key.

    A surrogate pair split across pieces is joined; a lone half becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._half: dict[str | None, str] = {}

    def add(self, key: str | None, piece: str) -> str:
        """Add a piece and return the text that is complete."""
        text = self._half.pop(key, "") + piece
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half[key] = text[:-1], text[-1]
        if _SURROGATE.search(text):
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def end(self, key: str | None) -> str:
        """Finish the text and return the rest of it."""
        return "\ufffd" if self._half.pop(key, "") else ""


def deltas(text: str, message_id: str | None, parent: str | None = None) -> list[MessageDelta]:
    """Return the delta of a message that has an id, if there is a text."""
    if not text or not message_id:
        return []
    return [MessageDelta(text=text, message_id=message_id, parent_tool_use_id=parent)]


class Draft:
    """The message that the model is writing, if its program reports only pieces."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._message_id = ""

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def add(self, piece: str, message_id: str) -> MessageDelta:
        """Add a piece, of which the first one names the message."""
        self._message_id = self._message_id if self._pieces else message_id
        self._pieces.append(piece)
        return MessageDelta(text=piece, message_id=self._message_id)

    def end(self) -> list[AgentMessage]:
        """Return the complete message, or none."""
        text = self.text
        self._pieces.clear()
        return [AgentMessage(text=text, message_id=self._message_id)] if text else []
