/* SPDX-License-Identifier: MIT */
/* Sockets in the simulator when things go wrong: each fault with the outcome that it must have;
 * switched while it runs; and all of them at once, with processes that are killed and memory that
 * runs out. */
#include <skua/task.h>

#include "sim_hosts.h"

#define SERVER  "10.0.0.1:80"
#define CLIENTS 20
#define SIZE    3000

/* What a client says if all came that could, and that was not everything. */
#define TOO_LITTLE 1

static skua_sim_faults with_network(skua_sim_network network)
{
    return (skua_sim_faults){.network = network};
}

/* ---- one fault ---- */

/* Sends, and reads the echo to its end. Returns an error, TOO_LITTLE or 0. */
static int exchange(struct errand *errand, skua_context *ctx)
{
    const uint64_t timeout = 60 * SKUA_SECOND;
    uint64_t sent = 0;
    uint64_t received = 0;
    skua_socket socket;
    int error = skua_task_connect(ctx, SERVER, NULL, timeout, &socket);
    if (error != 0) {
        return error;
    }
    for (int i = 0; error == 0 && i < 3; i++) {
        error = write_numbers(ctx, socket, &sent, SIZE / 3, timeout);
        if (error == 0) {
            error = read_numbers(errand, ctx, socket, &received, SIZE / 3, timeout);
        }
    }
    (void)skua_socket_shutdown(ctx, socket);
    if (error == 0) {
        error = read_numbers(errand, ctx, socket, &received, SIZE, timeout);
    }
    CHECK(errand, skua_socket_close(ctx, socket) == 0);
    return error == 0 && received < SIZE ? TOO_LITTLE : error;
}

static int exchanges(struct errand *errand, skua_context *ctx)
{
    errand->number = (uint64_t)(int64_t)exchange(errand, ctx);
    return 0;
}

struct fault_row {
    const char *name;
    enum skua_sim_fault fault;
    skua_sim_network network;
    int outcome;   /* that must happen, besides success; 0: nothing but success must */
    int others[2]; /* that may happen as well */
};

static const struct fault_row rows[] = {
    {"connect_refused",
     SKUA_SIM_CONNECT_REFUSED,
     {.connect_refused = SIM_SOMETIMES},
     SKUA_E_REFUSED,
     {0}},
    {"connect_delay", SKUA_SIM_CONNECT_DELAY, {.connect_delay = SIM_SOMETIMES}, 0, {0}},
    {"accept_delay", SKUA_SIM_ACCEPT_DELAY, {.accept_delay = SIM_SOMETIMES}, 0, {0}},
    {"no_descriptors",
     SKUA_SIM_NO_DESCRIPTORS,
     {.no_descriptors = SIM_SOMETIMES},
     SKUA_E_DESCRIPTORS,
     {SKUA_E_RESET, TOO_LITTLE}}, /* the server turns it away */
    {"short_read", SKUA_SIM_SHORT_READ, {.short_read = SIM_SOMETIMES}, 0, {0}},
    {"short_write", SKUA_SIM_SHORT_WRITE, {.short_write = SIM_SOMETIMES}, 0, {0}},
    {"reset", SKUA_SIM_RESET, {.reset = SIM_SOMETIMES / 6}, SKUA_E_RESET, {0}},
    {"silent_drop", SKUA_SIM_SILENT_DROP, {.silent_drop = SIM_SOMETIMES / 3}, SKUA_E_TIMEOUT, {0}},
    {"eof_late", SKUA_SIM_EOF_LATE, {.eof_late = SIM_SOMETIMES}, 0, {0}},
    {"clog", SKUA_SIM_CLOG, {.clog = SIM_SOMETIMES}, 0, {0}},
    {"partition", SKUA_SIM_PARTITION, {.partition = SIM_SOMETIMES}, 0, {0}},
};

/* Starts all clients, on two hosts, and runs them to their ends. */
static void run_clients(struct errand *clients[CLIENTS])
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        clients[i] = host_start(2 + i % 2, exchanges);
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        assert_ends(clients[i], 0);
    }
}

TEST(each_fault_has_its_outcome)
{
    FOR_ROWS (row, rows) {
        struct errand *clients[CLIENTS];
        uint32_t successes = 0;
        uint32_t outcomes = 0;
        world_open_sim(3, SIM_NO_FAULTS);
        host_start(1, serves_echoes);
        errands_go_on(SKUA_SECOND);
        const skua_sim_faults faults = with_network(row->network);
        assert_int_equal(skua_sim_faults_set(world_runtime(), &faults), 0);
        run_clients(clients);
        for (uint32_t i = 0; i < CLIENTS; i++) {
            const int outcome = (int)(int64_t)clients[i]->number;
            successes += outcome == 0;
            outcomes += outcome == row->outcome && outcome != 0;
            if (outcome != 0 && outcome != row->outcome && outcome != row->others[0] &&
                outcome != row->others[1]) {
                fail_msg("%s: client %u got %d", row->name, i, outcome);
            }
        }
        assert_true(sim_fault_count(row->fault) > 0);
        assert_true(successes > 0);
        assert_int_equal(outcomes > 0, row->outcome != 0);
    }
}

/* Breaks things for a while, and all is well again afterwards: but for what had been broken. */
TEST(faults_of_the_network_are_switched_while_it_runs)
{
    struct errand *clients[CLIENTS];
    const skua_sim_faults broken = with_network((skua_sim_network){.reset = SIM_ALWAYS});
    world_open_sim(1, SIM_NO_FAULTS);
    host_start(1, serves_echoes);
    errands_go_on(SKUA_SECOND);
    for (int round = 0; round < 4; round++) {
        const bool is_broken = round % 2 == 1;
        assert_int_equal(skua_sim_faults_set(world_runtime(), is_broken ? &broken : &SIM_NO_FAULTS),
                         0);
        run_clients(clients);
        for (uint32_t i = 0; i < CLIENTS; i++) {
            assert_int_equal((int)(int64_t)clients[i]->number, is_broken ? SKUA_E_RESET : 0);
        }
    }
}

/* ---- everything at once ---- */

#define LEDGERS 6
#define FRAMES  8

/* What both sides know of a connection. Its number is the first byte that is sent. */
struct ledger {
    uint64_t queued;    /* bytes that writes have taken over */
    uint64_t confirmed; /* that the server has said to have got */
    uint64_t received;  /* by the server */
    bool says_end;      /* the client has sent all that it will */
    bool has_end;       /* the server has read the end of input */
    bool has_begun;
};

static struct ledger ledgers[LEDGERS];

/* Receives the bytes of one connection, and confirms each frame by their sum so far. */
static int receive_all(skua_context *ctx, skua_socket socket)
{
    skua_payload data;
    int error = skua_task_read_exactly(ctx, socket, 1, SKUA_SECOND, &data);
    if (error != 0 || skua_payload_size(&data) == 0) {
        skua_payload_drop(&data);
        return error;
    }
    struct ledger *ledger = &ledgers[*(const unsigned char *)skua_payload_data(&data)];
    ledger->has_begun = true;
    skua_payload_drop(&data);
    for (;;) {
        error = skua_task_read(ctx, socket, SKUA_READ_MAX, 10 * SKUA_SECOND, &data);
        if (error != 0) {
            return error;
        }
        const size_t size = skua_payload_size(&data);
        const unsigned char *bytes = skua_payload_data(&data);
        for (size_t i = 0; i < size; i++) {
            if (bytes[i] != sim_byte(ledger->received + i)) {
                return SKUA_E_USER; /* a byte was made up */
            }
        }
        skua_payload_drop(&data);
        ledger->received += size;
        ledger->has_end = size == 0;
        error = skua_task_write(ctx, socket, skua_payload_u64(0, ledger->received), SKUA_SECOND);
        if (error != 0 || size == 0) {
            return error;
        }
    }
}

struct receiver {
    skua_socket socket;
};

static int keep_socket(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    struct receiver *receiver = self;
    receiver->socket = count > 0 ? skua_payload_to_socket(&input[0]) : (skua_socket){0};
    return 0;
}

static uint32_t bytes_made_up;

static int receives(void *self, skua_context *ctx)
{
    const struct receiver *receiver = self;
    const int error = receive_all(ctx, receiver->socket);
    bytes_made_up += error == SKUA_E_USER;
    return error;
}

static const skua_process_type receiver_type = {.name = "receiver",
                                                .state_size = sizeof(struct receiver),
                                                .init = keep_socket,
                                                .main = receives};

/* Accepts for ever; begins anew when there was no memory for something. */
static int serves_receivers(struct errand *errand, skua_context *ctx)
{
    (void)errand;
    for (;;) {
        skua_socket listener;
        skua_socket socket;
        int error = skua_listen(ctx, "0.0.0.0:80", NULL, &listener);
        while (error == 0) {
            error = skua_task_accept(ctx, listener, SKUA_FOREVER, &socket);
            if (error == 0) {
                skua_payload input = skua_payload_u64(0, socket.bits);
                const skua_spawn_options options = {
                    .type = &receiver_type, .input = &input, .input_count = 1, .socket = socket};
                if (skua_spawn_with(ctx, &options, NULL) != 0) {
                    (void)skua_socket_close(ctx, socket);
                }
            }
        }
        if (error == SKUA_E_TERMINATED || error == SKUA_E_CANCELLED) {
            return error;
        }
        (void)skua_socket_close(ctx, listener);
        error = skua_task_sleep(ctx, SKUA_MILLISECOND);
        if (error == SKUA_E_TERMINATED || error == SKUA_E_CANCELLED) {
            return error;
        }
    }
}

/* Reads confirmations up to this sum, or until there is nothing more. */
static int read_confirmations(skua_context *ctx, skua_socket socket, struct ledger *ledger,
                              uint64_t up_to)
{
    while (ledger->confirmed < up_to) {
        skua_payload data;
        const int error = skua_task_read_exactly(ctx, socket, 8, 20 * SKUA_SECOND, &data);
        if (error != 0 || skua_payload_size(&data) < 8) {
            skua_payload_drop(&data);
            return error;
        }
        ledger->confirmed = skua_payload_to_u64(&data);
        skua_payload_drop(&data);
    }
    return 0;
}

static int send_frames(skua_context *ctx, skua_socket socket, struct ledger *ledger)
{
    const unsigned char number = (unsigned char)(ledger - ledgers);
    skua_payload name;
    int error = skua_payload_of_bytes(ctx, 0, &number, 1, &name);
    if (error == 0) {
        error = skua_task_write(ctx, socket, name, SKUA_FOREVER);
    }
    for (int i = 0; error == 0 && i < FRAMES; i++) {
        const size_t size = 1 + skua_random(ctx) % 500;
        uint64_t from = ledger->queued;
        ledger->queued += size; /* whether it is known to have left or not */
        error = write_numbers(ctx, socket, &from, size, SKUA_FOREVER);
        if (error == 0 && skua_random(ctx) % 2 == 0) {
            error = read_confirmations(ctx, socket, ledger, ledger->queued);
        }
    }
    if (error == 0) {
        ledger->says_end = true;
        error = skua_socket_shutdown(ctx, socket);
    }
    return error;
}

static int sends_frames(struct errand *errand, skua_context *ctx)
{
    struct ledger *ledger = errand->arg;
    skua_socket socket;
    int error = connect_anyhow(ctx, SERVER, &socket);
    if (error == 0) {
        error = send_frames(ctx, socket, ledger);
    }
    if (error == 0) {
        error = read_confirmations(ctx, socket, ledger, UINT64_MAX);
    }
    return error;
}

/* What must be true whatever went wrong. */
static void check_ledger(const struct ledger *ledger)
{
    assert_true(ledger->received <= ledger->queued);
    assert_true(ledger->confirmed <= ledger->received);
    if (ledger->has_end) {
        assert_true(ledger->says_end);
        assert_int_equal(ledger->received, ledger->queued);
    }
}

static skua_sim_faults everything(uint64_t seed)
{
    const uint32_t rate = SIM_ALWAYS / 100;
    return (skua_sim_faults){
        .message_delay = rate,
        .no_memory = seed % 2 == 0 ? rate / 5 : 0,
        .spurious_wake = rate,
        .process_kill = seed % 3 == 0 ? rate / 5 : 0,
        .network = {.window = 700,
                    .connect_refused = rate,
                    .connect_delay = rate,
                    .accept_delay = rate,
                    .no_descriptors = rate,
                    .short_read = 5 * rate,
                    .short_write = 5 * rate,
                    .reset = rate / 2,
                    .silent_drop = rate / 4,
                    .eof_late = 10 * rate,
                    .clog = rate,
                    .partition = rate / 2},
    };
}

TEST(whatever_goes_wrong_what_was_confirmed_has_come)
{
    uint32_t complete = 0;
    uint32_t broken = 0;
    FOR_ROUNDS (seed, 300) {
        memset(ledgers, 0, sizeof ledgers);
        bytes_made_up = 0;
        world_open_sim(seed, SIM_NO_FAULTS);
        host_start(1, serves_receivers);
        errands_go_on(SKUA_MILLISECOND);
        const skua_sim_faults faults = everything(seed);
        assert_int_equal(skua_sim_faults_set(world_runtime(), &faults), 0);
        for (uint32_t i = 0; i < LEDGERS; i++) {
            host_start_with(2 + i % 3, sends_frames, &ledgers[i]);
        }
        errands_go_on(60 * SKUA_SECOND);
        assert_int_equal(skua_sim_faults_set(world_runtime(), &SIM_NO_FAULTS), 0);
        errands_go_on(300 * SKUA_SECOND);
        for (uint32_t i = 0; i < LEDGERS; i++) {
            check_ledger(&ledgers[i]);
            complete += ledgers[i].has_end;
            broken += ledgers[i].has_begun && !ledgers[i].has_end;
        }
        assert_int_equal(bytes_made_up, 0);
        world_close();
    }
    assert_true(complete > 300);
    assert_true(broken > 100);
}
