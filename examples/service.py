"""A web service for short tours: ``uvicorn service:app``. As a script it makes eight requests at once to itself."""

import json
import os
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import uvicorn
from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

from pymoo_gpuaco import TSP, solve

THREADS_A_CORE = 4  # further requests wait for a thread


class Places(BaseModel):
    """Places to visit, by their travel times."""

    durations: list[list[float | None]]  # row = from; null: no way, as OSRM's table service answers
    names: list[str] | None = None
    start: str | int | None = None  # of a path; the same end makes a round trip
    end: str | int | None = None
    tour: list[int] | None = None  # a known tour, also with stops more or less
    seconds: float = Field(0.5, gt=0.0, le=10.0)


@asynccontextmanager
async def prepared(_: FastAPI) -> AsyncIterator[None]:
    """Limit the requests in work, and load the engine before the first of them."""
    current_default_thread_limiter().total_tokens = THREADS_A_CORE * (os.cpu_count() or 1)
    solve(np.random.default_rng(0).random((20, 2)), 0.1)
    yield


app = FastAPI(title="Tours", lifespan=prepared)


@app.post("/tour")
def tour(places: Places) -> dict[str, Any]:  # not async: FastAPI calls it in a thread
    """Return the shortest tour that the time limit allows."""
    try:
        matrix = np.array(places.durations, dtype=float)
        matrix[np.isnan(matrix)] = np.inf
        problem = TSP(matrix=matrix, names=places.names)
        found = solve(problem, places.seconds, start=places.start, end=places.end, sampling=places.tour)
    except (TypeError, ValueError) as error:  # the message names the parameter, its value and what is allowed
        raise HTTPException(422, str(error)) from error
    return found.to_dict()


if __name__ == "__main__":
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))  # port 0: any that is free
    serving = threading.Thread(target=server.run)
    serving.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]

    def ask(table: list[list[int]]) -> dict[str, Any]:
        """Send a table of travel times."""
        body = json.dumps({"durations": table}).encode()
        request = Request(f"http://127.0.0.1:{port}/tour", body, {"Content-Type": "application/json"})
        with urlopen(request, timeout=60.0) as answer:
            return json.load(answer)

    random = np.random.default_rng(1)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(ask, [random.integers(60, 3600, (41, 41)).tolist() for _ in range(8)]):
            print("{length:.0f} s on the road, {seconds:.2f} s of search, {reason}".format(**found))
    server.should_exit = True
    serving.join()
