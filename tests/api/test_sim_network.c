/* SPDX-License-Identifier: MIT */
/* Sockets in the simulator, without faults: hosts, addresses, latency, windows; partitions that a
 * test makes and heals; the same seed is the same run. */
#include <skua/task.h>
#include <stdio.h>

#include "sim_hosts.h"

#define SERVER_HOST 1
#define CLIENT_HOST 2
#define SERVER      "10.0.0.1:80"

static skua_sim_faults with_network(skua_sim_network network)
{
    return (skua_sim_faults){.network = network};
}

/* ---- hosts ---- */

/* Sends what it got as `number` bytes to the server, and wants the same back. */
static int talks(struct errand *errand, skua_context *ctx)
{
    const char *address = errand->arg != NULL ? errand->arg : SERVER;
    uint64_t sent = 0;
    uint64_t received = 0;
    skua_socket socket;
    CHECK(errand, skua_task_connect(ctx, address, NULL, SKUA_FOREVER, &socket) == 0);
    CHECK(errand, write_numbers(ctx, socket, &sent, 10000, SKUA_FOREVER) == 0);
    CHECK(errand, skua_socket_shutdown(ctx, socket) == 0);
    CHECK(errand, read_numbers(errand, ctx, socket, &received, 20000, SKUA_FOREVER) == 0);
    note(errand, received);
    return 0;
}

TEST(hosts_talk_to_each_other)
{
    world_open_sim(1, SIM_NO_FAULTS);
    host_start(SERVER_HOST, serves_echoes);
    errands_go_on(SKUA_SECOND);
    for (uint32_t host = 1; host <= 4; host++) {
        struct errand *client = host_start(host, talks);
        assert_ends(client, 0);
        assert_noted(client, 10000);
    }
}

/* What its socket says of itself. */
static int looks_at_addresses(struct errand *errand, skua_context *ctx)
{
    skua_socket socket;
    skua_socket_snapshot snapshot;
    CHECK(errand, skua_task_connect(ctx, SERVER, NULL, SKUA_FOREVER, &socket) == 0);
    CHECK(errand, skua_socket_info(ctx, socket, &snapshot) == 0);
    CHECK(errand, strcmp(snapshot.peer, SERVER) == 0);
    char own[SKUA_ADDRESS_SIZE];
    (void)snprintf(own, sizeof own, "10.0.0.%u:49152", errand->host);
    CHECK(errand, strcmp(snapshot.local, own) == 0);
    return 0;
}

TEST(hosts_have_addresses)
{
    world_open_sim(1, SIM_NO_FAULTS);
    host_start(SERVER_HOST, serves_echoes);
    errands_go_on(SKUA_SECOND);
    assert_ends(host_start(200, looks_at_addresses), 0);
}

/* ---- children ---- */

static int listens_on_own(void *self, skua_context *ctx)
{
    (void)self;
    skua_socket listener;
    skua_socket_snapshot snapshot;
    int error = skua_listen(ctx, "10.0.0.3:0", NULL, &listener);
    if (error == 0) {
        error = skua_socket_info(ctx, listener, &snapshot);
    }
    return error;
}

static const skua_process_type child_type = {.name = "child", .main = listens_on_own};

static int starts_child_in_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)self;
    (void)input;
    (void)count;
    return skua_spawn(ctx, &child_type, skua_payload_empty(0), NULL);
}

static int does_nothing(void *self, skua_context *ctx)
{
    (void)self;
    (void)ctx;
    return 0;
}

static const skua_process_type parent_type = {
    .name = "parent", .init = starts_child_in_init, .main = does_nothing};

static int has_children(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_spawn(ctx, &child_type, skua_payload_empty(0), NULL) == 0);
    CHECK(errand, skua_spawn(ctx, &parent_type, skua_payload_empty(0), NULL) == 0);
    CHECK(errand, skua_sim_host_submit(skua_runtime_of(ctx), 4, &child_type, skua_payload_empty(0),
                                       NULL) == 0);
    return 0;
}

static int32_t child_errors[8];
static size_t child_count;

static void note_exit(void *arg, skua_exit *exit)
{
    (void)arg;
    if (strcmp(exit->type->name, "child") == 0) {
        child_errors[child_count++] = exit->error;
    }
}

TEST(children_are_on_the_host_of_their_parent)
{
    const skua_sim_config sim = {.step_ns = 0};
    child_count = 0;
    world_open_with((skua_runtime_config){.sim = &sim, .on_exit = note_exit});
    assert_ends(host_start(3, has_children), 0);
    errands_go_on(SKUA_SECOND);
    assert_int_equal(child_count, 3);
    assert_int_equal(child_errors[0] + child_errors[1] + child_errors[2], SKUA_E_ADDRESS);
    assert_int_equal(
        skua_sim_host_submit(world_runtime(), 3, &parent_type, skua_payload_empty(0), NULL), 0);
    errands_go_on(SKUA_SECOND);
    assert_int_equal(child_count, 4);
    assert_int_equal(child_errors[3], 0);
    /* The next processes in their slots are on host 1. */
    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            skua_process_submit(world_runtime(), &child_type, skua_payload_empty(0), NULL), 0);
    }
    errands_go_on(SKUA_SECOND);
    assert_int_equal(child_count, 8);
    for (size_t i = 4; i < 8; i++) {
        assert_int_equal(child_errors[i], SKUA_E_ADDRESS);
    }
}

static uint32_t inits;
static uint32_t closes;

static int count_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)self;
    (void)ctx;
    (void)input;
    (void)count;
    inits++;
    return 0;
}

static void count_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)ctx;
    (void)exit;
    closes++;
}

static const skua_process_type counted_type = {
    .name = "counted", .init = count_init, .main = does_nothing, .close = count_close};

/* A process that there is no memory for has no init, and no close. */
TEST(a_host_without_memory_starts_nothing)
{
    bool failed = true;
    inits = 0;
    closes = 0;
    world_open_sim(1, SIM_NO_FAULTS);
    struct counting_allocator *memory = &world->api->memory;
    for (uint64_t n = 1; failed && n < 20; n++) {
        counting_allocator_fail_once(memory, n);
        const int error =
            skua_sim_host_submit(world_runtime(), 77, &counted_type, skua_payload_empty(0), NULL);
        failed = error == SKUA_E_NO_MEMORY;
        assert_int_equal(inits, failed ? 0 : 1);
        assert_true(failed || error == 0);
    }
    counting_allocator_fail_never(memory);
    assert_false(failed);
    errands_go_on(SKUA_SECOND);
    assert_int_equal(closes, 1);
}

/* ---- latency ---- */

/* How long a byte takes there and back. */
static int measures(struct errand *errand, skua_context *ctx)
{
    skua_socket socket;
    skua_payload data;
    CHECK(errand, skua_task_connect(ctx, SERVER, NULL, SKUA_FOREVER, &socket) == 0);
    const uint64_t began = skua_now(ctx);
    CHECK(errand, skua_task_write(ctx, socket, skua_payload_u64(0, 1), SKUA_FOREVER) == 0);
    CHECK(errand, skua_task_read_exactly(ctx, socket, 8, SKUA_FOREVER, &data) == 0);
    errand->number = skua_now(ctx) - began;
    skua_payload_drop(&data);
    return 0;
}

static uint64_t round_trip_of(uint32_t host)
{
    struct errand *errand = host_start(host, measures);
    assert_ends(errand, 0);
    return errand->number;
}

TEST(bytes_take_as_long_as_the_latency_says)
{
    const uint64_t ms = SKUA_MILLISECOND;
    world_open_sim(1, with_network((skua_sim_network){.latency_ns = 10 * ms, .jitter_ns = 2 * ms}));
    host_start(SERVER_HOST, serves_echoes);
    errands_go_on(SKUA_SECOND);
    assert_in_range(round_trip_of(2), 20 * ms, 25 * ms);
    assert_in_range(round_trip_of(1), 2 * ms, 3 * ms);
    assert_int_equal(skua_sim_latency_set(world_runtime(), 2, 1, SKUA_SECOND), 0);
    assert_in_range(round_trip_of(2), 2 * SKUA_SECOND, 2 * SKUA_SECOND + ms);
    assert_in_range(round_trip_of(3), 20 * ms, 25 * ms);
    assert_int_equal(skua_sim_latency_set(world_runtime(), 1, 2, 0), 0);
    assert_in_range(round_trip_of(2), 20 * ms, 25 * ms);
}

/* ---- windows ---- */

static int accepts_and_waits(struct errand *errand, skua_context *ctx)
{
    skua_socket listener;
    skua_socket socket;
    skua_event *event;
    uint64_t received = 0;
    CHECK(errand, skua_listen(ctx, "0.0.0.0:80", NULL, &listener) == 0);
    CHECK(errand, skua_task_accept(ctx, listener, SKUA_FOREVER, &socket) == 0);
    CHECK(errand, skua_task_receive(ctx, &event, SKUA_FOREVER) == 0);
    CHECK(errand, read_numbers(errand, ctx, socket, &received, SIZE_MAX, SKUA_FOREVER) == 0);
    note(errand, received);
    return 0;
}

static int writes_until_full(struct errand *errand, skua_context *ctx)
{
    uint64_t sent = 0;
    skua_socket socket;
    CHECK(errand, skua_task_connect(ctx, SERVER, NULL, SKUA_FOREVER, &socket) == 0);
    int error;
    do {
        error = write_numbers(ctx, socket, &sent, 100, SKUA_SECOND);
    } while (error == 0);
    CHECK(errand, error == SKUA_E_TIMEOUT);
    note(errand, sent);
    return 0; /* what is queued is still written */
}

TEST(a_writer_whose_peer_does_not_read_has_to_wait)
{
    world_open_sim(1, with_network((skua_sim_network){.window = 1050}));
    struct errand *reader = host_start(SERVER_HOST, accepts_and_waits);
    errands_go_on(SKUA_SECOND);
    struct errand *writer = host_start(CLIENT_HOST, writes_until_full);
    assert_ends(writer, 0);
    assert_noted(writer, 1000);
    errand_send(reader, 0, 0);
    assert_ends(reader, 0);
    assert_noted(reader, 1100);
}

/* ---- deadlines ---- */

static int accepts_and_rests(struct errand *errand, skua_context *ctx)
{
    skua_socket listener;
    skua_socket socket;
    skua_event *event;
    CHECK(errand, skua_listen(ctx, "0.0.0.0:80", NULL, &listener) == 0);
    CHECK(errand, skua_task_accept(ctx, listener, SKUA_FOREVER, &socket) == 0);
    return skua_task_receive(ctx, &event, SKUA_FOREVER); /* nobody sends it anything */
}

/* Writes more than the window takes, and waits for what its socket does about that. */
static int waits_for_progress(struct errand *errand, skua_context *ctx)
{
    uint64_t sent = 0;
    skua_socket socket;
    CHECK(errand, skua_task_connect(ctx, SERVER, NULL, SKUA_FOREVER, &socket) == 0);
    const uint64_t began = skua_now(ctx);
    const int error = write_numbers(ctx, socket, &sent, 5000, SKUA_FOREVER);
    CHECK(errand, error == SKUA_E_NO_PROGRESS);
    errand->number = skua_now(ctx) - began;
    return 0;
}

static int waits_for_idleness(struct errand *errand, skua_context *ctx)
{
    skua_socket socket;
    skua_payload data;
    CHECK(errand, skua_task_connect(ctx, SERVER, NULL, SKUA_FOREVER, &socket) == 0);
    const uint64_t began = skua_now(ctx);
    CHECK(errand, skua_socket_set(ctx, socket, SKUA_SOCKET_IDLE, 3600 * SKUA_SECOND) == 0);
    CHECK(errand, skua_task_read(ctx, socket, 1, SKUA_FOREVER, &data) == SKUA_E_IDLE);
    errand->number = skua_now(ctx) - began;
    return 0;
}

TEST(deadlines_of_sockets_are_in_virtual_time)
{
    static const struct {
        errand_fn *waits;
        uint64_t seconds;
    } rows[] = {{waits_for_progress, 30}, {waits_for_idleness, 3600}};
    FOR_ROWS (row, rows) {
        world_open_sim(1, with_network((skua_sim_network){.window = 1000}));
        host_start(SERVER_HOST, accepts_and_rests);
        errands_go_on(SKUA_SECOND);
        struct errand *client = host_start(CLIENT_HOST, row->waits);
        assert_ends(client, 0);
        assert_in_range(client->number, row->seconds * SKUA_SECOND,
                        (row->seconds + 1) * SKUA_SECOND);
    }
}

/* ---- partitions ---- */

/* Asks every 100 ms, and notes whether there was an answer within a second. */
static int asks_twice(struct errand *errand, skua_context *ctx)
{
    skua_socket socket;
    skua_payload data;
    CHECK(errand, skua_task_connect(ctx, SERVER, NULL, SKUA_FOREVER, &socket) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(errand, skua_task_write(ctx, socket, skua_payload_u64(0, 7), SKUA_FOREVER) == 0);
        const int error = skua_task_read_exactly(ctx, socket, 8, SKUA_SECOND, &data);
        note(errand, noted_error(error));
        skua_payload_drop(&data);
        CHECK(errand, skua_task_sleep(ctx, SKUA_SECOND) == 0);
    }
    /* The answer that came too late is still there. */
    CHECK(errand, skua_task_read_exactly(ctx, socket, 8, SKUA_FOREVER, &data) == 0);
    CHECK(errand, skua_payload_to_u64(&data) == 7);
    skua_payload_drop(&data);
    return 0;
}

TEST(a_partition_holds_bytes_back_until_it_is_healed)
{
    static const struct {
        uint32_t a;
        uint32_t b;
        bool both_ways;
    } partitions[] = {{1, 2, false}, {2, 1, false}, {1, 2, true}, {2, 0, true}};
    FOR_ROWS (cut, partitions) {
        world_open_sim(1, SIM_NO_FAULTS);
        host_start(SERVER_HOST, serves_echoes);
        errands_go_on(SKUA_SECOND / 2);
        struct errand *client = host_start(CLIENT_HOST, asks_twice);
        errands_go_on(SKUA_SECOND / 2);
        assert_int_equal(skua_sim_partition(world_runtime(), cut->a, cut->b, cut->both_ways), 0);
        struct errand *own = host_start(SERVER_HOST, measures); /* is not concerned */
        errands_go_on(2 * SKUA_SECOND);
        assert_ends(own, 0);
        assert_noted(client, 0, noted_error(SKUA_E_TIMEOUT));
        assert_int_equal(skua_sim_heal(world_runtime(), 0, 0), 0);
        assert_ends(client, 0);
        assert_noted(client, 0);
        assert_int_equal(sim_fault_count(SKUA_SIM_HEAL), cut->both_ways ? 2 : 1);
    }
}

static int fails_to_connect(struct errand *errand, skua_context *ctx)
{
    skua_socket socket;
    note(errand, noted_error(skua_task_connect(ctx, SERVER, NULL, SKUA_SECOND, &socket)));
    note(errand, noted_error(skua_task_connect(ctx, SERVER, NULL, SKUA_FOREVER, &socket)));
    note(errand, noted_error(skua_task_connect(ctx, "10.0.0.99:1", NULL, SKUA_FOREVER, &socket)));
    note(errand, noted_error(skua_task_connect(ctx, "10.0.0.2:1", NULL, SKUA_FOREVER, &socket)));
    return 0;
}

TEST(connecting_through_a_partition_fails_in_the_end)
{
    world_open_sim(1, SIM_NO_FAULTS);
    host_start(SERVER_HOST, serves_echoes);
    assert_int_equal(skua_sim_partition(world_runtime(), CLIENT_HOST, SERVER_HOST, false), 0);
    struct errand *client = host_start(CLIENT_HOST, fails_to_connect);
    assert_ends(client, 0);
    assert_noted(client, noted_error(SKUA_E_TIMEOUT), noted_error(SKUA_E_TIMEOUT),
                 noted_error(SKUA_E_UNREACHABLE), noted_error(SKUA_E_REFUSED));
    assert_true(skua_sim_now(world_runtime()) > 127 * SKUA_SECOND);
}

/* ---- misuse ---- */

static int adopts(struct errand *errand, skua_context *ctx)
{
    skua_socket socket;
    CHECK(errand, skua_socket_adopt(ctx, 0, &socket) == SKUA_E_NOT_SIMULATED);
    CHECK(errand, skua_sim_heal(skua_runtime_of(ctx), 0, 0) == 0); /* inside a step, too */
    return 0;
}

TEST(what_cannot_be_is_refused)
{
    world_open_sim(1, SIM_NO_FAULTS);
    skua_runtime *runtime = world_runtime();
    assert_int_equal(skua_sim_partition(runtime, 1, 1, true), SKUA_E_INVALID);
    assert_int_equal(skua_sim_partition(runtime, 0, 1, true), SKUA_E_INVALID);
    assert_int_equal(skua_sim_partition(runtime, 1, 255, true), SKUA_E_INVALID);
    assert_int_equal(skua_sim_partition(NULL, 1, 2, true), SKUA_E_INVALID);
    assert_int_equal(skua_sim_heal(runtime, 255, 0), SKUA_E_INVALID);
    assert_int_equal(skua_sim_heal(runtime, 2, 2), SKUA_E_INVALID);
    assert_int_equal(skua_sim_latency_set(runtime, 0, 2, 1), SKUA_E_INVALID);
    assert_int_equal(skua_sim_latency_set(runtime, 1, 2, UINT64_MAX), SKUA_E_DURATION);
    assert_int_equal(skua_sim_host_submit(runtime, 0, &parent_type, skua_payload_empty(0), NULL),
                     SKUA_E_INVALID);
    assert_int_equal(skua_sim_host_submit(runtime, 255, &parent_type, skua_payload_empty(0), NULL),
                     SKUA_E_INVALID);
    assert_int_equal(skua_sim_host_submit(NULL, 1, &parent_type, skua_payload_empty(0), NULL),
                     SKUA_E_INVALID);
    assert_ends(host_start(1, adopts), 0);
    static const skua_sim_network bad[] = {{.reset = SIM_ALWAYS + 1},
                                           {.partition = SIM_ALWAYS + 1},
                                           {.latency_ns = UINT64_MAX},
                                           {.partition_min_ns = 2, .partition_max_ns = 1},
                                           {.reserved = {1}}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const skua_sim_faults faults = with_network(bad[i]);
        assert_int_equal(skua_sim_faults_set(runtime, &faults), SKUA_E_INVALID);
    }
}

/* ---- the same run ---- */

static uint64_t hash_of(uint64_t seed, bool in_pieces)
{
    const uint32_t rate = SIM_ALWAYS / 50;
    world_open_sim(seed, with_network((skua_sim_network){.short_read = rate,
                                                         .short_write = rate,
                                                         .clog = rate,
                                                         .partition = rate,
                                                         .connect_delay = rate}));
    host_start(SERVER_HOST, serves_echoes);
    if (!in_pieces) {
        errands_go_on(SKUA_SECOND);
    }
    for (int i = 0; in_pieces && i < 10; i++) {
        errands_go_on(SKUA_SECOND / 10);
    }
    host_start(2, talks);
    host_start(3, talks);
    if (in_pieces) {
        for (int i = 0; i < 500; i++) {
            errands_go_on(SKUA_SECOND / 50);
        }
    } else {
        errands_go_on(10 * SKUA_SECOND);
    }
    const uint64_t hash = skua_sim_hash(world_runtime());
    world_close();
    return hash;
}

TEST(the_same_seed_gives_the_same_network)
{
    uint64_t previous = 0;
    for (uint64_t seed = 1; seed < 10; seed++) {
        const uint64_t hash = hash_of(seed, false);
        assert_int_equal(hash_of(seed, false), hash);
        assert_int_equal(hash_of(seed, true), hash);
        assert_true(hash != previous);
        previous = hash;
    }
}

/* ---- the trace ---- */

TEST(the_trace_tells_what_arrives)
{
    char text[200];
    world_open_sim(1, SIM_NO_FAULTS);
    host_start(SERVER_HOST, serves_echoes);
    errands_go_on(SKUA_SECOND);
    assert_ends(host_start(CLIENT_HOST, talks), 0);
    for (uint32_t what = SKUA_SIM_ARRIVES_CONNECT; what <= SKUA_SIM_ARRIVES_END; what++) {
        const skua_sim_record *record = sim_find(SKUA_SIM_NETWORK, what, 0);
        const bool is_answer = what == SKUA_SIM_ARRIVES_ANSWER;
        assert_int_equal(record->host, is_answer ? SERVER_HOST : CLIENT_HOST);
        assert_int_equal(record->peer_host, is_answer ? CLIENT_HOST : SERVER_HOST);
        assert_int_equal(record->stream, 1);
    }
    const skua_sim_record *bytes = sim_find(SKUA_SIM_NETWORK, SKUA_SIM_ARRIVES_BYTES, 0);
    assert_int_equal(bytes->count, 10000);
    (void)skua_sim_record_format(bytes, text, sizeof text);
    assert_non_null(strstr(text, "network: bytes (10000), host 2 to 1, stream 1"));
}
