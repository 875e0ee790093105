"""Every promise of the page "What you can rely on" has tests, and they exist."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "promises.md"

#: the beginning of each promise, in the order of the page, and below it the tests that check it
PROMISES = r"""
Every returned tour is a permutation of the
    default_arguments.test_a_tour_is_a_permutation_of_exactly_its_length
    engines.test_tours_are_permutations_and_lengths_exact
    every_tour.test_any_permutation_has_a_length_and_a_number_of_broken_demands
    every_tour.test_every_tour_ever_handed_out_keeps_to_the_demands
    extremes.test_drawn_settings_on_drawn_instances
A cycle has one length, bit by bit: it depends
    tsp_problem.test_a_cycle_has_one_length_wherever_it_begins_and_whichever_way_it_goes
    tsp_problem.test_an_asymmetric_tour_has_one_length_wherever_it_begins
Local search ends with any weights, because a
    scales.test_searches_over_mixed_weights_end_with_exact_lengths
    scales.test_a_climb_passes_over_moves_that_only_rounding_makes
The unit does not matter: scaling the cities by a
    scales.test_a_unit_that_is_a_power_of_two_changes_no_bit
    scales.test_climbers_make_the_same_moves_in_any_power_of_two
A lower bound is never above the optimum, and a
    magnitudes.test_what_is_returned_and_proven_for_up_to_twelve_cities_is_the_optimum
    lower_bound.test_no_bound_of_rounded_sums_is_above_the_shortest_tour
    every_tour.test_no_tour_of_more_cities_is_below_the_bound
Every parameter in its documented range gives
    extremes.test_limits_and_amounts_stay_in_range
    extremes.test_drawn_settings_on_drawn_instances
    parameters.test_other_value_is_refused_by_name_value_and_range
The same seed, backend and versions give the same
    default_arguments.test_the_same_seed_gives_the_same_run_and_a_copy_goes_on_as_it
    engines.test_the_key_decides_everything
    time_limits.test_time_enough_changes_nothing
Runs at once in one process that count
    requests.test_eight_runs_at_once_have_the_tours_of_one_alone
    requests.test_runs_in_progress_share_the_threads_of_the_process
A run that is pickled, copied or saved continues
    default_arguments.test_the_same_seed_gives_the_same_run_and_a_copy_goes_on_as_it
    checkpoint.test_saved_and_loaded_run_goes_on_as_if_nothing_had_happened
    checkpoint.test_copies_taken_between_ask_and_tell_go_on
    fuzz_states.test_a_run_from_a_file_goes_on_exactly
    islands.test_a_run_from_a_file_goes_on_from_the_best_tours
In a checkout, machine code of other sources is
    compiled.test_an_edit_is_built_once_by_processes_that_import_at_once
`("time", seconds)` ends a run in the middle of a
    default_arguments.test_time_that_is_over_leaves_the_first_tour_and_no_more
    time_limits.test_a_run_ends_in_the_middle_of_a_long_generation
    population.test_no_more_first_tours_are_begun_once_time_is_over
    custom_objective.test_a_generation_of_all_tours_ends_when_time_is_over
After Ctrl-C the best tour so far
    interrupts.test_an_interrupt_at_any_moment_loses_no_tour_and_the_run_goes_on
    default_arguments.test_ctrl_c_is_heard_and_leaves_the_best_tour_and_a_run_that_goes_on
    ask_and_tell.test_an_interrupt_in_ask_leaves_what_was_given_and_the_next_ask_goes_on
    memetic_engines.test_an_interrupt_while_the_first_tours_are_made_leaves_the_first_one
    time_limits.test_an_interrupt_ends_a_long_generation_and_keeps_its_best_tour
    ppls.test_an_interrupt_keeps_the_front
A time limit counts set-up and run, but no
    set_up_time.test_a_run_whose_set_up_takes_its_time_ends_with_its_first_tour
    requests.test_a_run_without_time_ends_with_an_improved_tour
    set_up_time.test_compiling_does_not_count
    shortest_assignment.test_a_run_whose_time_is_over_in_set_up_ends_with_a_right_tour
    compiling.test_a_block_is_timed_without_compilers
A resumed run counts its time limit like any
    set_up_time.test_building_the_engine_of_a_run_that_goes_on_counts_and_compiling_does_not
    termination.test_seconds_are_those_of_the_run_without_a_pause_in_a_file
A proof of optimality makes no run late, and
    lower_bound.test_a_proof_makes_no_run_late
    lower_bound.test_an_interrupt_is_heard_while_a_proof_waits_for_a_compiler
    shortest_assignment.test_an_assignment_is_given_up_where_time_is_over
    display.test_no_run_is_held_up_for_a_bound
A run that continues with another budget anneals
    schedule.test_a_run_that_goes_on_with_another_budget_cools_on_and_does_not_begin_again
    schedule.test_shares_never_rise_in_a_cycle_and_stay_within_one
    schedule.test_a_run_ends_without_heat
An interrupt at any moment leaves the process
    threads.test_an_interrupt_at_any_moment_leaves_the_pool_usable
A process may fork while other threads build
    threads.test_a_child_forked_while_threads_look_for_cuda_looks_too
    threads.test_a_child_forked_while_a_thread_compiles_builds_tours
    set_up_whole.test_a_child_forked_while_a_default_run_is_set_up_sets_one_up_too
`GPUMemetic` ends within a few rounds of a time
    memetic_engines.test_without_time_there_are_first_tours_and_no_round
    memetic_engines.test_improving_ends_where_there_is_no_time
A long generation of a colony is split into
    cuda_slices.test_each_launch_builds_what_a_colony_of_its_own_would
    cuda_slices.test_a_run_without_time_counts_the_tours_that_were_built
    cuda_ends.test_kernels_are_ended_when_time_is_over
    cuda_ends.test_kernels_are_ended_by_an_interrupt
A time limit changes no tour of a generation that
    cuda_slices.test_time_enough_changes_nothing
`GPU2OptIHC` shortens its last launch to the time
    cuda_slices.test_climbers_do_less_where_time_is_short
A kernel whose blocks wait for each other gives
    cuda_barriers.test_a_commit_whose_blocks_do_not_meet_fails_and_leaves_the_tours
    cuda_barriers.test_ants_whose_blocks_do_not_meet_fail_and_leave_the_trails
    cuda_barriers.test_blocks_that_do_not_fit_on_the_device_wait_ten_seconds_and_fail
A process that is interrupted in set-up ends with
    cuda_exit.test_a_process_ends_when_no_thread_is_in_the_driver
    cuda_nvcc.test_compilers_of_an_abandoned_set_up_end_with_the_process
Too little device memory raises `MemoryError`
    cuda_failures.test_no_memory_at_any_allocation_of_the_set_up
    cuda_failures.test_no_memory_at_any_allocation_of_a_generation
    cuda_failures.test_too_little_memory_is_refused_before_anything_is_allocated
    cuda_focused.test_more_tours_than_the_memory_holds_are_not_planned
A failing kernel raises `DeviceFailed` with the
    cuda_failures.test_a_launch_that_fails_is_reported_and_the_next_run_is_right
    cuda_failures.test_a_run_that_fails_keeps_its_best_tour
After a failure that makes CUDA unusable in a
    cuda_failures.test_a_context_that_a_kernel_has_spoilt_is_not_used_again
    cuda_failures.test_after_a_spoilt_context_auto_goes_on_with_the_cpu_and_says_why_once
    backend_choice.test_auto_goes_on_with_the_cpu_and_says_why_once
A missing, failing, killed or hanging nvcc gives
    cuda_nvcc.test_a_compiler_that_fails_says_so_shortly
    cuda_nvcc.test_a_compiler_that_does_not_tell_its_version_is_not_waited_for
    cuda_nvcc.test_an_interrupt_ends_all_compilers
    cuda_nvcc.test_without_either_and_with_a_wrong_choice_it_is_reported
A kernel cache that cannot be written costs one
    cuda_nvcc.test_a_cache_that_cannot_be_written_is_one_warning
    cuda_nvcc.test_a_damaged_cache_entry_is_compiled_again_and_replaced
An empty `CUDA_VISIBLE_DEVICES` or a missing
    cuda_failures.test_hidden_devices_are_named
    cuda_failures.test_a_device_that_is_not_there_is_named_with_those_that_are
[Islands](islands.md) in the reproducible mode
    islands.test_the_same_seed_gives_the_same_tours_in_the_reproducible_mode
    islands.test_the_same_seed_gives_the_same_front
A killed or stopped worker loses no best tour,
    islands_failures.test_an_island_that_is_lost_begins_again_from_the_best_tours
    islands_failures.test_no_island_waits_for_a_worker_that_is_stopped
    islands_migration.test_an_interrupt_ends_the_wait_and_keeps_what_was_reported
If the scheduler dies, the run ends with its best
    islands_failures.test_a_scheduler_that_dies_ends_the_run_with_the_best_tour_and_it_can_go_on
A cluster without workers never holds a run
    islands_failures.test_a_scheduler_without_workers_is_an_error_within_the_limit_of_time
    islands_failures.test_workers_that_are_stopped_before_the_first_tour
Only holders of a run's keys can connect to its
    islands.test_a_stranger_is_refused
    islands.test_no_key_is_on_a_command_line_or_in_an_environment
    islands.test_no_key_is_in_a_file
No local worker outlives its run.
    islands_failures.test_no_process_outlives_a_run_that_is_interrupted_or_killed
A damaged input file, even a gzip bomb, raises
    fuzz_files.test_a_mutated_file_is_a_problem_or_a_value_error
    fuzz_files.test_a_gzip_bomb_is_refused_before_it_is_unpacked
`checkpoint.save` writes a complete file or
    fuzz_states.test_what_cannot_be_written_leaves_what_was_there
    fuzz_states.test_a_killed_writer_leaves_a_whole_file
A damaged checkpoint raises `ValueError` before
    fuzz_states.test_a_file_with_a_changed_byte_is_refused_or_gives_the_same_run
    fuzz_states.test_an_engine_takes_a_mutated_state_over_whole_or_not_at_all
    checkpoint_harm.test_mutated_records_are_a_run_or_one_clear_error
Loading a checkpoint runs no code from the file.
    checkpoint_harm.test_the_watch_sees_a_pickle_that_runs_code
    checkpoint_harm.test_a_pickle_is_not_looked_at
    checkpoint_harm.test_a_name_that_is_not_known_is_refused
Checkpoints hold every run of this package's
    checkpoint.test_terminations_come_back
    checkpoint.test_problems_come_back
    checkpoint.test_arguments_come_back
    checkpoint.test_every_kind_of_value_comes_back
The command line writes the tour before anything
    cli_interrupts.test_the_tour_comes_before_the_state
    cli_interrupts.test_a_state_on_a_full_disk_leaves_the_tour_on_the_screen
A call of `setup` or `tell` that raises leaves
    pymoo_copies.test_setup_that_raises_leaves_the_object_as_it_was
    ask_and_tell.test_tell_refuses_what_it_cannot_learn_from_and_the_run_goes_on
A wrong argument is named together with its value
    bad_input.test_number_of_threads_is_checked
    bad_input.test_seed_that_is_none_is_refused_by_name
    parameters.test_other_value_is_refused_by_name_value_and_range
    doors.test_lengths_of_accepted_tours
An argument of the wrong type never reaches
    compiled.test_a_wrong_argument_is_named
"""


@functools.cache
def functions_of(module: str) -> set[str]:
    """Return the names of the test functions of a test file that pytest collects."""
    tree = ast.parse((ROOT / "tests" / f"test_{module}.py").read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test")]
    nodes = [*tree.body, *(node for each in classes for node in each.body)]
    return {
        node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_promise_has_its_tests():
    if not PAGE.is_file():
        pytest.skip("no docs beside the tests")
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^(\S.*)\n((?:    .+\n)+)", PROMISES, re.M)
    for promise, (beginning, tests) in zip(re.findall(r"^- (.+)$", page, re.M), rows, strict=True):
        assert promise.startswith(beginning)
        for module, function in (test.split(".") for test in tests.split()):
            assert function in functions_of(module), f"{module}.{function} of {beginning!r}"
    assert "tests/test_" not in page.replace("tests/test_promises.py", "")
