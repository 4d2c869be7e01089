"""Pure rules: deliverables, jobs, findings, spending, termination. Time is always an argument."""
