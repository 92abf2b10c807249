/* SPDX-License-Identifier: MIT */
/* Stress of sockets. Talkers open connections, write and read in all the ways there are, with
 * timeouts, shut down, close, give their ends to each other, finish, fail and are ended. Besides
 * what holds in every round (stress_round.h):
 *  - What is read is what was written, byte for byte, from wherever the last read left off, whoever
 *    has the socket by now and whatever yields have timed out or were taken back.
 *  - Who reads to the end of a connection whose other end was closed in an orderly way has read all
 *    that was written there.
 *  - Who hears of a socket that it was given owns it.
 *  - Each yield has one completion, with an error that it can have. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <skua/skua.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channels.h"
#include "count_of.h"
#include "stress_round.h"

#define ENDS_MAX        8   /* of one talker */
#define CONNECTIONS_MAX 150 /* at a time: there are few descriptors */
#define WRITE_MAX       30000
#define TIMEOUT_MAX_NS  UINT64_C(3000000)
#define HANG_NS         UINT64_C(15000000000) /* less than the watchdog's */
#define PAYLOAD_SOCKET  (PAYLOAD_OTHER + 1)

enum { TALLY_READ = TALLIES_SHARED, TALLY_GIVEN, TALLY_ENDS_OF_INPUT };

/* ---- connections ---- */

/* Both ends know it; the last one frees it. */
struct connection {
    atomic_u32 ends;
    uint64_t seed;          /* of what goes through it */
    atomic_u64 finished[2]; /* 1 + how much a side has written in all, once it has finished */
};

/* What goes with the socket from owner to owner, and is nobody else's. */
struct end {
    struct connection *connection;
    skua_socket socket;
    uint32_t side;
    uint64_t in;  /* bytes read */
    uint64_t out; /* bytes written */
    bool is_shut;
    bool is_fresh; /* something was written in this step, which may still fail */
    bool reads;
    bool awaits_hangup;
    bool has_ended;  /* all has been read */
    uint32_t yields; /* whose completions have not come */
};

static atomic_u32 connection_count;

static void end_free(struct end *end)
{
    if (fetch_sub_acq_rel(&end->connection->ends, 1) == 1) { /* as a reference count */
        free(end->connection);
        (void)fetch_sub_acq_rel(&connection_count, 1);
    }
    free(end);
}

static struct end *end_new(struct connection *connection, uint32_t side)
{
    struct end *end = calloc(1, sizeof *end);
    if (end == NULL) {
        abort();
    }
    end->connection = connection;
    end->side = side;
    return end;
}

/* The byte that a side writes at a place; every 61st or so ends a line. */
static unsigned char byte_at(const struct connection *connection, uint32_t side, uint64_t place)
{
    const uint64_t word = random_mix(connection->seed + side + (place / 8 << 1));
    const unsigned char byte = (unsigned char)(word >> place % 8 * 8);
    return byte < 4 ? '\n' : byte == '\n' ? 'n' : byte;
}

static int open_bare(void)
{
    return (int)syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

/* A pair of connected streams on loopback; by bare system calls, as channels.h explains. */
static bool open_tcp(int fds[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int listener = open_bare();
    fds[0] = open_bare();
    fds[1] = -1;
    if (listener >= 0 && fds[0] >= 0 && syscall(SYS_bind, listener, &address, size) == 0 &&
        syscall(SYS_listen, listener, 1) == 0 &&
        syscall(SYS_getsockname, listener, &address, &size) == 0 &&
        syscall(SYS_connect, fds[0], &address, size) == 0) {
        fds[1] = (int)syscall(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC);
    }
    if (listener >= 0) {
        close_bare(listener);
    }
    if (fds[1] < 0 && fds[0] >= 0) {
        close_bare(fds[0]);
    }
    return fds[1] >= 0;
}

static bool open_pair(uint64_t *random, int fds[2])
{
    if (once_in(random, 3) && open_tcp(fds)) {
        return true;
    }
    return syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0;
}

/* ---- talkers ---- */

struct talker {
    struct stress_process process;
    struct end *ends[ENDS_MAX];
    uint32_t pauses; /* open timers */
};

static skua_init_fn init;
static skua_step_fn step;
static skua_close_fn close_talker;

static const skua_process_type talkers = {
    .name = "talker",
    .state_size = sizeof(struct talker),
    .init = init,
    .step = step,
    .close = close_talker,
    .cancel = SKUA_CANCEL_EVENT,
};

/* Tags: {number of the end:32 | what:32}; the number is that of its socket. */
enum what { READ, WRITE, HANGUP, PAUSE };

static uint64_t tag_of(const struct end *end, enum what what)
{
    return end->socket.bits << 2 | (uint64_t)what;
}

static struct end **find_end(struct talker *talker, uint64_t tag)
{
    for (uint32_t i = 0; i < ENDS_MAX; i++) {
        if (talker->ends[i] != NULL && talker->ends[i]->socket.bits << 2 >> 2 == tag >> 2) {
            return &talker->ends[i];
        }
    }
    return NULL;
}

static struct end **free_place(struct talker *talker)
{
    for (uint32_t i = 0; i < ENDS_MAX; i++) {
        if (talker->ends[i] == NULL) {
            return &talker->ends[i];
        }
    }
    return NULL;
}

static uint64_t random_timeout(uint64_t *random)
{
    return random_next(random) % TIMEOUT_MAX_NS;
}

/* ---- what talkers do ---- */

static void drop_end(void *data, size_t size)
{
    (void)size;
    end_free(data);
}

/* Gives the end in a place to somebody, and tells of it. */
static void give(skua_context *ctx, uint64_t *random, struct end **place)
{
    struct end *end = *place;
    if (end->yields > 0) {
        return; /* if it came back at once, their completions would be taken for those of others */
    }
    const skua_pid to = stress_random_pid(random);
    const int error = skua_socket_give(ctx, end->socket, to);
    if (error == 0 && to.bits != skua_self(ctx).bits) {
        stress_tally(TALLY_GIVEN);
        *place = NULL;
        stress_sent(skua_send(ctx, to, skua_payload_pointer(PAYLOAD_SOCKET, end, drop_end)));
        return;
    }
    stress_expect(error == 0 || error == SKUA_E_NO_PROCESS || error == SKUA_E_SOCKET_BUSY ||
                      error == SKUA_E_FOREIGN_PID || error == SKUA_E_INVALID,
                  "giving a socket", error);
}

static void open_connection(struct talker *talker, skua_context *ctx, uint64_t *random)
{
    int fds[2];
    struct end **near = free_place(talker);
    if (near == NULL || load_relaxed(&connection_count) >= CONNECTIONS_MAX || /* a hint */
        !open_pair(random, fds)) {
        return;
    }
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        abort();
    }
    (void)fetch_add_acq_rel(&connection_count, 1);
    connection->seed = random_next(random);
    store_relaxed(&connection->ends, 2); /* not shared yet */
    for (uint32_t side = 0; side < 2; side++) {
        struct end *end = end_new(connection, side);
        const int error = skua_socket_adopt(ctx, fds[side], &end->socket);
        stress_expect(error == 0, "adopting a descriptor", error);
        if (once_in(random, 4)) {
            (void)skua_socket_set(ctx, end->socket, SKUA_SOCKET_SEND_BUFFER, 4096);
        }
        struct end **place = free_place(talker);
        if (place == NULL) { /* it has no room for the other one */
            (void)skua_socket_close(ctx, end->socket);
            store_release(&connection->finished[side], 1); /* it has written nothing */
            end_free(end);
            continue;
        }
        *place = end;
        if (side == 1 && !once_in(random, 4)) {
            give(ctx, random, place);
        }
    }
}

static void write_some(skua_context *ctx, uint64_t *random, struct end *end)
{
    static _Thread_local unsigned char bytes[WRITE_MAX];
    skua_payload payload;
    const size_t size = 1 + random_below(random, once_in(random, 4) ? WRITE_MAX : 200);
    if (end->is_shut) {
        return;
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(end->connection, end->side, end->out + i);
    }
    int error = skua_payload_copy(current.runtime, 0, bytes, size, &payload);
    stress_expect(error == 0, "copying a payload", error);
    error = skua_yield_write(ctx, tag_of(end, WRITE), end->socket, payload,
                             once_in(random, 4) ? random_timeout(random) : SKUA_FOREVER);
    stress_expect(error == 0 || error == SKUA_E_SOCKET_FULL || error == SKUA_E_RESET, "writing",
                  error);
    if (error == 0) {
        end->out += size;
        end->is_fresh = true;
        end->yields++;
    }
}

static void read_some(skua_context *ctx, uint64_t *random, struct end *end)
{
    const size_t size = 1 + random_below(random, once_in(random, 4) ? 20000 : 100);
    const uint64_t timeout = random_timeout(random);
    int error;
    if (end->reads) {
        return;
    }
    switch (random_below(random, 3)) {
    case 0:
        error = skua_yield_read(ctx, tag_of(end, READ), end->socket, size, timeout);
        break;
    case 1:
        error = skua_yield_read_exactly(ctx, tag_of(end, READ), end->socket, size, timeout);
        break;
    default:
        error = skua_yield_read_until(ctx, tag_of(end, READ), end->socket, "\n", size, timeout);
    }
    stress_expect(error == 0, "reading", error);
    end->reads = error == 0;
    end->yields += error == 0;
}

static void await_hangup(skua_context *ctx, uint64_t *random, struct end *end)
{
    if (!end->awaits_hangup) {
        const int error =
            skua_yield_hangup(ctx, tag_of(end, HANGUP), end->socket, random_timeout(random));
        stress_expect(error == 0, "awaiting the end", error);
        end->awaits_hangup = error == 0;
        end->yields += error == 0;
    }
}

static void shut_down(skua_context *ctx, struct end *end)
{
    const int error = skua_socket_shutdown(ctx, end->socket);
    stress_expect(error == 0, "shutting down", error);
    end->is_shut = true;
}

/* Before the peer can know. */
static void note_finished(const struct end *end)
{
    store_release(&end->connection->finished[end->side], 1 + end->out); /* with what is sent */
}

static void close_end(skua_context *ctx, struct end **place)
{
    if ((*place)->is_fresh) {
        return; /* if this step failed, the writes of the step would not be made */
    }
    note_finished(*place);
    const int error = skua_socket_close(ctx, (*place)->socket);
    stress_expect(error == 0, "closing", error);
    end_free(*place);
    *place = NULL;
}

static void act(struct talker *talker, skua_context *ctx, uint64_t *random)
{
    struct end **place = &talker->ends[random_below(random, ENDS_MAX)];
    if (*place == NULL) {
        if (once_in(random, 8)) {
            open_connection(talker, ctx, random);
        }
        return;
    }
    switch ((*place)->has_ended && !once_in(random, 8) ? 0 : random_below(random, 24)) {
    case 0:
        close_end(ctx, place);
        break;
    case 1:
        shut_down(ctx, *place);
        break;
    case 2:
        await_hangup(ctx, random, *place);
        break;
    case 3:
    case 4:
        give(ctx, random, place);
        break;
    case 5:
        if ((*place)->reads) {
            const int error = skua_yield_cancel(ctx, tag_of(*place, READ));
            stress_expect(error == 0 || error == SKUA_E_NO_MEMORY, "taking a read back", error);
        }
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        write_some(ctx, random, *place);
        break;
    default:
        read_some(ctx, random, *place);
    }
}

/* ---- what talkers get ---- */

static void check_bytes(struct end *end, const skua_payload *payload)
{
    const unsigned char *bytes = skua_payload_data(payload);
    const size_t size = skua_payload_size(payload);
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != byte_at(end->connection, 1 - end->side, end->in + i)) {
            stress_fault(&stress, STRESS_CORRUPT, "byte %" PRIu64 " of a connection", end->in + i);
            break;
        }
    }
    end->in += size;
    stress_tally(TALLY_READ);
}

static void check_end_of_input(const struct end *end)
{
    const uint64_t finished = load_acquire(&end->connection->finished[1 - end->side]);
    stress_tally(TALLY_ENDS_OF_INPUT);
    if (finished != 0) { /* otherwise its owner has failed, which a Unix socket cannot say */
        stress_expect_equal(STRESS_LOST, "bytes of a connection that has ended", end->in,
                            finished - 1);
    }
}

static void get_read(struct end *end, const skua_event *event)
{
    end->reads = false;
    switch (event->error) {
    case 0:
        check_bytes(end, &event->payload);
        if (skua_payload_size(&event->payload) == 0) {
            check_end_of_input(end);
            end->has_ended = true;
        }
        break;
    case SKUA_E_TIMEOUT:
    case SKUA_E_CANCELLED:
    case SKUA_E_TOO_LONG:
    case SKUA_E_RESET:
        break;
    default:
        stress_fault(&stress, STRESS_BROKEN, "a read ended with %s", skua_error_name(event->error));
    }
}

static void on_completion(struct talker *talker, const skua_event *event)
{
    struct end **place = find_end(talker, event->tag);
    if ((event->tag & 3) == PAUSE) {
        talker->pauses--;
        return;
    }
    if (place == NULL) {
        return; /* it was closed or given away meanwhile */
    }
    (*place)->yields--;
    switch ((enum what)(event->tag & 3)) {
    case READ:
        get_read(*place, event);
        break;
    case HANGUP:
        (*place)->awaits_hangup = false;
        break;
    case WRITE:
        stress_expect(event->error == 0 || event->error == SKUA_E_TIMEOUT ||
                          event->error == SKUA_E_CANCELLED || event->error == SKUA_E_RESET,
                      "a write ended", event->error);
        break;
    case PAUSE:
        break;
    }
}

/* Somebody has given it a socket. */
static void on_gift(struct talker *talker, skua_context *ctx, skua_event *event)
{
    struct end *end = skua_payload_take(&event->payload).as.owned.data;
    struct end **place = free_place(talker);
    skua_socket_snapshot snapshot;
    const int error = skua_socket_info(ctx, end->socket, &snapshot);
    stress_expect(error == 0, "looking at a socket that was given", error);
    end->yields = 0;
    end->reads = end->awaits_hangup = end->is_fresh = false;
    if (place != NULL) {
        *place = end;
    } else {
        close_end(ctx, &end);
    }
}

static void on_event(struct talker *talker, skua_context *ctx, skua_event *event, uint64_t *random)
{
    stress_operation();
    if (event->type == SKUA_EVENT_MESSAGE && event->payload.type == PAYLOAD_SOCKET) {
        on_gift(talker, ctx, event);
    } else if (event->type == SKUA_EVENT_COMPLETION) {
        on_completion(talker, event);
    } else if (event->type == SKUA_EVENT_CANCEL) {
        stress_process_cancelled(&talker->process, event, random);
    }
}

static int init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)input;
    (void)input_count;
    struct talker *talker = self;
    uint64_t random = skua_random(ctx);
    stress_process_begin(&talker->process, 1 + random_below(&random, 60));
    return 0;
}

static void close_talker(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)ctx;
    (void)exit;
    struct talker *talker = self;
    for (uint32_t i = 0; i < ENDS_MAX; i++) {
        if (talker->ends[i] != NULL) {
            end_free(talker->ends[i]);
        }
    }
    stress_process_end(&talker->process);
}

/* What it has written still leaves. */
static int finish(struct talker *talker, skua_context *ctx)
{
    for (uint32_t i = 0; i < ENDS_MAX; i++) {
        if (talker->ends[i] != NULL) {
            note_finished(talker->ends[i]);
        }
    }
    return skua_done(ctx, skua_nothing());
}

static void begin_afresh(struct talker *talker)
{
    for (uint32_t i = 0; i < ENDS_MAX; i++) {
        if (talker->ends[i] != NULL) {
            talker->ends[i]->is_fresh = false;
        }
    }
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t event_count)
{
    struct talker *talker = self;
    uint64_t random = skua_random(ctx);
    stress_process_check(&talker->process);
    for (size_t i = 0; i < event_count; i++) {
        on_event(talker, ctx, &events[i], &random);
    }
    if (talker->process.is_finishing || talker->process.steps_left == 0) {
        return finish(talker, ctx);
    }
    talker->process.steps_left--;
    begin_afresh(talker);
    for (uint32_t acts = 1 + random_below(&random, 12); acts > 0; acts--) {
        act(talker, ctx, &random);
    }
    if (talker->pauses == 0) { /* so that there is always a next step */
        const int error = skua_yield_sleep(ctx, PAUSE, random_timeout(&random));
        stress_expect(error == 0, "sleeping", error);
        talker->pauses += error == 0;
    }
    return once_in(&random, 200) ? STRESS_ERROR_STEP : 0;
}

/* ---- outsiders ---- */

static void act_outside(struct stress_outsider *outsider)
{
    uint64_t *random = &outsider->random;
    if (once_in(random, 40)) {
        stress_end_some(random, once_in(random, 2));
    } else {
        skua_pid pid;
        const int error = skua_process_submit(current.runtime, &talkers, skua_nothing(), &pid);
        stress_spawned(random, error, &pid);
    }
    stress_pause(random, 2);
}

static void on_exit_of_process(void *arg, skua_exit *exit)
{
    (void)arg;
    (void)exit;
    stress_tally(TALLY_EXITS);
}

static void configure(uint64_t *random, skua_runtime_config *config)
{
    static const uint32_t worker_counts[] = {1, 2, 2, 3, 4};
    config->worker_count = worker_counts[random_below(random, COUNT_OF(worker_counts))];
    config->process_limit = 20 + random_below(random, 80);
    config->mailbox_limit = 8 + random_below(random, 200);
    config->on_exit = on_exit_of_process;
}

static void prepare(uint64_t *random)
{
    (void)random;
    store_relaxed(&connection_count, 0); /* no thread yet */
}

static void stop(uint64_t *random)
{
    stress_stop(once_in(random, 2) ? 0 : random_below(random, 2000000));
}

static void check(const skua_stats *sum)
{
    (void)sum;
    stress_expect_equal(STRESS_LOST, "connections that somebody still knows",
                        load_relaxed(&connection_count), 0); /* no thread */
}

int main(int argc, char **argv)
{
    static const struct stress_plan plan = {
        .ops = 60000,
        .round_ops_max = 20000,
        .graceful = 2,
        .known_pids = 64,
        .hang_ns = HANG_NS,
        .configure = configure,
        .prepare = prepare,
        .act = act_outside,
        .stop = stop,
        .check = check,
        .tally_names = {[TALLY_READ] = "reads",
                        [TALLY_GIVEN] = "sockets given",
                        [TALLY_ENDS_OF_INPUT] = "ends of input"},
    };
    return stress_rounds(argc, argv, &plan);
}
