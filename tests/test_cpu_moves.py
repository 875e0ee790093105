"""Steps of the CPU engine in a window: against all moves tried one by one, and against the same search in lists."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu.windows import moves
from pymoo_gpuaco.backends.cpu.windows.window import DEPTH, LOG, LOGGED, LONG_PATH, MADE
from pymoo_gpuaco.problems import TSP
from tests.cpu_window_cases import units_of, window_of
from tests.engine_cases import cloud
from tests.test_windows_moves import NONE, best_from, edge
from tests.tour_cases import two_opt


def as_numbered(units, instance, w, m):
    """Costs, neighbours and fixed links of a window whose cities are numbered by their places in its tour."""
    order, cities = w.order[:m], w.city[w.order[:m]]
    D = np.floor(instance.distance(cities[:, None], cities[None]) * units.scale + 0.5)
    D += units.pi[cities] + units.pi[cities][:, None]
    near = [[int(w.position[c]) if c >= 0 else NONE for c in w.near[city]] for city in order]
    ties = {edge(p, (p + 1) % m) for p in range(m) if w.mate[order[p]] == order[(p + 1) % m]}
    return D, near, ties


def step_slowly(t1, D, near, ties):
    """Gain and tour of a step from city t1 of the tour 0, 1, .., m-1, which is a path from t2 to t1 while it lasts."""
    m = len(D)
    for way in (1, -1):
        path = [(t1 + way * steps) % m for steps in range(1, m + 1)]
        left, fixed = D[t1, path[0]], set(ties)  # and what has been put in stays in
        if edge(t1, path[0]) in fixed:
            continue
        for _ in range(6):
            most, onward, into = 0.0, path, set()
            for gain, rest, new, added in basis_moves(path, left, D, near, fixed):
                if gain > 0.0:
                    return gain, new
                if rest > most:
                    most, onward, into = rest, new, added
            if most == 0.0:
                break
            path, left, fixed = onward, most, fixed | into
    return 0.0, list(range(m))


def basis_moves(path, left, D, near, fixed):
    """Gain if it is closed, what is left to close it, path and edges put in of each move of two or three edges."""
    t1, t2, m = path[-1], path[0], len(path)
    for t3 in near[t2]:
        if t3 == NONE or left <= D[t2, t3]:
            return
        i = path.index(t3)
        for side in (-1, 1) if 1 < i < m - 1 else ():
            t4 = path[i + side]
            two = left - D[t2, t3] + D[t3, t4]
            if edge(t3, t4) in fixed:
                continue
            one, ring = path[:i][::-1] + path[i:], path[: i + 1]  # the path from t4; the ring that it leaves
            if side < 0:
                yield two - D[t4, t1], 0.0, one, {edge(t2, t3)}
            for t5 in near[t4]:
                if t5 == NONE or two <= D[t4, t5]:
                    break
                if t5 == t3 or abs(path.index(t5) - i - side) in (1, m - 1):
                    continue
                if side < 0:
                    j = one.index(t5)
                    ways = [(one[j - 1], one[:j][::-1] + one[j:])]
                else:
                    j, behind = path.index(t5), path[i + 1 :]
                    # along the ring from the next city on, or backwards from the one before
                    ways = [(ring[j + 1], ring[j + 1 :] + ring[: j + 1] + behind)] if j < i else []
                    ways += [(ring[j - 1], ring[:j][::-1] + ring[j:][::-1] + behind)] if 0 < j < i else []
                for t6, new in ways:
                    rest = two - D[t4, t5] + D[t5, t6]
                    if edge(t5, t6) not in fixed:
                        yield rest - D[t6, t1], rest, new, {edge(t2, t3), edge(t4, t5)}


@pytest.mark.parametrize("long_path", [LONG_PATH, 1, 4])
@pytest.mark.parametrize("n", [8, 14, 20])
def test_a_step_finds_a_move_wherever_there_is_one_and_goes_on_where_there_is_none(n, long_path):
    """Gains are exact, fixed links stay, and the ends of all edges that are others are looked at again."""
    rng, found, deep, tied = np.random.default_rng(n), 0, 0, 0
    for seed in range(12):
        # gains of nothing, or of one unit, are common where distances are short
        problem = TSP(rng.integers(0, 5, (n, 2)), "EUC_2D") if seed % 4 > 1 else cloud(n, seed)
        instance, units = units_of(problem)
        positions = np.arange(n) if seed % 3 else np.delete(np.arange(n), [2, n - 3])  # two links are fixed
        m = len(positions)
        tour = rng.permutation(n).astype(np.int32)
        if seed % 2:  # few moves close with a gain
            tour = two_opt(problem, tour)
        w = window_of(units, tour, positions)._replace(long_path=long_path)
        D, near, ties = as_numbered(units, instance, w, m)
        order, length = w.order.copy(), D[np.arange(m), np.arange(1, m + 1) % m].sum()
        for city in range(m):
            best = max(best_from(city, (city + way) % m, D, near, ties) for way in (1, -1))
            gain = moves.improve(units, w, m, order[city])
            assert gain > 0.0 or best == 0.0
            expected, laid = step_slowly(city, D, near, ties)
            assert gain == expected
            own = np.argsort(order)[w.order]  # in numbers of D
            assert length - D[own, np.roll(own, -1)].sum() == gain
            assert np.array_equal(w.position[w.order], np.arange(m))
            new = {edge(*pair) for pair in zip(own.tolist(), np.roll(own, -1).tolist(), strict=True)}
            assert new == {edge(*pair) for pair in zip(laid, [*laid[1:], laid[0]], strict=True)}
            changed = new ^ {edge(p, (p + 1) % m) for p in range(m)}
            assert not changed & ties
            assert bool(changed) == (gain > 0.0)
            ends, queued = {end for pair in changed for end in pair}, np.flatnonzero(w.queued[order]).tolist()
            assert ends <= set(queued)  # which may hold the ends of an edge that was put out and in again
            assert bool(queued) == (gain > 0.0)
            assert sorted(w.queue[: w.ring[1]].tolist()) == sorted(order[queued].tolist())
            deep += gain > 0.0 == best
            found, tied = found + (best > 0.0), tied + len(ties)
            w.order[:], w.queued[:], w.state[:], w.ring[:] = order, 0, 0, 0
            w.position[order] = np.arange(m)
    assert min(found, tied) > 0
    assert deep > 0 or n < 20


@pytest.mark.parametrize(("left", "repaired"), [(3 * DEPTH - 1, False), (5 * DEPTH, True)])
def test_where_a_step_could_log_more_reversals_than_there_is_room_for_nothing_is_done(left, repaired):
    """A step makes up to six moves of up to three reversals."""
    n = 30
    _, units = units_of(cloud(n, 1), candidates="quadrant")
    w = window_of(units, np.random.default_rng(1).permutation(n).astype(np.int32), np.arange(n))
    for city in range(n):
        moves.push(w, city)
    w.state[LOGGED] = w.state[MADE] = LOG - left
    assert (moves.repair(units, w, n, True) > 0.0) == repaired
    assert LOG - left <= w.state[LOGGED] <= LOG
    assert w.ring[1] == 0
    assert not w.queued.any()
