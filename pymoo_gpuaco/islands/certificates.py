"""Certificates of one run: scheduler and workers of this machine speak to nobody else."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from pymoo_gpuaco.host.notices import how_to_install
from pymoo_gpuaco.islands.connection import dask


class Certificates:
    """A certificate with its key, made for this run, and the two files by which workers get them.

    Who has no key of this run is refused by TLS before Dask reads a word. The files are of mode 0600 in a folder of
    mode 0700: the paths that stand on a worker's command line tell other users nothing.

    Raises ImportError where the package cryptography is missing.
    """

    def __init__(self) -> None:
        try:
            self.security: Any = dask().Security.temporary()
        except ImportError as error:
            raise ImportError(
                f"workers on this machine need certificates ({error}); install what makes them with: "
                f"pip install cryptography, or {how_to_install('islands')}"
            ) from error
        self._folder = Path(tempfile.mkdtemp(prefix="pymoo_gpuaco-"))
        self.certificate = self._folder / "certificate.pem"
        self.key = self._folder / "key.pem"
        _write(self.certificate, self.security.tls_worker_cert)
        _write(self.key, self.security.tls_worker_key)

    @property
    def options(self) -> list[str]:
        """What a worker's command line says of them."""
        return [
            *("--tls-ca-file", str(self.certificate)),
            *("--tls-cert", str(self.certificate)),
            *("--tls-key", str(self.key)),
        ]

    def remove(self) -> None:
        """Remove the files, which a worker that is started again would read; to be called any number of times."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _write(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
