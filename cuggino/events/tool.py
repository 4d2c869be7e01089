"""Tool calls of an agent, their results and denials."""

from pydantic import JsonValue

from cuggino.events.agent import LlmAgentEvent


class ToolCall(LlmAgentEvent):
    """The model calls a tool."""

    name: str
    input: JsonValue = None
    id: str = ""
    """Matches the `name` of its `ToolResult`."""


class ToolResult(LlmAgentEvent):
    """The result of a tool call."""

    name: str
    """The `id` of the call (CUG-082), or `unknown`."""
    output: str
    is_error: bool = False


class GuardDenied(LlmAgentEvent):
    """The guard denied a tool call; emitted once per call, before its `ToolResult`."""

    tool: str
    """The tool that was called."""
    tool_use_id: str
    """The `id` of its `ToolCall`."""
    part: str
    """The first part denied: a command, a redirection, a file."""
    reason: str
    """The reason, as given to the agent."""
