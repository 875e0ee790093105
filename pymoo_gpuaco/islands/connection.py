"""Import of Dask, and the client or address that a user gives."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future as Promise
from concurrent.futures import wait
from typing import Any

from pymoo_gpuaco.host.notices import how_to_install


def dask() -> Any:
    """Return the module ``distributed``. Raises ImportError that says how to install it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            f"Islands need Dask ({error}); install it with: pip install 'dask[distributed]' cryptography, or "
            f"{how_to_install('islands')}"
        ) from error
    return distributed


class Connection:
    """A client of Dask, or the address of a scheduler. Copies share it, and a pickle keeps the address.

    A process that connects to a scheduler runs the code it sends. So an address from a file is not ``trusted`` until
    the user has given it.

    It has slots because pymoo's ``get_params`` walks every ``__dict__``, and a client's has no end.
    """

    __slots__ = ("address", "client", "trusted")

    def __init__(self, given: Any, trusted: bool = True) -> None:
        self.client: Any = None
        self.trusted = trusted
        if isinstance(given, str):
            self.address = given
            return
        client_class = getattr(sys.modules.get("distributed"), "Client", ())
        if not isinstance(given, client_class):
            raise TypeError(
                "client must be a dask.distributed.Client, the address of a scheduler such as "
                f"'tcp://10.0.0.1:8786', or None, got {given!r}"
            )
        if given.asynchronous:
            raise TypeError("client must not be asynchronous: pymoo waits for every generation")
        if given.scheduler is None:
            raise ValueError(f"client must be open, got {given!r}, which was closed")
        self.client = given
        self.address = str(given.scheduler.address)

    def __deepcopy__(self, memo: dict[int, Any]) -> Connection:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Connection, (self.address, self.trusted)

    def __repr__(self) -> str:
        return f"<{self.address}>"


def client_of(address: str, seconds: float) -> Any:
    """Return a client of the scheduler at ``address``, which has so many seconds to answer.

    Raises ConnectionError where it does not: Dask alone would wait for ever for one that stands still. Raises
    ValueError for an address of TLS where Dask's settings name no keys.
    """
    distributed = dask()
    from dask import config

    loader = config.get("distributed.client.security-loader", None)
    if address.startswith("tls:") and loader is None and not distributed.Security().tls_client_cert:
        raise ValueError(
            f"client={address!r} speaks TLS, and Dask's settings (distributed.comm.tls.ca-file, client.cert and "
            "client.key) name no keys: name them there, or give a dask.distributed.Client made with security="
        )
    client_class = distributed.Client
    made: Promise[Any] = Promise()

    def connect() -> None:
        try:
            made.set_result(client_class(address, set_as_default=False))
        except BaseException as error:  # raised in the waiting thread
            made.set_exception(error)

    threading.Thread(target=connect, daemon=True).start()
    try:
        if wait([made], seconds).done:
            return made.result()
        raise ConnectionError(f"the scheduler {address} has not answered for {seconds:.0f} s")
    except BaseException:
        made.add_done_callback(_close)  # one that comes too late
        raise


def _close(made: Promise[Any]) -> None:
    if made.exception() is None:
        made.result().close()


def pickled(thing: Any) -> bytes:
    """Pickle for a worker, including classes and functions that a script or a notebook defines."""
    dask()
    import cloudpickle  # which comes with Dask

    data: bytes = cloudpickle.dumps(thing)
    return data
