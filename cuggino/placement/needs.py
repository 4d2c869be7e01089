"""The resources that an item needs on its worker.

Workers offer resources, such as `claude=2,codex=1,gpu=1`: the number of items that may use an
account, a program or a device at once. A label is a resource with a large amount, like `big=1000`.
Everything here is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cuggino.agents import Role
from cuggino.config import RESOURCE, Config
from cuggino.domain import needs_of
from cuggino.errors import ConfigError

CODING_ROLES: tuple[Role, ...] = ("planning", "implementing", "reviewing")
"""The roles whose agents work on an item."""


def amounts_of(words: Iterable[str], *, where: str) -> dict[str, float]:
    """Return the amounts of words such as `gpu` and `claude=2`; the default is 1.

    Raises:
        ConfigError: a resource has an invalid name, or an amount that is not positive and finite;
            `where` names the place.
    """
    found: dict[str, float] = {}
    for word in words:
        name, has_amount, text = (part.strip() for part in word.partition("="))
        try:
            amount = float(text) if has_amount else 1.0
        except ValueError:
            amount = 0.0
        if not RESOURCE.fullmatch(name) or not 0 < amount < float("inf"):
            raise ConfigError(
                f'{where}: "{word}" is not an amount of a resource', hint="write gpu, or claude=2"
            )
        found[name] = amount
    return found


def roles_agents(
    config: Config, agent: str | None = None, *, roles: Iterable[Role] = CODING_ROLES
) -> tuple[str, ...]:
    """Return the names of the first agents of the roles, each once.

    `agent` overrides the configured one, except for roles with their own. Fallback agents do not
    count: an item can be worked on without them.
    """
    usual = agent or config.agent
    each = (config.agents.get(role) for role in roles)
    return tuple(dict.fromkeys((own.agent if own else None) or usual for own in each))


def item_needs(
    text: str,
    *,
    agents: Iterable[str],
    offered: Iterable[Mapping[str, float]],
    settings: Mapping[str, float] | None = None,
    item: str = "the item",
) -> dict[str, float]:
    """Return the resources that an item takes on its worker while it is worked on.

    These are one of each of its agents that some worker offers, those of the settings, and those
    under `needs` in the front matter of its text; the latter win. `offered` has the resources of
    each worker.

    Raises:
        ConfigError: the item's own needs cannot be read.
    """
    names = {name for worker in offered for name in worker}
    own = amounts_of(needs_of(text), where=item)
    return {
        **{name: 1.0 for name in agents if name in names},
        **(settings or {}),
        **own,
    }


def unmet_needs(needs: Mapping[str, float], offered: Sequence[Mapping[str, float]]) -> str:
    """Return the reason that no worker can ever take the item, as one sentence, or ""."""
    if not offered:
        return "the cluster has no workers"
    if any(_covers(worker, needs) for worker in offered):
        return ""
    for name, amount in needs.items():
        most = max(worker.get(name, 0.0) for worker in offered)
        if most == 0:
            return f"no worker offers {name}"
        if most < amount:
            return f"no worker offers {name}={amount:g}, at most {name}={most:g}"
    *first, last = needs
    return f"no worker offers {', '.join(first)} and {last} together"


def _covers(worker: Mapping[str, float], needs: Mapping[str, float]) -> bool:
    return all(worker.get(name, 0.0) >= amount for name, amount in needs.items())
