"""Rules for `docker`: looking, and the services that the project defines."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call, Judge
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
_OF_HOST = re.compile(
    r"-[a-z]*v|--(volume|mount|privileged|device|cap-add|security-opt|pid|ipc|userns|network|net)\b"
)
_WITH_VALUE = frozenset(words("-f --file -p --project-name --profile --env-file -c --context -H"))


def docker(call: Call) -> str:
    """Deny what reaches beyond the project, unless the user allows the program by name."""
    if call.name in call.site.policy.extra_commands:
        return ""
    verbs = _operands(call)
    if not verbs:
        return ""
    if call.name == "docker-compose" or verbs[0] == "compose":
        verbs = verbs if call.name == "docker-compose" else verbs[1:]
        is_fine = not verbs or verbs[0] in _COMPOSE
    elif verbs[0] in _GROUPS:
        is_fine = len(verbs) == 1 or verbs[1] in _LOOKS | {"df"}
    else:
        is_fine = verbs[0] in _LOOKS | {"exec", "cp", "rm"} or _runs_alone(call, verbs)
    if is_fine:
        return ""
    return (
        f"{call.name} {verbs[0]} is not allowed: it reaches beyond the project's services; use"
        " docker compose with them"
    )


def _runs_alone(call: Call, verbs: list[str]) -> bool:
    """Return whether a new container gets nothing of the host."""
    texts = [word.value if word.value is not None else word.text for word in call.args]
    return verbs[0] in ("run", "create") and not any(map(_OF_HOST.match, texts))


def _operands(call: Call) -> list[str]:
    found: list[str] = []
    before = ""
    for word in call.args:
        text = word.value if word.value is not None else word.text
        if not text.startswith("-") and before not in _WITH_VALUE:
            found.append(text)
        before = text
    return found


JUDGES: dict[str, Judge] = dict.fromkeys(("docker", "docker-compose", "podman"), docker)
