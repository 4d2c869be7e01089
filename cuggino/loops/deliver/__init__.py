"""The deliver loop (`cuggino deliver`): sessions until every deliverable has passed.

`service` runs it; `run` is one run, `course` decides which session follows and when it ends,
`session` runs one, `setup` holds the tools, servers and rules of its agents.
"""
