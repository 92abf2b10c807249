/* SPDX-License-Identifier: MIT */
/* close: what it is told, however the process ends, and what it can still do. */
#include <stdio.h>

#include "desk.h"
#include "exits.h"
#include "waits.h"

#define REASON (SKUA_E_USER - 3)

enum { FAREWELL = 5, RESULT = 7 };

/* What a close has found. */
struct finding {
    skua_pid self;
    skua_runtime *runtime;
    uint64_t now;
    char method[8];
    int error;
    uint32_t result_type;
    uint64_t result;
};

static int look_at_exit(struct turn *turn, const struct act *act)
{
    struct finding *finding = act->arg;
    const char *method = skua_method(turn->ctx);
    finding->self = skua_self(turn->ctx);
    finding->runtime = skua_runtime_of(turn->ctx);
    finding->now = skua_now(turn->ctx);
    finding->error = turn->exit->error;
    finding->result_type = turn->exit->result.type;
    finding->result = skua_payload_to_u64(&turn->exit->result);
    (void)snprintf(finding->method, sizeof finding->method, "%s", method);
    return 0;
}

static int double_it(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_u64(2, 2 * skua_payload_to_u64(input));
    return 0;
}

static int own_memory(struct turn *turn, const struct act *act)
{
    (void)act;
    void *memory = turn;
    const int error = skua_own_alloc(turn->ctx, 8, &memory);
    return memory == NULL ? error : SKUA_E_USER;
}

static int continue_once(struct turn *turn, const struct act *act)
{
    (void)act;
    return skua_continue(turn->ctx);
}

/* Frees what the process has got in its init. */
struct belongings {
    void *memory;
    void *own;
};

static int get_memory(struct turn *turn, const struct act *act)
{
    struct belongings *belongings = act->arg;
    belongings->memory = skua_alloc(turn->ctx, 100);
    return skua_own_alloc(turn->ctx, 200, &belongings->own);
}

static int free_memory(struct turn *turn, const struct act *act)
{
    const struct belongings *belongings = act->arg;
    skua_free(turn->ctx, belongings->memory, 100);
    void *more = skua_alloc(turn->ctx, 10);
    skua_free(turn->ctx, more, 10);
    return more != NULL ? skua_own_free(turn->ctx, belongings->own) : SKUA_E_USER;
}

/* ---- however it ends ---- */

/* An actor that tidies up in every way, and tells `heir`. */
struct leaver {
    struct actor *actor;
    struct finding finding;
    struct belongings belongings;
    struct tracked items[3]; /* that close tries to send where it cannot */
};

static struct leaver *leaver_new(struct script script, struct actor *heir)
{
    struct leaver *leaver = test_alloc(sizeof *leaver);
    leaver->actor = actor_new(script);
    leaver->actor->type.cancel = SKUA_CANCEL_END;
    leaver->actor->in_init = ACTS(does(get_memory, &leaver->belongings));
    leaver->actor->in_close = ACTS(
        does(look_at_exit, &leaver->finding), sends(heir, FAREWELL, 1),
        refused(yields_item(1, DESK_KEEP, 0, &leaver->items[0]), SKUA_E_CONTEXT),
        refused(sleeps(2, 0), SKUA_E_CONTEXT), refused(timer(2, 0), SKUA_E_CONTEXT),
        refused(ticker(3, 1), SKUA_E_CONTEXT),
        refused(offloads(4, NULL, double_it, 0), SKUA_E_CONTEXT),
        refused(waits_readable(5, 0), SKUA_E_CONTEXT),
        refused(waits_writable(6, 0), SKUA_E_CONTEXT), refused(cancels(7), SKUA_E_CONTEXT),
        refused(does(continue_once, NULL), SKUA_E_CONTEXT),
        refused(finishes_with(0, &leaver->items[1]), SKUA_E_CONTEXT),
        refused(spawns(actor_new(NO_ACTS)), SKUA_E_CONTEXT),
        refused(does(own_memory, NULL), SKUA_E_CONTEXT), does(free_memory, &leaver->belongings),
        refused(sends_item(leaver->actor, FAREWELL, &leaver->items[2]), SKUA_E_NO_PROCESS),
        sends(heir, FAREWELL, 2));
    return leaver;
}

/* The heir heard of it twice, by its PID, and close found all of its end. */
static void check_leaver(struct leaver *leaver, struct actor *heir, int error)
{
    const struct finding *finding = &leaver->finding;
    assert_int_equal(leaver->actor->closes, 1);
    assert_true(skua_pid_equal(finding->self, leaver->actor->pid));
    assert_string_equal(finding->method, "main");
    assert_true(finding->now >= leaver->actor->init_now);
    assert_int_equal(finding->error, error);
    assert_drops(leaver->items, 3, 1);
    if (heir != NULL) {
        assert_ptr_equal(finding->runtime, world_runtime());
        actor_await_seen(heir, 2);
        assert_saw(heir, message(FAREWELL, 1), message(FAREWELL, 2));
        assert_true(skua_pid_equal(heir->seen[0].from, leaver->actor->pid));
        assert_true(skua_pid_equal(heir->seen[1].from, leaver->actor->pid));
    }
}

TEST(close_of_a_process_that_is_done)
{
    (void)desk_open_with((skua_runtime_config){0});
    struct actor *heir = actor_start(NO_ACTS);
    struct leaver *leaver = leaver_new(ACTS(continues(3), finishes(44)), heir);
    assert_result(actor_run(leaver->actor), 44);
    assert_int_equal(leaver->finding.result, 44);
    check_leaver(leaver, heir, 0);
}

TEST(close_of_a_process_that_fails)
{
    (void)desk_open_with((skua_runtime_config){0});
    struct actor *heir = actor_start(NO_ACTS);
    struct leaver *leaver = leaver_new(ACTS(continues(3), fails(REASON)), heir);
    assert_failed(actor_run(leaver->actor), REASON);
    check_leaver(leaver, heir, REASON);
}

static void check_close_after(int (*end)(skua_pid pid, int reason), int error)
{
    (void)desk_open_with((skua_runtime_config){0});
    struct actor *heir = actor_start(NO_ACTS);
    struct leaver *leaver = leaver_new(ACTS(yields(1, DESK_KEEP, 0, 0)), heir);
    actor_submit(leaver->actor);
    assert_int_equal(end(leaver->actor->pid, REASON), 0);
    actor_await_end(leaver->actor);
    check_leaver(leaver, heir, error);
}

static int terminate(skua_pid pid, int reason)
{
    (void)reason;
    return world_terminate(pid);
}

TEST(close_of_a_process_that_is_cancelled)
{
    check_close_after(world_cancel, REASON);
}

TEST(close_of_a_process_that_is_terminated)
{
    check_close_after(terminate, SKUA_E_TERMINATED);
}

static int send_but_accept_the_end(struct turn *turn, const struct act *act)
{
    const int error = perform(turn, sends(act->arg, FAREWELL, 1));
    return error == SKUA_E_NO_PROCESS ? 0 : error;
}

/* The stop ends whom it finds first, so the heir may be gone. */
TEST(close_of_a_process_that_the_stop_ends)
{
    for (int forced = 0; forced < 2; forced++) {
        struct finding finding = {0};
        world_open();
        struct actor *heir = actor_start(NO_ACTS);
        struct actor *leaver = actor_new(NO_ACTS);
        leaver->in_close = ACTS(does(look_at_exit, &finding), does(send_but_accept_the_end, heir));
        leaver->type.cancel = forced ? SKUA_CANCEL_EVENT : SKUA_CANCEL_END;
        leaver->ignores_cancel = true;
        actor_submit(leaver);
        if (forced) {
            world_expect_survivors();
        }
        world_close();
        assert_true(skua_pid_equal(finding.self, leaver->pid));
        assert_int_equal(finding.error, forced ? SKUA_E_TERMINATED : SKUA_E_STOPPED);
    }
}

TEST(close_after_an_init_that_fails_outside)
{
    (void)desk_open_with((skua_runtime_config){0});
    struct actor *heir = actor_start(NO_ACTS);
    struct leaver *leaver = leaver_new(NO_ACTS, heir);
    leaver->actor->init_returns = REASON;
    assert_int_equal(actor_try_submit(leaver->actor), REASON);
    check_leaver(leaver, heir, REASON);
    assert_int_equal(leaver->actor->steps, 0);
}

TEST(close_after_an_init_that_fails_on_a_worker)
{
    (void)desk_open_with((skua_runtime_config){0});
    struct actor *heir = actor_start(NO_ACTS);
    struct leaver *leaver = leaver_new(NO_ACTS, heir);
    leaver->actor->init_returns = REASON;
    struct actor *parent = actor_new(ACTS(refused(spawns(leaver->actor), REASON), sleeps(1, 0),
                                          expects(completion(1, 0)), finishes(0)));
    assert_result(actor_run(parent), 0);
    check_leaver(leaver, heir, REASON);
    assert_int_equal(leaver->actor->steps, 0);
}

TEST(close_after_an_init_that_returns_a_positive_number)
{
    (void)desk_open_with((skua_runtime_config){0});
    struct actor *heir = actor_start(NO_ACTS);
    struct leaver *leaver = leaver_new(NO_ACTS, heir);
    leaver->actor->init_returns = 1;
    assert_int_equal(actor_try_submit(leaver->actor), SKUA_E_INVALID);
    check_leaver(leaver, heir, SKUA_E_INVALID);
}

/* ---- its result ---- */

static int read_item(struct turn *turn, const struct act *act)
{
    struct tracked *item = act->arg;
    const skua_payload *result = &turn->exit->result;
    return result->type == RESULT && skua_payload_data(result) == item && item->drops == 0
               ? 0
               : SKUA_E_USER;
}

TEST(close_may_look_at_the_result_before_others_get_it)
{
    struct tracked item = {.value = 3};
    world_open();
    struct actor *actor = actor_new(ACTS(finishes_with(RESULT, &item)));
    actor->in_close = ACTS(does(read_item, &item));
    skua_exit exit = actor_run(actor);
    assert_ptr_equal(skua_payload_data(&exit.result), &item);
    assert_drops(&item, 1, 0);
    skua_payload_drop(&exit.result);
}

/* ---- in the simulator ---- */

TEST(close_does_the_same_in_the_simulator)
{
    FOR_ROUNDS (seed, 30) {
        world_create_sim(seed, (skua_sim_config){0});
        (void)desk_open();
        world_start();
        struct actor *heir = actor_start(NO_ACTS);
        struct leaver *leaver = leaver_new(ACTS(continues(1), fails(REASON)), heir);
        actor_submit(leaver->actor);
        world_settle();
        check_leaver(leaver, heir, REASON);
    }
}
