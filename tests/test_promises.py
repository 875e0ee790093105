"""Every promise of the page "What you can rely on" has tests, and they exist."""
# ruff: noqa: E501

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "promises.md"

# promise -> the test files or tests that check it
PROMISES = {
    "Every returned tour is a permutation of the cities, and its length is exactly `problem.tour_length(tour)`.": (
        "tests/test_default_arguments.py::test_a_tour_is_a_permutation_of_exactly_its_length",
        "tests/test_default_arguments.py::test_solve_gives_a_tour_of_exactly_its_length",
        "tests/test_engines.py",
        "tests/test_every_tour.py",
        "tests/test_extremes.py::test_drawn_settings_on_drawn_instances",
    ),
    "A cycle has one length, bit by bit: it depends neither on the first city nor, with symmetric distances, on the direction.": (
        "tests/test_tsp_problem.py::test_a_cycle_has_one_length_wherever_it_begins_and_whichever_way_it_goes",
        "tests/test_tsp_problem.py::test_an_asymmetric_tour_has_one_length_wherever_it_begins",
        "tests/test_tsp_problem.py::test_compiled_code_adds_up_in_the_same_order",
    ),
    "Local search ends with any weights, because a move counts only if it gains more than rounding error.": (
        "tests/test_scales.py::test_a_search_among_forbidden_edges_ends",
    ),
    "The unit does not matter: scaling the cities by a power of two changes no bit of a tour, and any other unit gives equally good tours.": (
        "tests/test_scales.py::test_a_unit_that_is_a_power_of_two_changes_no_bit",
        "tests/test_scales.py::test_tours_are_as_good_in_every_unit",
        "tests/test_scales.py::test_climbers_make_the_same_moves_in_any_power_of_two",
        "tests/test_scales.py::test_the_memetic_search_makes_the_same_tours_of_cities_within_one_and_within_a_ten_to_the_thirtieth",
    ),
    "A lower bound is never above the optimum, and a tour that is reported as proven is optimal.": (
        "tests/test_magnitudes.py",
    ),
    "Every parameter in its documented range gives finite trails with weights from $10^{-300}$ to $10^{30}$; other values raise an error.": (
        "tests/test_extremes.py",
    ),
    "The same seed, backend and versions give the same tours; the [exceptions](pymoo.md#seeds-and-determinism) are named.": (
        "tests/test_default_arguments.py::test_the_same_seed_gives_the_same_run_and_a_copy_goes_on_as_it",
        "tests/test_engines.py",
        "tests/test_time_limits.py::test_time_enough_changes_nothing",
    ),
    "A run that is pickled, copied or saved continues exactly as the uninterrupted run.": (
        "tests/test_default_arguments.py::test_the_same_seed_gives_the_same_run_and_a_copy_goes_on_as_it",
        "tests/test_checkpoint.py",
        "tests/test_fuzz_states.py::test_a_run_from_a_file_goes_on_exactly",
    ),
    "Compiled code of another version of the package is not used.": (
        "tests/test_machine_code.py::test_code_that_was_kept_by_other_sources_is_not_used",
    ),
    '`("time", seconds)` ends a run in the middle of a generation, and the tours built by then count.': (
        "tests/test_default_arguments.py::test_time_that_is_over_leaves_the_first_tour_and_no_more",
        "tests/test_time_limits.py::test_a_run_ends_in_the_middle_of_a_long_generation",
        "tests/test_time_limits.py::test_trails_of_all_pairs_of_cities_are_set_within_the_limit",
        "tests/test_time_limits.py::test_whole_tours_are_loaded_no_more_once_time_is_over",
        "tests/test_time_limits.py::test_windows_are_laid_out_no_more_once_time_is_over",
        "tests/test_time_limits.py::test_given_tours_in_one_window_are_repaired_no_more_once_time_is_over",
        "tests/test_time_limits.py::test_the_best_tour_takes_over_from_no_more_tours_once_time_is_over",
        "tests/test_population.py::test_no_more_first_tours_are_begun_once_time_is_over",
        "tests/test_custom_objective.py::test_a_generation_of_all_tours_ends_when_time_is_over",
        "tests/test_custom_objective.py::test_the_colony_has_as_many_ants_as_one_whose_engine_searches",
    ),
    "After Ctrl-C the best tour so far is in `algorithm.opt` and `algorithm.result()`, and the run can continue.": (
        "tests/test_interrupts.py",
        "tests/test_default_arguments.py::test_ctrl_c_is_heard_and_leaves_the_best_tour_and_a_run_that_goes_on",
        "tests/test_default_arguments.py::test_a_generation_that_begins_again_after_ctrl_c_loses_no_tour",
        "tests/test_ask_and_tell.py::test_an_interrupt_in_ask_leaves_what_was_told_and_the_next_ask_goes_on",
        "tests/test_memetic_engines.py::test_an_interrupt_while_the_first_tours_are_made_leaves_the_greedy_one",
        "tests/test_time_limits.py::test_an_interrupt_ends_a_long_generation_and_keeps_its_best_tour",
        "tests/test_time_limits.py::test_an_interrupt_ends_the_search_of_whole_tours_and_of_windows",
        "tests/test_time_limits.py::test_an_interrupt_while_tours_are_evaluated_leaves_the_best_of_them",
        "tests/test_ppls.py::test_an_interrupt_keeps_the_front",
        "tests/test_ppls.py::test_a_front_that_was_looked_at_after_an_interrupt_is_there_after_the_next_generation_too",
    ),
    "A time limit counts set-up and run, but no compilation; a run whose set-up takes longer ends with its first tour.": (
        "tests/test_set_up_time.py",
        "tests/test_assignment.py::test_a_run_whose_time_is_over_in_set_up_ends_with_a_right_tour",
        "tests/test_assignment.py::test_lists_are_what_they_are_by_then_once_time_is_over",
        "tests/test_assignment.py::test_compiling_takes_nothing_of_the_time_of_set_up",
        "tests/test_compiling.py::test_what_a_compiler_has_made_is_linked_and_kept_as_a_part_of_compiling",
        "tests/test_compiled.py::test_every_function_is_compiled_before_a_run",
        "tests/test_backend_choice.py::test_what_takes_over_is_compiled_for_the_device_that_took_the_run",
    ),
    "A resumed run counts its time limit like any other: building its engine and its first generation are included.": (
        "tests/test_set_up_time.py::test_building_the_engine_of_a_run_that_goes_on_counts_and_compiling_does_not",
        "tests/test_termination.py::test_seconds_are_those_of_the_run_without_a_pause_in_a_file",
    ),
    "A proof of optimality makes no run late, and Ctrl-C interrupts it at once.": (
        "tests/test_lower_bound.py::test_a_proof_makes_no_run_late",
        "tests/test_lower_bound.py::test_a_proof_ends_when_its_time_is_over",
        "tests/test_lower_bound.py::test_an_interrupt_is_heard_while_a_proof_waits_for_a_compiler",
        "tests/test_assignment.py::test_an_assignment_is_given_up_where_time_is_over",
        "tests/test_assignment.py::test_a_proof_takes_the_assignment_that_its_lists_came_with",
        "tests/test_compiled.py::test_every_function_is_compiled_before_a_run",
        "tests/test_display.py::test_no_run_is_held_up_for_a_bound",
    ),
    "A run that continues with another budget anneals on from its temperature, which never rises within a cycle and ends at 0.": (
        "tests/test_schedule.py",
    ),
    "An interrupt at any moment leaves the process able to start the next run.": (
        "tests/test_threads.py::test_an_interrupt_at_any_moment_leaves_the_pool_usable",
        "tests/test_set_up_whole.py::test_an_interrupt_in_the_middle_of_loading_compiled_code_is_heard_and_the_next_run_works",
    ),
    "A process may fork while other threads build tours, compile or search for CUDA devices.": (
        "tests/test_threads.py",
        "tests/test_set_up_whole.py::test_a_child_forked_while_a_default_run_is_set_up_sets_one_up_too",
        "tests/test_set_up_whole.py::test_a_child_does_not_wait_for_what_compiles_beside_its_parent",
    ),
    "`GPUMemetic` ends within a few rounds of a time limit or Ctrl-C.": ("tests/test_memetic_engines.py",),
    "A long generation of a colony is split into several launches, and the tours built by then count.": (
        "tests/test_cuda_slices.py",
        "tests/test_cuda_ends.py::test_a_walk_over_lists_is_ended_and_no_search_begins_on_its_tours",
    ),
    "A time limit changes no tour of a generation that completes.": (
        "tests/test_cuda_slices.py::test_time_enough_changes_nothing",
        "tests/test_cuda_slices.py::test_the_usual_colony_is_not_cut",
    ),
    "`GPU2OptIHC` shortens its last launch to the time that remains.": (
        "tests/test_cuda_slices.py::test_climbers_do_less_where_time_is_short",
    ),
    "A kernel whose blocks wait for each other gives up after ten seconds and raises `DeviceFailed`; the next call works.": (
        "tests/test_cuda_barriers.py",
    ),
    "A process that is interrupted in set-up ends with an exit status, not with a signal.": (
        "tests/test_cuda_exit.py",
        "tests/test_cuda_nvcc.py::test_compilers_of_an_abandoned_set_up_end_with_the_process",
    ),
    "Too little device memory raises `MemoryError` that names what needs less, and all memory is freed.": (
        "tests/test_cuda_failures.py::test_no_memory_at_any_allocation_of_the_set_up",
        "tests/test_cuda_failures.py::test_no_memory_at_any_allocation_of_a_generation",
        "tests/test_cuda_focused.py::test_a_search_whose_arrays_were_not_all_taken_goes_on",
    ),
    "A failing kernel raises `DeviceFailed` with the driver's message, and the best tour so far stays available.": (
        "tests/test_cuda_failures.py::test_a_launch_that_fails_is_told_and_the_next_run_is_right",
        "tests/test_cuda_failures.py::test_a_run_that_fails_keeps_its_best_tour",
    ),
    'After a failure that makes CUDA unusable in a process, every engine says so and `backend="auto"` continues on the CPU.': (
        "tests/test_cuda_failures.py::test_a_context_that_a_kernel_has_spoilt_is_not_used_again",
        "tests/test_cuda_failures.py::test_after_a_spoilt_context_auto_goes_on_with_the_cpu_and_says_why_once",
    ),
    "A missing, failing, killed or hanging nvcc gives one short error with its message and leaves no process behind.": (
        "tests/test_cuda_nvcc.py::test_a_compiler_that_fails_says_so_shortly",
        "tests/test_cuda_nvcc.py::test_an_interrupt_ends_all_compilers",
    ),
    "A kernel cache that cannot be written costs one warning, and a damaged entry is compiled again.": (
        "tests/test_cuda_nvcc.py::test_a_cache_that_cannot_be_written_is_one_warning",
        "tests/test_cuda_nvcc.py::test_a_damaged_cache_entry_is_compiled_anew_and_replaced",
        "tests/test_cuda_nvcc.py::test_processes_that_compile_the_same_leave_one_whole_entry",
    ),
    "An empty `CUDA_VISIBLE_DEVICES` or a missing device is named together with the devices that exist.": (
        "tests/test_cuda_failures.py::test_hidden_devices_are_named",
        "tests/test_cuda_failures.py::test_a_device_that_is_not_there_is_named_with_those_that_are",
    ),
    "[Islands](islands.md) in the reproducible mode give the same tours for the same seed, even if a worker is killed or the run is resumed.": (
        "tests/test_islands.py::test_the_same_seed_gives_the_same_tours_in_the_reproducible_mode",
        "tests/test_islands.py::test_a_run_from_a_file_goes_on_as_if_it_had_not_stopped",
        "tests/test_islands_failures.py::test_a_worker_that_is_killed_changes_no_tour_in_the_reproducible_mode",
    ),
    "A killed or stopped worker loses no best tour, and the other islands do not wait for it.": (
        "tests/test_islands_failures.py::test_an_island_that_is_lost_begins_anew_from_the_best_tours",
        "tests/test_islands_failures.py::test_nobody_waits_for_a_worker_that_is_stopped",
        "tests/test_islands_migration.py::test_an_island_whose_annealing_is_over_waits_for_those_it_receives_from",
    ),
    "If the scheduler dies, the run ends with its best tour and can continue with another scheduler.": (
        "tests/test_islands_failures.py::test_a_scheduler_that_dies_ends_the_run_with_the_best_tour_and_it_can_go_on",
    ),
    "A cluster without workers never holds a run beyond its time limit.": (
        "tests/test_islands_failures.py::test_a_scheduler_without_workers_is_an_error_within_the_limit_of_time",
        "tests/test_islands_failures.py::test_workers_that_are_stopped_before_the_first_tour",
    ),
    "Only holders of a run's keys can connect to its local scheduler and workers; the keys are in no file, command line or environment variable.": (
        "tests/test_islands_keys.py",
    ),
    "No local worker outlives its run.": (
        "tests/test_islands_failures.py::test_no_process_outlives_a_run_that_is_interrupted_or_killed",
    ),
    "A damaged input file, even a gzip bomb, raises `ValueError` that names the file, within memory bounded by its `DIMENSION`.": (
        "tests/test_fuzz_files.py",
    ),
    "`checkpoint.save` writes a complete file or leaves the old one, even if the process is killed or the disk is full.": (
        "tests/test_fuzz_states.py::test_what_was_there_is_replaced_and_never_written_into",
        "tests/test_fuzz_states.py::test_what_cannot_be_written_leaves_what_was_there",
        "tests/test_fuzz_states.py::test_a_killed_writer_leaves_a_whole_file",
    ),
    "A damaged checkpoint raises `ValueError` before anything has changed.": ("tests/test_fuzz_states.py",),
    "Loading a checkpoint runs no code from the file.": (
        "tests/test_checkpoint_harm.py::test_a_pickle_is_not_looked_at",
        "tests/test_checkpoint_harm.py::test_a_name_that_is_not_known_is_refused",
        "tests/test_checkpoint_harm.py::test_mutated_records_are_a_run_or_one_clear_error",
        "tests/test_checkpoint_harm.py::test_no_file_names_a_scheduler",
    ),
    "Checkpoints hold every run of this package's algorithms and problems with pymoo's terminations and outputs.": (
        "tests/test_checkpoint.py",
    ),
    "The command line writes the tour before anything else, and prints it if the disk is full.": (
        "tests/test_cli_interrupts.py::test_the_tour_comes_before_the_state",
        "tests/test_cli_interrupts.py::test_a_state_on_a_full_disk_leaves_the_tour_on_the_screen",
        "tests/test_cli_interrupts.py::test_a_second_run_that_raises_leaves_the_tour_of_the_first",
        "tests/test_cli_interrupts.py::test_a_run_that_raises_in_a_generation_leaves_its_tour",
    ),
    "A call of `setup` or `tell` that raises leaves the object as it was.": (
        "tests/test_pymoo_copies.py::test_setup_that_raises_leaves_the_object_as_it_was",
        "tests/test_ask_and_tell.py",
    ),
    "A wrong argument is named together with its value and the allowed values.": (
        "tests/test_bad_input.py",
        "tests/test_parameters.py",
        "tests/test_doors.py",
    ),
    "A cache of compiled code that cannot be read or written costs time and one warning.": (
        "tests/test_machine_code.py",
    ),
}


def test_the_page_and_the_tests_name_the_same_promises():
    if not PAGE.is_file():
        pytest.skip("no docs beside the tests")
    promises = re.findall(r"^- (.+)$", PAGE.read_text(encoding="utf-8"), re.M)
    assert promises == list(PROMISES)
    assert "tests/test_" not in PAGE.read_text(encoding="utf-8").replace("tests/test_promises.py", "")


@pytest.mark.parametrize("promise", PROMISES)
def test_the_tests_of_a_promise_exist(promise):
    assert PROMISES[promise]
    for name in PROMISES[promise]:
        file, _, test = name.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in text, name
