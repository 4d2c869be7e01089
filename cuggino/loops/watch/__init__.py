"""The watch (`cuggino watch`): the coding loop on each item of the backlog, indefinitely.

`service` runs it; `run` is its course with one slot and `slots` that with several. Both are a
`pool`: `pool_state` is its state and its pure step. `items` is the backlog, `waiting` the idle
phase, `journal` the recorder. `attempt` is the work on an item in a slot, `places` where that is,
`recorded` what an earlier process has left, and `pieces` an attempt and a landing for other loops.
"""
