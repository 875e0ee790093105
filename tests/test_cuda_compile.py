"""Kernels as engines compile them: every one is launched, parsed by nvcc, and the hot ones stay in their registers.

Needs no device, and in part nvcc.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pymoo_gpuaco.backends.cuda.device import compile as compiler
from pymoo_gpuaco.backends.cuda.device import nvrtc, sources
from pymoo_gpuaco.backends.errors import BackendUnavailable
from tests.test_cuda_nvcc import no_nvcc
from tests.test_cuda_sanitizer import launched

__all__ = ["launched", "no_nvcc"]  # fixtures; the first: a device on which engines of all kinds have run


# ---- with nvcc


def nvcc(file: str, definitions: dict[str, object], target: Path, *options: str) -> str:
    """Compile a file and return the compiler's output. Raises CalledProcessError that has its messages."""
    try:
        path = compiler.nvcc_path()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    defined = [f"-D{name}={value}" for name, value in definitions.items()]
    command = [path, *options, "-std=c++17", f"-I{sources.folder()}", *defined, "-o", str(target)]
    result = subprocess.run(
        [*command, str(sources.folder() / file)], check=True, capture_output=True, text=True
    )
    assert "warning" not in result.stderr, result.stderr
    return result.stdout + result.stderr


def side_by_side(work, items) -> list:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, items))


PTX = {"P": ".u64", "Q": ".u64", "q": ".u64", "i": ".u32", "I": ".u32", "f": ".f32", "d": ".f64"}


def test_the_compiler_reads_the_same_parameters_for_the_oldest_architecture(launched, tmp_path):
    """The hot kernels are compiled for a newer one below: what depends on the architecture is in all of them."""
    first = {file: definitions for file, definitions, _ in reversed(launched.loaded)}

    def work(file: str) -> None:
        target = tmp_path / file.replace("/", ".")
        nvcc(file, first[file], target, "-ptx", "-arch=compute_75", "-Xcicc", "-O0")
        text = target.read_text()
        kernels = [name for name, _ in sources.KERNEL.findall(sources.read(file))]
        for kernel, letters in sources.parameters(file, kernels).items():
            entry = re.search(rf"\.entry {kernel}\((.*?)\)", text, re.DOTALL)
            if entry is None:  # not with these definitions
                continue
            seen = re.findall(
                r"\.param (?:\.align (\d+) )?(\.\w+)[^\[\n]*?(?:\[(\d+)\])?,?\n", entry[1] + "\n"
            )
            expected, at = {}, 0
            for letter in letters:
                size = struct.calcsize(letter)
                at = -(-at // size) * size
                expected[at] = PTX[letter]
                at += size
            at = 0
            for aligned, kind, array in seen:  # structs are arrays of bytes
                size = int(array or int(kind[2:]) // 8)
                at = -(-at // int(aligned or size)) * int(aligned or size)
                found = [expected.pop(offset) for offset in [*expected] if at <= offset < at + size]
                assert array or found == [kind], kernel
                assert sum(int(one[2:]) // 8 for one in found) == size, kernel
                at += size
            assert not expected, kernel

    side_by_side(work, first)


def test_another_size_of_a_structure_does_not_compile(launched, tmp_path):
    file = "climbers/hill_climbing.cu"
    definitions = next(definitions for name, definitions, _ in launched.loaded if name == file)
    size = {"PLACE_BYTES": int(definitions["PLACE_BYTES"]) + 8}
    with pytest.raises(subprocess.CalledProcessError) as refused:
        nvcc(file, {**definitions, **size}, tmp_path / "kernel.ptx", "-ptx", "-arch=compute_90")
    assert "the host allocates another size" in refused.value.stderr


HOT = {
    "walks/construct.cu": "construct_tours",
    "local_search/local_search.cu": "improve_tours",
    "walks/selection_rules.cu": "construct_by_rule",
    "trails/colony_deposit.cu": "deposit_links",
    "climbers/hill_climbing.cu": "climb",
    "walks/acs_relaxed.cu": "acs_relaxed",
    "walks/acs_sync.cu": "acs_sync",
    "walks/acs_selective.cu": "acs_selective",
    "windows/search.cu": "search_windows",
}
# Operation codes of sm_90: the low twelve bits of an instruction of 16 bytes.
BREAK, WARPSYNC = {0x942}, {0x348, 0x948}
BETWEEN_LANES = {0x3A1, 0x3C4, 0x806, 0x389, 0x589, 0x989, 0xF89}  # MATCH, REDUX, VOTE, SHFL


def operations(cubin: Path) -> dict[str, list[int]]:
    """Operation codes of each kernel of a cubin, an ELF file."""
    code = cubin.read_bytes()
    (headers,) = struct.unpack_from("<Q", code, 0x28)
    size, number, names = struct.unpack_from("<HHH", code, 0x3A)
    sections = [struct.unpack_from("<I20xQQ", code, headers + i * size) for i in range(number)]
    found = {}
    for name, offset, length in sections:
        first = sections[names][1] + name
        label = code[first : code.index(b"\0", first)].decode()
        if label.startswith(".text."):
            words = struct.iter_unpack("<Q8x", code[offset : offset + length])
            found[label.removeprefix(".text.")] = [word & 0xFFF for (word,) in words]
    return found


def test_hot_kernels_compile_to_machine_code_without_spills(launched, tmp_path):
    """And without a miscompilation of CUDA 13.0, which hung a search on an H200.

    Behind a loop that some lanes leave early (BREAK) the others have to be waited for (WARPSYNC) before lanes exchange
    values. Once all of these waits were left out.
    """
    variants, seen = [], set()
    for file, definitions, _ in launched.loaded:
        values = {(file, *value) for value in definitions.items()}
        if file in HOT and not values <= seen:  # a macro has a value that it has not had before
            variants.append((file, definitions))
            seen |= values
    assert {file for file, _ in variants} == {*HOT}

    def work(job: tuple[int, tuple[str, dict]]) -> None:
        number, (file, definitions) = job
        target = tmp_path / f"{number}.cubin"
        report = nvcc(file, definitions, target, "-cubin", "-arch=sm_90", "--ftz=true", "-Xptxas=-v")
        # kernels that look distances up wait for these, not for spills
        if definitions.get("METRIC", 1) in (1, 7) and definitions.get("SLOTS", 1) <= 2:
            entry = report[report.index(f"'{HOT[file]}'") :]
            spills = re.search(r"(\d+) bytes spill stores", entry)
            assert spills is not None
            assert int(spills[1]) == 0, (file, definitions, report)
        for kernel, codes in operations(target).items():
            assert codes, kernel
            used = set(codes)
            together = used & WARPSYNC or not (used & BREAK and used & BETWEEN_LANES)
            assert together, (file, definitions, kernel)

    side_by_side(work, enumerate(variants))


@pytest.mark.skipif(nvrtc.library() is None, reason="pip install nvidia-cuda-nvrtc-cu12")
def test_every_file_compiles_with_nvrtc(launched, no_nvcc, monkeypatch, tmp_path):
    monkeypatch.setenv("PYMOO_GPUACO_CACHE", str(tmp_path))
    first = {file: definitions for file, definitions, _ in reversed(launched.loaded)}
    code = compiler.compile_files("sm_90", first)
    assert all(one.startswith(b"\x7fELF") for one in code.values())
    with pytest.raises(BackendUnavailable, match=r"(?s)NVRTC could not compile tours/tours\.cu .*error"):
        compiler.compile_files("sm_90", {"tours/tours.cu": {"METRIC": "nonsense("}})
    assert compiler.describe_compiler().startswith("NVRTC: release 1")


def test_the_cache_loses_what_has_not_been_used_for_longest(monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "_CACHE_BYTES", 250)
    files = [tmp_path / f"{name}.cubin" for name in "abc"]
    for age, file in enumerate(files):
        compiler._store(file, b"x" * 68)  # and 32 bytes of checksum
        os.utime(file, (age, age))
    assert [file.exists() for file in files] == [False, True, True]
    assert compiler._load_cached(files[1]) == b"x" * 68  # now the newest
    compiler._store(files[0], b"y" * 68)
    assert [file.exists() for file in files] == [True, True, False]
