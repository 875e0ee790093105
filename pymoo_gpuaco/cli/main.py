"""Entry point and the three commands' options."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.algorithms import ALL_ALGORITHMS
from pymoo_gpuaco.backends import BACKENDS, BackendUnavailable, DeviceFailed
from pymoo_gpuaco.checks import not_served
from pymoo_gpuaco.cli import options
from pymoo_gpuaco.cli.bench import INSTANCES, bench
from pymoo_gpuaco.cli.compile import compile_all
from pymoo_gpuaco.cli.search import DEFAULT_SECONDS
from pymoo_gpuaco.cli.signals import Terminated, sigterm_as_ctrl_c
from pymoo_gpuaco.cli.solve import solve
from pymoo_gpuaco.problems import METRIC_NAMES
from pymoo_gpuaco.problems.metrics import TABULATED
from pymoo_gpuaco.versions import show_versions

_EXAMPLES = """examples:
  pymoo-gpuaco solve pcb442                            30 seconds, a picture of the best tour in tour.png
  pymoo-gpuaco solve cities.csv --time 2m --tour best.csv
  pymoo-gpuaco solve stops.csv --start Depot --tour route.geojson    a path from the city named Depot
  pymoo-gpuaco solve random:10000 --time 1m            a map that is made: 10,000 cities
  pymoo-gpuaco solve a280 pcb442 --seeds 10 --time 10s --stats runs.csv
  pymoo-gpuaco solve kroA100+kroB100 --csv front.csv   two objectives: the front of tours
  pymoo-gpuaco solve pr1002 --algorithm GPUACS --set n_ants=16 --set rho=0.2
"""


def info(arguments: argparse.Namespace) -> int:
    """Print what is installed and what the CUDA backend would need."""
    show_versions()
    return 0


#: what options are called elsewhere
_ALIASES = {"--output": "--tour", "--out": "--tour", "--progress": "--quiet"}


class _Parser(argparse.ArgumentParser):
    """A parser whose commands refuse what they do not know themselves, and suggest what may have been meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._hint(unknown[0])}")
        return known, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            close = get_close_matches(str(value).upper(), {str(c).upper(): c for c in action.choices}, 1)
            meant = [str(c) for c in action.choices if str(c).upper() in close]
            hint = f"; did you mean {meant[0]}?" if meant else ""
            known = ", ".join(map(str, action.choices))
            raise argparse.ArgumentError(action, f"must be one of {known}, got {value!r}{hint}")

    def _hint(self, text: str) -> str:
        """What may have been meant: an option, or for ``solve`` a parameter of an algorithm, which --set sets."""
        if not_served(text.partition("=")[0]) and text.startswith("-"):
            return f".{not_served(text.partition('=')[0])}"
        if not text.startswith("-"):
            takes_names = bool(self._get_positional_actions())
            return "; names stand together, before or after the options" if takes_names else ""
        meant: dict[str, str] = {}
        if "--set" in self._option_string_actions:
            parameters = {name for cls in ALL_ALGORITHMS.values() for name in cls.arguments()}
            meant = {f"--{name.replace('_', '-')}": f"--set {name}=.." for name in sorted(parameters)}
        meant |= {option: option for option in self._option_string_actions}
        given = text.partition("=")[0].replace("_", "-")
        meant |= {alias: option for alias, option in _ALIASES.items() if option in meant}
        close = get_close_matches(given, meant, 1)
        return f"; did you mean {meant[close[0]]}?" if close else ""


def parser() -> argparse.ArgumentParser:
    """Build the command line."""
    main_parser = _Parser(
        prog="pymoo-gpuaco", description="Ant colony optimisation for the travelling salesman problem."
    )
    main_parser.add_argument("--version", action="version", version=f"pymoo-gpuaco {__version__}")
    main_parser.set_defaults(do=lambda _: print(main_parser.format_help(), end=""))
    commands = main_parser.add_subparsers(dest="command")
    _add_solve(
        commands.add_parser(
            "solve",
            help="solve instances, draw and write the tours",
            description="Solve travelling salesman problems. Ctrl-C or SIGTERM ends early and keeps the best tour.",
            usage="pymoo-gpuaco solve INSTANCE [INSTANCE ..] [options]",
            epilog=_EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    )
    _add_bench(
        commands.add_parser("bench", help="how fast this machine is: tours a second, gap after some seconds")
    )
    _add_compile(
        commands.add_parser(
            "compile",
            help="compile now what runs would compile first: for images and machines that start afresh",
        )
    )
    commands.add_parser("info", help="versions, devices and what is missing").set_defaults(do=info)
    return main_parser


def _add_solve(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "instance",
        nargs="*",
        help="a shipped name (berlin52, pcb442 ..), a TSPLIB name, random:N, or a file: .tsp, .atsp (also .gz), "
        "a table with columns x and y or lat and lon, a matrix, GeoJSON; - for standard input; several joined by + are "
        "objectives",
    )
    data = command.add_argument_group(
        "what the numbers in a table or matrix mean, and where the tour begins and ends"
    )
    data.add_argument(
        "--metric",
        type=str.upper,
        choices=sorted((*METRIC_NAMES, *TABULATED)),
        help="how distances of coordinates are computed",
    )
    data.add_argument(
        "--matrix", action="store_const", const=True, help="the numbers are distances, row = from"
    )
    data.add_argument(
        "--symmetric",
        type=options.yes_or_no,
        metavar="yes|no",
        help="of a matrix with an empty half: mirror it (yes), or take zeros as distances and blanks as no way (no)",
    )
    data.add_argument(
        "--columns",
        type=options.titles,
        metavar="TITLES",
        help="titles of the columns, as in id,x,y,-; - leaves one out",
    )
    data.add_argument(
        "--separator", type=options.sign, metavar="SIGN", help="what parts columns; also tab, blank"
    )
    data.add_argument("--decimal", metavar="SIGN", help="the decimal mark, . or ,")
    data.add_argument("--thousands", type=options.sign, metavar="SIGN", help="what groups thousands")
    data.add_argument("--weight", metavar="NAME", help="which matrix of a JSON file, as in durations")
    data.add_argument(
        "--open", action="store_true", help="a path that does not come back, its ends where it is shortest"
    )
    data.add_argument(
        "--start",
        metavar="CITY",
        help="a path from this city: its name, or its id in the file (else its number, from 1 on)",
    )
    data.add_argument(
        "--end", metavar="CITY", help="a path to this city; the same as --start makes a round trip from there"
    )
    for option, words in (("--fix", "every tour must have"), ("--forbid", "no tour may have")):
        data.add_argument(
            option, action="append", default=[], metavar="A,B", help=f"an edge that {words}; may be repeated"
        )
    search = command.add_argument_group("search")
    search.add_argument(
        "--algorithm",
        choices=sorted(ALL_ALGORITHMS),
        help="default GPUMemetic; several objectives are searched by GPU2PPLS",
    )
    search.add_argument(
        "--set",
        action="append",
        type=options.assignment,
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the algorithm, as in rho=0.2 or local_search.kicks=1; may be repeated",
    )
    search.add_argument(
        "--parameters",
        metavar="FILE.toml",
        default="",
        help="parameters from a TOML file; --set comes before it",
    )
    search.add_argument("--seed", type=options.natural, default=1, help="same seed, same tours (default 1)")
    search.add_argument(
        "--seeds",
        type=options.positive,
        default=1,
        metavar="RUNS",
        help="runs of each instance, with this many seeds from --seed on (default 1)",
    )
    search.add_argument("--from-tour", metavar="FILE.tour", default="", help="a tour to go on from")
    _add_backend(search)

    where = command.add_argument_group("several GPUs or hosts, with Dask")
    where.add_argument(
        "--islands",
        type=options.positive,
        metavar="N",
        help="N colonies side by side that exchange their best tours, each on a GPU of its own or a share of the cores "
        "(default one colony; with --scheduler one for each worker)",
    )
    where.add_argument(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="the scheduler of a running Dask cluster, such as tcp://10.0.0.1:8786, whose workers the islands take",
    )

    stop = command.add_argument_group(
        "when to stop (the first that holds; always at the best known length, or a proven one)"
    )
    stop.add_argument(
        "--time",
        "--seconds",
        type=options.seconds,
        dest="seconds",
        metavar="TIME",
        help=f"time for set-up and search: 30, 30s, 5m or 1h (default {DEFAULT_SECONDS:g}s; none if --generations or "
        "--stagnation is given)",
    )
    stop.add_argument(
        "--target", type=options.length, metavar="LENGTH", help="a tour of this length or shorter"
    )
    stop.add_argument("--generations", type=options.positive, metavar="N", help="N generations")
    stop.add_argument(
        "--stagnation",
        type=options.positive,
        metavar="N",
        help="N generations without a shorter tour, or a new one of a front",
    )

    out = command.add_argument_group("output; in names of files {instance} stands for the instance's name")
    out.add_argument(
        "--tour",
        default="",
        metavar="FILE",
        help="write the best tour: .csv, .geojson, .json, else TSPLIB's format; - for stdout",
    )
    out.add_argument(
        "--picture",
        metavar="FILE",
        help="draw the best tour (.png, .svg, .pdf ..); '' for none (default tour.png where one instance is solved, of "
        "several objectives front.png)",
    )
    out.add_argument(
        "--csv",
        default="",
        metavar="FILE",
        help="of several objectives: write the front, a line for each tour with its lengths and cities; - for stdout",
    )
    out.add_argument("--stats", default="", metavar="FILE", help="a line for each run, as .csv or .json")
    out.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    out.add_argument("--quiet", action="store_true", help="print nothing but errors")
    out.add_argument(
        "--save", default="", metavar="STATE", help="keep the state of the run at its end, to resume it"
    )
    out.add_argument(
        "--resume",
        default="",
        metavar="STATE",
        help="go on with a saved run, for the time or the generations given now",
    )
    out.add_argument(
        "--allow-pickle",
        action="store_true",
        help="resume also a run that was saved from Python with classes of your own: such a file can run any code, so "
        "only one that you trust",
    )
    command.set_defaults(do=solve)


def _add_bench(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "instance", nargs="*", help=f"names or files as for solve (default {' '.join(INSTANCES)})"
    )
    _add_backend(command)
    command.add_argument(
        "--time",
        "--seconds",
        type=options.seconds,
        dest="seconds",
        metavar="TIME",
        default=5.0,
        help="search of each instance (default 5s)",
    )
    command.set_defaults(do=bench)


def _add_compile(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "algorithm",
        nargs="*",
        type=options.any_algorithm,
        metavar="ALGORITHM",
        help="algorithms beside the default one, GPUMemetic(): "
        + ", ".join(sorted(ALL_ALGORITHMS))
        + "; GPU2PPLS for several objectives",
    )
    _add_backend(command)
    command.set_defaults(do=compile_all)


def _add_backend(command: argparse._ActionsContainer) -> None:
    command.add_argument(
        "--backend",
        choices=BACKENDS,
        default="auto",
        help="auto (default) takes CUDA where it can run, else the CPU",
    )
    command.add_argument(
        "--device", type=options.natural, default=0, help="number of the CUDA device (default 0)"
    )


@contextmanager
def _warnings_as_asked(arguments: argparse.Namespace) -> Iterator[None]:
    """Print warnings in a line each, with --quiet none; with it or --json, log nothing but errors."""
    log = logging.getLogger("pymoo_gpuaco")
    level = log.level
    quiet, json = (getattr(arguments, name, False) for name in ("quiet", "json"))
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        if quiet:
            warnings.simplefilter("ignore")
        if quiet or json:
            log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)


def _show_warning(message: Warning | str, *place: Any, **more: Any) -> None:
    """Print a warning in one line; where in the code it was raised is of no use to a person at the command line."""
    print(f"pymoo-gpuaco: warning: {message}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns 0; 1 where a best tour breaks demands; 2 after a mistake of the user or a device that fails, told in one
    line; 130 or 143 when interrupted.
    """
    try:
        arguments = parser().parse_args(argv)
        with sigterm_as_ctrl_c(), _warnings_as_asked(arguments):
            return int(arguments.do(arguments) or 0)
    except BrokenPipeError:  # the reader of a pipe has gone, as in "| head"
        # for the flush at the end of the process
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as stop:
        print("\npymoo-gpuaco: interrupted", file=sys.stderr)
        return 143 if isinstance(stop, Terminated) else 130
    except OSError as error:
        said = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        print(f"pymoo-gpuaco: {said}", file=sys.stderr)
        return 2
    except (ValueError, TypeError, ImportError, MemoryError, BackendUnavailable, DeviceFailed) as error:
        print(f"pymoo-gpuaco: {error}", file=sys.stderr)
        return 2
