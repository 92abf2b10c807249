/* SPDX-License-Identifier: MIT */
/* process/quota.c and the sender's side of sched/limits.c: messages to a process whose quota lies
 * within another one, while that process ends, its quota is freed, and its number is used again.
 *
 * INV-44: no more is charged to a quota than its limit, and what is refused is refused because
 *         others have it, or are about to give it back, as a quota further out is full.
 * INV-45: what was charged is refunded to those that it was charged to; a quota that nobody holds
 *         has nothing, and is used again by one alone.
 * INV-22: no data race on what a sender reads of a quota that is freed meanwhile. */
#include "explore.h"
#include "process/state.h"
#include "sched/limits.h"

#define GENERATION UINT32_C(7)
#define SENDERS    2
#define ARENA_SIZE 8192

static struct scheduler sched;
static struct process process;
static struct quota *outer;
static struct quota *inner;
static uint32_t links[SENDERS + 1]; /* of what was pushed, by its number */
EXPLORE_OWN static uint32_t sent;
EXPLORE_OWN static uint32_t refused;

/* ---- memory ---- */

static _Alignas(CACHE_LINE) char arena[ARENA_SIZE];
EXPLORE_OWN static size_t arena_used;

static void *allocate(void *arg, void *pointer, size_t old_size, size_t new_size, size_t alignment)
{
    (void)arg;
    (void)pointer;
    (void)old_size;
    (void)alignment;
    EXPLORE_CHECK(arena_used + new_size <= ARENA_SIZE, "the model has memory");
    void *memory = arena + arena_used;
    arena_used += (new_size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    return memory;
}

/* ---- threads ---- */

static const uint32_t numbers[SENDERS + 1] = {0, 1, 2};

static void check_limits(void)
{
    EXPLORE_CHECK(explore_peek(&outer->used[QUOTA_MESSAGES]) <= outer->limit[QUOTA_MESSAGES],
                  "INV-44: the outer quota is kept");
}

static void run_sender(const void *number)
{
    const uint32_t own = *(const uint32_t *)number;
    struct quota *quota;
    const int error = limits_charge(&sched, &process, GENERATION, &quota);
    if (error != 0) {
        explore_note("is refused: %d", error);
        refused += error == SKUA_E_MESSAGE_QUOTA;
        return;
    }
    check_limits();
    EXPLORE_CHECK(quota == inner, "INV-45: the quota of the process is charged");
    const bool is_pushed = state_push_any(&process, GENERATION, own, &links[own]) != STATE_CLOSED;
    explore_note(is_pushed ? "has pushed it" : "comes too late");
    sent += is_pushed;
    limits_pushed(&sched, quota, is_pushed);
}

static uint32_t count_list(uint32_t first)
{
    uint32_t count = 0;
    for (uint32_t index = first; index != OBJECT_NONE; index = links[index]) {
        count++;
    }
    return count;
}

/* The process ends, with its messages. */
static void end_process(void)
{
    const uint32_t count = count_list(event_list_first(state_finish_owner(&process)));
    explore_note("ends, and drops %u", count);
    if (count > 0) {
        quota_refund_any(inner, QUOTA_MESSAGES, count);
    }
    quota_let_go_any(&sched.quotas, inner);
}

static void run_end(const void *arg)
{
    (void)arg;
    end_process();
}

/* Then somebody else makes a quota, perhaps with the same number, and has it alone. */
static void run_end_and_again(const void *arg)
{
    (void)arg;
    const uint64_t limit[QUOTA_KINDS] = {[QUOTA_MESSAGES] = 1};
    end_process();
    struct quota *next = quota_make_any(&sched.quotas, NULL, limit);
    EXPLORE_CHECK(quota_charge_any(next, QUOTA_MESSAGES, 1),
                  "INV-45: nobody else charges a new quota");
    quota_refund_any(next, QUOTA_MESSAGES, 1);
    quota_let_go_any(&sched.quotas, next);
}

/* The process handles the first message that it gets. */
static void run_step(const void *arg)
{
    (void)arg;
    const uint32_t count = count_list(event_list_first(state_take_owner(&process)));
    if (count > 0) {
        explore_note("handles %u", count);
        quota_refund_any(inner, QUOTA_MESSAGES, count);
        sent -= count;
    }
}

/* ---- the beginning and the end ---- */

static void setup(uint64_t outer_limit, uint64_t inner_limit)
{
    const uint64_t of_outer[QUOTA_KINDS] = {[QUOTA_MESSAGES] = outer_limit};
    const uint64_t of_inner[QUOTA_KINDS] = {[QUOTA_MESSAGES] = inner_limit};
    memset(arena, 0, sizeof arena);
    arena_used = 0;
    sent = refused = 0;
    sched.allocator = (struct allocator){allocate, NULL};
    quotas_init(&sched.quotas, &sched.allocator);
    outer = quota_make_any(&sched.quotas, NULL, of_outer);
    inner = quota_make_any(&sched.quotas, outer, of_inner);
    memset(&process, 0, sizeof process);
    store_relaxed(&process.word, event_list_word(OBJECT_NONE, state_tag(GENERATION, STATE_READY)));
    store_relaxed(&process.mailbox_limit, mailbox_marked(inner->number));
    explore_ignore(&process.mailbox_limit, sizeof process.mailbox_limit);
}

static void setup_outer_is_full(void)
{
    setup(1, 2);
}

static void setup_inner_is_full(void)
{
    setup(2, 1);
}

static void finish_alive(void)
{
    EXPLORE_CHECK(load_relaxed(&inner->used[QUOTA_MESSAGES]) == sent, "INV-45: inner");
    EXPLORE_CHECK(load_relaxed(&outer->used[QUOTA_MESSAGES]) == sent, "INV-45: outer");
    EXPLORE_CHECK(load_relaxed(&inner->holders) == 1, "INV-45: nobody has kept it");
}

static void finish_full(void)
{
    finish_alive();
    EXPLORE_CHECK(sent == 1 && refused == 1, "INV-44: the one place is taken");
}

static void finish_gone(void)
{
    EXPLORE_CHECK(load_relaxed(&inner->used[QUOTA_MESSAGES]) == 0, "INV-45: inner");
    EXPLORE_CHECK(load_relaxed(&outer->used[QUOTA_MESSAGES]) == 0, "INV-45: outer");
    EXPLORE_CHECK(load_relaxed(&inner->holders) == 0, "INV-45: it is free");
    EXPLORE_CHECK(load_relaxed(&outer->holders) == 1, "INV-45: who has set it holds it");
}

#define SENDER(n) EXPLORE_THREAD("sender" #n, run_sender, &numbers[n])
#define STEP      EXPLORE_THREAD("step", run_step, NULL)
#define END       EXPLORE_THREAD("end", run_end, NULL)
#define AGAIN     EXPLORE_THREAD("again", run_end_and_again, NULL)
#define QUOTA(name_, setup_, finish_, ...)                                                         \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_ALL, .setup = setup_, .threads = {__VA_ARGS__},             \
        .finish = finish_,                                                                         \
    }
#define LARGE_QUOTA(name_, bound_, setup_, finish_, ...)                                           \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_PREEMPTIONS, .bound = bound_, .setup = setup_,              \
        .threads = {__VA_ARGS__}, .finish = finish_,                                               \
    }

static const struct explore_model models[] = {
    QUOTA("inner_full", setup_inner_is_full, finish_full, SENDER(1), SENDER(2)),
    QUOTA("outer_full", setup_outer_is_full, finish_full, SENDER(1), SENDER(2)),
    QUOTA("step", setup_outer_is_full, finish_alive, SENDER(1), SENDER(2), STEP),
    QUOTA("ending", setup_inner_is_full, finish_gone, SENDER(1), END),
    QUOTA("two_ending", setup_outer_is_full, finish_gone, SENDER(1), SENDER(2), END),
    QUOTA("again", setup_inner_is_full, finish_gone, SENDER(1), AGAIN),
    LARGE_QUOTA("two_again", 3, setup_outer_is_full, finish_gone, SENDER(1), SENDER(2), AGAIN),
};

EXPLORE_MAIN(models)
