"""Tells PyInstaller, by the entry point ``pyinstaller40``, where the hook of this package is."""

from pathlib import Path


def hook_folders() -> list[str]:
    """Return the folder of the hook."""
    return [str(Path(__file__).parent)]
