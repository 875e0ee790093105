/*
 * The inner loops of the CPU engine in C, as the yardstick of benchmarks/cpu_vs_c.py and benchmarks/cpu_kicks.py.
 *
 * MMAS construction with candidate lists, 2-opt + Or-opt with neighbour lists, a position array and a work queue, and
 * the kicks of window search: the method, the random numbers and the ties are those of pymoo_gpuaco/backends/cpu, so
 * that both give the same tours. How it is done is what C makes easy: only EUC_2D, whole numbers for its lengths, points of two
 * coordinates next to each other, and everything of one file inlined.
 */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CANDIDATES = 64, LONGEST_SEGMENT = 3 };

typedef struct {
    double x, y;
} Point;

/* TSPLIB's EUC_2D. */
static inline int32_t distance(const Point *points, int32_t i, int32_t j) {
    const double dx = points[i].x - points[j].x, dy = points[i].y - points[j].y;
    return (int32_t)(sqrt(dx * dx + dy * dy) + 0.5);
}

static int64_t tour_length(const Point *points, int32_t n, const int32_t *tour) {
    int64_t total = distance(points, tour[n - 1], tour[0]);
    for (int32_t p = 1; p < n; p++)
        total += distance(points, tour[p - 1], tour[p]);
    return total;
}

/* ---- Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011), one stream an ant ---------------------------------- */

typedef struct {
    uint32_t key[2], block, use, ant, words[4]; /* use: what the numbers are for */
    int used;
} Stream;

static inline uint32_t next_word(Stream *s) {
    if (s->used == 4) {
        uint32_t c0 = s->block++, c1 = s->use, c2 = s->ant, c3 = 0;
        uint32_t k0 = s->key[0], k1 = s->key[1];
        for (int round = 0; round < 10; round++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
            c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
            c1 = (uint32_t)p1;
            c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
            c3 = (uint32_t)p0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        s->words[0] = c0;
        s->words[1] = c1;
        s->words[2] = c2;
        s->words[3] = c3;
        s->used = 0;
    }
    return s->words[s->used++];
}

enum { FOR_CONSTRUCTION = 0, FOR_KICKS = 1 };

static inline Stream new_stream(uint64_t key, uint32_t ant, uint32_t use) {
    return (Stream){{(uint32_t)key, (uint32_t)(key >> 32)}, 0, use, ant, {0, 0, 0, 0}, 4};
}

static inline double next_uniform(Stream *s) { return (next_word(s) + 0.5) * 0x1p-32; }

static inline int32_t next_below(Stream *s, int32_t n) {
    return (int32_t)(((uint64_t)next_word(s) * (uint64_t)n) >> 32);
}

/* ---- construction --------------------------------------------------------------------------------------------- */

typedef struct {
    uint8_t *visited;
    int32_t *open, *place; /* open[place[c]] == c for every open city c */
    int32_t left;
} Tabu;

static inline void visit(Tabu *t, int32_t city) {
    const int32_t last = t->open[--t->left], place = t->place[city];
    t->visited[city] = 1;
    t->open[place] = last;
    t->place[last] = place;
}

/* Roulette wheel over one candidate list, -1 if all of it is visited. */
static inline int32_t roulette(int32_t k, const int32_t *candidates, const double *weights, const Tabu *t,
                               Stream *rng) {
    /* The open ones move to the front without a branch: which ones are open no processor can predict. */
    int32_t city[MOST_CANDIDATES];
    double weight[MOST_CANDIDATES];
    int32_t m = 0;
    for (int32_t r = 0; r < k; r++) {
        city[m] = candidates[r];
        weight[m] = weights[r];
        m += !t->visited[candidates[r]];
    }
    if (m == 0)
        return -1;
    double total = 0.0;
    for (int32_t r = 0; r < m; r++)
        total += weight[r];
    if (total <= 0.0)
        return -1;
    double spin = next_uniform(rng) * total;
    for (int32_t r = 0; r < m - 1; r++) {
        spin -= weight[r];
        if (spin <= 0.0 && weight[r] > 0.0)
            return city[r];
    }
    return city[m - 1];
}

/* Open city with the largest tau eta^2, ties to the lower number. */
static int32_t best_remaining(const Point *points, const float *tau, int32_t i, const Tabu *t, double shortest) {
    int32_t chosen = t->open[0];
    double best = -1.0;
    const Point here = points[i];
    /* Weights of a block first, in a loop without branches that the compiler turns into vector instructions. */
    enum { BLOCK = 64 };
    double weight[BLOCK];
    for (int32_t first = 0; first < t->left; first += BLOCK) {
        const int32_t *open = t->open + first;
        const int32_t m = t->left - first < BLOCK ? t->left - first : BLOCK;
        for (int32_t p = 0; p < m; p++) {
            const Point there = points[open[p]];
            const double dx = here.x - there.x, dy = here.y - there.y;
            const double rounded = (double)(int32_t)(sqrt(dx * dx + dy * dy) + 0.5);
            const double eta = 1.0 / (rounded > shortest ? rounded : shortest);
            weight[p] = tau[open[p]] * (eta * eta);
        }
        for (int32_t p = 0; p < m; p++) {
            if (weight[p] > best || (weight[p] == best && open[p] < chosen)) {
                best = weight[p];
                chosen = open[p];
            }
        }
    }
    return chosen;
}

/*
 * Ants first .. last-1: MMAS with alpha = 1 and beta = 2. neighbours and weights are (n, k), tau (n, n),
 * tours (last, n). Returns 0, or -1 without memory.
 */
int build_tours(int32_t n, int32_t k, const Point *points, const int32_t *neighbours, const double *weights,
                const float *tau, double shortest, uint64_t key, int32_t first, int32_t last, int32_t *tours) {
    Tabu t = {malloc((size_t)n), malloc((size_t)n * sizeof(int32_t)), malloc((size_t)n * sizeof(int32_t)), 0};
    if (k > MOST_CANDIDATES || !t.visited || !t.open || !t.place) {
        free(t.visited), free(t.open), free(t.place);
        return -1;
    }
    for (int32_t ant = first; ant < last; ant++) {
        Stream rng = new_stream(key, (uint32_t)ant, FOR_CONSTRUCTION);
        int32_t *tour = tours + (size_t)ant * n;
        memset(t.visited, 0, (size_t)n);
        for (int32_t c = 0; c < n; c++)
            t.open[c] = t.place[c] = c;
        t.left = n;
        int32_t i = tour[0] = next_below(&rng, n);
        visit(&t, i);
        for (int32_t p = 1; p < n; p++) {
            int32_t j = roulette(k, neighbours + (size_t)i * k, weights + (size_t)i * k, &t, &rng);
            if (j < 0)
                j = best_remaining(points, tau + (size_t)i * n, i, &t, shortest);
            tour[p] = i = j;
            visit(&t, i);
        }
    }
    free(t.visited), free(t.open), free(t.place);
    return 0;
}

/* ---- local search --------------------------------------------------------------------------------------------- */

typedef struct {
    int32_t n, k;
    const Point *points;
    const int32_t *neighbours, *near; /* (n, k): cities and their distances, ascending */
    int32_t *tour, *position;         /* position[tour[p]] == p */
    int32_t *queue;                   /* ring of n cities to look at */
    uint8_t *queued;
    int32_t head, count;
} Search;

static inline int32_t after(const Search *s, int32_t city) {
    const int32_t p = s->position[city] + 1;
    return s->tour[p < s->n ? p : 0];
}

static inline int32_t before(const Search *s, int32_t city) {
    const int32_t p = s->position[city];
    return s->tour[(p > 0 ? p : s->n) - 1];
}

static inline void push(Search *s, int32_t city) {
    if (s->queued[city])
        return;
    int32_t slot = s->head + s->count++;
    if (slot >= s->n)
        slot -= s->n;
    s->queue[slot] = city;
    s->queued[city] = 1;
}

static inline int32_t pop(Search *s) {
    const int32_t city = s->queue[s->head];
    s->head = s->head + 1 < s->n ? s->head + 1 : 0;
    s->count--;
    s->queued[city] = 0;
    return city;
}

/* Reverse the path first .. last behind its tour neighbour outside, or the rest of the tour where that is shorter. */
static void reverse_path(Search *s, int32_t outside, int32_t first, int32_t last) {
    const int32_t n = s->n;
    int32_t *restrict tour = s->tour, *restrict position = s->position;
    const bool ahead = after(s, outside) == first;
    int32_t i = position[ahead ? first : last], j = position[ahead ? last : first];
    int32_t count = j - i + 1;
    if (count <= 0)
        count += n;
    if (2 * count > n) {
        const int32_t start = j + 1 < n ? j + 1 : 0;
        j = i > 0 ? i - 1 : n - 1;
        i = start;
        count = n - count;
    }
    for (int32_t swaps = count / 2; swaps > 0; swaps--) {
        const int32_t u = tour[i], v = tour[j];
        tour[i] = v;
        position[v] = i;
        tour[j] = u;
        position[u] = j;
        i = i + 1 < n ? i + 1 : 0;
        j = j > 0 ? j - 1 : n - 1;
    }
}

/* Apply the best improving move that gives a nearer tour neighbour to a; false if there is none. */
static bool improve_city(Search *s, int32_t a) {
    const Point *points = s->points;
    const int32_t *neighbours = s->neighbours + (size_t)a * s->k, *near = s->near + (size_t)a * s->k;
    const int32_t longest = s->n - 3 < LONGEST_SEGMENT ? s->n - 3 : LONGEST_SEGMENT;
    int32_t best = 0; /* change of length */
    /* the best move so far: 2-opt reverses x1 .. x2 behind x0, Or-opt carries x0 .. x1 behind x2 */
    enum { NONE, TWO_OPT, OR_OPT } kind = NONE;
    int32_t x0 = a, x1 = a, x2 = a;
    bool flip = false;

    for (int direction = 0; direction < 2; direction++) {
        const bool forward = direction == 0;
        const int32_t b = forward ? after(s, a) : before(s, a);
        const int32_t d_ab = distance(points, a, b);
        if (d_ab <= near[0])
            continue;
        /* the segments of 1 .. longest cities that end at a and leave b: other end, and what joining costs */
        int32_t end[LONGEST_SEGMENT], joined[LONGEST_SEGMENT];
        for (int32_t m = 0, e = a; m < longest; m++) {
            const int32_t f = forward ? before(s, e) : after(s, e);
            end[m] = e;
            joined[m] = distance(points, b, f) - distance(points, e, f) - d_ab;
            e = f;
        }
        for (int32_t r = 0; r < s->k && near[r] < d_ab; r++) {
            const int32_t c = neighbours[r], d_ac = near[r];
            const int32_t c_next = after(s, c), c_prev = before(s, c);
            const int32_t d_next = distance(points, c, c_next), d_prev = distance(points, c, c_prev);
            /* 2-opt: (a, b) (c, d) -> (a, c) (b, d) */
            const int32_t d = forward ? c_next : c_prev;
            const int32_t delta = d_ac - d_ab + distance(points, b, d) - (forward ? d_next : d_prev);
            if (delta < best && d != a) {
                best = delta;
                kind = TWO_OPT;
                x0 = forward ? a : b;
                x1 = forward ? b : a;
                x2 = forward ? c : d;
            }
            /* Or-opt: the segment between c and one of its tour neighbours, a next to c */
            const int32_t d_longer = d_next > d_prev ? d_next : d_prev;
            for (int32_t m = 0; m < longest; m++) {
                const int32_t e = end[m];
                if (e == c)
                    break;
                const int32_t gained = joined[m] + d_ac;
                if (gained - d_longer >= best)
                    continue;
                const int32_t s1 = forward ? e : a, s2 = forward ? a : e;
                const int32_t ahead = gained + distance(points, e, c_next) - d_next;
                if (ahead < best && c_next != s1) {
                    best = ahead;
                    kind = OR_OPT;
                    x0 = s1, x1 = s2, x2 = c, flip = forward;
                }
                const int32_t behind = gained + distance(points, e, c_prev) - d_prev;
                if (behind < best && c_prev != s2) {
                    best = behind;
                    kind = OR_OPT;
                    x0 = s1, x1 = s2, x2 = c_prev, flip = !forward;
                }
            }
        }
    }
    if (kind == NONE)
        return false;
    push(s, x0);
    push(s, x1);
    push(s, x2);
    push(s, after(s, x2));
    if (kind == TWO_OPT) {
        reverse_path(s, x0, x1, x2);
        return true;
    }
    const int32_t p = before(s, x0), next = after(s, x1);
    push(s, p);
    push(s, next);
    /* p [x0..x1 next..x2] -> p [x2..next x1..x0] -> p [next..x2] x1..x0 (-> next..x2 x0..x1) */
    reverse_path(s, p, x0, x2);
    reverse_path(s, p, x2, next);
    if (!flip && x0 != x1)
        reverse_path(s, x2, x1, x0);
    return true;
}

/*
 * Ants first .. last-1: improve tours (last, n) in place and write their lengths. reference is (n, 2): the tour
 * neighbours of the shortest tour so far, or -1; cities that still have both are not looked at.
 * Returns 0, or -1 without memory.
 */
int improve_tours(int32_t n, int32_t k, const Point *points, const int32_t *neighbours, const int32_t *near,
                  const int32_t *reference, int32_t first, int32_t last, int32_t *tours, int64_t *lengths) {
    Search s = {.n = n, .k = k, .points = points, .neighbours = neighbours, .near = near};
    s.position = malloc((size_t)n * sizeof(int32_t));
    s.queue = malloc((size_t)n * sizeof(int32_t));
    s.queued = calloc((size_t)n, 1);
    const bool enough = s.position && s.queue && s.queued;
    for (int32_t ant = first; enough && ant < last; ant++) {
        s.tour = tours + (size_t)ant * n; /* improved where it lies */
        for (int32_t p = 0; p < n; p++)
            s.position[s.tour[p]] = p;
        for (int32_t p = 0; p < n; p++) {
            const int32_t city = s.tour[p], prev = s.tour[(p > 0 ? p : n) - 1], next = s.tour[p + 1 < n ? p + 1 : 0];
            const int32_t *old = reference + 2 * (size_t)city;
            if (!((old[0] == prev && old[1] == next) || (old[0] == next && old[1] == prev)))
                push(&s, city);
        }
        while (s.count > 0) {
            const int32_t city = pop(&s);
            while (improve_city(&s, city)) {
            }
        }
        lengths[ant] = tour_length(points, n, s.tour);
    }
    free(s.position), free(s.queue), free(s.queued);
    return enough ? 0 : -1;
}

/* ---- kicks ------------------------------------------------------------------------------------------------------ */

/*
 * Ten kicks near one another, then ten elsewhere. A kick: a double bridge of three short stretches, repaired from a
 * queue of the eight cities that it touches: 3-opt moves over candidate lists, two basis moves deeper where none closes
 * with a gain (Helsgaun, European Journal of Operational Research 126, 2000, section 4.3). Kept if the tour is not
 * longer, or by the rule of Metropolis; else all reversals are taken back. A window is a tour of m cities; a city's
 * mate is the other end of a link that may not be broken, or -1.
 */

enum { STAY = 10, SPREAD = 50, DRAWS = 20, DEPTH = 6, MOST_FLIPS = 4 * DEPTH, LOG = 1 << 14, LONG_PATH = 1000 };

typedef struct {
    double x, y;
    int32_t pi, mate;
} Place;

typedef struct {
    int32_t m, k;
    const Place *place;
    const int32_t *near, *cost; /* (m, k): candidates, -1 behind the last, and what the edges to them cost */
    int32_t *order, *where;     /* where[order[p]] == p */
    int32_t *queue;             /* ring of m cities to look at */
    uint8_t *queued;
    int32_t head, count;
    int32_t (*log)[2]; /* (LOG, 2): first position and number of positions of a reversal */
    int32_t logged, made; /* reversals in the log, and those of them that are made; the others lie behind */
} Kicks;

/* A basis move: the edges (t2, t3) and (t4, t5) in, (t3, t4) and (t5, t6) out. */
typedef struct {
    enum { NO_MOVE, TWO_OPT_MOVE, AFTER_TWO_OPT, SWAP, TURN_BOTH } kind;
    int32_t t3, t4, t5, t6;
} Move;

static inline int32_t edge_cost(const Kicks *w, int32_t a, int32_t b) {
    const Place *p = w->place + a, *q = w->place + b;
    const double dx = p->x - q->x, dy = p->y - q->y;
    return (int32_t)(sqrt(dx * dx + dy * dy) + 0.5) + (p->pi + q->pi);
}

/* Position to which reversal r of the log takes what is at position p, and the other way round. */
static inline int32_t through(const Kicks *w, int32_t r, int32_t p) {
    const int32_t first = w->log[r][0], count = w->log[r][1];
    int32_t d = p - first;
    d += d < 0 ? w->m : 0;
    if (d >= count)
        return p;
    p = first + count - 1 - d;
    return p >= w->m ? p - w->m : p;
}

/* Position of a city in the tour that all reversals of the log make. */
static inline int32_t position_of(const Kicks *w, int32_t city) {
    int32_t p = w->where[city];
    for (int32_t r = w->made; r < w->logged; r++)
        p = through(w, r, p);
    return p;
}

/* City beside a position of that tour. */
static inline int32_t beside(const Kicks *w, int32_t p, int32_t direction) {
    p += direction;
    if (p == w->m)
        p = 0;
    else if (p < 0)
        p = w->m - 1;
    for (int32_t r = w->logged - 1; r >= w->made; r--)
        p = through(w, r, p);
    return w->order[p];
}

static inline void queue_city(Kicks *w, int32_t city) {
    if (w->queued[city])
        return;
    const int32_t slot = w->head + w->count++;
    w->queue[slot < w->m ? slot : slot - w->m] = city;
    w->queued[city] = 1;
}

static void reverse(Kicks *w, int32_t i, int32_t count) {
    const int32_t m = w->m;
    int32_t *restrict order = w->order, *restrict where = w->where;
    int32_t j = i + count - 1;
    if (j >= m)
        j -= m;
    for (int32_t swaps = count / 2; swaps > 0; swaps--) {
        const int32_t a = order[i], b = order[j];
        order[i] = b;
        where[b] = i;
        order[j] = a;
        where[a] = j;
        i = i + 1 < m ? i + 1 : 0;
        j = j > 0 ? j - 1 : m - 1;
    }
}

/* Log the reversal of the path from position i to j, or of the rest of the tour where that is shorter; return the
 * direction then meant. */
static int32_t log_path(Kicks *w, int32_t direction, int32_t i, int32_t j) {
    if (direction < 0) {
        const int32_t first = j;
        j = i;
        i = first;
    }
    int32_t count = j - i + 1;
    if (count <= 0)
        count += w->m;
    if (2 * count > w->m) {
        i = j + 1 < w->m ? j + 1 : 0;
        count = w->m - count;
        direction = -direction;
    }
    w->log[w->logged][0] = i;
    w->log[w->logged++][1] = count;
    return direction;
}

/* Make the reversals that are only logged. */
static void make_logged(Kicks *w) {
    for (; w->made < w->logged; w->made++)
        reverse(w, w->log[w->made][0], w->log[w->made][1]);
}

/* Turn the path from a to b around. */
static int32_t flip_path(Kicks *w, int32_t direction, int32_t a, int32_t b) {
    direction = log_path(w, direction, w->where[a], w->where[b]);
    make_logged(w);
    return direction;
}

/* The same, only logged if the path is long or another one is. */
static int32_t flip_later(Kicks *w, int32_t direction, int32_t a, int32_t b) {
    const int32_t logged = w->logged;
    direction = log_path(w, direction, position_of(w, a), position_of(w, b));
    if (w->made == logged && w->log[logged][1] < LONG_PATH)
        make_logged(w);
    return direction;
}

static void take_back(Kicks *w, int32_t until) {
    while (w->made > until) {
        w->made--;
        reverse(w, w->log[w->made][0], w->log[w->made][1]);
    }
    w->logged = until;
}

static inline bool put_in(int32_t (*added)[2], int32_t count, int32_t a, int32_t b) {
    for (int32_t e = 0; e < count; e++)
        if ((added[e][0] == a && added[e][1] == b) || (added[e][0] == b && added[e][1] == a))
            return true;
    return false;
}

/*
 * Look for a basis move from t1 and t2; open is what the edges out are longer than the edges in. Returns the gain of
 * the first move that closes with one, else the most that a move of three edges leaves to close.
 */
static int32_t find_move(const Kicks *w, int32_t direction, int32_t t1, int32_t t2, int32_t open, int32_t (*added)[2],
                         int32_t count, Move *found, bool *closes) {
    const int32_t m = w->m, k = w->k, origin = position_of(w, t2);
    const int32_t *near2 = w->near + (size_t)t2 * k, *cost2 = w->cost + (size_t)t2 * k;
    int32_t best = 0;
    *closes = true;
    for (int32_t r = 0; r < k && near2[r] >= 0; r++) {
        const int32_t t3 = near2[r], g1 = open - cost2[r];
        if (g1 <= 0)
            break; /* candidates come in the order of their costs */
        if (t3 == t1)
            continue;
        const int32_t p3 = position_of(w, t3), before3 = beside(w, p3, -direction), after3 = beside(w, p3, direction);
        if (before3 == t2)
            continue;
        int32_t s3 = (p3 - origin) * direction;
        s3 += s3 < 0 ? m : 0;
        for (int side = 0; side < 2; side++) {
            const int32_t t4 = side == 0 ? before3 : after3;
            if (w->place[t3].mate == t4 || (side == 1 && t4 == t2) || put_in(added, count, t3, t4))
                continue;
            const int32_t g2 = g1 + edge_cost(w, t3, t4);
            if (side == 0) {
                const int32_t gain = g2 - edge_cost(w, t4, t1);
                if (gain > 0) {
                    *found = (Move){TWO_OPT_MOVE, t3, t4, -1, -1};
                    return gain;
                }
            }
            const int32_t *near4 = w->near + (size_t)t4 * k, *cost4 = w->cost + (size_t)t4 * k;
            for (int32_t s = 0; s < k && near4[s] >= 0; s++) {
                const int32_t t5 = near4[s], g3 = g2 - cost4[s];
                if (g3 <= 0)
                    break;
                if (t5 == t3)
                    continue;
                const int32_t p5 = position_of(w, t5), ahead = beside(w, p5, direction), behind = beside(w, p5, -direction);
                if (ahead == t4 || behind == t4)
                    continue;
                int32_t s5 = (p5 - origin) * direction;
                s5 += s5 < 0 ? m : 0;
                if (side == 1 && s5 > s3)
                    continue; /* t4 cuts the tour in two: t5 and t6 must lie in the piece from t2 to t3 */
                for (int choice = 0; choice <= side; choice++) {
                    int32_t t6;
                    Move move = {AFTER_TWO_OPT, t3, t4, t5, -1};
                    if (side == 0) {
                        t6 = s5 >= s3 ? behind : ahead;
                        if (t6 == t1)
                            continue;
                    } else {
                        move.kind = choice == 0 ? SWAP : TURN_BOTH;
                        t6 = choice == 0 ? ahead : behind;
                        if (s5 == (choice == 0 ? s3 : 0))
                            continue;
                    }
                    if (w->place[t5].mate == t6 || put_in(added, count, t5, t6))
                        continue;
                    const int32_t left = g3 + edge_cost(w, t5, t6), gain = left - edge_cost(w, t6, t1);
                    move.t6 = t6;
                    if (gain > 0) {
                        *found = move;
                        return gain;
                    }
                    if (left > best) {
                        *found = move;
                        best = left;
                    }
                }
            }
        }
    }
    *closes = false;
    return best;
}

static int32_t make_move(Kicks *w, int32_t direction, int32_t t2, const Move *v) {
    switch (v->kind) {
    case SWAP:
        direction = flip_later(w, direction, t2, v->t3);
        direction = flip_later(w, direction, v->t3, v->t6);
        return flip_later(w, direction, v->t5, t2);
    case TURN_BOTH:
        direction = flip_later(w, direction, t2, v->t6);
        return flip_later(w, direction, v->t5, v->t3);
    case AFTER_TWO_OPT:
        direction = flip_later(w, direction, t2, v->t4);
        return flip_later(w, direction, v->t4, v->t6);
    default:
        return flip_later(w, direction, t2, v->t4);
    }
}

/* Make a move from t1 that shortens the tour and return the gain, 0 where there is none. */
static int32_t improve_from(Kicks *w, int32_t t1) {
    for (int side = 0; side < 2; side++) {
        int32_t direction = side == 0 ? 1 : -1, t2 = beside(w, w->where[t1], direction);
        if (w->place[t1].mate == t2)
            continue;
        const int32_t start = w->logged;
        int32_t left = edge_cost(w, t1, t2), added[2 * DEPTH][2], count = 0;
        for (int level = 0; level < DEPTH; level++) {
            Move move = {NO_MOVE, -1, -1, -1, -1};
            bool closes;
            const int32_t gain = find_move(w, direction, t1, t2, left, added, count, &move, &closes);
            if (gain <= 0 || (level == DEPTH - 1 && !closes))
                break;
            direction = make_move(w, direction, t2, &move);
            added[count][0] = t2, added[count++][1] = move.t3;
            if (move.kind != TWO_OPT_MOVE)
                added[count][0] = move.t4, added[count++][1] = move.t5;
            if (closes) {
                make_logged(w);
                queue_city(w, t1);
                for (int32_t e = 0; e < count; e++) {
                    queue_city(w, added[e][0]);
                    queue_city(w, added[e][1]);
                }
                queue_city(w, move.kind == TWO_OPT_MOVE ? move.t4 : move.t6);
                return gain;
            }
            t2 = move.t6;
            left = gain;
        }
        take_back(w, start);
    }
    return 0;
}

static int64_t repair_window(Kicks *w) {
    int64_t total = 0;
    while (w->count > 0) {
        const int32_t city = w->queue[w->head];
        w->head = w->head + 1 < w->m ? w->head + 1 : 0;
        w->count--;
        w->queued[city] = 0;
        while (w->logged < LOG - MOST_FLIPS) {
            const int32_t gain = improve_from(w, city);
            if (gain <= 0)
                break;
            total += gain;
        }
    }
    return total;
}

static inline int32_t at(const Kicks *w, int32_t p) { return w->order[p < w->m ? p : p - w->m]; }

/* 1 where the link behind position p may not be broken, else 0. */
static inline int32_t is_fixed(const Kicks *w, int32_t p) { return w->place[at(w, p)].mate == at(w, p + 1); }

/* Kick less than SPREAD positions behind ``around``; next to a link that may not be broken the next one is. False if
 * the stretches do not fit. */
static bool make_kick(Kicks *w, int32_t around, int32_t longest, Stream *rng, int32_t *gain) {
    const int32_t m = w->m;
    int32_t p = (around + next_below(rng, SPREAD)) % m;
    p += is_fixed(w, p);
    if (p == m)
        p = 0;
    int32_t x = p + 1 + next_below(rng, longest);
    int32_t y = x + 1 + next_below(rng, longest);
    x += is_fixed(w, x);
    y = y > x + 1 ? y : x + 1;
    y += is_fixed(w, y);
    int32_t z = y + 1 + next_below(rng, longest);
    z += is_fixed(w, z);
    if (z - p >= m - 1)
        return false;
    /* a [b .. c] [d .. e] [f .. g] h becomes a [f .. g] [d .. e] [b .. c] h */
    const int32_t a = at(w, p), b = at(w, p + 1), c = at(w, x), d = at(w, x + 1);
    const int32_t e = at(w, y), f = at(w, y + 1), g = at(w, z), h = at(w, z + 1);
    *gain = edge_cost(w, a, b) - edge_cost(w, a, f) + edge_cost(w, c, d) - edge_cost(w, g, d) + edge_cost(w, e, f) -
            edge_cost(w, e, b) + edge_cost(w, g, h) - edge_cost(w, c, h);
    int32_t direction = flip_path(w, 1, b, g);
    direction = flip_path(w, direction, g, f);
    direction = flip_path(w, direction, e, d);
    flip_path(w, direction, c, b);
    const int32_t touched[] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        queue_city(w, touched[i]);
    return true;
}

/*
 * Make count kicks of stretches of at most longest cities on a window whose cities are all repaired, the temperature
 * falling from hot to cold. order and where (m,) are changed in place; the gain is written. Returns 0, or -1 without
 * memory.
 */
int kick_window(int32_t m, int32_t k, const Place *place, const int32_t *near, const int32_t *cost, int32_t count,
                double hot, double cold, int32_t longest, uint64_t key, int32_t *order, int32_t *where, int64_t *gain) {
    Kicks w = {.m = m, .k = k, .place = place, .near = near, .cost = cost, .order = order, .where = where};
    w.queue = malloc((size_t)m * sizeof(int32_t));
    w.queued = calloc((size_t)m, 1);
    w.log = malloc(LOG * sizeof *w.log);
    const bool enough = w.queue && w.queued && w.log;
    longest = (m - 2) / 3 < longest ? (m - 2) / 3 : longest;
    Stream rng = new_stream(key, 0, FOR_KICKS);
    int64_t total = 0;
    int32_t around = 0;
    for (int32_t trial = 0; enough && trial < count; trial++) {
        int32_t lost = 0;
        bool made = false;
        if (trial % STAY == 0)
            around = next_below(&rng, m);
        w.logged = w.made = 0;
        for (int draw = 0; draw <= DRAWS && !made; draw++)
            made = make_kick(&w, around, longest, &rng, &lost);
        if (!made)
            continue;
        const int64_t won = lost + repair_window(&w);
        const double temperature = hot + (cold - hot) * ((double)trial / count);
        if (won >= 0 || (temperature > 0.0 && won > temperature * log(next_uniform(&rng))))
            total += won;
        else
            take_back(&w, 0);
    }
    *gain = total;
    free(w.queue), free(w.queued), free(w.log);
    return enough ? 0 : -1;
}
