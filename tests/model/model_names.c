/* SPDX-License-Identifier: MIT */
/* relations/names.h: readers without a lock against writers, in two shards whose entries are reused
 * as soon as more than half of them are idle, and whose tables and segments grow with every other
 * name.
 *
 * INV-24: a name leads to its holder or to nobody, never to the holder of another name, by text and
 *         by handle; one that is held all the time is found; a release by who is no longer the
 *         holder changes nothing.
 * INV-25: whoever waits for a name without a holder is handed to the next one, once.
 * INV-20: each waiter is given back exactly once.
 * INV-21: no more names than the limit allows, and no fewer.
 *
 * The PID of a holder tells the name: ten times the number of its letter, and one to nine. */
#include <string.h>

#include "dispatch/call.h"
#include "explore.h"
#include "relations/names.h"

#define ARENA_SIZE  (64 << 10)
#define WAITERS_MAX 3

/* The fourth entry of shard 0 is the first of this segment. */
#define THIRD_SEGMENT (UINT32_C(3) << NAMES_SHARD_BITS)

/* The names, by letter, and where they are with this seed. When the entry of `a` becomes that of
 * `b`, its words are those of `c` for a moment. */
#define SEED 22887
static const struct {
    const char *text;
    uint32_t shard;
    uint32_t chain; /* in a table of four */
} letters[] = {
    ['a' - 'a'] = {"one-way-street", 0, 0}, ['b' - 'a'] = {"two-way-mirror", 0, 1},
    ['c' - 'a'] = {"two-way-street", 0, 0}, ['d' - 'a'] = {"two-way", 1, UINT32_MAX},
    ['e' - 'a'] = {"one-way-mirror", 0, 1}, ['f' - 'a'] = {"one-way", 0, 2},
};

static struct names names;
static uint32_t entries[COUNT_OF(letters)]; /* of those that the setup has registered */
static struct name_handle handle;           /* of a name that the setup has chosen */
static atomic_u32 told;                     /* of what has been done before */

static struct object_pool events;
static struct pool_cache cache;
EXPLORE_OWN static struct waiting {
    uint32_t call;
    uint32_t waiter;
    uint32_t guard;
    bool is_pending;
    bool has_ended;
    uint32_t given; /* how often the waiter came back */
} waiting[WAITERS_MAX];

/* ---- memory ---- */

/* What a schedule has allocated is forgotten with it, also if it does not come to its end. */
static _Alignas(CACHE_LINE) char arena[ARENA_SIZE];
EXPLORE_OWN static size_t arena_used;

static void *allocate(void *arg, void *pointer, size_t old_size, size_t new_size, size_t alignment)
{
    (void)arg;
    (void)old_size;
    if (new_size == 0) {
        return NULL;
    }
    const size_t start = (arena_used + alignment - 1) / alignment * alignment;
    EXPLORE_CHECK(pointer == NULL && start + new_size <= ARENA_SIZE, "the arena is large enough");
    arena_used = start + new_size;
    for (size_t i = 0; i < new_size; i += sizeof(uint32_t)) {
        *(volatile uint32_t *)&arena[start + i] = 0; /* for the explorer: it sees no memset */
    }
    return &arena[start];
}

static const struct allocator allocator = {.function = allocate};

/* ---- names and PIDs ---- */

static const char *text_of(char letter)
{
    return letters[letter - 'a'].text;
}

static skua_pid pid_of(char letter, char digit)
{
    return (skua_pid){(uint64_t)(letter - 'a' + 1) * 10 + (uint64_t)(digit - '0')};
}

static bool is_pid_of(char letter, skua_pid pid)
{
    return pid.bits / 10 == (uint64_t)(letter - 'a' + 1);
}

static uint32_t hold(char letter, char digit)
{
    struct name_outcome outcome;
    const int error = names_register_any(&names, text_of(letter), pid_of(letter, digit), &outcome);
    EXPLORE_CHECK(error == 0, "the name is free, and there is memory");
    return outcome.entry;
}

/* ---- programs of threads: letters and what is done with them ---- */

static void check_found(char letter, int error, skua_pid pid)
{
    explore_note("%c: %d, %u", letter, error, (unsigned)pid.bits);
    EXPLORE_CHECK(error != 0 || is_pid_of(letter, pid), "INV-24: the holder of this name");
}

static int find(char letter)
{
    skua_pid pid = {0};
    const int error = names_find_any(&names, text_of(letter), &pid);
    EXPLORE_CHECK(error == 0 || error == SKUA_E_NO_PROCESS, "there is one or none");
    check_found(letter, error, pid);
    return error;
}

static int follow(char letter, struct name_handle of_letter)
{
    skua_pid pid = {0};
    const int error = names_of_handle_any(&names, of_letter, &pid);
    check_found(letter, error, pid);
    return error;
}

static void make_handle(char letter, struct name_handle *made)
{
    EXPLORE_CHECK(names_handle_any(&names, text_of(letter), made) == 0, "there is memory");
    EXPLORE_CHECK(made->generation % 2 == 0, "INV-24: a handle is that of a whole name");
}

/* Pairs of a deed and a letter:
 *   ?  finds the name              !  must find it: it is held all the time
 *   0  must not find it            :  follows the handle of the setup, of this name
 *   h  makes a handle              H  makes one, and follows it
 *   f  follows a forged one, to the first entry of a segment that the setup has not made
 *   1 to 9  registers it for this PID
 *   r  releases what the setup has registered, for its PID 1
 *   w  waits until somebody has told, by the pair t. */
static void do_one(char deed, char letter)
{
    struct name_handle made;
    skua_pid pid;
    switch (deed) {
    case '?':
        (void)find(letter);
        break;
    case '!':
        EXPLORE_CHECK(find(letter) == 0, "INV-24: a name that is held is found");
        break;
    case '0':
        EXPLORE_CHECK(find(letter) != 0, "INV-24: a name that was given up leads to nobody");
        break;
    case ':':
        (void)follow(letter, handle);
        break;
    case 'h':
        make_handle(letter, &made);
        break;
    case 'H':
        make_handle(letter, &made);
        (void)follow(letter, made);
        break;
    case 'f':
        (void)!names_of_handle_any(&names, (struct name_handle){.entry = THIRD_SEGMENT}, &pid);
        break;
    case 'r':
        (void)names_release_any(&names, entries[letter - 'a'], pid_of(letter, '1'));
        break;
    case 't':
        store_release(&told, 1); /* hands over what was done */
        break;
    case 'w':
        explore_take(&told);
        break;
    default:
        (void)hold(letter, deed);
        break;
    }
}

static void run(const void *program)
{
    for (const char *at = program; at[0] != '\0'; at += 2) {
        do_one(at[0], at[1]);
    }
}

/* Registers a name that another process may have. Returns what the registry says. */
static int try_hold(char letter, char digit)
{
    struct name_outcome outcome;
    const skua_pid pid = pid_of(letter, digit);
    return names_register_any(&names, text_of(letter), pid, &outcome);
}

EXPLORE_OWN static uint32_t successes;

static void run_rival(const void *pair)
{
    const char *at = pair;
    successes += try_hold(at[1], at[0]) == 0;
}

/* Releases as 'r' does, and then takes the name for another process. */
static void run_successor(const void *pair)
{
    const char *at = pair;
    do_one('r', at[1]);
    successes += try_hold(at[1], at[0]) == 0;
}

/* ---- waiters ---- */

static struct waiting *waiting_of(uint32_t waiter)
{
    for (uint32_t i = 0; i < WAITERS_MAX; i++) {
        if (waiting[i].waiter == waiter) {
            return &waiting[i];
        }
    }
    EXPLORE_CHECK(false, "INV-20: only waiters come back");
    return NULL;
}

static void take_back(uint32_t first, bool is_stale)
{
    while (first != OBJECT_NONE) {
        struct waiting *one = waiting_of(first);
        first = event_at(&events, first)->next;
        one->given++;
        EXPLORE_CHECK(!is_stale || one->has_ended, "INV-25: whoever still waits is not swept");
    }
}

/* A digit names the waiter, a letter the name. */
static void run_waiter(const void *pair)
{
    const char *at = pair;
    struct waiting *one = &waiting[at[0] - '0'];
    struct name_outcome outcome;
    const int error = names_await_any(&names, text_of(at[1]), one->waiter, &outcome);
    explore_note("waits: %d", error);
    one->is_pending = error == SKUA_PENDING;
    take_back(outcome.stale, true);
    if (error == 0) {
        EXPLORE_CHECK(is_pid_of(at[1], outcome.holder), "INV-24: the holder of this name");
    }
}

/* Registers a name, gets its waiters. With a third letter it begins when a call has ended. */
static void run_holder(const void *pair)
{
    const char *at = pair;
    if (at[2] != '\0') {
        explore_take(&told);
    }
    struct name_outcome outcome;
    const skua_pid pid = pid_of(at[1], at[0]);
    const int error = names_register_any(&names, text_of(at[1]), pid, &outcome);
    explore_note("registers: %d", error);
    successes += error == 0;
    EXPLORE_CHECK(error == 0 || at[2] == '\0', "INV-21: a name that nobody awaits makes room");
    take_back(outcome.waiters, false);
    take_back(outcome.stale, true);
}

/* Ends the call of a waiter. */
static void run_deadline(const void *digit)
{
    struct waiting *one = &waiting[*(const char *)digit - '0'];
    one->has_ended = true;
    EXPLORE_CHECK(call_claim_any(event_at(&events, one->call), one->guard), "nobody else does");
    store_release(&told, 1); /* hands over what was done */
}

/* ---- setups ---- */

static void make_waiting(struct waiting *one)
{
    struct event_node *call = event_at(&events, one->call);
    store_relaxed(&call->guard, 0);
    const skua_completion completion = call_open_owner(call, one->call, (skua_pid){1});
    event_at(&events, one->waiter)->as.event =
        (skua_event){.from = completion.process, .tag = completion.call};
    one->guard = call_guard(completion);
    one->is_pending = one->has_ended = false;
    one->given = 0;
}

/* The pool is made once; the nodes are always the same. */
static void setup_waiting(void)
{
    static const struct allocator system = {.function = allocator_default};
    if (events.segments == NULL) {
        EXPLORE_CHECK(event_pool_init(&events, &system, 1), "there is memory");
        for (uint32_t i = 0; i < WAITERS_MAX; i++) {
            const bool is_taken = event_acquire_owner(&events, &cache, &waiting[i].call) &&
                                  event_acquire_owner(&events, &cache, &waiting[i].waiter);
            EXPLORE_CHECK(is_taken, "there is memory");
        }
    }
    explore_ignore(events.segments, events.segment_count * sizeof *events.segments);
    for (uint32_t i = 0; i < WAITERS_MAX; i++) {
        make_waiting(&waiting[i]);
    }
}

static void check_letters(void)
{
    for (uint32_t i = 0; i < COUNT_OF(letters); i++) {
        struct name_key key;
        EXPLORE_CHECK(name_key_make(&key, letters[i].text, SEED) == 0, "it is a name");
        EXPLORE_CHECK(key.hash >> 63 == letters[i].shard, "it is where it should be");
        EXPLORE_CHECK(letters[i].chain == UINT32_MAX || key.hash % 4 == letters[i].chain,
                      "it is where it should be");
    }
}

static void setup_limited(uint32_t limit)
{
    check_letters();
    arena_used = 0;
    successes = 0;
    store_relaxed(&told, 0);
    memset(entries, 0, sizeof entries);
    setup_waiting();
    names_init(&names, &allocator, &events, limit, SEED);
    explore_ignore(&names.count, sizeof names.count);
}

/* No name, and no shard. */
static void setup_nothing(void)
{
    setup_limited(10);
}

/* Registers names for their PIDs 1 and releases those in capitals. */
static void setup_with(const char *program)
{
    setup_nothing();
    for (const char *at = program; *at != '\0'; at++) {
        const char letter = (char)(*at | 0x20);
        entries[letter - 'a'] = hold(letter, '1');
    }
    for (const char *at = program; *at != '\0'; at++) {
        if ((*at & 0x20) == 0) {
            do_one('r', (char)(*at | 0x20));
        }
    }
    explore_ignore(&names.shards, sizeof names.shards);
}

/* The next name that is made takes the entry of `a`. */
static void setup_idle(void)
{
    setup_with("A");
    make_handle('a', &handle);
}

/* The same if it is registered at once. */
static void setup_idle_three(void)
{
    setup_with("ABC");
    make_handle('a', &handle);
}

/* One that is held, behind the one whose entry is reused next, and then in another chain. */
static void setup_held(void)
{
    setup_with("cAE");
}

/* A table of four places that has room for one more; the next entry is in another segment. */
static void setup_three(void)
{
    setup_with("acf");
}

/* Two that are held, in a chain that will have another order when the table grows. */
static void setup_reordered(void)
{
    setup_with("FC");
    run("ha1a1c");
}

static void setup_one(void)
{
    setup_with("a");
    make_handle('a', &handle);
}

/* One name may be held or awaited. */
static void setup_limit_one(void)
{
    setup_limited(1);
    run("hahdhb");
    explore_ignore(&names.shards, sizeof names.shards);
    explore_heed(&names.count);
}

/* One name may be, and one is awaited by the first of the waiters. */
static void setup_limit_awaited(void)
{
    setup_limit_one();
    run_waiter("0a");
}

/* As many wait as are not looked through. */
static void setup_crowded(void)
{
    setup_with("A");
    run_waiter("0a");
    run_waiter("1a");
}

/* ---- the end ---- */

static void finish(void)
{
    names_deinit(&names);
}

/* Somebody's release, late as it may have come, has not ended the second holder. */
static void finish_succession(void)
{
    skua_pid pid = {0};
    const int error = names_find_any(&names, text_of('a'), &pid);
    if (successes == 1) {
        EXPLORE_CHECK(error == 0 && skua_pid_equal(pid, pid_of('a', '2')),
                      "INV-24: the second holder still has the name");
    }
    EXPLORE_CHECK(names_count(&names) == (error == 0), "INV-21: what is held is counted");
    finish();
}

static void finish_rivals(void)
{
    EXPLORE_CHECK(successes == 1, "INV-24: a name has one holder; INV-21: the limit is exact");
    EXPLORE_CHECK(names_count(&names) == 1, "INV-21: what is held is counted");
    finish();
}

/* All come back once, and those that wait for a name that is held have come back before. */
static void finish_waiting(void)
{
    skua_pid pid;
    const bool is_held = names_find_any(&names, text_of('a'), &pid) == 0;
    for (uint32_t i = 0; i < WAITERS_MAX && is_held; i++) {
        EXPLORE_CHECK(waiting[i].given == waiting[i].is_pending, "INV-25: handed to the holder");
    }
    take_back(names_take_all_waiters_any(&names), false);
    for (uint32_t i = 0; i < WAITERS_MAX; i++) {
        EXPLORE_CHECK(waiting[i].given == waiting[i].is_pending, "INV-20: given back once");
    }
    EXPLORE_CHECK(names_count(&names) == is_held, "INV-21: what is held is counted");
    finish();
}

/* The limit is one: the holder of `b` had to wait for the end of the call that waits for `a`. */
static void finish_limited(void)
{
    EXPLORE_CHECK(names_count(&names) == 1, "INV-21: one is held, or awaited");
    take_back(names_take_all_waiters_any(&names), false);
    EXPLORE_CHECK(waiting[0].given == 1, "INV-20: given back once");
    EXPLORE_CHECK(names_count(&names) == successes, "INV-21: what is held is counted");
    finish();
}

#define READER(program)  EXPLORE_THREAD("reader", run, program)
#define WRITER(program)  EXPLORE_THREAD("writer", run, program)
#define WRITER2(program) EXPLORE_THREAD("writer2", run, program)
#define RIVAL(pair)      EXPLORE_THREAD("rival", run_rival, pair)
#define RIVAL2(pair)     EXPLORE_THREAD("rival2", run_rival, pair)
#define SUCCESSOR(pair)  EXPLORE_THREAD("successor", run_successor, pair)
#define WAITER(pair)     EXPLORE_THREAD("waiter", run_waiter, pair)
#define WAITER2(pair)    EXPLORE_THREAD("waiter2", run_waiter, pair)
#define HOLDER(pair)     EXPLORE_THREAD("holder", run_holder, pair)
#define DEADLINE(digit)  EXPLORE_THREAD("deadline", run_deadline, digit)

#define ANY UINT32_MAX

/* Readers see the inside of what is done under the lock. */
#define MODEL(name_, stale_, setup_, finish_, ...)                                                 \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_ALL, .stale = stale_, .mutexes_are_open = true,             \
        .setup = setup_, .threads = {__VA_ARGS__}, .finish = finish_,                              \
    }
#define BOUNDED(name_, bound_, stale_, setup_, finish_, ...)                                       \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_PREEMPTIONS, .bound = bound_, .stale = stale_,              \
        .mutexes_are_open = true, .setup = setup_, .threads = {__VA_ARGS__}, .finish = finish_,    \
    }

static const struct explore_model models[] = {
    /* By text, against the reuse of its entry. */
    MODEL("read_reused", ANY, setup_idle, finish, READER("?a"), WRITER("hb2b")),
    MODEL("read_reused_at_once", ANY, setup_idle_three, finish, READER("?a"), WRITER("2e")),
    MODEL("read_new", ANY, setup_idle, finish, READER("?b"), WRITER("hb2b")),
    MODEL("read_new_taken_over", ANY, setup_one, finish, READER("?b"), WRITER("rahb")),
    MODEL("read_taken_over", ANY, setup_one, finish, READER("?a"), WRITER("rahb2b")),
    BOUNDED("read_reused_twice", 3, 1, setup_idle, finish, READER("?a"), WRITER("hb2b"),
            WRITER2("2a")),
    /* By handle. */
    MODEL("handle_reused", ANY, setup_idle, finish, READER(":a"), WRITER("hb2b")),
    MODEL("handle_taken_over", ANY, setup_one, finish, READER(":a"), WRITER("rahb2b")),
    MODEL("handle_made", ANY, setup_one, finish, READER("Ha"), WRITER("rahb2b")),
    MODEL("handle_made_new", ANY, setup_idle, finish, READER("Hb"), WRITER("hb2b")),
    /* Others come and go. */
    MODEL("held", ANY, setup_held, finish, READER("!c"), WRITER("hb")),
    MODEL("held_while_growing", ANY, setup_reordered, finish, READER("!c"), WRITER("1f")),
    MODEL("held_before", ANY, setup_idle_three, finish, READER("wx!e"), WRITER("2etxhahb")),
    MODEL("given_up_before", ANY, setup_one, finish, READER("wx0a"), WRITER("ratxhb")),
    /* Segments: where an unchained name leads to another one, and where a made-up handle leads. */
    BOUNDED("read_in_a_new_segment", 2, 1, setup_three, finish, READER("?e"),
            WRITER("1erarcrfhbhahchf")),
    MODEL("forged_into_a_new_segment", ANY, setup_three, finish, READER("fx"), WRITER("1e")),
    MODEL("first", 1, setup_nothing, finish, READER("?a"), WRITER("1a"), WRITER2("1b")),
    /* Who holds. */
    MODEL("succession", ANY, setup_one, finish_succession, WRITER("ra"), SUCCESSOR("2a")),
    MODEL("rivals", ANY, setup_idle, finish_rivals, RIVAL("2a"), RIVAL2("3a")),
    MODEL("rivals_at_the_limit", ANY, setup_limit_one, finish_rivals, RIVAL("2a"), RIVAL2("3d")),
    /* Who waits. */
    MODEL("wait", ANY, setup_idle, finish_waiting, WAITER("0a"), HOLDER("2a")),
    MODEL("two_wait", ANY, setup_idle, finish_waiting, WAITER("0a"), WAITER2("1a"), HOLDER("2a")),
    MODEL("wait_for_a_new_name", ANY, setup_idle, finish_waiting, WAITER("0a"), HOLDER("2a"),
          WRITER("hb")),
    MODEL("wait_in_a_crowd", ANY, setup_crowded, finish_waiting, WAITER("2a"), HOLDER("2a"),
          DEADLINE("0")),
    MODEL("wait_at_the_limit", ANY, setup_limit_awaited, finish_limited, HOLDER("2b"),
          DEADLINE("0")),
    MODEL("wait_ended_at_the_limit", ANY, setup_limit_awaited, finish_limited, HOLDER("2dw"),
          DEADLINE("0")),
};

EXPLORE_MAIN(models)
