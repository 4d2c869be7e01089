"""The coding loop (`cuggino run`): plan, implement and review until the work is approved.

`service` runs it; `run` is one run, a flow of the stages in `cuggino.stages`; `gate` compares the
files that approvals rest on, `merging` begins with the work of others, `convergence` notices a loop
without progress.
"""
