"""Parameters of kernels are read from their sources."""

from __future__ import annotations

import pytest

from pymoo_gpuaco.backends.cuda.device import signatures, sources

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
extern "C" __global__ void __launch_bounds__(32 * (WARPS + 1), 2) bounded(int a, Node* e, NODES) {}
extern "C" __global__ void twice(int a) {}
extern "C" __global__ void twice(int a) {}
extern "C" __global__ void structure(int n, Two two) {}
extern "C" __global__ void sequence(int n[3]) {}
extern "C" __global__ void short_one(short n) {}
"""


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch):
    """A function that reads one kernel of ``SOURCE``."""
    files = {"own.cu": SOURCE, "other.cuh": "\n#define NODES Node *nodes, int n\n"}
    monkeypatch.setattr(sources, "read", files.__getitem__)
    return lambda kernel: signatures.read("own.cu", [kernel])[kernel]


def test_parameters_are_read_as_they_are_written(written):
    assert written("plain") == "PIQdfPqqq"
    assert written("bounded") == "iPPi"


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
def test_other_parameters_raise_an_error(kernel, words, written):
    with pytest.raises(ValueError, match=words):
        written(kernel)
