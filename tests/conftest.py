from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tsplib_dir() -> Path:
    """The folder of TSPLIB files beside the repository; not every machine has it."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "tsplib"
    if not folder.is_dir():
        pytest.skip(f"no TSPLIB files at {folder}")
    return folder
