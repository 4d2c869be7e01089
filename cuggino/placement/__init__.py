"""The workers of a cluster: places for items of a watch, tasks of several hands, and attempts.

Dask's `distributed` moves texts between this process and its workers (`pip install
'cuggino[cluster]'`); it is imported on first use.
"""

from cuggino.placement.address import (
    ClusterAddress,
    TlsFiles,
    cluster_address,
    load_distributed,
    security_of,
)
from cuggino.placement.checking import MachineCheck, check_cluster
from cuggino.placement.cluster import Cluster, Offered
from cuggino.placement.local import RULES, LocalCluster, local_cluster
from cuggino.placement.needs import amounts_of
from cuggino.placement.on_cluster import run_on_cluster, watch_on_cluster

__all__ = [
    "RULES",
    "Cluster",
    "ClusterAddress",
    "LocalCluster",
    "MachineCheck",
    "Offered",
    "TlsFiles",
    "amounts_of",
    "check_cluster",
    "cluster_address",
    "load_distributed",
    "local_cluster",
    "run_on_cluster",
    "security_of",
    "watch_on_cluster",
]
