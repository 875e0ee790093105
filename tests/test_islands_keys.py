"""Who may speak to the workers that a run starts: nobody without the keys of that run."""

import asyncio
import os
import ssl
import stat

import numpy as np
import pytest

from pymoo_gpuaco import GPUMMAS, GPUMemetic, Islands, load_tsp
from pymoo_gpuaco.islands import local_workers
from pymoo_gpuaco.islands.certificates import Certificates
from tests.islands_cases import colony, distributed

posix = pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")


@pytest.fixture
def places(two_workers):
    """Where scheduler, workers and nannies of a run listen: (host, port) of each."""
    addresses = [two_workers.address]
    for address, one in two_workers.client.sync(two_workers.client.scheduler.identity)["workers"].items():
        addresses += [address, one["nanny"]]
    assert len(addresses) == 5
    return [address.partition("://")[2].rsplit(":", 1) for address in addresses]


def answers(host, port, security):
    """What a stranger is answered who asks for code to be run there, as Dask does."""

    async def ask():
        arguments = {} if security is None else security.get_connection_args("client")
        scheme = "tcp" if security is None else "tls"
        comm = await distributed.comm.connect(f"{scheme}://{host}:{port}", timeout=2, **arguments)
        await comm.write({"op": "identity", "reply": True})
        answer = await asyncio.wait_for(comm.read(), 2)
        await comm.close()
        return answer

    return asyncio.run(ask())


def test_who_has_the_keys_is_answered(two_workers, places):
    for host, port in places:
        assert answers(host, port, two_workers._certificates.security)["type"] in (
            "Scheduler",
            "Worker",
            "Nanny",
        )


@pytest.mark.parametrize("has_keys", [False, True])
def test_a_stranger_is_refused(places, has_keys):
    """Another user of this machine, without keys and with keys of their own."""
    security = distributed.Security.temporary() if has_keys else None
    for host, port in places:
        with pytest.raises((OSError, asyncio.TimeoutError)):
            answers(host, port, security)


def test_who_shows_no_certificate_is_refused(places):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    async def greet(host, port):
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        try:
            return await asyncio.wait_for(reader.read(1), 5)
        finally:
            writer.close()

    for host, port in places:
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
            asyncio.run(greet(host, port))


@posix
def test_keys_lie_in_files_that_nobody_else_reads_and_go_with_the_run():
    before = os.umask(0)  # the modes must not depend on it
    try:
        keys = Certificates()
    finally:
        os.umask(before)
    folder = keys.certificate.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in sorted(folder.iterdir())] == [0o600, 0o600]
    keys.remove()
    assert not folder.exists()
    keys.remove()


def test_no_key_is_on_a_command_line_or_in_an_environment(two_workers):
    import psutil

    secret = two_workers._certificates.key.read_text()
    lines = {line for line in secret.splitlines() if "PRIVATE KEY" not in line}
    assert len(lines) > 10
    family = [psutil.Process(process.pid) for process in two_workers._processes]
    family += [child for one in family for child in one.children(recursive=True)]
    assert len(family) >= 4  # nannies and workers
    for process in (psutil.Process(), *family):
        told = " ".join([*process.cmdline(), *process.environ().values()])
        assert not any(line in told for line in lines)
    assert any("--tls-key" in process.cmdline() for process in family)


def test_a_run_on_this_machine_leaves_no_key_behind(monkeypatch):
    started = []
    start = local_workers.start

    def start_and_note(scheduler, keys, *rest):
        started.append((scheduler, keys[-1], os.path.exists(keys[-1])))
        return start(scheduler, keys, *rest)

    monkeypatch.setattr(local_workers, "start", start_and_note)
    algorithm = Islands(GPUMMAS(n_ants=2, backend="cpu"), 1).setup(
        load_tsp("gr17"), termination=("n_gen", 1), seed=1
    )
    algorithm.finalize()
    ((scheduler, key, was_there),) = started
    assert scheduler.startswith("tls://127.0.0.1:")
    assert was_there
    assert not os.path.exists(os.path.dirname(key))


def test_an_address_of_tls_needs_keys_in_the_settings_of_dask(two_workers):
    address = two_workers.address
    with pytest.raises(
        ValueError, match=f"client='{address}' speaks TLS, and Dask's settings .* name no keys"
    ):
        Islands(GPUMemetic(), client=address).setup(load_tsp("gr17"), termination=("n_gen", 1))


def test_a_client_that_is_given_keeps_its_own_security(monkeypatch):
    monkeypatch.setattr("pymoo_gpuaco.islands.cluster.Certificates", None)  # none may be made
    security = distributed.Security.temporary()
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            security=security,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        algorithm = Islands(colony(), client=client).setup(load_tsp("gr17"), termination=("n_gen", 1), seed=1)
        result = algorithm.run()
        assert result.F[0] == load_tsp("gr17").tour_length(np.asarray(result.X))
        assert client.security is security
        assert client.status == "running"
