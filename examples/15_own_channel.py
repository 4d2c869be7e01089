"""A chat service of your own: a folder with a file for each message, and one for each answer.

In `.cuggino.json` it would be `"chat": {"own": {"channel": "my_module:FolderChannel"}}`.
"""

from pathlib import Path
from typing import Any

from reactivex import Observable, defer, empty, from_iterable, operators as ops

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.chat import IssueInbox, Post, Reply, reachable
from cuggino.events import ChatAnswered, ChatAsked, WatchItemCompleted


class FolderChannel:
    """Writes messages to `chat/out`, and reads answers from `chat/in`."""

    name = "folder"

    def __init__(self, folder: str = "chat") -> None:
        self.out, self.answers = Path(folder, "out"), Path(folder, "in")
        for place in (self.out, self.answers):
            place.mkdir(parents=True)

    def send(self, post: Post) -> Observable[Any]:
        def write(_scheduler: Any) -> Observable[Any]:
            choices = [f"[{button.label}] {button.reply}" for button in post.buttons]
            number = len(list(self.out.iterdir()))
            (self.out / f"{number}.txt").write_text("\n".join([post.text, *choices]))
            return empty()

        return defer(write)

    def replies(self, after: str) -> Observable[Reply]:
        def read(_scheduler: Any) -> Observable[Reply]:
            new = sorted(path for path in self.answers.iterdir() if path.name > after)
            return from_iterable(Reply(id=one.name, text=one.read_text()) for one in new)

        return defer(read)


Path(".specs").mkdir()
Path(".specs/links.md").write_text("links.txt says how long a link is valid.\n")
Path(".cuggino/backlog").mkdir(parents=True)
Path(".cuggino/backlog/1.md").write_text("# Links\n")

channel = FolderChannel()
runtime = cuggino.Runtime.live(
    cwd=".",
    agent=ScriptedAgent(Path(__file__).with_name("own_channel.toml")),
    config=cuggino.Config(settle_seconds=0.2),
)
watch = runtime.watch().pipe(
    reachable(channel, inbox=IssueInbox(runtime.workspace, specs=Path(".specs"))),
    ops.take_while(lambda event: not isinstance(event, WatchItemCompleted), inclusive=True),
)
for event in cuggino.iterate(watch):
    match event:
        case ChatAsked(title=title):
            print(f"asked: {title}")
            button = (channel.out / "0.txt").read_text().splitlines()[-1]
            print(f"you press: {button.partition('] ')[0]}]")
            (channel.answers / "0.txt").write_text(button.partition("] ")[2])
        case ChatAnswered(text=text):
            print(f"answered: {text}")
        case WatchItemCompleted():
            print("done:", Path("links.txt").read_text().split("\n")[0])
        case _:
            pass

# prints:
# asked: How long is a link valid?
# you press: [a day]
# answered: a day
# done: a day
