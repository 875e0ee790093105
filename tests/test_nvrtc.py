"""Compiling without nvcc: NVRTC is found, called with the same options, and its errors are shown."""

import importlib
import sys

import pytest

from pymoo_gpuaco.backends.cuda.device import compile as compiler
from pymoo_gpuaco.backends.cuda.device import nvrtc
from pymoo_gpuaco.backends.errors import BackendUnavailable


@pytest.fixture
def no_nvcc(monkeypatch):
    def missing():
        raise BackendUnavailable("nvcc was not found")

    monkeypatch.delenv("PYMOO_GPUACO_NVCC", raising=False)
    monkeypatch.setattr(compiler, "nvcc_path", missing)


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A folder on the path as NVIDIA's wheels lay it out."""

    def make(*files):
        for file in files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_bytes(b"")
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        monkeypatch.delitem(sys.modules, "nvidia", raising=False)
        importlib.invalidate_caches()
        return tmp_path

    yield make
    sys.modules.pop("nvidia", None)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9"], 0),
        (["nvidia/cu13/lib/libnvrtc.so.13"], 0),
        (["nvidia/cuda_nvrtc/bin/nvrtc-builtins64_129.dll", "nvidia/cuda_nvrtc/bin/nvrtc64_120_0.dll"], 1),
        (["nvidia/cublas/lib/libcublas.so.12"], None),
        ([], None),
    ],
)
def test_the_library_is_found_in_the_wheels(wheel, files, found):
    folder = wheel(*files)
    assert nvrtc.library() == (None if found is None else str(folder / files[found]))


def test_nvcc_comes_first_and_nvrtc_where_it_is_missing(no_nvcc, monkeypatch):
    monkeypatch.setattr(nvrtc, "library", lambda: "/somewhere/libnvrtc.so.12")
    command = compiler.compiler_command()
    assert command == (sys.executable, "-I", nvrtc.__file__, "/somewhere/libnvrtc.so.12")
    assert compiler.compiler_name(command) == "NVRTC"
    monkeypatch.setattr(compiler, "nvcc_path", lambda: "/usr/bin/nvcc")
    assert compiler.compiler_command() == ("/usr/bin/nvcc",)


def test_without_either_and_with_a_wrong_choice_it_is_told(no_nvcc, monkeypatch):
    monkeypatch.setattr(nvrtc, "library", lambda: None)
    with pytest.raises(BackendUnavailable, match="nvcc was not found"):
        compiler.compiler_command()
    assert compiler.describe_compiler() == "none: nvcc was not found"
    monkeypatch.setattr(nvrtc, "library", lambda: "/somewhere/libnvrtc.so.12")
    monkeypatch.setenv("PYMOO_GPUACO_NVCC", "/nowhere/nvcc")  # who names a compiler wants no other
    with pytest.raises(BackendUnavailable):
        compiler.compiler_command()


def test_nvccs_options_are_translated():
    text = "-O3 -std=c++17 -cubin --ftz=true -lineinfo -arch=sm_90 -DK=8 -I/x -o a b.cu"
    options = text.split()
    ours, target, source = nvrtc.translated(options)
    expected = (
        "-default-device -std=c++17 --ftz=true --generate-line-info --gpu-architecture=sm_90 -DK=8 -I/x"
    )
    assert b" ".join(ours).decode() == expected
    assert (target, source) == ("a", "b.cu")
    # those that are really used are all among them
    assert set(compiler._OPTIONS) <= set(options)
    with pytest.raises(ValueError, match="no such option of NVRTC: -Xptxas"):
        nvrtc.translated(["-Xptxas"])
