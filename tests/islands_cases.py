"""Small islands on a cluster of two processes, shared by the tests of islands."""

import contextlib
import time

import pytest

from pymoo_gpuaco import GPUMMAS, Islands
from tests.algorithm_cases import BACKEND

distributed = pytest.importorskip("distributed")


def colony(**arguments):
    """Whole tours of few ants, without search: a generation takes milliseconds, and a tour can be improved."""
    return GPUMMAS(
        **{"n_ants": 4, "construction": "full", "local_search": False, "backend": BACKEND, **arguments}
    )


def lock_step(**arguments):
    return Islands(colony(), **{"n_islands": 2, "deterministic": True, "exchange_every": 3, **arguments})


@contextlib.contextmanager
def keys_of(cluster):
    """Let Dask's settings name the keys of a ``Cluster``, so that its address is enough to reach it."""
    import dask

    certificate, key = str(cluster._certificates.certificate), str(cluster._certificates.key)
    names = ("ca-file", "client.cert", "client.key")
    told = zip(names, (certificate, certificate, key), strict=True)
    with dask.config.set({f"distributed.comm.tls.{name}": path for name, path in told}):
        yield


def wait_until(holds, seconds=60.0):
    """Wait for what another process does."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)
