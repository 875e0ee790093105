"""The command that installs this package, which is on no package index yet."""


def how_to_install(extra: str = "") -> str:
    """Return the command that installs the package, or one of its extras ("cuda", "docs" ..), for a message."""
    what = f"'.[{extra}]'" if extra else "."
    return f"pip install {what} in a checkout"
