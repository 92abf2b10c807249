/* SPDX-License-Identifier: MIT */
/* Who owns the payload of a message, and what becomes of it when its receiver is gone, ends at that
 * moment, or belongs to another runtime. */
#include "actor.h"
#include "standstill.h"

static void send_items(const struct actor *to, struct tracked *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(world_send(to->pid, tracked_payload(0, &items[i])), 0);
    }
}

/* ---- payloads that arrive ---- */

enum { KINDS = 7 };

struct kept {
    skua_payload payloads[KINDS];
    size_t count;
};

static int keep_payloads(struct turn *turn, const struct act *act)
{
    struct kept *kept = act->arg;
    for (size_t i = turn_starts(turn); i < turn->count && kept->count < KINDS; i++) {
        kept->payloads[kept->count++] = skua_payload_take(&turn->events[i].payload);
    }
    return kept->count < KINDS ? ACT_WAITS : 0;
}

TEST(payload_of_every_kind_arrives_as_it_was_sent)
{
    const char text[] = "thirty-one characters and a zero";
    struct tracked items[2] = {0};
    struct kept kept = {.count = 0};
    skua_payload copies[2];
    world_open();
    struct actor *actor = actor_start(ACTS(does(keep_payloads, &kept)));
    assert_int_equal(skua_payload_copy(world_runtime(), 5, text, 24, &copies[0]), 0);
    assert_int_equal(skua_payload_copy(world_runtime(), 6, text, sizeof text, &copies[1]), 0);
    const skua_payload sent[KINDS] = {
        skua_payload_empty(1),
        skua_payload_u64(2, UINT64_MAX - 3),
        skua_payload_pid(3, actor->pid),
        tracked_payload(4, &items[0]),
        copies[0],
        copies[1],
        skua_payload_pointer(7, &items[1], tracked_payload(0, &items[1]).as.owned.drop),
    };
    for (size_t i = 0; i < KINDS; i++) {
        assert_int_equal(world_send(actor->pid, sent[i]), 0);
    }
    tally_wait(&actor->performed, 1);

    assert_int_equal(actor->seen_count, KINDS);
    for (uint32_t i = 0; i < KINDS; i++) {
        const struct seen *seen = &actor->seen[i];
        assert_int_equal(seen->type, SKUA_EVENT_MESSAGE);
        assert_int_equal(seen->error, 0);
        assert_int_equal(seen->tag, 0);
        assert_true(skua_pid_is_none(seen->from));
        assert_int_equal(kept.payloads[i].type, i + 1);
        assert_int_equal(skua_payload_size(&kept.payloads[i]), skua_payload_size(&sent[i]));
    }
    assert_null(skua_payload_data(&kept.payloads[0]));
    assert_true(skua_payload_to_u64(&kept.payloads[1]) == UINT64_MAX - 3);
    assert_true(skua_pid_equal(skua_payload_to_pid(&kept.payloads[2]), actor->pid));
    assert_ptr_equal(skua_payload_data(&kept.payloads[3]), &items[0]);
    assert_memory_equal(skua_payload_data(&kept.payloads[4]), text, 24);
    assert_memory_equal(skua_payload_data(&kept.payloads[5]), text, sizeof text);
    assert_ptr_equal(skua_payload_data(&kept.payloads[6]), &items[1]);
    assert_drops(items, 2, 0);
    for (size_t i = 0; i < KINDS; i++) {
        skua_payload_drop(&kept.payloads[i]);
    }
    world_close();
    assert_drops(items, 2, 1);
}

TEST(payload_left_in_its_event_is_dropped_once)
{
    test_of_steps("a task drops a payload when it receives the next event");
    struct tracked items[250] = {0};
    world_open();
    struct actor *actor = actor_start(NO_ACTS);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    send_items(actor, items, 1); /* one alone travels another way than a batch */
    actor_await_seen(actor, 1);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    assert_drops(items, 1, 1);
    standstill_begin();
    send_items(actor, &items[1], COUNT_OF(items) - 1);
    standstill_end();
    world_close();
    assert_int_equal(actor->seen_count, COUNT_OF(items) + 1); /* and the cancel event */
    assert_drops(items, COUNT_OF(items), 1);
}

TEST(payload_taken_and_passed_on_is_dropped_once_at_the_end)
{
    struct tracked items[200] = {0};
    struct actor *relays[5];
    world_open();
    for (size_t i = COUNT_OF(relays); i-- > 0;) {
        relays[i] =
            actor_start(i + 1 < COUNT_OF(relays) ? ACTS(passes_on(relays[i + 1])) : NO_ACTS);
    }
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        items[i].value = i;
    }
    send_items(relays[0], items, COUNT_OF(items));
    actor_await_seen(relays[COUNT_OF(relays) - 1], COUNT_OF(items));
    for (size_t i = 0; i < COUNT_OF(relays); i++) {
        const skua_pid from = i == 0 ? (skua_pid){0} : relays[i - 1]->pid;
        assert_int_equal(relays[i]->seen_count, COUNT_OF(items));
        for (size_t j = 0; j < COUNT_OF(items); j++) {
            assert_int_equal(relays[i]->seen[j].value, j);
            assert_true(skua_pid_equal(relays[i]->seen[j].from, from));
        }
    }
    world_close();
    assert_drops(items, COUNT_OF(items), 1);
}

/* ---- a receiver that ends at that moment ---- */

#define END_ROUNDS  1000
#define END_THREADS 3

struct end_race {
    pthread_barrier_t round;
    struct actor *receivers[END_ROUNDS];
    atomic_uint submit_errors;
    atomic_uint odd_errors;
    atomic_uint accepted;
    struct tracked items[END_ROUNDS][END_THREADS][2];
};

struct racer {
    struct end_race *race;
    size_t number;
};

static int drop_first_payload(struct turn *turn, const struct act *act)
{
    skua_payload taken = skua_payload_take(&turn->events[0].payload);
    (void)act;
    skua_payload_drop(&taken);
    return 0;
}

static void race_to_send(struct end_race *race, skua_pid to, struct tracked *item)
{
    const int error = world_send(to, tracked_payload(0, item));
    (void)atomic_fetch_add(&race->accepted, error == 0);
    (void)atomic_fetch_add(&race->odd_errors, error != 0 && error != SKUA_E_NO_PROCESS);
}

/* The first racer starts the receiver of each round; the second ends some of them. */
static void race_to_the_end(void *arg)
{
    const struct racer *racer = arg;
    struct end_race *race = racer->race;
    for (size_t round = 0; round < END_ROUNDS; round++) {
        struct actor *receiver = race->receivers[round];
        struct tracked *items = race->items[round][racer->number];
        if (racer->number == 0 && actor_try_submit(receiver) != 0) {
            (void)atomic_fetch_add(&race->submit_errors, 1);
        }
        (void)pthread_barrier_wait(&race->round);
        race_to_send(race, receiver->pid, &items[0]);
        if (round % 3 == 0 && racer->number == 1) {
            (void)world_terminate(receiver->pid); /* may be too late */
        }
        race_to_send(race, receiver->pid, &items[1]);
        (void)pthread_barrier_wait(&race->round);
    }
}

TEST(send_to_a_process_that_ends_drops_every_payload_once)
{
    struct end_race *race = test_alloc(sizeof *race);
    struct racer racers[END_THREADS];
    world_open();
    for (size_t i = 0; i < END_ROUNDS; i++) { /* they end with their first message */
        race->receivers[i] = actor_new(
            i % 2 == 0 ? ACTS(awaits(1), does(drop_first_payload, NULL), fails(SKUA_E_USER))
                       : ACTS(awaits(1), finishes(0)));
    }
    assert_int_equal(pthread_barrier_init(&race->round, NULL, END_THREADS), 0);
    for (size_t i = 0; i < END_THREADS; i++) {
        racers[i] = (struct racer){.race = race, .number = i};
    }
    api_in_threads(END_THREADS, race_to_the_end, racers, sizeof racers[0]);
    assert_int_equal(pthread_barrier_destroy(&race->round), 0);
    assert_int_equal(world_stats().messages, race->accepted);
    world_close();
    assert_int_equal(race->submit_errors, 0);
    assert_int_equal(race->odd_errors, 0);
    assert_drops(&race->items[0][0][0], END_ROUNDS * END_THREADS * 2, 1);
}

TEST(message_waiting_at_the_end_is_dropped_once)
{
    struct tracked items[250] = {0};
    world_open();
    struct actor *actor = actor_start_held();
    send_items(actor, items, COUNT_OF(items));
    assert_int_equal(world_terminate(actor->pid), 0);
    assert_drops(items, COUNT_OF(items), 0);
    actor_let_go(actor);
    world_close();
    assert_drops(items, COUNT_OF(items), 1);
    assert_int_equal(actor->steps, 1);
}

/* ---- memory: events come from a pool that grows by megabytes, so what is lost shows ---- */

TEST(messages_read_one_by_one_give_their_memory_back)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *actor = actor_start(NO_ACTS);
    actor_perform(actor, ACTS(sends(actor, 0, 0), awaits(1), repeats(100)));
    const uint64_t bytes = counting_allocator_live_bytes(&world->api->memory);
    actor_perform(actor, ACTS(sends(actor, 0, 0), awaits(1), repeats(50000)));
    assert_int_equal(counting_allocator_live_bytes(&world->api->memory), bytes);
}

TEST(messages_dropped_unread_give_their_memory_back)
{
    uint64_t bytes = 0;
    world_open_with((skua_runtime_config){.worker_count = 1});
    for (unsigned round = 0; round < 100; round++) {
        struct actor *actor = actor_start_held();
        for (unsigned i = 0; i < 1000; i++) {
            assert_int_equal(world_send(actor->pid, skua_payload_u64(0, i)), 0);
        }
        assert_int_equal(round % 2 == 0 ? world_terminate(actor->pid) : world_cancel(actor->pid, 0),
                         0);
        actor_let_go(actor);
        world_await_live(0);
        assert_int_equal(world_send(actor->pid, skua_payload_empty(0)), SKUA_E_NO_PROCESS);
        if (round == 10) {
            bytes = counting_allocator_live_bytes(&world->api->memory);
        }
    }
    assert_int_equal(counting_allocator_live_bytes(&world->api->memory), bytes);
}

/* ---- refusals ---- */

/* By a send from outside and by one from a process. */
static void check_send_refused(skua_pid to, int error)
{
    struct tracked items[2] = {0};
    struct actor *receiver = actor_new(NO_ACTS); /* only a name for the PID */
    receiver->pid = to;
    const struct act sending = refused(sends_item(receiver, 0, &items[0]), error);
    assert_result(actor_run(actor_new(ACTS(sending, finishes(0)))), 0);
    assert_int_equal(world_send(to, tracked_payload(0, &items[1])), error);
    assert_drops(items, 2, 1);
}

static void check_control_refused(skua_pid pid, int error)
{
    skua_process_snapshot info;
    assert_int_equal(world_cancel(pid, 0), error);
    assert_int_equal(world_terminate(pid), error);
    assert_int_equal(skua_process_info(world_runtime(), pid, &info), error);
    assert_int_equal(skua_process_wait(world_runtime(), pid, SKUA_FOREVER, NULL), error);
}

TEST(stale_pid_never_reaches_the_next_process_in_its_place)
{
    struct tracked item = {0};
    world_open_with((skua_runtime_config){.process_limit = 1}); /* they live in the same place */
    const skua_pid stale = actor_run(actor_new(ACTS(finishes(0)))).pid;
    world_await_live(0);
    struct actor *next = actor_start(NO_ACTS);
    assert_false(skua_pid_equal(stale, next->pid));
    assert_int_equal(world_send(stale, tracked_payload(0, &item)), SKUA_E_NO_PROCESS);
    assert_drops(&item, 1, 1);
    check_control_refused(stale, SKUA_E_NO_PROCESS);
    assert_int_equal(world_send(next->pid, skua_payload_u64(1, 2)), 0);
    actor_await_seen(next, 1);
    assert_saw(next, message(1, 2));
}

TEST(pid_of_another_runtime_is_refused)
{
    struct api there;
    world_open();
    api_run(&there, 1);
    const skua_pid local = actor_start(NO_ACTS)->pid;
    const skua_pid foreign = api_submit(&there, &api_idler, NULL);
    check_send_refused(foreign, SKUA_E_FOREIGN_PID);
    check_control_refused(foreign, SKUA_E_FOREIGN_PID);
    assert_int_equal(api_stats(&there).live, 1);
    assert_int_equal(skua_process_send(there.runtime, local, skua_payload_empty(0)),
                     SKUA_E_FOREIGN_PID);
    api_stop(&there);
}

TEST(send_refused_for_any_reason_drops_the_payload_once)
{
    struct tracked items[2] = {0};
    assert_int_equal(skua_process_send(NULL, (skua_pid){1}, tracked_payload(0, &items[0])),
                     SKUA_E_INVALID);
    assert_int_equal(skua_send(NULL, (skua_pid){1}, tracked_payload(0, &items[1])), SKUA_E_INVALID);
    assert_drops(items, 2, 1);
    assert_int_equal(skua_send_from(NULL, (skua_pid){1}, NULL), SKUA_E_INVALID);

    world_open_with((skua_runtime_config){.worker_count = 2, .mailbox_limit = 1});
    struct actor *full = actor_start_held();
    assert_int_equal(world_send(full->pid, skua_payload_u64(1, 2)), 0);
    check_send_refused((skua_pid){0}, SKUA_E_NO_PROCESS);
    check_send_refused((skua_pid){full->pid.bits + 5000}, SKUA_E_NO_PROCESS); /* nobody's yet */
    check_send_refused((skua_pid){~full->pid.bits}, SKUA_E_FOREIGN_PID);
    check_send_refused(full->pid, SKUA_E_MAILBOX_FULL);
    actor_let_go(full);
    actor_await_seen(full, 1);
    assert_saw(full, message(1, 2));
}

TEST(send_without_memory_drops_the_payload_once)
{
    struct tracked item = {0};
    int error = 0;
    world_open();
    struct actor *actor = actor_start_held();
    counting_allocator_fail_from(&world->api->memory, 1);
    while (error == 0) { /* until the nodes that are there are in use */
        error = world_send(actor->pid, skua_payload_empty(0));
    }
    assert_int_equal(error, SKUA_E_NO_MEMORY);
    assert_int_equal(world_send(actor->pid, tracked_payload(0, &item)), SKUA_E_NO_MEMORY);
    counting_allocator_fail_never(&world->api->memory);
    assert_drops(&item, 1, 1);
    assert_int_equal(world_send(actor->pid, skua_payload_empty(0)), 0);
    actor_let_go(actor);
}
