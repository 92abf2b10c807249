/* SPDX-License-Identifier: MIT */
/* A schedule is a list of choices: which thread makes the next step, and, if that is a load, which
 * message it reads. They are made by a depth-first search, at random, or by a given schedule. */
#include <inttypes.h>
#include <stdio.h>

#include "base/random.h"
#include "explorer.h"

/* Of random schedules by priorities: a thread that has made so many steps in a row may be waiting
 * for another one in a loop. */
#define STEPS_IN_A_ROW_MAX 200
#define CHANGES_MAX        3

/* A choice. Sets of threads are bit masks. */
struct node {
    int chosen;
    int previous; /* who made the step before */
    uint32_t enabled;
    uint32_t allowed;     /* the choices to be tried here */
    uint32_t tried;       /* those that have been, with all their messages */
    uint32_t covered;     /* the sleep set: a choice further up covers them */
    uint32_t preemptions; /* before this choice */
    uint32_t message;     /* which one the chosen thread reads, counted back from the newest */
    uint32_t messages;    /* of how many; 0: not known yet */
};

static struct {
    enum { SEARCH, RANDOM, REPLAY } driver;
    /* nodes[0] to nodes[length - 1] are followed, the rest is new. */
    struct node nodes[STEPS_MAX];
    uint32_t length;
    uint32_t covered; /* of the next node */

    uint64_t random;
    uint32_t stay; /* of 8 steps, this many by the same thread; UINT32_MAX: by priorities */
    uint32_t priorities[EXPLORE_THREADS_MAX]; /* distinct */
    uint32_t changes[CHANGES_MAX];            /* steps before which the first becomes the last */
    uint32_t lowest_priority;
    uint32_t steps_in_a_row;
} search;

static uint32_t bit(int thread)
{
    return UINT32_C(1) << thread;
}

static int lowest(uint32_t threads)
{
    return __builtin_ctz(threads);
}

static const struct step *next_step(int thread)
{
    return &explorer.threads[thread].next;
}

static uint32_t messages_for(int thread)
{
    const struct thread *reader = &explorer.threads[thread];
    return reader->state == THREAD_AWAKE ? memory_choices(reader, &reader->next) : 1;
}

/* ---- which threads can make a step ---- */

/* All threads that can make a step; none if those that can would only wake for no reason. */
static uint32_t enabled_threads(void)
{
    uint32_t awake = 0;
    uint32_t late = 0;
    uint32_t spurious = 0;
    for (int i = 0; i < explorer.thread_count; i++) {
        const struct thread *thread = &explorer.threads[i];
        if (thread->state == THREAD_AWAKE) {
            awake |= can_go_on(&thread->next) ? bit(i) : 0;
        } else if (thread->state == THREAD_ASLEEP) {
            late |= may_time_out(thread) ? bit(i) : 0;
            spurious |= thread->spurious_wakes > 0 ? bit(i) : 0;
        }
    }
    if (awake == 0 || !explorer.model->time_is_slow) {
        awake |= late;
    }
    return awake != 0 ? awake | spurious : 0;
}

static bool only_reads(const struct step *step)
{
    return step->site->operation == MODEL_LOAD || step->site->operation == MODEL_FUTEX_WAIT;
}

/* Where mutexes are open a thread falls asleep on a condition after a step that is about another
 * word: the signal may come before or after any. */
static bool is_open_signal(int thread)
{
    const struct step *step = next_step(thread);
    return explorer.model->mutexes_are_open && step->site->operation == MODEL_CONDITION &&
           step->address != &explorer.threads[thread]; /* not the waking of a sleeper */
}

/* Whether the next steps of two threads have the same effect in either order. A seq_cst load keeps
 * later ones from reading what is older, so two of them commute only if there is no choice. Using
 * up the stale reads that are left does not matter: it is their number in the whole schedule that
 * is limited, in any order. */
static bool commute(int a, int b)
{
    const struct step *first = next_step(a);
    const struct step *second = next_step(b);
    if (first->address == NULL || second->address == NULL || is_open_signal(a) ||
        is_open_signal(b)) {
        return false;
    }
    if (first->address != second->address) {
        return true;
    }
    if (!only_reads(first) || !only_reads(second)) {
        return false;
    }
    const bool both_seq_cst =
        first->site->order == memory_order_seq_cst && second->site->order == memory_order_seq_cst;
    return !both_seq_cst || (messages_for(a) == 1 && messages_for(b) == 1);
}

/* ---- the search ---- */

static bool is_preemption(const struct node *node)
{
    return node->chosen != node->previous && node->previous != NOBODY &&
           (node->enabled & bit(node->previous)) != 0;
}

static uint32_t preemptions_after(const struct node *node)
{
    return node->preemptions + is_preemption(node);
}

/* Those of a set of threads whose next steps commute with the choice. */
static uint32_t undisturbed(const struct node *node, uint32_t threads)
{
    uint32_t rest = 0;
    for (; threads != 0; threads &= threads - 1) {
        rest |= commute(node->chosen, lowest(threads)) ? bit(lowest(threads)) : 0;
    }
    return rest;
}

/* Whether a thread waits for another one to let it go on. For the end of one does not count: that
 * is the last thing it does. */
static bool is_anybody_blocked(uint32_t enabled)
{
    for (int i = 0; i < explorer.thread_count; i++) {
        const struct thread *thread = &explorer.threads[i];
        if (thread->state == THREAD_AWAKE && (enabled & bit(i)) == 0 &&
            thread->next.site->operation != MODEL_JOIN) {
            return true;
        }
    }
    return false;
}

/* With a bound on preemptions: the threads that were preempted and whose next steps commute with
 * all that has been done since. Such a step could as well have been made before the preemption, so
 * to make it now is covered by the schedule in which it was: that one is equivalent and has no more
 * preemptions. It goes on with the same thread for longer, so of all equivalent schedules the one
 * that does so earliest is never left out.
 *
 * That is not so if meanwhile the explorer ends a sleep, which it may do only as long as somebody
 * else is awake; nor if somebody is blocked, whom the step could let go on, so that to leave him
 * would be another preemption. What has been tried is not covered here: the schedules that cover it
 * may have more preemptions. */
static uint32_t postponed_after(const struct node *node)
{
    if (explorer.threads[node->chosen].state == THREAD_ASLEEP) {
        return 0;
    }
    uint32_t threads = node->covered;
    if (is_preemption(node) && explorer.threads[node->previous].state == THREAD_AWAKE) {
        threads |= bit(node->previous);
    }
    return undisturbed(node, threads);
}

/* What is still covered after the choice: all that was, or has been tried, and commutes with it. */
static uint32_t covered_after(const struct node *node)
{
    switch (explorer.model->mode) {
    case EXPLORE_ALL:
        return undisturbed(node, node->covered | node->tried);
    case EXPLORE_PREEMPTIONS:
        return postponed_after(node);
    case EXPLORE_EACH:
    case EXPLORE_RANDOM:
        break;
    }
    return 0;
}

/* Prefers to go on with the same thread. */
static int prefer(uint32_t threads)
{
    const int previous = explorer.previous;
    return previous != NOBODY && (threads & bit(previous)) != 0 ? previous : lowest(threads);
}

static bool is_bounded(void)
{
    const struct explore_model *model = explorer.model;
    return model->mode == EXPLORE_PREEMPTIONS || (model->mode == EXPLORE_EACH && model->bound > 0);
}

/* Fills a node that the search has not seen before; false if nothing is to be tried there. */
static bool open_node(struct node *node, uint32_t enabled)
{
    const struct explore_model *model = explorer.model;
    const int previous = explorer.previous;
    *node = (struct node){.previous = previous, .enabled = enabled, .covered = search.covered};
    if (explorer.position > 0) {
        node->preemptions = preemptions_after(node - 1);
    }
    if (model->mode == EXPLORE_PREEMPTIONS && is_anybody_blocked(enabled)) {
        node->covered = 0;
    }
    node->allowed = enabled & ~node->covered;
    if (is_bounded() && node->preemptions == model->bound && previous != NOBODY &&
        (enabled & bit(previous)) != 0) {
        node->allowed = bit(previous);
    }
    if (node->allowed == 0) {
        return false;
    }
    node->chosen = prefer(node->allowed);
    search.length = explorer.position + 1;
    return true;
}

static bool choose_by_search(struct node *node, uint32_t enabled)
{
    if (explorer.position == search.length) {
        if (!open_node(node, enabled)) {
            return false;
        }
    } else if (node->enabled != enabled) {
        fail_with("the model is not deterministic");
    }
    if (explorer.position + 1 == search.length) {
        if (node->messages == 0) {
            node->messages = messages_for(node->chosen);
        }
        search.covered = covered_after(node);
    }
    return true;
}

void search_begin(void)
{
    search.driver = SEARCH;
    search.length = 0;
    search.covered = 0;
}

/* Another choice as late as possible. */
bool search_advance(void)
{
    while (search.length > 0) {
        struct node *node = &search.nodes[search.length - 1];
        if (++node->message < node->messages) {
            return true;
        }
        node->tried |= bit(node->chosen);
        node->message = node->messages = 0;
        const uint32_t rest = node->allowed & ~node->tried;
        if (rest != 0) {
            node->chosen = lowest(rest);
            return true;
        }
        search.length--;
    }
    return false;
}

/* ---- at random ---- */

static int choose_any(uint32_t threads)
{
    uint32_t skip = random_below(&search.random, (uint32_t)__builtin_popcount(threads));
    while (skip-- > 0) {
        threads &= threads - 1;
    }
    return lowest(threads);
}

static int choose_by_staying(uint32_t enabled)
{
    const int previous = explorer.previous;
    if (previous != NOBODY && (enabled & bit(previous)) != 0 &&
        random_below(&search.random, 8) < search.stay) {
        return previous;
    }
    return choose_any(enabled);
}

static int first_by_priority(uint32_t enabled)
{
    int first = lowest(enabled);
    for (int i = first + 1; i < explorer.thread_count; i++) {
        if ((enabled & bit(i)) != 0 && search.priorities[i] > search.priorities[first]) {
            first = i;
        }
    }
    return first;
}

static bool is_change_point(void)
{
    for (uint32_t i = 0; i < CHANGES_MAX; i++) {
        if (search.changes[i] == explorer.position + 1) {
            return true;
        }
    }
    return false;
}

/* The first of those enabled always runs, but for a few steps before which it becomes the last
 * (PCT, Burckhardt et al. 2010). */
static int choose_by_priority(uint32_t enabled)
{
    int first = first_by_priority(enabled);
    search.steps_in_a_row = first == explorer.previous ? search.steps_in_a_row + 1 : 0;
    if (is_change_point() || search.steps_in_a_row == STEPS_IN_A_ROW_MAX) {
        search.priorities[first] = --search.lowest_priority;
        search.steps_in_a_row = 0;
        first = first_by_priority(enabled);
    }
    return first;
}

static void choose_at_random(struct node *node, uint32_t enabled)
{
    node->chosen =
        search.stay == UINT32_MAX ? choose_by_priority(enabled) : choose_by_staying(enabled);
    const uint32_t messages = messages_for(node->chosen);
    node->message = 0;
    if (messages > 1 && random_below(&search.random, 4) == 0) {
        node->message = 1 + random_below(&search.random, messages - 1);
    }
}

/* Priorities in random order; `count` random steps before which they change, of as many as the
 * longest schedule so far had. */
static void draw_priorities(uint32_t count)
{
    search.lowest_priority = STEPS_MAX;
    search.steps_in_a_row = 0;
    for (uint32_t i = 0; i < EXPLORE_THREADS_MAX; i++) {
        const uint32_t other = random_below(&search.random, i + 1);
        search.priorities[i] = search.priorities[other];
        search.priorities[other] = STEPS_MAX + i;
    }
    const uint32_t steps = explorer.result.steps;
    for (uint32_t i = 0; i < CHANGES_MAX; i++) {
        search.changes[i] = i < count && steps > 0 ? 1 + random_below(&search.random, steps) : 0;
    }
}

void random_begin(void)
{
    search.driver = RANDOM;
    search.random = explorer.model->seed;
}

void random_vary(uint32_t n)
{
    static const uint32_t stay[] = {0, 4, 6, 7};
    if (n % 2 == 0) {
        search.stay = stay[n / 2 % 4];
    } else {
        search.stay = UINT32_MAX;
        draw_priorities(1 + n / 2 % CHANGES_MAX);
    }
}

/* ---- again ---- */

void replay_begin(void)
{
    search.driver = REPLAY;
    search.length = explorer.position;
}

/* A digit is a thread; a letter after it says that it reads an older message. */
void replay_begin_with(const char *schedule)
{
    search.driver = REPLAY;
    search.length = 0;
    for (const char *at = schedule; *at != '\0' && search.length < STEPS_MAX; at++) {
        struct node *node = &search.nodes[search.length++];
        node->chosen = *at >= '0' ? (*at - '0') % EXPLORE_THREADS_MAX : 0;
        node->message = 0;
        if (at[1] >= 'a' && at[1] <= 'z') {
            node->message = (uint32_t)(*++at - 'a' + 1);
        }
    }
}

void print_schedule(void)
{
    printf("to repeat: %s ", explorer.model->name);
    for (uint32_t i = 0; i < explorer.position; i++) {
        printf("%d", search.nodes[i].chosen);
        if (search.nodes[i].message > 0) {
            putchar('a' + (int)search.nodes[i].message - 1);
        }
    }
    printf("\n");
    (void)fflush(stdout);
}

/* Follows the schedule as far as it says something. */
static void choose_by_schedule(struct node *node, uint32_t enabled)
{
    if (explorer.position >= search.length) {
        node->chosen = prefer(enabled);
        node->message = 0;
    } else if ((enabled & bit(node->chosen)) == 0 || node->message >= messages_for(node->chosen)) {
        fail_with("the schedule does not fit this program");
    }
}

/* ---- choosing ---- */

int choose(void)
{
    const uint32_t enabled = enabled_threads();
    if (enabled == 0) {
        explorer.outcome = ENDED;
        return NOBODY;
    }
    if (explorer.position == STEPS_MAX) {
        fail_with("the schedule does not end");
    }
    struct node *node = &search.nodes[explorer.position];
    switch (search.driver) {
    case SEARCH:
        if (!choose_by_search(node, enabled)) {
            explorer.outcome = CUT;
            return NOBODY;
        }
        break;
    case RANDOM:
        choose_at_random(node, enabled);
        break;
    case REPLAY:
        choose_by_schedule(node, enabled);
        break;
    }
    explorer.position++;
    explorer.previous = node->chosen;
    explorer.message = node->message;
    if (node->message > 0 && explorer.model->stale != UINT32_MAX) {
        explorer.stale_left--;
    }
    return node->chosen;
}
