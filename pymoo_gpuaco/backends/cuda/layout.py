"""How a colony is laid out on a device: sizes, kernel options and launch shapes. Pure numbers, no device."""

from __future__ import annotations

from dataclasses import dataclass

from pymoo_gpuaco.backends.cuda.device.limits import DeviceLimits
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.problems.instance import Instance

MOST_ANTS_BY_DEFAULT = 4096
# A warp improves a tour, and the warps of one multiprocessor hide each other's waiting.
ANTS_A_MULTIPROCESSOR = 6
# Neighbours that the local search seeks moves with: the nearest find nearly all of them.
SEARCH_NEIGHBOURS = 16
LOG_BYTES = 96 * 8
# Hundreds of ants find by their number what kicks find one after another: by default there are none.
KICKS_A_CITY = 0.0

ROULETTE, RACE, RACE_WITH_REST = 0, 1, 2
ACS = "pseudo_random_proportional"
_TABU = {"list": 0, "compact": 1, "bitmask": 2}
# Near cities that are listed beyond the candidates, a multiple of 128. A longer list saves a look at all open cities,
# and takes time to make that grows with it.
NEAR, NEAR_OF_MANY, MANY = 512, 128, 8192
# Up to so many cities ants read whole rows of weights, which 227 KiB of shared memory have room for. Where that memory
# is smaller they read the same rows from elsewhere: tours do not depend on the device.
WHOLE = 240


def _rule(selection: str, all_cities: bool) -> int:
    """Code of the rule that a selection's name stands for."""
    if selection == "auto":
        return RACE_WITH_REST if all_cities else RACE
    # the rules of selection_rules.cu draw from all cities; over candidate lists they mean the roulette wheel
    return RACE if selection == "wrs" else ROULETTE


def _usual_tabu(all_cities: bool, rule: int) -> str:
    """The fastest layout: weighing every open city wants a list of them, all else a small memory."""
    return "compact" if all_cities and rule != RACE_WITH_REST else "bitmask"


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(frozen=True)
class Layout:
    """One colony on one device; letters: m ants, n cities, k candidates."""

    m: int
    n: int
    k: int
    dense: bool
    selective: bool
    all_cities: bool
    slots: int  # candidates a lane
    node_bytes: int  # bytes of a city's number in tabus and candidate rows
    race: bool
    rest: bool  # rows hold the heaviest edges only, and all other cities are drawn from as well
    whole: bool  # ants read the weights of all cities at every step
    tabu: int  # code of tabu.cuh
    resident: bool  # rows of weights in shared memory
    tabu_in_shared: bool
    tabu_bytes: int
    ants_a_block: int
    least_blocks: int  # construction blocks that a multiprocessor is to hold at the same time
    blocks: int
    shared_bytes: int  # of a construction block
    search_in_shared: bool
    search_bytes: int  # of one tour under local search
    search_blocks: int

    @property
    def node(self) -> str:
        """C type of a city's number."""
        return "unsigned short" if self.node_bytes == 2 else "unsigned int"

    @property
    def stride(self) -> int:
        """Places of a padded candidate row."""
        return 32 * self.slots

    @property
    def tiered(self) -> bool:
        """Whether construction reads rows of candidates: always, but where it reads the weights of all cities."""
        return not self.all_cities or self.rest

    @property
    def near(self) -> int:
        """Length of the list of near cities that is read when all candidates are visited."""
        return NEAR if self.n <= MANY else NEAR_OF_MANY

    @property
    def inverse_bytes(self) -> int:
        """Bytes of one float a city, in whole units of 16."""
        return _round_up(4 * self.n, 16)

    @property
    def alias_rows(self) -> int:
        """Rows whose alias tables are built together."""
        return min(self.n, 4096)

    @property
    def trails(self) -> tuple[int, int]:
        """Shape of tau."""
        return (self.n, self.n if self.dense else self.k)


def default_ants(n: int, parameters: ColonyParameters, limits: DeviceLimits) -> int:
    """Colony size where the user gave none: a whole number of tours a multiprocessor, or min(n, 4096)."""
    if parameters.local_search is not None:
        return ANTS_A_MULTIPROCESSOR * limits.multiprocessors
    return min(n, MOST_ANTS_BY_DEFAULT)


def plan(instance: Instance, parameters: ColonyParameters, limits: DeviceLimits) -> Layout:
    """Decide everything that the kernels are compiled and launched with."""
    n, k = instance.n, instance.k
    m = parameters.n_ants or default_ants(n, parameters, limits)
    all_cities = parameters.candidate_list_size is None
    memory = parameters.resolved_memory(n)
    slots = -(-k // 32)
    node_bytes = 2 if n < 1 << 16 else 4
    rule = _rule(parameters.selection, all_cities)
    usual = _usual_tabu(all_cities, rule)
    tabu = _TABU[usual if parameters.tabu == "auto" else parameters.tabu]
    tabu_bytes = _round_up({0: 2 * n * node_bytes, 1: n * node_bytes, 2: 4 * -(-n // 32)}[tabu], 16)
    whole = rule == RACE_WITH_REST and n <= WHOLE
    rest = rule == RACE_WITH_REST and not whole
    rows = 4 * n * n if whole else n * 32 * slots * (4 + node_bytes) + (_round_up(4 * n, 16) if rest else 0)
    if whole:
        tabu_bytes = 0  # bits in registers
    share = -(-m // limits.multiprocessors)  # ants of one multiprocessor, if spread evenly
    # whole rows take long to copy: fewer blocks do, as long as each of the four schedulers has one ant at most
    together = min(32, max(4, share) if whole else share)
    acs = parameters.selection == ACS  # its trails change while the ants walk
    resident = (
        (whole or rest or not all_cities) and not acs and rows + together * tabu_bytes <= limits.shared_bytes
    )
    tabu_in_shared = resident or tabu_bytes <= limits.shared_bytes
    ants_a_block = together if resident else 1 if share <= 32 or 4 * tabu_bytes > limits.shared_bytes else 4
    blocks = -(-m // ants_a_block)
    if resident:
        blocks = min(blocks, limits.multiprocessors)
    elif not tabu_in_shared:
        blocks = min(blocks, 32 * limits.multiprocessors)
    shared = (rows if resident else 0) + (ants_a_block * tabu_bytes if tabu_in_shared else 0)
    search_bytes = _round_up(LOG_BYTES + 4 * -(-n // 32) + 3 * n * node_bytes, 16)
    search_in_shared = search_bytes <= limits.shared_bytes
    return Layout(
        m=m,
        n=n,
        k=k,
        dense=memory == "dense",
        selective=memory == "selective",
        all_cities=all_cities,
        slots=slots,
        node_bytes=node_bytes,
        race=rule != ROULETTE,
        rest=rest,
        whole=whole,
        tabu=tabu,
        resident=resident,
        tabu_in_shared=tabu_in_shared,
        tabu_bytes=tabu_bytes,
        ants_a_block=ants_a_block,
        least_blocks=1 if resident else max(1, min(share, limits.warps // 2) // ants_a_block),
        blocks=blocks,
        shared_bytes=shared,
        search_in_shared=search_in_shared,
        search_bytes=search_bytes,
        search_blocks=m if search_in_shared else min(m, 16 * limits.multiprocessors),
    )
