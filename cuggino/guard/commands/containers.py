"""Rules for `docker`: looking, and the services that the project defines."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call
from cuggino.guard.commands.wordlist import words

_LOOKS = frozenset(
    words(
        "ps images logs inspect version info stats port top history diff events search ls list"
        " build start stop restart help"
    )
)
_COMPOSE = _LOOKS | frozenset(
    words("up down create config convert pull exec run wait watch pause unpause attach kill rm")
)
_GROUPS = frozenset(words("container image network volume context system builder buildx"))
_OF_HOST = (
    r"-[a-z]*v|--(volume|mount|privileged|device|cap-add|security-opt|pid|ipc|userns|network|net)\b"
)
_WITH_VALUE = frozenset(words("-f --file -p --project-name --profile --env-file -c --context -H"))


def docker(call: Call) -> str:
    """Deny what reaches beyond the project, unless the user allows the program by name."""
    texts = [word.value if word.value is not None else word.text for word in call.args]
    pairs = zip(["", *texts], texts, strict=False)
    verbs = [t for before, t in pairs if not t.startswith("-") and before not in _WITH_VALUE]
    verb, after = (*verbs, "", "")[:2]
    if call.name == "docker-compose" or verb == "compose":
        is_fine = (after if verb == "compose" else verb) in _COMPOSE | {""}
    elif verb in _GROUPS:
        is_fine = after in _LOOKS | {"df", ""}
    elif verb in ("run", "create"):  # a new container gets nothing of the host
        is_fine = not any(re.match(_OF_HOST, text) for text in texts)
    else:
        is_fine = verb in _LOOKS | {"exec", "cp", "rm", ""}
    if is_fine or call.name in call.site.policy.extra_commands:
        return ""
    return (
        f"{call.name} {verb} is not allowed: it reaches beyond the project's services; use"
        " docker compose with them"
    )
