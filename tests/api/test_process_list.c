/* SPDX-License-Identifier: MIT */
/* skua_process_list, and what a look at a process tells of its age and of the time it has run. */
#include <time.h>

#include "actor.h"
#include "effort.h"
#include "idlers.h"

#define CROWD     300
#define INFOS_MAX 2000

static skua_process_snapshot infos[INFOS_MAX];

static int list(skua_pid after, size_t capacity)
{
    return skua_process_list(world_runtime(), after, infos, capacity);
}

/* Reads all pages of this size into infos; returns how many processes were on them. */
static uint32_t list_all(size_t page)
{
    uint32_t count = 0;
    skua_pid after = {0};
    int read;
    do {
        assert_true(count + page <= INFOS_MAX);
        read = skua_process_list(world_runtime(), after, infos + count, page);
        assert_in_range(read, 0, page);
        count += (uint32_t)read;
        after = read > 0 ? infos[count - 1].pid : after;
    } while ((size_t)read == page);
    return count;
}

/* That each of the crowd is once among the first `count`. */
static void assert_listed_once(const skua_pid *crowd, uint32_t count)
{
    for (uint32_t i = 0; i < CROWD; i++) {
        uint32_t times = 0;
        for (uint32_t k = 0; k < count; k++) {
            times += skua_pid_equal(infos[k].pid, crowd[i]);
        }
        assert_int_equal(times, 1);
    }
}

/* ---- pages ---- */

TEST(list_has_every_process_once)
{
    static const size_t pages[] = {1, 2, 7, 100, CROWD - 1, CROWD, CROWD + 1, 1000};
    world_open_with((skua_runtime_config){.worker_count = 2});
    const skua_pid *crowd = idlers_start(CROWD);
    for (size_t i = 0; i < COUNT_OF(pages); i++) {
        assert_int_equal(list_all(pages[i]), CROWD);
        assert_listed_once(crowd, CROWD);
    }
}

/* A capacity beyond all processes there can be. */
TEST(list_of_any_capacity_ends_with_the_last)
{
    static const size_t capacities[] = {INFOS_MAX, (size_t)INT32_MAX + 1, SIZE_MAX};
    world_open_with((skua_runtime_config){.worker_count = 1});
    (void)idlers_start(2);
    for (size_t i = 0; i < COUNT_OF(capacities); i++) {
        assert_int_equal(list((skua_pid){0}, capacities[i]), 2);
    }
}

TEST(list_of_a_runtime_without_processes_is_empty)
{
    world_create((skua_runtime_config){.worker_count = 1});
    assert_int_equal(list_all(10), 0);
    world_start();
    assert_int_equal(list_all(10), 0);
    const skua_pid pid = idler_start();
    assert_int_equal(list_all(10), 1);
    idler_end(pid);
    assert_int_equal(list_all(10), 0);
    assert_int_equal(skua_runtime_stop(world_runtime(), 0), 0);
    assert_int_equal(list_all(10), 0);
}

TEST(list_refuses_what_is_wrong)
{
    struct api other;
    const skua_pid none = {0};
    world_open_with((skua_runtime_config){.worker_count = 1});
    (void)idler_start();
    api_run(&other, 1);
    const skua_pid foreign = api_submit(&other, &api_idler, NULL);
    assert_int_equal(skua_process_list(NULL, none, infos, 1), SKUA_E_INVALID);
    assert_int_equal(skua_process_list(world_runtime(), none, NULL, 1), SKUA_E_INVALID);
    assert_int_equal(skua_process_list(world_runtime(), none, NULL, 0), 0);
    assert_int_equal(list(none, 0), 0);
    assert_int_equal(list(foreign, 1), SKUA_E_FOREIGN_PID);
    assert_int_equal(list((skua_pid){UINT64_MAX}, 1), SKUA_E_FOREIGN_PID);
    api_stop(&other);
}

/* `after` is a place, whoever has it now. */
TEST(list_goes_on_after_a_process_that_has_ended)
{
    skua_pid pids[10];
    world_open_with((skua_runtime_config){.worker_count = 1});
    (void)idlers_start(10);
    assert_int_equal(list_all(20), 10);
    for (size_t i = 0; i < 10; i++) {
        pids[i] = infos[i].pid;
    }
    for (size_t i = 4; i < 10; i += 2) { /* the last of the page, and some to come */
        idler_end(pids[i]);
    }
    assert_int_equal(list(pids[4], 20), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(skua_pid_equal(infos[i].pid, pids[5 + 2 * i]));
    }
    const skua_pid last = {pids[9].bits | 0x3ffffff}; /* the last place that there can be */
    assert_int_equal(list(last, 20), 0);
}

TEST(list_tells_what_a_look_tells)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *idle = actor_start(NO_ACTS);
    struct actor *ready = actor_start(NO_ACTS);
    actor_await_state(idle, SKUA_PROCESS_IDLE);
    actor_await_state(ready, SKUA_PROCESS_IDLE);
    struct actor *running = actor_start_held();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_send(ready->pid, skua_payload_empty(0)), 0);
    }
    const struct {
        const struct actor *actor;
        enum skua_process_state state;
        uint32_t mailbox_length;
    } rows[] = {{idle, SKUA_PROCESS_IDLE, 0},
                {ready, SKUA_PROCESS_READY, 3},
                {running, SKUA_PROCESS_RUNNING, 0}};
    assert_int_equal(list_all(10), 3);
    for (size_t i = 0; i < 3; i++) {
        const skua_process_snapshot info = world_info(infos[i].pid);
        assert_int_equal(infos[i].state, info.state);
        assert_int_equal(infos[i].steps, info.steps);
        assert_int_equal(infos[i].mailbox_length, info.mailbox_length);
        assert_string_equal(infos[i].type_name, info.type_name);
        size_t row = 0;
        while (row < 2 && !skua_pid_equal(rows[row].actor->pid, info.pid)) {
            row++;
        }
        assert_true(skua_pid_equal(rows[row].actor->pid, info.pid));
        assert_int_equal(info.state, rows[row].state);
        assert_int_equal(info.mailbox_length, rows[row].mailbox_length);
    }
    actor_let_go(running);
}

static int list_itself(struct turn *turn, const struct act *act)
{
    (void)act;
    if (list((skua_pid){0}, INFOS_MAX) != 1 || infos[0].state != SKUA_PROCESS_RUNNING ||
        !skua_pid_equal(infos[0].pid, turn->actor->pid)) {
        actor_surprise(turn->actor, "it is not alone in the list");
    }
    return 0;
}

TEST(list_may_be_read_in_a_step)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    assert_result(actor_run(actor_new(ACTS(does(list_itself, NULL), finishes(1)))), 1);
}

/* ---- while others come and go ---- */

/* Starts another of its kind and ends, as long as it may. No actor: there is no end of them. */
static int relay_step(void *self, skua_context *ctx, skua_event *events, size_t count);

static const skua_process_type relay_type = {
    .name = "relay", .state_size = sizeof(void *), .init = api_init_world, .step = relay_step};

static int relay_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    atomic_bool *goes_on = api_world(self);
    skua_payload input = api_world_payload(goes_on);
    (void)events;
    (void)count;
    skua_done(ctx, skua_payload_empty(0));
    return *goes_on ? skua_spawn(ctx, &relay_type, input, NULL) : 0;
}

TEST(list_has_those_that_stay_once_while_others_come_and_go)
{
    static const size_t pages[] = {1, 13, 64, 500};
    atomic_bool goes_on = true;
    skua_pid crowd[CROWD];
    world_open_with((skua_runtime_config){.worker_count = 2});
    for (uint32_t i = 0; i < CROWD; i++) { /* their places lie between those of the others */
        if (i % 10 == 0) {
            (void)api_submit(world->api, &relay_type, &goes_on);
        }
        crowd[i] = idler_start();
    }
    for (uint32_t round = 0; round < EFFORT(200); round++) {
        const uint32_t count = list_all(pages[round % COUNT_OF(pages)]);
        assert_listed_once(crowd, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(strcmp(infos[i].type_name, "relay") == 0 ||
                        strcmp(infos[i].type_name, "idler") == 0);
        }
    }
    goes_on = false;
    world_await_live(CROWD);
}

/* ---- age and run time ---- */

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SKUA_SECOND + (uint64_t)now.tv_nsec;
}

struct wish {
    skua_pid pid;
    uint64_t wanted_ns;
};

static bool is_old(void *arg)
{
    const struct wish *wish = arg;
    return world_info(wish->pid).age_ns >= wish->wanted_ns;
}

static bool has_run(void *arg)
{
    const struct wish *wish = arg;
    return world_info(wish->pid).run_ns >= wish->wanted_ns;
}

/* It cannot be older than its runtime, nor younger than one that came after it. */
TEST(age_grows)
{
    const uint64_t before = clock_ns();
    world_open_with((skua_runtime_config){.worker_count = 1});
    const skua_pid elder = idler_start();
    wait_until(is_old, &(struct wish){elder, 100 * SKUA_MILLISECOND}, "a process to get older");
    const skua_pid younger = idler_start();
    const uint64_t young = world_info(younger).age_ns;
    assert_true(world_info(elder).age_ns > young);
    assert_true(world_info(elder).age_ns <= clock_ns() - before);
    wait_until(is_old, &(struct wish){younger, 1}, "a process to get older");
}

TEST(run_time_adds_up_for_what_runs)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    const skua_pid idle = idler_start();
    struct actor *running = actor_start_held();
    struct wish wish = {running->pid, 1};
    wait_until(has_run, &wish, "run time"); /* what ran before has been charged then */
    const uint64_t before = world_info(idle).run_ns;
    wish.wanted_ns = world_info(running->pid).run_ns + 20 * SKUA_MILLISECOND;
    wait_until(has_run, &wish, "more run time");
    assert_int_equal(world_info(idle).run_ns, before); /* of its one step, if that was seen */
    actor_let_go(running);
}

TEST(run_time_adds_up_for_what_runs_often)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct actor *spinner = actor_start(ACTS(continues(UINT64_MAX)));
    wait_until(has_run, &(struct wish){spinner->pid, 20 * SKUA_MILLISECOND},
               "run time of many steps");
    assert_true(world_info(spinner->pid).steps > 1);
}

/* ---- simulated ---- */

#define BORN_UNIT (UINT64_C(1) << 24)

static int look_at_itself(struct turn *turn, const struct act *act)
{
    return skua_process_info(world_runtime(), turn->actor->pid, act->arg);
}

/* The time of the simulation, which has nothing to do with the time that it takes. */
TEST(age_in_a_simulation_is_its_time)
{
    skua_process_snapshot info = {.age_ns = 0};
    world_open_sim(7, (skua_sim_faults){0});
    (void)actor_start(ACTS(sleeps(1, 1000 * SKUA_SECOND), awaits(1), finishes(0)));
    world_settle(); /* so it does not begin at zero */
    (void)actor_start(
        ACTS(sleeps(1, 100 * SKUA_SECOND), awaits(1), does(look_at_itself, &info), finishes(0)));
    world_settle();
    assert_in_range(info.age_ns, 100 * SKUA_SECOND, 100 * SKUA_SECOND + 2 * BORN_UNIT);
    assert_int_equal(info.run_ns, 0);
}
