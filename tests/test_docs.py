"""The documentation says what is so: its code runs, its links lead somewhere, its numbers have a file."""

import argparse
import importlib.util
import inspect
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

import pymoo_gpuaco
from pymoo_gpuaco import ALL_ALGORITHMS, cli
from pymoo_gpuaco.host.install import how_to_install
from tests.engine_cases import cloud, focused

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [
    page for folder in ("", "guides", "algorithms", "api") for page in sorted((DOCS / folder).glob("*.md"))
]
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```$", re.M | re.S)
# The block form of an include: the one-line form is valid Python, which ruff would format.
_SNIPPET = re.compile(r"--8<--\n(?P<path>\S+)\n--8<--")
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>(?:[^()\s]|\([^()]*\))+)\)")


def name_of(path):
    return str(path.relative_to(ROOT))


def python_blocks(path):
    """Line and code of each Python block; a block that is an include is checked for its file and left out."""
    text = path.read_text(encoding="utf-8")
    for fence in _FENCE.finditer(text):
        if fence["language"] != "python":
            continue
        body = textwrap.dedent(fence["body"])
        included = _SNIPPET.fullmatch(body.strip())
        if included:
            assert (ROOT / included["path"]).parent == ROOT / "examples", "only examples are run by the tests"
            assert (ROOT / included["path"]).is_file(), included["path"]
        else:
            yield text[: fence.start()].count("\n") + 2, body


def headings(path):
    """The anchors of a page's headings, as the site makes them."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    for line in re.findall(r"^#+ +(.+)$", text, re.M):
        yield re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", line).strip().lower())


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tables():
    return load_script("generate_tables")


@pytest.mark.parametrize("path", [p for p in TEXTS if any(python_blocks(p))], ids=name_of)
def test_python_blocks_run(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for line, code in python_blocks(path):
        # the README's run is what a reader wants to see, not what a test needs
        code = code.replace('("n_gen", 200)', '("n_gen", 2)')
        exec(compile("\n" * (line - 1) + code, str(path), "exec"), namespace)


def test_the_notebook_is_what_its_page_shows():
    """So it runs: the blocks of the page do."""
    notebook = json.loads((DOCS / "guides" / "tour.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    blocks = [code.rstrip("\n") for _, code in python_blocks(DOCS / "guides" / "notebook.md")]
    assert cells == blocks
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert all(not cell.get("outputs") for cell in notebook["cells"])


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_links_lead_somewhere(path):
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    for link in _LINK.finditer(text):
        target = link["target"]
        if target.startswith(("https://", "http://")):
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file).resolve() if file else path
        assert place.exists(), f"{name_of(path)}: {target}"
        # the site adds anchors for documented objects; the strict build checks those
        if anchor and not anchor.startswith("pymoo_gpuaco."):
            assert anchor in headings(place), f"{name_of(path)}: {target}"


def test_included_pages_have_no_relative_links():
    """They are read at two places of the tree."""
    for path in (ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"):
        text = _FENCE.sub("", path.read_text(encoding="utf-8"))
        assert all(link["target"].startswith("http") for link in _LINK.finditer(text))


def test_every_public_name_is_in_the_api_reference():
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    assert rows == set(pymoo_gpuaco.__all__)


def test_every_class_and_function_has_its_docstring_on_a_page_that_stays_short():
    per_page = {p: re.findall(r"^::: [\w.]+$", p.read_text(encoding="utf-8"), re.M) for p in PAGES}
    assert all(len(blocks) <= 4 for blocks in per_page.values()), "an API page per class, not one for all"
    shown = {name for p in PAGES for name in re.findall(r"^::: pymoo_gpuaco\.(\w+)$", p.read_text(), re.M)}
    objects = {name for name in pymoo_gpuaco.__all__ if callable(getattr(pymoo_gpuaco, name))}
    assert objects <= shown


def test_the_sites_own_classes_have_names_of_their_own():
    """A class called "first" was one of mkdocstrings', too, and set its blocks in two columns."""
    css = re.sub(
        r"/\*.*?\*/", "", (DOCS / "stylesheets" / "site.css").read_text(encoding="utf-8"), flags=re.S
    )
    named = set(re.findall(r"\.([a-z][\w-]*)", css, re.I))
    assert {name for name in named if not name.startswith(("md-", "site-"))} == {"arithmatex"}
    used = {name for p in PAGES for name in re.findall(r'class="([\w-]+)"', p.read_text(encoding="utf-8"))}
    assert used <= named


def test_every_algorithm_has_a_page():
    overview = (DOCS / "algorithms" / "index.md").read_text(encoding="utf-8")
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    start = (DOCS / "index.md").read_text(encoding="utf-8")
    for name in (*ALL_ALGORITHMS, "GPUMOACO"):
        assert f"`{name}" in overview
        assert f"[{name}](algorithms/" in start
        page = re.search(rf"- {name}: (algorithms/\w+\.md)", navigation)
        assert page, f"{name} is not in the navigation"
        assert (DOCS / page[1]).read_text(encoding="utf-8").startswith(f"# {name}: ")


def test_the_table_of_defaults_is_the_codes():
    text = (DOCS / "algorithms" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \|$", text[text.index("## Defaults") : text.index("## Shared")], re.M)
    header, _, *body = [[cell.strip() for cell in row.split("|")] for row in rows]
    assert header[1:] == list(ALL_ALGORITHMS)
    for argument, *cells in body:
        for algorithm, cell in zip(ALL_ALGORITHMS.values(), cells, strict=True):
            parameter = inspect.signature(algorithm).parameters.get(argument.strip("`"))
            assert cell == ("" if parameter is None else repr(parameter.default)), (algorithm, argument)


def test_every_option_of_the_command_line_is_described():
    page = (DOCS / "command_line.md").read_text(encoding="utf-8")
    commands = next(a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        assert f"\n## {name}\n" in page
        for action in command._actions:
            option = action.option_strings[0] if action.option_strings else action.dest
            if option != "-h":
                assert f"| `{option}` |" in page, option


def test_every_benchmark_of_the_gpu_is_described():
    page = (DOCS / "gpu_benchmarks.md").read_text(encoding="utf-8")
    for script in (ROOT / "benchmarks").glob("gpu_*.py"):
        assert f"| `{script.name}` |" in page, script.name


def test_every_environment_variable_is_described():
    page = (DOCS / "command_line.md").read_text(encoding="utf-8")
    sources = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "pymoo_gpuaco").rglob("*.py"))
    for variable in set(re.findall(r"\bPYMOO_GPUACO_[A-Z]+\b", sources)):
        assert re.search(rf"^\| `{variable}` +\|", page, re.M), variable


def test_the_readme_shows_the_real_output():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    run = SimpleNamespace(engine=focused(cloud(14)), problem=SimpleNamespace(best_known=1))
    assert cli.Progress(None).header(run) in readme
    assert 'minimize(load_tsp("pcb442"), GPUMMAS(), ("n_gen", 200), seed=1, verbose=True)' in readme
    assert "make solve" in readme
    assert "make test" in readme


def test_the_version_is_the_same_everywhere():
    version = pymoo_gpuaco.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"pymoo_gpuaco   {version}\n" in (DOCS / "install.md").read_text(encoding="utf-8")


def test_nobody_is_told_to_install_from_an_index_that_does_not_have_the_package():
    files = [
        p
        for folder in ("pymoo_gpuaco", "docs", "benchmarks", "examples")
        for p in (ROOT / folder).rglob("*.*")
    ]
    texts = {p: p.read_text(encoding="utf-8") for p in [*files, *TEXTS] if p.suffix in (".py", ".md")}
    for path, text in texts.items():
        assert not re.search(r"pip install [^\n]*pymoo[-_]gpuaco(?!-?\S*\.whl)", text), path
    assert "pip install ." in how_to_install()
    assert "'.[cuda]'" in how_to_install("cuda")


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
        "beside_fast_tsp.md": "\n",
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
        "Measured on a, b, its gap is smaller than that of fast-tsp on as many threads, or as small, in 2 of 3 cells, "
        "and behind by 0.12 percentage points at most."
    )
    assert files["beside_fast_tsp.md"] == sentence + "\n"
    assert readme == f"- <!-- beside-fast-tsp -->{sentence}<!-- /beside-fast-tsp -->"


def test_results_are_sorted_onto_pages_and_the_headline_comes_first(tables, tmp_path):
    for name in ("cpu_quality", "gpu_gap_over_time", "gpu_acs_b", "gpu_acs_a", "unheard_of"):
        (tmp_path / f"{name}.json").write_text(json.dumps(RESULT), encoding="utf-8")
    files, _ = tables.generate(tmp_path, "")
    included = {
        page: re.findall(r"generated/(\w+)\.md", files[f"page_{page}.md"])
        for page in ("quality", "acs", "speed")
    }
    assert included == {
        "quality": ["gpu_gap_over_time", "cpu_quality"],
        "acs": ["gpu_acs_a", "gpu_acs_b"],
        "speed": ["unheard_of"],
    }


def test_every_page_of_results_is_shown(tables):
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for page in tables.PAGES:
        assert f'--8<-- "docs/generated/page_{page}.md"' in shown, page


def test_gaps_over_time_are_shown_in_short(tables, tmp_path):
    columns = ["instance", "cities", "solver", "limit, s", "runs", "mean gap %", "worst %"]
    rows = [
        ["pr1002", 1002, "GPUMMAS()", 0.5, 3, 0.126, 0.2],
        ["pr1002", 1002, "GPUMMAS()", 1.0, 3, 0.0, 0.0],
        ["pr1002", 1002, "fast-tsp, 1 core", 0.5, 3, 0.7, 0.8],
        ["pr1002", 1002, "fast-tsp, 16 cores", 0.5, 1, 0.34, 0.34],
        ["pla85900", 85900, "GPUMMAS()", 1.0, 2, 1.5, 1.6],
    ]
    result = {**RESULT, "machine": {"gpu 0": "A device, 8 GiB"}, "columns": columns, "rows": rows}
    short = tables.gaps_in_short(result)
    assert (
        "`GPUMMAS()` on an A device, means of 2 to 3 runs; in brackets fast-tsp on 16 cores of the same "
        "machine, one run each." in short
    )
    assert (
        "| instance | 0.5 s | 1 s |\n| --- | ---: | ---: |\n| pr1002 | 0.13 (0.34) | 0.00 |\n| pla85900 | - | 1.50 |\n"
    ) in short
    place = "before\n<!-- gap-over-time -->\nold\n<!-- /gap-over-time -->\nafter"
    empty = "before\n<!-- gap-over-time -->\n<!-- /gap-over-time -->\nafter"
    assert tables.generate(tmp_path, place)[1] == empty
    (tmp_path / "gpu_gap_over_time_runs.json").write_text(json.dumps(result), encoding="utf-8")
    filled = empty.replace("-->\n<!-- /", f"-->\n\n{short}\n<!-- /")
    assert tables.generate(tmp_path, place)[1] == filled
    assert tables.generate(tmp_path, filled)[1] == filled


def test_a_result_with_a_picture_shows_it_below_its_table(tables):
    shown = tables.section(RESULT, "images/gap.svg")
    assert (
        shown.index("| gr17") < shown.index("![Gap after 1 s](images/gap.svg)\n") < shown.index("- Medians.")
    )
    assert "![" not in tables.section(RESULT)


def test_a_picture_is_made_of_the_committed_result():
    """The picture of a result says inside which one it was drawn from."""
    for picture in [*(DOCS / "images").glob("gpu_*.svg"), *(DOCS / "images").glob("islands_*.svg")]:
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
        assert files.pop("beside_fast_tsp.md") == "\n"
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
    example = next(f["body"] for f in _FENCE.finditer(page) if f["language"] == "json")
    (tmp_path / "example.json").write_text(example, encoding="utf-8")
    assert tables.read(tmp_path / "example.json")["columns"] == ["instance", "gap %"]


def test_the_site_builds_without_a_warning(tmp_path):
    for module in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: {how_to_install('docs')}")
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stderr
    page = (tmp_path / "site" / "algorithms" / "mmas" / "index.html").read_text(encoding="utf-8")
    assert r"\(\tau_{\max}\)" in page  # readable TeX where MathJax is out of reach
    assert "probability in (0, 1) that converged ants" in page  # the docstring, as an entry of its own


def test_columns_of_a_result_become_curves():
    figures = load_script("generate_figures")
    result = {**RESULT, "columns": ["cities", "a", "b"], "rows": [[100, 1.5, None], [200, 3.0, 2.0]]}
    assert figures.columns_over(result, 0, {"first": 1, "second": 2}) == {
        "first": ([100.0, 200.0], [1.5, 3.0]),
        "second": ([200.0], [2.0]),
    }


def test_growth_kicks_and_islands_are_drawn(tmp_path):
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
    kicks = {
        "columns": ["instance", "cities", "gap %, 0 % by ants", "gap %, 100 % by ants", "best"],
        "rows": [["pr1002", 1002, 0.1, 0.2, "0 %"], ["mean", None, 0.1, 0.2, "-"]],
    }
    for name, shown, words in (
        ("gpu_growth", growth, ("time to 1 %, s", "set-up", "in proportion to n")),
        ("islands_gpu", islands, ("pr1002", "islands", "gap, %", "tours a second", "in proportion")),
        ("gpu_kicks", kicks, ("pr1002", "mean", "windows whose ants follow the trails, %")),
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
