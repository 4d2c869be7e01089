"""Hands (`cuggino run --hands N`): a coding loop that does the tasks of its plan side by side.

`service` runs it; `run` is its course in a clone of the project, and `tasks` the work on the tasks
of one plan: a private backlog, in slots of that clone, landing one by one through a gate.
"""
