"""The frame of all four loops.

`run` holds the workspace, waits for orphaned processes, restores cooldowns and the ledger, listens
for interruptions and records the story of a loop in its journal (`journal`). `services` is the
value that all loops work with, `options` the options of each, `session` runs one agent without
markers, `supervision` and `resuming` serve the start of a run,
`history` what a run finds in the repository and leaves there.
"""
