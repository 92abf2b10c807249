/* SPDX-License-Identifier: MIT */
/* net/socket_word.h and its users, socket_signal.c, socket_give.c and sockets.c: sockets of
 * processes against the thread that hears from the system. The code is the real one, from the
 * public functions down to the word; the system is two words for each connection, a *wire*: what
 * has come in, and how much can go out.
 *
 * INV-20: each node is given back exactly once.
 * INV-30: nobody waits to read while there is something to read, or to write while there is room;
 *         and no deadline is slept through.
 * INV-31: a socket's signal is in one list at most, and in none when nobody has anything to do. */
#include <errno.h>
#include <skua/socket.h>

#include "cast.h"
#include "net/sockets.h"
#include "sched/shutdown.h"

enum { ANN, BOB };

#define REPORTER   2 /* the worker of the thread that reports */
#define WIRES      4
#define SLOTS      2                     /* that they are in */
#define PIECE      8                     /* bytes of a write, and of the room that the peer makes */
#define END_BIT    (UINT32_C(1) << 31)   /* in `input`: the peer writes no more */
#define IDLE_NS    (RIG_BEGINNING / 10)  /* the limit that a part sets */
#define LATER      (RIG_BEGINNING * 100) /* all limits have passed */
#define INSTANT    UINT64_C(1000000)     /* less than it takes to try something again */
#define MOMENT     UINT64_C(20000000)    /* after which what is to be tried again is tried */
#define TIMEOUT    (RIG_BEGINNING / 2)
#define TAG_READ   1
#define TAG_WRITE  2
#define TAG_HANGUP 3

/* Ann gives her socket to Bob; GIVE says so in a message. UNREAD takes the read
 * back. What comes after OLD is the last use of its slot but one. LATE is when all limits have
 * passed. */
enum {
    OPEN = ACTS,
    READ,
    READ_ONE,
    READ_TIMED,
    UNREAD,
    WRITE,
    HANGUP,
    CLOSE,
    GIVE,
    GIVE_QUIETLY,
    SET_IDLE,
    OLD,
    LATE
};

struct wire {
    atomic_u64 key; /* of the watch; 0: nobody watches */
    atomic_u32 input;
    atomic_u32 room;
    uint32_t calls; /* of the transport: one thread at a time makes them */
    uint32_t taken; /* bytes that the peer has got */
    bool is_open;
    bool was_reset;
};

/* What a part has to remember; only its own thread touches it. */
struct memory {
    skua_socket socket;
    size_t most; /* of its reads */
    uint32_t got;
    uint32_t reads_ended;
    uint32_t hangups;
    uint32_t written; /* bytes whose writes have completed */
    int error;        /* of a read */
};

static struct wire wires[WIRES];
static uint32_t wires_opened;
static struct memory memories[PARTS_MAX];
static struct sockets sockets;
/* What the sockets would allocate, and what is large: the first entry of the directory of owners,
 * and blocks to read into. */
static atomic_ptr owned[1];
static struct socket_scratch scratch[RIG_WORKERS_MAX];
static CACHE_ALIGNED unsigned char blocks[RIG_WORKERS_MAX][sizeof(struct block) + SKUA_READ_MAX];
static uint64_t first_key; /* of the first socket */
static atomic_u32 alarms;  /* that were asked for and are due */

/* ---- in place of shutdown.c ---- */

void shutdown_worker_is_quiet(struct scheduler *sched)
{
    (void)sched;
}

/* ---- the system ---- */

static struct wire *touch(int fd)
{
    wires[fd].calls++; /* a data race, if it is not one thread at a time */
    EXPLORE_CHECK(wires[fd].is_open, "a socket that is closed is not used");
    return &wires[fd];
}

static int adopt_wire(struct transport *transport, int fd, bool *listens)
{
    (void)transport;
    wires[fd].is_open = true;
    *listens = false;
    return fd;
}

static ssize_t read_wire(struct transport *transport, int fd, void *data, size_t size)
{
    (void)transport;
    struct wire *wire = touch(fd);
    const uint32_t before = fetch_and_seq_cst(&wire->input, END_BIT);
    const uint32_t count = before & ~END_BIT;
    if (count == 0) {
        return before == END_BIT ? 0 : -EAGAIN;
    }
    if (count > size) {
        (void)fetch_add_seq_cst(&wire->input, count - (uint32_t)size);
    }
    const size_t taken = count < size ? count : size;
    memset(data, 'x', taken);
    return (ssize_t)taken;
}

static ssize_t write_wire(struct transport *transport, int fd, const struct iovec *pieces,
                          int count)
{
    (void)transport;
    struct wire *wire = touch(fd);
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        total += pieces[i].iov_len;
    }
    const uint32_t room = exchange_seq_cst(&wire->room, 0);
    if (room == 0) {
        return -EAGAIN;
    }
    const uint32_t taken = room < total ? room : (uint32_t)total;
    if (room > taken) {
        (void)fetch_add_seq_cst(&wire->room, room - taken);
    }
    wire->taken += taken;
    return (ssize_t)taken;
}

static void close_wire(struct transport *transport, int fd, bool reset)
{
    (void)transport;
    struct wire *wire = touch(fd);
    wire->is_open = false;
    wire->was_reset = reset;
    (void)exchange_seq_cst(&wire->key, 0);
}

static int watch_wire(struct transport *transport, int fd, uint64_t key)
{
    (void)transport;
    (void)exchange_seq_cst(&touch(fd)->key, key);
    return 0;
}

static int know_no_address(struct transport *transport, int fd, bool of_peer,
                           struct address *address)
{
    (void)transport;
    (void)touch(fd);
    (void)of_peer;
    (void)address;
    return -EOPNOTSUPP;
}

/* Time stands still: who wants to be woken later is woken at the end. */
static void wake_at(struct transport *transport, struct worker *worker, uint64_t when)
{
    (void)transport;
    (void)worker;
    if (when < LATER + INSTANT) {
        (void)fetch_add_seq_cst(&alarms, 1);
    }
}

static struct transport model_transport = {
    .adopt = adopt_wire,
    .read = read_wire,
    .write = write_wire,
    .close = close_wire,
    .watch = watch_wire,
    .address = know_no_address,
    .wake_at = wake_at,
};

/* ---- what the parts do ---- */

/* Words that only count, or that are for inspectors. */
static void ignore_statistics(uint32_t slot)
{
    struct socket *socket = socket_at(&sockets, slot);
    ignore(&socket->bytes_in, &socket->wrote_at);
    ignore(&socket->queued, &socket->delimiter);
    ignore(&socket->fd, &socket->signal);
}

/* The first socket made the pool, which hands out its last slots first. */
static void ignore_the_rest(void)
{
    const uint32_t end = load_relaxed(&sockets.pool.ready);
    explore_ignore(sockets.pool.segments, sizeof sockets.pool.segments[0]);
    ignore(socket_at(&sockets, 1), socket_at(&sockets, end - SLOTS));
    for (uint32_t slot = end - SLOTS; slot < end; slot++) {
        ignore_statistics(slot);
    }
}

static int open_wire(skua_context *ctx, uint32_t who)
{
    const uint32_t fd = wires_opened++;
    EXPLORE_CHECK(fd < WIRES, "there are enough wires");
    const int error = skua_socket_adopt(ctx, (int)fd, &memories[who].socket);
    const skua_socket handle = memories[who].socket;
    EXPLORE_CHECK(error == 0, "the rig has memory");
    explore_note("opens %x:%x", (unsigned)(handle.bits >> 32), (unsigned)handle.bits);
    EXPLORE_CHECK((uint32_t)handle.bits != 0 && (uint32_t)handle.bits != UINT32_MAX,
                  "a generation that is about to repeat itself is not used");
    EXPLORE_CHECK(socket_slot(handle.bits) > load_relaxed(&sockets.pool.ready) - 1 - SLOTS,
                  "few slots are used");
    if (fd == 0) {
        first_key = handle.bits;
        ignore_the_rest();
    }
    return 0;
}

static int read_within(skua_context *ctx, uint32_t who, uint64_t timeout)
{
    return skua_yield_read(ctx, TAG_READ, memories[who].socket, memories[who].most, timeout);
}

static int begin_to_read(skua_context *ctx, uint32_t who, size_t most)
{
    memories[who].most = most;
    return read_within(ctx, who, SKUA_FOREVER);
}

static void send_handle(skua_context *ctx, skua_pid to, skua_socket handle)
{
    skua_payload payload = skua_payload_u64(0, handle.bits);
    (void)deliver_message(&rig, ctx->worker, ctx->self, to, &payload);
}

/* Who cannot give reads itself. */
static int give(skua_context *ctx, uint32_t who, bool tells)
{
    const skua_pid to = parts[who + 1].pid;
    const int error = skua_socket_give(ctx, memories[who].socket, to);
    explore_note("gives: %s", skua_error_name(error));
    if (error != 0) {
        EXPLORE_CHECK(error == SKUA_E_NO_PROCESS, "the rig has memory");
        return begin_to_read(ctx, who, 8);
    }
    if (tells) {
        send_handle(ctx, to, memories[who].socket);
    }
    memories[who].socket.bits = 0;
    return 0;
}

static int perform(skua_context *ctx, uint32_t who, uint32_t act)
{
    struct memory *memory = &memories[who];
    switch (act) {
    case OPEN:
        return open_wire(ctx, who);
    case READ:
    case READ_ONE:
        return begin_to_read(ctx, who, act == READ ? 8 : 1);
    case WRITE:
        return skua_yield_write(ctx, TAG_WRITE, memory->socket, skua_payload_u64(0, 0),
                                SKUA_FOREVER);
    case READ_TIMED:
        memory->most = 8;
        return read_within(ctx, who, TIMEOUT);
    case UNREAD:
        return skua_yield_cancel(ctx, TAG_READ);
    case HANGUP:
        return skua_yield_hangup(ctx, TAG_HANGUP, memory->socket, SKUA_FOREVER);
    case CLOSE:
        return skua_socket_close(ctx, memory->socket);
    case GIVE:
    case GIVE_QUIETLY:
        return give(ctx, who, act == GIVE);
    case SET_IDLE:
        return skua_socket_set(ctx, memory->socket, SKUA_SOCKET_IDLE, IDLE_NS);
    case OLD:
        store_relaxed(&socket_at(&sockets, socket_slot(memory->socket.bits))->word,
                      (uint64_t)(UINT32_MAX - 1) << 32);
        return 0;
    default:
        EXPLORE_CHECK(act == LATE, "it is an act");
        rig_now = LATER;
        return 0;
    }
}

/* ---- what the parts get ---- */

static int get_read(skua_context *ctx, uint32_t who, const skua_event *event)
{
    struct memory *memory = &memories[who];
    const size_t size = skua_payload_size(&event->payload);
    explore_note("read %u: %s", (unsigned)size, skua_error_name(event->error));
    memory->got += (uint32_t)size;
    if ((event->error == 0 && size > 0) || event->error == SKUA_E_TIMEOUT) {
        return read_within(ctx, who, SKUA_FOREVER);
    }
    if (event->error == SKUA_E_CANCELLED) {
        return 0; /* it has taken it back */
    }
    memory->error = event->error;
    EXPLORE_CHECK(++memory->reads_ended == 1, "a read ends once");
    return 0;
}

static bool get_event(skua_context *ctx, uint32_t who, skua_event *event)
{
    if (event->type == SKUA_EVENT_START) {
        return true;
    }
    if (event->type == SKUA_EVENT_MESSAGE) {
        memories[who].socket = skua_payload_to_socket(&event->payload);
        const int error = begin_to_read(ctx, who, 8);
        EXPLORE_CHECK(error == 0, "who hears of a socket that was given owns it");
        return false;
    }
    EXPLORE_CHECK(event->type == SKUA_EVENT_COMPLETION, "nothing else comes");
    if (event->tag == TAG_READ) {
        const int error = get_read(ctx, who, event);
        EXPLORE_CHECK(error == 0, "who reads can read on");
    } else if (event->tag == TAG_WRITE) {
        explore_note("written: %s", skua_error_name(event->error));
        memories[who].written += event->error == 0 ? PIECE : 0;
    } else {
        explore_note("the end is near: %s", skua_error_name(event->error));
        EXPLORE_CHECK(++memories[who].hangups == 1, "it is told once");
    }
    return false;
}

static void take_leave(skua_context *ctx, uint32_t who)
{
    (void)ctx;
    (void)who;
}

/* ---- the threads of the system ---- */

/* What happens to a wire; then one report tells of it. */
struct happening {
    uint32_t wire;
    uint32_t comes; /* bytes */
    bool ends;
    uint32_t room;
};

static void report(const struct happening *happening)
{
    struct wire *wire = &wires[happening->wire];
    uint32_t flags = 0;
    if (happening->comes > 0 || happening->ends) {
        const uint32_t comes = happening->comes | (happening->ends ? END_BIT : 0);
        (void)fetch_add_seq_cst(&wire->input, comes);
        flags |= SOCKET_READABLE | (happening->ends ? SOCKET_HANGUP : 0);
    }
    if (happening->room > 0) {
        (void)fetch_add_seq_cst(&wire->room, happening->room);
        flags |= SOCKET_WRITABLE;
    }
    const uint64_t key = load_seq_cst(&wire->key);
    if (key != 0) {
        explore_note("reports %x of %x:%x", (unsigned)flags, (unsigned)(key >> 32), (unsigned)key);
        sockets_report(&sockets, &rig.workers[REPORTER], key, flags);
    }
}

/* Up to one that is nothing. */
static void run_reporter(const void *happenings)
{
    const struct happening *happening = happenings;
    for (; happening->comes > 0 || happening->ends || happening->room > 0; happening++) {
        report(happening);
        spoil_free_nodes(&rig.workers[REPORTER]);
    }
}

/* Tells late of the first socket, whatever has become of it. */
static void run_latecomer(const void *arg)
{
    (void)arg;
    sockets_report(&sockets, NULL, first_key, SOCKET_READABLE | SOCKET_WRITABLE);
}

/* The role of the one that reports has gone to another thread meanwhile. */
static void run_second_reporter(const void *arg)
{
    (void)arg;
    struct wire *wire = &wires[0];
    (void)fetch_add_seq_cst(&wire->input, 1);
    const uint64_t key = load_seq_cst(&wire->key);
    if (key != 0) {
        sockets_report(&sockets, NULL, key, SOCKET_READABLE);
    }
}

static void run_alarm(const void *arg)
{
    (void)arg;
    for (;;) {
        explore_take(&alarms);
        explore_note("looks at the deadlines");
        sockets_alarm(&sockets, NULL, LATER);
    }
}

static const struct happening byte[] = {{.comes = 1}, {0}};
static const struct happening two_bytes[] = {{.comes = 1}, {.comes = 1}, {0}};
static const struct happening byte_then_end[] = {{.comes = 1}, {.ends = true}, {0}};
static const struct happening byte_and_end[] = {{.comes = 1, .ends = true}, {0}};
static const struct happening room[] = {{.room = PIECE}, {0}};
static const struct happening room_twice[] = {{.room = PIECE}, {.room = PIECE}, {0}};
static const struct happening byte_and_room[] = {{.comes = 1, .room = PIECE}, {0}};
static const struct happening byte_then_room[] = {{.comes = 1}, {.room = PIECE}, {0}};
static const struct happening byte_to_each[] = {{.comes = 1}, {.wire = 1, .comes = 1}, {0}};

#define REPORTS(what_) EXPLORE_THREAD("reporter", run_reporter, what_)
#define COMES_LATE     EXPLORE_THREAD("latecomer", run_latecomer, NULL)
#define REPORTS_TOO    EXPLORE_THREAD("successor", run_second_reporter, NULL)
#define ALARM          EXPLORE_THREAD("alarm", run_alarm, NULL)

/* ---- the beginning ---- */

static const skua_process_type plain = {PART_TYPE("plain")};

static void lend_memory(void)
{
    store_relaxed(&owned[0], NULL);
    sockets.owned = owned;
    sockets.scratch = scratch;
    explore_ignore(owned, sizeof owned);
    for (uint32_t i = 0; i < RIG_WORKERS_MAX; i++) {
        struct block *block = (struct block *)(void *)blocks[i];
        memset(block, 0, sizeof *block);
        block->allocator = &rig.allocator;
        block->capacity = SKUA_READ_MAX;
        scratch[i] = (struct socket_scratch){.block = block};
    }
}

static void prepare(void)
{
    memset(memories, 0, sizeof memories);
    memset(wires, 0, sizeof wires);
    wires_opened = 0;
    store_relaxed(&alarms, 0);
    sockets_init(&sockets, &rig, &model_transport);
    sockets_attach(&sockets);
    lend_memory();
    explore_ignore(&sockets.pool, sizeof sockets.pool);
    ignore(&sockets.is_ready, &sockets + 1);
}

/* Ann has a socket, and is about to use it. */
SCENE(reads, "0", {&plain, {OPEN, PAUSE, READ}})
SCENE(reads_one, "0", {&plain, {OPEN, PAUSE, READ_ONE}})
SCENE(reads_timed, "0", {&plain, {OPEN, PAUSE, READ_TIMED}})
SCENE(reads_and_writes, "0", {&plain, {OPEN, PAUSE, READ, WRITE}})
SCENE(reads_to_the_end, "0", {&plain, {OPEN, PAUSE, HANGUP, READ}})

/* She reads already, and closes. */
SCENE(closes, "0", {&plain, {OPEN, READ, PAUSE, CLOSE}})
SCENE(closes_and_opens, "0", {&plain, {OPEN, READ, PAUSE, CLOSE, OPEN, READ}})
SCENE(closes_old, "0", {&plain, {OPEN, CLOSE, OLD, OPEN, READ, PAUSE, CLOSE, OPEN, READ}})
SCENE(ends, "0", {&plain, {OPEN, READ, PAUSE, END}})
SCENE(ends_and_another_opens, "10", {&plain, {OPEN, READ, PAUSE, END}},
      {&plain, {PAUSE, OPEN, READ}})

/* She has read, and gives it away. */
SCENE(gives, "00", {&plain, {OPEN, READ, PAUSE, UNREAD, PAUSE, GIVE}}, {&plain, {STOP}})
SCENE(gives_and_ends, "00", {&plain, {OPEN, READ, PAUSE, UNREAD, PAUSE, GIVE, END}},
      {&plain, {STOP}})
SCENE(gives_to_ending, "100", {&plain, {OPEN, READ, PAUSE, UNREAD, PAUSE, GIVE_QUIETLY}},
      {&plain, {PAUSE, END}})

/* What she writes finds no room, and she closes. */
SCENE(leaves_a_write, "0", {&plain, {OPEN, WRITE, PAUSE, CLOSE}})
SCENE(writes_and_leaves, "0", {&plain, {OPEN, PAUSE, WRITE, WRITE, CLOSE}})
SCENE(ends_with_a_write, "0", {&plain, {OPEN, WRITE, PAUSE, END}})
SCENE(leaves_late, "00", {&plain, {OPEN, WRITE, PAUSE, LATE, PAUSE, CLOSE}})

/* Nothing has come for too long. */
SCENE(idles, "0", {&plain, {OPEN, SET_IDLE, LATE, PAUSE, READ}})
SCENE(idles_and_closes, "0", {&plain, {OPEN, SET_IDLE, LATE, PAUSE, CLOSE}})
SCENE(idles_and_opens, "0", {&plain, {OPEN, SET_IDLE, LATE, PAUSE, CLOSE, OPEN, READ}})
SCENE(idles_and_another_opens, "10", {&plain, {OPEN, SET_IDLE, LATE, PAUSE, CLOSE}},
      {&plain, {PAUSE, OPEN, READ}})
SCENE(idles_and_gives, "0", {&plain, {OPEN, SET_IDLE, LATE, PAUSE, GIVE}}, {&plain, {STOP}})
SCENE(idles_and_gives_to_ending, "10", {&plain, {OPEN, SET_IDLE, LATE, PAUSE, GIVE}},
      {&plain, {PAUSE, END}})

/* ---- the end ---- */

/* Nobody has anything to do any more. */
static void check_socket(const struct wire *wire)
{
    const uint64_t key = load_relaxed(&wire->key);
    struct socket *socket = socket_at(&sockets, socket_slot(key));
    const uint64_t word = load_relaxed(&socket->word);
    EXPLORE_CHECK(socket_word_generation(word) == (uint32_t)key, "it is the one that is watched");
    EXPLORE_CHECK((word & SOCKET_SIGNALLED) == 0, "INV-31: its signal is in no list");
    EXPLORE_CHECK(socket->reader == 0 || load_relaxed(&wire->input) == 0,
                  "INV-30: nobody waits for what is there");
    EXPLORE_CHECK(socket->first == OBJECT_NONE || load_relaxed(&wire->room) == 0,
                  "INV-30: nobody waits for room that is there");
    EXPLORE_CHECK(rig_now < LATER || load_relaxed(&alarms) == 0, "the alarm has been heard");
    if (rig_now == LATER && socket->extra != NULL && socket->reader != 0) {
        EXPLORE_CHECK(load_relaxed(&socket->alarm_at) != 0, "INV-30: no deadline is forgotten");
    }
}

/* What was to be tried again is tried. */
static void let_a_moment_pass(void)
{
    sockets_alarm(&sockets, NULL, rig_now + MOMENT);
    for (uint32_t who = 0; who < part_count; who++) {
        while (load_relaxed(&parts[who].queue) != 0) {
            cast_turn(who);
        }
    }
}

static void make_room(struct wire *wire)
{
    store_relaxed(&wire->room, 1000);
    sockets_report(&sockets, NULL, load_relaxed(&wire->key), SOCKET_WRITABLE);
}

static void check(void)
{
    let_a_moment_pass();
    for (uint32_t i = 0; i < wires_opened; i++) {
        if (load_relaxed(&wires[i].key) != 0) {
            check_socket(&wires[i]);
        }
    }
    for (uint32_t i = 0; i < wires_opened; i++) {
        if (load_relaxed(&wires[i].key) != 0) {
            make_room(&wires[i]); /* nothing lingers any more */
        }
    }
    cast_end();
    for (uint32_t i = 0; i < wires_opened; i++) {
        EXPLORE_CHECK(!wires[i].is_open, "all sockets are closed");
    }
    EXPLORE_CHECK(load_relaxed(&sockets.count) == 0, "INV-20: every socket is given back");
}

static void check_got_two(void)
{
    EXPLORE_CHECK(memories[ANN].got + memories[BOB].got == 2, "INV-30: all that came was read");
    check();
}

static void check_told_of_end(void)
{
    check();
    EXPLORE_CHECK(memories[ANN].hangups == 1 && memories[ANN].reads_ended == 1 &&
                      memories[ANN].error == 0,
                  "INV-30: who waits hears of the end");
}

static void check_written(void)
{
    EXPLORE_CHECK(load_relaxed(&wires[0].room) == 0, "INV-30: what is left is written at once");
    check();
    EXPLORE_CHECK(wires[0].taken % PIECE == 0 && wires[0].taken > 0, "nothing is left unwritten");
}

static void check_idle(void)
{
    check();
    EXPLORE_CHECK(memories[ANN].error == SKUA_E_IDLE || memories[BOB].error == SKUA_E_IDLE,
                  "INV-30: the deadline was noticed");
}

#define ANN_RUNS PART("ann", ANN)
#define BOB_RUNS PART("bob", BOB)

/* The lock of the sockets is no single step. */
#define OPEN_LOCK(name_, bound_, setup_, finish_, ...)                                             \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_PREEMPTIONS, .bound = bound_, .mutexes_are_open = true,     \
        .setup = setup_, .threads = {__VA_ARGS__}, .may_rest = MAY_REST, .finish = finish_,        \
    }

static const struct explore_model models[] = {
    WEAK("read_vs_report", reads, check, ANN_RUNS, REPORTS(byte)),
    WEAK("read_vs_two_reports", reads_one, check_got_two, ANN_RUNS, REPORTS(two_bytes)),
    BOUNDED("read_vs_timeout", 2, reads_timed, check_got_two, ANN_RUNS, REPORTS(two_bytes), FIRES),
    WEAK("both_directions", reads_and_writes, check, ANN_RUNS, REPORTS(byte_and_room)),
    WEAK("one_then_the_other", reads_and_writes, check, ANN_RUNS, REPORTS(byte_then_room)),
    WEAK("end_of_input", reads_to_the_end, check_told_of_end, ANN_RUNS, REPORTS(byte_and_end)),
    WEAK("then_end_of_input", reads_to_the_end, check_told_of_end, ANN_RUNS,
         REPORTS(byte_then_end)),
    WEAK("close_vs_report", closes, check, ANN_RUNS, REPORTS(byte)),
    BOUNDED("reopen_vs_report", 2, closes_and_opens, check, ANN_RUNS, REPORTS(byte_to_each),
            COMES_LATE),
    WEAK("old_vs_report", closes_old, check, ANN_RUNS, REPORTS(byte), COMES_LATE),
    WEAK("end_vs_report", ends, check, ANN_RUNS, REPORTS(byte)),
    BOUNDED("kill_vs_report", 3, closes, check, ANN_RUNS, REPORTS(byte), KILLS(ANN)),
    BOUNDED("reuse_vs_report", 2, ends_and_another_opens, check, ANN_RUNS, BOB_RUNS,
            REPORTS(byte_to_each)),
    BOUNDED("give_vs_report", 2, gives, check_got_two, ANN_RUNS, BOB_RUNS, REPORTS(two_bytes)),
    BOUNDED("give_and_end_vs_report", 2, gives_and_ends, check_got_two, ANN_RUNS, BOB_RUNS,
            REPORTS(two_bytes)),
    BOUNDED("give_to_ending_vs_report", 2, gives_to_ending, check, ANN_RUNS, BOB_RUNS,
            REPORTS(two_bytes)),
    BOUNDED("give_to_ending_vs_two_reports", 2, gives_to_ending, check, ANN_RUNS, BOB_RUNS,
            REPORTS(byte), REPORTS_TOO),
    WEAK("linger_vs_report", leaves_a_write, check_written, ANN_RUNS, REPORTS(room)),
    BOUNDED("write_and_linger_vs_report", 3, writes_and_leaves, check_written, ANN_RUNS,
            REPORTS(room_twice)),
    WEAK("end_and_linger_vs_report", ends_with_a_write, check_written, ANN_RUNS, REPORTS(room)),
    BOUNDED("linger_vs_alarm", 3, leaves_late, check, ANN_RUNS, REPORTS(room), ALARM),
    BOUNDED("read_vs_alarm", 3, idles, check_idle, ANN_RUNS, COMES_LATE, ALARM),
    WEAK("close_vs_alarm", idles_and_closes, check, ANN_RUNS, ALARM),
    WEAK("reopen_vs_alarm", idles_and_opens, check, ANN_RUNS, ALARM),
    BOUNDED("reuse_vs_alarm", 2, idles_and_another_opens, check, ANN_RUNS, BOB_RUNS, ALARM),
    BOUNDED("give_vs_alarm", 2, idles_and_gives, check_idle, ANN_RUNS, BOB_RUNS, ALARM),
    BOUNDED("give_to_ending_vs_alarm", 2, idles_and_gives_to_ending, check, ANN_RUNS, BOB_RUNS,
            ALARM),
    OPEN_LOCK("linger_vs_report_unlocked", 3, leaves_a_write, check_written, ANN_RUNS,
              REPORTS(room)),
    OPEN_LOCK("linger_vs_alarm_unlocked", 2, leaves_late, check, ANN_RUNS, REPORTS(room), ALARM),
    OPEN_LOCK("reuse_vs_report_unlocked", 1, ends_and_another_opens, check, ANN_RUNS, BOB_RUNS,
              REPORTS(byte_to_each)),
    OPEN_LOCK("reuse_vs_alarm_unlocked", 1, idles_and_another_opens, check, ANN_RUNS, BOB_RUNS,
              ALARM),
};

EXPLORE_MAIN(models)
