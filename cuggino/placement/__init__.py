"""The workers of a cluster, as places where a watch works on its items.

Dask's `distributed` moves texts between this process and its workers (`pip install
'cuggino[cluster]'`); it is imported on first use.
"""

from cuggino._lazy import lazy

NAMES = {
    "address": "ClusterAddress TlsFiles cluster_address is_loopback load_distributed security_of",
    "checking": "MachineCheck check_cluster",
    "cluster": "Cluster Offered nothing_needed",
    "local": "RULES WORKER_RULES LocalCluster local_cluster resources_text",
    "needs": "amounts_of item_needs roles_agents unmet_needs",
    "watching": "watch_on_cluster",
    "seen": "workers_seen",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
