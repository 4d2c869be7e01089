"""Chat services: questions and reports reach a person anywhere, and the answers come back.

    from cuggino.chat import TelegramChannel, reachable

    channel = TelegramChannel(token=os.environ["TELEGRAM_TOKEN"], chat=42)
    run(runtime.run(focus="the login page").pipe(reachable(channel)), print)

`Channel` is a service; implement it for another one. `reachable` connects a stream to it, as
`Runtime.watch` does by the setting `chat`. An `Inbox` holds questions: `IssueInbox` the spec issues
of a project. All connections are outgoing. Text from a chat is untrusted, and only ever an answer.
"""

from cuggino.chat.channel import Button, Channel, ChannelNotifier, Post, Reply, split
from cuggino.chat.conversations import Talk, conversation, reachable
from cuggino.chat.inbox import Answer, Inbox, IssueInbox, Question
from cuggino.chat.making import channels_of, secrets_of, withhold_secrets
from cuggino.chat.ntfy import NtfyChannel
from cuggino.chat.store import ChatState, ChatStore
from cuggino.chat.telegram import TelegramChannel

__all__ = [
    "Answer",
    "Button",
    "Channel",
    "ChannelNotifier",
    "ChatState",
    "ChatStore",
    "Inbox",
    "IssueInbox",
    "NtfyChannel",
    "Post",
    "Question",
    "Reply",
    "Talk",
    "TelegramChannel",
    "channels_of",
    "conversation",
    "reachable",
    "secrets_of",
    "split",
    "withhold_secrets",
]
