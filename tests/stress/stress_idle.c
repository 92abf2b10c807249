/* SPDX-License-Identifier: MIT */
/* Stress of all that a process can wait for: time, descriptors, blocking calls. Processes with
 * random wishes (timers, tickers, commands with deadlines, descriptors of their own and shared
 * ones, functions on pools) take them back, fail, finish and are ended by each other and by
 * threads from outside, which also complete the commands, write to the descriptors and close them.
 * Some steps block or stall, so that spare workers come and go. Each round looks at one kind of
 * waiting, or at all of them, and ends by a shutdown in the middle: a graceful one, in which
 * everybody finishes by himself, or an abrupt one.
 *  - Each yield has exactly one completion, with an error that it can have.
 *  - Nothing fires early; tickers keep to their grid, and are silent once they are cancelled.
 *  - Who waits for a descriptor of his own is told of it only if it is ready, and never misses it;
 *    a descriptor closed properly ends all waits for it.
 *  - A pool never runs more functions than it has threads.
 *  - What a payload owns is dropped exactly once, wherever it ends; so are descriptors.
 *  - Each init is followed by one close, each accepted process by one on_exit.
 *  - After stop nothing is alive and the pools have all their objects back; after destroy no memory
 *    and no descriptor is left.
 * How long stop took beyond its timeout is printed, not judged: that is up to the machine as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/mutex.h"
#include "counting_allocator.h"
#include "runtime/runtime.h" /* to look into the pools of objects */
#include "stress_support.h"

#define OUTSIDERS         3
#define PROCESS_LIMIT_MAX 500
#define KNOWN             128
#define PARCELS           8192
#define PARCEL_TRIES      4
#define ERRANDS_MAX       1024
#define ROUND_OPS_MAX     60000
#define STALLS_MAX        4
#define PATIENCE_NS       UINT64_C(100000000)
#define MICROSECOND       1000u
/* Less than the watchdog's, and than the period of the check that finds descriptors which were
 * closed behind the runtime's back: that must not make up for a wait that was lost. */
#define HANG_NS     UINT64_C(8000000000)
#define DEFAULT_OPS 3000000
/* Calls on the pool of four that a run makes at least, however slow the build is. */
#define CALLS_MIN 100000

#define ERROR_INIT     (SKUA_E_USER - 1)
#define ERROR_STEP     (SKUA_E_USER - 2)
#define ERROR_FUNCTION (SKUA_E_USER - 3)
#define ERROR_CANCEL   (SKUA_E_USER - 4)

/* ---- what is counted ---- */

/* X(name, what the summary calls it, or null) */
#define TALLY_MAP(X)                                                                               \
    X(SPAWNED, NULL)                                                                               \
    X(MESSAGES, NULL)                                                                              \
    X(LATE, "late completions")                                                                    \
    X(EXITS, "processes")                                                                          \
    X(INITS, NULL)                                                                                 \
    X(CLOSES, NULL)                                                                                \
    X(YIELDS, "yields")                                                                            \
    X(COMPLETIONS, "completions")                                                                  \
    X(ABANDONED, "left by processes that ended")                                                   \
    X(TIMED_OUT, "timed out")                                                                      \
    X(CANCELLED, "cancelled")                                                                      \
    X(TICKS, "ticks")                                                                              \
    X(FIRED, "timers fired")                                                                       \
    X(READY, "descriptors ready")                                                                  \
    X(CLOSED_UNDER, "closed while waited for")                                                     \
    X(CALLS, "calls on the pool of four")                                                          \
    X(CALLS_FULL, "refused by it")                                                                 \
    X(CALLS_RUN, "run by it")                                                                      \
    X(BLOCKS, "blocking steps")                                                                    \
    X(STALLS, "stalls made")                                                                       \
    X(STALLS_SEEN, "stalls reported")                                                              \
    X(STUCK, "stops that were stuck at first")

#define TALLY_ENUM(name, text) name,
enum tally { TALLY_MAP(TALLY_ENUM) TALLIES };
#undef TALLY_ENUM

/* In parts, one for few threads each, so that they do not all meet at one cache line. */
struct tallies {
    CACHE_ALIGNED atomic_u64 values[TALLIES];
};

static struct stress stress;
static struct tallies tallies[STRESS_THREADS_MAX];
static uint64_t sums[TALLIES]; /* of the rounds before */
static atomic_u32 threads_seen;
static _Thread_local uint32_t own_part; /* plus one; 0: none yet */
static _Thread_local bool is_outsider;
static atomic_u32 is_stopping;

static uint32_t part(void)
{
    if (UNLIKELY(own_part == 0)) {
        own_part = 1 + fetch_add_relaxed(&threads_seen, 1) % STRESS_THREADS_MAX; /* counter */
    }
    return own_part - 1;
}

static void count(enum tally tally)
{
    (void)fetch_add_relaxed(&tallies[part()].values[tally], 1); /* statistic */
}

/* What outsiders do while a stop is under way does not count as progress: if the stop hangs, the
 * watchdog must see it. */
static void count_operation(void)
{
    if (!is_outsider || load_relaxed(&is_stopping) == 0) { /* a hint */
        stress_count(&stress, part(), 1);
    }
}

static uint64_t total(enum tally tally)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < STRESS_THREADS_MAX; i++) {
        sum += load_relaxed(&tallies[i].values[tally]); /* statistic */
    }
    return sum;
}

static void expect(bool holds, const char *what, int64_t value)
{
    if (UNLIKELY(!holds)) {
        stress_fault(&stress, STRESS_BROKEN, "%s: %" PRId64, what, value);
    }
}

static void expect_equal(enum stress_fault fault, const char *what, uint64_t is, uint64_t should_be)
{
    if (is != should_be) {
        stress_fault(&stress, fault, "%s: %" PRIu64 " instead of %" PRIu64, what, is, should_be);
    }
}

/* ---- a round ---- */

enum kind { TIMERS, DESCRIPTORS, BLOCKING, MIXED, KINDS };

static const char *const kind_names[KINDS] = {"timers", "descriptors", "blocking", "mixed"};

struct parcel;

/* What a thread from outside will do: complete a command, or see to the other end of somebody's
 * pipe. */
struct errand {
    skua_completion completion;
    uint64_t token;
    struct parcel *end; /* null: the command */
};

/* All but the atomics and the errands is written while no other thread runs. */
static struct {
    skua_runtime *runtime;
    skua_runtime_config config;
    enum kind kind;
    bool is_graceful;
    uint64_t ops;            /* of all threads, when the round ends */
    atomic_u32 is_over;      /* outsiders leave */
    atomic_u64 known[KNOWN]; /* PIDs of processes that live or have lived */
    atomic_u32 stalls_left;
    atomic_u32 running_on_four; /* functions on the pool of four */
    pthread_mutex_t errand_lock;
    struct errand errands[ERRANDS_MAX]; /* under errand_lock, as are the next two */
    uint32_t errand_count;
    bool errands_are_over;
} current;

/* The longest time that stop took beyond its timeout, and what its timeout was. */
static struct {
    uint64_t beyond_ns;
    uint64_t timeout_ns;
} longest_stop[KINDS];

static skua_pid random_pid(uint64_t *random)
{
    return (skua_pid){load_relaxed(&current.known[random_below(random, KNOWN)])}; /* any will do */
}

static void make_known(uint64_t *random, skua_pid pid)
{
    store_relaxed(&current.known[random_below(random, KNOWN)], pid.bits); /* any will do */
}

static bool once_in(uint64_t *random, uint32_t rarity)
{
    return random_below(random, rarity) == 0;
}

/* ---- descriptors ----
 * All that is done with them here is done by bare system calls. Of the C library's functions a
 * thread sanitizer knows what they do: it would report uses of closed and reused numbers, which are
 * what is tested here, and take a pipe for a means of synchronisation. */

#define PRIVATE_MAX  600 /* or a few more */
#define SHARED       16  /* pairs */
#define SHARED_FIRST 900 /* more than the private ones ever need */
#define FILES_NEEDED (SHARED_FIRST + 2 * SHARED)

static atomic_u32 private_count; /* either end of a pipe of somebody's own */

static void close_quietly(int fd)
{
    expect(syscall(SYS_close, fd) == 0, "close", fd);
}

static void uncount_private(uint32_t ends)
{
    (void)fetch_sub_relaxed(&private_count, ends); /* counter */
}

/* A pipe or a pair of sockets; fds[0] is read from, fds[1] written to. */
static bool make_pair(uint64_t *random, int fds[2])
{
    const long error =
        once_in(random, 2)
            ? syscall(SYS_pipe2, fds, O_NONBLOCK | O_CLOEXEC)
            : syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds);
    expect(error == 0, "making a pair of descriptors", errno);
    return error == 0;
}

static long read_bytes(int fd, void *bytes, size_t size)
{
    return syscall(SYS_read, fd, bytes, size);
}

static long write_bytes(int fd, const void *bytes, size_t size)
{
    return syscall(SYS_write, fd, bytes, size);
}

static void drain(int fd)
{
    char bytes[4096];
    while (read_bytes(fd, bytes, sizeof bytes) > 0) {
    }
}

static void fill(int fd)
{
    static const char bytes[4096];
    while (write_bytes(fd, bytes, sizeof bytes) > 0) {
    }
}

/* Channels: pairs that everybody may wait for, with numbers that do not change. The even ones are
 * closed properly, the odd ones behind the runtime's back. */
static struct {
    pthread_mutex_t lock;
    bool is_open; /* under lock, as is whatever is done with the numbers but waiting */
} channels[SHARED];

static int channel_fd(uint32_t channel, uint32_t end)
{
    return SHARED_FIRST + (int)(2 * channel + end);
}

static bool channel_is_proper(uint32_t channel)
{
    return channel % 2 == 0;
}

static void open_channel_locked(uint64_t *random, uint32_t channel)
{
    int fds[2];
    if (!make_pair(random, fds)) {
        return;
    }
    for (uint32_t end = 0; end < 2; end++) {
        const long fd = syscall(SYS_dup3, fds[end], channel_fd(channel, end), O_CLOEXEC);
        expect(fd >= 0, "dup3", errno);
        close_quietly(fds[end]);
    }
    channels[channel].is_open = true;
}

static void close_channel_locked(uint32_t channel)
{
    for (uint32_t end = 0; end < 2; end++) {
        const int fd = channel_fd(channel, end);
        if (channel_is_proper(channel)) {
            const int error = skua_descriptor_close(current.runtime, fd);
            expect(error == 0, "closing a channel", error);
        } else {
            close_quietly(fd);
        }
    }
    channels[channel].is_open = false;
}

/* Another pair takes its place: after a moment without any, or, in the case of one that is closed
 * behind the runtime's back, by one system call. */
static void replace_channel_locked(uint64_t *random, uint32_t channel)
{
    if (channel_is_proper(channel) || once_in(random, 2)) {
        close_channel_locked(channel);
        stress_pause(random, 2);
    }
    open_channel_locked(random, channel);
}

static void use_channel_locked(uint64_t *random, uint32_t channel)
{
    static const char bytes[8];
    switch (random_below(random, 8)) {
    case 0:
        replace_channel_locked(random, channel);
        break;
    case 1:
        fill(channel_fd(channel, 1));
        break;
    case 2:
    case 3:
        (void)write_bytes(channel_fd(channel, 1), bytes, sizeof bytes);
        break;
    default:
        drain(channel_fd(channel, 0));
        break;
    }
}

static void use_channel(uint64_t *random)
{
    const uint32_t channel = random_below(random, SHARED);
    mutex_lock(&channels[channel].lock);
    if (channels[channel].is_open) {
        use_channel_locked(random, channel);
    }
    mutex_unlock(&channels[channel].lock);
    count_operation();
}

static void open_channels(uint64_t *random)
{
    for (uint32_t i = 0; i < SHARED; i++) {
        mutex_lock(&channels[i].lock);
        open_channel_locked(random, i);
        mutex_unlock(&channels[i].lock);
    }
}

/* For good. Whoever waits for a proper one hears of it. */
static void close_channels(uint64_t *random, bool proper)
{
    for (uint32_t i = proper ? 0 : 1; i < SHARED; i += 2) {
        mutex_lock(&channels[i].lock);
        close_channel_locked(i);
        mutex_unlock(&channels[i].lock);
        stress_pause(random, 2);
    }
}

static uint32_t count_files(void)
{
    uint32_t open_files = 0;
    for (int fd = 0; fd < FILES_NEEDED; fd++) {
        open_files += fcntl(fd, F_GETFD) >= 0;
    }
    return open_files;
}

/* ---- payloads ---- */

enum payload_type { TOKEN, PARCEL_TOKEN, PIPE_END, OTHER };

struct parcel {
    struct stress_parcel parcel;
    uint64_t token;
    int fd; /* the other end of somebody's pipe, or -1 */
    bool writes;
};

static struct parcel parcels[PARCELS];

static void drop_parcel(void *data, size_t size)
{
    (void)size;
    struct parcel *parcel = data;
    if (parcel->fd >= 0) {
        close_quietly(parcel->fd);
        uncount_private(1);
    }
    (void)stress_parcel_empty(&stress, &parcel->parcel);
}

/* A free parcel, or null if a few tries find none. */
static struct parcel *take_parcel(uint64_t *random)
{
    for (uint32_t i = 0; i < PARCEL_TRIES; i++) {
        struct parcel *parcel = &parcels[random_below(random, PARCELS)];
        const uint64_t serial = random_next(random) | 1;
        uint64_t expected = 0;
        /* acquire: whoever had it last is done with the content. */
        if (cas_acq_rel_relaxed(&parcel->parcel.under_way, &expected, serial)) {
            stress_parcel_fill(&parcel->parcel, serial);
            parcel->fd = -1;
            return parcel;
        }
    }
    return NULL;
}

/* A number, sometimes in a parcel that must be dropped. */
static skua_payload make_token(uint64_t *random, uint64_t token)
{
    struct parcel *parcel = once_in(random, 2) ? take_parcel(random) : NULL;
    if (parcel == NULL) {
        return skua_payload_u64(TOKEN, token);
    }
    parcel->token = token;
    return skua_payload_pointer(PARCEL_TOKEN, parcel, drop_parcel);
}

static uint64_t read_token(const skua_payload *payload)
{
    if (payload->type == PARCEL_TOKEN) {
        const struct parcel *parcel = skua_payload_data(payload);
        return parcel->token;
    }
    return skua_payload_to_u64(payload);
}

/* ---- sending, spawning, completing: each outcome is counted ---- */

static void count_sent(int error)
{
    expect(error == 0 || error == SKUA_E_NO_PROCESS || error == SKUA_E_MAILBOX_FULL, "send", error);
    if (error == 0) {
        count(MESSAGES);
    }
    count_operation();
}

static void count_spawned(int error)
{
    expect(error == 0 || error == SKUA_E_PROCESS_LIMIT || error == SKUA_E_STOPPED ||
               error == ERROR_INIT,
           "spawn", error);
    if (error == 0) {
        count(SPAWNED);
    }
    count_operation();
}

static void send_from_outside(uint64_t *random)
{
    const skua_pid to = random_pid(random);
    count_sent(skua_message_send(current.runtime, to, make_token(random, random_next(random))));
}

static void ask_to_end(uint64_t *random)
{
    const skua_pid pid = random_pid(random);
    const int error = once_in(random, 2) ? skua_process_terminate(current.runtime, pid)
                                         : skua_process_cancel(current.runtime, pid, ERROR_CANCEL);
    expect(error == 0 || error == SKUA_E_NO_PROCESS, "cancel or terminate", error);
    count_operation();
}

/* ---- errands ---- */

/* False if it does not fit: the caller then has to do it. */
static bool give_errand(const struct errand *errand)
{
    mutex_lock(&current.errand_lock);
    const bool fits = current.errand_count < ERRANDS_MAX && !current.errands_are_over;
    if (fits) {
        current.errands[current.errand_count++] = *errand;
    }
    mutex_unlock(&current.errand_lock);
    return fits;
}

/* Takes any of the errands; false if there is none. */
static bool take_errand(uint64_t *random, struct errand *errand, bool *is_over)
{
    mutex_lock(&current.errand_lock);
    const bool found = current.errand_count > 0;
    if (found) {
        struct errand *any = &current.errands[random_below(random, current.errand_count)];
        *errand = *any;
        *any = current.errands[--current.errand_count];
    }
    *is_over = current.errands_are_over;
    mutex_unlock(&current.errand_lock);
    return found;
}

static int complete(skua_completion completion, skua_payload result)
{
    const int error = skua_command_complete(current.runtime, completion, 0, result);
    expect(error == 0 || error == SKUA_E_LATE, "complete", error);
    if (error == SKUA_E_LATE) {
        count(LATE);
    }
    count_operation();
    return error;
}

/* Makes the end at which the owner of the pipe waits ready, one way or the other. */
static void see_to_end(uint64_t *random, struct parcel *parcel)
{
    if (once_in(random, 4)) {
        /* closing it is enough */
    } else if (parcel->writes) {
        (void)write_bytes(parcel->fd, &parcel->token, sizeof parcel->token);
    } else {
        drain(parcel->fd);
    }
    drop_parcel(parcel, 0);
    count_operation();
}

static void complete_command(uint64_t *random, const struct errand *errand)
{
    (void)complete(errand->completion, make_token(random, errand->token));
    if (once_in(random, 4) &&
        complete(errand->completion, make_token(random, errand->token)) != SKUA_E_LATE) {
        stress_fault(&stress, STRESS_DOUBLED, "a completion was accepted twice");
    }
}

static void *run_errands(void *arg)
{
    uint64_t *random = arg;
    for (;;) {
        struct errand errand;
        bool is_over;
        if (!take_errand(random, &errand, &is_over)) {
            if (is_over) {
                return NULL;
            }
            (void)sched_yield();
            continue;
        }
        stress_pause(random, 4);
        if (errand.end != NULL) {
            see_to_end(random, errand.end);
        } else {
            complete_command(random, &errand);
        }
    }
}

/* ---- commands and functions ---- */

enum command { COMMAND_LATER = 1, COMMAND_NEVER = 300 };

static int handle_later(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    const struct errand errand = {.completion = command->completion,
                                  .token = read_token(&command->input)};
    if (give_errand(&errand)) {
        return SKUA_PENDING;
    }
    *result = skua_payload_take(&command->input);
    return 0;
}

static int handle_never(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_PENDING;
}

static void pause_in_kernel(uint64_t *random, uint32_t most_us)
{
    const struct timespec time = {.tv_nsec = random_below(random, most_us * MICROSECOND)};
    (void)nanosleep(&time, NULL);
}

/* What all functions do. */
static int do_call(skua_payload *input, skua_payload *result)
{
    const uint64_t token = read_token(input);
    uint64_t random = random_mix(token);
    count_operation();
    if (once_in(&random, 32)) {
        pause_in_kernel(&random, 300);
    }
    if (once_in(&random, 16)) {
        send_from_outside(&random);
    }
    if (once_in(&random, 16)) {
        *result = make_token(&random, token); /* goes with an error as well */
        return ERROR_FUNCTION;
    }
    *result = once_in(&random, 4) ? skua_payload_take(input) : make_token(&random, token);
    return 0;
}

static int call_anywhere(skua_payload *input, skua_payload *result)
{
    return do_call(input, result);
}

#define POOL_OF_FOUR "four"

static int call_on_four(skua_payload *input, skua_payload *result)
{
    const uint32_t others = fetch_add_relaxed(&current.running_on_four, 1); /* counter */
    expect(others < 4, "other functions on the pool of four", others);
    count(CALLS_RUN);
    const int error = do_call(input, result);
    (void)fetch_sub_relaxed(&current.running_on_four, 1); /* counter */
    return error;
}

static const char *const pool_names[] = {NULL, "retiring", "direct", "unknown"};
#define POOL_NAMES (sizeof pool_names / sizeof pool_names[0])

static void register_pools(uint64_t *random)
{
    const skua_blocking_pool pools[] = {
        {.name = POOL_OF_FOUR, .thread_limit = 4, .queue_limit = 1 + random_below(random, 200)},
        {.name = "retiring", .thread_limit = 3, .idle_ns = 1 + random_below(random, 20000)},
        {.name = "direct", .thread_limit = 2, .direct = true},
    };
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
        const int error = skua_blocking_register(current.runtime, &pools[i]);
        expect(error == 0, "registering a pool", error);
    }
}

static void register_commands(void)
{
    const skua_handler later = {.name = "later", .run = handle_later};
    const skua_handler never = {.name = "never", .run = handle_never};
    int error = skua_command_register(current.runtime, COMMAND_LATER, &later);
    expect(error == 0, "register", error);
    error = skua_command_register(current.runtime, COMMAND_NEVER, &never);
    expect(error == 0, "register", error);
}

/* ---- wishes: yields that have not completed ---- */

enum wish_kind {
    NOTHING,
    SLEEP,
    TIMER,
    TICKER,
    LATER,     /* a command that an outsider completes */
    NEVER,     /* one that nobody does */
    CHANNEL,   /* waits for a shared descriptor */
    OWN_READ,  /* waits for a descriptor of its own */
    OWN_WRITE, /* the same, for room in a full pipe */
    OWN_ALSO,  /* the other direction of a descriptor of its own, besides OWN_READ */
    CALL,      /* a function on the pool of four */
    CALL_ELSEWHERE,
    WISH_KINDS,
};

struct wish {
    uint8_t kind;      /* enum wish_kind */
    bool is_cancelled; /* by an earlier step, or earlier in this one */
    bool is_endless;   /* does not end unless it is cancelled */
    bool has_ticked;
    int fd; /* its own descriptor */
    uint64_t tag;
    uint64_t due;      /* does not end well before; for a ticker, the last instant of its grid */
    uint64_t period;   /* of a ticker */
    uint64_t deadline; /* does not time out before; SKUA_FOREVER: at no time */
};

#define WISHES_MAX   8
#define MAGIC_ALIVE  0x57a11ed1u
#define MAGIC_CLOSED 0x0ddba115u

struct sleeper {
    uint32_t magic;
    uint16_t steps_left;
    bool is_finishing;
    bool was_stopped; /* has seen the cancel event of the shutdown */
    bool has_blocked; /* in this step */
    uint64_t serial;  /* of its wishes */
    struct wish wishes[WISHES_MAX];
};

static skua_init_fn sleeper_init;
static skua_step_fn sleeper_step;
static skua_close_fn sleeper_close;

static const skua_process_type sleepers = {
    .name = "sleeper",
    .state_size = sizeof(struct sleeper),
    .init = sleeper_init,
    .step = sleeper_step,
    .close = sleeper_close,
};

static void check_alive(const struct sleeper *sleeper)
{
    expect(sleeper->magic == MAGIC_ALIVE, "the state of a process", sleeper->magic);
}

static uint64_t tag_token(skua_pid self, uint64_t tag)
{
    return random_mix(self.bits + random_mix(tag));
}

/* Properly, or behind the runtime's back. */
static void close_own(uint64_t *random, struct wish *wish)
{
    if (once_in(random, 2)) {
        const int error = skua_descriptor_close(current.runtime, wish->fd);
        expect(error == 0, "closing a descriptor", error);
    } else {
        close_quietly(wish->fd);
    }
    uncount_private(1);
}

static bool owns_descriptor(const struct wish *wish)
{
    return wish->kind == OWN_READ || wish->kind == OWN_WRITE;
}

/* Gives the other end of a pipe to an outsider or to another process; if it never gets there, it is
 * closed. */
static void give_away_end(skua_context *ctx, uint64_t *random, struct parcel *parcel)
{
    if (once_in(random, 2)) {
        const struct errand errand = {.end = parcel};
        if (!give_errand(&errand)) {
            drop_parcel(parcel, 0);
        }
        return;
    }
    const skua_payload end = skua_payload_pointer(PIPE_END, parcel, drop_parcel);
    count_sent(skua_context_send(ctx, random_pid(random), end));
}

/* A pipe for one wait. False if there are enough of them. */
static bool make_own(skua_context *ctx, uint64_t *random, struct wish *wish)
{
    struct parcel *parcel = take_parcel(random);
    if (parcel == NULL) {
        return false;
    }
    int fds[2];
    if (fetch_add_relaxed(&private_count, 2) >= PRIVATE_MAX || /* counter */
        !make_pair(random, fds)) {
        uncount_private(2);
        drop_parcel(parcel, 0);
        return false;
    }
    const bool reads = wish->kind == OWN_READ;
    wish->fd = fds[reads ? 0 : 1];
    if (!reads) {
        fill(wish->fd);
    }
    parcel->fd = fds[reads ? 1 : 0];
    parcel->writes = reads;
    parcel->token = tag_token(skua_context_self(ctx), wish->tag);
    give_away_end(ctx, random, parcel);
    return true;
}

/* ---- making wishes ---- */

/* Mostly short; now and then nothing at all, or more than a round lasts. */
static uint64_t random_duration(uint64_t *random)
{
    switch (random_below(random, 16)) {
    case 0:
        return 0;
    case 1:
        return UINT64_C(3600000000000);
    case 2:
        return random_below(random, 20000 * MICROSECOND);
    default:
        return random_below(random, 1000 * MICROSECOND);
    }
}

static uint64_t random_instant(skua_context *ctx, uint64_t *random)
{
    const uint64_t now = skua_context_now(ctx);
    switch (random_below(random, 32)) {
    case 0:
        return SKUA_FOREVER;
    case 1:
        return now - random_below(random, 1000 * MICROSECOND);
    case 2:
        return 0;
    default:
        return skua_context_deadline(ctx, random_duration(random));
    }
}

static uint32_t random_wish_kind(uint64_t *random)
{
    static const struct {
        uint32_t first;
        uint32_t count;
    } ranges[KINDS] = {
        [TIMERS] = {SLEEP, NEVER - SLEEP + 1},
        [DESCRIPTORS] = {CHANNEL, OWN_WRITE - CHANNEL + 1},
        [BLOCKING] = {CALL, 1},
        [MIXED] = {SLEEP, WISH_KINDS - SLEEP},
    };
    if (current.kind == BLOCKING && once_in(random, 8)) {
        return CALL_ELSEWHERE;
    }
    const uint32_t kind =
        ranges[current.kind].first + random_below(random, ranges[current.kind].count);
    return kind != OWN_ALSO ? kind : OWN_READ; /* which brings it along */
}

/* Either end, in either direction: some are ready at once, some never. */
static int yield_channel(skua_step *out, uint64_t *random, struct wish *wish)
{
    const uint32_t channel = random_below(random, SHARED);
    const uint32_t end = random_below(random, 2);
    const int fd = channel_fd(channel, end);
    const bool reads = (end == 0) != once_in(random, 4);
    /* Only the closing of a proper channel is sure to come. */
    wish->is_endless = !channel_is_proper(channel);
    return reads ? skua_step_wait_readable(out, wish->tag, fd)
                 : skua_step_wait_writable(out, wish->tag, fd);
}

static int yield_call(skua_context *ctx, skua_step *out, uint64_t *random, const struct wish *wish)
{
    const skua_payload token = make_token(random, tag_token(skua_context_self(ctx), wish->tag));
    if (wish->kind == CALL) {
        count(CALLS);
        return skua_step_blocking(out, wish->tag, POOL_OF_FOUR, call_on_four, token);
    }
    const char *pool = pool_names[random_below(random, POOL_NAMES)];
    return skua_step_blocking(out, wish->tag, pool, call_anywhere, token);
}

static int yield_wish(skua_context *ctx, skua_step *out, uint64_t *random, struct wish *wish)
{
    const uint64_t now = skua_context_now(ctx);
    const uint64_t token = tag_token(skua_context_self(ctx), wish->tag);
    const uint64_t duration = random_duration(random);
    switch ((enum wish_kind)wish->kind) {
    case SLEEP:
        wish->due = now + duration;
        return skua_step_sleep(out, wish->tag, duration);
    case TIMER:
        wish->due = random_instant(ctx, random);
        return skua_step_timer(out, wish->tag, wish->due);
    case TICKER:
        wish->due = now;
        wish->period = 1 + duration;
        wish->is_endless = true;
        return skua_step_ticker(out, wish->tag, wish->period);
    case LATER:
        return skua_step_yield(out, COMMAND_LATER, wish->tag, make_token(random, token));
    case NEVER:
        wish->is_endless = true;
        return skua_step_yield(out, COMMAND_NEVER, wish->tag, make_token(random, token));
    case CHANNEL:
        return yield_channel(out, random, wish);
    case OWN_READ:
        return skua_step_wait_readable(out, wish->tag, wish->fd);
    case OWN_WRITE:
    case OWN_ALSO:
        return skua_step_wait_writable(out, wish->tag, wish->fd);
    case CALL:
    case CALL_ELSEWHERE:
        return yield_call(ctx, out, random, wish);
    case NOTHING:
    case WISH_KINDS:
        break;
    }
    return SKUA_E_INVALID;
}

static void set_deadline(skua_context *ctx, skua_step *out, uint64_t *random, struct wish *wish)
{
    wish->deadline = random_instant(ctx, random);
    const int error = skua_step_deadline(out, wish->deadline);
    expect(error == 0, "deadline", error);
}

/* A wish without content, or null if the place that it would have is taken. */
static struct wish *new_wish(struct sleeper *sleeper, uint64_t *random, uint32_t kind)
{
    const uint32_t slot = random_below(random, WISHES_MAX);
    struct wish *wish = &sleeper->wishes[slot];
    if (wish->kind != NOTHING) {
        return NULL;
    }
    *wish = (struct wish){.kind = (uint8_t)kind,
                          .tag = ++sleeper->serial * WISHES_MAX + slot,
                          .deadline = SKUA_FOREVER};
    return wish;
}

static void utter_wish(skua_context *ctx, skua_step *out, uint64_t *random, struct wish *wish)
{
    const int error = yield_wish(ctx, out, random, wish);
    expect(error == 0, "yield", error);
    count(YIELDS);
    count_operation();
}

/* Waits for the same descriptor in the other direction, too: mostly that is ready at once, and the
 * first wait must outlive it. */
static void wish_also(struct sleeper *sleeper, skua_context *ctx, skua_step *out, uint64_t *random,
                      int fd)
{
    struct wish *wish = new_wish(sleeper, random, OWN_ALSO);
    if (wish != NULL) {
        wish->fd = fd;
        wish->is_endless = true; /* if the first wait ends first, and the descriptor with it */
        utter_wish(ctx, out, random, wish);
    }
}

static void make_wish(struct sleeper *sleeper, skua_context *ctx, skua_step *out, uint64_t *random)
{
    struct wish *wish = new_wish(sleeper, random, random_wish_kind(random));
    if (wish == NULL) {
        return;
    }
    if (owns_descriptor(wish) && !make_own(ctx, random, wish)) {
        wish->kind = NOTHING;
        return;
    }
    utter_wish(ctx, out, random, wish);
    /* A ticker with a deadline is refused. */
    if (once_in(random, wish->kind == TICKER ? 16 : 2)) {
        set_deadline(ctx, out, random, wish);
    }
    if (wish->kind == OWN_READ && once_in(random, 2)) {
        wish_also(sleeper, ctx, out, random, wish->fd);
    }
}

static void cancel_wish(skua_step *out, struct wish *wish)
{
    const int error = skua_step_cancel(out, wish->tag);
    expect(error == 0, "cancelling", error);
    wish->is_cancelled = true;
}

static void cancel_some_wish(struct sleeper *sleeper, skua_step *out, uint64_t *random)
{
    struct wish *wish = &sleeper->wishes[random_below(random, WISHES_MAX)];
    if (wish->kind != NOTHING) {
        cancel_wish(out, wish);
    } else {
        const int error = skua_step_cancel(out, wish->tag); /* there is no such yield any more */
        expect(error == 0, "cancelling nothing", error);
    }
    count_operation();
}

/* ---- wishes come true, or not ---- */

static struct wish *find_wish(struct sleeper *sleeper, const skua_event *event)
{
    struct wish *wish = &sleeper->wishes[event->tag % WISHES_MAX];
    if (wish->kind == NOTHING || wish->tag != event->tag) {
        stress_fault(&stress, STRESS_DOUBLED, "event %" PRIu32 " of a yield that has ended",
                     event->type);
        return NULL;
    }
    return wish;
}

static void on_tick(struct sleeper *sleeper, skua_context *ctx, const skua_event *event)
{
    struct wish *wish = find_wish(sleeper, event);
    if (wish == NULL) {
        return;
    }
    const uint64_t periods = skua_tick_count(event);
    const uint64_t time = skua_tick_time(event);
    const uint64_t span = periods * wish->period;
    expect(wish->kind == TICKER && event->error == 0, "a tick, of a wish of kind", wish->kind);
    expect(!wish->is_cancelled, "a tick of a cancelled ticker", (int64_t)periods);
    expect(time <= skua_context_now(ctx), "a tick is early, by ns",
           (int64_t)(time - skua_context_now(ctx)));
    /* The grid begins when the handler is called, after the step that asked for it. */
    expect(wish->has_ticked ? time - wish->due == span : time - wish->due >= span,
           "a tick is beside its grid, by ns", (int64_t)(time - wish->due - span));
    wish->due = time;
    wish->has_ticked = true;
    count(TICKS);
}

static void check_time(skua_context *ctx, const struct wish *wish)
{
    const uint64_t now = skua_context_now(ctx);
    expect(now >= wish->due && wish->due != SKUA_FOREVER, "a timer is early, by ns",
           (int64_t)(wish->due - now));
    count(FIRED);
}

/* Nobody else reads from or writes to it, so it is as ready as it was when the wait ended. */
static void check_own(skua_context *ctx, const struct wish *wish)
{
    count(READY);
    if (wish->kind == OWN_WRITE) {
        const long written = write_bytes(wish->fd, "", 1);
        expect(written == 1 || errno == EPIPE || errno == ECONNRESET, "writing", errno);
        return;
    }
    uint64_t token = 0;
    const long size = read_bytes(wish->fd, &token, sizeof token);
    expect(size >= 0, "reading", errno);
    if (size > 0 && token != tag_token(skua_context_self(ctx), wish->tag)) {
        stress_fault(&stress, STRESS_CORRUPT, "what came through a pipe");
    }
}

static void check_result(skua_context *ctx, const struct wish *wish, const skua_event *event)
{
    if (read_token(&event->payload) != tag_token(skua_context_self(ctx), wish->tag)) {
        stress_fault(&stress, STRESS_CORRUPT, "the result of a yield of kind %d", wish->kind);
    }
}

/* An end that the wish came to by itself. */
static void check_end(skua_context *ctx, const struct wish *wish, const skua_event *event)
{
    const int error = event->error;
    bool fits = error == 0;
    switch ((enum wish_kind)wish->kind) {
    case SLEEP:
    case TIMER:
        check_time(ctx, wish);
        break;
    case TICKER:
        fits = error == SKUA_E_INVALID && wish->deadline != SKUA_FOREVER;
        break;
    case LATER:
        check_result(ctx, wish, event);
        break;
    case CHANNEL:
    case OWN_ALSO:
        count(error == 0 ? READY : CLOSED_UNDER);
        fits =
            fits || error == SKUA_E_CLOSED || (error == SKUA_E_DESCRIPTOR && wish->kind == CHANNEL);
        break;
    case OWN_READ:
    case OWN_WRITE:
        if (fits) {
            check_own(ctx, wish);
        }
        break;
    case CALL:
    case CALL_ELSEWHERE:
        if (error == 0 || error == ERROR_FUNCTION) {
            check_result(ctx, wish, event);
            return;
        }
        if (error == SKUA_E_POOL_FULL && wish->kind == CALL) {
            count(CALLS_FULL);
        }
        fits = error == SKUA_E_POOL_FULL ||
               (error == SKUA_E_UNKNOWN_POOL && wish->kind == CALL_ELSEWHERE);
        break;
    case NEVER:
    case NOTHING:
    case WISH_KINDS:
        fits = false;
        break;
    }
    if (!fits) {
        stress_fault(&stress, STRESS_BROKEN, "a wish of kind %d ended with %s", wish->kind,
                     skua_error_name(error));
    }
}

static void check_timeout(skua_context *ctx, const struct wish *wish)
{
    const uint64_t now = skua_context_now(ctx);
    expect(wish->deadline != SKUA_FOREVER && now >= wish->deadline, "timed out early, by ns",
           (int64_t)(wish->deadline - now));
    count(TIMED_OUT);
}

static void on_completion(struct sleeper *sleeper, skua_context *ctx, const skua_event *event,
                          uint64_t *random)
{
    struct wish *wish = find_wish(sleeper, event);
    if (wish == NULL) {
        return;
    }
    if (event->error == SKUA_E_CANCELLED) {
        expect(wish->is_cancelled, "cancelled, without being asked, was a wish of kind",
               wish->kind);
        count(CANCELLED);
    } else if (event->error == SKUA_E_TIMEOUT) {
        check_timeout(ctx, wish);
    } else {
        check_end(ctx, wish, event);
    }
    if (owns_descriptor(wish)) {
        close_own(random, wish);
    }
    wish->kind = NOTHING;
    count(COMPLETIONS);
}

/* ---- sleepers ---- */

static void spawn_sleeper(skua_context *ctx, uint64_t *random)
{
    skua_payload input = make_token(random, random_next(random));
    skua_pid pid;
    const int error = skua_context_spawn(ctx, &sleepers, NULL, &input, 1, &pid);
    count_spawned(error);
    if (error == 0) {
        make_known(random, pid);
    }
}

static int sleeper_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                        size_t input_count)
{
    (void)method;
    (void)input;
    (void)input_count;
    struct sleeper *sleeper = self;
    uint64_t random = skua_context_random(ctx);
    count(INITS);
    expect(sleeper->magic == 0, "the state of a new process", sleeper->magic);
    sleeper->magic = MAGIC_ALIVE;
    sleeper->steps_left = (uint16_t)(1 + random_below(&random, 60));
    if (once_in(&random, 64) && skua_blocking_begin(ctx) == 0) { /* unless its parent blocks */
        pause_in_kernel(&random, 100);
        const int error = skua_blocking_end(ctx);
        expect(error == 0, "end in init", error);
    }
    return once_in(&random, 64) ? ERROR_INIT : 0;
}

static void sleeper_close(void *self)
{
    struct sleeper *sleeper = self;
    if (sleeper->magic != MAGIC_ALIVE) {
        stress_fault(&stress, STRESS_DOUBLED, "close on a state with %" PRIx32, sleeper->magic);
    }
    sleeper->magic = MAGIC_CLOSED;
    uint64_t random = random_mix(sleeper->serial);
    for (uint32_t i = 0; i < WISHES_MAX; i++) {
        struct wish *wish = &sleeper->wishes[i];
        if (wish->kind != NOTHING) {
            count(ABANDONED);
        }
        if (owns_descriptor(wish)) {
            close_own(&random, wish);
        }
    }
    count(CLOSES);
}

static void on_message(skua_event *event, uint64_t *random)
{
    if (event->payload.type == PIPE_END) {
        skua_payload end = skua_payload_take(&event->payload);
        see_to_end(random, end.as.owned.data);
    }
}

static void on_cancel(struct sleeper *sleeper, const skua_event *event, uint64_t *random)
{
    expect(event->error == SKUA_E_STOPPED || event->error == ERROR_CANCEL, "reason", event->error);
    if (event->error == SKUA_E_STOPPED) {
        if (sleeper->was_stopped) {
            stress_fault(&stress, STRESS_DOUBLED, "the cancel event of the shutdown");
        }
        sleeper->was_stopped = true;
    }
    if (current.is_graceful || once_in(random, 2)) {
        sleeper->is_finishing = true;
    }
}

static void on_event(struct sleeper *sleeper, skua_context *ctx, skua_event *event,
                     uint64_t *random)
{
    count_operation();
    switch ((enum skua_event_type)event->type) {
    case SKUA_EVENT_MESSAGE:
        on_message(event, random);
        break;
    case SKUA_EVENT_COMPLETION:
        on_completion(sleeper, ctx, event, random);
        break;
    case SKUA_EVENT_CANCEL:
        on_cancel(sleeper, event, random);
        break;
    case SKUA_EVENT_TICK:
        on_tick(sleeper, ctx, event);
        break;
    }
    if (once_in(random, 8)) {
        skua_payload taken = skua_payload_take(&event->payload);
        skua_payload_drop(&taken);
    }
}

/* A step that blocks, once and mostly as it should. */
static void block(struct sleeper *sleeper, skua_context *ctx, uint64_t *random)
{
    if (sleeper->has_blocked) {
        return;
    }
    sleeper->has_blocked = true;
    int error = skua_blocking_begin(ctx);
    expect(error == 0, "begin", error);
    if (once_in(random, 8)) {
        error = skua_blocking_begin(ctx);
        expect(error == SKUA_E_INVALID, "begin again", error);
    }
    pause_in_kernel(random, 500);
    count(BLOCKS);
    if (once_in(random, 8)) {
        return; /* the end of the step will do */
    }
    error = skua_blocking_end(ctx);
    expect(error == 0, "end", error);
    error = once_in(random, 8) ? skua_blocking_end(ctx) : SKUA_E_INVALID;
    expect(error == SKUA_E_INVALID, "end again", error);
}

/* A step that is too long. There are only a few in a round. */
static void stall(uint64_t *random)
{
    uint32_t left = load_relaxed(&current.stalls_left); /* re-checked by the CAS */
    if (left == 0 || !cas_acq_rel_relaxed(&current.stalls_left, &left, left - 1)) {
        return;
    }
    count(STALLS);
    const uint64_t end = monotonic_ns() + (12000 + random_below(random, 8000)) * MICROSECOND;
    while (monotonic_ns() < end) {
    }
}

static void sleeper_act(struct sleeper *sleeper, skua_context *ctx, skua_step *out,
                        uint64_t *random)
{
    switch (random_below(random, 32)) {
    case 0:
    case 1:
    case 2:
        spawn_sleeper(ctx, random);
        break;
    case 3:
    case 4:
        count_sent(skua_context_send(ctx, random_pid(random), make_token(random, 0)));
        break;
    case 5:
    case 6:
    case 7:
        cancel_some_wish(sleeper, out, random);
        break;
    case 8:
        if (once_in(random, 4)) {
            ask_to_end(random);
        }
        break;
    case 9:
        if (current.kind == DESCRIPTORS || current.kind == MIXED) {
            use_channel(random);
        }
        break;
    case 10:
        if (once_in(random, 8)) {
            block(sleeper, ctx, random);
        } else if (once_in(random, 32)) {
            stall(random);
        }
        break;
    default:
        make_wish(sleeper, ctx, out, random);
        break;
    }
}

/* Whether it may last for ever, or longer than anybody would like to wait. */
static bool may_last(skua_context *ctx, const struct wish *wish)
{
    const bool is_timer = wish->kind == SLEEP || wish->kind == TIMER;
    const uint64_t end = is_timer && wish->due < wish->deadline ? wish->due : wish->deadline;
    const bool lasts = is_timer || wish->is_endless;
    return lasts && end > skua_context_deadline(ctx, PATIENCE_NS);
}

/* Waits for what will come, takes back the rest, then ends. Now and then it does not wait. */
static int sleeper_finish(struct sleeper *sleeper, skua_context *ctx, skua_step *out,
                          uint64_t *random)
{
    bool waits = false;
    for (uint32_t i = 0; i < WISHES_MAX; i++) {
        struct wish *wish = &sleeper->wishes[i];
        if (wish->kind == NOTHING) {
            continue;
        }
        waits = true;
        if (!wish->is_cancelled && (may_last(ctx, wish) || once_in(random, 4))) {
            cancel_wish(out, wish);
        }
    }
    if (waits && !once_in(random, 32)) {
        skua_step_wait(out);
        return 0;
    }
    skua_step_done(out, make_token(random, sleeper->serial));
    return once_in(random, 8) ? ERROR_STEP : 0;
}

static int sleeper_step(void *self, skua_context *ctx, skua_event *events, size_t event_count,
                        skua_step *out)
{
    struct sleeper *sleeper = self;
    uint64_t random = skua_context_random(ctx);
    check_alive(sleeper);
    expect(event_count <= SKUA_EVENTS_PER_STEP, "events in one step", (int64_t)event_count);
    for (size_t i = 0; i < event_count; i++) {
        on_event(sleeper, ctx, &events[i], &random);
    }
    if (sleeper->is_finishing || sleeper->steps_left == 0) {
        sleeper->is_finishing = true;
        return sleeper_finish(sleeper, ctx, out, &random);
    }
    sleeper->steps_left--;
    sleeper->has_blocked = false;
    for (uint32_t acts = 1 + random_below(&random, 5); acts > 0; acts--) {
        sleeper_act(sleeper, ctx, out, &random);
    }
    stress_pause(&random, 64);
    if (once_in(&random, 16)) {
        skua_step_continue(out);
    }
    check_alive(sleeper); /* nobody else has run it meanwhile */
    return once_in(&random, 512) ? ERROR_STEP : 0;
}

/* ---- outsiders: threads that are no workers ---- */

struct outsider {
    CACHE_ALIGNED uint64_t random;
};

static void submit_sleeper(uint64_t *random)
{
    skua_payload input = make_token(random, random_next(random));
    skua_pid pid;
    const int error = skua_process_submit(current.runtime, &sleepers, NULL, &input, 1, &pid);
    count_spawned(error);
    if (error == 0) {
        make_known(random, pid);
    }
}

static void wait_for_some(uint64_t *random)
{
    const skua_pid pid = random_pid(random);
    skua_exit end;
    const int error = skua_process_wait(current.runtime, pid, random_below(random, 50000), &end);
    expect(error == 0 || error == SKUA_E_NO_PROCESS || error == SKUA_E_TIMEOUT, "wait", error);
    if (error == 0) {
        expect(skua_pid_equal(end.pid, pid), "PID of an exit", (int64_t)end.pid.bits);
        skua_payload_drop(&end.result);
    }
    count_operation();
}

static void look_at_statistics(void)
{
    skua_stats sum;
    skua_stats workers[2];
    const int found = skua_stats_read(current.runtime, &sum, workers, 2);
    const uint32_t most = current.config.worker_count + current.config.spare_limit;
    expect(found >= (int)current.config.worker_count && found <= (int)most, "workers", found);
    count_operation();
}

static void outsider_act(uint64_t *random)
{
    switch (random_below(random, 16)) {
    case 0:
        wait_for_some(random);
        break;
    case 1:
        look_at_statistics();
        break;
    case 2:
    case 3:
        ask_to_end(random);
        break;
    case 4:
    case 5:
    case 6:
        if (current.kind == DESCRIPTORS || current.kind == MIXED) {
            use_channel(random);
        }
        break;
    case 7:
    case 8:
        send_from_outside(random);
        break;
    default:
        submit_sleeper(random);
        break;
    }
    stress_pause(random, 2);
}

static void *run_outsider(void *arg)
{
    struct outsider *outsider = arg;
    is_outsider = true;
    while (load_acquire(&current.is_over) == 0) { /* ends the round */
        outsider_act(&outsider->random);
    }
    return NULL;
}

/* ---- rounds ---- */

static void on_exit_of_process(void *arg, skua_exit *end)
{
    (void)arg;
    count(EXITS);
    expect(end->type == &sleepers, "type of an exit", 0);
    expect(end->error == 0 || end->error == ERROR_STEP || end->error == SKUA_E_TERMINATED,
           "error of an exit", end->error);
}

static void on_survivor(void *arg, const skua_process_info *info)
{
    (void)arg;
    if (current.is_graceful) {
        stress_fault(&stress, STRESS_LOST, "a %s is %s after %" PRIu64 " steps and does not end",
                     info->type_name, skua_process_state_name(info->state), info->steps);
    }
}

static void on_stall(void *arg, const skua_stall *seen)
{
    (void)arg;
    count(STALLS_SEEN);
    /* It may have ended just now. */
    expect(seen->type_name == sleepers.name || strcmp(seen->type_name, "?") == 0,
           "type of a stall, on worker", seen->worker);
    expect(seen->elapsed_ns >= current.config.stall_limit_ns, "a stall of ns",
           (int64_t)seen->elapsed_ns);
    uint64_t random = random_mix(seen->pid.bits + seen->elapsed_ns);
    if (once_in(&random, 2)) {
        send_from_outside(&random);
    }
    if (once_in(&random, 4)) {
        const int error = skua_process_terminate(current.runtime, seen->pid);
        expect(error == 0 || error == SKUA_E_NO_PROCESS, "terminating a stuck process", error);
    }
}

static void make_config(uint64_t *random, struct counting_allocator *memory)
{
    static const uint32_t worker_counts[] = {1, 2, 2, 3, 4};
    static const uint32_t spare_limits[] = {1, 2, 8, 32};
    current.config = (skua_runtime_config){
        .worker_count = worker_counts[random_below(random, 5)],
        .process_limit = 50 + random_below(random, PROCESS_LIMIT_MAX - 50),
        .mailbox_limit = 4 + random_below(random, 100),
        .seed = random_next(random),
        .alloc = counting_allocate,
        .alloc_arg = memory,
        .on_exit = on_exit_of_process,
        .on_survivor = on_survivor,
        .spare_limit = spare_limits[random_below(random, 4)],
        .stall_limit_ns = (once_in(random, 4) ? 1 : 10) * SKUA_MILLISECOND,
        .on_stall = on_stall,
        .stall_signal = once_in(random, 4) ? SIGUSR1 : 0,
    };
}

static void begin_round(uint64_t *random, enum kind kind, struct counting_allocator *memory)
{
    for (uint32_t i = 0; i < KNOWN; i++) {
        store_relaxed(&current.known[i], 0); /* no thread yet */
    }
    for (uint32_t i = 0; i < STRESS_THREADS_MAX * TALLIES; i++) {
        store_relaxed(&tallies[i / TALLIES].values[i % TALLIES], 0); /* no thread yet */
    }
    make_config(random, memory);
    current.kind = kind;
    current.is_graceful = once_in(random, 3);
    current.errands_are_over = false;
    current.ops = stress_done(&stress) + 1 + random_below(random, ROUND_OPS_MAX);
    store_relaxed(&current.stalls_left, random_below(random, STALLS_MAX)); /* no thread yet */
    store_relaxed(&current.is_over, 0);
    store_relaxed(&is_stopping, 0);
    if (skua_runtime_create(&current.runtime, &current.config) != 0) {
        abort();
    }
    register_commands();
    register_pools(random);
    if (skua_runtime_start(current.runtime) != 0) {
        abort();
    }
    open_channels(random);
}

static void note_stop(uint64_t took_ns, uint64_t timeout_ns)
{
    const uint64_t beyond_ns = took_ns > timeout_ns ? took_ns - timeout_ns : 0;
    if (beyond_ns > longest_stop[current.kind].beyond_ns) {
        longest_stop[current.kind].beyond_ns = beyond_ns;
        longest_stop[current.kind].timeout_ns = timeout_ns;
    }
}

static uint64_t random_timeout(uint64_t *random)
{
    switch (random_below(random, 4)) {
    case 0:
        return random_below(random, 50000 * MICROSECOND);
    case 1:
        return random_below(random, 2000 * MICROSECOND);
    default:
        return 0;
    }
}

/* In a graceful round every process finishes by itself, so the time allowed only ends a hang. */
static void stop_runtime(uint64_t *random)
{
    const uint64_t timeout_ns = current.is_graceful ? HANG_NS : random_timeout(random);
    store_relaxed(&is_stopping, 1); /* a hint */
    const uint64_t start_ns = monotonic_ns();
    int error = skua_runtime_stop(current.runtime, timeout_ns);
    note_stop(monotonic_ns() - start_ns, timeout_ns);
    if (error == SKUA_E_STUCK) {
        count(STUCK);
    }
    while (error == SKUA_E_STUCK) { /* a step or function took long, or had no CPU for long */
        error = skua_runtime_stop(current.runtime, HANG_NS);
    }
    expect(error == 0 || (error == SKUA_E_TIMEOUT && !current.is_graceful), "stop", error);
}

/* A second stop, while another is under way or already done. */
static void *stop_too(void *arg)
{
    uint64_t *random = arg;
    stress_pause(random, 2);
    const int error = skua_runtime_stop(current.runtime, random_timeout(random));
    expect(error == 0 || error == SKUA_E_TIMEOUT || error == SKUA_E_STUCK, "second stop", error);
    return NULL;
}

static void *close_proper_channels(void *arg)
{
    uint64_t *random = arg;
    close_channels(random, true);
    return NULL;
}

static void end_outsiders(const pthread_t *threads)
{
    store_release(&current.is_over, 1); /* ends the round */
    for (uint32_t i = 1; i < OUTSIDERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

static void end_errands(pthread_t thread)
{
    mutex_lock(&current.errand_lock);
    current.errands_are_over = true;
    mutex_unlock(&current.errand_lock);
    (void)pthread_join(thread, NULL);
}

/* The channels are closed meanwhile, and sometimes another thread wants to stop, too. */
static void end_runtime(uint64_t *random)
{
    uint64_t closer_random = random_next(random);
    uint64_t second_random = random_next(random);
    const bool has_second = !current.is_graceful && once_in(random, 4);
    const pthread_t closer = stress_start_thread(close_proper_channels, &closer_random);
    pthread_t second;
    if (has_second) {
        second = stress_start_thread(stop_too, &second_random);
    }
    stop_runtime(random);
    if (has_second) {
        (void)pthread_join(second, NULL);
    }
    (void)pthread_join(closer, NULL);
}

/* Everybody works until the round's operations are done; this thread is an outsider as well. */
static void run_threads(uint64_t *random)
{
    struct outsider outsiders[OUTSIDERS];
    pthread_t threads[OUTSIDERS];
    uint64_t errand_random = random_next(random);
    const pthread_t errands = stress_start_thread(run_errands, &errand_random);
    for (uint32_t i = 0; i < OUTSIDERS; i++) {
        outsiders[i] = (struct outsider){.random = random_next(random)};
    }
    for (uint32_t i = 1; i < OUTSIDERS; i++) {
        threads[i] = stress_start_thread(run_outsider, &outsiders[i]);
    }
    while (stress_goes_on(&stress, current.ops)) {
        outsider_act(&outsiders[0].random);
    }
    if (current.is_graceful) {
        end_outsiders(threads);
        end_runtime(random);
    } else {
        end_runtime(random);
        end_outsiders(threads);
    }
    end_errands(errands);
    close_channels(random, false);
}

/* INV-20: with nothing alive, each object of a pool is in a cache, a chain or a trimmed page. */
static void check_pool(const char *what, struct object_pool *pool, uint64_t in_caches)
{
    const uint64_t chain_length = pool->batch > 0 ? pool->batch : 1;
    uint64_t free_objects = in_caches + object_pool_trimmed_objects(pool);
    for (uint32_t first = pool->chains; first != OBJECT_NONE;) {
        free_objects += chain_length;
        first = object_pool_link(pool, object_pool_at(pool, first))->next_chain;
    }
    expect_equal(STRESS_LOST, what, free_objects, load_relaxed(&pool->ready) - 1); /* no thread */
}

static uint64_t cached(const struct pool_cache *cache)
{
    return cache->active.count + cache->spare.count;
}

static void check_pools(struct scheduler *sched)
{
    uint64_t events = cached(&sched->outside.caches.events);
    uint64_t processes = cached(&sched->outside.caches.processes);
    for (uint32_t i = 0; i < sched->capacity; i++) {
        events += cached(&sched->workers[i].caches.events);
        processes += cached(&sched->workers[i].caches.processes);
    }
    check_pool("free event nodes", &sched->events, events);
    check_pool("free process records", &sched->table.pool, processes);
}

/* The poller is asked for as long as somebody waits, and not longer. */
static void check_waits(skua_runtime *runtime)
{
    uint32_t waited_for = 0;
    for (uint32_t i = 0; i < runtime->net.capacity; i++) {
        waited_for += runtime->net.descriptors[i].waiters != NULL;
    }
    expect_equal(STRESS_BROKEN, "descriptors that are waited for",
                 load_relaxed(&runtime->sched.poll.waits), waited_for); /* no thread */
}

static void check_round(void)
{
    skua_stats sum;
    (void)skua_stats_read(current.runtime, &sum, NULL, 0);
    expect_equal(STRESS_LOST, "alive after stop", sum.live, 0);
    expect_equal(STRESS_LOST, "processes accepted", sum.spawned, total(SPAWNED));
    expect_equal(STRESS_LOST, "processes finished", sum.finished, total(SPAWNED));
    expect_equal(STRESS_LOST, "exits", total(EXITS), total(SPAWNED));
    expect_equal(STRESS_LOST, "closes", total(CLOSES), total(INITS));
    expect_equal(STRESS_LOST, "messages accepted", sum.messages, total(MESSAGES));
    expect_equal(STRESS_LOST, "completions", total(COMPLETIONS) + total(ABANDONED), total(YIELDS));
    expect_equal(STRESS_BROKEN, "descriptors of pipes", load_relaxed(&private_count), 0);
    /* Some functions on a pool return too late as well. */
    expect(sum.late_completions >= total(LATE), "late completions", (int64_t)sum.late_completions);
    check_pools(&current.runtime->sched);
    check_waits(current.runtime);
    for (uint32_t i = 0; i < TALLIES; i++) {
        sums[i] += total(i);
    }
}

static void end_round(struct counting_allocator *memory, uint32_t files)
{
    const int error = skua_runtime_destroy(current.runtime);
    expect(error == 0, "destroy", error);
    if (!counting_allocator_is_clean(memory)) {
        stress_fault(&stress, STRESS_BROKEN, "memory is left after destroy");
    }
    for (uint32_t i = 0; i < PARCELS; i++) {
        stress_parcel_expect_free(&stress, &parcels[i].parcel);
    }
    expect_equal(STRESS_BROKEN, "open descriptors", count_files(), files);
}

static void describe(void)
{
    skua_stats sum;
    (void)skua_stats_read(current.runtime, &sum, NULL, 0);
    (void)fprintf(stderr,
                  "%" PRIu32 " workers, %" PRIu32 " spare ones, a %s round of %s, %" PRIu64
                  " alive, %" PRIu64 " steps, %" PRIu64 " timers\n",
                  current.config.worker_count, current.config.spare_limit,
                  current.is_graceful ? "graceful" : "abrupt", kind_names[current.kind], sum.live,
                  sum.steps, sum.timers);
}

static void run_round(uint64_t *random, enum kind kind)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    const uint32_t files = count_files();
    begin_round(random, kind, &memory);
    stress_describe_with(&stress, describe);
    run_threads(random);
    check_round();
    stress_describe_with(&stress, NULL);
    end_round(&memory, files);
}

/* ---- the whole run ---- */

static void begin(void)
{
    struct rlimit files;
    (void)signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES_NEEDED) {
        files.rlim_cur = FILES_NEEDED;
        expect(setrlimit(RLIMIT_NOFILE, &files) == 0, "too few descriptors are allowed",
               FILES_NEEDED);
    }
    mutex_init(&current.errand_lock);
    for (uint32_t i = 0; i < SHARED; i++) {
        mutex_init(&channels[i].lock);
    }
}

static void end(void)
{
    for (uint32_t i = 0; i < SHARED; i++) {
        mutex_deinit(&channels[i].lock);
    }
    mutex_deinit(&current.errand_lock);
}

static void print_summary(uint32_t rounds)
{
#define TALLY_TEXT(name, text) text,
    static const char *const texts[TALLIES] = {TALLY_MAP(TALLY_TEXT)};
#undef TALLY_TEXT
    (void)printf("%s: %" PRIu32 " rounds", stress.name, rounds);
    for (uint32_t i = 0; i < TALLIES; i++) {
        if (texts[i] != NULL) {
            (void)printf(", %" PRIu64 " %s", sums[i], texts[i]);
        }
    }
    (void)printf("\n%s: the longest stop took, beyond its timeout:", stress.name);
    for (uint32_t i = 0; i < KINDS; i++) {
        (void)printf(" %s %.1f (%.1f) ms%s", kind_names[i],
                     (double)longest_stop[i].beyond_ns / (double)SKUA_MILLISECOND,
                     (double)longest_stop[i].timeout_ns / (double)SKUA_MILLISECOND,
                     i + 1 < KINDS ? "," : "\n");
    }
}

/* Each kind in its turn, until the operations are done; then calls, until they are done, too. */
static bool next_kind(uint32_t round, uint64_t calls_min, enum kind *kind)
{
    const bool goes_on = stress_goes_on(&stress, stress.ops);
    *kind = goes_on ? round % KINDS : BLOCKING;
    return goes_on || (sums[CALLS] < calls_min && !stress_has_failed(&stress));
}

int main(int argc, char **argv)
{
    stress_begin(&stress, argc, argv, DEFAULT_OPS);
    begin();
    uint64_t random = stress_stream(&stress, 0);
    const uint64_t calls_min = stress.ops < CALLS_MIN ? 0 : CALLS_MIN; /* a very short run */
    uint32_t rounds = 0;
    for (enum kind kind; next_kind(rounds, calls_min, &kind); rounds++) {
        run_round(&random, kind);
    }
    print_summary(rounds);
    end();
    return stress_end(&stress);
}
