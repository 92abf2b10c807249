/* SPDX-License-Identifier: MIT */
/* Stress of the whole runtime, through its public interface. Processes of random programs (they
 * send, spawn, yield, go on, wait, finish, fail) and threads from outside (they submit, send,
 * cancel, terminate, wait, inspect) work on each other in rounds (stress_round.h). Besides what
 * holds in every round:
 *  - Messages from one sender to one process come in order, from whom they say.
 *  - Each yield completes once; what comes later or twice is refused and counted.
 *  - Nobody sleeps through anything: players, whom nobody disturbs, always end their game. */
#include <inttypes.h>
#include <sched.h>
#include <skua/skua.h>

#include "count_of.h"
#include "players.h"
#include "runtime/runtime.h" /* to tell the slots of PIDs apart */
#include "stress_round.h"

#define PROCESS_LIMIT_MAX 2000
#define LINGER_MAX        2000
#define CROWD             300
#define HANG_NS           UINT64_C(15000000000) /* less than the watchdog's */

/* ---- letters: what messages carry ---- */

/* The rest makes it too long to lie inside a payload. */
struct long_letter {
    struct stress_letter letter;
    unsigned char rest[40];
};

static uint64_t letter_check(const struct stress_letter *letter)
{
    return random_mix(letter->sender ^ random_mix(letter->serial));
}

static skua_payload copy(const void *data, size_t size)
{
    skua_payload payload;
    const int error = skua_payload_copy(current.runtime, PAYLOAD_LETTER, data, size, &payload);
    stress_expect(error == 0, "copying a payload", error);
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
    struct stress_load *load = way == 1 ? stress_load_take(random) : NULL;
    if (load == NULL) {
        return copy(&text.letter, sizeof text.letter);
    }
    load->letter = text.letter;
    return skua_payload_pointer(PAYLOAD_PARCEL_LETTER, load, stress_load_drop);
}

#define READERS_MAX 16

/* Sends one letter, which they share, to several processes. */
static void send_to_many(skua_context *ctx, uint64_t *random)
{
    struct long_letter text = {.letter = {0}}; /* its order is not checked */
    skua_payload first;
    text.letter.check = letter_check(&text.letter);
    int error = skua_payload_shared(current.runtime, PAYLOAD_LETTER, &text, sizeof text, &first);
    stress_expect(error == 0, "sharing a payload", error);
    for (uint32_t i = random_below(random, READERS_MAX); i > 0; i--) {
        skua_payload another;
        error = skua_payload_ref(&first, &another);
        stress_expect(error == 0, "one more owner of a payload", error);
        stress_sent(ctx != NULL
                        ? skua_send(ctx, stress_random_pid(random), another)
                        : skua_process_send(current.runtime, stress_random_pid(random), another));
    }
    skua_payload_drop(&first);
}

/* Fills the inputs of a new process; the first one is a token. */
static size_t make_inputs(uint64_t *random, uint64_t token, skua_payload inputs[3])
{
    const size_t inputs_used = 1 + random_below(random, 3);
    for (size_t i = 0; i < inputs_used; i++) {
        inputs[i] = stress_make_token(random, token + i);
    }
    return inputs_used;
}

/* ---- commands ---- */

enum command { DONE_NOW, FAILS, DONE_LATER, DONE_BEFORE, NEVER_DONE, UNKNOWN, COMMANDS };

/* The number behind each; one is beyond the table of the fast ones. */
static const uint32_t command_ids[COMMANDS] = {1, 2, 300, 4, 5, 6};

static int handle(void *arg, skua_command *command, skua_payload *result)
{
    const uint32_t kind = *(const uint32_t *)arg;
    const uint64_t token = stress_read_token(&command->input);
    uint64_t random = random_mix(token);
    stress_expect(command->runtime == current.runtime && command->id == command_ids[kind],
                  "command", kind);
    if (once_in(&random, 8)) { /* handlers may use the runtime too */
        const skua_payload letter = make_letter(&random, 0, 0);
        stress_sent(skua_process_send(current.runtime, stress_random_pid(&random), letter));
    }
    if (kind == FAILS) {
        return STRESS_ERROR_HANDLER;
    }
    const struct stress_job job = {.completion = command->completion, .token = token};
    if (kind == NEVER_DONE || (kind == DONE_LATER && stress_defer(&job))) {
        return SKUA_PENDING;
    }
    if (kind == DONE_BEFORE) {
        const int error = stress_complete(command->completion, skua_payload_take(&command->input));
        stress_expect(error == 0, "completing inside the handler", error);
        return SKUA_PENDING;
    }
    *result = stress_make_token(&random, token);
    return 0;
}

static void register_commands(uint64_t *random)
{
    static const uint32_t kinds[] = {DONE_NOW, FAILS, DONE_LATER, DONE_BEFORE, NEVER_DONE};
    (void)random;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        stress_register(command_ids[i], handle, &kinds[i]);
    }
}

/* ---- wanderers: processes with a random program ---- */

#define YIELDS_MAX 32

/* The last letter of one sender. */
struct correspondent {
    uint64_t sender;
    uint64_t serial;
};

struct wanderer {
    struct stress_process process;
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
     .close = wanderer_close,
     .cancel = SKUA_CANCEL_EVENT},
    {.name = "large wanderer",
     .state_size = WANDERER_SIZE(LARGE_CORRESPONDENTS),
     .methods = wanderer_methods,
     .init = wanderer_init,
     .step = wanderer_step,
     .close = wanderer_close,
     .mailbox_limit = 7},
};

static void wanderer_send(struct wanderer *wanderer, skua_context *ctx, uint64_t *random)
{
    const uint64_t self = skua_self(ctx).bits;
    const skua_payload letter = make_letter(random, self, ++wanderer->serial);
    stress_sent(skua_send(ctx, stress_random_pid(random), letter));
}

static int wanderer_spawn(skua_context *ctx, uint64_t *random)
{
    const uint32_t kind = random_below(random, 2);
    skua_payload inputs[3];
    const size_t inputs_used = make_inputs(random, random_next(random), inputs);
    skua_pid pid;
    const int error = skua_spawn_with(ctx,
                                      &(skua_spawn_options){.type = &wanderers[kind],
                                                            .method = wanderer_methods[kind],
                                                            .input = inputs,
                                                            .input_count = inputs_used},
                                      &pid);
    stress_spawned(random, error, &pid);
    return error;
}

/* More than a deque holds. */
static void wanderer_spawn_crowd(skua_context *ctx, uint64_t *random)
{
    int error = 0;
    for (uint32_t i = 0; i < CROWD && (error == 0 || error == STRESS_ERROR_INIT); i++) {
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
 * is not a worker even longer than all of it. */
static void linger(uint64_t *random)
{
    if (load_relaxed(&current.is_stopping) != 0) { /* a hint */
        give_way(random_below(random, stress_is_outsider() ? LINGER_MAX : LINGER_MAX / 20));
    }
    stress_pause(random, 16);
}

static int wanderer_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct wanderer *wanderer = self;
    uint64_t random = skua_random(ctx);
    const bool is_small = skua_method(ctx) == wanderer_methods[0];
    stress_process_begin(&wanderer->process, 1 + random_below(&random, 40));
    wanderer->correspondent_count = is_small ? SMALL_CORRESPONDENTS : LARGE_CORRESPONDENTS;
    for (size_t i = 1; i < input_count; i++) {
        skua_payload taken = skua_payload_take(&input[i]);
        stress_expect(stress_read_token(&taken) == stress_read_token(&input[0]) + i, "input",
                      (int64_t)i);
        skua_payload_drop(&taken);
    }
    if (once_in(&random, 8)) {
        wanderer_send(wanderer, ctx, &random);
    }
    linger(&random);
    return once_in(&random, 32) ? STRESS_ERROR_INIT : 0;
}

static void wanderer_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)ctx;
    (void)exit;
    struct wanderer *wanderer = self;
    stress_process_end(&wanderer->process);
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

static void wanderer_yield(struct wanderer *wanderer, skua_context *ctx, uint64_t *random)
{
    const enum command command = random_below(random, COMMANDS);
    const uint64_t tag = make_tag(wanderer->yielded++, command);
    if ((wanderer->outstanding & tag_bit(tag)) != 0) {
        return;
    }
    const skua_payload token = stress_make_token(random, stress_yield_token(skua_self(ctx), tag));
    const int error = skua_yield(ctx, tag, command_ids[command], token, SKUA_FOREVER);
    stress_expect(error == 0, "yield", error);
    wanderer->outstanding |= tag_bit(tag);
    if (command == NEVER_DONE) {
        wanderer->never |= tag_bit(tag);
    }
    stress_operation();
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
        const int error = command == FAILS ? STRESS_ERROR_HANDLER : SKUA_E_UNKNOWN_COMMAND;
        stress_expect(event->error == error, "error of a completion", event->error);
        return;
    }
    const bool is_right =
        stress_read_token(&event->payload) == stress_yield_token(skua_self(ctx), event->tag);
    stress_expect(event->error == 0 && is_right, "result of a completion", event->error);
}

static const struct stress_letter *read_letter(const skua_payload *payload)
{
    if (payload->type == PAYLOAD_PARCEL_LETTER) {
        const struct stress_load *load = skua_payload_data(payload);
        return &load->letter;
    }
    return skua_payload_data(payload);
}

static void on_letter(struct wanderer *wanderer, const skua_event *event)
{
    const struct stress_letter *letter = read_letter(&event->payload);
    if (letter->check != letter_check(letter)) {
        stress_fault(&stress, STRESS_CORRUPT, "a letter from %" PRIx64, letter->sender);
    }
    const bool is_from_process = letter->sender > STRESS_OUTSIDERS;
    stress_expect(event->from.bits == (is_from_process ? letter->sender : 0) || letter->sender == 0,
                  "sender of a message", (int64_t)event->from.bits);
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

static void on_event(struct wanderer *wanderer, skua_context *ctx, skua_event *event,
                     uint64_t *random)
{
    stress_operation();
    switch ((enum skua_event_type)event->type) {
    case SKUA_EVENT_MESSAGE:
        on_letter(wanderer, event);
        break;
    case SKUA_EVENT_COMPLETION:
        on_completion(wanderer, ctx, event);
        break;
    case SKUA_EVENT_CANCEL:
        stress_process_cancelled(&wanderer->process, event, random);
        break;
    case SKUA_EVENT_TICK:
    case SKUA_EVENT_CALL:
    case SKUA_EVENT_ABANDON:
    case SKUA_EVENT_EXIT:
    case SKUA_EVENT_GROUP:
    case SKUA_EVENT_CHILD:
    case SKUA_EVENT_BECOME:
        stress_fault(&stress, STRESS_BROKEN, "an event that nobody asked for");
        break;
    case SKUA_EVENT_START:
    case SKUA_EVENT_CONTINUE:
        break;
    }
    if (once_in(random, 8)) {
        skua_payload taken = skua_payload_take(&event->payload);
        skua_payload_drop(&taken);
    }
}

static void wanderer_act(struct wanderer *wanderer, skua_context *ctx, uint64_t *random)
{
    switch (random_below(random, 16)) {
    case 0:
    case 1:
        if (once_in(random, 256)) {
            wanderer_spawn_crowd(ctx, random);
        } else {
            (void)wanderer_spawn(ctx, random);
        }
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        wanderer_yield(wanderer, ctx, random);
        break;
    case 6:
        if (once_in(random, 8)) {
            (void)skua_terminate(ctx, stress_random_pid(random));
        }
        break;
    case 7:
        send_to_many(ctx, random);
        break;
    default:
        wanderer_send(wanderer, ctx, random);
        break;
    }
}

/* Waits for what will come, then ends. */
static int wanderer_finish(struct wanderer *wanderer, skua_context *ctx, uint64_t *random)
{
    if ((wanderer->outstanding & ~wanderer->never) != 0) {
        return 0;
    }
    (void)skua_done(ctx, stress_make_token(random, wanderer->serial));
    return once_in(random, 8) ? STRESS_ERROR_STEP : 0;
}

static int wanderer_step(void *self, skua_context *ctx, skua_event *events, size_t event_count)
{
    struct wanderer *wanderer = self;
    uint64_t random = skua_random(ctx);
    stress_process_check(&wanderer->process);
    stress_expect(event_count <= SKUA_EVENTS_PER_STEP, "events in one step", (int64_t)event_count);
    for (size_t i = 0; i < event_count; i++) {
        on_event(wanderer, ctx, &events[i], &random);
    }
    if (wanderer->process.is_finishing || wanderer->process.steps_left == 0) {
        wanderer->process.is_finishing = true;
        return wanderer_finish(wanderer, ctx, &random);
    }
    wanderer->process.steps_left--;
    for (uint32_t acts = random_below(&random, 4); acts > 0; acts--) {
        wanderer_act(wanderer, ctx, &random);
    }
    stress_pause(&random, 64);
    if (once_in(&random, 4)) {
        (void)skua_continue(ctx);
    }
    stress_process_check(&wanderer->process); /* nobody else has run it meanwhile */
    return once_in(&random, 256) ? STRESS_ERROR_STEP : 0;
}

/* ---- outsiders: threads that are not workers ---- */

static void submit_wanderer(uint64_t *random)
{
    const uint32_t kind = random_below(random, 2);
    skua_payload inputs[3];
    const size_t inputs_used = make_inputs(random, random_next(random), inputs);
    skua_pid pid;
    const int error =
        skua_process_submit_with(current.runtime,
                                 &(skua_spawn_options){.type = &wanderers[kind],
                                                       .method = wanderer_methods[kind],
                                                       .input = inputs,
                                                       .input_count = inputs_used},
                                 &pid);
    stress_spawned(random, error, &pid);
}

static void send_letters(struct stress_outsider *outsider)
{
    const skua_pid to = stress_random_pid(&outsider->random);
    for (uint32_t i = random_below(&outsider->random, 16); i > 0; i--) {
        const skua_payload letter =
            make_letter(&outsider->random, outsider->number, ++outsider->serial);
        stress_sent(skua_process_send(current.runtime, to, letter));
    }
}

static void inspect_some(uint64_t *random)
{
    const skua_pid pid = stress_random_pid(random);
    skua_process_snapshot info;
    const int error = skua_process_info(current.runtime, pid, &info);
    stress_expect(error == 0 || error == SKUA_E_NO_PROCESS, "info", error);
    if (error == 0) {
        stress_expect(skua_pid_equal(info.pid, pid), "PID of an info", (int64_t)info.pid.bits);
        stress_expect(info.state >= SKUA_PROCESS_READY && info.state <= SKUA_PROCESS_IDLE, "state",
                      info.state);
        stress_expect(info.type_name == wanderers[0].name || info.type_name == wanderers[1].name,
                      "type", 0);
        /* Senders that are about to be refused count for a moment. */
        stress_expect(info.mailbox_length <= current.config.mailbox_limit + STRESS_THREADS_MAX,
                      "mailbox", info.mailbox_length);
    }
    stress_operation();
}

static void outsider_act(struct stress_outsider *outsider)
{
    uint64_t *random = &outsider->random;
    switch (random_below(random, 16)) {
    case 0:
        watch_game(random, HANG_NS);
        break;
    case 1:
        run_echo(random);
        break;
    case 2:
        (void)stress_wait(stress_random_pid(random), random_below(random, 50000));
        break;
    case 3:
        inspect_some(random);
        stress_read_statistics();
        break;
    case 4:
        stress_end_some(random, once_in(random, 4));
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        submit_wanderer(random);
        break;
    case 9:
        send_to_many(NULL, random);
        break;
    default:
        send_letters(outsider);
        break;
    }
    stress_pause(random, 4);
}

/* ---- rounds ---- */

/* For each slot: the generation that ended last. */
static atomic_u32 exited[PROCESS_LIMIT_MAX + 1];

static void on_exit_of_process(void *arg, skua_exit *end)
{
    (void)arg;
    stress_tally(TALLY_EXITS);
    atomic_u32 *last = &exited[pid_slot(end->pid)];
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

static void configure(uint64_t *random, skua_runtime_config *config)
{
    static const uint32_t worker_counts[] = {1, 2, 2, 3, 4, 8};
    config->worker_count = worker_counts[random_below(random, COUNT_OF(worker_counts))];
    config->process_limit = 50 + random_below(random, PROCESS_LIMIT_MAX - 50);
    config->mailbox_limit = 8 + random_below(random, 200);
    config->on_exit = on_exit_of_process;
    for (size_t i = 0; i < COUNT_OF(exited); i++) {
        store_relaxed(&exited[i], 0); /* no thread yet */
    }
}

static void stop(uint64_t *random)
{
    give_way(random_below(random, LINGER_MAX / 20));
    stress_stop(once_in(random, 2) ? 0 : random_below(random, 2000000));
}

static void check(const skua_stats *sum)
{
    stress_expect_equal(STRESS_BROKEN, "late completions", sum->late_completions,
                        stress_total(TALLY_LATE));
}

int main(int argc, char **argv)
{
    static const struct stress_plan plan = {
        .ops = 12000000,
        .round_ops_max = 200000,
        .graceful = 2,
        .known_pids = 256,
        .hang_ns = HANG_NS,
        .configure = configure,
        .prepare = register_commands,
        .act = outsider_act,
        .stop = stop,
        .check = check,
        .tally_names = {[TALLY_LATE] = "late completions"},
    };
    return stress_rounds(argc, argv, &plan);
}
