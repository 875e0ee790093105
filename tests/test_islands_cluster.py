"""Where islands live: how many, with which GPU and how many threads. No process is started here."""

import copy
import os
import pickle

import pytest

from pymoo_gpuaco.islands import local_workers
from pymoo_gpuaco.islands.connection import Connection


@pytest.fixture
def machine(monkeypatch):
    """Let this machine have so many cores and GPUs; return what was started."""
    started = []

    def has(cores, gpus=0, visible=None):
        monkeypatch.setattr(local_workers, "thread_count", lambda: cores)
        monkeypatch.setattr(local_workers, "why_no_cuda", lambda: None if gpus else "there is none")
        monkeypatch.setattr(local_workers, "cuda_devices", lambda: ["a GPU"] * gpus)
        monkeypatch.setattr(
            local_workers.subprocess, "Popen", lambda command, env, **_: started.append((command, env))
        )
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        return started

    return has


@pytest.mark.parametrize(
    ("cores", "gpus", "wanted", "backend", "expected"),
    [
        (1, 0, None, "auto", (1, 1, False)),
        (2, 0, None, "auto", (2, 2, False)),
        (16, 0, None, "cpu", (4, 4, False)),
        (16, 4, None, "auto", (4, 4, True)),
        (16, 4, None, "cpu", (4, 4, False)),
        (16, 4, 2, "auto", (2, 2, True)),
        (16, 4, 6, "cuda", (6, 4, True)),  # islands share GPUs
        (16, 0, 6, "auto", (6, 6, False)),
    ],
)
def test_islands_and_workers_of_a_machine(machine, cores, gpus, wanted, backend, expected):
    machine(cores, gpus)
    assert local_workers.layout(wanted, backend) == expected


@pytest.mark.parametrize(
    ("gpus", "visible", "expected"),
    [(2, None, ["0", "1"]), (2, "2,3", ["2", "3"]), (2, "GPU-a, GPU-b", ["GPU-a", "GPU-b"]), (1, "", ["0"])],
)
def test_every_worker_sees_a_gpu_of_its_own(machine, gpus, visible, expected):
    started = machine(8, gpus, visible)
    for number in range(gpus):
        local_workers.start("tls://127.0.0.1:1", [], number, gpus, True)
    assert [environment["CUDA_VISIBLE_DEVICES"] for _, environment in started] == expected


def test_workers_share_the_cores_and_listen_to_this_machine(machine):
    started = machine(7)
    local_workers.start("tls://127.0.0.1:1", [], 2, 3, False)
    ((command, environment),) = started
    assert environment["PYMOO_GPUACO_THREADS"] == "2"
    assert "CUDA_VISIBLE_DEVICES" not in environment
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--dashboard-address") + 1] == "127.0.0.1:0"


@pytest.mark.parametrize("level", ["WARNING", "ERROR"])
def test_workers_log_no_warnings_where_the_run_does_not(level, machine, caplog):
    caplog.set_level(level, "pymoo_gpuaco")
    started = machine(7)
    local_workers.start("tls://127.0.0.1:1", [], 2, 3, False)
    ((_, environment),) = started
    assert environment.get("DASK_LOGGING__PYMOO_GPUACO") == {"WARNING": None, "ERROR": "error"}[level]


def test_the_workers_import_what_can_be_imported_here(machine, monkeypatch, tmp_path):
    started = machine(2)
    monkeypatch.syspath_prepend(str(tmp_path))
    local_workers.start("tls://127.0.0.1:1", [], 0, 1, False)
    assert started[0][1]["PYTHONPATH"].split(os.pathsep)[0] == str(tmp_path.resolve())


def test_an_address_survives_copies_and_pickles():
    connection = Connection("tcp://10.0.0.1:8786")
    assert copy.deepcopy(connection) is connection
    assert pickle.loads(pickle.dumps(connection)).address == "tcp://10.0.0.1:8786"
    assert not hasattr(connection, "__dict__")  # pymoo's get_params walks it
