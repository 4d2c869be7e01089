"""Usage limits in text: detecting one, parsing when it is lifted, and how long to wait otherwise.

This is the fallback for agents that report a limit only in words; a structured signal is exact and
takes precedence. Pass only what the agent program itself prints: the text of its result or its
error. Never pass tool output or a model's prose, which may quote such messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from cuggino.domain.schedule import Schedule
from cuggino.domain.texts import without_escapes
from cuggino.domain.zone_names import find_zone

_READ = 20_000  # characters; messages about limits are short
_WINDOW = 160
"""Characters after a word such as `resets` that are searched for its time."""
_FARTHEST = timedelta(days=3660)
"""A later reset is a misreading."""
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_MONTHS = (
    "jan|ene|gen|sty|янв|oca",
    "feb|fev|fév|lut|фев|şub",
    "mar|mär|mrt|мар",
    "apr|abr|avr|kwi|апр|nis",
    "may|mai|mag|mei|maj|мая|май",
    "jun|giu|juin|cze|июн|haz",
    "jul|lug|juil|lip|июл|tem",
    "aug|ago|aoû|aou|sie|авг|ağu",
    "sep|set|wrz|сен|eyl",
    "oct|okt|ott|out|paź|окт|eki",
    "nov|lis|ноя|kas",
    "dec|dic|dez|déc|gru|дек|ara",
)
"""The beginnings of the months' names: English, Spanish, Portuguese, German, French, Italian,
Dutch, Scandinavian, Polish, Russian, Turkish."""
_AFTERNOON = frozenset({"下午", "午後", "晚上", "오후"})
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_WHAT = r"(?:(?!context|token|turn|output|prompt|rate|size|length|time)[\w.'-]{1,20}\s){0,4}?"
_HOURS = r"(?:\d{1,3}|five|seven)[\s-]?(?:h(?:ou)?rs?|days?|h|d)"
_IS = r"(?:(?:has|have)\sbeen\s|was\s|were\s|is\s|are\s)?"
_MET = re.compile(
    # You've hit your (5-hour) limit; you have reached the weekly Opus limit
    rf"\b(?:hit|reached|exceeded|exhausted|used\sup)\s(?:your|the|my|our|an?|its)\s{_WHAT}"
    r"(?:limits?|quota|allowance|capacity|(?:free|included)\susage)\b"
    # You've reached your weekly rate limit
    r"|\b(?:hit|reached|exceeded|exhausted)\s(?:your|the|my|our|its)\s(?:[\w.'-]{1,20}\s){0,2}?"
    rf"(?:weekly|daily|monthly|session|{_HOURS})\srate\slimits?\b"
    # You've used 100% of your weekly limit; you have used all your premium requests
    rf"|\bused\s(?:100\s?%\sof|all(?:\sof)?)\s(?:your|the|my|our|its)\s{_WHAT}"
    r"(?:limits?|quota|allowance|capacity|requests|messages|usage)\b"
    # You have no quota; free usage exceeded
    r"|\b(?:have|has)\sno\s(?:\w{1,20}\s){0,2}?quota\b"
    rf"|\bfree\susage\s{_IS}(?:exceeded|exhausted|used\sup)\b"
    # Session limit reached; 5-hour limit has been reached; quota exceeded
    rf"|\b(?:usage|session|(?:bi-?)?weekly|daily|monthly|hourly|{_HOURS}|request|opus|sonnet|haiku|"
    r"free(?:\stier)?|claude(?:\s(?:ai|code))?|subscription|plan|message|spend(?:ing)?)\slimit\s"
    rf"{_IS}(?:reached|hit|exceeded|met|exhausted)\b"
    r"|(?:^|[.:·∙•]\s)limit\sreached\b"
    rf"|\b(?:quota|allowance)\s{_IS}(?:reached|exceeded|exhausted|used\sup)\b"
    r"|\bout\sof\s(?:extra\s|your\s|included\s)?(?:usage|quota)\b"
    r"|\bout\sof\s(?:tokens|requests|messages)\s(?:for\s|today|this\s(?:week|month))"
    # Rate limit exceeded: free-models-per-day; rate limit reached for m on requests per day
    r"|\blimit\s(?:reached|exceeded)\b[^.]{0,80}?\bper[\s_-](?:day|week|month)\b"
    r"|\b(?:usage_limit_(?:reached|exceeded)|(?:insufficient|exceeded)_quota|quota_exceeded)\b",
    re.IGNORECASE,
)
_MET_RATE = re.compile(
    r"\b(?:hit|reached|exceeded)\s(?:your|the|my|our|an?|its)\s(?:[\w.'-]{1,20}\s){0,3}?"
    r"rate\slimits?\b"
    rf"|\brate\slimit\s{_IS}(?:reached|hit|exceeded)\b"
    r"|\btoo\smany\srequests\b|\brate[\s-]limited\b",
    re.IGNORECASE,
)
_ANSWER = 300
_BEGINNING = 20
"""Characters before the limit of an answer that consists of one."""
_WORK = re.compile(
    r"</?[A-Z][A-Z_]+>|\bI(?!'m sorry)(?:'\w+)?\b|\b[Ww]e(?!'re sorry| are)\b|\b[Tt]ests?\b"
)
"""Markers, a speaker and work, which a program's own words lack."""
_EMPHASIS = re.compile(r"\*{1,3}")
_GOES_ON = re.compile(
    r"\s?(?:$|[^\w\s\"'/]|(?:for|of|on|by|until|in|at|within|that|when|today|now|to|this)\b"
    r"|(?:resets?|try|please|upgrade|wait|you|your)\b"
    r"|and\s(?:you|your|it|will|resets?|need|must|can)\b)",
    re.IGNORECASE,
)
"""Words that follow a limit, unless the sentence is about something else."""
_NOT_YET = re.compile(
    r"\b(?:if|when|whenever|before|once|unless|until|after|haven't|hasn't|hadn't|not|never|"
    r"nearly|almost|about to|close to|avoid|may|might|could|would|will)"
    r"\s(?:(?:yet|ever|to|be|been|have|has|you(?:'ve)?|we|i|they|it|your|the|a)\s){0,4}$",
    re.IGNORECASE,
)
"""Words before a limit that is not yet reached."""

_STAMP = re.compile(
    r"\b(?:limit|quota|reached|hit|exceeded)[^|\n]{0,40}\|\s*(\d{13}|\d{10})(?!\d)", re.IGNORECASE
)
_CUE = re.compile(
    r"(?<![a-z])(?:(?P<seconds>retry[-_ ]?after(?:[-_ ]?seconds)?|resets?[-_ ]in[-_ ]seconds)"
    r"|reset(?:s|ting)?(?:[-_ ]?(?:at|on|time|date))?|try(?:ing)?\s+again"
    r"|retry(?:ing)?(?:[-_ ]?(?:at|in|delay))?|until|available|renew(?:s|ed)?|refresh(?:es)?"
    r"|com(?:es?|ing)\s+back|unlock(?:s|ed)?|replenish(?:es|ed)?|cool-?down(?:\s+ends)?|restored"
    r"|returns?|lifted|regain(?:s|ed)?(?:\s+access)?|wait|\A\s{0,9}in)(?![a-z])",
    re.IGNORECASE,
)
"""Words that precede the time of a reset."""
_LEFT = re.compile(
    r"\b(?:until|till|to|before)\s(?:the\s|your\s|next\s|limit\s){0,3}$", re.IGNORECASE
)
"""Words before a cue that is followed by a duration."""
_IN = re.compile(r"\b(?:in|after|within)\b[^\w]*$", re.IGNORECASE)
_AT = re.compile(r"\b(?:at|à|às|um|om|las|alle|ore|o|в|kl)\b[^\w]*$", re.IGNORECASE)
"""The end of a gap before a duration, and before a time of day."""
_CLOCK = re.compile(r"(\d{1,3}):([0-5]\d)(?::([0-5]\d))?(?![\d:]|\s*[ap]\.?m\b)", re.IGNORECASE)
_GAP = re.compile(
    r"(?:[\s\"'`:=,*_~·∙•–—]|-(?!\d)|\bP(?:T(?=\d)|(?=\d{1,3}[DW]))|\b(?:at|on|in|of|by|after|within|about|around|approximately|"
    r"again|back|your|the|limits?|quota|usage|is|will|be|time|date|this|next|coming|daily|every\sday"
    # 9 oct. 2026 à 15:04; 9. Oktober um 15:04; 9 окт. 2026 г., 15:04
    r"|le|el|il|am|den|à|as|às|las|a\slas|alle|ore|om|o|um|в|kl|г)\b|(?<=\bkl|.\bг)\.)*",
    re.IGNORECASE,
)
_MONTH = rf"(?P<month>(?:{'|'.join(_MONTHS)})[^\W\d_]{{0,8}})\b\.?"
_YEAR = r"(?:,?\s+(?:de\s+)?(?P<year>\d{4})(?![\d:]))?"
_PARTS = tuple(
    re.compile(part, re.IGNORECASE)
    for part in (
        r"(?P<epoch>\d{13}|\d{10})(?:\.\d{1,9})?(?!\d)",
        r"(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?!\d)T?",
        # 11/30/2026 and 30/11/2026; which of 10/7/2026 is the month depends on the country
        r"(?P<month>0?[1-9]|1[0-2])/(?P<day>1[3-9]|2\d|3[01])/(?P<year>\d{4})(?!\d)",
        r"(?P<day>1[3-9]|2\d|3[01])/(?P<month>0?[1-9]|1[0-2])/(?P<year>\d{4})(?!\d)",
        rf"{_MONTH}\s*(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?!\d|:|\s*[ap]\.?m\b){_YEAR}",
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|º|\.)?\s+(?:(?:of|de)\s+)?{_MONTH}{_YEAR}",
        r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?![\d:])",
        r"(?:(?P<year>\d{4})\s?[年년]\s?)?(?P<month>\d{1,2})\s?[月월]\s?(?P<day>\d{1,2})\s?[日일]",
        r"(?P<year>\d{4})\.\s?(?P<month>\d{1,2})\.\s?(?P<day>\d{1,2})\b\.?",
        r"(?P<part>上午|午前|早上|오전|下午|午後|晚上|오후)",
        r"(?P<hour>\d{1,2})\s?[時时點点시](?:\s?(?P<minute>\d{1,2})\s?[分분])?",
        r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs?(?:day)?)?|fri(?:day)?|"
        r"sat(?:urday)?|sun(?:day)?)\b\.?",
        r"(?P<near>today|tonight|tomorrow)\b",
        r"(?P<word>noon|midnight)\b",
        r"(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?)?"
        r"\s*(?P<half>[ap])\.?\s?m\b\.?",
        r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d{1,9})?)?(?![\d:])",
        r"(?P<hour>\d{1,2})\s?(?:h\s?(?P<minute>\d{2})\b|uhr\b)",
        r"(?P<hour>\d{1,2})(?=\s*[(\[]\s*[a-z])",
        r"[(\[](?!in\b|about\b|~)\s*(?P<zone>[^()\[\]]{1,60}?)\s*[)\]]",
        # Without brackets, only what looks like a zone.
        r"(?P<zone>(?-i:(?:UTC|GMT)\s?[+-]\d{1,2}(?::?\d{2})?\b|[+-]\d{2}:?\d{2}\b|Z\b"
        r"|[A-Z][A-Za-z_]{1,20}/[A-Za-z0-9_/+-]{1,40}|UTC\b|[A-Z]{1,4}T\b))",
    )
)
"""The parts of a reset's time, in any order."""
_NUMBERS = {
    "half an": 0.5,
    "half a": 0.5,
    "a couple of": 2.0,
    "an": 1.0,
    "a": 1.0,
    "one": 1.0,
    "two": 2.0,
    "three": 3.0,
    "four": 4.0,
    "five": 5.0,
    "six": 6.0,
    "seven": 7.0,
    "eight": 8.0,
    "nine": 9.0,
    "ten": 10.0,
    "eleven": 11.0,
    "twelve": 12.0,
    "fifteen": 15.0,
    "twenty": 20.0,
    "thirty": 30.0,
}
_WORDS = "|".join(_NUMBERS).replace(" ", r"\s+")
_UNIT = re.compile(
    r"[\s,]*(?:and\s+|T(?=\d))?"
    rf"(?P<number>\d{{1,9}}(?:\.\d{{1,6}})?|(?:{_WORDS})\b)"
    r"(?P<more>\s+and\s+a\s+half\b)?\s*"
    r"(?P<unit>ms|milliseconds?"
    r"|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:(?:ee)?ks?)?)"
    r"(?!(?!T\d)[a-z])"
    r"(?P<half>\s+and\s+a\s+half\b)?",
    re.IGNORECASE,
)
_MINUTES = re.compile(r"[0-5]\d(?![\d:.]|\s*[a-z])", re.IGNORECASE)
"""The minutes in `1h30`."""
_BARE_SECONDS = re.compile(r"(\d{1,7}(?:\.\d{1,6})?)(?![\w:/-])")


def is_quota_text(text: str) -> bool:
    """Return whether the program reports that a usage limit is reached.

    Warnings that one is near do not count, nor do limits on requests per minute, which are
    transient. `text` is the program's own result or error text, never tool output or a model's
    prose; a successful result longer than a few lines is prose.
    """
    plain = " ".join(_plain(text).split())
    return any(
        not _NOT_YET.search(plain[max(0, met.start() - 50) : met.start()])
        for met in _MET.finditer(plain)
    )


def is_limit_answer(text: str) -> bool:
    """Return whether a short answer consists of a limit that was met.

    It begins with the limit, of usage or of a rate. A model's sentence about a limit does not
    count: it mentions the model or its work, has a marker, or goes on after the limit.
    """
    if len(text) > _ANSWER or _WORK.search(text):
        return False
    plain = _EMPHASIS.sub("", _plain(" ".join(text.split()))).strip()
    found = min(
        filter(None, (kind.search(plain) for kind in (_MET, _MET_RATE))),
        key=lambda met: met.start(),
        default=None,
    )
    if found is None or found.start() > _BEGINNING:
        return False  # after `Sorry, you've` or `Claude AI`
    return (
        not _NOT_YET.search(plain[: found.start()])
        and _GOES_ON.match(plain, found.end()) is not None
    )


def parse_reset(text: str, *, now: datetime, zone: tzinfo) -> datetime | None:
    """Return when the reported limit is lifted, in UTC, or None if the text does not say.

    Supported are hours with and without minutes (`3pm`, `2:30 p.m.`, `14:30`), dates and days of
    the week before or after them, ISO timestamps, seconds since the epoch (`...reached|1749924000`)
    and durations (`in 2h 10m`, `retry-after: 30`). A time zone in brackets or after the time
    applies, else `zone`, the local one; an unknown zone gives None rather than a wrong time.

    A time without a date, or a date without a year, is the next one after `now`. A local time
    skipped by a clock change is the first instant after the gap; of one that occurs twice, the
    first that is not past. A full date or an epoch is returned as given, even when it is past.

    `text` is the program's own result or error text, never tool output or a model's prose.
    """
    now = (now if now.tzinfo else now.replace(tzinfo=UTC)).astimezone(UTC)
    plain = _plain(text)
    if stamp := _STAMP.search(plain):
        epoch = _epoch(stamp[1])
        return epoch if epoch - now <= _FARTHEST else None
    for cue in _CUE.finditer(plain):
        try:
            after = plain[cue.end() : cue.end() + _WINDOW]
            is_left = _LEFT.search(plain[max(0, cue.start() - 40) : cue.start()]) is not None
            reset = _after_cue(cue, after, now, zone, is_left=is_left)
        except (ValueError, OverflowError):
            continue
        if reset is not None and reset - now <= _FARTHEST:
            return reset
    return None


QUOTA_SCHEDULE = Schedule.exponential("15m").capped("5h").within("24h")
"""The waits for a usage limit with an unknown end."""


def _plain(text: str) -> str:
    return without_escapes(text[:_READ]).replace("’", "'").replace("`", "'")


def _epoch(digits: str) -> datetime:
    return datetime.fromtimestamp(int(digits[:10]), UTC)


def _after_cue(
    cue: re.Match[str], text: str, now: datetime, zone: tzinfo, *, is_left: bool
) -> datetime | None:
    """Return the time in the text after a cue; `is_left` if it is the time until then."""
    start = _end(_GAP.match(text))
    gap = f"{cue[0]} {text[:start]}"
    if cue["seconds"] and (number := _BARE_SECONDS.match(text, start)):
        return now + timedelta(seconds=float(number[1]))
    if (is_left or _IN.search(gap)) and (clock := _CLOCK.match(text, start)):
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return now + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    span = _span(text, start) if not _AT.search(gap) or _part(text, start, {}) is None else None
    if span is not None:
        return now + span
    found: dict[str, str] = {}
    while part := _part(text, start, found):
        if epoch := part.get("epoch"):
            return _epoch(epoch) if not found else None
        found |= {name: value for name, value in part.items() if name != "end"}
        start = _end(_GAP.match(text, int(part["end"])))
    return _resolve(_ResetTime.of(found, now, zone), now)


def _span(text: str, start: int) -> timedelta | None:
    seconds, end = 0.0, start
    while unit := _UNIT.match(text, end):
        number = " ".join(unit["number"].lower().split())
        count = _NUMBERS[number] if number in _NUMBERS else float(number)
        name = unit["unit"].lower()
        size = _SECONDS["ms" if name.startswith(("ms", "milli")) else name[0]]
        seconds += (count + 0.5 * bool(unit["more"] or unit["half"])) * size
        end = unit.end()
        if name == "h" and (minutes := _MINUTES.match(text, end)):
            return timedelta(seconds=seconds, minutes=int(minutes[0]))
    return timedelta(seconds=seconds) if end > start else None


def _part(text: str, start: int, found: dict[str, str]) -> dict[str, str] | None:
    """Return the part at this position, unless one of its kind was found before."""
    for kind in _PARTS:
        if match := kind.match(text, start):
            part = {name: value for name, value in match.groupdict().items() if value}
            if found.keys() & part.keys():
                return None
            return part | {"end": str(match.end())}
    return None


def _end(match: re.Match[str] | None) -> int:
    return match.end() if match else 0


class _ResetTime(NamedTuple):
    """The parsed parts of a reset's time."""

    zone: tzinfo
    today: date
    at: time | None
    """None for a day without a time."""
    found: dict[str, str]

    @classmethod
    def of(cls, found: dict[str, str], now: datetime, local: tzinfo) -> _ResetTime:
        zone = find_zone(found["zone"], now=now, local=local) if "zone" in found else local
        if zone is None:
            raise ValueError(found["zone"])
        return cls(zone, now.astimezone(zone).date(), _time(found), found)

    def days(self) -> Iterator[date]:
        """Yield the possible days, the first one first."""
        found = self.found
        if "month" in found:
            yield from self._dates(found["month"], int(found["day"]))
        elif weekday := found.get("weekday"):
            ahead = (_DAYS.index(weekday[:3].lower()) - self.today.weekday()) % 7
            yield from (self.today + timedelta(days=days) for days in (ahead, ahead + 7))
        elif found.get("near", "").lower() == "tomorrow":
            yield self.today + timedelta(days=1)
        elif self.at is not None:
            yield from (self.today + timedelta(days=days) for days in range(3))

    def _dates(self, name: str, day: int) -> Iterator[date]:
        month = int(name) if name.isdecimal() else _month(name)
        if "year" in self.found:
            yield date(int(self.found["year"]), month, day)
            return
        for year in range(self.today.year, self.today.year + 9):
            # February 29 does not exist in every year.
            if (month, day) != (2, 29) or year % 4 == 0:
                yield date(year, month, day)


def _month(name: str) -> int:
    """Return the number of a month by the longest beginning of its name."""
    name = name.lower()
    known = [(begin, n) for n, names in enumerate(_MONTHS, 1) for begin in names.split("|")]
    return max((len(begin), n) for begin, n in known if name.startswith(begin))[1]


def _time(found: dict[str, str]) -> time | None:
    if word := found.get("word"):
        return time(12 if word.lower() == "noon" else 0)
    if "hour" not in found:
        return None
    hour = int(found["hour"])
    half, part = found.get("half", "").lower(), found.get("part")
    if half and not 1 <= hour <= 12:
        raise ValueError(hour)
    if half or (part and hour <= 12):
        hour = hour % 12 + (12 if half == "p" or part in _AFTERNOON else 0)
    return time(hour, int(found.get("minute", 0)), int(found.get("second", 0)))


def _resolve(reset: _ResetTime, now: datetime) -> datetime | None:
    past: datetime | None = None
    for day in reset.days():
        if reset.at is None and day == reset.today:
            return None
        for instant in _instants(datetime.combine(day, reset.at or time()), reset.zone):
            if instant > now:
                return instant
            past = instant
    return past  # only for a full date; for anything else, one of the days is in the future


def _instants(local: datetime, zone: tzinfo) -> list[datetime]:
    """Return the instants at which clocks in the zone show the time, in order."""
    both = [local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
    shown = [i for i in both if i.astimezone(zone).replace(tzinfo=None) == local]
    if shown:
        return shown
    before, after = min(both), max(both)
    while (seconds := int((after - before).total_seconds())) > 1:
        middle = before + timedelta(seconds=seconds // 2)
        if middle.astimezone(zone).replace(tzinfo=None) < local:
            before = middle
        else:
            after = middle
    return [after]
