/* SPDX-License-Identifier: MIT */
/* concurrent/deque.h: an owner that pushes, pops, spills and takes its oldest item, against one or
 * two thieves, in a deque of four slots.
 *
 * INV-1: every item that was pushed is returned exactly once, by one pop or one steal.
 * INV-2: a popped index never lies inside a batch that was stolen; when all is quiet, top is not
 *        beyond bottom (or the next push would be lost).
 * And a batch is what was oldest, in order. */
#include <stdlib.h>

#include "concurrent/deque.h"
#include "explore.h"
#include "tables.h"

#define ITEMS_MAX 24

static struct deque deque;
static char items[ITEMS_MAX]; /* an item is the address of one of these */
EXPLORE_OWN static uint32_t pushed;
EXPLORE_OWN static uint32_t returned[ITEMS_MAX];

static uint32_t number_of(const void *item)
{
    EXPLORE_CHECK(item != NULL, "INV-1: what is returned was pushed");
    const uintptr_t number = (uintptr_t)item - (uintptr_t)items;
    EXPLORE_CHECK(number < pushed, "INV-1: what is returned was pushed");
    return (uint32_t)number;
}

static void account(const void *item)
{
    EXPLORE_CHECK(++returned[number_of(item)] == 1, "INV-1: no item is returned twice");
}

static void account_batch(void **batch, int count)
{
    for (int i = 0; i < count; i++) {
        account(batch[i]);
        EXPLORE_CHECK(i == 0 || number_of(batch[i]) > number_of(batch[i - 1]),
                      "a batch is in order");
    }
}

static int steal(uint32_t most)
{
    void *batch[DEQUE_CAPACITY];
    const int count = deque_steal_any(&deque, batch, most);
    explore_note("stole %d", count);
    EXPLORE_CHECK(count >= DEQUE_LOST && count <= (int)most, "as many as asked for at most");
    account_batch(batch, count);
    return count;
}

/* As sched/submit.c does: a full deque gives up its older half. */
static void push(void)
{
    void *item = &items[pushed++];
    while (!deque_push_owner(&deque, item)) {
        explore_note("full");
        (void)steal(DEQUE_CAPACITY / 2);
    }
    explore_note("pushed %u", (unsigned)(pushed - 1));
}

/* The same for three at once. */
static void push_many(void)
{
    void *many[3];
    uint32_t done = 0;
    for (uint32_t i = 0; i < 3; i++) {
        many[i] = &items[pushed++];
    }
    while ((done += deque_push_many_owner(&deque, &many[done], 3 - done)) < 3) {
        explore_note("full");
        (void)steal(DEQUE_CAPACITY / 2);
    }
    explore_note("pushed up to %u", (unsigned)(pushed - 1));
}

static void pop(void)
{
    const void *item = deque_pop_owner(&deque);
    if (item != NULL) {
        account(item);
        explore_note("popped %u", (unsigned)number_of(item));
    }
}

/* As sched/find_work.c does. */
static void take_oldest(void)
{
    if (deque_length_owner(&deque) > 0) {
        (void)steal(1);
    }
}

/* P pushes (spilling if need be), M pushes three, p pops, o takes the oldest. */
static void run_owner(const void *program)
{
    for (const char *at = program; *at != '\0'; at++) {
        switch (*at) {
        case 'P':
            push();
            break;
        case 'M':
            push_many();
            break;
        case 'p':
            pop();
            break;
        case 'o':
            take_oldest();
            break;
        default:
            abort();
        }
    }
}

static void run_thief(const void *tries)
{
    for (int left = atoi(tries); left > 0; left--) {
        (void)steal(DEQUE_CAPACITY);
    }
}

/* A thief that has room for one only. */
static void run_small_thief(const void *tries)
{
    for (int left = atoi(tries); left > 0; left--) {
        (void)steal(1);
    }
}

static void setup_with(uint32_t count, uint64_t head, uint32_t bottom)
{
    deque_init(&deque);
    store_relaxed(&deque.head, head);
    store_relaxed(&deque.bottom, bottom);
    pushed = 0;
    for (uint32_t i = 0; i < ITEMS_MAX; i++) {
        returned[i] = 0;
    }
    while (pushed < count) {
        push();
    }
}

static void setup_empty(void)
{
    setup_with(0, 0, 0);
}

static void setup_one(void)
{
    setup_with(1, 0, 0);
}

static void setup_three(void)
{
    setup_with(3, 0, 0);
}

static void setup_full(void)
{
    setup_with(4, 0, 0);
}

/* Version, top and bottom are about to begin anew. */
static void setup_three_at_wrap(void)
{
    setup_with(3, ~UINT64_C(0) - 1, UINT32_MAX - 1);
}

static void setup_full_at_wrap(void)
{
    setup_with(4, ~UINT64_C(0) - 1, UINT32_MAX - 1);
}

static void finish(void)
{
    while (deque_length_owner(&deque) > 0) {
        const void *item = deque_pop_owner(&deque);
        EXPLORE_CHECK(item != NULL, "INV-2: alone, the owner gets what it sees");
        account(item);
    }
    const uint32_t top = deque_top(load_relaxed(&deque.head));
    EXPLORE_CHECK(deque_distance(top, load_relaxed(&deque.bottom)) == 0,
                  "INV-2: top is not beyond bottom");
    for (uint32_t i = 0; i < pushed; i++) {
        EXPLORE_CHECK(returned[i] == 1, "INV-1: every item is returned");
    }
}

#define OWNER(program)     EXPLORE_THREAD("owner", run_owner, program)
#define THIEF(tries)       EXPLORE_THREAD("thief", run_thief, tries)
#define OTHER_THIEF(tries) EXPLORE_THREAD("other", run_thief, tries)
#define SMALL_THIEF(tries) EXPLORE_THREAD("small", run_small_thief, tries)

#define MAY_REST NULL
#define RANDOM_MODEL(name_, setup_, ...)                                                           \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_RANDOM, .bound = 100000, .stale = 2, .setup = setup_,       \
        .threads = {__VA_ARGS__}, .finish = finish,                                                \
    }

static const struct explore_model models[] = {
    WEAK("pop_last", setup_one, finish, OWNER("pp"), THIEF("2"), OTHER_THIEF("2")),
    WEAK("pop", setup_three, finish, OWNER("ppp"), THIEF("3"), OTHER_THIEF("1")),
    ALL("pop_push", setup_three, finish, OWNER("pPpPpP"), THIEF("4")),
    ALL("pop_push_two_thieves", setup_three, finish, OWNER("pPpP"), THIEF("2"), OTHER_THIEF("1")),
    WEAK("push_from_empty", setup_empty, finish, OWNER("PPpPp"), THIEF("2"), SMALL_THIEF("1")),
    ALL("two_thieves", setup_full, finish, OWNER("ppp"), THIEF("2"), OTHER_THIEF("2")),
    WEAK("slots_reused", setup_full, finish, OWNER("ppPP"), THIEF("2"), SMALL_THIEF("1")),
    ALL("spill", setup_full, finish, OWNER("PPpPP"), THIEF("4")),
    ALL("spill_two_thieves", setup_full, finish, OWNER("PPp"), THIEF("2"), OTHER_THIEF("1")),
    WEAK("many", setup_empty, finish, OWNER("Mpp"), THIEF("2"), SMALL_THIEF("1")),
    ALL("many_spill", setup_three, finish, OWNER("MpM"), THIEF("3")),
    WEAK("many_reused", setup_full, finish, OWNER("ppM"), THIEF("2"), SMALL_THIEF("1")),
    ALL("many_at_wrap", setup_three_at_wrap, finish, OWNER("pMp"), THIEF("2"), OTHER_THIEF("1")),
    WEAK("oldest", setup_three, finish, OWNER("opoPo"), THIEF("4")),
    WEAK("oldest_two_thieves", setup_three, finish, OWNER("opo"), THIEF("2"), OTHER_THIEF("1")),
    ALL("wrap", setup_three_at_wrap, finish, OWNER("pPPpp"), THIEF("2"), OTHER_THIEF("1")),
    WEAK("wrap_spill", setup_full_at_wrap, finish, OWNER("PpP"), THIEF("2"), SMALL_THIEF("1")),
    ALL("wrap_oldest", setup_three_at_wrap, finish, OWNER("oPpo"), THIEF("2"), OTHER_THIEF("1")),
    ALL("spill_oldest", setup_full, finish, OWNER("PoPp"), THIEF("2"), SMALL_THIEF("1")),
    RANDOM_MODEL("long", setup_empty, OWNER("PPPpPMoPPppMPPpopPMpppp"), THIEF("6"),
                 SMALL_THIEF("4")),
    RANDOM_MODEL("long_at_wrap", setup_three_at_wrap, OWNER("PPpPPoPPppPPPPppPPpp"), THIEF("5"),
                 OTHER_THIEF("5")),
};

EXPLORE_MAIN(models)
