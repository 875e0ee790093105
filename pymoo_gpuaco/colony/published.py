"""Table of published parameters, from which ``published()``, its page and its tests are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Published:
    """Parameters of one algorithm in one source.

    Parameters
    ----------
    algorithm : name of the class.
    source : name of the source, see ``SOURCES``.
    local_search : True: parameters for ants with a local search.
    where : section, box or function that has the values.
    arguments : the arguments of the class; ``n_ants=None`` without local search is one ant a city.
    apart : what this package does otherwise than the source, or "".
    """

    algorithm: str
    source: str
    local_search: bool
    where: str
    arguments: Mapping[str, Any]
    apart: str = ""


SOURCES = {
    "dorigo-stuetzle-2004": "M. Dorigo, T. Stuetzle, Ant Colony Optimization, MIT Press 2004",
    "acotsp-1.03": "T. Stuetzle, ACOTSP 1.03, InOut.c and acotsp.c",
    "uchida-2012": "A. Uchida, Y. Ito, K. Nakano, ICNC 2012",
    "murooka": "R. Murooka, Y. Ito, K. Nakano",
    "cordon-2000": "O. Cordon, I. Fernandez de Viana, F. Herrera, L. Moreno, ANTS 2000",
    "stuetzle-hoos-2000": "T. Stuetzle, H. H. Hoos, FGCS 16 (2000)",
    "skinderowicz-2020": "R. Skinderowicz, FGCS 106 (2020); its rho is the share that remains",
    "dorigo-gambardella-1997": "M. Dorigo, L. M. Gambardella, IEEE TEC 1(1) (1997)",
    "skinderowicz-2016": "R. Skinderowicz, JPDC 98 (2016), and the defaults of its code",
    "skinderowicz-2022": "R. Skinderowicz, Applied Soft Computing 120 (2022), and the defaults of its code",
}

_BOOK, _CODE, _SH, _S20 = "dorigo-stuetzle-2004", "acotsp-1.03", "stuetzle-hoos-2000", "skinderowicz-2020"
_BOX = "Box 3.1"
_LS = "set_default_ls_parameters, with -l 1: 2-opt"
_XI = "set_default_acs_parameters, local_acs_pheromone_update"
_LIMITS = "c - 1 = (k + 1) // 2 in ACOTSP's Eq. (11), k / 2 - 1 here"
_MUTATIONS = "ACOTSP mutates 0.15 k trails an iteration, none before the first restart; here P_m a city"
_RESET = "the author's code mostly deposits the best since the last reset: deposit='global_best', restart_after=500"
_Q0 = "1 - 20 / n in most experiments of the paper"
_IB: dict[str, Any] = {"deposit": "iteration_best"}
_SYNC: dict[str, Any] = {"local_update_period": 1, "variant": "sync"}
_WORST: dict[str, Any] = {
    "mutation_probability": 0.3,
    "mutation_strength": 4.0,
    "mutation_iterations": None,
    "restart_below": 0.05,
}
_FOCUSED: dict[str, Any] = {
    "backup_list_size": 64,
    "min_new_edges": 8,
    "p_best": 0.1,
    "best_as_source": 0.01,
    "iterations": 1,
}


def _row(
    algorithm: str,
    source: str,
    local_search: bool,
    where: str,
    n_ants: int | None,
    rho: float,
    k: int | None,
    apart: str = "",
    **own: Any,
) -> Published:
    """Return a row with alpha 1, and beta 2 if there is none in ``own``."""
    common = {"n_ants": n_ants, "alpha": 1.0, "beta": 2.0, "rho": rho, "candidate_list_size": k}
    arguments = {**common, "local_search": "2opt" if local_search else False, **own}
    return Published(algorithm, source, local_search, where, arguments, apart)


#: the first row of an algorithm, with or without local search, is what ``published()`` takes
PUBLISHED = (  # trails of ACOTSP start at 1 / (rho C_g)
    _row("GPUAS", _BOOK, False, _BOX, None, 0.5, None),
    _row("GPUAS", _CODE, False, "set_default_as_parameters", None, 0.5, 20, first_trail=1 / 0.5),
    _row("GPUAS", _CODE, True, _LS, 25, 0.5, 20, first_trail=1 / 0.5),
    _row(
        "GPUAS", "uchida-2012", False, "section V", None, 0.5, None, selection="hybrid", trials=8, switch=0.85
    ),
    _row("GPUAS", "murooka", False, "section V", None, 0.5, None, selection="acceptance_tournament"),
    _row("GPUEAS", _BOOK, False, _BOX, None, 0.5, None, elitist_weight=None),
    _row(
        "GPUEAS",
        _CODE,
        False,
        "set_default_eas_parameters",
        None,
        0.5,
        20,
        first_trail=1 / 0.5,
        elitist_weight=None,
    ),
    _row("GPUEAS", _CODE, True, _LS, 25, 0.5, 20, first_trail=1 / 0.5, elitist_weight=25),
    _row("GPURAS", _BOOK, False, _BOX, None, 0.1, None, ranks=6),
    _row("GPURAS", _CODE, False, "set_default_ras_parameters", None, 0.1, 20, first_trail=1 / 0.1, ranks=6),
    _row("GPURAS", _CODE, True, _LS, 25, 0.5, 20, first_trail=1 / 0.5, ranks=6),
    _row("GPUBWAS", "cordon-2000", True, "section 5", 25, 0.2, 20, **_WORST),
    _row("GPUBWAS", _CODE, False, "set_default_bwas_parameters", None, 0.1, 20, _MUTATIONS, **_WORST),
    _row("GPUBWAS", _CODE, True, _LS, 25, 0.5, 20, _MUTATIONS, **_WORST),
    _row(
        "GPUMMAS",
        _SH,
        False,
        "section 4, Eqs. (7), (11)",
        None,
        0.02,
        None,
        tau_min="cities",
        **_IB,
        p_best=0.05,
    ),
    _row("GPUMMAS", _SH, True, "section 5", 25, 0.2, 20, tau_min="2n", deposit="schedule"),
    _row(
        "GPUMMAS",
        _CODE,
        False,
        "mmas_update",
        None,
        0.02,
        20,
        _LIMITS,
        tau_min="candidates",
        deposit=25,
        p_best=0.05,
    ),
    _row("GPUMMAS", _CODE, True, _LS, 25, 0.2, 20, tau_min="2n", deposit="schedule"),
    _row("GPUMMAS", _S20, False, "section 5, Fig. 1", None, 0.5, 32, tau_min="cities", **_IB, p_best=0.01),
    _row("GPUMMAS", _S20, True, "section 5.7", 800, 0.1, 32, _RESET, tau_min="cities", **_IB, p_best=0.01),
    _row("GPUACS", "dorigo-gambardella-1997", False, "section III", 10, 0.1, None, q0=0.9, xi=0.1, **_SYNC),
    _row("GPUACS", _CODE, False, _XI, 10, 0.1, 20, q0=0.9, xi=0.1, **_SYNC),
    _row("GPUACS", _CODE, True, _LS, 10, 0.1, 20, q0=0.98, xi=0.1, **_SYNC),
    _row(
        "GPUACS",
        "skinderowicz-2016",
        False,
        "section 4; ACSParams",
        None,
        0.2,
        32,
        _Q0,
        beta=3.0,
        q0=0.9,
        xi=0.01,
        **_SYNC,
    ),
    _row("GPUFACO", "skinderowicz-2022", True, "progargs.h", None, 0.5, 16, beta=1.0, **_FOCUSED),
)


def find(algorithm: str, local_search: bool, source: str | None) -> Published:
    """Return the row of an algorithm; without a source, its first. Raises ValueError that names what there is."""
    rows = [row for row in PUBLISHED if row.algorithm == algorithm]
    for row in rows:
        if row.local_search == local_search and source in (None, row.source):
            return row
    offered = ", ".join(f"{row.source!r} with local_search={row.local_search}" for row in rows)
    raise ValueError(
        f"source must be one of the published parameters of {algorithm}, got {source!r} with "
        f"local_search={local_search}: {offered}"
    )
