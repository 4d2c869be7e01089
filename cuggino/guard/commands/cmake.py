"""`cmake -E`, which does what other programs do and is judged as those are; where it builds."""

from __future__ import annotations

from cuggino.guard.commands.base import Call, Judge, first, plain_word
from cuggino.guard.commands.outputs import outputs_reason
from cuggino.guard.shell.tree import Word

_MEANS: dict[str, tuple[str, ...]] = {
    "copy": ("cp",),
    "copy_if_different": ("cp",),
    "copy_if_newer": ("cp",),
    "copy_directory": ("cp", "-r"),
    "copy_directory_if_different": ("cp", "-r"),
    "copy_directory_if_newer": ("cp", "-r"),
    "rename": ("mv",),
    "remove": ("rm",),
    "rm": ("rm",),
    "remove_directory": ("rm", "-r"),
    "make_directory": ("mkdir", "-p"),
    "touch": ("touch",),
    "touch_nocreate": ("touch",),
    "create_symlink": ("ln", "-s"),
    "create_hardlink": ("ln",),
    "tar": ("tar",),
    "env": ("env",),
    "chdir": ("env", "-C"),
    "time": ("env",),
}


def cmake(call: Call) -> str:
    """What `-E` does must be allowed; the folder of `-B` is written."""
    args = call.args
    if args and args[0].value == "-E":
        if len(args) > 1 and args[1].value is None:
            return "It cannot be told what cmake -E does: write it out"
        means = _MEANS.get(args[1].value or "") if len(args) > 1 else None
        if means is None:
            return ""
        return call.site.judge((*map(plain_word, means), *args[2:]), call.site)
    return first(map(call.site.write, _folders(args))) or outputs_reason(call)


def _folders(args: tuple[Word, ...]) -> list[Word]:
    """Beside and behind each `-B`."""
    found: list[Word] = []
    for index, word in enumerate(args):
        if word.value == "-B":
            found += args[index + 1 : index + 2]
        elif word.value is not None and word.value.startswith("-B"):
            found.append(word._replace(value=word.value[2:]))
    return found


JUDGES: dict[str, Judge] = {"cmake": cmake}
