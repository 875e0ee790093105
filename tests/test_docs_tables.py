"""Tables and pictures of the documentation are what the generators make of the results."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.static


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tables():
    return load_script("generate_tables")


RESULT = {
    "title": "Gap after 1 s",
    "date": "2026-01-31",
    "commit": "0123abc",
    "machine": {"cpu": "a model", "threads": 8},
    "command": "python benchmarks/gap.py",
    "parameters": {"seeds": 5},
    "columns": ["instance", "gap %", "not measured", "a|b"],
    "rows": [["gr17", 0, None, None], ["pcb442", 0.125, None, "x"]],
    "notes": ["Medians."],
}


# what summarises several results, or a large one
SHORT = (
    "beside_fast_tsp.md",
    *(
        f"{name}_in_short.md"
        for name in ("assignment", "gaps", "ranks", "kernels", "cores", "trails", "mmas")
    ),
)


def test_committed_tables_are_what_the_generator_gives(tables):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    files, filled = tables.generate(ROOT / "benchmarks" / "results", readme)
    committed = {p.name: p.read_text(encoding="utf-8") for p in (DOCS / "generated").glob("*.md")}
    assert committed == files, "run python docs/generate_tables.py"
    assert filled == readme, "run python docs/generate_tables.py"


def test_a_result_becomes_a_table(tables, tmp_path):
    (tmp_path / "gap.json").write_text(json.dumps(RESULT), encoding="utf-8")
    place = "before\n<!-- benchmark: gap -->\nold\n<!-- /benchmark -->\nafter"
    files, readme = tables.generate(tmp_path, place)
    table = "| instance | gap % | a\\|b |\n| --- | ---: | --- |\n| gr17 | 0 | - |\n| pcb442 | 0.125 | x |\n"
    none_yet = (
        "No result is committed yet. `make bench`, `bench-gpu` and `bench-islands` measure on your machine.\n"
    )
    empty = {f"page_{page}.md": none_yet for page in tables.PAGES}
    assert files == {
        **empty,
        **dict.fromkeys(SHORT, "\n"),
        **tables.published_parameters(),
        "page_speed.md": '--8<-- "docs/generated/gap.md"\n',
        "gap.md": f"## Gap after 1 s\n\n{table}\n"
        "- Medians.\n\n"
        '??? note "When, where and how"\n\n'
        "    - Measured 2026-01-31 at commit `0123abc` with `python benchmarks/gap.py`.\n"
        "    - Machine: cpu: a model; threads: 8.\n"
        "    - Parameters: seeds: 5.\n",
    }
    assert readme == f"before\n<!-- benchmark: gap -->\n\n{table}\n- Medians.\n\n<!-- /benchmark -->\nafter"
    assert tables.generate(tmp_path, readme)[1] == readme


def test_published_parameters_stand_below_the_defaults(tables):
    lines = tables.published_parameters()["published_gpuras.md"].splitlines()
    assert lines[2] == "| defaults | `None` | `1.0` | `2.0` | `0.1` | `None` | `False` | `6` | `None` |"
    assert lines[4] == "| `acotsp-1.03` | `None` | `1.0` | `2.0` | `0.1` | `20` | `False` | `6` | `10.0` |"
    assert lines[7].startswith(
        "- `dorigo-stuetzle-2004` without local search: M. Dorigo, T. Stuetzle, Ant Colony"
    )


def test_looking_at_no_page_is_an_error(tmp_path, monkeypatch):
    look = load_script("look")
    (tmp_path / "first_tour").mkdir()
    (tmp_path / "first_tour" / "index.html").write_text("<p>", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["look.py", "--site", str(tmp_path), "--only", "/last_tour"])
    with pytest.raises(SystemExit, match=r"--only '/last_tour' is in none of the 1 paths"):
        look.main()
    monkeypatch.setattr(look, "look", lambda address, page: pages.append(page) or [])
    monkeypatch.setattr(look, "WIDTHS", ())
    pages = []
    monkeypatch.setattr("sys.argv", ["look.py", "--site", str(tmp_path), "--only", "/first_tour"])
    assert look.main() == 0
    assert pages == ["/first_tour/"]


def test_gaps_of_colonies_become_sentences(tables):
    columns = ["instance", "limit, s", "colony", "gap, %", "gap with alpha = 0, %"]
    rows = [["a", 15.0, "GPUMMAS", 0, 2.5], ["b", 30, "GPUMMAS", 1.25, 2], ["b", 15, "GPUFACO", 0, 9]]
    result = {**RESULT, "columns": columns, "rows": rows}
    both = tables.trails_in_short({"gpu_colony_strength": result, "cpu_colony_strength": result})
    assert "by 0.8 to 2.5 percentage points on a GPU and by" in both  # 2 - 1.25, 2.5 - 0
    assert tables.mmas_in_short(result) == "`GPUMMAS()` on two cores ends at 0 % on a after 15 s."


def test_a_picture_is_made_of_the_committed_result():
    """The picture of a result says inside which one it was drawn from."""
    figures = load_script("generate_figures")
    for name in figures.PICTURES:
        result = ROOT / "benchmarks" / "results" / f"{figures.SOURCES.get(name, name)}.json"
        if result.is_file():
            picture = (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8")
            source = figures.source_of(json.loads(result.read_text(encoding="utf-8")))
            assert source in picture, "run python docs/generate_figures.py"


def test_the_curve_of_a_result_reaches_every_point():
    figures = load_script("generate_figures")
    result = {
        **RESULT,
        "columns": ["instance", "solver", "runs", "0.5 s", "1 s", "2 s"],
        "rows": [
            ["pr1002", "one", 2, 3.0, 1.0, None],
            ["pr1002", "two", 1, 2.0, 0.0, 0.0],
            ["pr2392", "one", 2, 9.0, 4.0, 2.0],
        ],
    }
    assert figures.curves(result) == {
        "pr1002": {"one": ([0.5, 1.0], [3.0, 1.0]), "two": ([0.5, 1.0, 2.0], [2.0, 0.0, 0.0])},
        "pr2392": {"one": ([0.5, 1.0, 2.0], [9.0, 4.0, 2.0])},
    }
