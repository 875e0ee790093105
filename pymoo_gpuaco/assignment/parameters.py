"""Parameters of MAX-MIN Ant System for quadratic assignment, and the constants that both engines share."""

from __future__ import annotations

from dataclasses import dataclass

from pymoo_gpuaco import checks

STARTS = ("trails", "perturbed")
MOST_LOCATIONS = 512
MOST_TABU_ITERATIONS = 55_000  # iteration + tenure must fit 16 bits
N_ANTS = 8
RHO = 0.2
RESTART_AFTER = 50
# Trails are whole numbers, so that all engines compute the same ones; the sum of a row fits 32 bits.
HIGHEST_TRAIL = 1 << 22
RATE_BITS = 16  # of the evaporation rate
# Tabu iterations for each location. Random flows (tai60a) need long searches; flows and distances with structure
# (tai150b) gain more from trails, which learn once a search.
SHORT, LONG = 20, 100
# With few ants, on cores, trails learn sooner from shorter searches.
SHORT_OF_FEW, MANY_ANTS = 10, 64
TENURE = 8  # a move is tabu for up to 8 n iterations (Taillard 1991: cubed uniform numbers)


@dataclass(frozen=True)
class AssignmentParameters:
    """Parameters of a run.

    n_ants : ants of a colony, in [1, 1024].
    n_colonies : colonies, which do not exchange anything, in [1, 65536]. None: those that occupy the device.
    rho : evaporation rate in (0, 1].
    start : placement at which the tabu search of an ant starts: "trails" draws it from the trails, "perturbed" swaps
        items of the colony's best placement at random.
    tabu_iterations : iterations of each tabu search, in [1, 55000]. None: 100 n without
        structure, else 20 n, or 10 n with less than 64 ants in all.
    restart_after : iterations in a row without a better placement after which a colony forgets all, >= 1.
    """

    n_ants: int = N_ANTS
    n_colonies: int | None = None
    rho: float = RHO
    start: str = "trails"
    tabu_iterations: int | None = None
    restart_after: int = RESTART_AFTER

    def __post_init__(self) -> None:
        """Validate."""
        checks.integer("n_ants", self.n_ants, 1, 1024)
        checks.optional_integer("n_colonies", self.n_colonies, 1, 65_536)
        checks.real("rho", self.rho, 0.0, 1.0, open_low=True)
        checks.choice("start", self.start, STARTS)
        checks.optional_integer("tabu_iterations", self.tabu_iterations, 1, MOST_TABU_ITERATIONS)
        checks.integer("restart_after", self.restart_after, 1, 2**31 - 2)

    def iterations_of_a_generation(self, n: int) -> int:
        """Return the trail updates of a generation of n items: few items need little time."""
        return max(1, 60 // n)

    def tabu_iterations_of(self, n: int, structured: bool, ants: int) -> int:
        """Return the iterations of a tabu search of n items; ``ants`` of all colonies. One item cannot be moved."""
        each = LONG if not structured else SHORT if ants >= MANY_ANTS else SHORT_OF_FEW
        return 0 if n < 2 else self.tabu_iterations or min(MOST_TABU_ITERATIONS, each * n)

    def swaps_of(self, n: int) -> int:
        """Return the random swaps of a perturbed start, or 0 for starts drawn from trails."""
        return max(2, n // 5) if self.start == "perturbed" else 0

    @property
    def evaporation(self) -> int:
        """Evaporation rate in units of 2^-16."""
        return max(1, round(self.rho * 2**RATE_BITS))

    @property
    def deposit(self) -> int:
        """Trail that an update adds."""
        return max(1, round(self.rho * HIGHEST_TRAIL))


def lowest_trail(n: int) -> int:
    """Return the lower trail limit of n items."""
    return HIGHEST_TRAIL // (2 * n)


def greedy_threshold(n: int) -> int:
    """Return the number in [0, 2^32): an ant whose random word is below it takes the location of the highest trail."""
    return (max(0, n - max(4, n // 5)) << 32) // n
