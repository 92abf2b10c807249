/* SPDX-License-Identifier: MIT */
/* Stress of relations/names.h: actors register, release and await names and make handles of others,
 * so that entries are reused all the time; readers look names up by text and by handle. In rounds
 * with registries of many limits.
 *  - A name leads to a process of its own, and never to one that had given it up before.
 *  - Names that are held during the whole round are always found.
 *  - Nobody is refused as long as there is room, and the count is that of the names that are held.
 *  - Every waiter comes back once, and whoever waits for a name that is held is told.
 * The PID of a holder is {number of the name + 1 | serial}, and is used once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counting_allocator.h"
#include "dispatch/call.h"
#include "relations/names.h"
#include "stress_support.h"

#define ACTORS          2
#define READERS         2
#define NAMES           400    /* that are registered, now and then */
#define LASTING         16     /* and those that are held all the time */
#define CROWD           100000 /* names that only have handles */
#define HELD_MAX        64
#define WAITING_MAX     64
#define ROUNDS_AT_LEAST 16
#define ROUND_OPS_MAX   1000000
#define DEFAULT_OPS     60000000

struct held {
    uint32_t name;
    uint32_t entry;
    skua_pid pid;
};

/* Both actors and readers. */
struct member {
    CACHE_ALIGNED uint64_t random;
    uint32_t number;
    uint64_t ops; /* of all threads, when this round ends */
    /* Of an actor. */
    struct pool_cache cache;
    uint32_t held_count;
    struct held held[HELD_MAX];
    uint32_t waiting_count;
    skua_completion waiting[WAITING_MAX];
    uint64_t awaited;    /* waiters that were taken */
    uint64_t given_back; /* and those that came back */
    /* Of a reader. */
    struct name_handle handles[NAMES + LASTING];
    uint64_t found;
};

static struct stress stress;
static struct names names;
static struct object_pool events;
static struct member members[ACTORS + READERS];
static char texts[NAMES + LASTING][NAME_SIZE];
static atomic_u64 serials[NAMES + LASTING];
static atomic_u64 gone[NAMES + LASTING]; /* bits of a PID that has given the name up */

static skua_pid make_pid(uint32_t name)
{
    const uint64_t serial = fetch_add_relaxed(&serials[name], 1); /* orders nothing */
    return (skua_pid){(uint64_t)(name + 1) << 32 | (uint32_t)serial};
}

/* ---- actors: waiters ---- */

static void release_node(struct member *actor, uint32_t index)
{
    event_release_owner(&events, &actor->cache, index);
}

static uint32_t acquire_node(struct member *actor)
{
    uint32_t index;
    if (!event_acquire_owner(&events, &actor->cache, &index)) {
        abort();
    }
    return index;
}

/* Ends a call, if nobody else has. */
static bool end_call(struct member *actor, skua_completion call)
{
    if (!call_claim_any(event_at(&events, call_index(call)), call_guard(call))) {
        return false;
    }
    release_node(actor, call_index(call));
    return true;
}

/* Tells those that have waited, or takes back those that do not wait any more. */
static void take_back(struct member *actor, uint32_t first, bool is_stale)
{
    while (first != OBJECT_NONE) {
        const struct event_node *waiter = event_at(&events, first);
        const uint32_t next = waiter->next;
        const skua_event *event = &waiter->as.event;
        const skua_completion call = {.process = event->from, .call = event->tag};
        if (end_call(actor, call) && is_stale) {
            stress_fault(&stress, STRESS_LOST, "a waiter was swept, and its call was open");
        }
        release_node(actor, first);
        actor->given_back++;
        first = next;
    }
}

static void await(struct member *actor, uint32_t name)
{
    if (actor->waiting_count == WAITING_MAX) {
        return;
    }
    const uint32_t index = acquire_node(actor);
    const skua_completion call =
        call_open_owner(event_at(&events, index), index, (skua_pid){actor->number});
    const uint32_t waiter = acquire_node(actor);
    event_at(&events, waiter)->as.event = (skua_event){.from = call.process, .tag = call.call};
    struct name_outcome outcome;
    const int error = names_await_any(&names, texts[name], waiter, &outcome);
    take_back(actor, outcome.stale, true);
    if (error == SKUA_PENDING) {
        actor->waiting[actor->waiting_count++] = call;
        actor->awaited++;
        return;
    }
    if (error == 0 && outcome.holder.bits >> 32 != name + 1) {
        stress_fault(&stress, STRESS_CORRUPT, "%s has the holder %" PRIx64, texts[name],
                     outcome.holder.bits);
    }
    release_node(actor, waiter);
    (void)end_call(actor, call);
}

static void give_up_waiting(struct member *actor)
{
    if (actor->waiting_count > 0) {
        const uint32_t at = random_below(&actor->random, actor->waiting_count);
        (void)end_call(actor, actor->waiting[at]);
        actor->waiting[at] = actor->waiting[--actor->waiting_count];
    }
}

/* ---- actors: holders ---- */

static void hold(struct member *actor, uint32_t name)
{
    if (actor->held_count == HELD_MAX) {
        return;
    }
    const skua_pid pid = make_pid(name);
    struct name_outcome outcome;
    const int error = names_register_any(&names, texts[name], pid, &outcome);
    take_back(actor, outcome.stale, true);
    take_back(actor, outcome.waiters, false);
    if (error == 0) {
        actor->held[actor->held_count++] = (struct held){name, outcome.entry, pid};
    } else if (error == SKUA_E_NAME_TAKEN && outcome.holder.bits >> 32 != name + 1) {
        stress_fault(&stress, STRESS_CORRUPT, "%s has the holder %" PRIx64, texts[name],
                     outcome.holder.bits);
    } else if (error == SKUA_E_NO_MEMORY ||
               (error == SKUA_E_NAME_LIMIT && names.limit >= NAMES + LASTING)) {
        stress_fault(&stress, STRESS_BROKEN, "%s is refused: %d", texts[name], error);
    }
}

static void check_text(const struct held *held)
{
    char text[NAME_SIZE];
    (void)names_text(&names, held->entry, text);
    if (strcmp(text, texts[held->name]) != 0) {
        stress_fault(&stress, STRESS_CORRUPT, "%s is now %s", texts[held->name], text);
    }
}

static void release(struct member *actor)
{
    if (actor->held_count == 0) {
        return;
    }
    const uint32_t at = random_below(&actor->random, actor->held_count);
    const struct held held = actor->held[at];
    actor->held[at] = actor->held[--actor->held_count];
    check_text(&held);
    if (!names_release_any(&names, held.entry, held.pid)) {
        stress_fault(&stress, STRESS_LOST, "%s was not held any more", texts[held.name]);
    }
    store_release(&gone[held.name], held.pid.bits); /* hands over that it is released */
    if (names_release_any(&names, held.entry, held.pid)) {
        stress_fault(&stress, STRESS_DOUBLED, "%s was released twice", texts[held.name]);
    }
}

/* Names that nobody holds push idle ones out. */
static void crowd_out(struct member *actor)
{
    char text[NAME_SIZE];
    struct name_handle handle;
    for (uint32_t i = random_below(&actor->random, 64); i > 0; i--) {
        (void)snprintf(text, sizeof text, "nobody-%u", random_below(&actor->random, CROWD));
        if (names_handle_any(&names, text, &handle) != 0) {
            stress_fault(&stress, STRESS_BROKEN, "no memory");
        }
    }
}

static void *run_actor(void *arg)
{
    struct member *actor = arg;
    while (stress_goes_on(&stress, actor->ops)) {
        const uint32_t name = random_below(&actor->random, NAMES);
        switch (random_below(&actor->random, 16)) {
        case 0:
            crowd_out(actor);
            break;
        case 1:
        case 2:
            await(actor, name);
            break;
        case 3:
            give_up_waiting(actor);
            break;
        case 4:
        case 5:
        case 6:
        case 7:
        case 8:
            release(actor);
            break;
        default:
            hold(actor, name);
            break;
        }
        stress_count(&stress, actor->number, 1);
        stress_pause(&actor->random, 256);
    }
    return NULL;
}

/* ---- readers ---- */

static void check_found(struct member *reader, uint32_t name, uint64_t before, skua_pid pid)
{
    if (pid.bits >> 32 != name + 1) {
        stress_fault(&stress, STRESS_CORRUPT, "%s leads to %" PRIx64, texts[name], pid.bits);
    } else if (pid.bits == before) {
        stress_fault(&stress, STRESS_DOUBLED, "%s leads to who had given it up", texts[name]);
    }
    reader->found++;
}

static int read_by_handle(struct member *reader, uint32_t name, skua_pid *pid)
{
    int error = names_of_handle_any(&names, reader->handles[name], pid);
    if (error == SKUA_E_LATE) {
        if (names_handle_any(&names, texts[name], &reader->handles[name]) != 0) {
            stress_fault(&stress, STRESS_BROKEN, "no memory");
        }
        error = names_of_handle_any(&names, reader->handles[name], pid);
    }
    return error;
}

static void *run_reader(void *arg)
{
    struct member *reader = arg;
    while (stress_goes_on(&stress, reader->ops)) {
        for (uint32_t i = 0; i < 64; i++) {
            const uint32_t name = random_below(&reader->random, NAMES + LASTING);
            const uint64_t before = load_acquire(&gone[name]); /* that it was released */
            skua_pid pid = {0};
            const int error = once_in(&reader->random, 2)
                                  ? names_find_any(&names, texts[name], &pid)
                                  : read_by_handle(reader, name, &pid);
            if (error == 0) {
                check_found(reader, name, before, pid);
            } else if (name >= NAMES) {
                stress_fault(&stress, STRESS_LOST, "%s is not found: %d", texts[name], error);
            }
        }
        stress_count(&stress, reader->number, 64);
        stress_pause(&reader->random, 64);
    }
    return NULL;
}

static void *run_member(void *arg)
{
    struct member *member = arg;
    return member->number < ACTORS ? run_actor(member) : run_reader(member);
}

/* ---- rounds ---- */

static void begin_round(const struct counting_allocator *memory, uint64_t *random, uint64_t ops)
{
    const uint32_t limit =
        once_in(random, 2) ? NAMES + LASTING : LASTING + 1 + random_below(random, 150);
    if (!event_pool_init(&events, &memory->allocator, ACTORS)) {
        abort();
    }
    names_init(&names, &memory->allocator, &events, limit, random_next(random));
    for (uint32_t i = 0; i < ACTORS + READERS; i++) {
        members[i] = (struct member){
            .random = random_next(random), .number = i, .ops = ops, .found = members[i].found};
    }
    for (uint32_t name = NAMES; name < NAMES + LASTING; name++) {
        hold(&members[0], name);
    }
    members[0].held_count = 0; /* they are never released */
}

/* Those that wait for a name that is held were told when that was registered. */
static void end_round(void)
{
    struct member *last = &members[0];
    uint32_t held = LASTING;
    uint64_t awaited = 0;
    uint64_t given_back = 0;
    take_back(last, names_take_all_waiters_any(&names), false);
    for (uint32_t i = 0; i < ACTORS; i++) {
        held += members[i].held_count;
        awaited += members[i].awaited;
        given_back += members[i].given_back;
        for (uint32_t k = 0; k < members[i].waiting_count; k++) {
            if (end_call(last, members[i].waiting[k])) {
                stress_fault(&stress, STRESS_LOST, "a call was not told of the holder");
            }
        }
    }
    if (awaited != given_back) {
        stress_fault(&stress, awaited > given_back ? STRESS_LOST : STRESS_DOUBLED,
                     "%" PRIu64 " waiters, %" PRIu64 " came back", awaited, given_back);
    }
    if (names_count(&names) != held) {
        stress_fault(&stress, STRESS_BROKEN, "%" PRIu32 " names are counted, %" PRIu32 " held",
                     names_count(&names), held);
    }
    names_deinit(&names);
    object_pool_deinit(&events);
}

static void run_round(uint64_t *random, uint64_t ops)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    begin_round(&memory, random, ops);
    stress_run_threads(ACTORS + READERS, run_member, members, sizeof *members);
    end_round();
    if (!counting_allocator_is_clean(&memory)) {
        stress_fault(&stress, STRESS_BROKEN, "the registry has not released its memory");
    }
}

int main(int argc, char **argv)
{
    stress_begin(&stress, argc, argv, DEFAULT_OPS);
    for (uint32_t i = 0; i < NAMES + LASTING; i++) {
        (void)snprintf(texts[i], NAME_SIZE, i % 2 == 0 ? "name-%u" : "a-longer-name-than-that-%u",
                       i);
    }
    uint64_t random = stress_stream(&stress, 0);
    uint64_t round_ops = stress.ops / ROUNDS_AT_LEAST + 1;
    round_ops = round_ops < ROUND_OPS_MAX ? round_ops : ROUND_OPS_MAX;
    while (stress_goes_on(&stress, stress.ops)) {
        run_round(&random, stress_done(&stress) + round_ops);
    }
    uint64_t found = 0;
    for (uint32_t i = ACTORS; i < ACTORS + READERS; i++) {
        found += members[i].found;
    }
    if (found == 0) {
        stress_fault(&stress, STRESS_BROKEN, "nothing was ever found");
    }
    return stress_end(&stress);
}
