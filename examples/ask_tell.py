"""Ask a colony for tours, evaluate them, and tell it the results."""

from pymoo_gpuaco import GPUMMAS, load_tsp

problem = load_tsp("gr17")
colony = GPUMMAS(n_ants=8, n_elites=3)
colony.setup(problem, termination=("n_gen", 20), seed=1)

while colony.has_next():
    ants = colony.ask()  # the three best tours of this generation, without F
    lengths = problem.tour_lengths(ants.get("X"))  # or an evaluation of yours
    ants.set("F", lengths[:, None])
    colony.tell(infills=ants)  # the colony learns from this F

best = colony.result()
print(f"best tour {best.F[0]:.0f}, best known {problem.best_known:.0f}")
