"""Instances by name, with no network but a server of the test's own."""

import gzip
import hashlib
import http.server
import json
import os
import threading
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.device import compile as compile_
from pymoo_gpuaco.problems import Metric, available_instances, datasets, load_tsp, random_map

SQUARE = (
    "NAME: {name}\nTYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: {kind}\nNODE_COORD_SECTION\n"
    "1 0 0\n2 3 0\n3 3 4\n4 0 4\nEOF\n"
)
TINY = SQUARE.format(name="tiny4", kind="EUC_2D")
# its checksum: that of the eight coordinates as little-endian doubles
TINY_NUMBERS = hashlib.sha256(np.array([0, 0, 3, 0, 3, 4, 0, 4], "<f8").tobytes()).hexdigest()[:16]


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """Nothing of the user's own: an empty cache, no data folder, a mirror that refuses."""
    monkeypatch.delenv(datasets.DATA_VARIABLE, raising=False)
    monkeypatch.setattr(datasets, "_MIRROR", "http://127.0.0.1:9/")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("PYMOO_GPUACO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "n", "metric", "best_known", "has_tour"),
    [
        ("att532", 532, Metric.ATT, 27686, False),
        ("berlin52", 52, Metric.EUC, 7542, True),
        ("gr17", 17, Metric.EXPLICIT, 2085, False),
        ("gr666", 666, Metric.GEO, 294358, True),
        ("kroA100", 100, Metric.EUC, 21282, True),
        ("kroB100", 100, Metric.EUC, 22141, False),
        ("pcb442", 442, Metric.EUC, 50778, True),
    ],
)
def test_shipped_instances_come_with_what_is_known_of_them(name, n, metric, best_known, has_tour):
    problem = load_tsp(name)
    assert (problem.n_cities, problem.metric, problem.best_known) == (n, metric, best_known)
    assert problem.label == name
    assert (problem.optimal_tour is not None) == has_tour
    if has_tour:
        assert problem.tour_length(problem.optimal_tour) == best_known
    assert load_tsp(f"{name}.tsp").n_cities == n


def test_tables_agree_with_one_another():
    data = resources.files("pymoo_gpuaco.problems.data")
    best_known = json.loads((data / "best_known.json").read_text())
    registry = json.loads((data / "registry.json").read_text())
    assert best_known.keys() == registry.keys()
    assert set(available_instances()) <= registry.keys()
    for entry in registry.values():
        assert set(entry) - {"sha256"} == {"dimension", "edge_weight_type", "numbers"}
        assert len(entry["numbers"]) == 16
        assert len(entry.get("sha256", "0" * 64)) == 64


def test_tables_agree_with_tsplibs_files(tsplib_dir):
    table = json.loads((tsplib_dir / "best_known.json").read_text())
    for name, entry in datasets._registry().items():
        kind = "tsp" if "sha256" in entry else "atsp"
        path = tsplib_dir / f"{name}.{kind}"
        assert load_tsp(path).best_known == table[kind][name]
        if "sha256" in entry:
            assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]


def test_a_path_is_read_whatever_its_type(tmp_path):
    path = tmp_path / "tiny4.tsp"
    path.write_text(TINY)
    for argument in (path, str(path), "tiny4.tsp", os.path.join(".", "tiny4.tsp")):
        problem = load_tsp(argument)
        assert problem.n_cities == 4
        assert problem.best_known is None
        assert problem.optimal_tour is None


def test_a_tour_beside_the_file_is_the_optimal_tour(tmp_path):
    path = tmp_path / "tiny4.tsp"
    path.write_text(TINY.replace("1 0 0", "10 0 0"))  # city 10 comes last
    (tmp_path / "tiny4.opt.tour").write_text("TYPE : TOUR\nDIMENSION : 4\nTOUR_SECTION\n10 2 3 4\n-1\n")
    problem = load_tsp(path)
    np.testing.assert_array_equal(problem.optimal_tour, [3, 0, 1, 2])
    assert problem.best_known == 14  # 3 + 4 + 3 + 4


@pytest.mark.parametrize("text", ["nonsense", "TYPE : TOUR\nTOUR_SECTION\n1 2 3\n-1\n"])
def test_a_tour_that_does_not_fit_is_left_out_with_a_warning(tmp_path, text):
    path = tmp_path / "tiny4.tsp"
    path.write_text(TINY)
    (tmp_path / "tiny4.opt.tour").write_text(text)
    with pytest.warns(UserWarning, match=r"optimal tour left out: .*tiny4\.opt\.tour"):
        problem = load_tsp(path)
    assert problem.optimal_tour is None


def test_a_tour_that_lacks_a_fixed_edge_is_left_out_with_a_warning(tmp_path):
    path = tmp_path / "tiny4.tsp"
    path.write_text(TINY.replace("EOF\n", "") + "FIXED_EDGES_SECTION\n1 3\n-1\n")
    tour = tmp_path / "tiny4.opt.tour"
    tour.write_text("TYPE : TOUR\nTOUR_SECTION\n1 2 3 4\n-1\n")
    with pytest.warns(UserWarning, match=r"left out: .*tiny4\.opt\.tour: it lacks fixed edges"):
        assert load_tsp(path).best_known is None
    tour.write_text("TYPE : TOUR\nTOUR_SECTION\n1 3 2 4\n-1\n")
    assert load_tsp(path).best_known == 5 + 4 + 5 + 4


def test_a_tour_longer_than_the_best_known_is_left_out_with_a_warning(tmp_path):
    data = resources.files("pymoo_gpuaco.problems.data")
    path = tmp_path / "pcb442.tsp"
    path.write_bytes((data / "pcb442.tsp").read_bytes())
    numbers = "\n".join(map(str, range(1, 443)))
    (tmp_path / "pcb442.opt.tour").write_text(f"TYPE : TOUR\nTOUR_SECTION\n{numbers}\n-1\n")
    with pytest.warns(UserWarning, match="its length is 221440, the best known is 50778"):
        problem = load_tsp(path)
    assert problem.optimal_tour is None
    assert problem.best_known == 50778


@pytest.fixture
def tiny_is_known(monkeypatch):
    """As if TSPLIB held the square of sides 3 and 4, with its optimum 14."""
    tables = {
        "registry.json": {"tiny4": {"dimension": 4, "edge_weight_type": "EUC_2D", "numbers": TINY_NUMBERS}},
        "best_known.json": {"tiny4": 14},
    }
    monkeypatch.setattr(datasets, "shipped_table", tables.get)


@pytest.mark.usefixtures("tiny_is_known")
@pytest.mark.parametrize(
    "text",
    [
        TINY,
        # another order and other writing, the same cities
        TINY.replace("2 3 0\n3 3 4\n", "3 3.0 4e0\n2 3 -0\n"),
    ],
)
def test_best_known_is_taken_for_the_published_cities_whatever_the_file_is_called(tmp_path, text, recwarn):
    path = tmp_path / "renamed.tsp"
    path.write_text(text)
    assert load_tsp(path).best_known == 14
    assert not recwarn.list


@pytest.mark.usefixtures("tiny_is_known")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TINY.replace("EUC_2D", "CEIL_2D"), "EDGE_WEIGHT_TYPE is CEIL_2D instead of EUC_2D"),
        (TINY.replace("4 0 4", "4 0 5"), "its coordinates differ"),
        (TINY.replace("EOF\n", "") + "FIXED_EDGES_SECTION\n1 3\n-1\n", "some of its edges are fixed"),
        (TINY.replace("DIMENSION: 4", "DIMENSION: 3").replace("4 0 4\n", ""), "3 cities instead of 4"),
    ],
)
def test_another_instance_under_a_known_name_has_no_best_known_length_and_says_so(tmp_path, text, words):
    path = tmp_path / "tiny4.tsp"
    path.write_text(text)
    with pytest.warns(UserWarning, match=f"not TSPLIB's tiny4: .*{words}"):
        assert load_tsp(path).best_known is None


@pytest.mark.usefixtures("tiny_is_known")
def test_an_unknown_name_has_no_best_known_length(tmp_path, recwarn):
    path = tmp_path / "tiny4.tsp"
    path.write_text(SQUARE.format(name="other4", kind="EUC_2D"))
    assert load_tsp(path).best_known is None
    assert not recwarn.list


def test_the_diagonal_of_a_matrix_does_not_make_it_another_instance():
    ones = np.ones((3, 3))
    assert datasets.numbers_checksum(ones, True) == datasets.numbers_checksum(ones + 8 * np.eye(3), True)
    assert datasets.numbers_checksum(ones, True) != datasets.numbers_checksum(ones + 1, True)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tiny4.tsp", TINY.encode()),
        ("tiny4.atsp", TINY.replace("TYPE: TSP", "TYPE: ATSP").encode()),
        ("tiny4.tsp.gz", gzip.compress(TINY.encode(), mtime=0)),
    ],
)
def test_the_users_folder_holds_instances_by_name(monkeypatch, tmp_path, file, content):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / file).write_bytes(content)
    monkeypatch.setenv(datasets.DATA_VARIABLE, str(folder))
    assert load_tsp("tiny4").n_cities == 4
    with pytest.raises(ValueError, match=r"unknown instance 'tiny5'; did you mean tiny4\?"):
        load_tsp("tiny5")


def test_an_unknown_name_says_that_there_is_no_folder_of_others(monkeypatch):
    monkeypatch.delenv(datasets.DATA_VARIABLE, raising=False)
    with pytest.raises(ValueError, match=f"{datasets.DATA_VARIABLE} names a folder of others \\(not set\\)"):
        load_tsp("tiny5")


def test_a_shipped_instance_comes_before_the_users_folder_and_a_file_before_both(monkeypatch, tmp_path):
    monkeypatch.setenv(datasets.DATA_VARIABLE, str(tmp_path / "mine"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "gr17.tsp").write_text(TINY)
    (tmp_path / "pcb442").mkdir()  # a folder of that name is no file
    assert load_tsp("gr17").n_cities == 17
    assert load_tsp("pcb442").n_cities == 442
    (tmp_path / "gr17").write_text(TINY)
    assert load_tsp("gr17").n_cities == 4


@pytest.mark.parametrize("name", ["pcb443", "PCB442", ""])
def test_an_unknown_name_is_refused_with_what_there_is(name):
    with pytest.raises(
        ValueError,
        match=f"unknown instance '{name}'.*Shipped are att532, berlin52, gr17, gr666, kroA100, kroB100, pcb442",
    ):
        load_tsp(name)
    if name:
        with pytest.raises(ValueError, match="did you mean pcb442"):
            load_tsp(name)


@pytest.mark.parametrize(
    "path", [Path("pcb442"), "./pcb442", "nowhere/pcb442.tsp", "https://example.org/a.csv"]
)
def test_a_path_without_a_file_is_not_taken_for_a_name(path):
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        load_tsp(path)


def test_a_directory_and_another_type_are_refused(tmp_path):
    (tmp_path / "here").mkdir()
    for name in (tmp_path, "here", "./here"):
        with pytest.raises(ValueError, match="it is a directory"):
            load_tsp(name)
    with pytest.raises(TypeError, match="name_or_path must be a name or a path, got 442"):
        load_tsp(442)


def test_offline_a_download_fails_with_the_way_to_supply_the_file(tmp_path):
    with pytest.raises(ConnectionError, match=r"instance 'kroC100' is not shipped") as info:
        load_tsp("kroC100")
    message = str(info.value)
    assert "\n" not in message
    assert "http://127.0.0.1:9/kroC100.tsp" in message
    assert datasets.DATA_VARIABLE in message
    assert str(tmp_path / "cache") in message


@pytest.mark.parametrize("name", ["kroC100", "kroD100", "kroA150", "kroB150", "kroA200", "kroB200"])
def test_the_other_instances_of_krolak_can_be_downloaded(name, tsplib_dir, monkeypatch):
    monkeypatch.setattr(datasets, "_MIRROR", f"{tsplib_dir.as_uri()}/")
    problem = load_tsp(name)
    assert (problem.label, problem.n_cities) == (name, int(name[4:]))
    assert problem.best_known > 20_000


@pytest.fixture
def mirror(monkeypatch, tmp_path):
    """A folder served at the mirror's address."""
    folder = tmp_path / "www"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setattr(datasets, "_MIRROR", f"http://127.0.0.1:{server.server_port}/")
    entry = {
        "dimension": 4,
        "numbers": TINY_NUMBERS,
        "edge_weight_type": "EUC_2D",
        "sha256": hashlib.sha256(TINY.encode()).hexdigest(),
    }
    tables = {"registry.json": {"tiny4": entry}, "best_known.json": {"tiny4": 14}}
    monkeypatch.setattr(datasets, "shipped_table", tables.get)
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_download_is_checked_and_kept(mirror, tmp_path):
    (mirror / "tiny4.tsp").write_text(TINY)
    assert load_tsp("tiny4").best_known == 14
    (mirror / "tiny4.tsp").unlink()
    assert load_tsp("tiny4").n_cities == 4  # from the cache
    (tmp_path / "cache" / "tiny4.tsp").write_text("damaged")
    with pytest.raises(ConnectionError, match="404"):
        load_tsp("tiny4")


def test_a_download_that_differs_in_one_byte_is_refused_and_not_kept(mirror, tmp_path):
    (mirror / "tiny4.tsp").write_text(TINY + "\n")
    with pytest.raises(ConnectionError, match=r"SHA-256 differs.*PYMOO_GPUACO_DATA"):
        load_tsp("tiny4")
    assert not list((tmp_path / "cache").rglob("*.tsp"))


def test_a_mirror_without_the_file_is_reported(mirror):
    with pytest.raises(ConnectionError, match=r"Error 404: .*PYMOO_GPUACO_DATA"):
        load_tsp("tiny4")


def test_a_random_map_is_the_same_everywhere():
    problem = load_tsp("random:1000")
    assert (problem.n_cities, problem.label, problem.metric) == (1000, "random-1000", Metric.EUC)
    # the first three outputs of Philox4x64-10 with key 1, their 53 high bits as a fraction of the side
    raw = [int(word) for word in np.random.Philox(key=1).random_raw(3)]
    x, y, x1 = ((word >> 11) * 1_000_000 // 2**53 for word in raw)
    assert problem.positions[0].tolist() == [x, y] == [303568, 848708]
    assert problem.positions[1][0] == x1
    assert 0 <= problem.positions.min() <= problem.positions.max() < 1_000_000
    # uniform: each quarter of the square holds about 250 of the 1000 (standard deviation 13.7)
    west, south = (problem.positions < 500_000).T
    assert all(180 < np.sum(a & b) < 320 for a in (west, ~west) for b in (south, ~south))
    assert not np.array_equal(load_tsp("random:50:2").positions, load_tsp("random:50").positions)
    np.testing.assert_array_equal(load_tsp("random:50:2").positions, random_map(50, 2).positions)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        *((f"random:{text}", {}, "random:N or random:N:SEED") for text in ("", "ten", "10:", "1:2:3", "-5")),
        *((f"random:{n}", {}, r"n must be an integer in \[3, 100000000\]") for n in (2, 100000001)),
        ("random:10", {"symmetric": True}, "symmetric has no effect on random:10: leave it out"),
        ("gr17", {"decimal": ","}, "decimal has no effect on gr17, a TSPLIB instance: leave it out"),
    ],
)
def test_names_with_what_they_do_not_take_are_refused(name, options, words):
    with pytest.raises(ValueError, match=words):
        load_tsp(name, **options)


def test_an_unknown_option_is_refused_with_a_known_one():
    with pytest.raises(TypeError, match=r"load_tsp has no argument 'decimals'; did you mean decimal\?"):
        load_tsp("gr17", decimals=",")
    assert load_tsp("gr17", symmetric=True).n_cities == 17


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"PYMOO_GPUACO_CACHE": "/own"}, "/own"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/pymoo_gpuaco"),
        ({"HOME": "/home/me"}, "/home/me/.cache/pymoo_gpuaco"),
    ],
)
def test_downloads_and_kernels_share_a_cache_folder(monkeypatch, variables, folder):
    for name in ("PYMOO_GPUACO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConnectionError, match=f"into {folder} failed"):
        load_tsp("a280")
    assert compile_.cache_folder() == Path(folder)
