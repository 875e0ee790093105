"""The web service of examples/service.py answers real requests; needs the extra ``service``."""

from __future__ import annotations

import json
import runpy
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("fastapi", reason="pip install '.[service]'")
uvicorn = pytest.importorskip("uvicorn", reason="pip install '.[service]'")

N = 15
# one way round a circle, a minute a step; no way backwards from place 1 to place 0
TIMES = [[float((j - i) % N) * 60.0 for j in range(N)] for i in range(N)]
NO_WAY = [[None if (i, j) == (1, 0) else TIMES[i][j] for j in range(N)] for i in range(N)]


@pytest.fixture(scope="module")
def ask():
    app = runpy.run_path(str(Path(__file__).resolve().parents[1] / "examples" / "service.py"))["app"]
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="on"))
    serving = threading.Thread(target=server.run)
    serving.start()
    while not server.started:
        assert serving.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]

    def request(**places):
        body = json.dumps(places).encode()
        with urlopen(
            Request(f"http://127.0.0.1:{port}/tour", body, {"Content-Type": "application/json"}),
            timeout=300.0,
        ) as answer:
            return json.load(answer)

    yield request
    server.should_exit = True
    serving.join()


def test_a_round_trip_and_a_path(ask):
    names = [f"stop {place}" for place in range(N)]
    found = ask(durations=NO_WAY, names=names, seconds=2)
    assert found["tour"] == [*range(N)]
    assert found["names"] == names
    assert (found["length"], found["violations"]) == (N * 60.0, 0)
    path = ask(durations=TIMES, names=names, start="stop 3", end=2, seconds=2)
    assert path["tour"] == [*range(3, N), 0, 1, 2]
    assert path["length"] == (N - 1) * 60.0


def test_a_known_tour_gets_a_new_stop(ask):
    found = ask(durations=TIMES, tour=[place for place in range(N) if place != 6], seconds=0.001)
    assert found["tour"] == [*range(N)]


def test_requests_at_once(ask):
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: ask(durations=TIMES, seconds=0.5), range(24)))
    assert {tuple(answer["tour"]) for answer in answers} == {tuple(range(N))}


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ({"durations": [[0.0, 1.0]]}, "matrix"),
        ({"durations": TIMES, "seconds": 0}, "greater than 0"),
        (
            {"durations": TIMES, "start": "stop 99", "names": [f"stop {place}" for place in range(N)]},
            "stop 99",
        ),
        ({"durations": TIMES, "tour": [1, 1]}, "each once"),
        ({"durations": [[0.0, 1.0], [1.0]]}, "inhomogeneous"),
        ({}, "required"),
    ],
)
def test_a_wrong_request_gets_the_reason(places, words, ask):
    with pytest.raises(HTTPError) as raised:
        ask(**places)
    with raised.value as answer:
        assert answer.code == 422
        assert words in answer.read().decode()
