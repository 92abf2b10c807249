/* SPDX-License-Identifier: MIT */
/* Requests with very many calls on their behalf: these are taken back, or forgotten, in slices.
 * Each of them ends once; nothing is left behind. */
#include "relations.h"
#include "timers.h"

#define MANY 5000

/* A client, whose request `middle` has passed on to `leaf` very often. */
struct errand {
    struct actor *leaf;
    struct actor *middle;
    struct actor *client;
};

static void send_out(struct errand *errand)
{
    errand->leaf = careful_server_new(NO_ACTS);
    errand->leaf->type.mailbox_limit = SKUA_MAILBOX_MAX;
    actor_submit(errand->leaf);
    errand->middle = server_start(
        ACTS(awaits(1), for_each_tag(MANY, within(HOUR, asks_for(0, 0, errand->leaf, 0)))));
    errand->client = actor_start(ACTS(asks(1, errand->middle, 0)));
    await_before_timers();
    assert_int_equal(errand->leaf->seen_count, MANY);
    assert_int_equal(errand->middle->seen_count, 1);
}

/* All that the middle has asked for has ended, each once, and in the same way. */
static void assert_all_ended(const struct errand *errand, int error)
{
    bool came[MANY] = {false};
    assert_int_equal(errand->middle->seen_count, 1 + MANY);
    for (size_t i = 1; i <= MANY; i++) {
        const struct seen *seen = &errand->middle->seen[i];
        const struct seen expected = completion(seen->tag, error);
        assert_true(seen_matches(seen, &expected));
        assert_in_range(seen->tag, 0, MANY - 1);
        assert_false(came[seen->tag]);
        came[seen->tag] = true;
    }
}

TEST(request_that_is_over_takes_back_very_many_calls_on_its_behalf)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct errand errand;
        world_open_driver(driver);
        send_out(&errand);
        actor_tell(errand.client, ACTS(cancels(1)));
        await_before_timers();
        assert_all_ended(&errand, SKUA_E_CANCELLED);
        assert_int_equal(errand.leaf->seen_count, 2 * MANY); /* it hears of each */
        assert_int_equal(errand.leaf->seen[2 * MANY - 1].type, SKUA_EVENT_ABANDON);
        assert_int_equal(timers_armed(), 0);
    }
}

/* The middle runs when the first of them have ended. */
TEST(very_many_calls_on_behalf_of_a_request_are_taken_back_in_slices)
{
    struct errand errand;
    world_open_sim(1, SIM_NO_FAULTS);
    send_out(&errand);
    assert_int_equal(timers_armed(), MANY);
    actor_tell(errand.client, ACTS(cancels(1)));
    for (uint64_t instant = world_now(); errand.middle->seen_count == 1;) {
        instant += MICROSECOND;
        world_set_clock(instant);
    }
    assert_in_range(timers_armed(), MANY / 2, MANY - 1);
    await_before_timers();
    assert_all_ended(&errand, SKUA_E_CANCELLED);
}

/* What becomes of the request; the calls on its behalf go on. */
TEST(answer_and_forward_leave_very_many_calls_on_behalf_of_the_request_alone)
{
    FOR_ROUNDS (round, 2 * DRIVERS) {
        struct errand errand;
        world_open_driver(1 + round % DRIVERS);
        struct actor *second = server_start(NO_ACTS);
        send_out(&errand);
        actor_tell(errand.middle,
                   round <= DRIVERS ? ACTS(answers(0, 2)) : ACTS(forwards(0, second, 3)));
        await_before_timers();
        assert_int_equal(errand.client->seen_count, round <= DRIVERS);
        actor_tell(errand.client, ACTS(cancels(1)));
        await_before_timers();
        assert_int_equal(timers_armed(), MANY);
        actor_tell(errand.leaf, ACTS(finishes(0)));
        await_before_timers();
        assert_all_ended(&errand, SKUA_E_PEER_ENDED);
    }
}

/* The middle ends at some moment after its request, while it sees to the calls. */
TEST(server_ends_while_very_many_calls_on_behalf_of_a_request_are_over)
{
    enum { MOMENTS = 40 };
    FOR_ROUNDS (round, 2 * MOMENTS) {
        struct errand errand;
        const uint64_t moment = round / 2;
        world_open_sim(round, SIM_NO_FAULTS);
        send_out(&errand);
        struct actor *watcher = actor_start(ACTS(monitors(1, errand.middle)));
        await_before_timers();
        if (round % 2 == 0) {
            actor_tell(errand.client, ACTS(cancels(1)));
            actor_tell(errand.middle, ACTS(continues(moment), fails(SKUA_E_USER)));
        } else {
            actor_tell(errand.middle, ACTS(answers(0, 2), continues(moment), fails(SKUA_E_USER)));
        }
        await_before_timers();
        assert_saw(watcher, end_of(1, errand.middle, SKUA_E_USER));
        assert_int_equal(errand.leaf->seen_count, 2 * MANY);
        assert_int_equal(timers_armed(), 0);
    }
}

TEST(very_many_calls_on_behalf_of_a_request_leave_no_event_nodes_behind)
{
    enum { WAYS = 4 };
    FOR_ROUNDS (way, WAYS) {
        uint64_t nodes = 0;
        world_open_virtual();
        for (int i = 0; i < 3; i++) {
            struct errand errand;
            send_out(&errand);
            actor_perform(errand.client, way == 1 ? ACTS(cancels(1)) : ACTS(continues(1)));
            actor_perform(errand.middle, way == 2   ? ACTS(answers(0, 1))
                                         : way == 3 ? ACTS(answers(0, 1), fails(SKUA_E_USER))
                                                    : ACTS(continues(1)));
            actor_perform(errand.leaf, ACTS(finishes(0)));
            if (way != 3) {
                actor_tell(errand.middle, ACTS(finishes(0)));
            }
            actor_tell(errand.client, ACTS(finishes(0)));
            nodes = i == 0 ? nodes_in_use() : nodes;
            assert_int_equal(nodes_in_use(), nodes);
        }
    }
}

TEST(runtime_stops_while_very_many_calls_on_behalf_of_a_request_are_over)
{
    FOR_ROUNDS (round, 8) {
        struct errand errand;
        world_open_virtual_with((skua_runtime_config){.worker_count = 2});
        send_out(&errand);
        actor_tell(errand.client, ACTS(cancels(1)));
        world_close();
        assert_int_equal(errand.middle->closes, 1);
    }
}
