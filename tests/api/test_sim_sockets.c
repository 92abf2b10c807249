/* SPDX-License-Identifier: MIT */
/* Processes on several hosts that do whatever can be done with sockets, at random: open, read and
 * write in all ways, with timeouts and without, take back, shut down, close, give away, start
 * children with sockets, end. With all faults of the network and others. Whatever happens, each
 * yield completes once, with an error that is documented for it; nothing leaks; every socket is
 * closed once; and the same seed is the same run. */
#include <skua/skua.h>
#include <stdio.h>

#include "effort.h"
#include "sim_trace.h"
#include "world.h"

#define WANDERERS    6
#define HOSTS        3
#define SOCKETS_MAX  6
#define YIELDS_MAX   8
#define STEPS_MAX    60
#define CHILDREN_MAX 10

enum kind { NOTHING, SLEEP, ACCEPT, CONNECT, READ, READ_EXACTLY, READ_UNTIL, HANGUP, WRITE, KINDS };

/* Errors with which each kind may complete, besides 0, SKUA_E_TIMEOUT and SKUA_E_CANCELLED. */
static const int errors_of[KINDS][10] = {
    [SLEEP] = {0},
    [ACCEPT] = {SKUA_E_CLOSED, SKUA_E_NO_MEMORY, SKUA_E_SOCKET_BUSY, SKUA_E_NETWORK},
    [CONNECT] = {SKUA_E_REFUSED, SKUA_E_UNREACHABLE, SKUA_E_ADDRESS, SKUA_E_ADDRESS_IN_USE,
                 SKUA_E_RESET, SKUA_E_DESCRIPTORS, SKUA_E_NO_MEMORY, SKUA_E_NETWORK},
    [READ] = {SKUA_E_RESET, SKUA_E_IDLE, SKUA_E_CLOSED, SKUA_E_NO_MEMORY, SKUA_E_SOCKET_BUSY,
              SKUA_E_NO_PROGRESS},
    [READ_EXACTLY] = {SKUA_E_RESET, SKUA_E_IDLE, SKUA_E_CLOSED, SKUA_E_NO_MEMORY,
                      SKUA_E_SOCKET_BUSY, SKUA_E_NO_PROGRESS},
    [READ_UNTIL] = {SKUA_E_RESET, SKUA_E_IDLE, SKUA_E_CLOSED, SKUA_E_NO_MEMORY, SKUA_E_SOCKET_BUSY,
                    SKUA_E_TOO_LONG, SKUA_E_NO_PROGRESS},
    [HANGUP] = {SKUA_E_RESET, SKUA_E_IDLE, SKUA_E_CLOSED, SKUA_E_NO_MEMORY, SKUA_E_SOCKET_BUSY,
                SKUA_E_NO_PROGRESS},
    [WRITE] = {SKUA_E_RESET, SKUA_E_NO_PROGRESS, SKUA_E_IDLE, SKUA_E_CLOSED, SKUA_E_NO_MEMORY},
};

struct wanderer {
    skua_socket listener;
    skua_socket sockets[SOCKETS_MAX]; /* some may be closed */
    enum kind open[YIELDS_MAX];       /* by tag */
    uint32_t steps;
    uint32_t number; /* its port */
};

static skua_pid pids[WANDERERS];
static uint32_t children;

/* What is not as documented; and what has happened. */
static uint32_t wrong;
static char first_wrong[120];
static uint64_t completions[KINDS];
static uint64_t successes[KINDS];

static void expect(bool holds, const char *what, int number)
{
    if (!holds && wrong++ == 0) {
        (void)snprintf(first_wrong, sizeof first_wrong, "%s: %d", what, number);
    }
}

static bool is_documented(enum kind kind, int error)
{
    bool found = error == 0 || error == SKUA_E_TIMEOUT || error == SKUA_E_CANCELLED;
    for (size_t i = 0; i < COUNT_OF(errors_of[kind]); i++) {
        found = found || error == errors_of[kind][i];
    }
    return found;
}

static uint64_t some_time(skua_context *ctx)
{
    static const uint64_t times[] = {0, SKUA_MICROSECOND, SKUA_MILLISECOND, SKUA_SECOND,
                                     SKUA_FOREVER};
    return times[skua_random(ctx) % COUNT_OF(times)];
}

static skua_socket *some_socket(struct wanderer *me, skua_context *ctx)
{
    return &me->sockets[skua_random(ctx) % SOCKETS_MAX];
}

/* Keeps a socket, in the place of another one. */
static void keep(struct wanderer *me, skua_context *ctx, skua_socket socket)
{
    skua_socket *place = some_socket(me, ctx);
    if (place->bits != 0) {
        (void)skua_socket_close(ctx, *place);
    }
    *place = socket;
}

/* ---- yields ---- */

static int yield_write(skua_context *ctx, uint64_t tag, skua_socket socket)
{
    static char bytes[5000];
    const size_t size = 1 + skua_random(ctx) % (sizeof bytes - 1);
    return skua_yield_write(ctx, tag, socket, skua_payload_static(0, bytes, size), some_time(ctx));
}

static int yield_connect(skua_context *ctx, uint64_t tag)
{
    char address[SKUA_ADDRESS_SIZE];
    const unsigned to = (unsigned)(skua_random(ctx) % (WANDERERS + 1));
    (void)snprintf(address, sizeof address, "10.0.0.%u:%u", 1 + to % HOSTS, 100 + to);
    return skua_yield_connect(ctx, tag, address, NULL, some_time(ctx));
}

static int yield_something(struct wanderer *me, skua_context *ctx, enum kind kind, uint64_t tag)
{
    const skua_socket socket = *some_socket(me, ctx);
    const size_t size = 1 + skua_random(ctx) % 3000;
    switch (kind) {
    case ACCEPT:
        return skua_yield_accept(ctx, tag, me->listener, some_time(ctx));
    case CONNECT:
        return yield_connect(ctx, tag);
    case READ:
        return skua_yield_read(ctx, tag, socket, size, some_time(ctx));
    case READ_EXACTLY:
        return skua_yield_read_exactly(ctx, tag, socket, size, some_time(ctx));
    case READ_UNTIL:
        return skua_yield_read_until(ctx, tag, socket, "\r\n", size, some_time(ctx));
    case HANGUP:
        return skua_yield_hangup(ctx, tag, socket, some_time(ctx));
    case WRITE:
        return yield_write(ctx, tag, socket);
    case NOTHING:
    case SLEEP:
    case KINDS:
        break;
    }
    return skua_yield_sleep(ctx, tag, skua_random(ctx) % (10 * SKUA_MILLISECOND));
}

static void yield_at_random(struct wanderer *me, skua_context *ctx)
{
    const uint64_t tag = skua_random(ctx) % YIELDS_MAX;
    const enum kind kind = (enum kind)(SLEEP + skua_random(ctx) % (KINDS - SLEEP));
    if (me->open[tag] != NOTHING) {
        if (skua_random(ctx) % 8 == 0) {
            (void)!skua_yield_cancel(ctx, tag);
        }
        return;
    }
    me->open[tag] = yield_something(me, ctx, kind, tag) == 0 ? kind : NOTHING;
}

/* ---- what is done at once ---- */

extern const skua_process_type wanderer_type;

static void give(struct wanderer *me, skua_context *ctx)
{
    const skua_pid to = pids[skua_random(ctx) % WANDERERS];
    skua_socket *socket = some_socket(me, ctx);
    if (socket->bits != 0 && skua_socket_give(ctx, *socket, to) == 0) {
        (void)skua_send(ctx, to, skua_payload_u64(1, socket->bits));
        *socket = (skua_socket){0};
    }
}

static void start_child(struct wanderer *me, skua_context *ctx)
{
    skua_socket *socket = some_socket(me, ctx);
    skua_payload input = skua_payload_u64(0, socket->bits);
    const skua_spawn_options options = {
        .type = &wanderer_type, .input = &input, .input_count = 1, .socket = *socket};
    if (socket->bits != 0 && skua_spawn_with(ctx, &options, NULL) == 0) {
        *socket = (skua_socket){0};
        children++;
    }
}

static void act_at_random(struct wanderer *me, skua_context *ctx)
{
    skua_socket_snapshot snapshot;
    skua_socket *socket = some_socket(me, ctx);
    switch (skua_random(ctx) % 12) {
    case 0:
        (void)skua_socket_shutdown(ctx, *socket);
        break;
    case 1:
        (void)skua_socket_close(ctx, *socket);
        *socket = (skua_socket){0};
        break;
    case 2:
        give(me, ctx);
        break;
    case 3:
        if (children < CHILDREN_MAX) {
            start_child(me, ctx);
        }
        break;
    case 4:
        (void)skua_socket_set(ctx, *socket, SKUA_SOCKET_IDLE, skua_random(ctx) % SKUA_SECOND);
        break;
    case 5:
        (void)skua_socket_set(ctx, *socket, SKUA_SOCKET_WRITE_LIMIT, skua_random(ctx) % 10000);
        break;
    case 6:
        (void)skua_socket_info(ctx, *socket, &snapshot);
        break;
    case 7:
        (void)skua_socket_set(ctx, *socket, SKUA_SOCKET_KEEPALIVE, skua_random(ctx) % SKUA_SECOND);
        break;
    case 8:
        (void)skua_socket_write(ctx, *socket, skua_payload_u64(0, 1));
        break;
    default:
        break;
    }
}

/* ---- its life ---- */

static int begin(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct wanderer *me = self;
    (void)count;
    me->number = input[0].type;
    if (me->number > 0) {
        pids[me->number - 1] = skua_self(ctx);
    } else {
        me->sockets[0] = skua_payload_to_socket(&input[0]);
    }
    return 0;
}

static void start_to_listen(struct wanderer *me, skua_context *ctx)
{
    char address[SKUA_ADDRESS_SIZE];
    if (me->number > 0) {
        (void)snprintf(address, sizeof address, "0.0.0.0:%u", 99 + me->number);
        (void)!skua_listen(ctx, address, NULL, &me->listener);
    }
}

static void take_completion(struct wanderer *me, skua_context *ctx, const skua_event *event)
{
    expect(event->tag < YIELDS_MAX && me->open[event->tag] != NOTHING, "no such yield is open",
           (int)event->tag);
    const enum kind kind = me->open[event->tag % YIELDS_MAX];
    me->open[event->tag % YIELDS_MAX] = NOTHING;
    expect(is_documented(kind, event->error), "not an error of this kind of yield", event->error);
    completions[kind]++;
    successes[kind] += event->error == 0;
    if ((kind == ACCEPT || kind == CONNECT) && event->error == 0) {
        keep(me, ctx, skua_payload_to_socket(&event->payload));
    }
}

static bool waits(const struct wanderer *me)
{
    bool found = false;
    for (size_t i = 0; i < YIELDS_MAX; i++) {
        found = found || me->open[i] != NOTHING;
    }
    return found;
}

static int wander(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct wanderer *me = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            start_to_listen(me, ctx);
        } else if (events[i].type == SKUA_EVENT_COMPLETION) {
            take_completion(me, ctx, &events[i]);
        } else if (events[i].type == SKUA_EVENT_MESSAGE) {
            keep(me, ctx, skua_payload_to_socket(&events[i].payload));
        }
    }
    for (uint64_t i = skua_random(ctx) % 5; i > 0; i--) {
        yield_at_random(me, ctx);
        act_at_random(me, ctx);
    }
    if (!waits(me)) {
        me->open[0] = skua_yield_sleep(ctx, 0, SKUA_MILLISECOND) == 0 ? SLEEP : NOTHING;
    }
    if (me->steps++ < STEPS_MAX) {
        return 0;
    }
    return skua_random(ctx) % 2 == 0 ? skua_done(ctx, skua_nothing()) : SKUA_E_USER;
}

const skua_process_type wanderer_type = {
    .name = "wanderer", .state_size = sizeof(struct wanderer), .init = begin, .step = wander};

/* ---- runs ---- */

static skua_sim_faults faults_of(uint64_t seed)
{
    const uint32_t rate = seed % 4 == 0 ? 0 : SIM_ALWAYS / 100;
    return (skua_sim_faults){
        .message_delay = rate,
        .no_memory = seed % 3 == 1 ? rate / 4 : 0,
        .spurious_wake = rate,
        .process_kill = seed % 5 == 1 ? rate / 2 : 0,
        .network = {.window = 1 + (uint32_t)(seed * 7919 % 5000),
                    .connect_refused = rate,
                    .connect_delay = rate,
                    .accept_delay = rate,
                    .no_descriptors = rate,
                    .short_read = 10 * rate,
                    .short_write = 10 * rate,
                    .reset = rate,
                    .silent_drop = rate,
                    .eof_late = 10 * rate,
                    .clog = rate,
                    .partition = rate},
    };
}

static uint64_t run_wanderers(uint64_t seed)
{
    wrong = 0;
    children = 0;
    world_open_sim(seed, faults_of(seed));
    for (uint32_t i = 0; i < WANDERERS; i++) {
        const int error = skua_sim_host_submit(world_runtime(), 1 + i % HOSTS, &wanderer_type,
                                               skua_payload_empty(i + 1), NULL);
        assert_int_equal(error, 0);
    }
    assert_true(skua_sim_run(world_runtime(), SKUA_SIM_START_NS + 100 * SKUA_SECOND) >= 0);
    const uint64_t hash = skua_sim_hash(world_runtime());
    world_close();
    if (wrong > 0) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, first_wrong);
    }
    return hash;
}

TEST(whatever_is_done_with_sockets_each_yield_completes_once)
{
    memset(completions, 0, sizeof completions);
    memset(successes, 0, sizeof successes);
    FOR_ROUNDS (seed, EFFORT(300)) {
        (void)run_wanderers(seed);
    }
    for (enum kind kind = SLEEP; kind < KINDS; kind++) {
        assert_true(successes[kind] > 0);
        assert_true(kind == SLEEP || completions[kind] > successes[kind]);
    }
}

TEST(the_same_seed_is_the_same_run_of_sockets)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        assert_int_equal(run_wanderers(seed), run_wanderers(seed));
    }
}
