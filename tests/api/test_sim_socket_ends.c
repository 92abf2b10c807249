/* SPDX-License-Identifier: MIT */
/* A process with a yield of every kind open on its sockets, which at a random moment closes them,
 * gives one away, takes the yields back, ends, fails, is cancelled or is terminated. Each yield
 * ends once, unless the process has ended before. */
#include <skua/skua.h>

#include "effort.h"
#include "sim_hosts.h"

enum tag { ACCEPT, CONNECT, CONNECT_LATE, READ, HANGUP, WRITE, TAGS };

enum ending { CLOSES, GIVES, TAKES_BACK, FINISHES, FAILS, IS_CANCELLED, IS_TERMINATED, ENDINGS };

/* What has become of its yields, and of itself. */
static struct victim {
    uint64_t seed;
    skua_pid pid;
    skua_pid heir;
    skua_socket listener;
    skua_socket socket;
    bool is_open[TAGS];
    unsigned opened[TAGS];
    unsigned ended[TAGS];
    unsigned errors; /* completions that nobody had asked for, and yields that were refused */
    bool was_given;
    bool has_ended;
} victim;

static void opens(enum tag tag, int error)
{
    victim.errors += error != 0;
    victim.is_open[tag] = error == 0;
    victim.opened[tag] += error == 0;
}

static int yield_read(skua_context *ctx)
{
    switch (victim.seed / ENDINGS % 3) {
    case 0:
        return skua_yield_read(ctx, READ, victim.socket, 100, SKUA_FOREVER);
    case 1:
        return skua_yield_read_exactly(ctx, READ, victim.socket, 100, SKUA_FOREVER);
    default:
        return skua_yield_read_until(ctx, READ, victim.socket, "\n", 100, SKUA_FOREVER);
    }
}

static void begin(skua_context *ctx)
{
    victim.pid = skua_self(ctx);
    victim.errors += skua_listen(ctx, "0.0.0.0:90", NULL, &victim.listener) != 0;
    opens(ACCEPT, skua_yield_accept(ctx, ACCEPT, victim.listener, SKUA_FOREVER));
    opens(CONNECT, skua_yield_connect(ctx, CONNECT, "10.0.0.1:80", NULL, SKUA_FOREVER));
}

/* More than fits into the window: the write waits. */
static void use_socket(skua_context *ctx)
{
    static const char bytes[3000];
    const skua_payload payload = skua_payload_static(0, bytes, sizeof bytes);
    opens(READ, yield_read(ctx));
    opens(HANGUP, skua_yield_hangup(ctx, HANGUP, victim.socket, SKUA_FOREVER));
    opens(WRITE, skua_yield_write(ctx, WRITE, victim.socket, payload, SKUA_FOREVER));
    opens(CONNECT_LATE, skua_yield_connect(ctx, CONNECT_LATE, "10.0.0.1:80", NULL, SKUA_FOREVER));
}

static void complete(skua_context *ctx, const skua_event *event)
{
    victim.errors += event->tag >= TAGS || !victim.is_open[event->tag];
    victim.is_open[event->tag % TAGS] = false;
    victim.ended[event->tag % TAGS]++;
    if (event->tag == CONNECT && event->error == 0) {
        victim.socket = skua_payload_to_socket(&event->payload);
        use_socket(ctx);
    }
}

static void close_all(skua_context *ctx)
{
    victim.errors += skua_socket_close(ctx, victim.listener) != 0;
    if (victim.socket.bits != 0) {
        victim.errors += skua_socket_close(ctx, victim.socket) != 0;
    }
}

/* It may be busy; it is not any more as soon as its yields are taken back and have ended. */
static void give_away(skua_context *ctx)
{
    if (victim.socket.bits != 0) {
        const int error = skua_socket_give(ctx, victim.socket, victim.heir);
        victim.was_given = error == 0;
        victim.errors += error != 0 && error != SKUA_E_SOCKET_BUSY;
    }
}

static void take_back_all(skua_context *ctx)
{
    for (uint64_t tag = 0; tag < TAGS; tag++) {
        victim.errors += skua_yield_cancel(ctx, tag) != 0;
    }
}

static int obey(skua_context *ctx, uint64_t ending)
{
    switch (ending) {
    case CLOSES:
        close_all(ctx);
        return 0;
    case GIVES:
        give_away(ctx);
        return 0;
    case TAKES_BACK:
        take_back_all(ctx);
        return 0;
    case FINISHES:
        return skua_done(ctx, skua_nothing());
    default:
        return SKUA_E_USER;
    }
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    int error = 0;
    (void)self;
    for (size_t i = 0; i < count && error == 0; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            begin(ctx);
        } else if (events[i].type == SKUA_EVENT_COMPLETION) {
            complete(ctx, &events[i]);
        } else if (events[i].type == SKUA_EVENT_MESSAGE) {
            error = obey(ctx, skua_payload_to_u64(&events[i].payload));
        }
    }
    return error;
}

static void close_victim(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self, (void)ctx, (void)exit;
    victim.has_ended = true;
}

static const skua_process_type victim_type = {
    .name = "victim", .step = step, .close = close_victim};

/* ---- a round ---- */

static int waits(struct errand *errand, skua_context *ctx)
{
    victim.heir = skua_self(ctx);
    (void)errand;
    return skua_task_sleep(ctx, 1000 * SKUA_SECOND);
}

static skua_sim_faults faults_of(uint64_t seed)
{
    const uint32_t rate = seed % 3 == 0 ? 0 : SIM_ALWAYS / 100;
    return (skua_sim_faults){
        .message_delay = rate,
        .spurious_wake = rate,
        .network = {.window = 200,
                    .connect_delay = SIM_SOMETIMES,
                    .accept_delay = rate,
                    .short_read = SIM_SOMETIMES,
                    .short_write = SIM_SOMETIMES,
                    .reset = rate,
                    .silent_drop = rate / 2,
                    .eof_late = SIM_SOMETIMES,
                    .clog = rate,
                    .partition = rate},
    };
}

static void end_somehow(enum ending ending)
{
    if (ending == IS_CANCELLED) {
        assert_int_equal(world_cancel(victim.pid, SKUA_E_CANCELLED), 0);
    } else if (ending == IS_TERMINATED) {
        assert_int_equal(world_terminate(victim.pid), 0);
    } else {
        assert_int_equal(world_send(victim.pid, skua_payload_u64(0, ending)), 0);
    }
}

/* What has to have ended by itself, in a process that lives. */
static bool must_have_ended(enum ending ending, enum tag tag)
{
    return ending == CLOSES ? tag != CONNECT_LATE : ending == TAKES_BACK;
}

static void check(enum ending ending)
{
    assert_int_equal(victim.errors, 0);
    assert_int_equal(victim.has_ended, ending >= FINISHES);
    for (enum tag tag = 0; tag < TAGS; tag++) {
        assert_true(victim.ended[tag] <= victim.opened[tag]);
        if (must_have_ended(ending, tag)) {
            assert_int_equal(victim.ended[tag], victim.opened[tag]);
        }
    }
}

TEST(yields_of_every_kind_end_once_however_their_process_or_socket_ends)
{
    unsigned open_then[TAGS] = {0};
    FOR_ROUNDS (seed, EFFORT(10000)) {
        const enum ending ending = (enum ending)(seed % ENDINGS);
        victim = (struct victim){.seed = seed};
        world_open_sim(seed, faults_of(seed));
        (void)host_start(1, serves_echoes);
        (void)host_start(3, waits);
        errands_go_on(SKUA_MILLISECOND);
        assert_int_equal(
            skua_sim_host_submit(world_runtime(), 2, &victim_type, skua_nothing(), NULL), 0);
        errands_go_on(SKUA_MICROSECOND + seed * 7919 % (3 * SKUA_MILLISECOND));
        for (enum tag tag = 0; tag < TAGS; tag++) {
            open_then[tag] += victim.is_open[tag];
        }
        end_somehow(ending);
        errands_go_on(200 * SKUA_SECOND);
        check(ending);
    }
    for (enum tag tag = 0; tag < TAGS; tag++) {
        assert_true(open_then[tag] > EFFORT(1000));
    }
}
