"""Small islands on a cluster of two processes, shared by the tests of islands."""

import contextlib
import os
import signal

import pytest

from pymoo_gpuaco import GPUMMAS, Islands
from tests.algorithm_cases import BACKEND

distributed = pytest.importorskip("distributed")
posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


def colony(**arguments):
    """Whole tours of few ants, without search: a generation takes milliseconds, and a tour can be improved."""
    return GPUMMAS(**{"n_ants": 4, "local_search": False, "backend": BACKEND, **arguments})


def reproducible(algorithm=None, **arguments):
    """Two islands of the reproducible mode."""
    given = {"n_islands": 2, "deterministic": True, "exchange_every": 3, **arguments}
    return Islands(colony() if algorithm is None else algorithm, **given)


@contextlib.contextmanager
def keys_of(cluster):
    """Set Dask's configuration to the keys of a ``Cluster``, so that its address is enough to reach it."""
    import dask

    security = cluster.client.security
    keys = {
        "ca-file": security.tls_ca_file,
        "client.cert": security.tls_client_cert,
        "client.key": security.tls_client_key,
    }
    with dask.config.set({f"distributed.comm.tls.{name}": key for name, key in keys.items()}):
        yield


def process_of(algorithm, number):
    """Return the process id of an island's worker."""
    address = algorithm.engine.members[number].worker
    return algorithm.engine.cluster.client.run(os.getpid, workers=[address])[address]


@contextlib.contextmanager
def stopped(*pids):
    """Stop processes for a while."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
