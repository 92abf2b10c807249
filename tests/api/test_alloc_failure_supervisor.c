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

/* ---- readiness ---- */

/* A supervisor of the test's own. It starts another one, which is ready at its first step, and has
 * no memory left by then: it takes all events that there are. */
struct parent {
    uint64_t attempts; /* at allocations, by the end of the first step */
    bool is_hindered;  /* there were more before the second */
    bool has_heard;    /* that the child is ready */
};

static struct parent parent;

static int start_quiet_child(skua_context *ctx)
{
    static const skua_supervisor quiet = {
        .name = "quiet", .templates = &ward_template, .template_count = 1};
    skua_payload input = skua_supervisor_input(&quiet);
    return skua_spawn_with(ctx,
                           &(skua_spawn_options){.type = skua_supervisor_type(),
                                                 .input = &input,
                                                 .input_count = 1,
                                                 .supervisor = skua_self(ctx)},
                           NULL);
}

static void use_up_events(skua_context *ctx)
{
    counting_allocator_fail_from(&world->api->memory, 1);
    while (skua_send(ctx, skua_self(ctx), skua_payload_empty(0)) == 0) {
    }
    parent.attempts = counting_allocator_attempts(&world->api->memory);
}

static int step_parent(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    if (events[0].type == SKUA_EVENT_START) {
        assert_int_equal(start_quiet_child(ctx), 0);
        use_up_events(ctx);
        return 0;
    }
    parent.is_hindered =
        parent.is_hindered || counting_allocator_attempts(&world->api->memory) > parent.attempts;
    counting_allocator_fail_never(&world->api->memory);
    for (size_t i = 0; i < count; i++) {
        parent.has_heard = parent.has_heard || (events[i].type == SKUA_EVENT_CHILD &&
                                                events[i].tag == SKUA_CHILD_READY);
    }
    return 0;
}

static const skua_process_type parent_type = {
    .name = "parent", .step = step_parent, .mailbox_limit = SKUA_MAILBOX_MAX};

TEST(a_supervisor_with_nothing_else_to_do_is_ready_when_there_is_memory_again)
{
    unsigned hindered = 0;
    FOR_ROUNDS (seed, ROUNDS) {
        skua_pid pid;
        parent = (struct parent){.attempts = UINT64_MAX};
        world_open_sim(seed, SIM_NO_FAULTS);
        wards_open();
        assert_int_equal(skua_process_submit(world_runtime(), &parent_type, skua_nothing(), &pid),
                         0);
        world_settle();
        assert_true(parent.has_heard);
        hindered += parent.is_hindered;
    }
    assert_true(hindered > 0); /* in other rounds the parent was faster */
}
