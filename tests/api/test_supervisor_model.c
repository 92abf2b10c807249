/* SPDX-License-Identifier: MIT */
/* Random supervisors in the simulator, whose children fail at random, are killed, and take their
 * time; what happens is compared with a model of what may happen. The model knows the promises of
 * skua/supervisor.h and nothing of the code. It looks at
 *
 *   R  the supervisor has noticed that a child must be started again, and says so in the log
 *   S  it says that another must be with it, or must end with it
 *   +  a child starts       r  is ready       c  is asked to end       -  has ended
 *
 * The supervisor hears of an end some time after it, so the model takes an end for what it leads to
 * when the supervisor says so. */
#include <skua/clock.h>
#include <stdio.h>

#include "effort.h"
#include "wards.h"

#define SEEDS        EFFORT(10000)
#define CHILDREN_MAX 5
#define TROUBLES     6

struct modelled {
    bool has_started; /* once */
    bool lives;
    bool is_ready;
    bool is_wanted;   /* may be started again */
    bool is_missed;   /* the supervisor knows that it must be */
    bool is_told_of;  /* a line of the log says that it will be */
    bool must_end;    /* because others do */
    bool may_be_over; /* has ended in a way that may have been for good */
};

/* The current supervisor. */
static struct {
    uint64_t random;
    skua_supervisor specification;
    skua_child list[CHILDREN_MAX];
    size_t count;
    skua_pid pid;
    struct modelled children[CHILDREN_MAX];
    bool is_ending;
    bool lacks_memory; /* now and then */
    char trace[4096];  /* for those who have to find out */
    size_t trace_length;
} now;

static unsigned failed_starts; /* without memory */

static uint64_t draw(uint64_t below)
{
    return seed_next(&now.random) % below;
}

static void surprise(const char *what, char letter)
{
    fail_msg("%s (%c) after %s", what, letter, now.trace);
}

static void trace(char sign, char letter)
{
    if (now.trace_length + 3 < sizeof now.trace) {
        now.trace[now.trace_length++] = sign;
        now.trace[now.trace_length++] = letter;
    }
}

static bool is_orderly_end(int error)
{
    return error == 0 || error == SKUA_E_CANCELLED || error == SKUA_E_STOPPED;
}

/* ---- the model ---- */

/* Whether the failure of one means that the other must end, too. */
static bool concerns(size_t failed, size_t other)
{
    switch (now.specification.strategy) {
    case SKUA_STRATEGY_ONE:
        return false;
    case SKUA_STRATEGY_ALL:
        return other != failed;
    case SKUA_STRATEGY_REST:
        return other > failed;
    }
    return false;
}

static void model_restart(size_t index)
{
    now.children[index].is_wanted = true;
    now.children[index].is_missed = true;
    now.children[index].is_told_of = true;
    now.children[index].may_be_over = false;
    for (size_t i = 0; i < now.count; i++) {
        if (concerns(index, i) && now.children[i].lives) {
            now.children[i].must_end = true;
        }
    }
}

/* Whether it may have ended for good: also without a start, if there was no memory for the only
 * one. */
static bool may_be_over(size_t index)
{
    const struct modelled *child = &now.children[index];
    return child->may_be_over || (now.lacks_memory && !child->has_started &&
                                  now.list[index].restart == SKUA_RESTART_NEVER);
}

static void check_order_of_start(size_t index, char letter)
{
    const bool in_group = now.specification.strategy != SKUA_STRATEGY_ONE;
    for (size_t i = 0; i < now.count; i++) {
        const struct modelled *child = &now.children[i];
        if (in_group && child->lives && child->must_end) {
            surprise("started while others must end", letter);
        }
        if (i < index && !child->has_started && !may_be_over(i)) {
            surprise("started before an earlier one", letter);
        }
        if (i < index && in_group && child->is_missed && !child->lives) {
            surprise("started again before an earlier one", letter);
        }
        if (i < index && in_group && child->lives && !child->is_ready &&
            now.list[i].start_ns != 0) {
            surprise("started before an earlier one is ready", letter);
        }
    }
}

static void model_start(size_t index, char letter)
{
    struct modelled *child = &now.children[index];
    if (now.is_ending) {
        surprise("started by a supervisor that ends", letter);
    }
    if (child->lives) {
        surprise("started twice", letter);
    }
    if (child->has_started && !child->is_wanted) {
        surprise("started again for no reason", letter);
    }
    if (child->has_started && now.list[index].restart == SKUA_RESTART_NEVER) {
        surprise("started again", letter);
    }
    if (child->has_started && !child->is_told_of) {
        surprise("started again without a line in the log", letter);
    }
    check_order_of_start(index, letter);
    *child = (struct modelled){.has_started = true, .lives = true};
}

static void model_cancel(size_t index, char letter)
{
    const struct modelled *child = &now.children[index];
    if (!child->must_end && !now.is_ending && (child->is_ready || now.list[index].start_ns == 0)) {
        surprise("asked to end for no reason", letter);
    }
    for (size_t i = index + 1; i < now.count && !now.specification.parallel_stop; i++) {
        if (child->must_end && now.children[i].must_end && now.children[i].lives) {
            surprise("asked to end before a later one", letter);
        }
        if (now.is_ending && now.children[i].lives) {
            surprise("asked to end before a later one", letter);
        }
    }
}

static void model_end(size_t index)
{
    struct modelled *child = &now.children[index];
    const skua_child *spec = &now.list[index];
    const bool is_orderly = is_orderly_end(ward_of((char)('a' + index))->exit_error);
    child->lives = false;
    child->may_be_over = spec->restart == SKUA_RESTART_NEVER ||
                         (spec->restart == SKUA_RESTART_ON_ERROR && is_orderly);
    child->is_wanted = spec->restart != SKUA_RESTART_NEVER;
    child->is_missed = child->is_wanted && child->must_end;
    child->must_end = false;
}

static void model_watch(char sign, char letter)
{
    const size_t index = (size_t)(letter - 'a');
    trace(sign, letter);
    switch (sign) {
    case '+':
        model_start(index, letter);
        break;
    case 'r':
        now.children[index].is_ready = true;
        break;
    case 'c':
        model_cancel(index, letter);
        break;
    case '-':
        model_end(index);
        break;
    default:
        break;
    }
}

/* One that is stopped with another. */
static void model_stop_with(size_t index, bool is_for_good)
{
    struct modelled *child = &now.children[index];
    const char letter = (char)('a' + index);
    trace('S', letter);
    if (is_for_good != (now.list[index].restart == SKUA_RESTART_NEVER)) {
        surprise("is said to start again, or not to", letter);
    }
    if (child->is_told_of) {
        surprise("has a second line for one restart", letter);
    }
    child->is_told_of = !is_for_good;
}

/* "supervisor top: child a (...) failed with ...; starting it again ...", then for each other
 * "supervisor top: child b (...) is stopped and started again with child a" */
static void read_log(void *arg, const skua_log *log)
{
    const char *child = strstr(log->text, ": child ");
    (void)arg;
    if (child == NULL) {
        return;
    }
    const char letter = child[strlen(": child ")];
    if (strstr(log->text, " is stopped") != NULL) {
        model_stop_with((size_t)(letter - 'a'), strstr(log->text, "for good") != NULL);
        return;
    }
    if (strstr(log->text, "starting it again") == NULL) {
        return;
    }
    failed_starts += strstr(log->text, "SKUA_E_NO_MEMORY") != NULL;
    trace('R', letter);
    model_restart((size_t)(letter - 'a'));
}

/* Long after the last trouble: all live that must. */
static void check_rest(void)
{
    for (size_t i = 0; i < now.count; i++) {
        const struct modelled *child = &now.children[i];
        if (!child->lives && !may_be_over(i)) {
            surprise("does not live in the end", (char)('a' + i));
        }
        if (child->lives && child->must_end) {
            surprise("was to be started again", (char)('a' + i));
        }
    }
}

/* ---- the games ---- */

static skua_child random_child(size_t index)
{
    static const enum skua_restart restarts[] = {SKUA_RESTART_ALWAYS, SKUA_RESTART_ALWAYS,
                                                 SKUA_RESTART_ON_ERROR, SKUA_RESTART_NEVER};
    const char letter = (char)('a' + index);
    skua_child child = ward(letter);
    struct ward_habits *habits = &ward_of(letter)->habits;
    child.restart = restarts[draw(COUNT_OF(restarts))];
    child.stop_ns = 50 * SKUA_MILLISECOND;
    if (draw(3) == 0) {
        child.start_ns = 60 * SKUA_MILLISECOND; /* with delays that is enough */
        habits->ready_after_ns = (1 + draw(15)) * SKUA_MILLISECOND;
    }
    habits->stops_after_ns = draw(3) == 0 ? (1 + draw(20)) * SKUA_MILLISECOND : 0;
    habits->ignores_cancel = draw(10) == 0;
    return child;
}

static void open_game(uint64_t seed)
{
    wards_open();
    wards_watch(model_watch);
    memset(&now, 0, sizeof now);
    now.random = seed;
    now.count = 1 + draw(CHILDREN_MAX);
    for (size_t i = 0; i < now.count; i++) {
        now.list[i] = random_child(i);
    }
    now.specification = (skua_supervisor){
        .name = "top",
        .children = now.list,
        .child_count = now.count,
        .strategy = (enum skua_strategy)draw(3),
        .parallel_stop = draw(3) == 0,
    };
}

static void run_for(uint64_t duration_ns)
{
    (void)skua_sim_run(world_runtime(), skua_sim_now(world_runtime()) + duration_ns);
}

/* Something happens to a child, or to two at once. */
static void trouble(void)
{
    const char letter = (char)('a' + draw(now.count));
    const skua_pid pid = ward_of(letter)->pid;
    run_for(draw(40) * SKUA_MILLISECOND);
    if (!now.children[letter - 'a'].lives) {
        return;
    }
    trace('!', letter);
    switch (draw(3)) {
    case 0:
        (void)world_terminate(pid);
        break;
    case 1:
        (void)ward_tell(letter, SKUA_E_USER);
        break;
    default:
        (void)ward_tell(letter, 0);
        break;
    }
}

static void play(uint64_t seed, skua_sim_faults faults)
{
    const skua_sim_config sim = {.faults = faults};
    open_game(seed);
    now.lacks_memory = faults.no_memory > 0;
    world_open_with((skua_runtime_config){.sim = &sim, .on_log = read_log, .seed = seed});
    assert_int_equal(skua_process_start_supervisor(world_runtime(), &now.specification, &now.pid),
                     0);
    for (size_t i = 0; i < TROUBLES; i++) {
        trouble();
    }
    const skua_sim_faults none = {0};
    assert_int_equal(skua_sim_faults_set(world_runtime(), &none), 0);
    run_for(120 * SKUA_SECOND);
    check_rest();
    now.is_ending = true;
    for (size_t i = 0; i < now.count; i++) {
        ward_of((char)('a' + i))->habits.ignores_cancel = false;
    }
    assert_int_equal(world_cancel(now.pid, 0), 0);
    run_for(10 * SKUA_SECOND);
    for (size_t i = 0; i < now.count; i++) {
        assert_int_equal(ward_of((char)('a' + i))->lives, 0);
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
    assert_true(failed_starts > 0);
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
    for (size_t i = 0; i < TROUBLES; i++) {
        trouble();
    }
    (void)world_terminate(now.pid); /* or it has been */
    run_for(SKUA_SECOND);
    for (size_t i = 0; i < now.count; i++) {
        assert_int_equal(ward_of((char)('a' + i))->lives, 0);
    }
}

TEST(nobody_outlives_a_supervisor)
{
    FOR_ROUNDS (seed, SEEDS / 4) {
        play_roughly(seed);
    }
}
