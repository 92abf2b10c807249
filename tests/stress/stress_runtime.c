/* SPDX-License-Identifier: MIT */
/* Stress of the whole runtime, through its public interface. Processes of random programs (they
 * send, spawn, yield, go on, wait, finish, fail) and threads from outside (they submit, send,
 * cancel, terminate, wait, look) work on each other, in rounds that end by a shutdown: a graceful
 * one, in which everybody finishes by himself, or an abrupt one in the middle of it all.
 *  - What a payload owns is dropped exactly once, wherever it ends, with the content it had.
 *  - Messages from one sender to one process come in order, from whom they say.
 *  - Each yield completes once; what comes later or twice is refused and counted.
 *  - Each init is followed by one close, each accepted process by one on_exit.
 *  - Nobody sleeps through anything: players, whom nobody disturbs, always end their game.
 *  - After stop nothing is alive, the statistics agree with what was done here and the pools have
 *    all their objects back; after destroy no memory is left. */
#include <inttypes.h>
#include <sched.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mutex.h"
#include "counting_allocator.h"
#include "runtime/runtime.h" /* to tell the slots of PIDs apart, and to look into the pools */
#include "stress_support.h"

#define OUTSIDERS         3
#define PROCESS_LIMIT_MAX 2000
#define KNOWN             256
#define PARCELS           8192
#define PARCEL_TRIES      4
#define LATER_MAX         1024
#define ROUND_OPS_MAX     200000
#define LINGER_MAX        2000
#define CROWD             300
#define HANG_NS           UINT64_C(15000000000) /* less than the watchdog's */
#define DEFAULT_OPS       12000000

#define ERROR_INIT    (SKUA_E_USER - 1)
#define ERROR_STEP    (SKUA_E_USER - 2)
#define ERROR_HANDLER (SKUA_E_USER - 3)
#define ERROR_CANCEL  (SKUA_E_USER - 4)

/* ---- what is counted, to be compared at the end of a round ---- */

enum tally { SPAWNED, MESSAGES, LATE, EXITS, INITS, CLOSES, TALLIES };

/* In parts, one for few threads each, so that they do not all meet at one cache line. */
struct tallies {
    CACHE_ALIGNED atomic_u64 values[TALLIES];
};

static struct stress stress;
static struct tallies tallies[STRESS_THREADS_MAX];
static atomic_u32 threads_seen;
static _Thread_local uint32_t own_part; /* plus one; 0: none yet */
static _Thread_local bool is_outsider;

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

static void count_operation(void)
{
    stress_count(&stress, part(), 1);
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

/* A command that another thread will complete. */
struct later {
    skua_completion completion;
    uint64_t token;
};

/* All but the atomics and `later` is written while no other thread runs. */
static struct {
    skua_runtime *runtime;
    skua_runtime_config config;
    bool is_graceful;
    uint64_t ops;                             /* of all threads, when the round ends */
    atomic_u32 is_stopping;                   /* stop has been called, or is about to be */
    atomic_u32 is_over;                       /* outsiders leave */
    atomic_u64 known[KNOWN];                  /* PIDs of processes that live or have lived */
    atomic_u32 exited[PROCESS_LIMIT_MAX + 1]; /* per slot: the generation that ended last */
    pthread_mutex_t later_lock;
    struct later later[LATER_MAX]; /* under later_lock, as are the next two */
    uint32_t later_count;
    bool later_is_over;
} current;

static skua_pid random_pid(uint64_t *random)
{
    return (skua_pid){load_relaxed(&current.known[random_below(random, KNOWN)])}; /* any will do */
}

static void make_known(uint64_t *random, skua_pid pid)
{
    store_relaxed(&current.known[random_below(random, KNOWN)], pid.bits); /* any will do */
}

/* ---- letters: what messages carry ---- */

enum payload_type { LETTER, PARCEL_LETTER, BALL, TOKEN, PARCEL_TOKEN, OTHER };

/* Sender: a PID, or the number of an outsider, or 0 if the order is not checked. */
struct letter {
    uint64_t sender;
    uint64_t serial;
    uint64_t check;
};

/* The rest makes it too long to lie inside a payload. */
struct long_letter {
    struct letter letter;
    unsigned char rest[40];
};

struct parcel {
    struct stress_parcel parcel;
    struct letter letter;
};

static struct parcel parcels[PARCELS];

static void drop_parcel(void *data, size_t size)
{
    (void)size;
    struct parcel *parcel = data;
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
            return parcel;
        }
    }
    return NULL;
}

static uint64_t letter_check(const struct letter *letter)
{
    return random_mix(letter->sender ^ random_mix(letter->serial));
}

static skua_payload copy(const void *data, size_t size)
{
    skua_payload payload;
    const int error = skua_payload_copy(current.runtime, LETTER, data, size, &payload);
    expect(error == 0, "copying a payload", error);
    return payload;
}

/* A letter in one of the ways that a payload can hold it. */
static skua_payload make_letter(uint64_t *random, uint64_t sender, uint64_t serial)
{
    struct long_letter text = {.letter = {.sender = sender, .serial = serial}};
    text.letter.check = letter_check(&text.letter);
    const uint32_t way = random_below(random, 4);
    if (way == 0) {
        return copy(&text, sizeof text);
    }
    struct parcel *parcel = way == 1 ? take_parcel(random) : NULL;
    if (parcel == NULL) {
        return copy(&text.letter, sizeof text.letter);
    }
    parcel->letter = text.letter;
    return skua_payload_pointer(PARCEL_LETTER, parcel, drop_parcel);
}

/* A number that a handler or a result gives back, sometimes in a parcel that must be dropped. */
static skua_payload make_token(uint64_t *random, uint64_t token)
{
    struct parcel *parcel = random_below(random, 4) == 0 ? take_parcel(random) : NULL;
    if (parcel == NULL) {
        return skua_payload_u64(TOKEN, token);
    }
    parcel->letter.serial = token;
    return skua_payload_pointer(PARCEL_TOKEN, parcel, drop_parcel);
}

static uint64_t read_token(const skua_payload *payload)
{
    if (payload->type == PARCEL_TOKEN) {
        const struct parcel *parcel = skua_payload_data(payload);
        return parcel->letter.serial;
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

/* Fills the inputs of a new process; the first one is a token. */
static size_t make_inputs(uint64_t *random, uint64_t token, skua_payload inputs[3])
{
    const size_t inputs_used = 1 + random_below(random, 3);
    for (size_t i = 0; i < inputs_used; i++) {
        inputs[i] = make_token(random, token + i);
    }
    return inputs_used;
}

/* ---- commands ---- */

enum command { DONE_NOW, FAILS, DONE_LATER, DONE_BEFORE, NEVER_DONE, UNKNOWN, COMMANDS };

/* The number behind each; one is beyond the table of the fast ones. */
static const uint32_t command_ids[COMMANDS] = {1, 2, 300, 4, 5, 6};

static bool ask_for_later(const skua_command *command, uint64_t token)
{
    mutex_lock(&current.later_lock);
    const bool fits = current.later_count < LATER_MAX && !current.later_is_over;
    if (fits) {
        current.later[current.later_count++] =
            (struct later){.completion = command->completion, .token = token};
    }
    mutex_unlock(&current.later_lock);
    return fits;
}

static int handle(void *arg, skua_command *command, skua_payload *result)
{
    const uint32_t kind = *(const uint32_t *)arg;
    const uint64_t token = read_token(&command->input);
    uint64_t random = random_mix(token);
    expect(command->runtime == current.runtime && command->id == command_ids[kind], "command",
           kind);
    if (random_below(&random, 8) == 0) { /* handlers may use the runtime too */
        const skua_payload letter = make_letter(&random, 0, 0);
        count_sent(skua_message_send(current.runtime, random_pid(&random), letter));
    }
    if (kind == FAILS) {
        return ERROR_HANDLER;
    }
    if (kind == NEVER_DONE || (kind == DONE_LATER && ask_for_later(command, token))) {
        return SKUA_PENDING;
    }
    if (kind == DONE_BEFORE) {
        const int error = complete(command->completion, skua_payload_take(&command->input));
        expect(error == 0, "completing inside the handler", error);
        return SKUA_PENDING;
    }
    *result = make_token(&random, token);
    return 0;
}

static void register_commands(void)
{
    static const uint32_t kinds[COMMANDS] = {DONE_NOW,    FAILS,      DONE_LATER,
                                             DONE_BEFORE, NEVER_DONE, UNKNOWN};
    for (uint32_t i = 0; i < UNKNOWN; i++) {
        const skua_handler handler = {.name = "stress", .run = handle, .arg = (void *)&kinds[i]};
        const int error = skua_command_register(current.runtime, command_ids[i], &handler);
        expect(error == 0, "register", error);
    }
}

/* Takes any of the commands that wait; false if there is none. */
static bool take_later(uint64_t *random, struct later *later, bool *is_over)
{
    mutex_lock(&current.later_lock);
    const bool found = current.later_count > 0;
    if (found) {
        struct later *any = &current.later[random_below(random, current.later_count)];
        *later = *any;
        *any = current.later[--current.later_count];
    }
    *is_over = current.later_is_over;
    mutex_unlock(&current.later_lock);
    return found;
}

/* The thread that completes commands later, some of them twice. */
static void *run_completer(void *arg)
{
    uint64_t *random = arg;
    for (;;) {
        struct later later;
        bool is_over;
        if (!take_later(random, &later, &is_over)) {
            if (is_over) {
                return NULL;
            }
            (void)sched_yield();
            continue;
        }
        stress_pause(random, 4);
        (void)complete(later.completion, make_token(random, later.token));
        if (random_below(random, 4) == 0) {
            const int error = complete(later.completion, make_token(random, later.token));
            if (error != SKUA_E_LATE) {
                stress_fault(&stress, STRESS_DOUBLED, "a completion was accepted twice");
            }
        }
    }
}

/* ---- wanderers: processes with a random program ---- */

#define YIELDS_MAX   32
#define MAGIC_ALIVE  0x57a11ed1u
#define MAGIC_CLOSED 0x0ddba115u

/* The last letter of one sender. */
struct correspondent {
    uint64_t sender;
    uint64_t serial;
};

struct wanderer {
    uint32_t magic;
    uint16_t steps_left;
    bool is_finishing;
    bool was_stopped;     /* has seen the cancel event of the shutdown */
    uint32_t yielded;     /* so far */
    uint32_t outstanding; /* a bit for each yield that has not completed */
    uint32_t never;       /* those of them that will not */
    uint32_t correspondent_count;
    uint64_t serial; /* of the letters it has sent */
    struct correspondent correspondents[];
};

#define SMALL_CORRESPONDENTS 2 /* the state lies in the record */
#define LARGE_CORRESPONDENTS 12
#define WANDERER_SIZE(n)     (sizeof(struct wanderer) + (n) * sizeof(struct correspondent))
_Static_assert(WANDERER_SIZE(SMALL_CORRESPONDENTS) <= PROCESS_INLINE_STATE, "small");
_Static_assert(WANDERER_SIZE(LARGE_CORRESPONDENTS) > PROCESS_INLINE_STATE, "large");

static skua_init_fn wanderer_init;
static skua_step_fn wanderer_step;
static skua_close_fn wanderer_close;

static const char *const wanderer_methods[] = {"small", "large", NULL};
static const skua_process_type wanderers[] = {
    {.name = "small wanderer",
     .state_size = WANDERER_SIZE(SMALL_CORRESPONDENTS),
     .methods = wanderer_methods,
     .init = wanderer_init,
     .step = wanderer_step,
     .close = wanderer_close},
    {.name = "large wanderer",
     .state_size = WANDERER_SIZE(LARGE_CORRESPONDENTS),
     .methods = wanderer_methods,
     .init = wanderer_init,
     .step = wanderer_step,
     .close = wanderer_close,
     .mailbox_limit = 7},
};

static void check_alive(const struct wanderer *wanderer)
{
    expect(wanderer->magic == MAGIC_ALIVE, "the state of a process", wanderer->magic);
}

static void wanderer_send(struct wanderer *wanderer, skua_context *ctx, uint64_t *random)
{
    const uint64_t self = skua_context_self(ctx).bits;
    const skua_payload letter = make_letter(random, self, ++wanderer->serial);
    count_sent(skua_context_send(ctx, random_pid(random), letter));
}

static int wanderer_spawn(skua_context *ctx, uint64_t *random)
{
    const uint32_t kind = random_below(random, 2);
    skua_payload inputs[3];
    const size_t inputs_used = make_inputs(random, random_next(random), inputs);
    skua_pid pid;
    const int error = skua_context_spawn(ctx, &wanderers[kind], wanderer_methods[kind], inputs,
                                         inputs_used, &pid);
    count_spawned(error);
    if (error == 0) {
        make_known(random, pid);
    }
    return error;
}

/* More than a deque holds. */
static void wanderer_spawn_crowd(skua_context *ctx, uint64_t *random)
{
    int error = 0;
    for (uint32_t i = 0; i < CROWD && (error == 0 || error == ERROR_INIT); i++) {
        error = wanderer_spawn(ctx, random);
    }
}

static void give_way(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        (void)sched_yield();
    }
}

/* An init that was begun before the stop may last longer than its first acts, and on a thread that
 * is no worker even longer than all of it. */
static void linger(uint64_t *random)
{
    if (load_relaxed(&current.is_stopping) != 0) { /* a hint */
        give_way(random_below(random, is_outsider ? LINGER_MAX : LINGER_MAX / 20));
    }
    stress_pause(random, 16);
}

static int wanderer_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                         size_t input_count)
{
    struct wanderer *wanderer = self;
    uint64_t random = skua_context_random(ctx);
    count(INITS);
    expect(wanderer->magic == 0, "the state of a new process", wanderer->magic);
    const bool is_small = method == wanderer_methods[0];
    wanderer->magic = MAGIC_ALIVE;
    wanderer->steps_left = (uint16_t)(1 + random_below(&random, 40));
    wanderer->correspondent_count = is_small ? SMALL_CORRESPONDENTS : LARGE_CORRESPONDENTS;
    for (size_t i = 1; i < input_count; i++) {
        skua_payload taken = skua_payload_take(&input[i]);
        expect(read_token(&taken) == read_token(&input[0]) + i, "input", (int64_t)i);
        skua_payload_drop(&taken);
    }
    if (random_below(&random, 8) == 0) {
        wanderer_send(wanderer, ctx, &random);
    }
    linger(&random);
    return random_below(&random, 32) == 0 ? ERROR_INIT : 0;
}

static void wanderer_close(void *self)
{
    struct wanderer *wanderer = self;
    if (wanderer->magic != MAGIC_ALIVE) {
        stress_fault(&stress, STRESS_DOUBLED, "close on a state with %" PRIx32, wanderer->magic);
    }
    wanderer->magic = MAGIC_CLOSED;
    count(CLOSES);
}

/* The tag of a yield says which bit is its own and what to expect. */
static uint64_t make_tag(uint32_t number, enum command command)
{
    return (uint64_t)number << 3 | command;
}

static uint32_t tag_bit(uint64_t tag)
{
    return UINT32_C(1) << ((tag >> 3) % YIELDS_MAX);
}

static uint64_t tag_token(skua_pid self, uint64_t tag)
{
    return random_mix(self.bits + random_mix(tag));
}

static void wanderer_yield(struct wanderer *wanderer, skua_context *ctx, skua_step *out,
                           uint64_t *random)
{
    const enum command command = random_below(random, COMMANDS);
    const uint64_t tag = make_tag(wanderer->yielded++, command);
    if ((wanderer->outstanding & tag_bit(tag)) != 0) {
        return;
    }
    const skua_payload token = make_token(random, tag_token(skua_context_self(ctx), tag));
    const int error = skua_step_yield(out, command_ids[command], tag, token);
    expect(error == 0, "yield", error);
    wanderer->outstanding |= tag_bit(tag);
    if (command == NEVER_DONE) {
        wanderer->never |= tag_bit(tag);
    }
    count_operation();
}

static void on_completion(struct wanderer *wanderer, skua_context *ctx, const skua_event *event)
{
    const enum command command = event->tag & 7;
    const uint32_t bit = tag_bit(event->tag);
    if ((wanderer->outstanding & ~wanderer->never & bit) == 0) {
        stress_fault(&stress, STRESS_DOUBLED, "completion of a yield, command %d", (int)command);
    }
    wanderer->outstanding &= ~bit;
    if (command == FAILS || command == UNKNOWN) {
        const int error = command == FAILS ? ERROR_HANDLER : SKUA_E_UNKNOWN_COMMAND;
        expect(event->error == error, "error of a completion", event->error);
        return;
    }
    const bool is_right =
        read_token(&event->payload) == tag_token(skua_context_self(ctx), event->tag);
    expect(event->error == 0 && is_right, "result of a completion", event->error);
}

static const struct letter *read_letter(const skua_payload *payload)
{
    if (payload->type == PARCEL_LETTER) {
        const struct parcel *parcel = skua_payload_data(payload);
        return &parcel->letter;
    }
    return skua_payload_data(payload);
}

static void on_letter(struct wanderer *wanderer, const skua_event *event)
{
    const struct letter *letter = read_letter(&event->payload);
    if (letter->check != letter_check(letter)) {
        stress_fault(&stress, STRESS_CORRUPT, "a letter from %" PRIx64, letter->sender);
    }
    const bool is_from_process = letter->sender > OUTSIDERS;
    expect(event->from.bits == (is_from_process ? letter->sender : 0), "sender of a message",
           (int64_t)event->from.bits);
    if (letter->sender == 0) {
        return;
    }
    const uint64_t hash = random_mix(letter->sender);
    struct correspondent *known = &wanderer->correspondents[hash % wanderer->correspondent_count];
    if (known->sender == letter->sender && known->serial >= letter->serial) {
        stress_fault(&stress, STRESS_DISORDERED, "letter %" PRIu64 " after %" PRIu64,
                     letter->serial, known->serial);
    }
    *known = (struct correspondent){letter->sender, letter->serial};
}

static void on_cancel(struct wanderer *wanderer, const skua_event *event, uint64_t *random)
{
    expect(event->error == SKUA_E_STOPPED || event->error == ERROR_CANCEL, "reason", event->error);
    if (event->error == SKUA_E_STOPPED) {
        if (wanderer->was_stopped) {
            stress_fault(&stress, STRESS_DOUBLED, "the cancel event of the shutdown");
        }
        wanderer->was_stopped = true;
    }
    if (current.is_graceful || random_below(random, 2) == 0) {
        wanderer->is_finishing = true;
    }
}

static void on_event(struct wanderer *wanderer, skua_context *ctx, skua_event *event,
                     uint64_t *random)
{
    count_operation();
    switch ((enum skua_event_type)event->type) {
    case SKUA_EVENT_MESSAGE:
        on_letter(wanderer, event);
        break;
    case SKUA_EVENT_COMPLETION:
        on_completion(wanderer, ctx, event);
        break;
    case SKUA_EVENT_CANCEL:
        on_cancel(wanderer, event, random);
        break;
    case SKUA_EVENT_TICK:
        stress_fault(&stress, STRESS_BROKEN, "a tick that nobody asked for");
        break;
    }
    if (random_below(random, 8) == 0) {
        skua_payload taken = skua_payload_take(&event->payload);
        skua_payload_drop(&taken);
    }
}

static void wanderer_act(struct wanderer *wanderer, skua_context *ctx, skua_step *out,
                         uint64_t *random)
{
    switch (random_below(random, 16)) {
    case 0:
    case 1:
        if (random_below(random, 256) == 0) {
            wanderer_spawn_crowd(ctx, random);
        } else {
            (void)wanderer_spawn(ctx, random);
        }
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        wanderer_yield(wanderer, ctx, out, random);
        break;
    case 6:
        if (random_below(random, 8) == 0) {
            (void)skua_process_terminate(skua_context_runtime(ctx), random_pid(random));
        }
        break;
    default:
        wanderer_send(wanderer, ctx, random);
        break;
    }
}

/* Waits for what will come, then ends. */
static int wanderer_finish(struct wanderer *wanderer, skua_step *out, uint64_t *random)
{
    if ((wanderer->outstanding & ~wanderer->never) != 0) {
        skua_step_wait(out);
        return 0;
    }
    skua_step_done(out, make_token(random, wanderer->serial));
    return random_below(random, 8) == 0 ? ERROR_STEP : 0;
}

static int wanderer_step(void *self, skua_context *ctx, skua_event *events, size_t event_count,
                         skua_step *out)
{
    struct wanderer *wanderer = self;
    uint64_t random = skua_context_random(ctx);
    check_alive(wanderer);
    expect(event_count <= SKUA_EVENTS_PER_STEP, "events in one step", (int64_t)event_count);
    for (size_t i = 0; i < event_count; i++) {
        on_event(wanderer, ctx, &events[i], &random);
    }
    if (wanderer->is_finishing || wanderer->steps_left == 0) {
        wanderer->is_finishing = true;
        return wanderer_finish(wanderer, out, &random);
    }
    wanderer->steps_left--;
    for (uint32_t acts = random_below(&random, 4); acts > 0; acts--) {
        wanderer_act(wanderer, ctx, out, &random);
    }
    stress_pause(&random, 64);
    switch (random_below(&random, 4)) {
    case 0:
        skua_step_continue(out);
        break;
    case 1:
        skua_step_idle(out);
        break;
    default:
        break;
    }
    check_alive(wanderer); /* nobody else has run it meanwhile */
    return random_below(&random, 256) == 0 ? ERROR_STEP : 0;
}

/* ---- players: two processes with a ball, which nobody disturbs ---- */

struct player {
    uint32_t throws;
    uint32_t is_playing;
};

static skua_init_fn player_init;
static skua_step_fn player_step;
static skua_close_fn player_close;

static const skua_process_type players = {
    .name = "player",
    .state_size = sizeof(struct player),
    .init = player_init,
    .step = player_step,
    .close = player_close,
};

/* The player that begins gets the number of throws, the other one nothing. */
static int player_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    (void)ctx;
    (void)method;
    struct player *player = self;
    player->throws = input_count > 0 ? (uint32_t)skua_payload_to_u64(&input[0]) : 0;
    count(INITS);
    return 0;
}

static void player_close(void *self)
{
    (void)self;
    count(CLOSES);
}

/* Returns whether the game goes on. */
static bool throw_ball(skua_context *ctx, skua_pid to, uint64_t throws_left)
{
    const int error = skua_context_send(ctx, to, skua_payload_u64(BALL, throws_left));
    count_sent(error);
    return error == 0 && throws_left > 0;
}

static bool begin_game(struct player *player, skua_context *ctx)
{
    const uint64_t throws = player->throws;
    player->throws = 0;
    player->is_playing = 1;
    if (throws == 0) {
        return true; /* the other one begins */
    }
    skua_pid other;
    const int error = skua_context_spawn(ctx, &players, NULL, NULL, 0, &other);
    count_spawned(error);
    return error == 0 && throw_ball(ctx, other, throws);
}

static int player_step(void *self, skua_context *ctx, skua_event *events, size_t event_count,
                       skua_step *out)
{
    struct player *player = self;
    bool goes_on = player->is_playing != 0 || begin_game(player, ctx);
    for (size_t i = 0; i < event_count; i++) {
        count_operation();
        if (events[i].type != SKUA_EVENT_MESSAGE) {
            goes_on = false; /* the shutdown */
            continue;
        }
        const uint64_t throws_left = skua_payload_to_u64(&events[i].payload);
        goes_on = goes_on && throws_left > 0 && throw_ball(ctx, events[i].from, throws_left - 1);
    }
    if (!goes_on) {
        skua_step_done(out, skua_payload_empty(OTHER));
    }
    return 0;
}

/* ---- errands: done in one step, with their input as result ---- */

struct errand {
    skua_payload input;
};

static int errand_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    (void)ctx;
    (void)method;
    (void)input_count;
    struct errand *errand = self;
    errand->input = skua_payload_take(&input[0]);
    count(INITS);
    return 0;
}

static int errand_step(void *self, skua_context *ctx, skua_event *events, size_t event_count,
                       skua_step *out)
{
    (void)ctx;
    (void)events;
    (void)event_count;
    struct errand *errand = self;
    skua_step_done(out, skua_payload_take(&errand->input));
    return 0;
}

static void errand_close(void *self)
{
    struct errand *errand = self;
    skua_payload_drop(&errand->input);
    count(CLOSES);
}

static const skua_process_type errands = {
    .name = "errand",
    .state_size = sizeof(struct errand),
    .init = errand_init,
    .step = errand_step,
    .close = errand_close,
};

/* ---- outsiders: threads that are no workers ---- */

struct outsider {
    CACHE_ALIGNED uint64_t random;
    uint64_t number; /* from 1, as the sender of letters */
    uint64_t serial;
};

static void submit_wanderer(struct outsider *outsider)
{
    const uint32_t kind = random_below(&outsider->random, 2);
    skua_payload inputs[3];
    const size_t inputs_used =
        make_inputs(&outsider->random, random_next(&outsider->random), inputs);
    skua_pid pid;
    const int error = skua_process_submit(current.runtime, &wanderers[kind], wanderer_methods[kind],
                                          inputs, inputs_used, &pid);
    count_spawned(error);
    if (error == 0) {
        make_known(&outsider->random, pid);
    }
}

static void send_letters(struct outsider *outsider)
{
    const skua_pid to = random_pid(&outsider->random);
    for (uint32_t i = random_below(&outsider->random, 16); i > 0; i--) {
        const skua_payload letter =
            make_letter(&outsider->random, outsider->number, ++outsider->serial);
        count_sent(skua_message_send(current.runtime, to, letter));
    }
}

static void check_exit(const skua_exit *end, skua_pid pid)
{
    expect(skua_pid_equal(end->pid, pid), "PID of an exit", (int64_t)end->pid.bits);
    expect(end->error == 0 || end->error == ERROR_STEP || end->error == SKUA_E_TERMINATED,
           "error of an exit", end->error);
}

static int wait_for(skua_pid pid, uint64_t timeout_ns)
{
    skua_exit end;
    const int error = skua_process_wait(current.runtime, pid, timeout_ns, &end);
    expect(error == 0 || error == SKUA_E_NO_PROCESS || error == SKUA_E_TIMEOUT, "wait", error);
    if (error == 0) {
        check_exit(&end, pid);
        skua_payload_drop(&end.result);
    }
    count_operation();
    return error;
}

/* Nobody disturbs a game but the shutdown, so it must come to its end. */
static void watch_game(struct outsider *outsider)
{
    skua_payload throws = skua_payload_u64(OTHER, 1 + random_below(&outsider->random, 60));
    skua_pid pid;
    const int error = skua_process_submit(current.runtime, &players, NULL, &throws, 1, &pid);
    count_spawned(error);
    if (error == 0 && wait_for(pid, HANG_NS) == SKUA_E_TIMEOUT) {
        stress_fault(&stress, STRESS_LOST, "a game did not end");
    }
}

static void run_errand(struct outsider *outsider)
{
    const uint64_t token = random_next(&outsider->random);
    skua_payload input = make_token(&outsider->random, token);
    skua_exit end;
    const int error = skua_process_run(current.runtime, &errands, NULL, &input, 1, &end);
    count_spawned(error);
    if (error != 0) {
        return;
    }
    const bool is_done = end.error == 0 && end.type == &errands;
    if (is_done) {
        /* on_exit may have taken the result. */
        expect(end.result.storage == SKUA_PAYLOAD_EMPTY || read_token(&end.result) == token,
               "result of an errand", end.error);
    } else {
        expect(end.error == SKUA_E_TERMINATED, "end of an errand", end.error);
    }
    skua_payload_drop(&end.result);
}

static void look_at_process(struct outsider *outsider)
{
    const skua_pid pid = random_pid(&outsider->random);
    skua_process_info info;
    const int error = skua_process_info_read(current.runtime, pid, &info);
    expect(error == 0 || error == SKUA_E_NO_PROCESS, "info", error);
    if (error == 0) {
        expect(skua_pid_equal(info.pid, pid), "PID of an info", (int64_t)info.pid.bits);
        expect(info.state >= SKUA_PROCESS_READY && info.state <= SKUA_PROCESS_IDLE, "state",
               info.state);
        expect(info.type_name == wanderers[0].name || info.type_name == wanderers[1].name, "type",
               0);
        /* Senders that are about to be refused count for a moment. */
        expect(info.mailbox_length <= current.config.mailbox_limit + STRESS_THREADS_MAX, "mailbox",
               info.mailbox_length);
    }
    count_operation();
}

static void look_at_statistics(void)
{
    skua_stats sum;
    skua_stats workers[2];
    const int workers_found = skua_stats_read(current.runtime, &sum, workers, 2);
    /* Spare ones too, if a worker was taken for stuck. */
    const int most = (int)(current.runtime->sched.capacity);
    expect(workers_found >= (int)current.config.worker_count && workers_found <= most, "workers",
           workers_found);
    count_operation();
}

static void ask_to_end(struct outsider *outsider)
{
    const skua_pid pid = random_pid(&outsider->random);
    const int error = random_below(&outsider->random, 4) == 0
                          ? skua_process_terminate(current.runtime, pid)
                          : skua_process_cancel(current.runtime, pid, ERROR_CANCEL);
    expect(error == 0 || error == SKUA_E_NO_PROCESS, "cancel or terminate", error);
    count_operation();
}

static void outsider_act(struct outsider *outsider)
{
    switch (random_below(&outsider->random, 16)) {
    case 0:
        watch_game(outsider);
        break;
    case 1:
        run_errand(outsider);
        break;
    case 2:
        (void)wait_for(random_pid(&outsider->random), random_below(&outsider->random, 50000));
        break;
    case 3:
        look_at_process(outsider);
        look_at_statistics();
        break;
    case 4:
        ask_to_end(outsider);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        submit_wanderer(outsider);
        break;
    default:
        send_letters(outsider);
        break;
    }
    stress_pause(&outsider->random, 4);
}

static void *run_outsider(void *arg)
{
    struct outsider *outsider = arg;
    is_outsider = true;
    while (load_acquire(&current.is_over) == 0) { /* ends the round */
        outsider_act(outsider);
    }
    return NULL;
}

/* ---- rounds ---- */

static void on_exit_of_process(void *arg, skua_exit *end)
{
    (void)arg;
    count(EXITS);
    atomic_u32 *last = &current.exited[pid_slot(end->pid)];
    /* The place is free before this is called, so a later process in it may be here first; that
     * none is missing or too many in all is checked at the end of the round. */
    if (exchange_acq_rel(last, pid_generation(end->pid)) == pid_generation(end->pid)) {
        stress_fault(&stress, STRESS_DOUBLED, "exit of %" PRIx64, end->pid.bits);
    }
    if (end->pid.bits % 4 == 0) {
        skua_payload result = skua_payload_take(&end->result);
        skua_payload_drop(&result);
    }
}

static void on_survivor(void *arg, const skua_process_info *info)
{
    (void)arg;
    if (current.is_graceful) {
        stress_fault(&stress, STRESS_LOST, "a %s is %s after %" PRIu64 " steps and does not end",
                     info->type_name, skua_process_state_name(info->state), info->steps);
    }
}

static void make_config(uint64_t *random, struct counting_allocator *memory)
{
    static const uint32_t worker_counts[] = {1, 2, 2, 3, 4, 8};
    current.config = (skua_runtime_config){
        .worker_count = worker_counts[random_below(random, 6)],
        .process_limit = 50 + random_below(random, PROCESS_LIMIT_MAX - 50),
        .mailbox_limit = 8 + random_below(random, 200),
        .seed = random_next(random),
        .alloc = counting_allocate,
        .alloc_arg = memory,
        .on_exit = on_exit_of_process,
        .on_survivor = on_survivor,
    };
}

static void begin_round(uint64_t *random, struct counting_allocator *memory)
{
    for (uint32_t i = 0; i < KNOWN; i++) {
        store_relaxed(&current.known[i], 0); /* no thread yet */
    }
    for (uint32_t i = 0; i <= PROCESS_LIMIT_MAX; i++) {
        store_relaxed(&current.exited[i], 0); /* no thread yet */
    }
    for (uint32_t i = 0; i < STRESS_THREADS_MAX * TALLIES; i++) {
        store_relaxed(&tallies[i / TALLIES].values[i % TALLIES], 0); /* no thread yet */
    }
    make_config(random, memory);
    current.is_graceful = random_below(random, 2) == 0;
    current.later_is_over = false;
    current.ops = stress_done(&stress) + 1 + random_below(random, ROUND_OPS_MAX);
    store_relaxed(&current.is_stopping, 0); /* no thread yet */
    store_relaxed(&current.is_over, 0);
    if (skua_runtime_create(&current.runtime, &current.config) != 0) {
        abort();
    }
    register_commands();
    if (skua_runtime_start(current.runtime) != 0) {
        abort();
    }
}

/* In a graceful round every process finishes by itself, so the time allowed only ends a hang. */
static void stop_runtime(uint64_t *random)
{
    const uint64_t timeout_ns = current.is_graceful            ? HANG_NS
                                : random_below(random, 2) == 0 ? 0
                                                               : random_below(random, 2000000);
    store_relaxed(&current.is_stopping, 1); /* a hint */
    give_way(random_below(random, LINGER_MAX / 20));
    int error = skua_runtime_stop(current.runtime, timeout_ns);
    while (error == SKUA_E_STUCK) { /* a worker had no CPU for long */
        error = skua_runtime_stop(current.runtime, HANG_NS);
    }
    expect(error == 0 || (error == SKUA_E_TIMEOUT && !current.is_graceful), "stop", error);
}

static void end_outsiders(const pthread_t *threads)
{
    store_release(&current.is_over, 1); /* ends the round */
    for (uint32_t i = 1; i < OUTSIDERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

static void end_completer(pthread_t thread)
{
    mutex_lock(&current.later_lock);
    current.later_is_over = true;
    mutex_unlock(&current.later_lock);
    (void)pthread_join(thread, NULL);
}

/* Everybody works until the round's operations are done; this thread is an outsider as well. */
static void run_threads(uint64_t *random)
{
    struct outsider outsiders[OUTSIDERS];
    pthread_t threads[OUTSIDERS];
    uint64_t completer_random = random_next(random);
    const pthread_t completer = stress_start_thread(run_completer, &completer_random);
    for (uint32_t i = 0; i < OUTSIDERS; i++) {
        outsiders[i] = (struct outsider){.random = random_next(random), .number = 1 + i};
    }
    for (uint32_t i = 1; i < OUTSIDERS; i++) {
        threads[i] = stress_start_thread(run_outsider, &outsiders[i]);
    }
    while (stress_goes_on(&stress, current.ops)) {
        outsider_act(&outsiders[0]);
    }
    if (current.is_graceful) {
        end_outsiders(threads);
        stop_runtime(random);
    } else {
        stop_runtime(random);
        end_outsiders(threads);
    }
    end_completer(completer);
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
    expect_equal(STRESS_BROKEN, "late completions", sum.late_completions, total(LATE));
    check_pools(&current.runtime->sched);
}

static void end_round(struct counting_allocator *memory)
{
    const int error = skua_runtime_destroy(current.runtime);
    expect(error == 0, "destroy", error);
    if (!counting_allocator_is_clean(memory)) {
        stress_fault(&stress, STRESS_BROKEN, "memory is left after destroy");
    }
    for (uint32_t i = 0; i < PARCELS; i++) {
        stress_parcel_expect_free(&stress, &parcels[i].parcel);
    }
}

static void describe(void)
{
    skua_stats sum;
    (void)skua_stats_read(current.runtime, &sum, NULL, 0);
    (void)fprintf(stderr, "%" PRIu32 " workers, %s round, %" PRIu64 " alive, %" PRIu64 " steps\n",
                  current.config.worker_count, current.is_graceful ? "graceful" : "abrupt",
                  sum.live, sum.steps);
}

int main(int argc, char **argv)
{
    stress_begin(&stress, argc, argv, DEFAULT_OPS);
    mutex_init(&current.later_lock);
    uint64_t random = stress_stream(&stress, 0);
    while (stress_goes_on(&stress, stress.ops)) {
        struct counting_allocator memory;
        counting_allocator_init(&memory);
        begin_round(&random, &memory);
        stress_describe_with(&stress, describe);
        run_threads(&random);
        check_round();
        stress_describe_with(&stress, NULL);
        end_round(&memory);
    }
    mutex_deinit(&current.later_lock);
    return stress_end(&stress);
}
