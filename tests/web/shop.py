"""A project with a backlog, and a scripted agent that works through it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cuggino.config import Config, save_config

SCENARIO = """\
pause = {pause}

[[planning]]
cost_usd = 0.0212
steps = [
  {{ say = "I read the **specification** of the orders. There is no page for them yet." }},
  {{ run = "cat .specs/orders.md" }},
  {{ write = "$CUGGINO_PLAN_FILE", text = '''
# Plan

## Task 1: The list of orders

- [ ] `orders.py` with `render_orders`

## Task 2: Orders by month

- [ ] grouping, newest first
''' }},
  {{ usage = {{ input_tokens = 18000, output_tokens = 900 }} }},
  {{ say = "<PLAN_COMPLETE>Two tasks.</PLAN_COMPLETE>" }},
]

[[implementing]]
cost_usd = 0.0431
steps = [
  {{ say = "The list comes first. `render_orders` takes the orders and returns lines of text." }},
  {{ write = "orders.py", text = '''
def render_orders(orders):
    return [f"{{order.day}}  {{order.total}}" for order in orders]
''' }},
  {{ run = "python3 -m compileall -q orders.py && echo compiled" }},
  {{ usage = {{ input_tokens = 42000, output_tokens = 2400 }} }},
  {{ say = "<PROGRESS>List the orders</PROGRESS>" }},
]

[[implementing]]
cost_usd = 0.0517
steps = [
  {{ think = "Grouping by month needs the year as well." }},
  {{ say = "Now by month:\\n\\n1. sort by day\\n2. group by year and month" }},
  {{ append = "orders.py", text = '''


def by_month(orders):
    return sorted(orders, key=lambda order: order.day, reverse=True)
''' }},
  {{ run = "grep -c TODO orders.py" }},
  {{ usage = {{ input_tokens = 51000, output_tokens = 3100 }} }},
  {{ say = "<DONE>Group the orders by month</DONE>" }},
]

[[reviewing]]
cost_usd = 0.0188
steps = [
  {{ run = "git log --oneline" }},
  {{ usage = {{ input_tokens = 22000, output_tokens = 600 }} }},
  {{ say = "<APPROVED>Both parts are there, and readable.</APPROVED>" }},
]

[[planning]]
cost_usd = 0.0103
steps = [
  {{ run = "cat .specs/invoices.md" }},
  {{ say = '''<SPEC_ISSUE>
# Which of the two gives way?

The specification asks for invoices in PDF **and** for no new dependency.
</SPEC_ISSUE>''' }},
]

[[planning]]
cost_usd = 0.0151
steps = [
  {{ run = "cat .specs/decisions.md" }},
  {{ write = "$CUGGINO_PLAN_FILE", text = '''
# Plan

## Task 1: Invoices as HTML
''' }},
  {{ say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>" }},
]

[[implementing]]
cost_usd = 0.0312
steps = [
  {{ write = "invoices.py", text = "def render_invoice(order):\\n    return order\\n" }},
  {{ say = "<DONE>Write invoices as HTML</DONE>" }},
]

[[reviewing]]
cost_usd = 0.0098
steps = [{{ say = "<APPROVED>As decided.</APPROVED>" }}]
"""


def make_shop(folder: Path, *, pause: float = 0.0) -> Path:
    """Create the project; `pause` is the time in seconds between two steps of the agent."""
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "orders.md").write_text("# Orders\n\nA list of orders, by month.\n")
    (folder / ".specs" / "invoices.md").write_text("# Invoices\n\nIn PDF, no new dependency.\n")
    (folder / ".gitignore").write_text("__pycache__/\n")
    (folder / "scenario.toml").write_text(SCENARIO.format(pause=pause))
    save_config(
        folder,
        Config(
            agent="scripted:scenario.toml",
            check_command="python3 -m compileall -q .",
            journal=True,
            commit=True,
            settle_seconds=0.05,
        ),
    )
    for words in (
        ("init", "-q"),
        ("config", "user.name", "Shop"),
        ("config", "user.email", "shop@example.invalid"),
        ("config", "commit.gpgsign", "false"),
        ("add", "-A"),
        ("commit", "-qm", "Start"),
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder
