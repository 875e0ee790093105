"""The kernels compile with plain nvcc, alone and in every variant, and the hot ones keep to their registers.

Needs nvcc and no device.
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
from pymoo_gpuaco.backends.cuda.device import sources
from pymoo_gpuaco.backends.cuda.local_search.search import move_definitions
from pymoo_gpuaco.backends.cuda.walks.rules import BY_RULE
from pymoo_gpuaco.backends.cuda.walks.walk import rule_definitions
from pymoo_gpuaco.colony.parameters import number_of
from pymoo_gpuaco.colony.selection import CODES

try:
    NVCC = compiler.nvcc_path()
except RuntimeError as error:
    pytest.skip(str(error), allow_module_level=True)

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
FILES = tuple(sorted(p.relative_to(sources.folder()).as_posix() for p in sources.folder().rglob("*.cu")))

_UNUSUAL = {
    "SLOTS": 2,
    "ALPHA_IS_ONE": 0,
    "USUAL_EXPONENTS": 0,
    "TABU_IN_SHARED": 0,
    "NODE": "unsigned int",
    "METRIC": 7,
    "DIMENSIONS": 3,
}
# What these files are compiled for where nothing is said: they have no rule of their own, as numbers are the table's.
RULE_OF = {
    "walks/construct.cu": "wrs",
    "walks/construct_all.cu": "wrs",
    "walks/selection_rules.cu": "roulette",
}
RWM = {"SELECTION": CODES["rwm"]}
# (file, definitions): together they name every value of every definition once.
VARIANTS = (
    *(("walks/construct.cu", {**RWM, "TABU": t}) for t in (0, 1, 2)),
    *(("walks/construct.cu", {"TABU": t}) for t in (0, 1)),
    ("walks/construct.cu", {"RESIDENT": 1}),
    ("walks/construct.cu", {"SLOTS": 2, "TABU_IN_SHARED": 0, "NODE": "unsigned int", "DENSE": 0}),
    ("walks/construct.cu", {"SLOTS": 3, "USUAL_EXPONENTS": 0, "METRIC": 4, "TABLE": 1}),
    ("walks/construct.cu", {**RWM, "SLOTS": 2, "METRIC": 0, "TABLE": 1}),
    ("walks/construct.cu", {"REST": 1}),
    ("walks/construct.cu", {"REST": 1, "RESIDENT": 1, "FEW_ANTS": 1, "TABU": 1}),
    (
        "walks/construct.cu",
        {"REST": 1, "SLOTS": 2, "USUAL_EXPONENTS": 0, "METRIC": 7, "DIMENSIONS": 3, "TABU": 0},
    ),
    ("walks/construct_all.cu", {**RWM, "TABU": 0}),
    *(("walks/construct_all.cu", {"TABU": t}) for t in (1, 2)),
    ("walks/construct_all.cu", {"USUAL_EXPONENTS": 0, "METRIC": 7, "DIMENSIONS": 3}),
    ("weights/weights.cu", {"RACE": 0, "SLOTS": 2, "DENSE": 0, "NODE": "unsigned int"}),
    ("weights/weights.cu", {"REST": 1, "SLOTS": 2, "METRIC": 4}),
    ("instance/lists.cu", {"SLOTS": 2, "NODE": "unsigned int"}),
    ("weights/aliases.cu", {"METRIC": 0}),
    ("weights/all_weights.cu", {"FORM": 0, "METRIC": 7, "DIMENSIONS": 3}),
    ("weights/all_weights.cu", {"FORM": 2, "METRIC": 4}),
    *(("walks/selection_rules.cu", {"SELECTION": CODES[s], "WIDTH": 8, "QUADS": 8}) for s in BY_RULE),
    (
        "walks/selection_rules.cu",
        {"SELECTION": CODES["hybrid"], "WIDTH": 40, "QUADS": 8, "NODE": "unsigned int"},
    ),
    ("walks/selection_rules.cu", {"SELECTION": CODES["acceptance_tournament"], "LANES": 1}),
    ("walks/selection_rules.cu", {"SELECTION": CODES["compressed"], "TABU_IN_SHARED": 0}),
    ("trails/colony_deposit.cu", {"SYMMETRIC": 0, "NODE": "unsigned int"}),
    ("trails/colony_deposit.cu", {"TILED": 1}),
    ("trails/trails.cu", {"DENSE": 0, "SYMMETRIC": 0}),
    *(("tours/tours.cu", {"METRIC": m}) for m in (0, 2, 3, 4, 5, 6, 7, 8)),
    *(("tours/tours.cu", {"METRIC": m, "DIMENSIONS": 3}) for m in (1, 5, 6)),
    ("local_search/local_search.cu", {"MOVES": number_of("2opt"), "METRIC": 0, "TABLE": 1}),
    *(("climbers/hill_climbing.cu", {"METRIC": m}) for m in (2, 3, 5, 6)),
    ("climbers/hill_climbing.cu", {"UNITS": 0, "METRIC": 7}),
    ("climbers/hill_climbing.cu", {"UNITS": 0, "METRIC": 4}),
    ("climbers/hill_climbing.cu", {"UNITS": 0, "METRIC": 8, "DIMENSIONS": 3}),
    ("climbers/hill_climbing.cu", {"UNITS": 0, "METRIC": 0, "TABLE": 1}),
    ("climbers/hill_climbing.cu", {"DIMENSIONS": 3}),
    *(("climbers/hill_climbing.cu", {"BATCH": b, "RESIDENT": r}) for b, r in ((1, 1), (0, 0), (1, 0))),
    *(("climbers/hill_climbing.cu", {"SCAN": s, "RESIDENT": 0, "THREADS": 1024}) for s in (0, 1)),
    *(
        ("local_search/local_search.cu", {"DIRECTED": 1, "METRIC": 0, "TABLE": t, "IN_SHARED": t})
        for t in (0, 1)
    ),
    ("local_search/local_search.cu", {"IN_SHARED": 0, "NODE": "unsigned int", "DIMENSIONS": 3, "METRIC": 5}),
    *(("walks/acs_relaxed.cu", {"TABU": t, "DENSE": 0}) for t in (0, 1, 2)),
    *(
        (f"walks/acs_{v}.cu", {"SYMMETRIC": 0, "METRIC": 0, "TABLE": 1})
        for v in ("relaxed", "sync", "selective")
    ),
    *((f"walks/acs_{v}.cu", _UNUSUAL) for v in ("relaxed", "sync", "selective")),
    ("walks/acs_sync.cu", {"DENSE": 0}),
    ("walks/acs_selective.cu", {"TRAILS": 40}),
    ("walks/acs_rows.cu", {"COUNTED": 1, "SLOTS": 2}),
    ("walks/acs_rows.cu", {"COUNTED": 1, "DENSE": 0, "NODE": "unsigned int"}),
    ("trails/ring_trails.cu", {"TRAILS": 40, "SYMMETRIC": 0}),
    *(("windows/search.cu", {"METRIC": m}) for m in (2, 3, 4, 5, 6)),
    *(("windows/search.cu", {"SCALED": 1, "METRIC": m, "DIMENSIONS": 3}) for m in (7, 8)),
    ("windows/search.cu", {"SCALED": 1, "METRIC": 0, "TABLE": 1}),
    *(("windows/search.cu", {"PENALTIES": 1, "RESIDENT": 14, "METRIC": m}) for m in (1, 2)),
)
HOT = {
    "walks/construct.cu": "construct_tours",
    "walks/construct_all.cu": "construct_all",
    "local_search/local_search.cu": "improve_tours",
    "walks/selection_rules.cu": "construct_by_rule",
    "trails/colony_deposit.cu": "deposit_links",
    "climbers/hill_climbing.cu": "climb",
    "walks/acs_relaxed.cu": "acs_relaxed",
    "walks/acs_sync.cu": "acs_sync",
    "walks/acs_selective.cu": "acs_selective",
    "windows/search.cu": "search_windows",
}


def nvcc(*arguments: str) -> str:
    result = subprocess.run([NVCC, f"-I{sources.folder()}", *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "warning" not in result.stderr, result.stderr
    return result.stdout + result.stderr


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


def options(file: str, definitions: dict) -> list[str]:
    """The definitions of a file as options."""
    whole = {**(rule_definitions(RULE_OF[file], CODES) if file in RULE_OF else {}), **definitions}
    if file in ("local_search/local_search.cu", "faco/ants.cu"):
        whole = {**move_definitions("2opt+oropt"), **whole}
    return [f"-D{name}={value}" for name, value in whole.items()]


def side_by_side(work, items) -> list:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, items))


def test_every_file_compiles_alone_for_every_architecture(tmp_path):
    """To PTX, which parses all code; machine code is made for one architecture below."""
    listed = subprocess.run([NVCC, "--list-gpu-code"], capture_output=True, text=True).stdout.split()
    known = [arch for arch in ARCHITECTURES if arch in listed]
    assert "sm_90" in known
    jobs = [(file, arch) for file in FILES for arch in known]

    def work(job: tuple[str, str]) -> None:
        file, arch = job
        target = tmp_path / f"{file.replace('/', '.')}.{arch}.ptx"
        virtual = arch.replace("sm", "compute")
        code = str(sources.folder() / file)
        nvcc("-ptx", f"-arch={virtual}", "-std=c++17", *options(file, {}), "-o", str(target), code)

    side_by_side(work, jobs)


def test_every_variant_compiles_to_machine_code_without_spills(tmp_path):
    """And without a miscompilation of CUDA 13.0, which hung a search on an H200.

    Behind a loop that some lanes leave early (BREAK) the others have to be waited for (WARPSYNC) before lanes speak to
    each other. Once all of these waits were left out.
    """

    def work(job: tuple[int, tuple[str, dict]]) -> None:
        number, (file, definitions) = job
        report = nvcc(
            "-cubin",
            "-arch=sm_90",
            "-std=c++17",
            "--ftz=true",
            "-Xptxas=-v",
            *options(file, definitions),
            "-o",
            str(tmp_path / f"{number}.cubin"),
            str(sources.folder() / file),
        )
        in_shared = definitions.get("TABU_IN_SHARED", 1) and definitions.get("IN_SHARED", 1)
        # climbers that look distances up or call trigonometric functions wait for these, not for spills; windows of
        # other metrics than the usual ones may spill a little
        metric = definitions.get("METRIC", 1)
        in_registers = metric in {
            "climbers/hill_climbing.cu": (1, 2, 3, 5, 6, 7),
            "windows/search.cu": (1, 2),
        }.get(file, (metric,))
        if file in HOT and in_shared and in_registers and definitions.get("SLOTS", 1) <= 2:
            entry = report[report.index(f"'{HOT[file]}'") :]
            spills = re.search(r"(\d+) bytes spill stores", entry)
            assert spills is not None
            assert int(spills[1]) == 0, (file, definitions, report)
        for kernel, codes in operations(tmp_path / f"{number}.cubin").items():
            assert codes, kernel
            used = set(codes)
            together = used & WARPSYNC or not (used & BREAK and used & BETWEEN_LANES)
            assert together, (file, definitions, kernel)

    side_by_side(work, enumerate([*((file, {}) for file in FILES), *VARIANTS]))


def test_the_cache_keeps_what_was_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_CACHE", str(tmp_path))
    code = compiler.compile_file("tours/tours.cu", "sm_90", {"METRIC": 7})
    (kept,) = tmp_path.glob("*.cubin")
    assert kept.read_bytes().startswith(code)
    monkeypatch.setattr(compiler, "_Compilation", lambda *_: pytest.fail("compiled again"))
    assert compiler.compile_file("tours/tours.cu", "sm_90", {"METRIC": 7}) == code
    with pytest.raises(pytest.fail.Exception):
        compiler.compile_file("tours/tours.cu", "sm_90", {"METRIC": 1})


def test_what_a_kernel_depends_on_is_followed_through_its_includes():
    text = sources.with_includes("walks/construct.cu").decode()
    for part in ("construct_tours", "best_remaining", "philox_rounds", "struct Tabu", "warp_prefix_sum"):
        assert part in text
    assert "improve_tours" not in text


def test_a_compiler_error_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_CACHE", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"nvcc could not compile tours/tours\.cu"):
        compiler.compile_file("tours/tours.cu", "sm_90", {"METRIC": "nonsense("})


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_NVCC", "/nowhere/nvcc")
    with pytest.raises(RuntimeError, match="PYMOO_GPUACO_NVCC"):
        compiler.nvcc_path()


KNOWN_ANSWERS = (
    # counter, key, words: from the reference implementation's kat_vectors (Salmon et al., Random123)
    ("0x00000000", "0x00000000", "0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"),
    ("0xffffffff", "0xffffffff", "0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"),
)


def test_philox_gives_the_published_numbers(tmp_path):
    """The source of the kernels, run on the host: the rounds have no device-only instruction."""
    lines = []
    for counter, key, *words in KNOWN_ANSWERS:
        lines.append(
            f"w = philox4x32(make_uint4({counter}u, {counter}u, {counter}u, {counter}u), Key{{{key}u, {key}u}});"
            + "".join(f"if (w.{axis} != {word}u) return 1;" for axis, word in zip("xyzw", words, strict=True))
        )
    source = tmp_path / "known.cu"
    source.write_text(
        '#include "philox_rounds.h"\nint main() { uint4 w; ' + "\n".join(lines) + " return 0; }\n"
    )
    text = sources.read("device/philox.cuh")
    first = text.index("struct Key")
    last = text.index("template <class Keys>\n__device__ __forceinline__ uint4 random_words")
    rounds = text[first:last].replace("__device__ __forceinline__", "static").replace("#pragma unroll", "")
    (tmp_path / "philox_rounds.h").write_text(rounds)
    program = tmp_path / "known"
    nvcc("-std=c++17", "-o", str(program), str(source))
    assert subprocess.run([str(program)]).returncode == 0
