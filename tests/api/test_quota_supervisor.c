/* SPDX-License-Identifier: MIT */
/* Supervisors with a quota: children are started again however full it is, those of templates and
 * of supervisors within count, the end of a supervisor gives all back; and without memory. */
#include <stdio.h>

#include "quotas.h"
#include "wards.h"

static const skua_child ward_template = {
    .name = "wards", .type = &ward_type, .restart = SKUA_RESTART_NEVER};

static int submit(skua_pid supervisor, char letter)
{
    skua_payload input = ward_input(letter);
    return skua_process_submit_with(
        world_runtime(),
        &(skua_spawn_options){
            .type = &ward_type, .input = &input, .input_count = 1, .supervisor = supervisor},
        NULL);
}

static skua_pid open_supervisor(skua_supervisor specification)
{
    world_open_virtual();
    wards_open();
    return supervise(specification);
}

TEST(children_are_started_again_however_full_the_quota_is)
{
    const skua_pid top = open_supervisor(
        (skua_supervisor){.name = "top", .quota = {.processes = 2}, WARDS(ward('a'), ward('b'))});
    assert_used(top, 2, 0, 0);
    for (unsigned i = 1; i <= 10; i++) {
        ward_fail('a', SKUA_E_USER);
        world_advance(60 * SKUA_SECOND); /* the back-off */
        assert_int_equal(ward_of('a')->lives, 1);
        assert_used(top, 2, 0, 0);
        assert_int_equal(report_on(top, "a").restarts, i); /* no start has failed */
    }
}

TEST(a_group_is_started_again_however_full_the_quota_is)
{
    const skua_pid top = open_supervisor((skua_supervisor){.name = "top",
                                                           .strategy = SKUA_STRATEGY_ALL,
                                                           .quota = {.processes = 3},
                                                           WARDS(ward('a'), ward('b'), ward('c'))});
    for (unsigned i = 1; i <= 10; i++) {
        ward_kill('b');
        world_settle();
        world_advance(60 * SKUA_SECOND);
        assert_int_equal(ward_of('a')->lives + ward_of('b')->lives + ward_of('c')->lives, 3);
        assert_used(top, 3, 0, 0);
        assert_int_equal(report_on(top, "c").restarts, i);
    }
}

/* ---- budgets, when all bytes are taken ---- */

static int take_all(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    void *memory;
    (void)self, (void)input, (void)count;
    for (size_t size = 4096; size > 0; size /= 2) {
        while (skua_own_alloc(ctx, size, &memory) == 0) {
        }
    }
    return 0;
}

static int rest(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx, (void)events, (void)count;
    return 0;
}

static const skua_process_type hog_type = {.name = "hog", .init = take_all, .step = rest};

static int start_hog(struct turn *turn, const struct act *act)
{
    (void)act;
    return skua_spawn(turn->ctx, &hog_type, skua_nothing(), NULL);
}

struct started {
    const skua_supervisor *specification;
    skua_pid pid;
};

static int start_supervisor(struct turn *turn, const struct act *act)
{
    struct started *started = act->arg;
    return skua_supervisor_start(turn->ctx, started->specification, &started->pid);
}

static const skua_budget three = {3, 3600 * SKUA_SECOND};
static const skua_child frugal_template = {
    .name = "wards", .type = &ward_type, .budget = {3, 3600 * SKUA_SECOND}};
static char last_line[400];

static void keep_line(void *arg, const skua_log *log)
{
    (void)arg;
    (void)snprintf(last_line, sizeof last_line, "%s", log->text);
}

/* A supervisor within a quota of bytes of somebody else's. */
static struct actor *open_within(struct started *started, skua_supervisor specification)
{
    world_open_virtual_with((skua_runtime_config){.on_log = keep_line});
    wards_open();
    struct actor *grantor = grantor_start((skua_quota){.bytes = 100000});
    started->specification = specification_copy(specification);
    actor_perform(grantor, ACTS(does(start_supervisor, started)));
    return grantor;
}

static void assert_starts_four_times(char letter)
{
    for (unsigned i = 0; i < 4; i++) {
        ward_fail(letter, SKUA_E_USER);
        world_advance(SKUA_SECOND);
    }
    assert_int_equal(ward_of(letter)->starts, 4);
    assert_int_equal(ward_of(letter)->lives, 0);
    assert_int_equal(world_stats().give_ups, 1);
}

TEST(the_budget_of_a_supervisor_is_kept_however_full_the_quota_is)
{
    struct started started;
    struct actor *grantor =
        open_within(&started, (skua_supervisor){.name = "top", .budget = three, WARDS(ward('a'))});
    actor_perform(grantor, ACTS(does(start_hog, NULL)));
    assert_starts_four_times('a');
}

TEST(the_budget_of_a_child_is_kept_however_full_the_quota_is)
{
    struct started started;
    skua_child child = ward('a');
    child.budget = three;
    struct actor *grantor =
        open_within(&started, (skua_supervisor){.name = "top", WARDS(ward('b'), child)});
    actor_perform(grantor, ACTS(does(start_hog, NULL)));
    assert_starts_four_times('a');
}

TEST(the_budget_of_a_template_is_kept_however_full_the_quota_is)
{
    struct started started;
    struct actor *grantor = open_within(
        &started,
        (skua_supervisor){.name = "top", .templates = &frugal_template, .template_count = 1});
    assert_int_equal(submit(started.pid, 'a'), 0);
    world_settle();
    actor_perform(grantor, ACTS(does(start_hog, NULL)));
    assert_starts_four_times('a');
}

TEST(a_child_of_a_template_that_cannot_be_supervised_ends_and_the_log_says_why)
{
    struct started started;
    struct actor *grantor = open_within(
        &started,
        (skua_supervisor){.name = "top", .templates = &frugal_template, .template_count = 1});
    actor_perform(grantor, ACTS(does(start_hog, NULL)));
    assert_int_equal(submit(started.pid, 'a'), 0);
    world_settle();
    assert_int_equal(ward_of('a')->lives, 0);
    assert_int_equal(ward_of('a')->exit_error, SKUA_E_TERMINATED);
    assert_non_null(strstr(last_line, "supervisor top: a child of template wards ("));
    assert_non_null(strstr(last_line, "cannot be supervised, SKUA_E_MEMORY_QUOTA"));
    assert_int_equal(report_size(started.pid), 0);
}

/* ---- templates, and supervisors within ---- */

TEST(children_of_templates_count_whoever_starts_them)
{
    const skua_pid top = open_supervisor((skua_supervisor){.name = "top",
                                                           .quota = {.processes = 3},
                                                           WARDS(ward('a')),
                                                           .templates = &ward_template,
                                                           .template_count = 1});
    assert_int_equal(submit(top, 'y'), 0);
    assert_int_equal(submit(top, 'z'), 0);
    assert_int_equal(submit(top, 'z'), SKUA_E_PROCESS_QUOTA);
    world_settle();
    assert_int_equal(ward_of('z')->starts, 1);
    assert_used(top, 3, 0, 0);
    ward_finish('z');
    world_settle();
    assert_used(top, 2, 0, 0);
    assert_int_equal(submit(top, 'z'), 0);
    world_settle();
    assert_used(top, 3, 0, 0);
}

/* A template of a supervisor without a quota of its own, within one that has it. */
TEST(children_of_templates_count_against_an_outer_quota)
{
    world_open_virtual();
    wards_open();
    const skua_supervisor *inner = specification_copy(
        (skua_supervisor){.name = "inner", .templates = &ward_template, .template_count = 1});
    const skua_child child = {.name = "inner", .supervisor = inner};
    const skua_pid top = supervise((skua_supervisor){
        .name = "top", .quota = {.processes = 2}, .children = &child, .child_count = 1});
    const skua_pid inner_pid = report_on(top, "inner").pid;
    assert_int_equal(submit(inner_pid, 'a'), 0);
    assert_int_equal(submit(inner_pid, 'b'), SKUA_E_PROCESS_QUOTA);
    world_settle();
    assert_used(top, 2, 0, 0);
}

static const skua_supervisor *inner_with_quota(void)
{
    return specification_copy((skua_supervisor){
        .name = "inner", .quota = {.processes = 2, .messages = 10}, WARDS(ward('a'), ward('b'))});
}

TEST(a_supervisor_that_ends_gives_all_back_and_is_started_again)
{
    world_open_virtual();
    wards_open();
    const skua_child child = {.name = "inner", .supervisor = inner_with_quota()};
    const skua_pid top = supervise((skua_supervisor){
        .name = "top", .quota = {.processes = 3}, .children = &child, .child_count = 1});
    assert_used(top, 3, 0, 0);
    for (unsigned i = 0; i < 10; i++) {
        const skua_pid inner = report_on(top, "inner").pid;
        assert_used(inner, 2, 0, 0);
        assert_int_equal(world_terminate(inner), 0);
        world_settle();
        world_advance(120 * SKUA_SECOND); /* its children may end a moment after it */
        assert_int_equal(ward_of('a')->lives + ward_of('b')->lives, 2);
        assert_used(top, 3, 0, 0);
        assert_used(report_on(top, "inner").pid, 2, 0, 0);
    }
}

static int start_inner(struct turn *turn, const struct act *act)
{
    return skua_supervisor_start(turn->ctx, inner_with_quota(), act->arg);
}

TEST(a_supervisor_that_is_stopped_gives_all_back)
{
    static skua_pid inner;
    world_open_virtual();
    wards_open();
    struct actor *grantor = grantor_start((skua_quota){.processes = 3, .messages = 10});
    actor_perform(grantor, ACTS(does(start_inner, &inner)));
    assert_used(grantor->pid, 3, 0, 0);
    assert_int_equal(world_cancel(inner, 0), 0);
    world_settle();
    world_await_live(1);
    assert_used(grantor->pid, 0, 0, 0);
}

/* A quota that can never be kept is a failure like any other. */
TEST(a_start_beyond_the_quota_is_a_failure_of_the_child)
{
    struct started started = {
        specification_copy((skua_supervisor){.name = "inner", WARDS(ward('a'), ward('b'))}), {0}};
    world_open_virtual();
    wards_open();
    struct actor *grantor = grantor_start((skua_quota){.processes = 2});
    actor_perform(grantor, ACTS(does(start_supervisor, &started)));
    assert_int_equal(report_on(started.pid, "b").last_error, SKUA_E_PROCESS_QUOTA);
    assert_int_equal(report_on(started.pid, "b").state, SKUA_CHILD_WAITING);
    assert_int_equal(ward_of('b')->starts, 0);
    assert_used(grantor->pid, 2, 0, 0);
}

/* ---- without memory ---- */

#define ROUNDS 80 /* more than there are allocations */

static bool is_expected(int error)
{
    return error == 0 || error == SKUA_E_NO_MEMORY || error == SKUA_E_PROCESS_QUOTA;
}

static void run_without(void (*break_memory)(struct counting_allocator *memory, uint64_t n),
                        uint64_t n)
{
    skua_pid pid;
    world_open_sim(n, SIM_NO_FAULTS);
    wards_open();
    const skua_supervisor *specification =
        specification_copy((skua_supervisor){.name = "top",
                                             .quota = {.processes = 4, .messages = 4, .bytes = 4},
                                             WARDS(ward('a'), ward('b')),
                                             .templates = &ward_template,
                                             .template_count = 1});
    struct counting_allocator *memory = &world->api->memory;
    break_memory(memory, n);
    const int error = skua_process_start_supervisor(world_runtime(), specification, &pid);
    assert_true(error == 0 || error == SKUA_E_NO_MEMORY);
    for (size_t i = 0; error == 0 && i < 6; i++) {
        assert_true(is_expected(submit(pid, 'z')));
        (void)skua_sim_run(world_runtime(), skua_sim_now(world_runtime()) + SKUA_MILLISECOND);
        assert_true(quota_used(pid).processes <= 4);
    }
    counting_allocator_fail_never(memory);
    if (error == 0) {
        (void)skua_sim_run(world_runtime(), skua_sim_now(world_runtime()) + 60 * SKUA_SECOND);
        assert_used(pid, ward_of('a')->lives + ward_of('b')->lives + ward_of('z')->lives, 0, 0);
    }
}

TEST(quotas_are_kept_if_one_allocation_fails)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_once, n);
    }
}

TEST(quotas_are_kept_if_all_allocations_fail_from_one_on)
{
    FOR_ROUNDS (n, ROUNDS) {
        run_without(counting_allocator_fail_from, n);
    }
}
