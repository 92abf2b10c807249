/* SPDX-License-Identifier: MIT */
/* Supervisors without memory: a start is refused with SKUA_E_NO_MEMORY and leaves nothing; one that
 * has started goes on when there is memory again; and nobody is left behind at the end. */
#include "wards.h"

#define ROUNDS   80 /* more than there are allocations */
#define CHILDREN 12 /* enough for a growth of the table */

static const skua_child ward_template = {.name = "wards", .type = &ward_type};

static bool is_expected(int error)
{
    return error == 0 || error == SKUA_E_NO_MEMORY;
}

/* Starts children of a template, and has one fail. Returns how many there are. */
static unsigned start_children(skua_pid supervisor)
{
    unsigned started = 0;
    for (size_t i = 0; i < CHILDREN; i++) {
        skua_payload input = ward_input('z');
        const int error = skua_process_submit_with(world_runtime(),
                                                   &(skua_spawn_options){.type = &ward_type,
                                                                         .input = &input,
                                                                         .input_count = 1,
                                                                         .label = "a child",
                                                                         .supervisor = supervisor},
                                                   NULL);
        assert_true(is_expected(error));
        started += error == 0;
    }
    (void)skua_sim_run(world_runtime(), skua_sim_now(world_runtime()) + SKUA_MILLISECOND);
    return started;
}

static void run_without(void (*break_memory)(struct counting_allocator *memory, uint64_t n),
                        uint64_t n)
{
    skua_pid pid;
    world_open_sim(n, SIM_NO_FAULTS);
    wards_open();
    const skua_supervisor *specification =
        specification_copy((skua_supervisor){.name = "top",
                                             .budget = {5, SKUA_SECOND},
                                             WARDS(ward('a'), ward('b')),
                                             .templates = &ward_template,
                                             .template_count = 1});
    struct counting_allocator *memory = &world->api->memory;
    const uint64_t before = counting_allocator_attempts(memory);
    break_memory(memory, n);
    const int error = skua_process_start_supervisor(world_runtime(), specification, &pid);
    assert_true(is_expected(error));
    const unsigned started = error == 0 ? start_children(pid) : 0;
    if (ward_of('a')->lives == 1) {
        (void)ward_tell('a', SKUA_E_USER);
        (void)skua_sim_run(world_runtime(), skua_sim_now(world_runtime()) + SKUA_MILLISECOND);
    }
    const uint64_t attempts = counting_allocator_attempts(memory) - before;
    counting_allocator_fail_never(memory);
    if (error != 0) {
        assert_int_equal(ward_of('z')->starts + ward_of('a')->starts, 0);
        return;
    }
    (void)skua_sim_run(world_runtime(), skua_sim_now(world_runtime()) + 60 * SKUA_SECOND);
    assert_int_equal(ward_of('a')->lives, ward_of('b')->lives); /* both, unless it gave up */
    if (n == ROUNDS) {
        assert_int_equal(started, CHILDREN);
        assert_int_equal(ward_of('z')->lives, CHILDREN);
        assert_in_range(attempts, 10, ROUNDS - 1); /* each had its turn */
    }
    (void)world_terminate(pid);
    (void)skua_sim_run(world_runtime(), skua_sim_now(world_runtime()) + SKUA_SECOND);
    assert_int_equal(ward_of('a')->lives + ward_of('b')->lives + ward_of('z')->lives, 0);
}

TEST(supervisors_keep_their_word_if_one_allocation_fails)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_once, n);
    }
}

TEST(supervisors_keep_their_word_if_all_allocations_fail_from_one_on)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_from, n);
    }
}
