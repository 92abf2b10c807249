/* SPDX-License-Identifier: MIT */
/* Monitors that are over, because they were taken back or have timed out, do not pile up with a
 * process that lives on: it has at most about as many of them as of those that still wait. */
#include "effort.h"
#include "relations.h"
#include "timers.h"

enum { LASTING = 100, BATCH = 50, SLACK = 64 };

#define MONITORS EFFORT(5000000) /* short-lived ones */

/* A process that sets BATCH monitors again and again, until it has set enough. (An actor would
 * remember each completion.) */
struct fleeting {
    skua_pid target;
    bool times_out; /* otherwise they are taken back */
    uint64_t set;
    uint64_t ended;
    uint64_t wrong;
    uint64_t limit; /* it rests when it has set so many */
};

static void set_batch(struct fleeting *fleeting, skua_context *ctx)
{
    const uint64_t timeout = fleeting->times_out ? MICROSECOND : SKUA_FOREVER;
    for (uint64_t tag = 0; tag < BATCH; tag++) {
        fleeting->wrong +=
            (tag % 2 == 0 ? skua_yield_monitor(ctx, tag, fleeting->target, timeout)
                          : skua_yield_join(ctx, tag, fleeting->target, timeout)) != 0;
    }
    fleeting->set += BATCH;
}

static void take_back(struct fleeting *fleeting, skua_context *ctx)
{
    for (uint64_t tag = 0; tag < BATCH; tag++) {
        fleeting->wrong += skua_yield_cancel(ctx, tag) != 0;
    }
}

/* Those that are taken back have reached the target by then: that happens in the next step. */
static int fleeting_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct fleeting *fleeting = api_world(self);
    bool continues = false;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            return skua_done(ctx, skua_nothing());
        }
        continues |= events[i].type == SKUA_EVENT_CONTINUE;
        if (events[i].type == SKUA_EVENT_COMPLETION) {
            const int expected = fleeting->times_out ? SKUA_E_TIMEOUT : SKUA_E_CANCELLED;
            fleeting->ended++;
            fleeting->wrong += events[i].error != expected;
        }
    }
    if (continues) {
        take_back(fleeting, ctx);
    } else if (fleeting->ended == fleeting->set && fleeting->set < fleeting->limit) {
        set_batch(fleeting, ctx);
        return fleeting->times_out ? 0 : skua_continue(ctx);
    }
    return 0;
}

static const skua_process_type fleeting_type = {.name = "fleeting",
                                                .state_size = sizeof(void *),
                                                .init = api_init_world,
                                                .step = fleeting_step,
                                                .cancel = SKUA_CANCEL_EVENT};

/* Looks after each tenth of them how many nodes are in use. */
static void assert_nothing_piles_up(bool times_out)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *target = actor_start(NO_ACTS);
    world_settle();
    struct fleeting *fleeting = test_alloc(sizeof *fleeting);
    *fleeting = (struct fleeting){.target = target->pid, .times_out = times_out};
    const skua_pid pid = api_submit(world->api, &fleeting_type, fleeting);
    struct actor *lasting = actor_start(ACTS(for_each_tag(LASTING, monitors(0, target))));
    world_settle();
    const uint64_t nodes = nodes_in_use(); /* LASTING calls and as many watchers among them */
    for (uint64_t i = 1; i <= 100; i++) {
        fleeting->limit = i * MONITORS / 100;
        assert_int_equal(world_send(pid, skua_nothing()), 0);
        world_settle();
        assert_true(fleeting->ended == fleeting->set && fleeting->set >= fleeting->limit);
        /* As many watchers again that are over; those of the last batch were not. */
        assert_in_range(nodes_in_use(), nodes, nodes + LASTING + 2 * BATCH + SLACK);
    }
    assert_int_equal(fleeting->wrong, 0);
    assert_saw_nothing(lasting);
    actor_perform(target, ACTS(finishes(0)));
    assert_completed_each_once(lasting, LASTING, 0);
    assert_in_range(nodes_in_use(), 0, nodes - LASTING);
}

TEST(monitors_that_are_taken_back_do_not_pile_up_beside_lasting_ones)
{
    assert_nothing_piles_up(false);
}

TEST(monitors_that_time_out_do_not_pile_up_beside_lasting_ones)
{
    assert_nothing_piles_up(true);
}
