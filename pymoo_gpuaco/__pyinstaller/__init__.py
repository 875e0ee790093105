"""Folder of the hook of this package, which PyInstaller finds by the entry point ``pyinstaller40``."""

from pathlib import Path


def hook_folders() -> list[str]:
    """Return the folder of the hook."""
    return [str(Path(__file__).parent)]
