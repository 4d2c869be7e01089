"""The workers of a cluster, as places for a watch to work on its items.

Dask's `distributed` moves texts between this process and its workers (`pip install
'cuggino[cluster]'`); it is imported on first use.
"""

from cuggino._lazy import lazy

NAMES = {
    "address": "ClusterAddress TlsFiles cluster_address load_distributed security_of",
    "checking": "MachineCheck check_cluster",
    "cluster": "Cluster Offered",
    "local": "RULES LocalCluster local_cluster",
    "needs": "amounts_of",
    "watching": "watch_on_cluster",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
