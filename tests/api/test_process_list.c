/* SPDX-License-Identifier: MIT */
/* skua_process_list, and what a look at a process tells of its age and of the time it has run. */
#include <inttypes.h>
#include <pthread.h>
#include <time.h>

#include "actor.h"
#include "effort.h"

#define CROWD     300
#define INFOS_MAX 2000

static skua_process_info infos[INFOS_MAX];

static skua_pid submit_idle(const struct api *api)
{
    const skua_pid pid = api_submit(api, &api_idler, NULL);
    api_wait_state(api, pid, SKUA_PROCESS_IDLE);
    return pid;
}

/* Reads all pages of this size into infos; returns how many processes were on them. */
static uint32_t list_all(skua_runtime *runtime, size_t page)
{
    uint32_t count = 0;
    skua_pid after = {0};
    int read;
    do {
        assert_true(count + page <= INFOS_MAX);
        read = skua_process_list(runtime, after, infos + count, page);
        assert_in_range(read, 0, page);
        count += (uint32_t)read;
        after = read > 0 ? infos[count - 1].pid : after;
    } while ((size_t)read == page);
    return count;
}

static uint32_t times_listed(uint32_t count, skua_pid pid)
{
    uint32_t times = 0;
    for (uint32_t i = 0; i < count; i++) {
        times += infos[i].pid.bits == pid.bits;
    }
    return times;
}

/* ---- pages ---- */

TEST(list_has_every_process_once)
{
    static const size_t pages[] = {1, 2, 7, 100, CROWD - 1, CROWD, CROWD + 1, 1000};
    skua_pid pids[CROWD];
    struct api api;
    api_run(&api, 2);
    for (uint32_t i = 0; i < CROWD; i++) {
        pids[i] = submit_idle(&api);
    }
    for (size_t p = 0; p < COUNT_OF(pages); p++) {
        assert_int_equal(list_all(api.runtime, pages[p]), CROWD);
        for (uint32_t i = 0; i < CROWD; i++) {
            assert_int_equal(times_listed(CROWD, pids[i]), 1);
        }
    }
    api_stop(&api);
}

/* A capacity beyond all processes there can be. */
TEST(list_of_any_capacity_ends_with_the_last)
{
    static const size_t capacities[] = {INFOS_MAX, (size_t)INT32_MAX + 1, SIZE_MAX};
    struct api api;
    api_run(&api, 1);
    (void)submit_idle(&api);
    (void)submit_idle(&api);
    for (size_t i = 0; i < COUNT_OF(capacities); i++) {
        assert_int_equal(skua_process_list(api.runtime, (skua_pid){0}, infos, capacities[i]), 2);
    }
    api_stop(&api);
}

TEST(list_of_a_runtime_without_processes_is_empty)
{
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(list_all(api.runtime, 10), 0);
    api_start(&api);
    assert_int_equal(list_all(api.runtime, 10), 0);
    const skua_pid pid = submit_idle(&api);
    assert_int_equal(list_all(api.runtime, 10), 1);
    assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
    api_wait_end(&api, pid);
    assert_int_equal(list_all(api.runtime, 10), 0);
    assert_int_equal(skua_runtime_stop(api.runtime, 0), 0);
    assert_int_equal(list_all(api.runtime, 10), 0);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}

TEST(list_refuses_what_is_wrong)
{
    struct api api;
    struct api other;
    const skua_pid none = {0};
    api_run(&api, 1);
    api_run(&other, 1);
    const skua_pid foreign = submit_idle(&other);
    (void)submit_idle(&api);
    assert_int_equal(skua_process_list(NULL, none, infos, 1), SKUA_E_INVALID);
    assert_int_equal(skua_process_list(api.runtime, none, NULL, 1), SKUA_E_INVALID);
    assert_int_equal(skua_process_list(api.runtime, none, NULL, 0), 0);
    assert_int_equal(skua_process_list(api.runtime, none, infos, 0), 0);
    assert_int_equal(skua_process_list(api.runtime, foreign, infos, 1), SKUA_E_FOREIGN_PID);
    assert_int_equal(skua_process_list(api.runtime, (skua_pid){UINT64_MAX}, infos, 1),
                     SKUA_E_FOREIGN_PID);
    api_stop(&other);
    api_stop(&api);
}

/* `after` is a place, whoever has it now. */
TEST(list_goes_on_after_a_process_that_has_ended)
{
    struct api api;
    api_run(&api, 1);
    for (uint32_t i = 0; i < 10; i++) {
        (void)submit_idle(&api);
    }
    assert_int_equal(list_all(api.runtime, 20), 10);
    skua_pid pids[10];
    for (uint32_t i = 0; i < 10; i++) {
        pids[i] = infos[i].pid;
    }
    for (uint32_t i = 4; i < 10; i += 2) { /* the last of the page, and some to come */
        assert_int_equal(skua_process_terminate(api.runtime, pids[i]), 0);
        api_wait_end(&api, pids[i]);
    }
    assert_int_equal(skua_process_list(api.runtime, pids[4], infos, 20), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(infos[i].pid.bits, pids[5 + 2 * i].bits);
    }
    const skua_pid last = {pids[9].bits | 0x3ffffff}; /* the last place that there can be */
    assert_int_equal(skua_process_list(api.runtime, last, infos, 20), 0);
    api_stop(&api);
}

/* The same as one look at each. */
TEST(list_tells_what_a_look_tells)
{
    struct api api;
    struct blocker blocker;
    api_stall_limit_ns = API_NEVER_STUCK;
    api_run(&api, 1);
    const skua_pid idle = submit_idle(&api);
    const skua_pid ready = submit_idle(&api);
    blocker_start(&blocker, &api);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(skua_message_send(api.runtime, ready, skua_payload_empty(0)), 0);
    }
    assert_int_equal(list_all(api.runtime, 10), 3);
    for (uint32_t i = 0; i < 3; i++) {
        skua_process_info info;
        assert_int_equal(skua_process_info_read(api.runtime, infos[i].pid, &info), 0);
        assert_int_equal(infos[i].state, info.state);
        assert_int_equal(infos[i].steps, info.steps);
        assert_int_equal(infos[i].mailbox_length, info.mailbox_length);
        assert_string_equal(infos[i].type_name, info.type_name);
        if (info.pid.bits == idle.bits) {
            assert_int_equal(info.state, SKUA_PROCESS_IDLE);
            assert_int_equal(info.mailbox_length, 0);
        } else if (info.pid.bits == ready.bits) {
            assert_int_equal(info.state, SKUA_PROCESS_READY);
            assert_int_equal(info.mailbox_length, 3);
        } else {
            assert_int_equal(info.pid.bits, blocker.pid.bits);
            assert_int_equal(info.state, SKUA_PROCESS_RUNNING);
        }
    }
    blocker_release(&blocker);
    api_stop(&api);
    api_stall_limit_ns = 0;
}

static void list_own(void *arg, skua_context *ctx, skua_step *out)
{
    (void)out;
    *(bool *)arg =
        skua_process_list(skua_context_runtime(ctx), (skua_pid){0}, infos, INFOS_MAX) == 1 &&
        infos[0].pid.bits == skua_context_self(ctx).bits && infos[0].state == SKUA_PROCESS_RUNNING;
}

TEST(list_may_be_read_in_a_step)
{
    struct api api;
    bool is_right = false;
    api_run(&api, 1);
    api_in_step(&api, list_own, &is_right);
    assert_true(is_right);
    api_stop(&api);
}

/* ---- while others come and go ---- */

static const skua_process_type relay_type;

/* Starts another of its kind and ends, as long as it may. */
static int relay_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    atomic_bool *goes_on = api_world(self);
    (void)events;
    (void)count;
    skua_payload input = api_world_payload(goes_on);
    skua_step_done(out, skua_payload_empty(0));
    return atomic_load(goes_on) ? skua_context_spawn(ctx, &relay_type, NULL, &input, 1, NULL) : 0;
}

static const skua_process_type relay_type = {
    .name = "relay", .state_size = sizeof(void *), .init = api_init_world, .step = relay_step};

TEST(list_has_those_that_stay_once_while_others_come_and_go)
{
    static const size_t pages[] = {1, 13, 64, 500};
    atomic_bool goes_on = true;
    skua_pid pids[CROWD];
    struct api api;
    api_run(&api, 2);
    for (uint32_t i = 0; i < CROWD; i++) { /* their places lie between those of the others */
        if (i % 10 == 0) {
            (void)api_submit(&api, &relay_type, &goes_on);
        }
        pids[i] = submit_idle(&api);
    }
    for (uint32_t round = 0; round < EFFORT(200); round++) {
        const uint32_t count = list_all(api.runtime, pages[round % COUNT_OF(pages)]);
        for (uint32_t i = 0; i < CROWD; i++) {
            assert_int_equal(times_listed(count, pids[i]), 1);
        }
        for (uint32_t i = 0; i < count; i++) {
            assert_true(strcmp(infos[i].type_name, "relay") == 0 ||
                        strcmp(infos[i].type_name, "idler") == 0);
        }
    }
    atomic_store(&goes_on, false);
    api_wait_live(&api, CROWD);
    api_stop(&api);
}

/* ---- age and run time ---- */

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SKUA_SECOND + (uint64_t)now.tv_nsec;
}

struct subject {
    skua_runtime *runtime;
    skua_pid pid;
    uint64_t wanted;
};

static skua_process_info look(const struct subject *subject)
{
    skua_process_info info;
    assert_int_equal(skua_process_info_read(subject->runtime, subject->pid, &info), 0);
    return info;
}

static bool is_old(void *arg)
{
    const struct subject *subject = arg;
    return look(subject).age_ns >= subject->wanted;
}

/* It cannot be older than its runtime, nor younger than one that came after it. */
TEST(age_grows)
{
    const uint64_t before = clock_ns();
    struct api api;
    api_run(&api, 1);
    struct subject elder = {api.runtime, submit_idle(&api), 100 * SKUA_MILLISECOND};
    wait_until(is_old, &elder, "a process to get older");
    struct subject younger = {api.runtime, submit_idle(&api), 1};
    const uint64_t young = look(&younger).age_ns;
    assert_true(look(&elder).age_ns > young);
    assert_true(look(&elder).age_ns <= clock_ns() - before);
    wait_until(is_old, &younger, "a process to get older");
    api_stop(&api);
}

static bool has_run(void *arg)
{
    const struct subject *subject = arg;
    return look(subject).run_ns >= subject->wanted;
}

/* Runs until the test has seen that it does. */
TEST(run_time_adds_up_for_what_runs)
{
    struct api api;
    struct blocker blocker;
    api_stall_limit_ns = API_NEVER_STUCK;
    api_run(&api, 1);
    const skua_pid idle = submit_idle(&api);
    blocker_start(&blocker, &api);
    struct subject subject = {api.runtime, blocker.pid, 1};
    wait_until(has_run, &subject, "run time");
    subject.wanted = look(&subject).run_ns + 20 * SKUA_MILLISECOND;
    wait_until(has_run, &subject, "more run time");
    assert_true(api_stats(&api).busy_ns >= 20 * SKUA_MILLISECOND);
    subject.pid = idle;
    assert_true(look(&subject).run_ns < subject.wanted); /* its one step may have been seen */
    blocker_release(&blocker);
    api_stop(&api);
    api_stall_limit_ns = 0;
}

/* Steps that are short, but many. */
static int spin_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    (void)self;
    (void)ctx;
    if (!api_finish_if_cancelled(events, count, out)) {
        skua_step_continue(out);
    }
    return 0;
}

static const skua_process_type spinner = {.name = "spinner", .step = spin_step};

TEST(run_time_adds_up_for_what_runs_often)
{
    struct api api;
    api_run(&api, 2);
    struct subject subject = {api.runtime, api_submit(&api, &spinner, NULL), 20 * SKUA_MILLISECOND};
    wait_until(has_run, &subject, "run time of many steps");
    assert_true(look(&subject).steps > 1);
    api_stop(&api);
}

/* ---- simulated ---- */

#define BORN_UNIT (UINT64_C(1) << 24)

static int look_at_own_age(struct turn *turn, const struct act *act)
{
    return skua_process_info_read(world_runtime(), turn->actor->pid, act->arg);
}

/* The time of the simulation, which has nothing to do with the time that it takes. */
TEST(age_in_a_simulation_is_its_time)
{
    skua_process_info info = {.age_ns = 0};
    world_open_sim(7, (skua_sim_faults){0});
    /* First another one, so that time does not begin at zero. */
    assert_result(actor_run(actor_new(ACTS(sleeps(1, 1000 * SKUA_SECOND), awaits(1), finishes(0)))),
                  0);
    assert_result(actor_run(actor_new(ACTS(sleeps(1, 100 * SKUA_SECOND), awaits(1),
                                           does(look_at_own_age, &info), finishes(0)))),
                  0);
    assert_in_range(info.age_ns, 100 * SKUA_SECOND, 100 * SKUA_SECOND + 2 * BORN_UNIT);
    assert_int_equal(info.run_ns, 0);
}
