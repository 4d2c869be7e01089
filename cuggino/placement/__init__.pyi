"""Public names of `cuggino.placement`; written by `python -m tests.stubs`."""

from cuggino.placement.address import (
    ClusterAddress,
    TlsFiles,
    cluster_address,
    is_loopback,
    load_distributed,
    security_of,
)
from cuggino.placement.checking import (
    MachineCheck,
    check_cluster,
)
from cuggino.placement.cluster import (
    Cluster,
    Offered,
    nothing_needed,
)
from cuggino.placement.local import (
    RULES,
    WORKER_RULES,
    LocalCluster,
    local_cluster,
    resources_text,
)
from cuggino.placement.needs import (
    amounts_of,
    item_needs,
    roles_agents,
    unmet_needs,
)
from cuggino.placement.seen import (
    workers_seen,
)
from cuggino.placement.watching import (
    watch_on_cluster,
)

__all__ = [
    "RULES",
    "WORKER_RULES",
    "Cluster",
    "ClusterAddress",
    "LocalCluster",
    "MachineCheck",
    "Offered",
    "TlsFiles",
    "amounts_of",
    "check_cluster",
    "cluster_address",
    "is_loopback",
    "item_needs",
    "load_distributed",
    "local_cluster",
    "nothing_needed",
    "resources_text",
    "roles_agents",
    "security_of",
    "unmet_needs",
    "watch_on_cluster",
    "workers_seen",
]
