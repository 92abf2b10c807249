/* SPDX-License-Identifier: MIT */
/* Stress of concurrent/object_pool.h: threads with a cache each take objects, hand some of them to
 * each other and give them back, in rounds over pools of many sizes, up to the limit and down to
 * nothing, while one more thread gives the memory of free objects back. No object may have two
 * holders, none may change while it is held or be younger than it was, no index may lie beyond the
 * limit, and at the end of a round every object must still be there. */
#include <inttypes.h>
#include <stdlib.h>

#include "concurrent/object_pool.h"
#include "counting_allocator.h"
#include "stress_support.h"

#define THREADS         3
#define LETTER_BOXES    16
#define LIMIT_MAX       40000 /* more than one segment */
#define ROUND_OPS_MAX   2000000
#define ROUNDS_AT_LEAST 16
#define TIDE_OPS        100000
#define DEFAULT_OPS     50000000

/* Holders of an object. Threads are 1 to THREADS. */
enum { NOBODY = 0, IN_LETTER_BOX = 100, LAST_COUNT = 101 };

/* All orders on `holder` are relaxed: it must not make the content visible, the pool must. */
struct object {
    union {
        struct pool_link link; /* while free */
        struct {
            uint64_t serial;
            uint64_t check;
        } content;
    } as;
    uint32_t index;
    atomic_u32 holder;
    uint32_t age; /* of its next use */
    unsigned char rest[36];
};
_Static_assert(sizeof(struct object) == 64, "a power of two");

struct member {
    CACHE_ALIGNED uint64_t random;
    uint32_t number;
    uint64_t serial;
    uint64_t ops; /* of all threads, when this round ends */
    struct pool_cache cache;
    uint32_t held_count;
    uint32_t held[LIMIT_MAX + 1000]; /* more, so that a fault can be reported */
};

struct trimmer {
    uint64_t random;
    uint32_t patience; /* how often it still says yes */
    uint64_t ops;
    uint64_t given; /* bytes, in all rounds */
};

static struct stress stress;
static struct object_pool pool;
static struct member members[THREADS];
static struct trimmer trimmer;
static atomic_u32 letter_boxes[LETTER_BOXES]; /* indices, or OBJECT_NONE */
static atomic_u32 next_ages[LIMIT_MAX + 1];   /* by index; relaxed, as `holder` is */

static void construct(void *pointer, uint32_t index, uint32_t floor)
{
    struct object *object = pointer;
    object->index = index;
    object->age = floor;
    store_relaxed(&object->holder, NOBODY); /* not shared yet */
}

static uint32_t age(const void *object)
{
    return ((const struct object *)object)->age;
}

static void change_holder(struct object *object, uint32_t from, uint32_t to)
{
    const uint32_t holder = load_relaxed(&object->holder); /* see struct object */
    if (holder != from) {
        stress_fault(&stress, STRESS_DOUBLED,
                     "object %" PRIu32 ", held by %" PRIu32 " and %" PRIu32, object->index, holder,
                     from == NOBODY ? to : from);
    }
    store_relaxed(&object->holder, to); /* see struct object */
}

static void fill(struct object *object, uint64_t serial)
{
    object->as.content.serial = serial;
    object->as.content.check = random_mix(serial);
}

static void check_content(const struct object *object)
{
    if (object->as.content.check != random_mix(object->as.content.serial)) {
        stress_fault(&stress, STRESS_CORRUPT, "object %" PRIu32, object->index);
    }
}

static void check_index(const struct object *object, uint32_t index)
{
    if (index == OBJECT_NONE || index > pool.shape.limit || object->index != index) {
        stress_fault(&stress, STRESS_BROKEN, "index %" PRIu32 " with a limit of %" PRIu32, index,
                     pool.shape.limit);
    }
}

static void grow_older(struct object *object, uint32_t index)
{
    const uint32_t next_age = load_relaxed(&next_ages[index]); /* see next_ages */
    if (object->age < next_age) {
        stress_fault(&stress, STRESS_DOUBLED, "object %" PRIu32 " at age %" PRIu32, index,
                     object->age);
    }
    store_relaxed(&next_ages[index], ++object->age); /* see next_ages */
}

/* Returns false if the limit is reached. */
static bool take(struct member *member)
{
    uint32_t index;
    const enum object_pool_result result =
        object_acquire_owner(&pool, pool.shape.layout, &member->cache, &index);
    if (result == OBJECT_POOL_NO_MEMORY) {
        stress_fault(&stress, STRESS_BROKEN, "no memory");
    }
    if (result != OBJECT_POOL_OK) {
        return false;
    }
    struct object *object = object_pool_at(&pool, index);
    check_index(object, index);
    change_holder(object, NOBODY, member->number);
    grow_older(object, index);
    fill(object, ++member->serial);
    member->held[member->held_count++] = index;
    return true;
}

/* Takes a random one out of the own objects; the caller knows that there is one. */
static struct object *pick_held(struct member *member)
{
    const uint32_t at = random_below(&member->random, member->held_count);
    const uint32_t index = member->held[at];
    member->held[at] = member->held[--member->held_count];
    struct object *object = object_pool_at(&pool, index);
    check_content(object);
    return object;
}

static void give(struct member *member)
{
    struct object *object = pick_held(member);
    change_holder(object, member->number, NOBODY);
    object_release_owner(&pool, pool.shape.layout, &member->cache, object->index);
}

/* The index of an object to be put into a letter box; none if there is none. */
static uint32_t pick_letter(struct member *member)
{
    if (member->held_count == 0) {
        return OBJECT_NONE;
    }
    struct object *object = pick_held(member);
    change_holder(object, member->number, IN_LETTER_BOX);
    return object->index;
}

/* Puts an object of its own, or none, into a letter box and keeps what lay there. */
static void migrate(struct member *member)
{
    const uint32_t sent = pick_letter(member);
    atomic_u32 *box = &letter_boxes[random_below(&member->random, LETTER_BOXES)];
    const uint32_t index = exchange_acq_rel(box, sent); /* hands the content over */
    if (index != OBJECT_NONE) {
        struct object *received = object_pool_at(&pool, index);
        change_holder(received, IN_LETTER_BOX, member->number);
        check_content(received);
        member->held[member->held_count++] = index;
    }
}

/* When nobody holds more than a few objects, so that whole pages are free. */
static bool is_ebb(void)
{
    return stress_done(&stress) / TIDE_OPS % 2 == 1;
}

/* Moves towards a number of held objects that is drawn anew each time. */
static uint32_t wander(struct member *member)
{
    const uint32_t most = is_ebb() ? 1 : pool.shape.limit;
    const uint32_t target = random_below(&member->random, most + 1);
    uint32_t operations = 0;
    while (member->held_count < target && take(member)) {
        operations++;
        stress_pause(&member->random, 256);
    }
    while (member->held_count > target) {
        give(member);
        operations++;
        stress_pause(&member->random, 256);
    }
    for (uint32_t i = 0; i < LETTER_BOXES; i++) {
        migrate(member);
        operations++;
    }
    return operations;
}

/* So that pools of one object are busy too: few operations each, but many. */
static uint32_t flutter(struct member *member)
{
    uint32_t operations = 0;
    for (uint32_t i = random_below(&member->random, 200); i > 0; i--) {
        const bool up = random_below(&member->random, 2) == 0;
        if (up ? take(member) : member->held_count > 0) {
            operations++;
            if (!up) {
                give(member);
            }
        }
    }
    return operations;
}

static void *run_member(void *arg)
{
    struct member *member = arg;
    while (stress_goes_on(&stress, member->ops)) {
        const bool far = random_below(&member->random, 8) == 0;
        stress_count(&stress, member->number, far ? wander(member) : flutter(member));
        stress_pause(&member->random, 4);
    }
    while (member->held_count > 0) {
        give(member);
    }
    return NULL;
}

static bool is_patient(void *arg)
{
    struct trimmer *self = arg;
    if (self->patience == 0) {
        return false;
    }
    self->patience--;
    return true;
}

/* Half of the trims are ended early, anywhere; takers in need end more of them. */
static void trim(struct trimmer *self, bool is_ended_early)
{
    const uint32_t questions = 1 + 2 * object_pool_free_chains(&pool);
    self->patience = is_ended_early ? random_below(&self->random, questions) : UINT32_MAX;
    self->given += object_pool_trim_any(&pool, is_patient, self);
}

/* The members look up only what they own, so every moment is one at which a trim may begin. */
static void *run_trimmer(void *arg)
{
    struct trimmer *self = arg;
    while (stress_goes_on(&stress, self->ops)) {
        trim(self, random_below(&self->random, 2) == 0);
        stress_pause(&self->random, 1);
    }
    return NULL;
}

static void empty_letter_boxes(struct member *member)
{
    for (uint32_t i = 0; i < LETTER_BOXES; i++) {
        const uint32_t index = exchange_acq_rel(&letter_boxes[i], OBJECT_NONE);
        if (index != OBJECT_NONE) {
            struct object *object = object_pool_at(&pool, index);
            check_content(object);
            change_holder(object, IN_LETTER_BOX, NOBODY);
            object_release_owner(&pool, pool.shape.layout, &member->cache, index);
        }
    }
}

/* What is not in the other caches can be taken with one, each object once, up to the limit. */
static void check_accounts(struct member *member)
{
    uint32_t found = 0;
    for (uint32_t index; object_acquire_owner(&pool, pool.shape.layout, &member->cache, &index) ==
                         OBJECT_POOL_OK;) {
        struct object *object = object_pool_at(&pool, index);
        check_index(object, index);
        change_holder(object, NOBODY, LAST_COUNT);
        found++;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        found += members[i].cache.active.count + members[i].cache.spare.count;
    }
    if (found != pool.shape.limit) {
        stress_fault(&stress, found < pool.shape.limit ? STRESS_LOST : STRESS_DOUBLED,
                     "%" PRIu32 " objects of %" PRIu32, found, pool.shape.limit);
    }
}

/* Without caches, with small ones, with full ones; one segment or two. */
static uint32_t random_limit(uint64_t *random)
{
    switch (random_below(random, 4)) {
    case 0:
        return 1 + random_below(random, 128 * THREADS - 1);
    case 1:
    case 2:
        return 128 * THREADS * (1 + random_below(random, OBJECT_POOL_BATCH_MAX));
    default:
        return LIMIT_MAX;
    }
}

static void init_pool(const struct counting_allocator *memory, uint64_t *random)
{
    const struct object_pool_shape shape = {
        .layout = {sizeof(struct object), offsetof(struct object, as.link)},
        .limit = random_limit(random),
        .cache_count = THREADS,
        .construct = construct,
        .age = age,
        .age_max = UINT32_MAX,
    };
    if (!object_pool_init(&pool, &memory->allocator, &shape)) {
        abort();
    }
}

static void run_round(uint64_t *random, uint64_t ops)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    init_pool(&memory, random);
    for (uint32_t i = 0; i < THREADS; i++) {
        members[i].random = random_next(random);
        members[i].number = 1 + i;
        members[i].ops = ops;
        members[i].cache = (struct pool_cache){{0}, {0}};
    }
    for (uint32_t i = 0; i <= LIMIT_MAX; i++) {
        store_relaxed(&next_ages[i], 0); /* no thread runs */
    }
    trimmer.random = random_next(random);
    trimmer.ops = ops;
    const pthread_t trimming = stress_start_thread(run_trimmer, &trimmer);
    stress_run_threads(THREADS, run_member, members, sizeof *members);
    (void)pthread_join(trimming, NULL);
    empty_letter_boxes(&members[0]);
    trim(&trimmer, false);
    check_accounts(&members[0]);
    object_pool_deinit(&pool);
    if (!counting_allocator_is_clean(&memory)) {
        stress_fault(&stress, STRESS_BROKEN, "the pool has not released its memory");
    }
}

int main(int argc, char **argv)
{
    stress_begin(&stress, argc, argv, DEFAULT_OPS);
    uint64_t random = stress_stream(&stress, 0);
    uint64_t round_ops = stress.ops / ROUNDS_AT_LEAST + 1;
    round_ops = round_ops < ROUND_OPS_MAX ? round_ops : ROUND_OPS_MAX;
    while (stress_goes_on(&stress, stress.ops)) {
        run_round(&random, stress_done(&stress) + round_ops);
    }
    if (trimmer.given == 0) {
        stress_fault(&stress, STRESS_BROKEN, "nothing was ever trimmed");
    }
    return stress_end(&stress);
}
