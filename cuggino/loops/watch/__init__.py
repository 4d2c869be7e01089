"""The watch (`cuggino watch`): the coding loop on each item of the backlog, indefinitely.

`service` runs it; `run` is its course, `waiting` its idle phase, `audit` the agent that works
meanwhile, `journal` its recorder.
"""
