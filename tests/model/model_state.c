/* SPDX-License-Identifier: MIT */
/* process/state.h and mailbox.h: the word of a process between senders, requests, one or two
 * workers and the next process of the same slot. The workers' loop is that of sched/step.c, reduced
 * to the operations on the word: one event to a turn, two turns at most. A message is sent as
 * sched/deliver.c does it: to a process at rest without a reservation, otherwise in a place that is
 * reserved. Other events have no place. The run queue is a counter.
 *
 * INV-3:  a Ready process has exactly one token: whoever makes it Ready enqueues it, nobody else.
 * INV-4:  at most one worker runs a process.
 * INV-5:  what is admitted is delivered exactly once, or dropped once when the process ends;
 *         nothing is left in the list of a process that rests.
 * INV-6:  the events of one sender arrive in the order they were sent.
 * INV-7:  what is sent to one process of a slot never reaches a later one.
 * INV-21: a mailbox never holds more than its limit and one that has woken the process; in the
 *         end no place is taken. */
#define TOKENS_MARK EXPLORE_OWN

#include <string.h>

#include "explore.h"
#include "one_token.h"
#include "rig.h"
#include "tables.h"

#define LETTERS_MAX 4 /* of one sender */
#define EVENTS_MAX  8 /* nodes 1 to 8, which the rig has made */
#define TURNS_MAX   2
#define LIMIT       1000 /* of the mailbox; fewer in some cases */

enum fate { UNSENT, OFFERED, REFUSED, DELIVERED, DROPPED };

struct sent {
    uint32_t sender;
    uint32_t generation;
    uint32_t node;
    enum fate fate;
    bool is_message;
};

static struct process *process;
static atomic_u32 free_slots;            /* the slot, while nobody uses it */
EXPLORE_OWN static uint32_t holders;     /* workers that run it */
EXPLORE_OWN static uint32_t incarnation; /* the generation that is running */
EXPLORE_OWN static bool ends_at_once;    /* the first event of a process is its last */
static bool watch_seen;
static bool watch_admitted;
static bool kill_admitted;
EXPLORE_OWN static uint32_t cancels_admitted;
static uint32_t cancels_seen;
EXPLORE_OWN static uint32_t ended;
EXPLORE_OWN static struct sent sent[EVENTS_MAX]; /* in the order of each sender; by node, from 1 */

static struct event_node *node_of(const struct sent *event)
{
    return event_at(&rig.events, event->node);
}

static void do_duty(enum state_duty duty)
{
    if (duty == STATE_ENQUEUE) {
        explore_note("made it Ready");
        enqueue();
    }
}

/* ---- the other threads ---- */

/* What a sender (0 or 1) sends. */
struct letters {
    uint32_t sender;
    uint32_t generation;
    uint32_t count;
    bool are_messages;
};

static enum state_duty push(const struct sent *event)
{
    return state_push_any(process, event->generation, event->node, &node_of(event)->next);
}

/* STATE_CLOSED also if the mailbox is full. */
static enum state_duty send_message(const struct sent *event)
{
    if (state_wake_any(process, event->generation, event->node, &node_of(event)->next)) {
        return STATE_ENQUEUE;
    }
    if (!mailbox_reserve_any(process)) {
        return STATE_CLOSED;
    }
    const enum state_duty duty = push(event);
    if (duty == STATE_CLOSED) {
        mailbox_unreserve_any(process);
    }
    return duty;
}

static void run_sender(const void *arg)
{
    const struct letters *letters = arg;
    for (uint32_t i = 0; i < letters->count; i++) {
        const uint32_t number = letters->sender * LETTERS_MAX + i;
        struct sent *event = &sent[number];
        *event = (struct sent){letters->sender, letters->generation, number + 1, OFFERED,
                               letters->are_messages};
        node_of(event)->as.event.tag = event->node;
        explore_note("sends %u", (unsigned)event->node);
        const enum state_duty duty = event->is_message ? send_message(event) : push(event);
        if (duty == STATE_CLOSED) {
            explore_note("%u was refused", (unsigned)event->node);
            EXPLORE_CHECK(event->fate == OFFERED, "INV-5: what was refused is not delivered");
            event->fate = REFUSED;
        }
        do_duty(duty);
    }
}

static void run_killer(const void *arg)
{
    (void)arg;
    const enum state_duty duty = state_request_any(process, 1, STATE_KILL);
    kill_admitted |= duty != STATE_CLOSED;
    do_duty(duty);
}

static void run_canceller(const void *arg)
{
    (void)arg;
    const enum state_duty duty = state_request_any(process, 1, STATE_CANCEL);
    cancels_admitted += duty != STATE_CLOSED;
    do_duty(duty);
}

static void run_watcher(const void *arg)
{
    (void)arg;
    const enum state_duty duty = state_request_any(process, 1, STATE_WATCHED);
    EXPLORE_CHECK(duty != STATE_ENQUEUE, "a watcher wakes nobody");
    watch_admitted = duty == STATE_DONE;
}

/* Takes the slot when it is free and makes the next process in it. The first time it gives up
 * before the process is visible, as a failing init does. */
static void run_spawner(const void *arg)
{
    (void)arg;
    explore_take(&free_slots);
    const uint32_t first = state_prepare_owner(process);
    EXPLORE_CHECK(first == 2, "INV-7: every process has a generation of its own");
    EXPLORE_CHECK(state_free_owner(process), "generations are left");
    const uint32_t generation = state_prepare_owner(process);
    EXPLORE_CHECK(generation == 3, "INV-7: every process has a generation of its own");
    process->backlog = OBJECT_NONE;
    state_publish_owner(process, generation);
    enqueue();
}

/* ---- the worker ---- */

static void deliver(struct sent *event)
{
    explore_note("delivers %u", (unsigned)event->node);
    EXPLORE_CHECK(event->fate == OFFERED, "INV-5: delivered once");
    EXPLORE_CHECK(event->generation == incarnation, "INV-7: to the process it was sent to");
    for (uint32_t i = event->node; i < EVENTS_MAX; i++) {
        EXPLORE_CHECK(sent[i].sender != event->sender || sent[i].fate != DELIVERED,
                      "INV-6: in the order of its sender");
    }
    event->fate = DELIVERED;
}

static struct sent *shift_backlog(void)
{
    const struct event_node *node = event_at(&rig.events, process->backlog);
    EXPLORE_CHECK(node->as.event.tag == process->backlog, "the content of a node is its sender's");
    process->backlog = node->next;
    struct sent *event = &sent[node->as.event.tag - 1];
    if (event->is_message) {
        mailbox_consume_owner(process, 1);
    }
    return event;
}

/* A sender that reserved the last place before the process went to rest may push when another has
 * woken it without a reservation: so one more than the limit. */
static void check_limit(void)
{
    uint32_t messages = 0;
    for (uint32_t i = process->backlog; i != OBJECT_NONE; i = event_at(&rig.events, i)->next) {
        messages += sent[i - 1].is_message;
    }
    EXPLORE_CHECK(messages <= load_relaxed(&process->mailbox_limit) + 1,
                  "INV-21: the limit is kept");
}

static void take_in(uint64_t news)
{
    const uint32_t tag = event_list_tag(news);
    const uint32_t oldest = event_reverse(&rig.events, event_list_first(news));
    if (process->backlog == OBJECT_NONE) {
        process->backlog = oldest;
    } else if (oldest != OBJECT_NONE) {
        struct event_node *first = event_at(&rig.events, process->backlog);
        EXPLORE_CHECK(first->next == OBJECT_NONE, "INV-6: what is older comes first");
        first->next = oldest;
    }
    check_limit();
    watch_seen |= (tag & STATE_WATCHED) != 0;
    cancels_seen += (tag & STATE_CANCEL) != 0;
}

static void drop_backlog(void)
{
    while (process->backlog != OBJECT_NONE) {
        struct sent *event = shift_backlog();
        EXPLORE_CHECK(event->fate == OFFERED, "INV-5: dropped once");
        EXPLORE_CHECK(event->generation == incarnation, "INV-7: by the process it was sent to");
        event->fate = DROPPED;
    }
}

static void end_process(void)
{
    explore_note("ends the process");
    drop_backlog();
    take_in(state_finish_owner(process));
    drop_backlog();
    holders--;
    ended++;
    EXPLORE_CHECK(state_free_owner(process), "generations are left");
    (void)fetch_add_seq_cst(&free_slots, 1);
}

/* One turn with what was brought; false if the process needs no more. */
static bool turn(uint64_t news)
{
    take_in(news);
    if ((event_list_tag(news) & STATE_KILL) != 0) {
        end_process();
        return false;
    }
    bool resting_place = false;
    if (process->backlog != OBJECT_NONE) {
        struct sent *event = shift_backlog();
        deliver(event);
        resting_place = event->sender % 2 != 0;
        if (ends_at_once) {
            end_process();
            return false;
        }
    }
    if (process->backlog != OBJECT_NONE) {
        return true;
    }
    holders--; /* if it rests, somebody else may run it at once */
    if (state_rest_owner(process, resting_place ? STATE_BLOCKED : STATE_IDLE)) {
        return false;
    }
    holders++;
    return true;
}

static uint64_t take_news(void)
{
    if (!state_has_news_owner(process)) {
        return 0;
    }
    const uint32_t first = process->backlog;
    const bool few = first == OBJECT_NONE || event_at(&rig.events, first)->next == OBJECT_NONE;
    return few ? state_take_owner(process) : state_take_requests_owner(process);
}

static void run_process(void)
{
    EXPLORE_CHECK(tokens-- == 1, "INV-3: it had a token");
    EXPLORE_CHECK(holders++ == 0, "INV-4: one worker runs it");
    /* Not by load_relaxed: the code under test makes no step here. */
    const uint32_t tag = event_list_tag(explore_peek(&process->word));
    EXPLORE_CHECK(state_of(tag) == STATE_READY, "INV-3: who has a token is Ready");
    incarnation = state_generation(tag);
    for (uint32_t turns = 0; turns < TURNS_MAX; turns++) {
        if (!turn(take_news())) {
            return;
        }
    }
    explore_note("back to the queue");
    holders--;
    enqueue();
}

static void run_worker(const void *arg)
{
    (void)arg;
    for (;;) {
        explore_take(&queue);
        run_process();
    }
}

/* ---- the beginning and the end ---- */

static void setup_limited(uint32_t limit)
{
    rig_reset(0);
    uint32_t slot;
    const enum object_pool_result result = object_acquire_owner(
        &rig.table.pool, rig.table.pool.shape.layout, &rig.outside.caches.processes, &slot);
    EXPLORE_CHECK(result == OBJECT_POOL_OK, "the rig has memory");
    process = object_pool_at(&rig.table.pool, slot);
    store_relaxed(&queue, 0);
    store_relaxed(&free_slots, 0);
    tokens = holders = ended = cancels_admitted = cancels_seen = 0;
    incarnation = 1;
    ends_at_once = watch_seen = watch_admitted = kill_admitted = false;
    memset(sent, 0, sizeof sent);

    const uint32_t generation = state_prepare_owner(process);
    process->backlog = OBJECT_NONE;
    state_publish_owner(process, generation);
    store_relaxed(&process->mailbox_limit, limit);
    explore_ignore(&process->mailbox_limit, sizeof process->mailbox_limit);
    EXPLORE_CHECK(state_rest_owner(process, STATE_IDLE), "nothing was sent yet");
}

static void setup(void)
{
    setup_limited(LIMIT);
}

static void setup_one_place(void)
{
    setup_limited(1);
}

static void setup_two_places(void)
{
    setup_limited(2);
}

static void setup_ending(void)
{
    setup();
    ends_at_once = true;
}

static void setup_ending_two_places(void)
{
    setup_two_places();
    ends_at_once = true;
}

static void check_events(void)
{
    for (uint32_t i = 0; i < EVENTS_MAX; i++) {
        EXPLORE_CHECK(sent[i].fate != OFFERED, "INV-5: nothing that was admitted is lost");
        const bool may_be_refused =
            sent[i].is_message && load_relaxed(&process->mailbox_limit) != LIMIT;
        EXPLORE_CHECK(ended > 0 || sent[i].fate == DELIVERED || sent[i].fate == UNSENT ||
                          (sent[i].fate == REFUSED && may_be_refused),
                      "INV-5: a live process gets it all");
    }
    const uint32_t places = load_relaxed(&process->reserved) - load_relaxed(&process->consumed);
    EXPLORE_CHECK(places == 0, "INV-21: who rests or has ended has no places taken");
    EXPLORE_CHECK(tokens == 0 && holders == 0, "INV-3, INV-4: all tokens were used");
}

static void check_resting(void)
{
    check_events();
    const uint64_t word = load_relaxed(&process->word);
    EXPLORE_CHECK(state_is_waiting(event_list_tag(word)), "it rests in the end");
    EXPLORE_CHECK(event_list_first(word) == OBJECT_NONE, "INV-5: it rests with an empty list");
    EXPLORE_CHECK((event_list_tag(word) & (STATE_KILL | STATE_CANCEL)) == 0,
                  "INV-5: no request is left");
    EXPLORE_CHECK(cancels_admitted == 0 || cancels_seen > 0, "no request is forgotten");
    EXPLORE_CHECK(cancels_seen <= cancels_admitted, "a request is seen once");
}

static void check_ended(void)
{
    check_events();
    EXPLORE_CHECK(ended == 1, "it ended once");
    EXPLORE_CHECK(watch_seen == watch_admitted, "who watches is told, if admitted");
    const uint64_t word = load_relaxed(&process->word);
    EXPLORE_CHECK(word == event_list_word(OBJECT_NONE, state_tag(2, STATE_FREE)),
                  "INV-7: the slot is free, for the next generation");
}

static void check_reused(void)
{
    check_events();
    const uint64_t word = load_relaxed(&process->word);
    const uint32_t next = 3 + (ended - 1);
    EXPLORE_CHECK(ended >= 1 && state_generation(event_list_tag(word)) == next, "INV-7");
    EXPLORE_CHECK(event_list_first(word) == OBJECT_NONE, "INV-5: nothing is left in the list");
    EXPLORE_CHECK(ended == 2 || state_is_waiting(event_list_tag(word)), "the second process rests");
}

static const struct letters one_a = {0, 1, 1, true};
static const struct letters two_a = {0, 1, 2, true};
static const struct letters three_a = {0, 1, 3, true};
static const struct letters four_a = {0, 1, 4, true};
static const struct letters one_b = {1, 1, 1, true};
static const struct letters two_b = {1, 1, 2, true};
static const struct letters four_b = {1, 1, 4, true};
static const struct letters event_a = {0, 1, 1, false};
static const struct letters three_events_a = {0, 1, 3, false};
static const struct letters event_b = {1, 1, 1, false};
static const struct letters two_events_b = {1, 1, 2, false};
static const struct letters four_events_b = {1, 1, 4, false};
static const struct letters later_two_events = {1, 3, 2, false};
static const struct letters later_two = {1, 3, 2, true};
static const struct letters later_four = {1, 3, 4, true};

#define SENDER(letters)  EXPLORE_THREAD("sender", run_sender, &(letters))
#define SENDER2(letters) EXPLORE_THREAD("sender2", run_sender, &(letters))
#define WORKER           EXPLORE_THREAD("worker", run_worker, NULL)
#define WORKER2          EXPLORE_THREAD("worker2", run_worker, NULL)
#define KILLER           EXPLORE_THREAD("killer", run_killer, NULL)
#define CANCELLER        EXPLORE_THREAD("canceller", run_canceller, NULL)
#define WATCHER          EXPLORE_THREAD("watcher", run_watcher, NULL)
#define SPAWNER          EXPLORE_THREAD("spawner", run_spawner, NULL)

#define MAY_REST all_is_done
#define RANDOM_MODEL(name_, setup_, finish_, ...)                                                  \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_RANDOM, .bound = 50000, .stale = 2, .setup = setup_,        \
        .threads = {__VA_ARGS__}, .may_rest = all_is_done, .finish = finish_,                      \
    }

static const struct explore_model models[] = {
    WEAK("one_sender", setup, check_resting, SENDER(four_a), WORKER),
    ALL("one_sender_two_workers", setup, check_resting, SENDER(four_a), WORKER, WORKER2),
    WEAK("two_senders", setup, check_resting, SENDER(two_a), SENDER2(one_b), WORKER),
    ALL("two_senders_two_workers", setup, check_resting, SENDER(two_a), SENDER2(one_b), WORKER,
        WORKER2),
    WEAK("two_wakers", setup, check_resting, SENDER(one_a), SENDER2(one_b), WORKER),
    WEAK("message_and_event", setup, check_resting, SENDER(one_a), SENDER2(event_b), WORKER),
    BOUNDED("messages_and_events", 3, setup, check_resting, SENDER(two_a), SENDER2(two_events_b),
            WORKER, WORKER2),
    WEAK("one_place", setup_one_place, check_resting, SENDER(two_a), SENDER2(one_b), WORKER),
    BOUNDED("one_place_and_events", 4, setup_one_place, check_resting, SENDER(two_a),
            SENDER2(two_events_b), WORKER),
    BOUNDED("one_place_cancel", 3, setup_one_place, check_resting, SENDER(two_a), CANCELLER,
            WATCHER, WORKER),
    BOUNDED("two_places", 4, setup_two_places, check_resting, SENDER(two_a), SENDER2(two_b),
            WORKER),
    BOUNDED("two_places_kill", 3, setup_two_places, check_ended, SENDER(two_a), SENDER2(one_b),
            KILLER, WORKER),
    BOUNDED("two_places_reuse", 3, setup_ending_two_places, check_reused, SENDER(three_a),
            SENDER2(later_two), SPAWNER, WORKER),
    WEAK("cancel", setup, check_resting, SENDER(two_a), CANCELLER, WORKER),
    ALL("cancel_twice", setup, check_resting, SENDER(event_a), CANCELLER, CANCELLER, WORKER),
    WEAK("watch", setup, check_resting, SENDER(two_a), WATCHER, WORKER),
    WEAK("kill", setup, check_ended, SENDER(two_a), KILLER, WORKER),
    ALL("kill_two_senders", setup, check_ended, SENDER(event_a), SENDER2(event_b), KILLER, WORKER),
    ALL("kill_watched", setup, check_ended, KILLER, WATCHER, SENDER(one_a), WORKER),
    WEAK("end_watched", setup_ending, check_ended, SENDER(two_a), WATCHER, WORKER),
    WEAK("end_watched_killed", setup_ending, check_ended, SENDER(one_a), WATCHER, KILLER, WORKER),
    WEAK("reuse", setup_ending, check_reused, SENDER(three_a), SPAWNER, WORKER),
    ALL("reuse_later", setup_ending, check_reused, SENDER(three_events_a),
        SENDER2(later_two_events), SPAWNER, WORKER),
    ALL("kill_reuse", setup, check_reused, SENDER(two_a), KILLER, SPAWNER, WORKER),
    BOUNDED("kill_reuse_two_senders", 2, setup, check_reused, SENDER(two_a), SENDER2(later_two),
            KILLER, SPAWNER, WORKER),
    RANDOM_MODEL("many", setup, check_resting, SENDER(four_a), SENDER2(four_b), WORKER, WORKER2),
    RANDOM_MODEL("many_places", setup_two_places, check_resting, SENDER(four_a), SENDER2(four_b),
                 WORKER, WORKER2),
    RANDOM_MODEL("many_events", setup_one_place, check_resting, SENDER(four_a),
                 SENDER2(four_events_b), CANCELLER, WORKER, WORKER2),
    RANDOM_MODEL("many_requests", setup, check_ended, SENDER(four_a), CANCELLER, KILLER, WATCHER,
                 WORKER),
    RANDOM_MODEL("many_reused", setup_ending, check_reused, SENDER(four_a), SENDER2(later_four),
                 SPAWNER, WORKER, WORKER2),
    RANDOM_MODEL("many_killed_reused", setup, check_reused, SENDER(four_a), SENDER2(later_four),
                 KILLER, SPAWNER, WORKER),
};

EXPLORE_MAIN(models)
