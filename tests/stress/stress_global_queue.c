/* SPDX-License-Identifier: MIT */
/* Stress of concurrent/global_queue.h: pushers of single items and chains against poppers of
 * batches. Every item must come out exactly once, with its content, and the items of one pusher
 * must come in order to each popper. The length is never more than there are items. */
#include <inttypes.h>
#include <sched.h>

#include "concurrent/global_queue.h"
#include "stress_support.h"

#define PUSHERS          3
#define POPPERS          2
#define ITEMS_PER_PUSHER 1024
#define CHAIN_MAX        16
#define BATCH_MAX        17
#define DEFAULT_OPS      60000000

struct item {
    struct queue_link link;
    uint32_t pusher;
    struct stress_parcel parcel;
};

struct pusher {
    CACHE_ALIGNED uint64_t random;
    uint32_t number;
    uint64_t serial;
    uint32_t cursor; /* where to look for a free item */
    struct item items[ITEMS_PER_PUSHER];
};

struct popper {
    CACHE_ALIGNED uint64_t random;
    uint32_t number;
    uint64_t last[PUSHERS]; /* serials */
};

static struct stress stress;
static struct global_queue queue;
static struct pusher pushers[PUSHERS];
static struct popper poppers[POPPERS];
static atomic_u32 pushers_left = PUSHERS;

/* The items of a pusher are freed almost in the order they were pushed, so the next one is it. */
static struct item *take_free(struct pusher *pusher)
{
    struct item *item = &pusher->items[pusher->cursor % ITEMS_PER_PUSHER];
    if (!stress_parcel_is_free(&item->parcel)) {
        return NULL;
    }
    pusher->cursor++;
    return item;
}

/* Pushes a chain of up to `most` items; returns how many there were. */
static uint32_t push_chain(struct pusher *pusher, uint32_t most)
{
    struct item *oldest = NULL;
    struct item *newest = NULL;
    uint32_t count = 0;
    for (struct item *item; count < most && (item = take_free(pusher)) != NULL; count++) {
        stress_parcel_fill(&item->parcel, ++pusher->serial);
        item->pusher = pusher->number;
        if (newest == NULL) {
            oldest = item;
        } else {
            item->link.next = &newest->link;
        }
        newest = item;
    }
    if (count > 0) {
        global_queue_push_any(&queue, &newest->link, &oldest->link);
    }
    return count;
}

static void *run_pusher(void *arg)
{
    struct pusher *pusher = arg;
    while (stress_goes_on(&stress, stress.ops)) {
        const bool single = random_below(&pusher->random, 2) == 0;
        const uint32_t most = single ? 1 : 1 + random_below(&pusher->random, CHAIN_MAX);
        const uint32_t count = push_chain(pusher, most);
        if (count == 0) {
            (void)sched_yield(); /* all items are under way */
        }
        stress_count(&stress, pusher->number, count);
        stress_pause(&pusher->random, 16);
    }
    (void)fetch_sub_acq_rel(&pushers_left, 1); /* after the last push */
    return NULL;
}

static void check_sorted(void)
{
    const uint32_t sorted = load_relaxed(&queue.sorted); /* under way, or not */
    if (sorted > PUSHERS * ITEMS_PER_PUSHER) {
        stress_fault(&stress, STRESS_BROKEN, "%" PRIu32 " are sorted", sorted);
    }
}

static void empty(struct popper *popper, struct item *item)
{
    uint64_t *last = &popper->last[item->pusher];
    const uint64_t serial = stress_parcel_empty(&stress, &item->parcel);
    if (serial <= *last) {
        stress_fault(&stress, STRESS_DISORDERED, "%" PRIu64 " after %" PRIu64, serial, *last);
    }
    *last = serial;
}

static void *run_popper(void *arg)
{
    struct popper *popper = arg;
    struct queue_link *links[BATCH_MAX];
    for (;;) {
        const bool last_look = load_acquire(&pushers_left) == 0; /* all pushes are done */
        const uint32_t most = 1 + random_below(&popper->random, BATCH_MAX);
        const uint32_t sharers = 1 + random_below(&popper->random, POPPERS);
        const uint32_t count = global_queue_pop_any(&queue, links, most, sharers);
        for (uint32_t i = 0; i < count; i++) {
            empty(popper, CONTAINER_OF(links[i], struct item, link));
        }
        stress_count(&stress, PUSHERS + popper->number, count);
        if (count == 0 && last_look) {
            return NULL;
        }
        if (count == 0) {
            (void)sched_yield();
        }
        check_sorted();
        stress_pause(&popper->random, 16);
    }
}

static void check_end(void)
{
    if (global_queue_has_items_recheck(&queue)) {
        stress_fault(&stress, STRESS_BROKEN, "the empty queue is not empty");
    }
    for (uint32_t i = 0; i < PUSHERS; i++) {
        for (uint32_t j = 0; j < ITEMS_PER_PUSHER; j++) {
            stress_parcel_expect_free(&stress, &pushers[i].items[j].parcel);
        }
    }
}

int main(int argc, char **argv)
{
    stress_begin(&stress, argc, argv, DEFAULT_OPS);
    global_queue_init(&queue);
    pthread_t threads[PUSHERS];
    for (uint32_t i = 0; i < PUSHERS; i++) {
        pushers[i].random = stress_stream(&stress, i);
        pushers[i].number = i;
        threads[i] = stress_start_thread(run_pusher, &pushers[i]);
    }
    for (uint32_t i = 0; i < POPPERS; i++) {
        poppers[i].random = stress_stream(&stress, PUSHERS + i);
        poppers[i].number = i;
    }
    stress_run_threads(POPPERS, run_popper, poppers, sizeof *poppers);
    for (uint32_t i = 0; i < PUSHERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    check_end();
    global_queue_deinit(&queue);
    return stress_end(&stress);
}
