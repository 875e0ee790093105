"""Access to the workers that a run starts: only processes with the keys of that run."""

import asyncio

import pytest

from pymoo_gpuaco import Islands, load_tsp
from pymoo_gpuaco.islands import cluster as cluster_module
from tests.interrupts import wait_until
from tests.islands_cases import colony, distributed


@pytest.fixture
def places(two_workers):
    """Where scheduler, workers and nannies of a run listen: (host, port) of each."""
    wait_until(lambda: len(two_workers.client.nthreads()) == 2)
    addresses = [two_workers.address]
    for address, one in two_workers.client.sync(two_workers.client.scheduler.identity)["workers"].items():
        addresses += [address, one["nanny"]]
    assert len(addresses) == 5
    return [address.partition("://")[2].rsplit(":", 1) for address in addresses]


def family(two_workers):
    """The processes of a local cluster."""
    import psutil

    (process, _) = two_workers._end_local.peek()[2]
    own = psutil.Process(process.pid)
    return [own, *own.children(recursive=True)]


def answers(host, port, security):
    """Return the answer to a stranger who asks to run code there, as Dask does."""

    async def ask():
        arguments = {} if security is None else security.get_connection_args("client")
        scheme = "tcp" if security is None else "tls"
        comm = await distributed.comm.connect(f"{scheme}://{host}:{port}", timeout=2, **arguments)
        await comm.write({"op": "identity", "reply": True})
        answer = await asyncio.wait_for(comm.read(), 2)
        await comm.close()
        return answer

    return asyncio.run(ask())


@pytest.mark.parametrize("has_keys", [False, True])
def test_a_stranger_is_refused(places, has_keys):
    """Another user of this machine, without keys and with keys of their own."""
    security = distributed.Security.temporary() if has_keys else None
    for host, port in places:
        with pytest.raises((OSError, asyncio.TimeoutError)):
            answers(host, port, security)


def test_local_processes_listen_to_this_machine_alone(two_workers, places):
    import psutil

    listening = [
        connection.laddr.ip
        for process in (psutil.Process(), *family(two_workers))
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= len(places)
    assert set(listening) == {"127.0.0.1"}


def test_no_key_is_on_a_command_line_or_in_an_environment(two_workers):
    import psutil

    secret = two_workers.client.security.tls_client_key
    lines = {line for line in secret.splitlines() if "PRIVATE KEY" not in line}
    assert len(lines) > 10
    processes = family(two_workers)
    assert len(processes) >= 3
    for process in (psutil.Process(), *processes):
        visible = " ".join([*process.cmdline(), *process.environ().values()])
        assert not any(line in visible for line in lines)


def test_no_key_is_in_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    algorithm = Islands(colony(), 1).setup(load_tsp("gr17"), termination=("n_gen", 1), seed=1)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"PRIVATE KEY" in path.read_bytes() for path in files)
    algorithm.finalize()


# ---- what is started


@pytest.mark.parametrize(
    ("cores", "gpus", "wanted", "backend", "expected"),
    [
        (1, 0, None, "auto", (1, 1, 0)),
        (2, 0, None, "auto", (2, 2, 0)),
        (16, 0, None, "cpu", (4, 4, 0)),
        (16, 4, None, "auto", (4, 4, 4)),
        (16, 4, None, "cpu", (4, 4, 0)),
        (16, 4, 2, "auto", (2, 2, 4)),
        (16, 4, 6, "cuda", (6, 4, 4)),  # islands share GPUs
        (16, 0, 6, "auto", (6, 6, 0)),
    ],
)
def test_islands_workers_and_gpus_of_a_machine(monkeypatch, cores, gpus, wanted, backend, expected):
    monkeypatch.setattr(cluster_module, "thread_count", lambda: cores)
    monkeypatch.setattr(cluster_module, "why_no_cuda", lambda: None if gpus else "there is none")
    monkeypatch.setattr(cluster_module, "cuda_devices", lambda: ["a GPU"] * gpus)
    assert cluster_module.layout(wanted, backend) == expected


def test_every_local_worker_has_its_own_gpu(two_workers):
    wait_until(lambda: len(two_workers.workers) == 2)
    two_workers.gpus = 2
    try:
        assert {two_workers.device_of(worker) for worker in two_workers.workers} == {0, 1}
    finally:
        two_workers.gpus = 0
    assert {two_workers.device_of(worker) for worker in two_workers.workers} == {None}
