/* SPDX-License-Identifier: MIT */
/* Stress of concurrent/deque.h: one owner that pushes, pops, takes its oldest item and spills, in
 * random bursts, against one to three thieves. Every parcel must come out exactly once, with the
 * content it had when it was pushed, and in order:
 *  - the items of a deque are always sorted by the time of their push, and top only moves forward,
 *    so what one thread steals must ascend, within a batch and from one batch to the next;
 *  - the owner pops what it pushed last, if that was not stolen.
 * The counters start just before they come around. */
#include <inttypes.h>
#include <sched.h>

#include "concurrent/deque.h"
#include "stress_support.h"

#define PARCELS     (8 * DEQUE_CAPACITY)
#define THIEVES_MAX 3
#define BATCH_MAX   32
#define BURST_MAX   48
#define SPILL       (DEQUE_CAPACITY / 2)
#define DEFAULT_OPS 60000000

static struct stress stress;
static struct deque deque;
static struct stress_parcel parcels[PARCELS];
static atomic_u32 over;

struct thread {
    CACHE_ALIGNED uint64_t random;
    uint32_t number;
    uint64_t last_stolen; /* the serial */
    uint64_t operations;  /* not yet counted */
};

/* The owner knows what it pushed where. */
struct owner {
    struct thread thread;
    uint64_t serial;
    uint32_t cursor; /* where to look for a free parcel */
    uint32_t bottom;
    struct stress_parcel *pushed[DEQUE_CAPACITY];
};

static void count_operations(struct thread *thread)
{
    stress_count(&stress, thread->number, thread->operations);
    thread->operations = 0;
}

/* Steals up to `most` items. */
static int steal(struct thread *thread, void **items, uint32_t most)
{
    const int count = deque_steal_any(&deque, items, most);
    if (count > (int)most) {
        stress_fault(&stress, STRESS_BROKEN, "a batch of %d, %" PRIu32 " asked for", count, most);
    }
    for (int i = 0; i < count; i++) {
        const uint64_t serial = stress_parcel_empty(&stress, items[i]);
        if (serial <= thread->last_stolen) {
            stress_fault(&stress, STRESS_DISORDERED, "stole %" PRIu64 " after %" PRIu64, serial,
                         thread->last_stolen);
        }
        thread->last_stolen = serial;
        thread->operations++;
    }
    return count;
}

static void *run_thief(void *arg)
{
    struct thread *thief = arg;
    void *items[BATCH_MAX];
    while (load_acquire(&over) == 0) { /* ends the run */
        if (steal(thief, items, 1 + random_below(&thief->random, BATCH_MAX)) <= 0) {
            (void)sched_yield(); /* or it would take the CPU from the owner */
        }
        stress_pause(&thief->random, 8);
        count_operations(thief);
    }
    return NULL;
}

static struct stress_parcel *find_free(struct owner *owner)
{
    for (uint32_t tries = 0; tries < DEQUE_CAPACITY; tries++) {
        struct stress_parcel *parcel = &parcels[owner->cursor++ % PARCELS];
        if (stress_parcel_is_free(parcel)) {
            return parcel;
        }
    }
    return NULL;
}

static void spill(struct owner *owner)
{
    void *items[SPILL];
    (void)steal(&owner->thread, items, SPILL); /* if it fails, thieves have made room */
}

static void push(struct owner *owner)
{
    struct stress_parcel *parcel = find_free(owner);
    if (parcel == NULL) {
        return; /* thieves hold that many, or have lost them, which the end will show */
    }
    stress_parcel_fill(parcel, ++owner->serial);
    while (!deque_push_owner(&deque, parcel)) {
        spill(owner);
    }
    owner->pushed[owner->bottom++ % DEQUE_CAPACITY] = parcel;
    owner->thread.operations++;
}

/* Returns false if there was nothing to pop. */
static bool pop(struct owner *owner)
{
    struct stress_parcel *parcel = deque_pop_owner(&deque);
    if (parcel == NULL) {
        if (deque_length_owner(&deque) != 0) {
            stress_fault(&stress, STRESS_BROKEN, "pop found nothing in a deque with items");
        }
        return false;
    }
    const struct stress_parcel *newest = owner->pushed[--owner->bottom % DEQUE_CAPACITY];
    const uint64_t serial = stress_parcel_empty(&stress, parcel);
    if (parcel != newest) {
        stress_fault(&stress, STRESS_DISORDERED, "popped %" PRIu64 ", not the newest", serial);
    }
    owner->thread.operations++;
    return true;
}

static void push_many(struct owner *owner, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        push(owner);
    }
}

static void pop_many(struct owner *owner, uint32_t count)
{
    for (uint32_t i = 0; i < count && pop(owner); i++) {
        stress_pause(&owner->thread.random, 64);
    }
}

/* Keeps the deque at one item or none, where pop and steal meet. */
static void push_and_pop(struct owner *owner, uint32_t count)
{
    pop_many(owner, DEQUE_CAPACITY);
    for (uint32_t i = 0; i < count; i++) {
        push(owner);
        stress_pause(&owner->thread.random, 16);
        (void)pop(owner);
    }
}

static void take_oldest(struct owner *owner, uint32_t count)
{
    void *item;
    for (uint32_t i = 0; i < count && steal(&owner->thread, &item, 1) > 0; i++) {
    }
}

static void burst(struct owner *owner)
{
    const uint32_t count = 1 + random_below(&owner->thread.random, BURST_MAX);
    switch (random_below(&owner->thread.random, 16)) {
    case 0:
        push_many(owner, DEQUE_CAPACITY + count);
        break;
    case 1:
        pop_many(owner, DEQUE_CAPACITY);
        break;
    case 2:
        spill(owner);
        break;
    case 3:
    case 4:
        take_oldest(owner, count);
        break;
    case 5:
    case 6:
        push_and_pop(owner, count);
        break;
    case 7:
    case 8:
    case 9:
    case 10:
        pop_many(owner, count);
        break;
    default:
        push_many(owner, count);
        break;
    }
}

static void run_owner(struct owner *owner, uint64_t ops)
{
    while (stress_goes_on(&stress, ops)) {
        burst(owner);
        count_operations(&owner->thread);
        stress_pause(&owner->thread.random, 4);
    }
}

static void init_deque(struct owner *owner)
{
    deque_init(&deque);
    const uint64_t top = DEQUE_TOP_MASK - random_below(&owner->thread.random, 1 << 20);
    const uint64_t version =
        ~DEQUE_TOP_MASK - DEQUE_VERSION_ONE * random_below(&owner->thread.random, 1 << 20);
    store_relaxed(&deque.head, version | top); /* not shared yet */
    store_relaxed(&deque.bottom, (uint32_t)top);
}

/* One run against `count` thieves, until `ops` operations are done in all. */
static void run_against(struct owner *owner, uint32_t count, uint64_t ops)
{
    struct thread thieves[THIEVES_MAX];
    pthread_t threads[THIEVES_MAX];
    store_relaxed(&over, 0); /* no thread yet */
    for (uint32_t i = 0; i < count; i++) {
        thieves[i] =
            (struct thread){.random = stress_stream(&stress, 10 * count + i), .number = 1 + i};
        threads[i] = stress_start_thread(run_thief, &thieves[i]);
    }
    run_owner(owner, ops);
    store_release(&over, 1); /* ends the run */
    for (uint32_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    pop_many(owner, UINT32_MAX);
    count_operations(&owner->thread);
    for (uint32_t i = 0; i < PARCELS; i++) {
        stress_parcel_expect_free(&stress, &parcels[i]);
    }
}

int main(int argc, char **argv)
{
    stress_begin(&stress, argc, argv, DEFAULT_OPS);
    static struct owner owner;
    owner.thread.random = stress_stream(&stress, 0);
    init_deque(&owner);
    for (uint32_t thieves = 1; thieves <= THIEVES_MAX; thieves++) {
        run_against(&owner, thieves, stress.ops * thieves / THIEVES_MAX);
    }
    return stress_end(&stress);
}
