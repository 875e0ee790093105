import os
import random
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pymoo_gpuaco import backends
from pymoo_gpuaco.runtime.compiled import Callee

#: Files that take longest, in the order in which processes begin them: else one process works alone at the end. Files
#: that run kernels on the host come long after ``emulated``, which compiles most of these kernels for all of them.
LONGEST = """
docs emulated compiled cuda_compile islands_failures set_up_whole package islands machine_code ppls
engines parameters benchmarks windows_search fronts_cuda cuda_focused cuda_slices cuda_several cuda_wiring
ask_and_tell custom_objective magnitudes threads eax_choosing cuda_penalties cli_interrupts fuzz_shapes windows_moves
"""


@pytest.fixture(scope="session")
def tsplib_dir() -> Path:
    """The folder of TSPLIB files beside the repository; not every machine has it."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "tsplib"
    if not folder.is_dir():
        pytest.skip(f"no TSPLIB files at {folder}")
    return folder


@pytest.fixture
def short_climbs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generations of hill climbers that take moments."""
    from tests.algorithm_cases import shorten_climbs

    shorten_climbs(monkeypatch)


@pytest.fixture
def few_kicks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generations of whole tours on the CPU that take moments."""
    from pymoo_gpuaco.memetic.parameters import MemeticParameters

    monkeypatch.setattr(MemeticParameters, "trials_per_tour", lambda *_: 128)


@pytest.fixture
def unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run ends since its tour is proven to be the shortest."""
    monkeypatch.setattr("pymoo_gpuaco.algorithms.termination.MOST_CITIES_TO_PROVE", 0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The clock of the package, which stands still until the test steps it."""
    from tests.false_clock import FalseClock

    return FalseClock(monkeypatch)


@pytest.fixture(scope="session")
def compiled_kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the emulator keeps what it has compiled, for all processes of a session."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "emulator"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Any]:
    """A ``Cluster`` of two processes, which take seconds to start and some time even if idle: one a file."""
    pytest.importorskip("distributed")
    from pymoo_gpuaco.islands.cluster import Cluster

    cluster = Cluster(None, 2)
    yield cluster
    cluster.close()


@pytest.fixture
def client(two_workers: Any) -> Any:
    """The client of ``two_workers``; nannies have started those again that a test has killed."""
    from tests.interrupts import wait_until

    wait_until(lambda: len(two_workers.client.nthreads()) == 2)
    return two_workers.client


@pytest.fixture(scope="session", autouse=True)
def callees() -> None:
    """Tests may call what only compiled functions call, see ``compiled_callees``."""

    without_export = Callee.__call__

    def call(callee: Callee, *args: Any) -> Any:
        from tests.compiled_callees import EXPORTS

        return EXPORTS[callee](*args) if callee in EXPORTS else without_export(callee, *args)

    Callee.__call__ = call  # type: ignore[method-assign]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--emulate",
        action="store_true",
        help="run the kernels on the host (tests/emulator.py) instead of on a GPU",
    )
    parser.addoption(
        "--shuffle", type=int, metavar="SEED", help="run files, and the tests of each, in random order"
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("--shuffle")
    return None if seed is None else f"random order: --shuffle {seed}"


def pytest_configure(config: pytest.Config) -> None:
    """Tests of Ctrl-C work in the background, too; ``pytest -m gpu --emulate FILE`` needs g++ and no GPU."""
    config.option.loadscopereorder = False  # pytest-xdist would begin with the files of most tests
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what it does not wait for
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--emulate"):
        from tests import emulator

        emulator.install(pytest.MonkeyPatch(), Path(tempfile.gettempdir()) / "pymoo_gpuaco_emulator")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--shuffle")
    if seed is not None:
        draw = random.Random(seed)
        draw.shuffle(items)  # of a file; its tests stay together, since some share what takes long to start
        files = sorted({item.path for item in items})
        place = dict(zip(files, draw.sample(range(len(files)), len(files)), strict=True))
        items.sort(key=lambda item: place[item.path])
        return
    rank = {f"test_{name}": number for number, name in enumerate(LONGEST.split())}
    items.sort(key=lambda item: rank.get(item.path.stem, 99))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without a GPU, tests that need one are skipped; where there is one, or ``-m gpu`` asks for it, they fail."""
    missing = backends.why_no_cuda() if item.get_closest_marker("gpu") else None
    if missing is None:
        return
    if item.config.getoption("-m").strip() == "gpu" or Path("/dev/nvidiactl").exists():
        pytest.fail(f"a GPU is expected here and cannot be used: {missing}", pytrace=False)
    pytest.skip(f"needs a GPU: {missing}")
