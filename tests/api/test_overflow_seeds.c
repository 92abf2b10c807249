/* SPDX-License-Identifier: MIT */
/* Whatever the policy: a message that was accepted is delivered or reported as a dead letter, once;
 * one that was refused, or whose sender was told an error, is neither. In many small simulations
 * with delays, kills and without memory; the receiver is a step, or a task that picks. */
#include <skua/sim.h>
#include <skua/task.h>
#include <string.h>

#include "effort.h"
#include "letters.h"

#define SEEDS       EFFORT(10000)
#define HOARD_EVERY 50                /* seeds: one has no memory left */
#define HOARDED     (SKUA_SECOND / 2) /* when the hoarder has all that there is */
#define SENDERS     2
#define MESSAGES    16 /* of each sender */
#define BURST       6
#define MOMENT      SKUA_MICROSECOND
#define KINDS       2 /* of payloads, which a task tells apart */

struct entry {
    bool waits;     /* by skua_yield_send */
    bool has_begun; /* it was accepted, or the yield was */
    unsigned ends;  /* completions of the yield */
    int error;      /* of the send, the yield or its completion */
    unsigned delivered;
    unsigned dead;
    unsigned dropped;
};

static struct entry entries[SENDERS][MESSAGES];
static unsigned new_or_old;
static struct {
    unsigned delivered;
    unsigned dead;
    unsigned refused;
    unsigned admitted;
    unsigned given_up;
    unsigned without_memory;
    unsigned abandoned; /* their senders were killed meanwhile */
    unsigned faults[SKUA_SIM_PROCESS_KILL + 1];
} total;

static void drop_entry(void *data, size_t size)
{
    (void)size;
    ((struct entry *)data)->dropped++;
}

/* ---- the receiver ---- */

struct reader {
    struct entry *last[SENDERS][KINDS];
    unsigned steps_left;
};

static void read_message(struct reader *reader, const skua_event *event)
{
    struct entry *entry = event->payload.as.owned.data;
    entry->delivered++;
    const size_t sender = entry >= entries[1];
    struct entry **last = &reader->last[sender][event->payload.type];
    assert_true(*last == NULL || entry > *last); /* in order */
    *last = entry;
}

static int reader_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)input;
    (void)count;
    struct reader *reader = self;
    reader->steps_left = (unsigned)(skua_random(ctx) % 40);
    return 0;
}

static int reader_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct reader *reader = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE) {
            read_message(reader, &events[i]);
        }
    }
    return reader->steps_left-- == 1 ? skua_done(ctx, skua_nothing()) : 0;
}

static int reader_main(void *self, skua_context *ctx)
{
    struct reader *reader = self;
    int error = 0;
    while (error == 0 || error == SKUA_E_TIMEOUT) {
        skua_event *event;
        const uint64_t choice = skua_random(ctx);
        error = choice % 3 == 0   ? skua_task_sleep(ctx, choice / 8 % 4 * MOMENT)
                : choice % 3 == 1 ? skua_task_receive_type(ctx, (uint32_t)(choice / 8 % KINDS),
                                                           &event, 3 * MOMENT)
                                  : skua_task_receive(ctx, &event, SKUA_FOREVER);
        if (error == 0 && choice % 3 != 0 && event->type == SKUA_EVENT_MESSAGE) {
            read_message(reader, event);
        }
        if (reader->steps_left-- == 1) {
            return 0;
        }
    }
    return error;
}

/* ---- the senders ---- */

struct sender {
    struct entry *entries;
    skua_pid to;
    uint64_t made;
};

#define TAG_SLEEP UINT64_C(1000)

static int sender_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct sender *sender = self;
    (void)ctx;
    assert_int_equal(count, 2);
    sender->entries = input[0].as.owned.data;
    sender->to = skua_payload_to_pid(&input[1]);
    return 0;
}

static void send_one(struct sender *sender, skua_context *ctx, bool waits, uint64_t choice)
{
    const uint64_t tag = sender->made++;
    struct entry *entry = &sender->entries[tag];
    const skua_payload payload =
        skua_payload_pointer((uint32_t)(choice % KINDS), entry, drop_entry);
    static const uint64_t timeouts[] = {0, MOMENT, 5 * MOMENT, SKUA_FOREVER};
    entry->waits = waits;
    entry->error = waits ? skua_yield_send(ctx, tag, sender->to, payload, timeouts[choice / 2 % 4])
                         : skua_send(ctx, sender->to, payload);
    entry->has_begun = entry->error == 0;
    if (waits && choice / 8 % 8 == 0) {
        (void)!skua_yield_cancel(ctx, tag);
    }
}

static int sender_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct sender *sender = self;
    bool wakes = false;
    for (size_t i = 0; i < count; i++) {
        wakes = wakes || events[i].type == SKUA_EVENT_START || events[i].tag == TAG_SLEEP;
        if (events[i].type == SKUA_EVENT_COMPLETION && events[i].tag < MESSAGES) {
            sender->entries[events[i].tag].ends++;
            sender->entries[events[i].tag].error = events[i].error;
        }
    }
    const bool waits =
        skua_random(ctx) % 2 == 0; /* those of one step in one way: sends act first */
    for (uint64_t left = 1 + skua_random(ctx) % BURST; wakes && left > 0 && sender->made < MESSAGES;
         left--) {
        send_one(sender, ctx, waits, skua_random(ctx));
    }
    return wakes && sender->made < MESSAGES
               ? skua_yield_sleep(ctx, TAG_SLEEP, skua_random(ctx) % 4 * MOMENT)
               : 0;
}

static const skua_process_type sender_type = {.name = "sender",
                                              .state_size = sizeof(struct sender),
                                              .init = sender_init,
                                              .step = sender_step};

/* ---- the hoarder ---- */

/* Messages lie in nodes of a pool that takes its memory in large pieces: that there is none shows
 * only when all nodes are in use. The hoarder opens timers until then; the first are over soon. */
static int hoarder_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    enum { TAG_SHORT, TAG_LONG, PER_STEP = 4 };
    uint64_t *opened = self;
    int error = 0;
    if (events[count - 1].type == SKUA_EVENT_COMPLETION) {
        return events[count - 1].tag == TAG_LONG ? skua_done(ctx, skua_nothing()) : 0;
    }
    for (int i = 0; i < PER_STEP && error == 0; i++) {
        error = *opened < 32 ? skua_yield_sleep(ctx, TAG_SHORT, HOARDED + ++*opened * MOMENT)
                             : skua_yield_sleep(ctx, TAG_LONG, SKUA_SECOND);
    }
    return error == 0 ? skua_continue(ctx) : 0;
}

static const skua_process_type hoarder_type = {
    .name = "hoarder", .state_size = sizeof(uint64_t), .step = hoarder_step};

/* ---- the books ---- */

static void note_dead(void *arg, const skua_dead_letter *letter)
{
    (void)arg;
    ((struct entry *)letter->payload->as.owned.data)->dead++;
    new_or_old += letter->cause != SKUA_DEAD_UNREAD;
}

static void check_entry(const struct entry *entry)
{
    const unsigned outcome = entry->delivered + entry->dead;
    const bool is_open = entry->waits && entry->has_begun && entry->ends == 0;
    assert_int_equal(entry->dropped, 1);
    assert_true(entry->ends <= 1);
    if (is_open) {
        assert_true(outcome <= 1); /* its sender has ended */
    } else {
        assert_int_equal(outcome, entry->error == 0 ? 1 : 0);
    }
    total.delivered += entry->delivered;
    total.dead += entry->dead;
    total.refused += !entry->waits && entry->error == SKUA_E_MAILBOX_FULL;
    total.admitted += entry->waits && entry->ends == 1 && entry->error == 0;
    total.given_up += entry->waits && entry->ends == 1 && entry->error != 0;
    total.without_memory += entry->error == SKUA_E_NO_MEMORY;
    total.abandoned += is_open;
}

static void count_fault(void *arg, const skua_sim_record *record)
{
    (void)arg;
    if (record->type == SKUA_SIM_FAULT) {
        assert_in_range(record->what, 1, SKUA_SIM_PROCESS_KILL);
        total.faults[record->what]++;
    }
}

static void start_sender(struct entry *of, skua_pid to)
{
    skua_payload input[] = {skua_payload_pointer(0, of, NULL), skua_payload_pid(0, to)};
    const skua_spawn_options options = {.type = &sender_type, .input = input, .input_count = 2};
    const int error = skua_process_submit_with(world_runtime(), &options, NULL);
    assert_int_equal(error, 0);
}

static void run_seed(const skua_process_type *reader_type, uint64_t seed)
{
    const bool hoards = seed % HOARD_EVERY == 0;
    skua_pid to;
    const skua_sim_config sim = {
        .faults = {.message_delay = (uint32_t)(seed % 3) * 100000,
                   .no_memory = hoards ? 1000000 : 0,
                   .process_kill = (uint32_t)(seed % 4) * 3000,
                   .spurious_wake = (uint32_t)(seed % 2) * 20000,
                   .delay_max_ns = 10 * MOMENT},
        .step_ns = 100,
        .on_record = count_fault,
    };
    memset(entries, 0, sizeof entries);
    new_or_old = 0;
    world_open_with((skua_runtime_config){
        .seed = seed, .process_limit = 8, .on_dead_letter = note_dead, .sim = &sim});
    assert_int_equal(skua_process_submit(world_runtime(), reader_type, skua_nothing(), &to), 0);
    if (hoards) {
        assert_int_equal(skua_process_submit(world_runtime(), &hoarder_type, skua_nothing(), NULL),
                         0);
        assert_true(skua_sim_run(world_runtime(), skua_sim_now(world_runtime()) + HOARDED) >= 0);
    }
    for (size_t i = 0; i < SENDERS; i++) {
        start_sender(entries[i], to);
    }
    world_settle();
    world_close();
    for (size_t i = 0; i < SENDERS * MESSAGES; i++) {
        const struct entry *entry = &entries[i / MESSAGES][i % MESSAGES];
        if (entry->has_begun || entry->error != 0) {
            check_entry(entry);
        }
    }
}

static void run_policy(enum skua_overflow policy)
{
    static const uint32_t met[] = {SKUA_SIM_MESSAGE_DELAY, SKUA_SIM_NO_MEMORY,
                                   SKUA_SIM_SPURIOUS_WAKE, SKUA_SIM_PROCESS_KILL};
    skua_process_type step = {.name = "reader",
                              .state_size = sizeof(struct reader),
                              .init = reader_init,
                              .step = reader_step,
                              .overflow = policy};
    memset(&total, 0, sizeof total);
    FOR_ROUNDS (seed, SEEDS) {
        skua_process_type type = step;
        type.mailbox_limit = (uint32_t)(1 + seed % 4);
        if (seed % 3 == 0) {
            type.step = NULL;
            type.main = reader_main;
            type.stack_size = (size_t)256 << 10;
        }
        run_seed(&type, seed);
        assert_true(new_or_old == 0 || policy == SKUA_OVERFLOW_DROP_NEW ||
                    policy == SKUA_OVERFLOW_DROP_OLD);
    }
    /* Every way a message can go was gone. */
    assert_true(total.delivered > SEEDS && total.dead > SEEDS / 10);
    assert_true(total.admitted > SEEDS && total.given_up > SEEDS / 2);
    assert_true(total.without_memory > SEEDS / HOARD_EVERY && total.abandoned > SEEDS / 100);
    for (size_t i = 0; i < COUNT_OF(met); i++) {
        assert_true(total.faults[met[i]] > SEEDS / HOARD_EVERY);
    }
    assert_true((total.refused > 0) ==
                (policy == SKUA_OVERFLOW_REFUSE || policy == SKUA_OVERFLOW_END));
}

TEST(nothing_is_lost_when_full_mailboxes_refuse)
{
    run_policy(SKUA_OVERFLOW_REFUSE);
}

TEST(nothing_is_lost_when_new_messages_are_dropped)
{
    run_policy(SKUA_OVERFLOW_DROP_NEW);
}

TEST(nothing_is_lost_when_old_messages_are_dropped)
{
    run_policy(SKUA_OVERFLOW_DROP_OLD);
}

TEST(nothing_is_lost_when_a_full_mailbox_ends_the_process)
{
    run_policy(SKUA_OVERFLOW_END);
}
