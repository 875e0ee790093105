"""Options of the command line: one table for the parser, the help and the checks of `solve`."""

from __future__ import annotations

import argparse
import ast
import glob
import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.algorithms import ALL_ALGORITHMS
from pymoo_gpuaco.algorithms.arguments import PYMOO_ARGUMENTS
from pymoo_gpuaco.backends import BACKENDS
from pymoo_gpuaco.checks import did_you_mean, not_served
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.problems.datasets import available_instances
from pymoo_gpuaco.problems.metrics import METRICS

DEFAULT_ALGORITHM = "GPUMemetic"
DEFAULT_SECONDS = 30.0
BENCH_INSTANCES = ("pcb442", "att532", "gr666")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Option:
    """An option, or a positional argument.

    Attributes
    ----------
    flags : names such as "--time --seconds", or the name of a positional argument.
    help : text for the help; a number or a word as default is appended.
    type : function that parses the text; None: unchanged text; bool: an option without a value.
    many : True if it may be repeated.
    single : hint for several objectives, if it supports only one.
    """

    flags: str
    help: str
    metavar: str | None = None
    type: Callable[[str], Any] | None = None
    default: Any = None
    choices: Sequence[str] | None = None
    many: bool = False
    single: str = ""

    def is_given(self, arguments: argparse.Namespace) -> bool:
        """Return True if the user has given it."""
        name = self.flags.split()[0].strip("-").replace("-", "_")
        return getattr(arguments, name) not in (self.default, [])

    def add_to(self, group: argparse._ActionsContainer) -> None:
        """Add the option to a group of a parser."""
        shown = isinstance(self.default, (int, str)) and self.default is not False
        more: dict[str, Any] = {"help": self.help + f" (default {self.default})" * shown}
        if self.type is bool:
            more |= {"action": "store_const", "const": True}
        else:
            more |= {"type": self.type, "metavar": self.metavar, "choices": self.choices}
            more |= {"action": "append"} if self.many else {}
            more |= {} if self.flags.startswith("-") else {"nargs": "*"}
        action = group.add_argument(*self.flags.split(), default=[] if self.many else self.default, **more)
        if self.flags == "instance":
            action.completer = names  # type: ignore[attr-defined]


def names(prefix: str, **_: Any) -> list[str]:
    """Return names of instances and files for the completion of a shell."""
    files = [f"{path}/" if Path(path).is_dir() else path for path in glob.glob(f"{glob.escape(prefix)}*")]
    return [*(name for name in available_instances() if name.startswith(prefix)), *files]


def seconds(text: str) -> float:
    """Read "30", "30s", "5m" or "1h" as seconds."""
    match = re.fullmatch(r"(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*([smh]?)", text.strip())
    value = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0.0 < value < math.inf:
        raise ArgumentTypeError(f"must be a positive time such as 30, 30s, 5m or 1h, got {text!r}")
    return value


def yes_or_no(text: str) -> bool:
    """Read "yes" or "no"."""
    if text.lower() not in ("yes", "no"):
        raise ArgumentTypeError(f"must be yes or no, got {text!r}")
    return text.lower() == "yes"


def titles(text: str) -> list[str]:
    """Read "id,x,y" as a list."""
    return [title.strip() for title in text.split(",")]


def sign(text: str) -> str:
    """Read a character, or the name tab or blank."""
    return {"tab": "\t", "\\t": "\t", "blank": " "}.get(text.lower(), text)


def natural(text: str, low: int = 0) -> int:
    """Read an integer >= low."""
    if not re.fullmatch(r"\d+", text.strip()) or int(text) < low:
        raise ArgumentTypeError(f"must be an integer >= {low}, got {text!r}")
    return int(text)


positive = partial(natural, low=1)


def device(text: str) -> int | list[int] | str:
    """Read the number of a CUDA device, several as in 0,1, or "all"."""
    numbers = text.lower() if text.lower() == "all" else [natural(part) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def assignment(text: str) -> tuple[str, Any]:
    """Read "name=value"; the value is Python's (0.2, True, None, "2opt"), or a word without quotation marks."""
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"\w+(\.\w+)?", name.strip()):
        raise ArgumentTypeError(f"must be NAME=VALUE, as in rho=0.2, got {text!r}")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        words = {"true": True, "false": False, "none": None}
        return name.strip(), words.get(value.strip().lower(), value.strip())


def parameters(assignments: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an algorithm's arguments; names with a dot, as in local_search.kicks, define a ``LocalSearch``."""
    given: dict[str, Any] = {}
    for name, value in assignments:
        table, dot, field = name.partition(".")
        inner = given.get(table)
        given[table] = {**(inner if isinstance(inner, dict) else {}), field: value} if dot else value
    if isinstance(given.get("local_search"), dict):
        given["local_search"] = LocalSearch(**given["local_search"])
    for name in given:
        if name in ("backend", "device", "seed"):
            raise ValueError(f"--set {name} is not allowed: use --{name}")
        if name in PYMOO_ARGUMENTS:
            raise ValueError(f"--set {name} is not allowed: {name} is an argument for Python only")
    return given


INSTANCE = Option(
    "instance",
    "a shipped name (berlin52, pcb442 ..), a TSPLIB name, random:N, or a file: .tsp, .atsp (also .gz), a table with "
    "columns x and y or lat and lon, a matrix, GeoJSON; - for standard input; several joined by + are objectives; "
    "QAPLIB's names and .dat files are quadratic assignment",
)
_ROUND = "tours are round trips without constraints"
DATA = (
    Option(
        "--metric",
        "how distances are computed from coordinates",
        type=str.upper,
        choices=sorted(METRICS),
    ),
    Option("--matrix", "the numbers are distances; rows are start cities", type=bool),
    Option(
        "--symmetric",
        "a matrix with an empty half: yes mirrors it, no reads zeros as distances and blanks as forbidden edges",
        "yes|no",
        yes_or_no,
    ),
    Option("--columns", "titles of the columns, as in id,x,y,-; - ignores a column", "TITLES", titles),
    Option("--separator", "column separator; also tab, blank", "SIGN", sign),
    Option("--decimal", "decimal mark, . or ,", "SIGN"),
    Option("--thousands", "thousands separator", "SIGN", sign),
    Option("--weight", "name of the matrix in a JSON file, as in durations", "NAME"),
    Option("--skip-blank", "leave out rows without coordinates", type=bool),
    Option("--points", "read the points of a GPX track or route, in any order", type=bool),
    Option("--open", "find a path with free ends, not a round trip", None, bool, False, single=_ROUND),
    Option(
        "--start",
        "first city of a path: its name or its id in the file, otherwise its number, from 1 on",
        "CITY",
        single=_ROUND,
    ),
    Option(
        "--end",
        "last city of a path; with the city of --start, a round trip from there",
        "CITY",
        single=_ROUND,
    ),
    Option("--fix", "an edge that every tour must have; may be repeated", "A,B", many=True, single=_ROUND),
    Option("--forbid", "an edge that no tour may have; may be repeated", "A,B", many=True, single=_ROUND),
    Option("--precedence", "a file with one pair A,B per line: A comes before B", "FILE", single=_ROUND),
)
SEARCH = (
    Option(
        "--algorithm",
        f"default {DEFAULT_ALGORITHM}; GPU2PPLS searches several objectives",
        choices=sorted(ALL_ALGORITHMS),
        single="GPU2PPLS searches for fronts",
    ),
    Option(
        "--set",
        "a parameter of the algorithm, as in rho=0.2 or local_search.kicks=1; may be repeated",
        "NAME=VALUE",
        assignment,
        many=True,
    ),
    Option("--seed", "the same seed gives the same tours", None, natural, 1),
    Option(
        "--seeds",
        "number of runs of each instance, with consecutive seeds from --seed on",
        "RUNS",
        positive,
        1,
        single="give one --seed",
    ),
    Option("--from-tour", "a tour to start from", "FILE.tour"),
)
_BACKEND = (
    Option("--backend", "auto: CUDA if it is usable, otherwise the CPU", default="auto", choices=BACKENDS),
    Option("--device", "number of the CUDA device", None, natural, 0),
)
ISLANDS = Option(
    "--islands",
    "N islands that exchange their best tours, each on one GPU or a share of the cores (default one run; with "
    "--scheduler one island for each worker)",
    "N",
    positive,
)
_WHERE = (
    _BACKEND[0],
    Option(
        "--device",
        "number of the CUDA device (default 0); for GPUMemetic also 0,1 or all (default from 20,000 cities)",
        None,
        device,
    ),
    ISLANDS,
    Option(
        "--scheduler",
        "a running Dask cluster whose workers run the islands, such as tcp://10.0.0.1:8786",
        "ADDRESS",
    ),
)
_STOP = (
    Option(
        "--time --seconds",
        f"time limit of set-up and search: 30, 30s, 5m or 1h (default {DEFAULT_SECONDS:g}s; no limit with "
        "--generations or --stagnation)",
        "TIME",
        seconds,
    ),
    Option("--target", "a tour of this length or shorter", "LENGTH", float, single="use --time"),
    Option("--generations", "N generations", "N", positive),
    Option(
        "--stagnation",
        "N generations without a shorter tour, or without a new member of the front",
        "N",
        positive,
    ),
)
_OUTPUT = (
    Option(
        "--tour",
        "write the best tour: .csv, .geojson, .gpx, .kml, .json, otherwise TSPLIB's format; a placement in "
        "QAPLIB's; - for stdout",
        "FILE",
        single="--csv FILE writes all tours of a front",
    ),
    Option(
        "--picture",
        "draw the best tour or the front (.png, .svg, .pdf ..)",
        "FILE",
    ),
    Option(
        "--csv",
        "several objectives: write the front, one line per tour with its lengths and cities; - for stdout",
        "FILE",
    ),
    Option(
        "--stats",
        "write one line per run, as .csv; - for stdout; --json prints the same",
        "FILE",
        single="--json prints the front",
    ),
    Option("--json", "print one JSON object and nothing else", None, bool, False),
    Option("--quiet", "print only errors", None, bool, False),
    Option("--save", "write the state, every minute and at the end, for --resume", "STATE"),
    Option("--resume", "continue a saved run to its end, or with other limits from now on", "STATE"),
)
#: command -> its help, and its options by their headings in the help
COMMANDS: dict[str, tuple[str, dict[str, tuple[Option, ...]]]] = {
    "solve": (
        "solve instances, draw and write the tours",
        {
            "": (INSTANCE,),
            "input data: format of the numbers, ends and constraints of the tour": DATA,
            "search": SEARCH,
            "hardware: one device, or several GPUs or hosts with Dask": _WHERE,
            "termination: at the first limit, at the best known length, or at a proven optimum": _STOP,
            "output: {instance} in a file name is replaced by the name of the instance, {seed} by the seed": _OUTPUT,
        },
    ),
    "bench": (
        "measure this machine: tours per second, gap after some seconds",
        {
            "": (
                Option("instance", f"names or files as for solve (default {' '.join(BENCH_INSTANCES)})"),
                *_BACKEND,
                Option("--time --seconds", "search time of each instance (default 5s)", "TIME", seconds, 5.0),
            )
        },
    ),
    "info": ("print versions, devices and missing requirements", {}),
}
#: options that a saved run defines
NOT_WITH_RESUME = (INSTANCE, *DATA, *SEARCH, ISLANDS)
_EXAMPLES = """examples:
  pymoo-gpuaco solve pcb442 --picture pcb442.png       30 seconds, a picture of the best tour
  pymoo-gpuaco solve cities.csv --time 2m --tour best.csv
  pymoo-gpuaco solve stops.csv --start Depot --tour route.geojson    a path from the city named Depot
  pymoo-gpuaco solve random:10000 --time 1m            a random map of 10,000 cities
  pymoo-gpuaco solve a280 pcb442 --seeds 10 --time 10s --stats runs.csv
  pymoo-gpuaco solve kroA100+kroB100 --csv front.csv   two objectives: the front of tours
  pymoo-gpuaco solve nug30 tai60a.dat --time 5s        quadratic assignment
  pymoo-gpuaco solve pr1002 --algorithm GPUACS --set n_ants=16 --set rho=0.2
"""
#: names of options in other programs
_ALIASES = {"--output": "--tour", "--out": "--tour", "--progress": "--quiet"}
_ALIASES |= {"--time-limit": "--time", "--gpu": "--backend"}


def parser() -> argparse.ArgumentParser:
    """Build the command line."""
    made = _Parser(prog="pymoo-gpuaco", description="Short tours for the travelling salesman problem.")
    made.add_argument("--version", action="version", version=f"pymoo-gpuaco {__version__}")
    commands = made.add_subparsers(dest="command")
    for name, (words, groups) in COMMANDS.items():
        command = commands.add_parser(
            name, help=words, description=words, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name == "solve":
            command.usage, command.epilog = "pymoo-gpuaco solve INSTANCE [INSTANCE ..] [options]", _EXAMPLES
            command.description = (
                f"{words}. Ctrl-C or SIGTERM ends the search early with the best tour so far."
            )
        for heading, options in groups.items():
            group = command.add_argument_group(heading) if heading else command
            for option in options:
                option.add_to(group)
    return made


class _Parser(argparse.ArgumentParser):
    """A parser whose commands report unknown options with a suggestion."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._hint(unknown[0])}")
        return known, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in (*action.choices, action.default, []):
            known = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action, f"must be one of {', '.join(known)}, got {value!r}{did_you_mean(str(value), known)}"
            )

    def _hint(self, text: str) -> str:
        """Return a suggestion for an unknown option: another option, or for ``solve`` a parameter of --set."""
        given = text.partition("=")[0]
        if not text.startswith("-"):
            takes_names = bool(self._get_positional_actions())
            return "; give all names together, before or after the options" if takes_names else ""
        if not_served(given):
            return f".{not_served(given)}"
        meant: dict[str, str] = {}
        if "--set" in self._option_string_actions:
            names = {name for cls in ALL_ALGORITHMS.values() for name in cls.arguments()}
            meant = {f"--{name.replace('_', '-')}": f"--set {name}=.." for name in sorted(names)}
        meant |= {option: option for option in self._option_string_actions}
        meant |= {alias: option for alias, option in _ALIASES.items() if option in meant}
        return did_you_mean(given.replace("_", "-"), meant, 0.7)
