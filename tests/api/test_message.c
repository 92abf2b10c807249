/* SPDX-License-Identifier: MIT */
/* Messages: order, batches, who sent them, who owns their payloads, and what happens to a message
 * whose receiver is gone, ends at that moment, or belongs to another runtime. */

#include "api_support.h"

#define SENDERS      4
#define SENDER_TOTAL 3000

/* ---- order ---- */

/* The type of a message says which sender it is from, its number the place in that sender's row. */
struct collection {
    uint64_t next[SENDERS];
    skua_pid from[SENDERS]; /* as it should be */
    unsigned out_of_order;
    unsigned wrong_from;
    size_t largest_batch;
    struct tally received;
};

static void collection_init(struct collection *collection)
{
    *collection = (struct collection){.out_of_order = 0};
    tally_init(&collection->received);
}

static void collect(struct collection *collection, const skua_event *event)
{
    const uint32_t sender = event->payload.type;
    collection->out_of_order += skua_payload_to_u64(&event->payload) != collection->next[sender];
    collection->wrong_from += !skua_pid_equal(event->from, collection->from[sender]);
    collection->next[sender]++;
}

static int collector_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                          skua_step *out)
{
    struct collection *collection = api_world(self);
    (void)ctx;
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    if (count > collection->largest_batch) {
        collection->largest_batch = count;
    }
    for (size_t i = 0; i < count; i++) {
        collect(collection, &events[i]);
    }
    tally_add(&collection->received, count);
    return 0;
}

static const skua_process_type collector_type = {.name = "collector",
                                                 .state_size = sizeof(void *),
                                                 .init = api_init_world,
                                                 .step = collector_step};

static void check_collection(struct collection *collection, size_t senders, uint64_t each)
{
    assert_int_equal(collection->out_of_order, 0);
    assert_int_equal(collection->wrong_from, 0);
    assert_true(collection->largest_batch <= SKUA_EVENTS_PER_STEP);
    for (size_t i = 0; i < senders; i++) {
        assert_int_equal(collection->next[i], each);
    }
}

struct outside_sender {
    skua_runtime *runtime;
    skua_pid to;
    uint32_t number;
    int error; /* of a send that was refused */
};

static void send_row(void *arg)
{
    struct outside_sender *sender = arg;
    for (uint64_t i = 0; i < SENDER_TOTAL; i++) {
        const skua_payload payload = skua_payload_u64(sender->number, i);
        const int error = skua_message_send(sender->runtime, sender->to, payload);
        if (error != 0) {
            sender->error = error;
        }
    }
}

TEST(order_of_each_outside_thread_is_kept)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct collection collection;
    struct outside_sender senders[SENDERS];
    collection_init(&collection);
    api_run(&api, workers);
    const skua_pid to = api_submit(&api, &collector_type, &collection);
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct outside_sender){.runtime = api.runtime, .to = to, .number = i};
    }
    api_in_threads(SENDERS, send_row, senders, sizeof senders[0]);
    for (uint32_t i = 0; i < SENDERS; i++) {
        assert_int_equal(senders[i].error, 0);
    }
    tally_wait(&collection.received, SENDERS * SENDER_TOTAL);
    assert_int_equal(api_stats(&api).messages, SENDERS * SENDER_TOTAL);
    api_stop(&api);
    check_collection(&collection, SENDERS, SENDER_TOTAL); /* from stays zero: outside */
}

/* A process that sends a row, some messages in every step. */
struct inside_sender {
    struct collection *collection;
    skua_pid to;
    uint32_t number;
    uint64_t sent;
};

static int inside_sender_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                              skua_step *out)
{
    struct inside_sender *sender = api_world(self);
    (void)events;
    (void)count;
    for (unsigned i = 0; i < 150 && sender->sent < SENDER_TOTAL; i++) {
        const skua_payload payload = skua_payload_u64(sender->number, sender->sent++);
        const int error = skua_context_send(ctx, sender->to, payload);
        if (error != 0) {
            return error;
        }
    }
    if (sender->sent == SENDER_TOTAL) {
        skua_step_done(out, skua_payload_empty(0));
    } else {
        skua_step_continue(out);
    }
    return 0;
}

/* The receiver must know who each sender is before the first message is there. */
static int inside_sender_init(void *self, skua_context *ctx, const char *method,
                              skua_payload *input, size_t input_count)
{
    const int error = api_init_world(self, ctx, method, input, input_count);
    const struct inside_sender *sender = api_world(self);
    sender->collection->from[sender->number] = skua_context_self(ctx);
    return error;
}

static const skua_process_type inside_sender_type = {.name = "sender",
                                                     .state_size = sizeof(void *),
                                                     .init = inside_sender_init,
                                                     .step = inside_sender_step};

TEST(order_of_each_sending_process_is_kept)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct collection collection;
    struct inside_sender senders[SENDERS];
    collection_init(&collection);
    api_run(&api, workers);
    const skua_pid to = api_submit(&api, &collector_type, &collection);
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct inside_sender){.collection = &collection, .to = to, .number = i};
        (void)api_submit(&api, &inside_sender_type, &senders[i]);
    }
    api_wait_live(&api, 1); /* all have sent, or failed to */
    for (uint32_t i = 0; i < SENDERS; i++) {
        assert_int_equal(senders[i].sent, SENDER_TOTAL);
    }
    tally_wait(&collection.received, SENDERS * SENDER_TOTAL);
    api_stop(&api);
    check_collection(&collection, SENDERS, SENDER_TOTAL);
}

/* ---- batches ---- */

/* A collector that stands still at the beginning of some steps, until it is let go on. */
struct paused_collection {
    struct collection collection;
    struct tally entered;
    struct tally released;
    uint64_t pauses; /* steps that wait to be released */
    uint64_t steps;
};

static int paused_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct paused_collection *paused = api_world(self);
    struct collection *collection = &paused->collection;
    paused->steps++;
    if (paused->steps <= paused->pauses) {
        tally_add(&paused->entered, 1);
        tally_wait(&paused->released, paused->steps);
    }
    return collector_step(&collection, ctx, events, count, out);
}

static const skua_process_type paused_type = {
    .name = "paused", .state_size = sizeof(void *), .init = api_init_world, .step = paused_step};

static void paused_init(struct paused_collection *paused, uint64_t pauses)
{
    *paused = (struct paused_collection){.pauses = pauses};
    collection_init(&paused->collection);
    tally_init(&paused->entered);
    tally_init(&paused->released);
}

static void send_numbers(const struct api *api, skua_pid to, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        assert_int_equal(skua_message_send(api->runtime, to, skua_payload_u64(0, i)), 0);
    }
}

TEST(batch_is_cut_and_the_rest_comes_in_order)
{
    const uint64_t total = 10 * SKUA_EVENTS_PER_STEP + 50;
    const uint32_t workers = test_workers();
    struct api api;
    struct paused_collection paused;
    paused_init(&paused, 1);
    api_run(&api, workers);
    const skua_pid to = api_submit(&api, &paused_type, &paused);
    tally_wait(&paused.entered, 1);
    send_numbers(&api, to, 0, total);
    tally_add(&paused.released, 1);
    tally_wait(&paused.collection.received, total);
    api_stop(&api);
    check_collection(&paused.collection, 1, total);
    assert_int_equal(paused.collection.largest_batch, SKUA_EVENTS_PER_STEP);
    assert_int_equal(paused.steps, 1 + 10 + 1 + 1); /* first, full, the rest, cancel */
}

/* What arrives while older messages still wait comes after them. */
TEST(batch_cut_with_new_arrivals_keeps_the_order)
{
    const uint64_t wave = 2 * SKUA_EVENTS_PER_STEP + 50;
    const uint64_t waves = 12;
    const uint32_t workers = test_workers();
    struct api api;
    struct paused_collection paused;
    paused_init(&paused, waves);
    api_run(&api, workers);
    const skua_pid to = api_submit(&api, &paused_type, &paused);
    for (uint64_t i = 0; i < waves; i++) {
        tally_wait(&paused.entered, i + 1);
        send_numbers(&api, to, i * wave, (i + 1) * wave);
        tally_add(&paused.released, 1);
    }
    tally_wait(&paused.collection.received, waves * wave);
    api_stop(&api);
    check_collection(&paused.collection, 1, waves * wave);
}

/* ---- arrival while the receiver runs ---- */

#define RUNNING_ROUNDS 300

/* Every step but the last does not return before a message has been sent to it. */
struct running_world {
    struct tally entered;
    struct tally sent;
    uint64_t received;
};

static int running_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct running_world *world = api_world(self);
    (void)ctx;
    (void)events;
    world->received += count;
    if (world->received == RUNNING_ROUNDS) {
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    }
    tally_add(&world->entered, 1);
    tally_wait(&world->sent, world->received + 1);
    return 0;
}

static const skua_process_type running_type = {
    .name = "running", .state_size = sizeof(void *), .init = api_init_world, .step = running_step};

TEST(message_to_a_running_process_is_seen)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct running_world world = {.received = 0};
    tally_init(&world.entered);
    tally_init(&world.sent);
    api_run(&api, workers);
    const skua_pid pid = api_submit(&api, &running_type, &world);
    for (uint64_t i = 0; i < RUNNING_ROUNDS; i++) {
        tally_wait(&world.entered, i + 1);
        assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)), 0);
        tally_add(&world.sent, 1);
    }
    api_wait_live(&api, 0);
    api_stop(&api);
    assert_int_equal(world.received, RUNNING_ROUNDS);
}

/* ---- conversations ---- */

#define PINGS 5000

struct player {
    skua_pid opponent; /* zero: serves whoever writes first */
    uint64_t hits;
    unsigned wrong;
};

static int player_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct player *player = api_world(self);
    if (count == 0) {
        return skua_pid_is_none(player->opponent)
                   ? 0
                   : skua_context_send(ctx, player->opponent, skua_payload_u64(0, 1));
    }
    const uint64_t number = skua_payload_to_u64(&events[0].payload);
    player->wrong += count != 1 || (player->hits > 0 && number != player->hits + 2);
    player->hits = number;
    if (number >= PINGS) {
        skua_step_done(out, skua_payload_empty(0));
    }
    if (number > PINGS) {
        return 0; /* the other one ended with the last ping */
    }
    return skua_context_send(ctx, events[0].from, skua_payload_u64(0, number + 1));
}

static const skua_process_type player_type = {
    .name = "player", .state_size = sizeof(void *), .init = api_init_world, .step = player_step};

TEST(ping_pong_loses_nothing)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct player players[2] = {0};
    api_run(&api, workers);
    players[1].opponent = api_submit(&api, &player_type, &players[0]);
    (void)api_submit(&api, &player_type, &players[1]);
    api_wait_live(&api, 0);
    api_stop(&api);
    assert_int_equal(players[0].hits + players[1].hits, PINGS + PINGS + 1);
    assert_int_equal(players[0].wrong + players[1].wrong, 0);
}

/* ---- to itself ---- */

static int narcissus_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                          skua_step *out)
{
    struct collection *collection = api_world(self);
    const skua_pid me = skua_context_self(ctx);
    if (count == 0) {
        collection->from[0] = me;
        for (uint64_t i = 0; i < SENDER_TOTAL; i++) {
            const int error = skua_context_send(ctx, me, skua_payload_u64(0, i));
            if (error != 0) {
                return error;
            }
        }
        return 0;
    }
    const int error = collector_step(self, ctx, events, count, out);
    if (collection->next[0] == SENDER_TOTAL) {
        skua_step_done(out, skua_payload_empty(0));
    }
    return error;
}

static const skua_process_type narcissus_type = {.name = "narcissus",
                                                 .state_size = sizeof(void *),
                                                 .init = api_init_world,
                                                 .step = narcissus_step};

TEST(message_to_itself_arrives_in_a_later_step)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct collection collection;
    collection_init(&collection);
    api_run(&api, workers);
    const skua_exit exit = api_run_process(&api, &narcissus_type, &collection);
    api_stop(&api);
    assert_int_equal(exit.error, 0);
    check_collection(&collection, 1, SENDER_TOTAL);
}

/* ---- payloads ---- */

/* Keeps what it gets and hands it to the test, which looks at it when the process is gone. */
struct gift_box {
    skua_payload gifts[16];
    skua_event events[16]; /* without their payloads */
    uint64_t count;
    struct tally received;
};

static int boxer_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct gift_box *box = api_world(self);
    (void)ctx;
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        box->events[box->count] = events[i];
        box->gifts[box->count++] = skua_payload_take(&events[i].payload);
    }
    tally_add(&box->received, count);
    return 0;
}

static const skua_process_type boxer_type = {
    .name = "boxer", .state_size = sizeof(void *), .init = api_init_world, .step = boxer_step};

TEST(payload_of_every_kind_arrives_as_it_was_sent)
{
    struct api api;
    struct gift_box box = {.count = 0};
    struct tracked owned = {.value = 11};
    struct tracked pointed = {.value = 12};
    const char text[] = "thirty-one characters and a zero";
    skua_payload copies[2];
    tally_init(&box.received);
    api_run(&api, 1);
    const skua_pid pid = api_submit(&api, &boxer_type, &box);
    assert_int_equal(skua_payload_copy(api.runtime, 5, text, 24, &copies[0]), 0);
    assert_int_equal(skua_payload_copy(api.runtime, 6, text, sizeof text, &copies[1]), 0);
    const skua_payload sent[] = {
        skua_payload_empty(1),
        skua_payload_u64(2, UINT64_MAX - 3),
        skua_payload_pid(3, pid),
        tracked_payload(4, &owned),
        copies[0],
        copies[1],
        skua_payload_pointer(7, &pointed, tracked_payload(0, &pointed).as.owned.drop),
    };
    for (size_t i = 0; i < COUNT_OF(sent); i++) {
        assert_int_equal(skua_message_send(api.runtime, pid, sent[i]), 0);
    }
    tally_wait(&box.received, COUNT_OF(sent));

    for (uint32_t i = 0; i < COUNT_OF(sent); i++) {
        assert_int_equal(box.events[i].type, SKUA_EVENT_MESSAGE);
        assert_int_equal(box.events[i].error, 0);
        assert_int_equal(box.events[i].tag, 0);
        assert_true(skua_pid_is_none(box.events[i].from));
        assert_int_equal(box.gifts[i].type, i + 1);
        assert_int_equal(skua_payload_size(&box.gifts[i]), skua_payload_size(&sent[i]));
    }
    assert_null(skua_payload_data(&box.gifts[0]));
    assert_true(skua_payload_to_u64(&box.gifts[1]) == UINT64_MAX - 3);
    assert_true(skua_pid_equal(skua_payload_to_pid(&box.gifts[2]), pid));
    assert_ptr_equal(skua_payload_data(&box.gifts[3]), &owned);
    assert_memory_equal(skua_payload_data(&box.gifts[4]), text, 24);
    assert_memory_equal(skua_payload_data(&box.gifts[5]), text, sizeof text);
    assert_ptr_equal(skua_payload_data(&box.gifts[6]), &pointed);
    assert_drops(&owned, 1, 0);
    assert_drops(&pointed, 1, 0);
    for (size_t i = 0; i < COUNT_OF(sent); i++) {
        skua_payload_drop(&box.gifts[i]);
    }
    api_stop(&api);
    assert_drops(&owned, 1, 1);
    assert_drops(&pointed, 1, 1);
}

TEST(payload_left_in_its_event_is_dropped_once)
{
    struct api api;
    struct tracked items[250] = {0};
    struct blocker blocker;
    api_run(&api, 1);
    const skua_pid pid = api_submit(&api, &api_idler, NULL);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    /* One alone, which travels another way than a batch. */
    assert_int_equal(skua_message_send(api.runtime, pid, tracked_payload(0, &items[0])), 0);
    api_wait_steps(&api, pid, 2);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    assert_drops(&items[0], 1, 1);
    blocker_start(&blocker, &api);
    for (size_t i = 1; i < COUNT_OF(items); i++) {
        assert_int_equal(skua_message_send(api.runtime, pid, tracked_payload(0, &items[i])), 0);
    }
    blocker_release(&blocker);
    api_stop(&api);
    assert_drops(items, COUNT_OF(items), 1);
}

#define RELAYS        5
#define RELAYED_TOTAL 200

struct relay {
    skua_pid next; /* zero: the last one */
    skua_pid previous;
    uint64_t received;
    unsigned wrong;
    struct tally *arrived;
};

static int relay_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct relay *relay = api_world(self);
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        relay->wrong += tracked_value(&events[i].payload) != relay->received++ ||
                        !skua_pid_equal(events[i].from, relay->previous);
        if (skua_pid_is_none(relay->next)) {
            tally_add(relay->arrived, 1);
        } else {
            relay->wrong +=
                skua_context_send(ctx, relay->next, skua_payload_take(&events[i].payload)) != 0;
        }
    }
    return 0;
}

static const skua_process_type relay_type = {
    .name = "relay", .state_size = sizeof(void *), .init = api_init_world, .step = relay_step};

TEST(payload_taken_and_passed_on_is_dropped_once_at_the_end)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct tally arrived;
    struct relay relays[RELAYS] = {0};
    struct tracked items[RELAYED_TOTAL] = {0};
    tally_init(&arrived);
    api_run(&api, workers);
    skua_pid first = {0};
    for (size_t i = RELAYS; i-- > 0;) {
        relays[i].next = first;
        relays[i].arrived = &arrived;
        first = api_submit(&api, &relay_type, &relays[i]);
        if (i + 1 < RELAYS) {
            relays[i + 1].previous = first; /* it reads that when the first message comes */
        }
    }
    for (size_t i = 0; i < RELAYED_TOTAL; i++) {
        items[i].value = i;
        assert_int_equal(skua_message_send(api.runtime, first, tracked_payload(0, &items[i])), 0);
    }
    tally_wait(&arrived, RELAYED_TOTAL);
    api_stop(&api);
    for (size_t i = 0; i < RELAYS; i++) {
        assert_int_equal(relays[i].received, RELAYED_TOTAL);
        assert_int_equal(relays[i].wrong, 0);
    }
    assert_drops(items, RELAYED_TOTAL, 1);
}

/* ---- a receiver that ends at that moment ---- */

#define END_ROUNDS  1000
#define END_THREADS 3

/* Ends with its first message; takes some of the payloads before. */
static int mayfly_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    (void)self;
    (void)ctx;
    if (count == 0) {
        return 0;
    }
    if (events[0].type == SKUA_EVENT_MESSAGE && tracked_value(&events[0].payload) % 2 == 0) {
        skua_payload taken = skua_payload_take(&events[0].payload);
        skua_payload_drop(&taken);
        return SKUA_E_USER;
    }
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type mayfly_type = {.name = "mayfly", .step = mayfly_step};

struct end_race {
    struct api api;
    pthread_barrier_t round;
    skua_pid target;
    atomic_uint submit_errors;
    atomic_uint odd_errors;
    atomic_uint accepted;
    struct tracked items[END_ROUNDS][END_THREADS][2];
};

struct racer {
    struct end_race *race;
    size_t number;
};

static void send_to_mayfly(struct end_race *race, struct tracked *item)
{
    const int error = skua_message_send(race->api.runtime, race->target, tracked_payload(0, item));
    if (error == 0) {
        (void)atomic_fetch_add(&race->accepted, 1);
    } else if (error != SKUA_E_NO_PROCESS) {
        (void)atomic_fetch_add(&race->odd_errors, 1);
    }
}

static void race_to_mayfly(void *arg)
{
    const struct racer *racer = arg;
    struct end_race *race = racer->race;
    for (size_t round = 0; round < END_ROUNDS; round++) {
        if (racer->number == 0 &&
            skua_process_submit(race->api.runtime, &mayfly_type, NULL, NULL, 0, &race->target)) {
            (void)atomic_fetch_add(&race->submit_errors, 1);
        }
        (void)pthread_barrier_wait(&race->round);
        struct tracked *items = race->items[round][racer->number];
        items[0].value = round;
        send_to_mayfly(race, &items[0]);
        if (round % 3 == 0 && racer->number == 1) {
            (void)skua_process_terminate(race->api.runtime, race->target); /* may be too late */
        }
        send_to_mayfly(race, &items[1]);
        (void)pthread_barrier_wait(&race->round);
    }
}

TEST(send_to_a_process_that_ends_drops_every_payload_once)
{
    const uint32_t workers = test_workers();
    struct end_race *race = calloc(1, sizeof *race);
    assert_non_null(race);
    struct racer racers[END_THREADS];
    api_run(&race->api, workers);
    assert_int_equal(pthread_barrier_init(&race->round, NULL, END_THREADS), 0);
    for (size_t i = 0; i < END_THREADS; i++) {
        racers[i] = (struct racer){.race = race, .number = i};
    }
    api_in_threads(END_THREADS, race_to_mayfly, racers, sizeof racers[0]);
    assert_int_equal(api_stats(&race->api).messages, race->accepted);
    api_stop(&race->api);
    assert_int_equal(race->submit_errors, 0);
    assert_int_equal(race->odd_errors, 0);
    assert_drops(&race->items[0][0][0], sizeof race->items / sizeof race->items[0][0][0], 1);
    assert_int_equal(pthread_barrier_destroy(&race->round), 0);
    free(race);
}

static int done_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type brief_type = {.name = "brief", .step = done_step};

/* Messages that wait when their process ends are dropped with it. */
TEST(message_waiting_at_the_end_is_dropped_once)
{
    struct api api;
    struct paused_collection paused;
    struct tracked items[250] = {0};
    paused_init(&paused, 1);
    api_run(&api, 1);
    const skua_pid pid = api_submit(&api, &paused_type, &paused);
    tally_wait(&paused.entered, 1);
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        assert_int_equal(skua_message_send(api.runtime, pid, tracked_payload(0, &items[i])), 0);
    }
    assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
    assert_drops(items, COUNT_OF(items), 0);
    tally_add(&paused.released, 1);
    api_stop(&api);
    assert_drops(items, COUNT_OF(items), 1);
    assert_int_equal(paused.steps, 1);
}

/* Sends itself one message after the other. */
static int talker_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    uint64_t *left = api_world(self);
    (void)events;
    (void)count;
    if ((*left)-- == 0) {
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    }
    return skua_context_send(ctx, skua_context_self(ctx), skua_payload_empty(0));
}

static const skua_process_type talker_type = {
    .name = "talker", .state_size = sizeof(void *), .init = api_init_world, .step = talker_step};

/* Events come from a pool that grows by megabytes: what is not given back shows. */
TEST(messages_read_one_by_one_give_their_memory_back)
{
    struct api api;
    uint64_t few = 100;
    uint64_t many = 50000;
    api_run(&api, 1);
    assert_int_equal(api_run_process(&api, &talker_type, &few).error, 0);
    const uint64_t bytes = counting_allocator_live_bytes(&api.memory);
    assert_int_equal(api_run_process(&api, &talker_type, &many).error, 0);
    assert_int_equal(counting_allocator_live_bytes(&api.memory), bytes);
    api_stop(&api);
}

TEST(messages_dropped_unread_give_their_memory_back)
{
    struct api api;
    uint64_t bytes = 0;
    api_run(&api, 1);
    for (unsigned round = 0; round < 100; round++) {
        struct paused_collection paused;
        paused_init(&paused, 1);
        const skua_pid pid = api_submit(&api, &paused_type, &paused);
        tally_wait(&paused.entered, 1);
        send_numbers(&api, pid, 0, 1000);
        if (round % 2 == 0) {
            assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
        } else {
            assert_int_equal(skua_process_cancel(api.runtime, pid, 0), 0);
        }
        tally_add(&paused.released, 1);
        api_wait_live(&api, 0);
        assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)),
                         SKUA_E_NO_PROCESS);
        if (round == 10) {
            bytes = counting_allocator_live_bytes(&api.memory);
        }
    }
    assert_int_equal(counting_allocator_live_bytes(&api.memory), bytes);
    api_stop(&api);
}

/* ---- PIDs that lead nowhere ---- */

TEST(stale_pid_never_reaches_the_next_process_in_its_place)
{
    struct api api;
    struct collection collection;
    struct tracked item = {0};
    skua_process_info info;
    skua_exit exit;
    /* One place only: the second process lives where the first one did. */
    api_create(&api, (skua_runtime_config){.worker_count = 1, .process_limit = 1});
    api_start(&api);
    assert_int_equal(skua_process_run(api.runtime, &brief_type, NULL, NULL, 0, &exit), 0);
    api_wait_live(&api, 0);
    collection_init(&collection);
    const skua_pid second = api_submit(&api, &collector_type, &collection);
    assert_false(skua_pid_equal(exit.pid, second));

    assert_int_equal(skua_message_send(api.runtime, exit.pid, tracked_payload(0, &item)),
                     SKUA_E_NO_PROCESS);
    assert_drops(&item, 1, 1);
    assert_int_equal(skua_process_cancel(api.runtime, exit.pid, 0), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_terminate(api.runtime, exit.pid), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_info_read(api.runtime, exit.pid, &info), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_wait(api.runtime, exit.pid, SKUA_FOREVER, NULL),
                     SKUA_E_NO_PROCESS);

    assert_int_equal(skua_message_send(api.runtime, second, skua_payload_u64(0, 0)), 0);
    tally_wait(&collection.received, 1);
    api_stop(&api);
    check_collection(&collection, 1, 1);
}

struct foreign_world {
    skua_pid to;
    struct tracked item;
    int error;
};

static void send_from_step(void *arg, skua_context *ctx, skua_step *out)
{
    struct foreign_world *world = arg;
    (void)out;
    world->error = skua_context_send(ctx, world->to, tracked_payload(0, &world->item));
}

TEST(pid_of_another_runtime_is_refused)
{
    struct api here;
    struct api there;
    struct tracked item = {0};
    struct foreign_world world = {.error = 0};
    skua_process_info info;
    api_run(&here, 1);
    api_run(&there, 1);
    const skua_pid local = api_submit(&here, &api_idler, NULL);
    world.to = api_submit(&there, &api_idler, NULL);
    assert_int_equal(skua_message_send(here.runtime, world.to, tracked_payload(0, &item)),
                     SKUA_E_FOREIGN_PID);
    assert_drops(&item, 1, 1);
    api_in_step(&here, send_from_step, &world);
    assert_int_equal(world.error, SKUA_E_FOREIGN_PID);
    assert_drops(&world.item, 1, 1);
    assert_int_equal(skua_process_cancel(here.runtime, world.to, 0), SKUA_E_FOREIGN_PID);
    assert_int_equal(skua_process_terminate(here.runtime, world.to), SKUA_E_FOREIGN_PID);
    assert_int_equal(skua_process_info_read(here.runtime, world.to, &info), SKUA_E_FOREIGN_PID);
    assert_int_equal(skua_process_wait(here.runtime, world.to, SKUA_FOREVER, NULL),
                     SKUA_E_FOREIGN_PID);
    assert_int_equal(api_stats(&there).live, 1);
    assert_int_equal(skua_message_send(there.runtime, local, skua_payload_empty(0)),
                     SKUA_E_FOREIGN_PID);
    api_stop(&here);
    api_stop(&there);
}

/* ---- refusals ---- */

static void send_refused(const struct api *api, skua_pid to, int expected)
{
    struct tracked item = {0};
    assert_int_equal(skua_message_send(api->runtime, to, tracked_payload(0, &item)), expected);
    assert_drops(&item, 1, 1);
    struct foreign_world world = {.to = to};
    api_in_step(api, send_from_step, &world);
    assert_int_equal(world.error, expected);
    assert_drops(&world.item, 1, 1);
}

TEST(send_refused_for_any_reason_drops_the_payload_once)
{
    struct api api;
    struct paused_collection paused;
    struct tracked items[2] = {0};
    api_create(&api, (skua_runtime_config){.worker_count = 2, .mailbox_limit = 1});
    api_start(&api);
    assert_int_equal(skua_message_send(NULL, (skua_pid){1}, tracked_payload(0, &items[0])),
                     SKUA_E_INVALID);
    assert_int_equal(skua_context_send(NULL, (skua_pid){1}, tracked_payload(0, &items[1])),
                     SKUA_E_INVALID);
    assert_drops(items, 2, 1);
    assert_int_equal(skua_context_send_from(NULL, (skua_pid){1}, NULL), SKUA_E_INVALID);

    paused_init(&paused, 1);
    const skua_pid pid = api_submit(&api, &paused_type, &paused);
    tally_wait(&paused.entered, 1);
    send_refused(&api, (skua_pid){0}, SKUA_E_NO_PROCESS);
    send_refused(&api, (skua_pid){pid.bits + 5000}, SKUA_E_NO_PROCESS); /* nobody's yet */
    send_refused(&api, (skua_pid){~pid.bits}, SKUA_E_FOREIGN_PID);
    assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_u64(0, 0)), 0);
    send_refused(&api, pid, SKUA_E_MAILBOX_FULL);
    tally_add(&paused.released, 1);
    tally_wait(&paused.collection.received, 1);
    api_stop(&api);
    check_collection(&paused.collection, 1, 1);
}

TEST(send_without_memory_drops_the_payload_once)
{
    struct api api;
    struct tracked item = {0};
    api_run(&api, 1);
    const skua_pid pid = api_submit(&api, &api_idler, NULL);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    counting_allocator_fail_from(&api.memory, 1); /* no event has been needed so far */
    assert_int_equal(skua_message_send(api.runtime, pid, tracked_payload(0, &item)),
                     SKUA_E_NO_MEMORY);
    counting_allocator_fail_never(&api.memory);
    assert_drops(&item, 1, 1);
    assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)), 0);
    api_stop(&api);
}
