"""The JavaScript plugin of an OpenCode session.

It runs in OpenCode's own process. It prints what `opencode run` leaves out (streamed text, calls
when they start, sub-agents, waits) to standard output, one JSON object of the type `cuggino` per
line. In a guarded session it has every call checked before it runs.

The session itself has no permissions. The plugin grants them, in a guarded session only after the
hook has answered two trial questions correctly. If the plugin is not loaded, or its hook does not
work, the session has no tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from cuggino.agents.base.guard import NOT_JUDGED

JUDGE_SECONDS = 60
"""A hook without an answer is killed after this time, and the call denied."""


def plugin_source(orders: Mapping[str, object]) -> str:
    """Return the plugin for one session.

    `orders`: `cwd` (the session's folder), `permission` (its permissions), `drop` (variables hidden
    from its tools), and for a guarded session `judge` (the hook's command line) and `token`.
    """
    given = {**orders, "timeout": JUDGE_SECONDS * 1000, "failed": NOT_JUDGED}
    # As JSON in a string, nothing of it can be code.
    return _SOURCE.replace("@ORDERS@", json.dumps(json.dumps(given)))


_SOURCE = r"""
import { spawn } from "node:child_process"
import { realpathSync } from "node:fs"

const ORDERS = JSON.parse(@ORDERS@)
const tell = (line) => process.stdout.write(JSON.stringify({ type: "cuggino", ...line }) + "\n")

const judge = (asked) =>
  new Promise((done, fail) => {
    const [program, ...words] = ORDERS.judge
    const child = spawn(program, words, {
      cwd: "/", env: { PATH: "/usr/bin:/bin" }, stdio: ["pipe", "pipe", "ignore"],
    })
    const timer = setTimeout(() => child.kill("SIGKILL"), ORDERS.timeout)
    const said = []
    child.on("error", (error) => { clearTimeout(timer); fail(error) })
    child.stdin.on("error", () => {})
    child.stdout.on("data", (data) => said.push(data))
    child.on("close", (code) => {
      clearTimeout(timer)
      try {
        if (code !== 0) throw new Error("the judge ended with " + code)
        const own = JSON.parse(Buffer.concat(said).toString())
        if (own.token !== ORDERS.token) throw new Error("the judge is another one")
        done(own)
      } catch (error) { fail(error) }
    })
    child.stdin.end(JSON.stringify(asked))
  })

const freeze = (value) => {
  if (value === null || typeof value !== "object" || Object.isFrozen(value)) return
  Object.freeze(value)
  Object.values(value).forEach(freeze)
}

const known = new Set()
const once = (key) => !known.has(key) && known.add(key)

const ofPart = (part) => {
  switch (part.type) {
    case "text":
    case "reasoning":
      if (part.time?.end) return part
      return part.time?.start && once(part.id) ? { ...part, text: "" } : undefined
    case "tool": {
      const { status, metadata, ...state } = part.state
      const sub = metadata?.sessionId
      if (status === "running" && once(part.callID + (sub ?? "")))
        return { ...part, state: { status, input: state.input, metadata: { sessionId: sub } } }
      if (status === "completed" || status === "error")
        return { ...part, state: { ...part.state, attachments: undefined } }
      return undefined
    }
    case "step-finish":
      return part
  }
}

const properties = (type, given) => {
  switch (type) {
    case "message.part.updated": {
      const part = ofPart(given.part)
      return part && { part }
    }
    case "message.part.delta":
      return given.field === "text" ? given : undefined
    case "message.updated": {
      const { id, role, summary, sessionID, modelID, providerID } = given.info
      const info = { id, role, summary: summary === true, sessionID, modelID, providerID }
      return once(id + role) && { info }
    }
    case "session.created":
      return given.info.parentID && { info: { id: given.info.id, parentID: given.info.parentID } }
    case "session.status":
      return given.status.type === "retry" ? given : undefined
    case "session.error":
      return given
  }
}

export const Cuggino = async ({ client, directory }) => {
  for (const name of ORDERS.drop) delete process.env[name]
  let live = ORDERS.judge === undefined
  let servers = []
  if (realpathSync(directory) !== realpathSync(ORDERS.cwd)) tell({ elsewhere: directory })
  else if (live) tell({ ready: true })
  else {
    try {
      const { canary } = await judge({ canary: true })
      live = canary === "live"
      tell({ canary: String(canary) })
    } catch (error) {
      tell({ canary: String(error) })
    }
  }
  return {
    config: async (config) => {
      servers = Object.keys(config.mcp ?? {})
      tell({ servers })
      const own = (spec) => String(Array.isArray(spec) ? spec[0] : spec) === import.meta.url
      if (ORDERS.judge && !own((config.plugin ?? []).at(-1))) {
        live = false
        tell({ canary: "another plugin is loaded behind the guard" })
      }
      if (live) config.permission = ORDERS.permission
      if (live && ORDERS.judge)
        for (const agent of Object.values(config.agent ?? {})) delete agent.permission
    },
    event: async ({ event }) => {
      const told = properties(event.type, event.properties)
      if (told) tell({ event: event.type, properties: told })
      if (event.properties?.part?.type === "step-start" && once("mcp"))
        client.mcp.status().then(({ data }) => tell({ mcp: data ?? {} }), () => {})
    },
    "shell.env": async (_asked, given) => {
      if (ORDERS.judge) Object.assign(given.env, { BASH_ENV: "", ENV: "" }, ORDERS.variables)
    },
    "tool.execute.before": async (asked, given) => {
      if (ORDERS.judge === undefined) return
      const { tool, callID, sessionID } = asked
      const call = { tool, callID, sessionID, state: { input: given.args } }
      let own = { tool, part: tool, decision: "deny", reason: ORDERS.failed }
      try {
        if (!live) throw new Error("the guard is not live")
        const said = await judge({ tool, args: given.args, call: callID, cwd: directory, servers })
        if (said.tool_use_id !== callID) throw new Error("the verdict is on another call")
        if (said.decision === "allow" || said.decision === "deny") own = said
      } catch {}
      freeze(given.args)
      tell({ verdict: { ...own, tool_use_id: callID }, call })
      if (own.decision !== "allow") throw new Error(own.reason)
    },
  }
}
"""
