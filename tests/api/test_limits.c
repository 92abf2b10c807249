/* SPDX-License-Identifier: MIT */
/* The limits of a runtime: processes, messages in a mailbox, bytes in a payload. */
#include <sched.h>

#include "api_support.h"

/* ---- processes ---- */

#define PROCESSES_MOST 1000

struct population {
    struct api api;
    uint32_t limit;
    atomic_uint count;
    atomic_uint odd_errors;
    skua_pid pids[PROCESSES_MOST];
};

static void population_start(struct population *population, uint32_t workers, uint32_t limit)
{
    population->limit = limit;
    population->count = 0;
    population->odd_errors = 0;
    api_create(&population->api,
               (skua_runtime_config){.worker_count = workers, .process_limit = limit});
    api_start(&population->api);
}

/* Submits one more; false if there is no place. Any thread. */
static bool grow(struct population *population)
{
    skua_pid pid = {0};
    const int error = skua_process_submit(population->api.runtime, &api_idler, NULL, NULL, 0, &pid);
    if (error != 0) {
        (void)atomic_fetch_add(&population->odd_errors, error != SKUA_E_PROCESS_LIMIT);
        return false;
    }
    const unsigned index = atomic_fetch_add(&population->count, 1);
    if (index < PROCESSES_MOST) {
        population->pids[index] = pid;
    }
    return true;
}

static void fill_up(void *arg)
{
    while (grow(arg)) {
    }
}

static void end_all(struct population *population)
{
    for (unsigned i = 0; i < population->count; i++) {
        assert_int_equal(skua_process_terminate(population->api.runtime, population->pids[i]), 0);
    }
    api_wait_live(&population->api, 0);
    population->count = 0;
}

static void population_stop(struct population *population)
{
    assert_int_equal(population->odd_errors, 0);
    api_stop(&population->api);
}

TEST(process_limit_when_small_is_exact)
{
    static const uint32_t limits[] = {1, 2, 7, 100};
    static struct population population;
    const uint32_t workers = test_workers();
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        population_start(&population, workers, limits[i]);
        for (unsigned round = 0; round < 3; round++) {
            fill_up(&population);
            assert_int_equal(population.count, limits[i]);
            assert_int_equal(api_stats(&population.api).live, limits[i]);
            end_all(&population);
        }
        population_stop(&population);
    }
}

TEST(process_limit_when_large_is_never_exceeded_and_nearly_reached)
{
    static struct population population;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        population_start(&population, workers, PROCESSES_MOST);
        for (unsigned round = 0; round < 3; round++) {
            fill_up(&population);
            assert_in_range(population.count, PROCESSES_MOST - PROCESSES_MOST / 64, PROCESSES_MOST);
            end_all(&population);
        }
        population_stop(&population);
    }
}

TEST(process_that_ends_leaves_one_place)
{
    static struct population population;
    const uint32_t workers = test_workers();
    population_start(&population, workers, 10);
    fill_up(&population);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(skua_process_terminate(population.api.runtime, population.pids[2 * i]), 0);
        api_wait_live(&population.api, 9);
        assert_true(grow(&population));
        assert_false(grow(&population));
    }
    population_stop(&population);
}

TEST(process_limit_under_concurrent_submits_is_exact)
{
    static struct population population;
    const uint32_t workers = test_workers();
    population_start(&population, workers, 50);
    for (unsigned round = 0; round < 10; round++) {
        api_in_threads(4, fill_up, &population, 0); /* all fill the same one */
        assert_int_equal(population.count, 50);
        assert_int_equal(api_stats(&population.api).live, 50);
        end_all(&population);
    }
    population_stop(&population);
}

/* Fills the runtime from its steps, once it is told to. */
struct spawners {
    atomic_uint spawned;
    atomic_uint odd_errors;
    struct tally finished;
};

static int spawner_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct spawners *spawners = api_world(self);
    if (count == 0 || api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    int error;
    while ((error = skua_context_spawn(ctx, &api_idler, NULL, NULL, 0, NULL)) == 0) {
        (void)atomic_fetch_add(&spawners->spawned, 1);
    }
    (void)atomic_fetch_add(&spawners->odd_errors, error != SKUA_E_PROCESS_LIMIT);
    tally_add(&spawners->finished, 1);
    return 0;
}

static const skua_process_type spawner_type = {
    .name = "spawner", .state_size = sizeof(void *), .init = api_init_world, .step = spawner_step};

TEST(process_limit_under_concurrent_spawns_is_exact)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct spawners spawners = {.spawned = 0};
    skua_pid pids[4];
    tally_init(&spawners.finished);
    api_create(&api, (skua_runtime_config){.worker_count = workers, .process_limit = 100});
    api_start(&api);
    for (size_t i = 0; i < COUNT_OF(pids); i++) {
        pids[i] = api_submit(&api, &spawner_type, &spawners);
    }
    for (size_t i = 0; i < COUNT_OF(pids); i++) {
        api_wait_state(&api, pids[i], SKUA_PROCESS_IDLE);
        assert_int_equal(skua_message_send(api.runtime, pids[i], skua_payload_empty(0)), 0);
    }
    tally_wait(&spawners.finished, COUNT_OF(pids));
    assert_int_equal(api_stats(&api).live, 100);
    api_stop(&api);
    assert_int_equal(spawners.spawned, 100 - COUNT_OF(pids));
    assert_int_equal(spawners.odd_errors, 0);
}

static atomic_uint inits;

static int counting_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                         size_t input_count)
{
    (void)self;
    (void)ctx;
    (void)method;
    (void)input;
    (void)input_count;
    (void)atomic_fetch_add(&inits, 1);
    return 0;
}

static int no_step(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)api_finish_if_cancelled(events, count, out);
    return 0;
}

static const skua_process_type counted_type = {
    .name = "counted", .init = counting_init, .step = no_step};

TEST(process_limit_reached_drops_the_input_and_calls_no_init)
{
    struct api api;
    struct tracked items[4] = {0};
    skua_payload input[4];
    skua_pid pid = {0};
    inits = 0;
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        input[i] = tracked_payload(0, &items[i]);
    }
    api_create(&api, (skua_runtime_config){.worker_count = 1, .process_limit = 1});
    api_start(&api);
    (void)api_submit(&api, &api_idler, NULL);
    assert_int_equal(skua_process_submit(api.runtime, &counted_type, NULL, input, 2, &pid),
                     SKUA_E_PROCESS_LIMIT);
    assert_true(skua_pid_is_none(pid));
    assert_int_equal(skua_process_run(api.runtime, &counted_type, NULL, &input[2], 2, NULL),
                     SKUA_E_PROCESS_LIMIT);
    assert_drops(items, COUNT_OF(items), 1);
    assert_int_equal(inits, 0);
    api_stop(&api);
}

/* ---- mailboxes ---- */

/* Counts its messages. The first two steps do not return before they are told to: the first holds
 * no messages, the second those that were sent during the first. */
struct sink {
    uint64_t steps;
    uint64_t pauses;
    size_t largest_batch;
    unsigned cancels;
    struct tally entered;
    struct tally released;
    struct tally received;
};

static int sink_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct sink *sink = api_world(self);
    uint64_t messages = 0;
    (void)ctx;
    sink->steps++;
    for (size_t i = 0; i < count; i++) {
        messages += events[i].type == SKUA_EVENT_MESSAGE;
        sink->cancels += events[i].type == SKUA_EVENT_CANCEL;
        if (events[i].type == SKUA_EVENT_CANCEL && events[i].error == SKUA_E_STOPPED) {
            skua_step_done(out, skua_payload_empty(0));
        }
    }
    if (messages > sink->largest_batch) {
        sink->largest_batch = messages;
    }
    tally_add(&sink->received, messages);
    if (sink->steps <= sink->pauses) {
        tally_add(&sink->entered, 1);
        tally_wait(&sink->released, sink->steps);
    }
    return 0;
}

static const skua_process_type sink_type = {
    .name = "sink", .state_size = sizeof(void *), .init = api_init_world, .step = sink_step};

static void sink_init(struct sink *sink, uint64_t pauses)
{
    *sink = (struct sink){.pauses = pauses};
    tally_init(&sink->entered);
    tally_init(&sink->released);
    tally_init(&sink->received);
}

/* Sends until the mailbox is full; returns how many were accepted. */
static uint64_t fill_mailbox(const struct api *api, skua_pid pid)
{
    uint64_t accepted = 0;
    struct tracked item = {0};
    int error;
    while ((error = skua_message_send(api->runtime, pid, skua_payload_empty(0))) == 0) {
        accepted++;
    }
    assert_int_equal(error, SKUA_E_MAILBOX_FULL);
    assert_int_equal(skua_message_send(api->runtime, pid, tracked_payload(0, &item)),
                     SKUA_E_MAILBOX_FULL);
    assert_drops(&item, 1, 1);
    skua_process_info info;
    assert_int_equal(skua_process_info_read(api->runtime, pid, &info), 0);
    assert_int_equal(info.mailbox_length, accepted);
    return accepted;
}

static void check_mailbox_limit(uint32_t of_runtime, const skua_process_type *type,
                                uint64_t expected)
{
    struct api api;
    struct sink sink;
    sink_init(&sink, 2);
    api_create(&api, (skua_runtime_config){.worker_count = 1, .mailbox_limit = of_runtime});
    api_start(&api);
    const skua_pid pid = api_submit(&api, type, &sink);
    tally_wait(&sink.entered, 1);
    assert_int_equal(fill_mailbox(&api, pid), expected);
    tally_add(&sink.released, 1);
    tally_wait(&sink.entered, 2); /* what the step holds does not wait any more */
    assert_int_equal(fill_mailbox(&api, pid), expected);
    tally_add(&sink.released, 1);
    tally_wait(&sink.received, 2 * expected);
    api_stop(&api);
    assert_int_equal(tally_count(&sink.received), 2 * expected);
}

TEST(mailbox_limit_is_the_runtimes_or_the_types)
{
    static skua_process_type smaller;
    static skua_process_type larger;
    smaller = sink_type;
    smaller.mailbox_limit = 3;
    larger = sink_type;
    larger.mailbox_limit = 10;
    check_mailbox_limit(1, &sink_type, 1);
    check_mailbox_limit(5, &sink_type, 5);
    check_mailbox_limit(5, &smaller, 3);
    check_mailbox_limit(5, &larger, 10);
    check_mailbox_limit(0, &smaller, 3);
}

TEST(mailbox_limit_is_whole_again_for_the_next_process_in_a_place)
{
    struct api api;
    struct sink sinks[3];
    api_create(&api,
               (skua_runtime_config){.worker_count = 1, .process_limit = 1, .mailbox_limit = 7});
    api_start(&api);
    for (size_t i = 0; i < COUNT_OF(sinks); i++) {
        sink_init(&sinks[i], 1);
        const skua_pid pid = api_submit(&api, &sink_type, &sinks[i]);
        tally_wait(&sinks[i].entered, 1);
        assert_int_equal(fill_mailbox(&api, pid), 7);
        assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
        tally_add(&sinks[i].released, 1);
        api_wait_live(&api, 0);
    }
    api_stop(&api);
}

/* A sender that does not give up. */
struct stubborn_sender {
    skua_runtime *runtime;
    skua_pid to;
    uint64_t accepted;
    unsigned odd_errors;
};

#define STUBBORN_TOTAL 2000
#define STUBBORN_COUNT 4

static void send_stubbornly(void *arg)
{
    struct stubborn_sender *sender = arg;
    while (sender->accepted < STUBBORN_TOTAL) {
        const int error = skua_message_send(sender->runtime, sender->to, skua_payload_empty(0));
        if (error == 0) {
            sender->accepted++;
        } else {
            sender->odd_errors += error != SKUA_E_MAILBOX_FULL;
            (void)sched_yield();
        }
    }
}

static void send_until_refused(void *arg)
{
    struct stubborn_sender *sender = arg;
    int error;
    while ((error = skua_message_send(sender->runtime, sender->to, skua_payload_empty(0))) == 0) {
        sender->accepted++;
    }
    sender->odd_errors += error != SKUA_E_MAILBOX_FULL;
}

static uint64_t send_from_threads(const struct api *api, skua_pid to, void (*function)(void *arg))
{
    struct stubborn_sender senders[STUBBORN_COUNT];
    uint64_t accepted = 0;
    for (size_t i = 0; i < STUBBORN_COUNT; i++) {
        senders[i] = (struct stubborn_sender){.runtime = api->runtime, .to = to};
    }
    api_in_threads(STUBBORN_COUNT, function, senders, sizeof senders[0]);
    for (size_t i = 0; i < STUBBORN_COUNT; i++) {
        assert_int_equal(senders[i].odd_errors, 0);
        accepted += senders[i].accepted;
    }
    return accepted;
}

TEST(mailbox_limit_under_concurrent_sends_delivers_what_it_accepted)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct sink sink;
    sink_init(&sink, 0);
    api_create(&api, (skua_runtime_config){.worker_count = workers, .mailbox_limit = 8});
    api_start(&api);
    const skua_pid pid = api_submit(&api, &sink_type, &sink);
    const uint64_t accepted = send_from_threads(&api, pid, send_stubbornly);
    assert_int_equal(accepted, STUBBORN_COUNT * STUBBORN_TOTAL);
    tally_wait(&sink.received, accepted);
    assert_int_equal(api_stats(&api).messages, accepted);
    api_stop(&api);
    assert_int_equal(tally_count(&sink.received), accepted);
    /* A batch is what waited at one moment; one message more if it woke the process while
         * others took the places. */
    assert_in_range(sink.largest_batch, 1, 8 + 1);
}

TEST(mailbox_limit_under_concurrent_sends_is_exact)
{
    for (unsigned round = 0; round < 20; round++) {
        struct api api;
        struct sink sink;
        sink_init(&sink, 1);
        api_create(&api, (skua_runtime_config){.worker_count = 1, .mailbox_limit = 50});
        api_start(&api);
        const skua_pid pid = api_submit(&api, &sink_type, &sink);
        tally_wait(&sink.entered, 1);
        uint64_t accepted = send_from_threads(&api, pid, send_until_refused);
        assert_in_range(accepted, 1, 50);
        /* A sender may be refused while another one that is refused, too, still holds a place. */
        while (skua_message_send(api.runtime, pid, skua_payload_empty(0)) == 0) {
            accepted++;
        }
        assert_int_equal(accepted, 50);
        tally_add(&sink.released, 1);
        tally_wait(&sink.received, 50);
        api_stop(&api);
        assert_int_equal(tally_count(&sink.received), 50);
    }
}

static void fill_from_step(void *arg, skua_context *ctx, skua_step *out)
{
    unsigned *accepted = arg;
    (void)out;
    while (skua_context_send(ctx, skua_context_self(ctx), skua_payload_empty(0)) == 0) {
        ++*accepted;
    }
}

TEST(mailbox_limit_holds_for_sends_of_processes)
{
    struct api api;
    unsigned accepted = 0;
    api_create(&api, (skua_runtime_config){.worker_count = 1, .mailbox_limit = 9});
    api_start(&api);
    api_in_step(&api, fill_from_step, &accepted);
    api_stop(&api);
    assert_int_equal(accepted, 9);
}

TEST(mailbox_that_is_full_takes_cancel_events)
{
    struct api api;
    struct sink sink;
    sink_init(&sink, 1);
    api_create(&api, (skua_runtime_config){.worker_count = 1, .mailbox_limit = 1});
    api_start(&api);
    const skua_pid pid = api_submit(&api, &sink_type, &sink);
    tally_wait(&sink.entered, 1);
    assert_int_equal(fill_mailbox(&api, pid), 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(skua_process_cancel(api.runtime, pid, -1), 0);
    }
    tally_add(&sink.released, 1);
    tally_wait(&sink.received, 1);
    api_stop(&api);
    assert_int_equal(sink.cancels, 3 + 1); /* and that of the shutdown */
}

/* ---- payloads ---- */

#define PAYLOAD_LIMIT 100

/* A payload that says it has `size` bytes. Nobody reads them. */
static skua_payload sized(struct tracked *item, size_t size)
{
    return skua_payload_owned(0, item, size, tracked_payload(0, item).as.owned.drop);
}

static void api_with_payload_limit(struct api *api, size_t limit)
{
    api_create(api, (skua_runtime_config){.worker_count = 1, .payload_limit = limit});
    api_start(api);
}

TEST(payload_limit_holds_for_send)
{
    struct api api;
    struct tracked items[3] = {0};
    api_with_payload_limit(&api, PAYLOAD_LIMIT);
    const skua_pid pid = api_submit(&api, &api_idler, NULL);
    assert_int_equal(skua_message_send(api.runtime, pid, sized(&items[0], PAYLOAD_LIMIT)), 0);
    assert_int_equal(skua_message_send(api.runtime, pid, sized(&items[1], PAYLOAD_LIMIT + 1)),
                     SKUA_E_PAYLOAD_SIZE);
    assert_drops(&items[1], 1, 1);
    assert_int_equal(skua_message_send(api.runtime, pid, sized(&items[2], SIZE_MAX)),
                     SKUA_E_PAYLOAD_SIZE);
    api_stop(&api);
    assert_drops(items, COUNT_OF(items), 1);
}

struct step_sizes {
    struct tracked items[6];
    int errors[6];
};

static void use_sizes_in_step(void *arg, skua_context *ctx, skua_step *out)
{
    struct step_sizes *sizes = arg;
    struct tracked *items = sizes->items;
    const skua_pid self = skua_context_self(ctx);
    sizes->errors[0] = skua_context_send(ctx, self, sized(&items[0], PAYLOAD_LIMIT));
    sizes->errors[1] = skua_context_send(ctx, self, sized(&items[1], PAYLOAD_LIMIT + 1));
    sizes->errors[2] = skua_step_yield(out, 1, 0, sized(&items[2], PAYLOAD_LIMIT));
    sizes->errors[3] = skua_step_yield(out, 1, 0, sized(&items[3], PAYLOAD_LIMIT + 1));
    skua_payload input[] = {sized(&items[4], PAYLOAD_LIMIT), sized(&items[5], PAYLOAD_LIMIT + 1)};
    sizes->errors[4] = skua_context_spawn(ctx, &api_idler, NULL, &input[0], 1, NULL);
    sizes->errors[5] = skua_context_spawn(ctx, &counted_type, NULL, &input[1], 1, NULL);
}

TEST(payload_limit_holds_for_sends_yields_and_spawns_of_processes)
{
    struct api api;
    struct step_sizes sizes = {0};
    inits = 0;
    api_with_payload_limit(&api, PAYLOAD_LIMIT);
    api_in_step(&api, use_sizes_in_step, &sizes);
    api_stop(&api);
    for (size_t i = 0; i < COUNT_OF(sizes.errors); i++) {
        assert_int_equal(sizes.errors[i], i % 2 == 0 ? 0 : SKUA_E_PAYLOAD_SIZE);
    }
    assert_drops(sizes.items, COUNT_OF(sizes.items), 1);
    assert_int_equal(inits, 0);
}

TEST(payload_limit_holds_for_each_input_of_submit)
{
    struct api api;
    struct tracked items[9] = {0};
    inits = 0;
    api_with_payload_limit(&api, PAYLOAD_LIMIT);
    for (size_t large = 0; large < 3; large++) {
        skua_payload input[3];
        for (size_t i = 0; i < 3; i++) {
            const size_t size = i == large ? PAYLOAD_LIMIT + 1 : PAYLOAD_LIMIT;
            input[i] = sized(&items[3 * large + i], size);
        }
        assert_int_equal(skua_process_submit(api.runtime, &counted_type, NULL, input, 3, NULL),
                         SKUA_E_PAYLOAD_SIZE);
        assert_drops(&items[3 * large], 3, 1);
    }
    assert_int_equal(api_stats(&api).spawned, 0);
    assert_int_equal(inits, 0);
    api_stop(&api);
}

TEST(payload_limit_holds_for_copy)
{
    struct api api;
    char bytes[PAYLOAD_LIMIT + 1];
    skua_payload payload;
    memset(bytes, 'x', sizeof bytes);
    api_with_payload_limit(&api, PAYLOAD_LIMIT);
    assert_int_equal(skua_payload_copy(api.runtime, 1, bytes, PAYLOAD_LIMIT, &payload), 0);
    assert_int_equal(skua_payload_size(&payload), PAYLOAD_LIMIT);
    assert_memory_equal(skua_payload_data(&payload), bytes, PAYLOAD_LIMIT);
    skua_payload_drop(&payload);
    payload = skua_payload_u64(1, 1);
    assert_int_equal(skua_payload_copy(api.runtime, 2, bytes, PAYLOAD_LIMIT + 1, &payload),
                     SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    api_stop(&api);
}

/* A limit below what fits inside a payload holds, too; a pointer has no bytes. */
TEST(payload_limit_holds_for_inline_payloads_but_not_pointers)
{
    struct api api;
    struct tracked item = {0};
    skua_payload payload;
    api_with_payload_limit(&api, 7);
    const skua_pid pid = api_submit(&api, &api_idler, NULL);
    assert_int_equal(skua_payload_copy(api.runtime, 1, "12345678", 8, &payload),
                     SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(skua_payload_copy(api.runtime, 1, "1234567", 7, &payload), 0);
    assert_int_equal(skua_message_send(api.runtime, pid, payload), 0);
    assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_u64(0, 1)),
                     SKUA_E_PAYLOAD_SIZE);
    payload = skua_payload_pointer(0, &item, tracked_payload(0, &item).as.owned.drop);
    assert_int_equal(skua_message_send(api.runtime, pid, payload), 0);
    api_stop(&api);
    assert_drops(&item, 1, 1);
}
