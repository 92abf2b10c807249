/* SPDX-License-Identifier: MIT */
/* process/payload.c: one payload with several owners, who read it, make more owners of it and drop
 * it. Freeing writes to the memory, so that the explorer sees a race with whoever still reads.
 *
 * INV-20: the bytes are freed once, by the last owner.
 * INV-22: nobody reads them meanwhile or after that. */
#include "process/payload.h"

#include <stdalign.h>

#include "explore.h"

#define SIZE       32 /* too long to lie inside a payload */
#define OWNERS_MAX 3
#define TYPE       7

static struct {
    alignas(max_align_t) unsigned char bytes[256];
    uint32_t freed;
} memory;

static skua_payload owners[OWNERS_MAX];
static uint32_t owner_count;

static void *allocate(void *arg, void *pointer, size_t old_size, size_t new_size, size_t alignment)
{
    (void)arg;
    (void)alignment;
    if (pointer == NULL) {
        EXPLORE_CHECK(new_size <= sizeof memory.bytes, "the model has memory");
        return memory.bytes;
    }
    explore_note("frees");
    EXPLORE_CHECK(pointer == memory.bytes && new_size == 0, "what was allocated is freed");
    EXPLORE_CHECK(++memory.freed == 1, "INV-20: the bytes are freed once");
    memset(memory.bytes, 0xdd, old_size);
    return NULL;
}

static const struct allocator allocator = {allocate, NULL};

/* ---- threads ---- */

static const uint32_t numbers[OWNERS_MAX] = {0, 1, 2};

static void read_bytes(const skua_payload *payload)
{
    const unsigned char *bytes = skua_payload_data(payload);
    for (size_t i = 0; i < SIZE; i++) {
        EXPLORE_CHECK(bytes[i] == i, "INV-22: an owner reads what was written");
    }
}

static void run_reader(const void *number)
{
    skua_payload *own = &owners[*(const uint32_t *)number];
    read_bytes(own);
    explore_note("drops its own");
    skua_payload_drop(own);
}

/* Makes one more owner, before it drops what it had. */
static void run_sharer(const void *number)
{
    skua_payload *own = &owners[*(const uint32_t *)number];
    skua_payload another;
    EXPLORE_CHECK(skua_payload_ref(own, &another) == 0, "it is shared");
    explore_note("has shared it, and drops its own");
    skua_payload_drop(own);
    read_bytes(&another);
    explore_note("drops the other");
    skua_payload_drop(&another);
}

/* ---- the beginning and the end ---- */

static void setup(uint32_t count)
{
    unsigned char bytes[SIZE];
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = (unsigned char)i;
    }
    memory.freed = 0;
    owner_count = count;
    EXPLORE_CHECK(payload_share(&allocator, TYPE, bytes, SIZE, &owners[0]) == 0,
                  "the model has memory");
    for (uint32_t i = 1; i < count; i++) {
        EXPLORE_CHECK(skua_payload_ref(&owners[0], &owners[i]) == 0, "it is shared");
    }
}

static void setup_two(void)
{
    setup(2);
}

static void setup_three(void)
{
    setup(3);
}

static void finish(void)
{
    EXPLORE_CHECK(memory.freed == 1, "INV-20: the last owner frees the bytes");
    for (uint32_t i = 0; i < owner_count; i++) {
        EXPLORE_CHECK(owners[i].storage == SKUA_PAYLOAD_EMPTY, "who has dropped it has nothing");
    }
}

#define READER(n) EXPLORE_THREAD("reader" #n, run_reader, &numbers[n])
#define SHARER(n) EXPLORE_THREAD("sharer" #n, run_sharer, &numbers[n])
#define SHARED(name_, mode_, setup_, ...)                                                          \
    {                                                                                              \
        .name = name_, .mode = mode_, .setup = setup_, .threads = {__VA_ARGS__}, .finish = finish, \
    }

static const struct explore_model models[] = {
    SHARED("two_readers", EXPLORE_ALL, setup_two, READER(0), READER(1)),
    SHARED("three_readers", EXPLORE_ALL, setup_three, READER(0), READER(1), READER(2)),
    SHARED("reader_and_sharer", EXPLORE_ALL, setup_two, READER(0), SHARER(1)),
    SHARED("two_sharers", EXPLORE_ALL, setup_two, SHARER(0), SHARER(1)),
    SHARED("reader_and_two_sharers", EXPLORE_ALL, setup_three, READER(0), SHARER(1), SHARER(2)),
};

EXPLORE_MAIN(models)
