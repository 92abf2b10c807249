/* SPDX-License-Identifier: MIT */
/* The books of messages. One that was accepted is seen by a step or reported as a dead letter, and
 * only one of the two; one that was refused is neither. */
#include <string.h>

#include "property.h"

enum outcome { OUTCOME_OPEN, OUTCOME_ACCEPTED, OUTCOME_REFUSED };

struct message {
    uint32_t sender;
    enum way way;
    uint64_t order; /* among those of its sender */
    struct actor *to;
    struct wire *cargo;
    bool must_arrive;   /* of skua_yield_send: the receiver was there */
    atomic_u32 outcome; /* enum outcome */
    atomic_u32 seen;
    atomic_u32 cause; /* of its death: enum skua_dead_letter_cause; 0: it is not dead */
};

static struct message messages[MESSAGES_MAX];
static atomic_u32 messages_made;

/* The order of the last message from each sender that the actor has seen, and has dropped for newer
 * ones. Of the actor itself. */
static uint64_t last_seen[ACTORS_MAX][SENDERS_MAX][2]; /* ordinary and urgent ones */
static uint64_t last_shed[ACTORS_MAX][SENDERS_MAX];

/* The message that this thread is about to send: if it is refused, it is dropped meanwhile. */
static _Thread_local uint32_t under_way = NONE;

static uint32_t get(atomic_u32 *counter)
{
    return load_relaxed(counter); /* see property.h */
}

static uint32_t count(atomic_u32 *counter)
{
    return fetch_add_relaxed(counter, 1); /* see property.h */
}

static uint32_t made(void)
{
    const uint32_t asked = get(&messages_made);
    return asked < MESSAGES_MAX ? asked : MESSAGES_MAX;
}

void mail_begin(void)
{
    store_relaxed(&messages_made, 0); /* see property.h */
}

void mail_actor_begins(uint32_t number)
{
    memset(last_seen[number], 0, sizeof last_seen[number]);
    memset(last_shed[number], 0, sizeof last_shed[number]);
}

static bool is_yielded(const struct message *message)
{
    return message->way == WAY_YIELD;
}

static bool is_urgent(const struct message *message)
{
    return message->way == WAY_URGENT;
}

/* ---- sending ---- */

/* Sends act at once, yields after the step. */
static uint64_t order_of(const struct agent *agent, enum way way, uint32_t number)
{
    return ((uint64_t)agent->step << 1 | (way == WAY_YIELD)) << 32 | (number + 1);
}

uint32_t message_new(const struct agent *agent, struct actor *to, enum way way)
{
    const uint32_t number = count(&messages_made);
    if (number >= MESSAGES_MAX) {
        return NONE;
    }
    struct message *message = &messages[number];
    message->sender = agent->sender;
    message->way = way;
    message->order = order_of(agent, way, number);
    message->to = to;
    message->cargo = NULL;
    message->must_arrive = get(&to->is_published) != 0;
    store_relaxed(&message->outcome, OUTCOME_OPEN); /* see property.h, as for the next */
    store_relaxed(&message->seen, 0);
    store_relaxed(&message->cause, 0);
    under_way = number;
    return number;
}

/* Messages beyond a small limit that a process takes that drops old ones. */
#define BURST 1000

static uint32_t mailbox_limit(const struct actor *actor)
{
    const uint32_t own = script_types[actor->type].mailbox_limit;
    return own != 0 ? own : world.program.mailbox_limit;
}

/* How many may wait at once. */
static uint32_t places(struct actor *to, enum way way)
{
    const uint32_t own = mailbox_limit(to);
    if (way == WAY_URGENT) {
        return 2 * (own + SKUA_EVENTS_PER_STEP);
    }
    return own + (get(&to->overflow) != SKUA_OVERFLOW_DROP_OLD ? 0 : own > BURST ? own : BURST);
}

/* With one thread it is known how many messages wait, but for those of skua_yield_send. */
static void check_mailbox(struct actor *to, enum way way, int error)
{
    const uint32_t waiting = get(&to->accepted) - get(&to->seen) - get(&to->dead);
    const uint32_t limit = places(to, way);
    /* A message that is delayed has its place already; one that wakes the process needs none. */
    const uint32_t most = limit + (world.program.faults.message_delay > 0);
    if (error == 0 && waiting >= most) {
        fault("process %u: accepts message %u of %u", to->number, waiting + 1, limit);
    }
    if (error == SKUA_E_MAILBOX_FULL && waiting + get(&to->knocks) < limit) {
        fault("process %u: is full with %u of %u messages", to->number, waiting, limit);
    }
}

static bool may_be_full(struct actor *to)
{
    const uint32_t overflow = get(&to->overflow);
    return overflow == SKUA_OVERFLOW_REFUSE || overflow == SKUA_OVERFLOW_END;
}

/* see property.h */
static void set_outcome(struct message *message, int error)
{
    store_relaxed(&message->outcome, error == 0 ? OUTCOME_ACCEPTED : OUTCOME_REFUSED);
}

void message_sent(uint32_t number, int error, bool must_arrive)
{
    struct message *message = &messages[number];
    struct actor *to = message->to;
    under_way = NONE;
    if (in_simulator() && get(&message->cause) == 0) {
        check_mailbox(to, message->way, error);
    }
    if (error == 0) {
        (void)count(&to->accepted);
    } else if (error == SKUA_E_MAILBOX_FULL) {
        actor_expect(may_be_full(to), to, "drops messages, but refuses one");
        (void)fetch_add_relaxed(&to->overflows, get(&to->overflow) == SKUA_OVERFLOW_END);
    } else if (!may_be_unreachable(to, error, must_arrive)) {
        fault("message %u to process %u: %s", number, to->number, skua_error_name(error));
    }
    set_outcome(message, error);
}

void message_yielded(uint32_t number, bool is_accepted)
{
    struct message *message = &messages[number];
    under_way = NONE;
    if (is_accepted) {
        (void)count(&message->to->knocks);
    } else {
        set_outcome(message, SKUA_E_NO_MEMORY);
    }
}

bool message_may_fail(uint32_t number, int error)
{
    const struct message *message = &messages[number];
    if (error == SKUA_E_MAILBOX_FULL) {
        return get(&message->to->overflow) == SKUA_OVERFLOW_DROP_OLD;
    }
    return may_be_unreachable(message->to, error, message->must_arrive);
}

/* It has no place, or no longer. */
static void leave(struct message *message)
{
    if (is_yielded(message)) {
        (void)fetch_sub_relaxed(&message->to->knocks, 1); /* see property.h */
    }
}

void message_admitted(uint32_t number, int error)
{
    struct message *message = &messages[number];
    if (error != 0) {
        leave(message);
    }
    set_outcome(message, error);
}

void message_load(uint32_t number, struct wire *wire)
{
    messages[number].cargo = wire;
}

struct wire *message_cargo(const skua_event *event)
{
    struct letter letter;
    const bool is_one = letter_read(&event->payload, LETTER_MESSAGE, &letter);
    return is_one ? messages[letter.number].cargo : NULL;
}

/* ---- what comes of them ---- */

static skua_pid pid_of_sender(uint32_t sender)
{
    return sender < ACTORS_MAX ? actor_pid(actor_at(sender)) : (skua_pid){0};
}

bool message_is_urgent(const skua_event *event)
{
    struct letter letter;
    return letter_read(&event->payload, LETTER_MESSAGE, &letter) &&
           is_urgent(&messages[letter.number]);
}

static void expect_unused(struct actor *actor, struct message *message)
{
    actor_expect(get(&message->seen) == 0, actor, "gets a message again, or loses it after that");
    actor_expect(get(&message->cause) == 0, actor,
                 "gets a message that was reported as a dead letter");
    actor_expect(get(&message->outcome) != OUTCOME_REFUSED, actor,
                 "gets a message that was refused");
}

void message_seen(struct actor *actor, const skua_event *event)
{
    struct letter letter;
    if (!letter_read(&event->payload, LETTER_MESSAGE, &letter)) {
        fault("process %u: a message without a letter", actor->number);
        return;
    }
    struct message *message = &messages[letter.number];
    uint64_t *last = &last_seen[actor->number][message->sender][is_urgent(message)];
    actor_expect(message->to == actor, actor, "gets the message of another");
    actor_expect(skua_pid_equal(event->from, pid_of_sender(message->sender)), actor,
                 "gets a message that hides who sent it");
    expect_unused(actor, message);
    (void)count(&message->seen);
    actor_expect(message->order > *last || actor->is_unordered, actor,
                 "gets messages of one sender out of order");
    *last = message->order;
    leave(message);
    if (!is_yielded(message)) {
        (void)count(&actor->seen);
    }
}

/* Whether it may die of that. */
static bool is_mortal_by(const struct message *message, enum skua_dead_letter_cause cause)
{
    const uint32_t overflow = get(&message->to->overflow);
    switch (cause) {
    case SKUA_DEAD_UNREAD:
        return true;
    case SKUA_DEAD_NEW:
        return !is_yielded(message) &&
               (overflow == SKUA_OVERFLOW_DROP_NEW || overflow == SKUA_OVERFLOW_DROP_OLD);
    case SKUA_DEAD_OLD:
        return !is_urgent(message) && overflow == SKUA_OVERFLOW_DROP_OLD;
    }
    return false;
}

/* Old messages of one sender are dropped in order; but not what is deferred, until it waits again.
 */
static void check_shed(const struct message *message)
{
    struct actor *actor = message->to;
    uint64_t *last = &last_shed[actor->number][message->sender];
    actor_expect(message->order > *last || actor->has_deferred, actor,
                 "drops messages of one sender out of order");
    *last = message->order;
}

void mail_on_dead_letter(void *arg, const skua_dead_letter *dead)
{
    struct letter letter;
    (void)arg;
    if (!letter_read(dead->payload, LETTER_MESSAGE, &letter)) {
        fault("a dead letter that is none");
        return;
    }
    struct message *message = &messages[letter.number];
    struct actor *to = message->to;
    actor_expect(skua_pid_equal(dead->to, actor_pid(to)) &&
                     skua_pid_equal(dead->from, pid_of_sender(message->sender)),
                 to, "a dead letter has the wrong sender or receiver");
    actor_expect(is_mortal_by(message, dead->cause), to, "a message should not have died of that");
    expect_unused(to, message);
    store_relaxed(&message->cause, dead->cause); /* see property.h */
    if (dead->cause == SKUA_DEAD_OLD) {
        check_shed(message);
    }
    leave(message);
    if (!is_yielded(message)) {
        (void)count(&to->dead);
    }
}

/* A receiver that drops messages lives on. */
void message_dropped(uint32_t number)
{
    struct message *message = &messages[number];
    const uint32_t cause = get(&message->cause);
    const bool was_refused = under_way == number || is_yielded(message);
    if (!was_refused && get(&message->seen) == 0 && (cause == 0 || cause == SKUA_DEAD_UNREAD)) {
        store_relaxed(&message->to->has_lost, 1); /* see property.h */
    }
}

/* ---- the end ---- */

/* A yield may have ended with its process, so that nobody knows what came of it. */
static void check_message(struct message *message)
{
    const uint32_t ends = get(&message->seen) + (get(&message->cause) != 0);
    switch ((enum outcome)get(&message->outcome)) {
    case OUTCOME_REFUSED:
        actor_expect(ends == 0, message->to, "got a message that was refused");
        break;
    case OUTCOME_ACCEPTED:
        actor_expect(ends == 1, message->to, "not every accepted message was seen or reported");
        break;
    case OUTCOME_OPEN:
        actor_expect(is_yielded(message) && ends <= 1, message->to, "a message without an outcome");
        break;
    }
}

/* Those from one sender to one actor are seen up to some point, and none after that, unless the
 * actor drops messages. */
static void check_gaps(void)
{
    static bool ends[ACTORS_MAX][SENDERS_MAX][2];
    memset(ends, 0, sizeof ends);
    for (uint32_t i = 0; i < made(); i++) {
        struct message *message = &messages[i];
        struct actor *to = message->to;
        bool *end = &ends[to->number][message->sender][is_urgent(message)];
        const bool was_seen = get(&message->seen) != 0;
        if (is_yielded(message) || get(&message->outcome) == OUTCOME_REFUSED) {
            continue;
        }
        if (was_seen && *end && !to->is_unordered && may_be_full(to)) {
            fault("process %u: got message %u of sender %u, but not an earlier one", to->number, i,
                  message->sender);
        }
        *end = *end || !was_seen;
    }
}

void mail_check(void)
{
    for (uint32_t i = 0; i < made(); i++) {
        check_message(&messages[i]);
    }
    check_gaps();
}

/* Of one cause. */
static uint64_t count_dead(enum skua_dead_letter_cause cause)
{
    uint64_t dead = 0;
    for (uint32_t i = 0; i < made(); i++) {
        dead += get(&messages[i].cause) == cause;
    }
    return dead;
}

/* What finds its mailbox full has not been accepted by that; what is delayed may find that the
 * receiver has gone. */
void mail_check_stats(const skua_stats *total)
{
    uint64_t least = 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < made(); i++) {
        struct message *message = &messages[i];
        const bool counts = get(&message->cause) != SKUA_DEAD_NEW;
        const uint32_t outcome = get(&message->outcome);
        const bool is_known = outcome == OUTCOME_ACCEPTED || get(&message->seen) != 0;
        least += counts && is_known;
        most += counts && outcome != OUTCOME_REFUSED;
    }
    least = world.program.faults.message_delay == 0 ? least : 0;
    if (total->messages < least || total->messages > most) {
        fault("%u messages, by the books %u to %u", (uint32_t)total->messages, (uint32_t)least,
              (uint32_t)most);
    }
    if (total->dead_unread != count_dead(SKUA_DEAD_UNREAD) ||
        total->dead_new != count_dead(SKUA_DEAD_NEW) ||
        total->dead_old != count_dead(SKUA_DEAD_OLD)) {
        fault("%u unread, %u new and %u old messages have died; the books have others",
              (uint32_t)total->dead_unread, (uint32_t)total->dead_new, (uint32_t)total->dead_old);
    }
}
