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

import pytest

import pymoo_gpuaco
from pymoo_gpuaco import ALL_ALGORITHMS, cli
from pymoo_gpuaco.backends import cuda_devices
from pymoo_gpuaco.islands import algorithm as islands
from pymoo_gpuaco.islands.cluster import Cluster, Connection
from pymoo_gpuaco.runtime.notices import how_to_install

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PACKAGE = Path(pymoo_gpuaco.__file__).parent
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


@pytest.mark.parametrize("path", [p for p in TEXTS if any(python_blocks(p))], ids=name_of)
def test_python_blocks_run(path, tmp_path, monkeypatch, capsys, request):
    monkeypatch.chdir(tmp_path)
    if path.stem == "islands":  # one cluster for all blocks; tests/test_islands_failures.py starts local ones
        connection = Connection(request.getfixturevalue("two_workers").client)
        monkeypatch.setattr(islands, "Cluster", lambda *_: Cluster(connection))
    namespace = {"__name__": "__main__"}
    for line, code in python_blocks(path):
        # a reader wants to see a longer run than a test needs
        code = code.replace('("n_gen", 200)', '("n_gen", 2)')
        code = re.sub(r'("time", |seconds=)\d+', r"\g<1>0.5", code)
        exec(compile("\n" * (line - 1) + code, str(path), "exec"), namespace)


@pytest.mark.slow
@pytest.mark.static
def test_type_checkers_pass_on_pages_that_solve(tmp_path):
    """mypy --strict and pyright, but for what pymoo's own code lets them infer; blocks of a page share names."""
    pytest.importorskip("basedpyright")
    for path in TEXTS:
        code = "\n".join(block for _, block in python_blocks(path))
        if re.search(r"^from pymoo_gpuaco import .*\bsolve\b", code, re.M):
            (tmp_path / f"{path.stem.lower()}_page.py").write_text(code, encoding="utf-8")
    pages = sorted(map(str, tmp_path.glob("*.py")))
    assert len(pages) > 5
    inferred = (
        "ArgumentType",
        "AttributeAccessIssue",
        "OptionalMemberAccess",
        "OptionalSubscript",
        "OptionalOperand",
        "CallIssue",
    )
    settings = {
        "include": [str(tmp_path)],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "standard",
        **{f"report{rule}": "none" for rule in (*inferred, "MissingModuleSource", "UnusedExpression")},
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    mypy = ["--strict", "--ignore-missing-imports", "--follow-imports=silent", "--allow-redefinition"]
    for command in (
        ["basedpyright", "-p", str(tmp_path), "--pythonpath", sys.executable],
        ["mypy", "--config-file=", *mypy, "--allow-untyped-defs", "--allow-untyped-calls", *pages],
    ):
        run = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, cwd=ROOT, check=False
        )
        assert run.returncode == 0, run.stdout


def test_the_notebook_is_what_its_page_shows():
    """It runs: the blocks of the page do."""
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


def test_every_public_name_is_in_the_api_reference():
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    assert rows == set(pymoo_gpuaco.__all__)


def test_every_algorithm_has_a_page():
    overview = (DOCS / "algorithms" / "index.md").read_text(encoding="utf-8")
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    start = (DOCS / "index.md").read_text(encoding="utf-8")
    for name in (*ALL_ALGORITHMS, "GPU2PPLS"):
        assert f"`{name}" in overview
        assert f"[{name}](algorithms/" in start
        page = re.search(rf"- {name}: (algorithms/\w+\.md)", navigation)
        assert page, f"{name} is not in the navigation"
        assert (DOCS / page[1]).read_text(encoding="utf-8").startswith(f"# {name}: ")


def test_the_table_of_defaults_is_the_codes():
    text = (DOCS / "algorithms" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \|$", text[text.index("## Defaults") : text.index("## Shared")], re.M)
    header, *body = [[cell.strip() for cell in row.split("|")] for row in rows]
    assert {name for name, *_ in body} == set(ALL_ALGORITHMS) - {"GPUMemetic", "GPU2OptIHC"}
    for name, *cells in body:
        parameters = inspect.signature(ALL_ALGORITHMS[name]).parameters
        for argument, cell in zip(header[1:], cells, strict=True):
            assert cell == repr(parameters[argument.strip("`")].default), (name, argument)


def test_the_page_of_the_command_line_has_the_texts_of_its_help():
    page = (DOCS / "command_line.md").read_text(encoding="utf-8")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", page).replace("`", "")  # links and code as text
    commands = next(a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        section = re.search(rf"^## {name}\n.*?(?=^## |\Z)", plain, re.M | re.S)[0]
        rows = dict(re.findall(r"^\| (--[\w-]+|\w+)\b.*? \| (.*) \|$", section, re.M))
        for action in command._actions[1:]:  # all but -h
            text = command._get_formatter()._expand_help(action)
            option = action.option_strings[0] if action.option_strings else action.dest
            assert rows[option].startswith(text), option


def test_every_environment_variable_is_described():
    page = (DOCS / "command_line.md").read_text(encoding="utf-8")
    sources = "".join(p.read_text(encoding="utf-8") for p in PACKAGE.rglob("*.py"))
    for variable in set(re.findall(r"\bPYMOO_GPUACO_[A-Z]+\b", sources)):
        assert re.search(rf"^\| `{variable}` +\|", page, re.M), variable


def test_the_readme_shows_the_real_output(capsys):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count("\n") <= 130
    assert re.search(r"^make solve  .*\nmake test  ", readme, re.M)
    if cuda_devices():
        pytest.skip("the README shows the output of a CPU")
    shown = re.search(r"^```text\n(.*?)^```$", readme, re.M | re.S)[1]
    ((_, code),) = python_blocks(ROOT / "README.md")
    exec(code, {"__name__": "__main__"})
    assert capsys.readouterr().out == shown


def test_the_version_is_the_same_everywhere():
    version = pymoo_gpuaco.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"pymoo_gpuaco   {version}\n" in (DOCS / "install.md").read_text(encoding="utf-8")


@pytest.mark.static
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


def test_the_files_that_the_architecture_page_names_exist():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    files = set(re.findall(r"`([\w/]+/\w+\.(?:py|cu))`", page))
    assert len(files) > 15
    folders = {True: ROOT, False: PACKAGE}
    assert not [f for f in files if not (folders[f.startswith(("cuda_src/", "tests/"))] / f).is_file()]
    steps = re.findall(r"^(\d+)\. ", page, re.M)
    assert steps == [str(number) for number in range(1, 11)]
