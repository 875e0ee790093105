# make solve   set everything up and solve a real instance
# make test    set everything up, check and test
# Needs only a python3 with venv (3.11 and 3.12 are tested); no GPU, nvcc or PyCUDA.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: solve test stress compiled check docs look release-check bench bench-gpu bench-gpus bench-islands gpu-test gpu-trust fuzz lowest newest versions clean

solve: .venv/installed
	$(BIN)/pymoo-gpuaco solve pcb442 --picture pcb442.png

# Bytecode is cached: else each process compiles the package, and each process of the tests rewrites all of them.
unexport PYTHONDONTWRITEBYTECODE

# Most tests use one core. On a machine with a GPU one process has it: PYTEST_WORKERS=0. Three processes on two idle
# cores take a tenth less, because some tests wait; tests with limits of time then run closer to these.
PYTEST_WORKERS ?= $(if $(wildcard /dev/nvidiactl),0,2)
SIDE_BY_SIDE := -n $(PYTEST_WORKERS) --dist loadfile

# SHUFFLE=7 runs files, and the tests of each, in a random order of that seed.
# Callees that tests call are compiled first, beside the checks, or all processes of the tests would wait for them.
test: .venv/dev
	$(MAKE) -j 2 check compiled
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(if $(SHUFFLE),--shuffle $(SHUFFLE)) -m "not static and not stress"

compiled: .venv/dev
	$(BIN)/python -m pymoo_gpuaco.runtime.build tests

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/basedpyright
	$(BIN)/python -m pytest -q -m static

# The tests that wait, read clocks, fork, signal or use threads, ROUNDS times in random order beside two busy loops:
# make stress ROUNDS=3 SEED=7
ROUNDS ?= 20

stress: .venv/dev
	$(BIN)/python -m tests.stress --rounds $(ROUNDS) $(if $(filter command line,$(origin SEED)),--seed $(SEED))

# The tests that draw at random, with more draws:
# make fuzz TIMES=100 SEED=7
TIMES ?= 20
SEED ?= 1

fuzz: .venv/dev
	PYMOO_GPUACO_FUZZ=$(TIMES) PYMOO_GPUACO_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest -q \
		tests/test_fuzz_files.py tests/test_fuzz_shapes.py tests/test_fuzz_states.py tests/test_fuzz_tables.py tests/test_checkpoint_harm.py tests/test_extremes.py \
		tests/test_fuzz_constraints.py tests/test_magnitudes.py tests/test_custom_objective.py tests/test_scales.py tests/test_threads.py \
		tests/test_set_up_whole.py tests/test_time_limits.py tests/test_interrupts.py

# The tests with the oldest dependencies that pyproject.toml allows, with the newest there are, with both.
versions: lowest newest

# Without numba, which only builds: `compiled` has built both libraries.
lowest: tests/lowest.txt compiled
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check -r tests/lowest.txt --editable '.[test]'
	.venv-lowest/bin/python -m pytest $(SIDE_BY_SIDE) -m "not needs_build and not stress"

newest:
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager \
		--editable '.[dev]'
	.venv-newest/bin/python -m pytest $(SIDE_BY_SIDE) -m "not stress"

docs: .venv/docs
	$(BIN)/mkdocs build --strict

# Needs Chromium or Chrome: every page at two widths, and what leaves the page, is missing or comes from elsewhere.
look: docs
	$(BIN)/python docs/look.py --pictures site-pictures

# First, no headline table may be stale. Then sdist, and a wheel for every Linux with that C library (zig links to any;
# pip's build environment would hide it by PYTHONPATH); the wheel in an empty environment, and there the tests that need
# no build: make release-check TESTS="tests/test_cli.py tests/test_tsplib.py"
GLIBC := 2_17
TARGET := $(shell uname -m)-linux-gnu.$(subst _,.,$(GLIBC))
TESTS ?= tests
RELEASED := .venv-release

release-check: .venv/release compiled
	$(BIN)/python benchmarks/register.py --check
	rm -rf dist $(RELEASED)
	$(BIN)/python -m build --sdist
	CC="env -u PYTHONPATH $(abspath $(BIN)/python) -m ziglang cc -target $(TARGET)" $(BIN)/pip wheel --no-deps --wheel-dir dist \
		--config-settings=--build-option=--plat-name=manylinux_$(GLIBC)_$(shell uname -m) dist/*.tar.gz
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv $(RELEASED)
	$(RELEASED)/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	$(BIN)/python tests/installed.py dist/*.whl $(RELEASED)/bin/python
	$(RELEASED)/bin/pip install --quiet --disable-pip-version-check "$$(echo dist/*.whl)[test]"
	mkdir $(RELEASED)/checkout
	git ls-files -z ':!pymoo_gpuaco' | tar -c --null -T - tests/_compiled.so | tar -x -C $(RELEASED)/checkout
	cd $(RELEASED)/checkout && ../bin/python -m pytest -q --collect-only -m needs_build $(TESTS) | tail -1
	cd $(RELEASED)/checkout && ../bin/python -m pytest $(SIDE_BY_SIDE) -m "not needs_build and not stress" $(TESTS)

# On two quiet cores: make bench TSPLIB=folder, the tables of the CPU engine in about 80 minutes. On a machine with a GPU:
# make bench-gpu TSPLIB=folder MINUTES=28; `bench-gpus` with several. The most important tables come first, and another
# call continues. ACOTSP and ACOTSPQAP name Stuetzle's programs, which are compared where they are given.
TSPLIB ?= tsplib
MINUTES ?= 28
PEERS := $(if $(ACOTSP),--acotsp $(ACOTSP)) $(if $(ACOTSPQAP),--acotspqap $(ACOTSPQAP))

bench: MINUTES = 80
bench: .venv/bench
	$(BIN)/python benchmarks/measure.py $(TSPLIB) --plan cpu --minutes $(MINUTES) $(PEERS)
	$(BIN)/python docs/generate_figures.py && $(BIN)/python docs/generate_tables.py

bench-gpu:
	$(PYTHON) benchmarks/measure.py $(TSPLIB) --minutes $(MINUTES)
	$(PYTHON) docs/generate_figures.py && $(PYTHON) docs/generate_tables.py

bench-gpus:
	$(PYTHON) benchmarks/measure.py $(TSPLIB) --plan gpus --minutes $(MINUTES)
	$(PYTHON) docs/generate_figures.py && $(PYTHON) docs/generate_tables.py

# What several islands bring: on the machine's GPUs, with their numbers as ISLANDS, or without one on its cores.
ISLANDS ?= 1 2

bench-islands:
	$(PYTHON) benchmarks/islands.py $(TSPLIB) --islands $(ISLANDS)
	$(PYTHON) docs/generate_figures.py
	$(PYTHON) docs/generate_tables.py

gpu-test:
	$(PYTHON) -m pytest -m gpu

# On a machine with a GPU: threads, processes, forks, PyTorch and CuPy on one device; no memory; a
# kernel that fails; RUNS runs without growth, FOR seconds without drift; compute-sanitizer over every kernel.
RUNS ?= 3000
FOR ?= 600

gpu-trust:
	PYMOO_GPUACO_RUNS=$(RUNS) PYMOO_GPUACO_SECONDS=$(FOR) $(PYTHON) -m pytest -m gpu \
		tests/test_cuda_trust.py tests/test_cuda_sanitizer.py

# Each stamp is newer than pyproject.toml while the environment matches it.
.venv/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/dev: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	touch $@

.venv/release: .venv/dev
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[release]'
	touch $@

.venv/docs: .venv/dev
	touch $@

.venv/bench: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@

clean:
	rm -rf .venv .venv-lowest .venv-newest .venv-release build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
