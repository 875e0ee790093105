"""Parameters of kernels are read from their sources; a launch with other arguments raises an error."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.device import Device, signatures, sources
from tests.fake_device import FakeDriver, install
from tests.test_cuda_parts import Half


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch)


def test_a_launch_names_the_argument_that_its_kernel_does_not_take(driver):
    device = Device(0)
    device.set_up([Half()], "")
    own = device.arrays["own"]
    device.call("fill_trails", 1, own, 4, 0.5)
    assert driver.launches == 1
    for given, words in (
        ((own, 4.0, 0.5), "fill_trails takes a number of type size_t as count, got 4.0"),
        ((own, np.float32(4), 0.5), r"fill_trails takes a number of type size_t as count, got .*4\.0"),
        ((own, -1, 0.5), "fill_trails takes a number of type size_t as count, got -1"),
        ((None, 4, 0.5), "fill_trails takes an address as tau, got None"),
        ((own, 4), r"fill_trails takes 3 arguments \(tau, count, value\), got 2$"),
        ((own, 4, 0.5, own), r"fill_trails takes 3 arguments \(tau, count, value\), got 4$"),
    ):
        with pytest.raises(TypeError, match=words):
            device.call("fill_trails", 1, *given)
    assert driver.launches == 1
    driver.fail = 1  # what the driver says is not hidden
    with pytest.raises(driver.LaunchError, match="too many resources"):
        device.call("fill_trails", 1, own, 4, 0.5)


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
extern "C" __global__ void __launch_bounds__(32 * (WARPS + 1), 2) bounded(int a, Node* e) {}
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
    return lambda kernel: signatures.read("own.cu", [kernel])[kernel]


def test_parameters_are_read_as_they_are_written(written):
    plain = written("plain")
    assert plain.letters == "PIQdfPqqq"
    assert plain.names == ("a", "b", "c", "d", "alpha", "memory", "w.of[0]", "w.of[1]", "w.of[2]")
    with pytest.raises(TypeError, match=r"plain takes a number of type long long as w\.of\[1\], got 'two'"):
        plain.check([0, 1, 2, 3.0, 4.0, 5, 1, "two", 3])
    plain.check([0, 1, 2, 3, np.float32(4), np.intp(5), 1, 2, 3])
    assert written("bounded").letters == "iP"


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("commented", "own.cu must have one kernel commented, it has 0"),
        ("twice", "own.cu must have one kernel twice, it has 2"),
        ("structure", "no launch can give a kernel a parameter 'Two two'"),
        ("sequence", r"no launch can give a kernel a parameter 'int n\[3\]'"),
        ("short_one", "no launch can give a kernel a parameter 'short n'"),
    ],
)
def test_what_cannot_be_read_is_refused(kernel, words, written):
    with pytest.raises(ValueError, match=words):
        written(kernel)
