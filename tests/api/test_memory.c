/* SPDX-License-Identifier: MIT */
/* Memory: what belongs to a process and ends with it, and what payloads carry to one or to many. */
#include <stdlib.h>

#include "desk.h"
#include "exits.h"

#define REASON (SKUA_E_USER - 4)
#define LARGE  ((size_t)1 << 24) /* more than the pools of a small program take */

static uint64_t live_bytes(void)
{
    return counting_allocator_live_bytes(&world->api->memory);
}

/* ---- memory of a process ---- */

/* Each byte is compared with the one before it: a loop takes minutes with a sanitizer. */
static bool is_filled(const unsigned char *bytes, size_t size, unsigned char value)
{
    return bytes[0] == value && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* The n-th block that an actor owns. */
struct block {
    size_t size;
    unsigned char *bytes;
};

static int get_block(struct turn *turn, const struct act *act)
{
    struct block *block = act->arg;
    void *memory = turn;
    const int error = skua_own_alloc(turn->ctx, block->size, &memory);
    block->bytes = memory;
    if (error != 0) {
        return memory == NULL ? error : REASON;
    }
    if (!is_filled(memory, block->size, 0) || (uintptr_t)memory % _Alignof(max_align_t) != 0) {
        return REASON;
    }
    memset(memory, 0xcc, block->size);
    return 0;
}

static struct act gets(struct block *block)
{
    return does(get_block, block);
}

static int put_block(struct turn *turn, const struct act *act)
{
    const struct block *block = act->arg;
    return skua_own_free(turn->ctx, block->bytes);
}

static struct act puts_back(struct block *block)
{
    return does(put_block, block);
}

/* That it is as the process left it. */
static int check_block(struct turn *turn, const struct act *act)
{
    (void)turn;
    const struct block *block = act->arg;
    return is_filled(block->bytes, block->size, 0xcc) ? 0 : REASON;
}

static struct act still_has(struct block *block)
{
    return does(check_block, block);
}

enum { BLOCKS = 3 };

/* A process that owns a large block since its init and more since its first step, looks at them in
 * its close, and does not free them. */
static struct actor *owner_new(struct block *blocks, struct script script)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i].size = i == 0 ? LARGE : 8 * i + 1;
    }
    struct act acts[8] = {gets(&blocks[1]), gets(&blocks[2])};
    for (size_t i = 0; i < script.count; i++) {
        acts[2 + i] = script.acts[i];
    }
    struct actor *actor = actor_new(script_copy(acts, 2 + script.count));
    actor->type.cancel = SKUA_CANCEL_END;
    actor->in_init = ACTS(gets(&blocks[0]));
    actor->in_close = ACTS(still_has(&blocks[0]));
    return actor;
}

/* That nothing of it is left after its end, while the runtime runs on. */
static void check_owner_ends(struct actor *owner, uint64_t before)
{
    world_await_live(0);
    assert_int_equal(owner->closes, 1);
    assert_true(live_bytes() < before + LARGE);
    world_close();
}

TEST(own_memory_is_freed_when_the_process_ends_by_itself)
{
    const struct script ends[] = {ACTS(finishes(1)), ACTS(fails(REASON)), ACTS(fails(1)),
                                  ACTS(sleeps(1, 0), awaits(1), finishes(1))};
    FOR_ROWS (end, ends) {
        struct block blocks[BLOCKS] = {0};
        world_open();
        const uint64_t before = live_bytes();
        struct actor *owner = owner_new(blocks, *end);
        actor_submit(owner);
        check_owner_ends(owner, before);
    }
}

TEST(own_memory_is_freed_when_the_process_is_ended)
{
    for (int kill = 0; kill < 2; kill++) {
        struct block blocks[BLOCKS] = {0};
        world_open();
        const uint64_t before = live_bytes();
        struct actor *owner = owner_new(blocks, NO_ACTS);
        actor_submit(owner);
        actor_await_state(owner, SKUA_PROCESS_IDLE);
        assert_true(live_bytes() >= before + LARGE);
        assert_int_equal(kill ? world_terminate(owner->pid) : world_cancel(owner->pid, 0), 0);
        check_owner_ends(owner, before);
    }
}

TEST(own_memory_is_freed_by_the_stop)
{
    struct block blocks[BLOCKS] = {0};
    world_open();
    struct actor *owner = owner_new(blocks, NO_ACTS);
    actor_submit(owner);
    world_close(); /* which finds what is left */
}

TEST(own_memory_is_freed_after_an_init_that_fails)
{
    for (int inside = 0; inside < 2; inside++) {
        struct block blocks[BLOCKS] = {0};
        world_open();
        const uint64_t before = live_bytes();
        struct actor *owner = owner_new(blocks, NO_ACTS);
        owner->init_returns = REASON;
        if (inside) {
            assert_result(actor_run(actor_new(ACTS(refused(spawns(owner), REASON), finishes(0)))),
                          0);
        } else {
            assert_int_equal(actor_try_submit(owner), REASON);
        }
        check_owner_ends(owner, before);
    }
}

/* Its open yields move when a process first owns memory. */
TEST(own_memory_leaves_open_yields_alone)
{
    struct block block = {.size = 50};
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *actor = actor_start(
        ACTS(for_each_tag(3, yields(0, DESK_KEEP, 0, 0)), continues(1), gets(&block), cancels(1),
             expects(failure(1, SKUA_E_CANCELLED)), expects(completion_of(0, DESK_RESULT, 10)),
             puts_back(&block), expects(completion_of(2, DESK_RESULT, 12)), finishes(0)));
    actor_await_seen(actor, 1);
    assert_int_equal(desk_complete(desk, 0, 0, 10), 0);
    actor_await_seen(actor, 2);
    assert_int_equal(desk_complete(desk, 2, 0, 12), 0);
    actor_await_end(actor);
}

TEST(own_memory_is_limited_by_the_type)
{
    struct block most = {.size = 600};
    struct block rest = {.size = 400};
    struct block more = {.size = 401};
    struct block one = {.size = 1};
    struct block all = {.size = SIZE_MAX};
    world_open();
    for (int i = 0; i < 2; i++) { /* each process for itself */
        struct actor *actor =
            actor_new(ACTS(refused(gets(&all), SKUA_E_OWN_LIMIT), gets(&most),
                           refused(gets(&more), SKUA_E_OWN_LIMIT), gets(&rest),
                           refused(gets(&one), SKUA_E_OWN_LIMIT), still_has(&most),
                           puts_back(&most), gets(&more), still_has(&rest), finishes(0)));
        actor->type.own_limit = 1000;
        assert_result(actor_run(actor), 0);
    }
}

TEST(own_memory_without_a_limit_is_limited_by_the_allocator)
{
    struct block sizes[] = {{SIZE_MAX, NULL}, {SIZE_MAX / 2, NULL}, {PTRDIFF_MAX - 8, NULL}};
    struct block block = {.size = LARGE};
    world_open();
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct actor *actor = actor_new(ACTS(refused(gets(&sizes[i]), SKUA_E_NO_MEMORY),
                                             gets(&block), still_has(&block), finishes(0)));
        assert_result(actor_run(actor), 0);
    }
}

static int get_without_memory(struct turn *turn, const struct act *act)
{
    counting_allocator_fail_from(&world->api->memory, 1);
    const int error = perform(turn, gets(act->arg));
    counting_allocator_fail_never(&world->api->memory);
    return error;
}

TEST(own_memory_that_is_not_there_is_refused)
{
    struct block block = {.size = LARGE};
    struct block nothing = {.size = 0};
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *actor =
        actor_new(ACTS(refused(does(get_without_memory, &block), SKUA_E_NO_MEMORY),
                       refused(gets(&nothing), SKUA_E_INVALID), gets(&block), finishes(0)));
    assert_result(actor_run(actor), 0);
}

TEST(own_memory_may_be_freed_in_any_order)
{
    static const size_t orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}};
    FOR_ROWS (order, orders) {
        struct block blocks[4] = {{LARGE, NULL}, {LARGE, NULL}, {LARGE, NULL}, {LARGE, NULL}};
        struct block none = {0};
        world_open();
        const uint64_t before = live_bytes();
        struct act acts[13];
        for (size_t i = 0; i < 4; i++) {
            acts[i] = gets(&blocks[i]);
            acts[4 + 2 * i] = still_has(&blocks[(*order)[i]]);
            acts[5 + 2 * i] = puts_back(&blocks[(*order)[i]]);
        }
        acts[12] = puts_back(&none); /* null is ignored */
        struct actor *actor = actor_start(script_copy(acts, COUNT_OF(acts)));
        tally_wait(&actor->performed, 1);
        assert_true(live_bytes() < before + LARGE);
        world_close();
    }
}

TEST(own_memory_of_others_is_not_freed)
{
    struct block theirs = {.size = 100};
    struct block mine = {.size = 100};
    world_open();
    struct actor *owner =
        actor_start(ACTS(gets(&theirs), awaits(1), still_has(&theirs), finishes(0)));
    actor_await_state(owner, SKUA_PROCESS_IDLE);
    struct actor *thief = actor_new(ACTS(refused(puts_back(&theirs), SKUA_E_INVALID), gets(&mine),
                                         refused(puts_back(&theirs), SKUA_E_INVALID), finishes(0)));
    assert_result(actor_run(thief), 0);
    assert_int_equal(world_send(owner->pid, skua_nothing()), 0);
    actor_await_end(owner);
}

/* ---- memory to send ---- */

struct parcel {
    size_t size;
    int error;
};

static int send_parcel(struct turn *turn, const struct act *act)
{
    const struct parcel *parcel = act->arg;
    skua_payload payload;
    void *data = turn;
    const int error = skua_payload_alloc(turn->ctx, 3, parcel->size, &data, &payload);
    if (error != 0) {
        return data == NULL && payload.storage == SKUA_PAYLOAD_EMPTY ? error : REASON;
    }
    memset(data, 0xcc, parcel->size);
    return skua_send_from(turn->ctx, act->peer->pid, &payload);
}

static int open_parcel(struct turn *turn, const struct act *act)
{
    const struct parcel *parcel = act->arg;
    for (size_t i = turn_starts(turn); i < turn->count; i++) {
        const void *data;
        const skua_payload *payload = &turn->events[i].payload;
        const int error = skua_payload_get_bytes(payload, 3, parcel->size, &data);
        return error == 0 && !is_filled(data, parcel->size, 0xcc) ? REASON : error;
    }
    return ACT_WAITS;
}

TEST(payload_of_new_memory_arrives_as_it_was_filled)
{
    static const size_t sizes[] = {1, 8, 24, 25, 4096, LARGE};
    FOR_ROWS (size, sizes) {
        struct parcel parcel = {.size = *size};
        world_open_with((skua_runtime_config){.payload_limit = LARGE});
        struct actor *reader = actor_start(ACTS(does(open_parcel, &parcel), finishes(0)));
        struct actor *writer = actor_new(ACTS(
            (struct act){.perform = send_parcel, .peer = reader, .arg = &parcel}, finishes(0)));
        assert_result(actor_run(writer), 0);
        actor_await_end(reader);
    }
}

static int alloc_nowhere(struct turn *turn, const struct act *act)
{
    (void)act;
    void *data;
    skua_payload payload;
    return skua_payload_alloc(turn->ctx, 0, 1, NULL, &payload) == SKUA_E_INVALID &&
                   skua_payload_alloc(turn->ctx, 0, 1, &data, NULL) == SKUA_E_INVALID &&
                   skua_payload_alloc(NULL, 0, 1, &data, &payload) == SKUA_E_INVALID
               ? 0
               : REASON;
}

TEST(payload_of_new_memory_may_be_refused)
{
    struct parcel empty = {.size = 0};
    struct parcel large = {.size = LARGE + 1};
    world_open_with((skua_runtime_config){.payload_limit = LARGE});
    struct act sends_empty = {.perform = send_parcel, .arg = &empty};
    struct act sends_large = {.perform = send_parcel, .arg = &large};
    assert_result(actor_run(actor_new(ACTS(refused(sends_empty, SKUA_E_INVALID),
                                           refused(sends_large, SKUA_E_PAYLOAD_SIZE),
                                           does(alloc_nowhere, NULL), finishes(0)))),
                  0);
}

/* ---- one thing to many ---- */

#define READERS 50

static unsigned char *filled(size_t size)
{
    unsigned char *bytes = test_alloc(size);
    memset(bytes, 0xcc, size);
    return bytes;
}

TEST(shared_payload_reaches_many_and_is_freed_once)
{
    struct parcel parcel = {.size = LARGE};
    struct actor *readers[READERS];
    skua_payload first;
    skua_payload another;
    world_open();
    const uint64_t before = live_bytes();
    assert_int_equal(
        skua_payload_shared(world_runtime(), 3, filled(parcel.size), parcel.size, &first), 0);
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = actor_start(ACTS(does(open_parcel, &parcel), finishes(0)));
        assert_int_equal(skua_payload_ref(&first, &another), 0);
        assert_ptr_equal(skua_payload_data(&another), skua_payload_data(&first));
        assert_int_equal(world_send(readers[i]->pid, another), 0);
    }
    world_await_live(0);
    assert_in_range(live_bytes(), before + LARGE, before + 2 * LARGE - 1); /* one copy */
    skua_payload_drop(&first);
    assert_true(live_bytes() < before + LARGE);
}

TEST(shared_payload_goes_with_its_last_reader)
{
    skua_payload first;
    skua_payload another;
    world_open();
    const uint64_t before = live_bytes();
    struct actor *keeper = actor_start_held();
    assert_int_equal(skua_payload_shared(world_runtime(), 3, filled(LARGE), LARGE, &first), 0);
    assert_int_equal(skua_payload_ref(&first, &another), 0);
    assert_int_equal(world_send(keeper->pid, first), 0);
    skua_payload_drop(&another);
    assert_true(live_bytes() >= before + LARGE);
    assert_int_equal(world_terminate(keeper->pid), 0); /* it never reads it */
    actor_let_go(keeper);
    world_await_live(0);
    assert_true(live_bytes() < before + LARGE);
}

TEST(payload_that_owns_nothing_can_be_had_again)
{
    static const char text[] = "a constant that is longer than what fits inside";
    skua_payload copies[3];
    world_open();
    assert_int_equal(skua_payload_shared(world_runtime(), 1, text, 10, &copies[0]), 0);
    assert_int_equal(skua_payload_copy(world_runtime(), 1, text, 10, &copies[1]), 0);
    copies[2] = skua_payload_static(2, text, sizeof text);
    for (size_t i = 0; i < COUNT_OF(copies); i++) {
        skua_payload again;
        assert_int_equal(skua_payload_ref(&copies[i], &again), 0);
        assert_int_equal(again.type, copies[i].type);
        assert_int_equal(skua_payload_size(&again), skua_payload_size(&copies[i]));
        assert_memory_equal(skua_payload_data(&again), text, skua_payload_size(&again));
        skua_payload_drop(&again);
        skua_payload_drop(&copies[i]);
    }
    const skua_payload empty = skua_payload_empty(9);
    skua_payload again;
    assert_int_equal(skua_payload_ref(&empty, &again), 0);
    assert_int_equal(again.type, 9);
}

TEST(payload_with_one_owner_cannot_be_had_again)
{
    struct tracked item = {0};
    skua_payload owned = tracked_payload(1, &item);
    skua_payload pointer = skua_payload_pointer(1, &item, owned.as.owned.drop);
    skua_payload taken = skua_payload_u64(1, 2);
    skua_payload another = skua_payload_u64(1, 2);
    (void)skua_payload_take(&taken);
    assert_int_equal(skua_payload_ref(&owned, &another), SKUA_E_NOT_SHARED);
    assert_int_equal(another.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(skua_payload_ref(&pointer, &another), SKUA_E_NOT_SHARED);
    assert_int_equal(skua_payload_ref(&taken, &another), SKUA_E_TAKEN);
    assert_int_equal(skua_payload_ref(NULL, &another), SKUA_E_INVALID);
    assert_int_equal(skua_payload_ref(&owned, NULL), SKUA_E_INVALID);
    assert_drops(&item, 1, 0);
}

TEST(shared_payload_may_be_refused)
{
    skua_payload payload = skua_payload_u64(1, 2);
    world_open_with((skua_runtime_config){.payload_limit = 100});
    skua_runtime *runtime = world_runtime();
    assert_int_equal(skua_payload_shared(runtime, 1, filled(101), 101, &payload),
                     SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(skua_payload_shared(runtime, 1, NULL, 100, &payload), SKUA_E_INVALID);
    assert_int_equal(skua_payload_shared(NULL, 1, filled(100), 100, &payload), SKUA_E_INVALID);
    assert_int_equal(skua_payload_shared(runtime, 1, filled(100), 100, NULL), SKUA_E_INVALID);
    counting_allocator_fail_from(&world->api->memory, 1);
    assert_int_equal(skua_payload_shared(runtime, 1, filled(100), 100, &payload), SKUA_E_NO_MEMORY);
    counting_allocator_fail_never(&world->api->memory);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
}

/* ---- memory of the C library ---- */

/* A leak or a second free is for the sanitizer to find. */
TEST(payload_of_malloc_is_freed_wherever_it_ends)
{
    world_open();
    struct actor *reader = actor_start(ACTS(awaits(1), finishes(0)));
    struct actor *held = actor_start_held();
    skua_payload dropped = skua_payload_owned(1, malloc(100), 100, skua_drop_free);
    assert_int_equal(
        world_send(reader->pid, skua_payload_owned(1, malloc(100), 100, skua_drop_free)), 0);
    assert_int_equal(world_send(held->pid, skua_payload_owned(1, malloc(100), 100, skua_drop_free)),
                     0);
    skua_payload_drop(&dropped);
    assert_int_equal(world_terminate(held->pid), 0);
    actor_let_go(held);
    world_await_live(0);
    skua_drop_free(NULL, 0);
}
