"""What kernels take is what their sources say, and what engines launch them with. Needs no device, and in part nvcc."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.climbers.engine import CudaClimbers
from pymoo_gpuaco.backends.cuda.device import Device, signatures, sources
from pymoo_gpuaco.backends.cuda.device import compile as compiler
from pymoo_gpuaco.backends.cuda.engine import CudaColony
from pymoo_gpuaco.backends.cuda.faco import CudaFaco
from pymoo_gpuaco.backends.cuda.pareto.engine import CudaFronts
from pymoo_gpuaco.backends.cuda.precedence import CudaChains
from pymoo_gpuaco.backends.cuda.search_device import CudaWindows
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony.faco import FacoParameters
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters, LocalSearch
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.precedence import PrecedenceSearch
from pymoo_gpuaco.memetic.precedence_model import make_model
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.pareto.instance import front_instance
from pymoo_gpuaco.problems import TSP, MultiObjectiveTSP, OpenPath
from tests.engine_cases import COLONIES, cloud, instance_for
from tests.fake_device import FakeDriver, install
from tests.test_cuda_parts import Half
from tests.test_cuda_wiring import tours_for_kernels_that_do_nothing, use, use_fronts

N = 40
PLACES = {
    "plane": cloud(N),
    "space": TSP(np.random.default_rng(1).uniform(0, 1000, (N, 3)), metric="EXACT"),
    "matrix": TSP(matrix=5.0 * (1 - np.eye(N))),
}


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch)


@pytest.fixture(scope="module")
def launched() -> FakeDriver:
    """A device on which engines of all kinds have done all that they can."""
    with pytest.MonkeyPatch.context() as patch:
        driver = install(patch)
        for name, problem in PLACES.items():
            for way in COLONIES.values() if name == "plane" else [COLONIES["windows"]]:
                parameters = ColonyParameters(**{"n_ants": 6, **way})
                engine = CudaColony(instance_for(problem, parameters), parameters)
                use(engine, N)
                if parameters.memory != "selective":
                    engine.set_trails([[0, 1]], engine.trails_of([[0, 1]]))
                    engine.update_trails(TrailUpdate(0.1, colony_amount=1.0))
            colony = CudaFaco(
                listed_instance(problem, 8), FacoParameters(6, local_search=LocalSearch(kicks=0.0))
            )
            colony.begin()
            colony.iterate(1, 1)
            windows = CudaWindows(listed_instance(problem, 8), MemeticParameters())
            focused = MemeticSearch(windows)
            tours_for_kernels_that_do_nothing(windows)
            focused.search(1)
            CudaClimbers(listed_instance(problem, 1), ClimberParameters(2)).climb(1)
            ordered = OpenPath(problem, precedence=[(1, 2)])
            chains = CudaChains(make_model(listed_instance(ordered, 5)), 2, 0)
            PrecedenceSearch(chains, MemeticParameters()).search(1)
            use_fronts(CudaFronts(front_instance(MultiObjectiveTSP([problem] * (len(name) % 4 + 2)), 5)))
    return driver


def test_every_kernel_of_the_sources_is_launched_with_what_it_takes(launched):
    files = {p.relative_to(sources.folder()).as_posix() for p in sources.folder().rglob("*.cu")}
    there = {name for file in files for name, _ in signatures.KERNEL.findall(sources.read(file))}
    assert len(there) == 47
    assert launched.launched == there  # the device has looked at their arguments
    assert {file for file, *_ in launched.loaded} == files


def test_a_launch_names_the_argument_that_its_kernel_does_not_take(driver):
    device = Device(0)
    device.set_up([Half()], "")
    own = device.arrays["own"]
    device.call("pad_candidates", 1, own, 20, 8, own)
    assert driver.launches == 1
    names = r"\(neighbours, n, k, candidates\)"
    for given, words in (
        ((own, 20, 8.0, own), "pad_candidates takes a number of type int as k, got 8.0"),
        ((own, np.float32(20), 8, own), r"pad_candidates takes a number of type int as n, got .*20\.0"),
        ((own, 20, 1 << 31, own), "pad_candidates takes a number of type int as k, got 2147483648"),
        ((own, 20, 8, None), "pad_candidates takes an address as candidates, got None"),
        ((own, 20, 8), f"pad_candidates takes 4 arguments {names}, got 3$"),
        ((20, 8.0, own), f"takes 4 arguments {names}, got 3; it takes a number of type int as n, got 8.0"),
        ((own, 20, 8, own, own), f"pad_candidates takes 4 arguments {names}, got 5$"),
    ):
        with pytest.raises(TypeError, match=words):
            device.call("pad_candidates", 1, *given)
    assert driver.launches == 1


def test_what_the_driver_says_of_a_launch_is_not_hidden(driver):
    device = Device(0)
    device.set_up([Half()], "")
    driver.fail = 0
    with pytest.raises(driver.LaunchError, match="too many resources"):
        device.call("pad_candidates", 1, device.arrays["own"], 20, 8, device.arrays["own"])


SOURCE = """
#include "other.cuh"
struct Words { long long of[3]; };
struct Two { int a; float b; };
#define SHARED_PARAMETERS  \\
    float alpha,   const \\
        char *memory
// __global__ void commented(int a);
extern "C" __global__ void plain(const double* __restrict__ a,  // (n, 2), (m,)
                                 unsigned b, size_t c, double d, SHARED_PARAMETERS, const Words w) {}
extern "C" __global__ void __launch_bounds__(32 * (WARPS + 1), 2)
    chosen(int a,
#if WIDE
           float* b, float c,
#else
           int d,
#endif
           Node* e) {}
extern "C" __global__ void twice(int a) {}
extern "C" __global__ void twice(int a) {}
extern "C" __global__ void structure(int n, Two two) {}
extern "C" __global__ void sequence(int n[3]) {}
extern "C" __global__ void short_one(short n) {}
"""


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch):
    """A function that reads one kernel of ``SOURCE``."""
    files = {"own.cu": SOURCE, "other.cuh": "#define NODES Node *nodes, int n\n"}
    monkeypatch.setattr(sources, "read", files.__getitem__)
    return lambda kernel, **definitions: signatures.read("own.cu", [kernel], definitions)[kernel]


def test_parameters_are_read_as_they_are_written(written):
    plain = written("plain")
    assert plain.letters == "PIQdfPqqq"
    assert [a.name for a in plain.arguments] == ["a", "b", "c", "d", "alpha", "memory", "w.of"]
    with pytest.raises(TypeError, match=r"plain takes a number of type long long as w\.of\[1\], got 'two'"):
        plain.check([0, 1, 2, 3.0, 4.0, 5, 1, "two", 3])
    plain.check([0, 1, 2, 3, np.float32(4), np.intp(5), 1, 2, 3])
    assert written("chosen", WIDE=1).letters == "iPfP"
    assert [a.name for a in written("chosen", WIDE=0).arguments] == ["a", "d", "e"]


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("chosen", "chosen of own.cu: '#if WIDE' among the parameters asks for what is not defined"),
        ("commented", "own.cu must have one kernel commented, it has 0"),
        ("twice", "own.cu must have one kernel twice, it has 2"),
        ("structure", "structure of own.cu: no launch can give a parameter 'Two two'"),
        ("sequence", r"sequence of own.cu: no launch can give a parameter 'int n\[3\]'"),
        ("short_one", "short_one of own.cu: no launch can give a parameter 'short n'"),
    ],
)
def test_what_cannot_be_read_is_refused(kernel, words, written):
    with pytest.raises(ValueError, match=words):
        written(kernel)


# ---- against the compiler

PTX = {"P": ".u64", "Q": ".u64", "q": ".u64", "i": ".u32", "I": ".u32", "f": ".f32", "d": ".f64"}


def nvcc(file: str, definitions: dict[str, object], target: Path) -> str:
    """Compile a file to PTX and return that. Raises CalledProcessError that has the compiler's words."""
    try:
        path = compiler.nvcc_path()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    defined = [f"-D{name}={value}" for name, value in definitions.items()]
    folder = sources.folder()
    command = [path, "-ptx", "-arch=compute_90", "-std=c++17", f"-I{folder}", *defined]
    subprocess.run(
        [*command, "-o", str(target), str(folder / file)], check=True, capture_output=True, text=True
    )
    return target.read_text()


def test_the_compiler_reads_the_same_parameters(launched, tmp_path):
    compiled: dict[str, str] = {}
    read = set()  # what was launched twice with the same parameters and sizes is checked once
    for file, definitions, kernel in launched.loaded:
        arguments = signatures.read(file, [kernel], definitions)[kernel].arguments
        sizes = tuple(value for name, value in definitions.items() if name.endswith("_BYTES"))
        if (kernel, arguments, sizes) in read:
            continue
        read.add((kernel, arguments, sizes))
        key = f"{file} {sorted(definitions.items())}"
        if key not in compiled:
            compiled[key] = nvcc(file, definitions, tmp_path / "kernel.ptx")
        entry = re.search(rf"\.entry {kernel}\((.*?)\)", compiled[key], re.DOTALL)
        assert entry is not None, (kernel, key)
        seen = re.findall(r"\.param (?:\.align \d+ )?(\.\w+)[^\[\n]*?(?:\[(\d+)\])?,?\n", entry[1] + "\n")
        expected = [(PTX[a.letter], "") if a.count == 1 else (".b8", str(4 * a.count)) for a in arguments]
        assert seen == expected, kernel


SIZED = {
    "windows/search.cu": ("WINDOW_BYTES", "EXCHANGE_BYTES"),
    "climbers/hill_climbing.cu": ("CONTROL_BYTES", "PLACE_BYTES"),
    "walks/acs_sync.cu": ("WALKER_BYTES",),
    "weights/weights.cu": ("REST_BYTES", "SPARE_BYTES"),
    "weights/aliases.cu": ("ALIAS_BYTES",),
}


@pytest.mark.parametrize("file", SIZED)
def test_another_size_of_a_structure_does_not_compile(file, launched, tmp_path):
    definitions = next(definitions for name, definitions, _ in launched.loaded if name == file)
    assert {name for name in definitions if name.endswith("_BYTES")} == {*SIZED[file]}
    for name in SIZED[file]:
        with pytest.raises(subprocess.CalledProcessError) as refused:
            nvcc(file, {**definitions, name: int(str(definitions[name])) + 8}, tmp_path / "kernel.ptx")
        assert "the host allocates another size" in refused.value.stderr
