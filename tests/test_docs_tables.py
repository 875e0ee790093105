"""Tables and pictures of the documentation are what the generators make of the results."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


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
    "columns": ["instance", "gap %", "a|b"],
    "rows": [["gr17", 0, None], ["pcb442", 0.125, "x"]],
    "notes": ["Medians."],
}


# what summarises several results, or a large one
SHORT = ("beside_fast_tsp.md", "gaps_in_short.md", "ranks_in_short.md", "kernels_in_short.md")


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


def test_a_renamed_algorithm_has_both_names_in_tables_and_no_result_is_edited(tables):
    colony = 'GPUMMAS(construction="full")'
    labels = ["GPUMMAS()", "GPUMMAS, focused", 'GPUMMAS(candidates="alpha")', colony, "GPUMMAS(n_ants=3000)"]
    result = {**RESULT, "title": "GPUMMAS() late", "columns": ["run"], "rows": [[label] for label in labels]}
    shown = tables.renamed("cpu_time_limits", result)
    assert [cell for (cell,) in shown["rows"]] == [
        "GPUMemetic() (named GPUMMAS then)",
        "GPUMemetic (named GPUMMAS then)",
        'GPUMemetic(candidates="alpha") (named GPUMMAS then)',
        colony,
        "GPUMMAS(n_ants=3000)",
    ]
    assert shown["title"] == "GPUMemetic() late"
    assert shown["notes"] == ["Medians.", "`GPUMemetic` was named `GPUMMAS` at that commit."]
    assert result["rows"][0] == ["GPUMMAS()"]
    assert tables.renamed("family_time", result) == result, "there GPUMMAS was the colony"
    fronts = tables.renamed("fronts_curves", {**RESULT, "columns": ["a", "GPUMOACO, CUDA", "NSGA-II"]})
    assert fronts["columns"] == ["a", "GPU2PPLS (named GPUMOACO then), CUDA", "NSGA-II"]
    results = {path.stem for path in (ROOT / "benchmarks" / "results").glob("*.json")}
    assert tables.RENAMED.keys() <= results


def test_cells_beside_fast_tsp_are_counted(tables, tmp_path):
    rows = [
        ["a", "GPUMMAS, focused", 0.5, 0.25],
        ["a", "fast-tsp", 0.5, 0.125],
        ["b", "GPUMMAS, focused", 0.5, None],
        ["b", "fast-tsp", 0.75, None],
        ["c", "GPUMMAS, focused", 9.0, 9.0],  # stands alone
    ]
    over_time = {**RESULT, "columns": ["instance", "solver", "1 s", "20 s"], "rows": rows}
    (tmp_path / "cpu_gap_over_time.json").write_text(json.dumps(over_time), encoding="utf-8")
    files, readme = tables.generate(tmp_path, "- <!-- beside-fast-tsp -->old<!-- /beside-fast-tsp -->")
    sentence = (
        "On a, b the gap of `GPUMemetic` is at most that of fast-tsp with the same number of threads in 2 of 3 cells "
        "of the table, and at most 0.12 percentage points larger."
    )
    assert files["beside_fast_tsp.md"] == sentence + "\n"
    assert readme == f"- <!-- beside-fast-tsp -->{sentence}<!-- /beside-fast-tsp -->"


def test_results_are_sorted_onto_pages_and_the_headline_comes_first(tables, tmp_path):
    for name in ("cpu_paths", "gpu_growth", "gpu_acs_b", "gpu_acs_a", "gpu_acs_time", "unheard_of"):
        (tmp_path / f"{name}.json").write_text(json.dumps(RESULT), encoding="utf-8")
    files, _ = tables.generate(tmp_path, "")
    included = {
        page: re.findall(r"generated/(\w+)\.md", files[f"page_{page}.md"])
        for page in ("quality", "colonies", "speed")
    }
    assert included == {
        "quality": ["gpu_growth", "cpu_paths"],
        "colonies": ["gpu_acs_a", "gpu_acs_b"],
        "speed": ["gpu_acs_time", "unheard_of"],  # the longest beginning decides
    }


def test_every_page_of_results_is_shown(tables):
    shown = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    for page in tables.PAGES:
        assert f'--8<-- "docs/generated/page_{page}.md"' in shown, page


def test_a_table_of_many_rows_is_folded(tables):
    rows = [[f"a{k}", k, None] for k in range(9)]
    shown = tables.section({**RESULT, "rows": rows})
    assert '??? abstract "Table, 9 rows"\n\n    | instance | gap % | a\\|b |\n    | ---' in shown
    assert "    | a8 | 8 | - |\n\n- Medians." in shown
    assert "??? abstract" not in tables.section({**RESULT, "rows": rows[:8]})


def test_gaps_over_time_are_shown_in_short(tables, tmp_path):
    columns = ["instance", "cities", "solver", "limit, s", "runs", "mean gap %", "worst %"]
    rows = [
        ["pr1002", 1002, "GPUMemetic()", 0.5, 3, 0.126, 0.2],
        ["pr1002", 1002, "GPUMemetic()", 1.0, 3, 0.0, 0.0],
        ["pr1002", 1002, "fast-tsp, 1 core", 0.5, 3, 0.7, 0.8],
        ["pr1002", 1002, "fast-tsp, 16 cores", 0.5, 1, 0.34, 0.34],
        ["pla85900", 85900, "GPUMemetic()", 1.0, 2, -0.0003, 1.6],
        ["pr107", 107, "fast-tsp, 16 cores", 0.5, 1, 0.34, 0.34],  # GPUMemetic was not measured on it
    ]
    result = {**RESULT, "machine": {"gpu 0": "A device, 8 GiB"}, "columns": columns, "rows": rows}
    short = tables.gaps_in_short(result)
    assert short.startswith(
        "Gap to the best known length in percent after a wall time that includes set-up: "
        "`GPUMemetic()` on an A device, means of 3 runs, and beyond 0.5 s of 2 to 3. "
        "In brackets: fast-tsp on 16 cores of the same machine, "
        "one run each. "
    )
    assert (
        "| instance | 0.5 s | 1 s |\n| --- | ---: | ---: |\n"
        "| pr1002 | 0.126 (0.340) | 0.000 |\n| pla85900 | - | 0.000 |\n"
    ) in short
    assert "pr107" not in short
    one = tables.gaps_in_short(result, ["pla85900"])
    assert "| instance | 1 s |\n| --- | ---: |\n| pla85900 | 0.000 |\n" in one
    assert "means of 2 runs." in one
    assert "fast-tsp" not in one, "no cell of the table is fast-tsp's"
    far = {
        **result,
        "columns": [*columns, "gap to"],
        "rows": [[*row, "best known" if row[0] == "pr1002" else "sqrt(nA)"] for row in rows],
        "parameters": {"fast-tsp": "measured at commit abc1234"},
    }
    assert " Gaps of pla85900 to sqrt(nA) (A is the area)." in tables.gaps_in_short(far)
    assert "Gaps of" not in tables.gaps_in_short(far, ["pr1002"])
    assert "fast-tsp on 16 cores of such a machine, one run each." in tables.gaps_in_short(far)
    for counts, text in (
        ((3, 3, 2), "3 runs, and beyond 1 s of 2"),
        ((3, 3, 3), "3 runs"),
        ((2, 3, 3), "2 to 3 runs"),
    ):
        rows = [
            ["pr1002", 1002, "GPUMemetic()", limit, c, 0, 0]
            for limit, c in zip((0.5, 1, 5), counts, strict=True)
        ]
        assert f"means of {text}." in tables.gaps_in_short({**result, "rows": rows})
    place = "before\n<!-- gap-over-time -->\nold\n<!-- /gap-over-time -->\nafter"
    empty = "before\n<!-- gap-over-time -->\n<!-- /gap-over-time -->\nafter"
    assert tables.generate(tmp_path, place)[1] == empty
    (tmp_path / "gpu_gap_over_time_runs.json").write_text(json.dumps(result), encoding="utf-8")
    assert "pla85900" in tables.HEADLINE
    assert "pr1002" not in tables.HEADLINE
    filled = empty.replace("-->\n<!-- /", f"-->\n\n{one}\n<!-- /")
    files, readme = tables.generate(tmp_path, place)
    assert readme == filled
    assert files["gaps_in_short.md"] == short + "\n"
    assert tables.generate(tmp_path, filled)[1] == filled


def test_ranks_are_shown_in_short(tables):
    columns = ["local search", "algorithm", "mean rank"]
    results = {
        "gpu_family_time": {
            "columns": columns,
            "rows": [["yes", "A", 2.5], ["yes", "B", 1.5], ["no", "A", 1.0]],
        },
        "family_time": {"columns": columns, "rows": [["yes", "A", 1.0], ["yes", "B", 2.0]]},
    }
    assert tables.ranks_in_short(results).splitlines()[2:] == [
        "| `B` | 1.5 | 2 | - | - |",
        "| `A` | 2.5 | 1 | 1 | - |",
    ]
    assert tables.ranks_in_short({}) == ""


def test_kernels_are_shown_in_short(tables):
    names = [path.stem for path in (ROOT / "benchmarks" / "results").glob("*.json")]
    results = {name: tables.read(ROOT / "benchmarks" / "results" / f"{name}.json") for name in names}
    lists = results["gpu_variants_lists"]
    walks = [row[lists["columns"].index("pr1002")] for row in lists["rows"] if row[0] == "H200, here"]
    first = tables.kernels_in_short(results).splitlines()[2]
    assert first.startswith(f"| MMAS, walk over 32 candidates, ms (best variant) | {min(walks)} | ")
    del results["gpu_climbers"]
    assert tables.kernels_in_short(results) == ""


def test_a_result_with_a_picture_shows_it_below_its_table(tables):
    shown = tables.section(RESULT, "images/gap.svg")
    assert (
        shown.index("| gr17") < shown.index("![Gap after 1 s](images/gap.svg)\n") < shown.index("- Medians.")
    )
    assert "![" not in tables.section(RESULT)


def test_a_picture_is_made_of_the_committed_result():
    """The picture of a result says inside which one it was drawn from."""
    pictures = [path for of in ("gpu", "islands", "fronts") for path in (DOCS / "images").glob(f"{of}_*.svg")]
    for picture in pictures:
        result = json.loads((ROOT / "benchmarks" / "results" / f"{picture.stem}.json").read_text())
        source = load_script("generate_figures").source_of(result)
        assert source in picture.read_text(encoding="utf-8"), "run python docs/generate_figures.py"


def test_the_curve_of_a_result_reaches_every_point(tmp_path):
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
    picture = tmp_path / "gap.svg"
    figures.draw_gap_over_time(result, picture)
    text = picture.read_text(encoding="utf-8")
    assert text.lstrip().startswith("<?xml")
    assert figures.source_of(result) in text
    for seconds in ("0.5", "1", "2"):
        assert text.count(f">{seconds}</text>") >= 2, "every time measured is a tick of every panel"
    figures.draw_gap_over_time(result, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text(encoding="utf-8") == text


def test_without_results_the_tables_are_empty(tables, tmp_path):
    place = "<!-- benchmark: gap -->\nold\n<!-- /benchmark -->\n"
    for folder in (tmp_path, tmp_path / "missing"):
        files, readme = tables.generate(folder, place)
        assert all(files.pop(name) == "\n" for name in SHORT)
        assert sorted(files) == sorted(f"page_{page}.md" for page in tables.PAGES)
        assert all("No result is committed yet" in text for text in files.values())
        assert readme == "<!-- benchmark: gap -->\n<!-- /benchmark -->\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"date": "31.1.2026"}, "date must be YYYY-MM-DD"),
        ({"rows": [["gr17"]]}, "row 0 must have 3 cells"),
        ({"notes": "Medians."}, "notes must be a list"),
        ({"extra": 1}, "exactly title, date"),
    ],
)
def test_a_result_of_another_form_is_refused(tables, tmp_path, change, message):
    (tmp_path / "gap.json").write_text(json.dumps({**RESULT, **change}), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"gap\.json.*{message}"):
        tables.generate(tmp_path, "")


def test_the_example_of_a_result_on_the_page_is_accepted(tables, tmp_path):
    page = (DOCS / "gpu_benchmarks.md").read_text(encoding="utf-8")
    example = re.findall(r"^```json\n(.*?)^```$", page, re.M | re.S)[0]
    (tmp_path / "example.json").write_text(example, encoding="utf-8")
    assert tables.read(tmp_path / "example.json")["columns"] == ["instance", "gap %"]


def test_columns_of_a_result_become_curves():
    figures = load_script("generate_figures")
    result = {**RESULT, "columns": ["cities", "a", "b"], "rows": [[100, 1.5, None], [200, 3.0, 2.0]]}
    assert figures.columns_over(result, 0, {"first": 1, "second": 2}) == {
        "first": ([100.0, 200.0], [1.5, 3.0]),
        "second": ([200.0], [2.0]),
    }


def test_growth_islands_and_fronts_are_drawn(tmp_path):
    figures = load_script("generate_figures")
    islands = {
        "columns": ["instance", "cities", "islands", "seconds", "gap %", "tours/s over the fewest"],
        "rows": [
            ["pr1002", 1002, 1, 2.0, 0.2, 1.0],
            ["pr1002", 1002, 2, 2.0, 0.1, 1.9],
            ["pr1002", 1002, 2, 1.0, 77.0, 55.0],  # the longest runs are drawn, and no others
            ["pr1002", 1002, None, 2.0, 0.2, 0.9],
        ],
    }
    growth = {
        "columns": ["instance", "cities", "runs", "set-up, s", "time to 1 %, s"],
        "rows": [["a", 1000, 3, 0.01, 0.02], ["b", 2000, 3, 0.02, 0.04], ["c", 4000, 3, 0.04, None]],
    }
    fronts = {
        "columns": ["kroA100 at most", "GPU2PPLS", "NSGA-II"],
        "rows": [[21282, 178446, None], [60000, 42000, 120000], [180000, 22141, 90000]],
    }
    for name, shown, words in (
        ("fronts_curves", fronts, ("kroA100 at most", "GPU2PPLS", "NSGA-II", "the other")),
        ("gpu_growth", growth, ("time to 1 %, s", "set-up", "in proportion to n")),
        ("islands_gpu", islands, ("pr1002", "islands", "gap, %", "tours a second", "in proportion")),
    ):
        result = {**RESULT, **shown}
        figures.PICTURES[name](result, tmp_path / "drawn.svg")
        text = (tmp_path / "drawn.svg").read_text(encoding="utf-8")
        assert figures.source_of(result) in text
        for word in words:
            assert word in text, word
        assert ">75<" not in text, "an axis reaches what is not to be drawn"
        assert ">80<" not in text, "an axis reaches what is not to be drawn"


@pytest.mark.parametrize("name", ["gpu_climbers", "gpu_climbers_moves", "gpu_climbers_quality"])
def test_pictures_of_the_climbers_are_drawn(name, tmp_path):
    rows = {
        "gpu_climbers": [[n, 1, 2, 3, 70, 4 if n == 200 else None, 0.5, None] for n in (100, 200)],
        "gpu_climbers_moves": [
            ["d198", m, 10, r, None, 1.0, 5.0, 4.0] for m, r in (("best", None), ("batch", 9.0))
        ],
        "gpu_climbers_quality": [
            ["d198", 198, 10, 1.0, 2.0, 10, 1.0, 2.5],
            ["a280", 280, 9, 1.0, 3.0, 9, 1.0, 3.5],
        ],
    }[name]
    figures = load_script("generate_figures")
    result = {**RESULT, "rows": rows}
    figures.PICTURES[name](result, tmp_path / "drawn.svg")
    assert figures.source_of(result) in (tmp_path / "drawn.svg").read_text(encoding="utf-8")
