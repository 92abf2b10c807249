/* SPDX-License-Identifier: MIT */
#include "letters.h"

#include <pthread.h>

#define LETTERS_MAX 4096

static struct {
    pthread_mutex_t lock;
    size_t count;
    struct letter letters[LETTERS_MAX];
} post = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t number_in(const skua_payload *payload)
{
    return payload->storage == SKUA_PAYLOAD_INLINE ? skua_payload_to_u64(payload)
                                                   : tracked_value(payload);
}

static void note(void *arg, const skua_dead_letter *letter)
{
    (void)arg;
    (void)pthread_mutex_lock(&post.lock);
    if (post.count < LETTERS_MAX) {
        post.letters[post.count++] = (struct letter){.cause = letter->cause,
                                                     .to = letter->to,
                                                     .from = letter->from,
                                                     .value = number_in(letter->payload)};
    }
    (void)pthread_mutex_unlock(&post.lock);
}

void letters_open(skua_runtime_config config)
{
    post.count = 0;
    config.on_dead_letter = note;
    world_open_with(config);
}

void letters_open_sim(void)
{
    static const skua_sim_config sim = {0};
    letters_open((skua_runtime_config){.sim = &sim});
}

size_t letters_count(void)
{
    (void)pthread_mutex_lock(&post.lock);
    const size_t count = post.count;
    (void)pthread_mutex_unlock(&post.lock);
    return count;
}

const struct letter *letters_at(size_t n)
{
    assert_true(n < letters_count());
    return &post.letters[n];
}

static uint64_t counted(enum skua_dead_letter_cause cause)
{
    const skua_stats stats = world_stats();
    return cause == SKUA_DEAD_UNREAD ? stats.dead_unread
           : cause == SKUA_DEAD_NEW  ? stats.dead_new
                                     : stats.dead_old;
}

void assert_dead(enum skua_dead_letter_cause cause, uint64_t first, uint64_t last)
{
    uint64_t next = first;
    for (size_t i = 0; i < letters_count(); i++) {
        if (post.letters[i].cause == cause) {
            assert_int_equal(post.letters[i].value, next);
            next++;
        }
    }
    assert_int_equal(next, last + 1);
    assert_int_equal(counted(cause), last + 1 - first);
}

void assert_none_dead(enum skua_dead_letter_cause cause)
{
    assert_dead(cause, 1, 0);
}

struct actor *bounded_new(enum skua_overflow policy, uint32_t limit, struct script script)
{
    struct actor *actor = server_new(script);
    actor->type.overflow = policy;
    actor->type.mailbox_limit = limit;
    return actor;
}

struct actor *bounded_start(enum skua_overflow policy, uint32_t limit)
{
    struct actor *actor = bounded_new(policy, limit, NO_ACTS);
    actor_submit(actor);
    return actor;
}

static int send_each(struct turn *turn, const struct act *act)
{
    int error = 0;
    for (uint64_t i = 1; i <= act->number && error == 0; i++) {
        error = skua_send(turn->ctx, act->peer->pid, skua_payload_u64(0, i));
    }
    return error;
}

struct act sends_each(struct actor *to, uint64_t count)
{
    return (struct act){.perform = send_each, .peer = to, .number = count};
}

static int yield_send(struct turn *turn, const struct act *act)
{
    const skua_payload payload =
        act->item != NULL ? tracked_payload(0, act->item) : skua_payload_u64(0, act->number);
    return skua_yield_send(turn->ctx, act->tag, act->peer->pid, payload, act_timeout(turn, act));
}

struct act admits(uint64_t tag, struct actor *to, uint64_t number)
{
    return (struct act){.perform = yield_send, .tag = tag, .peer = to, .number = number};
}

struct act admits_item(uint64_t tag, struct actor *to, struct tracked *item)
{
    return (struct act){.perform = yield_send, .tag = tag, .peer = to, .item = item};
}
