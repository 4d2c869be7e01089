"""The coding loop (`cuggino run`): plan, implement and review until the work is approved.

`service` runs it; `roles` spawns its three agents, `commands` runs setup and check commands,
`convergence` notices a loop without progress.
"""
