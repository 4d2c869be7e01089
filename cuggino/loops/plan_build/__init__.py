"""The plan/build loop (`cuggino loop`): plan into jobs, then build until all are verified.

`service` runs it; `run` is one run, `acts` its small stages, `session` a session of planning or
building, `job_gate` and `judge` the verification, `notices` the events read from an agent's tool
calls.
"""
