"""`docs/configuration.md`: the files of settings, from the models that read them."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cuggino.config import Config, FallbackAgent, RoleAgent
from cuggino.config.loop_config import KEYS, PlanBuildConfig
from cuggino_cli.config_keys import GROUPS
from cuggino_cli.topics import default_text, field_docs, plain, type_name
from tests.documents.markdown import table

_INTRO = """\
# Configuration

<!-- Written by `python -m tests.documents` from the models: change those. -->

Three files, each of which may be missing: [`.cuggino.json`](#cugginojson) for all commands, and two
in the formats of the tools that they come from, [`.lopen/loop-config.json`](#lopenloop-configjson)
for `cuggino loop` and [`.autonoe/agent.json`](#autonoeagentjson) for `cuggino deliver`. Options on
the command line go before files. `cuggino help config` prints the first table in a terminal.
"""

_CUGGINO = """\
## `.cuggino.json`

It is in the project's folder, an object with keys in camelCase. `cuggino setup` asks for the most
usual ones. A file that is no JSON, has an unknown key or a value of a wrong type ends the command
with exit code 2 and names the place; no value is ever replaced in silence. `null` is allowed where
the type says *none*, and means none. An editor checks the file as you type with the JSON Schema of
`cuggino help config --json`.

```json
{
  "specsPath": ".specs",
  "checkCommand": "python -m pytest -q",
  "gate": "block",
  "commit": true,
  "budget": 20
}
```
"""

_ROLES = """\
### Agents of roles

`agents` is an object of roles, each with the name of an agent or an object; `fallback` is a list of
the same. The roles are `planning`, `implementing`, `reviewing` and `audit` (`run`, `watch`);
`initializer`, `coding`, `sync` and `verify` (`deliver`); `plan`, `build` and `judge` (`loop`). See
[agents](agents.md#roles-and-who-takes-over).
"""

_LOPEN = """\
## `.lopen/loop-config.json`

Settings of `cuggino loop`, in the project and in your home; the project's goes before the other,
key by key, and the file of `--config` before both. What cannot be used is passed over with a
warning, as the original does, but a file that `--config` names must be good. `cuggino loop
configure` asks for them, and `cuggino loop configure --show` tells each value and where it comes
from. Limits, guard and sandbox are those of `.cuggino.json`; so are `agent` and `model` where no
file here has them.
"""

_AUTONOE = """\
## `.autonoe/agent.json`

What a project adds to what the agents of `cuggino deliver` may use. It is read once, at the start;
a change since the last run is told. Nothing in it can turn guard or sandbox off. A file that is no
JSON, or has a value of a wrong type, is ignored as a whole with a warning; a profile that does not
exist is exit code 2.

| key | meaning |
|---|---|
| `mcpServers` | servers of tools, over the built-in browser (`npx @playwright/mcp`), or `{}` |
| `allowedTools`, `permissions.allow` | tools and rules in Claude Code's words, such as \
`Read(//data/**)`; for commands and writes the guard answers alone |
| `hooks.PreToolUse` | `{"matcher", "command"}`: hooks that may deny more |
| `profile`, `allowCommands`, `allowPkillTargets` | as in `.cuggino.json`, and joined with it; \
`profile` replaces it |
"""

_REST = """\
## Prompts

What agents are told can be changed by a Markdown file in the place of the built-in one:

| command | files |
|---|---|
| `run`, `watch`, `plan` | `.cuggino/prompts/planning.md`, `implementing.md`, `reviewing.md`, \
`audit.md`, `pm.md` |
| `deliver` | `.autonoe/initializer.md`, `coding.md`, `sync.md`, `verify.md` |
| `loop` | `PLAN.PROMPT.md`, `BUILD.PROMPT.md` (or as configured), sent as they are; \
`.cuggino/prompts/verify_job.md`, `verify_build.md` |

Those in `.cuggino/prompts/` are templates: `{{name}}` is replaced, and a name that does not exist
is an error.

## Environment variables

| variable | meaning |
|---|---|
| `NO_COLOR` | not empty: no colours with `--color auto` |
| `AUTONOE_NO_SANDBOX` | `1`: no sandbox, as `--no-sandbox` |

Programs of agents read their own, such as `ANTHROPIC_API_KEY`. A setup or check command gets
cuggino's whole environment.

## Files of a project

| path | what it is | in git |
|---|---|---|
| `.cuggino.json` | configuration | yes, unless it holds a URL with a password |
| `.cuggino/backlog/`, `spec-issues/`, `tbd/`, `archive/`, `parked/`, `memory.md` | \
work, questions, findings, what is settled, failed too often, was dismissed | as you like |
| `.cuggino/prompts/` | prompts of your own | yes |
| `.cuggino/journal/`, `wip/`, `lock`, `lock.json` and others | runs of this machine | no |
| `.autonoe/status.json`, `.autonoe-note.md`, `SPEC.md` | the deliverables loop | yes |
| `docs/requirements/`, `PLAN.PROMPT.md`, `BUILD.PROMPT.md` | the plan/build loop | yes |
| `lopen.loop.done` | a plan/build loop is done | no |

Commits of `run` and `watch` leave the specs and `.cuggino/` out; for those of agents and people
every loop writes a `.cuggino/.gitignore` for what belongs to runs, where there is none.
"""


def configuration() -> str:
    """The whole document."""
    return "\n".join(_lines()).rstrip("\n") + "\n"


def _lines() -> Iterator[str]:
    yield _INTRO
    yield _CUGGINO
    for title, keys in GROUPS.items():
        yield f"### {title}"
        yield ""
        yield from table(
            ("key", "type", "default", "for", "meaning"),
            (
                (*_row(Config, name), ", ".join(f"`{who}`" for who in followers), _about(name))
                for name, followers in keys.items()
            ),
        )
    yield _ROLES
    yield from _nested(RoleAgent, FallbackAgent)
    yield _LOPEN
    yield from table(("key", "type", "default", "meaning"), _lopen())
    yield _AUTONOE
    yield _REST


def _row(model: type[BaseModel], name: str) -> tuple[str, str, str]:
    field = model.model_fields[name]
    default = default_text(field)
    return (
        f"`{field.alias or name}`",
        type_name(field.annotation) + _bounds(field),
        f"`{default}`" if default else "none",
    )


def _about(name: str) -> str:
    return plain(field_docs(Config)[name])


def _bounds(field: FieldInfo) -> str:
    """The least value that is allowed; how many seconds a year has is of no use to a reader."""
    for bound in field.metadata:
        if (least := getattr(bound, "ge", None)) is not None:
            return f", at least {least}"
        if (above := getattr(bound, "gt", None)) is not None:
            return f", above {above}"
    return ""


def _nested(first: type[BaseModel], *others: type[BaseModel]) -> Iterator[str]:
    """The keys of the first, which has all that the others have."""
    docs = field_docs(first)
    for other in others:
        assert other.model_fields.keys() <= first.model_fields.keys()
    yield from table(
        ("key", "type", "meaning"),
        (
            (f"`{name}`", type_name(field.annotation), plain(docs[name]))
            for name, field in first.model_fields.items()
        ),
    )


def _lopen() -> Iterable[tuple[str, str, str, str]]:
    docs = field_docs(PlanBuildConfig)
    types = typing.get_type_hints(PlanBuildConfig)
    defaults = {field.name: field.default for field in dataclasses.fields(PlanBuildConfig)}
    for key, (name, _) in KEYS.items():
        about = plain(docs[name])
        yield f"`{key}`", type_name(types[name]), _shown(defaults[name]), about


def _shown(default: Any) -> str:
    return "none" if default is None else f"`{json.dumps(default)}`"
