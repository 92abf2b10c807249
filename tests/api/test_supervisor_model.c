/* SPDX-License-Identifier: MIT */
/* Random supervisors in the simulator, whose children fail at random, are killed, and take their
 * time; what happens is compared with a model of what may happen (ward_model.h). They have budgets,
 * pauses, significant children, children of a template, and a quota that is just large enough. */
#include <skua/clock.h>

#include "effort.h"
#include "ward_model.h"

#define SEEDS        EFFORT(10000)
#define CHILDREN_MAX 5
#define DYNAMIC_MAX  3
#define TROUBLES     8

/* The current supervisor. */
static struct {
    uint64_t random;
    skua_supervisor specification;
    skua_child list[CHILDREN_MAX];
    skua_child template;
    size_t dynamic; /* children of the template that were started */
    skua_pid pid;
} now;

static uint64_t draw(uint64_t below)
{
    return seed_next(&now.random) % below;
}

/* ---- the games ---- */

static skua_budget random_budget(void)
{
    return draw(4) == 0 ? (skua_budget){1 + (uint32_t)draw(4), (10 + draw(300)) * SKUA_MILLISECOND}
                        : (skua_budget){0, 0};
}

static skua_backoff random_backoff(void)
{
    skua_backoff backoff = ward_model_backoff(draw(UINT64_MAX));
    backoff.stable_ns = (30 + draw(100)) * SKUA_MILLISECOND;
    return backoff;
}

/* What it does besides is for the habits of its letter. */
static void vary(skua_child *child)
{
    static const enum skua_restart restarts[] = {SKUA_RESTART_ALWAYS, SKUA_RESTART_ALWAYS,
                                                 SKUA_RESTART_ON_ERROR, SKUA_RESTART_NEVER};
    child->restart = restarts[draw(COUNT_OF(restarts))];
    child->stop_ns = 50 * SKUA_MILLISECOND;
    child->budget = random_budget();
    child->backoff = random_backoff();
    if (child->restart == SKUA_RESTART_NEVER) {
        child->budget = (skua_budget){0, 0};
        child->backoff = (skua_backoff){.first_ns = 0};
    }
}

static skua_child random_child(char letter)
{
    skua_child child = ward(letter);
    struct ward_habits *habits = &ward_of(letter)->habits;
    vary(&child);
    if (draw(3) == 0) {
        child.start_ns = 60 * SKUA_MILLISECOND; /* with delays that is enough */
        habits->ready_after_ns = (1 + draw(15)) * SKUA_MILLISECOND;
    }
    child.significant = child.restart != SKUA_RESTART_ALWAYS && draw(3) == 0;
    habits->stops_after_ns = draw(3) == 0 ? (1 + draw(20)) * SKUA_MILLISECOND : 0;
    habits->ignores_cancel = draw(10) == 0;
    return child;
}

static void add_list(void)
{
    bool has_significant = false;
    now.specification.child_count = 1 + draw(CHILDREN_MAX);
    now.specification.children = now.list;
    for (size_t i = 0; i < now.specification.child_count; i++) {
        now.list[i] = random_child((char)('a' + i));
        has_significant = has_significant || now.list[i].significant;
    }
    now.specification.strategy = (enum skua_strategy)draw(3);
    if (has_significant) {
        now.specification.auto_stop = draw(2) == 0 ? SKUA_AUTO_STOP_ANY : SKUA_AUTO_STOP_ALL;
    }
}

static void add_template(void)
{
    now.template = (skua_child){.name = "wards", .type = &ward_type};
    vary(&now.template);
    now.specification.templates = &now.template;
    now.specification.template_count = 1;
}

static void open_game(uint64_t seed)
{
    wards_open();
    memset(&now, 0, sizeof now);
    now.random = seed;
    now.specification =
        (skua_supervisor){.name = "top", .parallel_stop = draw(3) == 0, .budget = random_budget()};
    add_list();
    if (draw(2) == 0) {
        add_template();
    }
    if (draw(2) == 0) {
        now.specification.quota.processes =
            (uint32_t)now.specification.child_count + DYNAMIC_MAX; /* not one more */
    }
    ward_model_open(&now.specification);
}

static void run_for(uint64_t duration_ns)
{
    (void)skua_sim_run(world_runtime(), skua_sim_now(world_runtime()) + duration_ns);
}

static bool is_refusal(int error)
{
    return error == SKUA_E_LATE || error == SKUA_E_NO_PROCESS || error == SKUA_E_NO_MEMORY;
}

/* Somebody starts a child of the template: z, then y, and so on. */
static void start_dynamic(void)
{
    const char letter = (char)('z' - now.dynamic);
    if (now.specification.template_count == 0 || now.dynamic == DYNAMIC_MAX) {
        return;
    }
    skua_payload input = ward_input(letter);
    const int error = skua_process_submit_with(world_runtime(),
                                               &(skua_spawn_options){.type = &ward_type,
                                                                     .input = &input,
                                                                     .input_count = 1,
                                                                     .label = ward(letter).name,
                                                                     .supervisor = now.pid},
                                               NULL);
    assert_true(error == 0 || is_refusal(error));
    now.dynamic += error == 0;
}

static char random_letter(void)
{
    const size_t chosen = draw(now.specification.child_count + now.dynamic);
    return chosen < now.specification.child_count
               ? (char)('a' + chosen)
               : (char)('z' - (chosen - now.specification.child_count));
}

/* Something happens to a child, or to two at once. */
static void trouble(void)
{
    const char letter = random_letter();
    const skua_pid pid = ward_of(letter)->pid;
    run_for(draw(draw(4) == 0 ? 300 : 40) * SKUA_MILLISECOND);
    if (ward_of(letter)->lives == 0) {
        return;
    }
    ward_model_note('!', letter);
    switch (draw(4)) {
    case 0:
        (void)world_terminate(pid);
        break;
    case 1:
        (void)ward_tell(letter, 0);
        break;
    default:
        (void)ward_tell(letter, SKUA_E_USER);
        break;
    }
}

static bool supervisor_lives(void)
{
    skua_process_snapshot snapshot;
    return skua_process_info(world_runtime(), now.pid, &snapshot) == 0;
}

static void make_obedient(void)
{
    for (char letter = 'a'; letter <= 'z'; letter++) {
        ward_of(letter)->habits.ignores_cancel = false;
    }
}

static void play(uint64_t seed, skua_sim_faults faults)
{
    const skua_sim_config sim = {.faults = faults};
    open_game(seed);
    if (faults.no_memory > 0) {
        ward_model_lacks_memory();
    }
    world_open_with(
        (skua_runtime_config){.sim = &sim, .on_log = ward_model_read_log, .seed = seed});
    assert_int_equal(skua_process_start_supervisor(world_runtime(), &now.specification, &now.pid),
                     0);
    for (size_t i = 0; i < TROUBLES; i++) {
        start_dynamic();
        trouble();
    }
    const skua_sim_faults none = {0};
    assert_int_equal(skua_sim_faults_set(world_runtime(), &none), 0);
    run_for(120 * SKUA_SECOND);
    ward_model_check_rest(supervisor_lives());
    make_obedient();
    if (supervisor_lives()) {
        ward_model_end();
        assert_int_equal(world_cancel(now.pid, 0), 0);
        run_for(10 * SKUA_SECOND);
        ward_model_check_rest(supervisor_lives());
    }
}

static bool is_ward(void *arg, const skua_process_snapshot *process)
{
    (void)arg;
    return strcmp(process->type_name, ward_type.name) == 0;
}

TEST(supervisors_do_what_their_specification_says)
{
    FOR_ROUNDS (seed, SEEDS) {
        play(seed, (skua_sim_faults){.message_delay = seed % 2 == 0 ? 200000 : 0,
                                     .delay_max_ns = 10 * SKUA_MILLISECOND,
                                     .spurious_wake = 10000,
                                     .process_kill = seed % 3 == 0 ? 20000 : 0,
                                     .may_kill = is_ward});
    }
    const struct ward_model_tally *tally = &ward_model_tally; /* the games have led to all of it */
    assert_true(tally->restarts > 0 && tally->pauses > 0 && tally->fresh_starts > 0 &&
                tally->give_ups > tally->give_ups_of_child && tally->give_ups_of_child > 0 &&
                tally->stops > 0);
}

TEST(supervisors_do_what_their_specification_says_without_memory)
{
    FOR_ROUNDS (seed, SEEDS) {
        play(seed, (skua_sim_faults){.message_delay = seed % 2 == 0 ? 200000 : 0,
                                     .delay_max_ns = 10 * SKUA_MILLISECOND,
                                     .process_kill = seed % 3 == 0 ? 20000 : 0,
                                     .may_kill = is_ward,
                                     .no_memory = seed % 5 == 0 ? 300000 : 50000});
    }
    assert_true(ward_model_tally.failed_starts > 0);
}

/* ---- without memory, and without a supervisor ---- */

/* Whatever fails, nobody is left behind when the supervisor goes. */
static void play_roughly(uint64_t seed)
{
    const skua_sim_config sim = {
        .faults = {.message_delay = 100000, .process_kill = 20000, .no_memory = 50000}};
    open_game(seed);
    wards_watch(NULL);
    world_open_with((skua_runtime_config){.sim = &sim, .seed = seed});
    const int error = skua_process_start_supervisor(world_runtime(), &now.specification, &now.pid);
    assert_true(error == 0 || error == SKUA_E_NO_MEMORY);
    for (size_t i = 0; error == 0 && i < TROUBLES; i++) {
        start_dynamic();
        trouble();
    }
    (void)world_terminate(now.pid); /* or it has been */
    run_for(SKUA_SECOND);
    for (char letter = 'a'; letter <= 'z'; letter++) {
        assert_int_equal(ward_of(letter)->lives, 0);
    }
}

TEST(nobody_outlives_a_supervisor)
{
    FOR_ROUNDS (seed, SEEDS) {
        play_roughly(seed);
    }
}
