"""The watch (`cuggino watch`): the coding loop on each item of the backlog, indefinitely.

`service` runs it; `run` is its course with one slot and `slots` that with several, `items` the
state of its items, `waiting` its idle phase, `audit` the agent that works meanwhile, `journal` its
recorder. `attempt` is the work on an item in a slot, `places` where that is, `recorded` what an
earlier process has left, and `pieces` an attempt and a landing for other loops.
"""
