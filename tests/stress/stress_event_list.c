/* SPDX-License-Identifier: MIT */
/* Stress of process/state.h, mailbox.h and concurrent/event_list.h: senders push to a few processes
 * and set requests on them, two workers run them from one shared queue as sched/step.c does. Some
 * of what is sent has a place in the mailbox, as in sched/deliver.c, and some has not, like
 * completions. Processes end all the time, by a request or by themselves, and others begin in
 * their slots, while senders still use the old PIDs.
 *  - Every message that was admitted comes out exactly once, at the process it was sent to, and
 *    those of one sender in order and without a gap; none is admitted to a process that has ended.
 *  - A process runs on one worker at a time, and its plain fields are handed from one to the next.
 *  - A process that rests keeps one place in its mailbox, and nothing else is in it.
 *  - Nothing sleeps through a message or a request: when the senders are done, all is delivered,
 *    nobody who was told to end is alive, and every request has been seen. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "concurrent/global_queue.h"
#include "counting_allocator.h"
#include "process/state.h"
#include "process/table.h"
#include "stress_support.h"

#define SENDERS       3
#define WORKERS       2
#define ACTORS        6
#define PROCESS_LIMIT 40 /* no caches: slots are used again at once */
#define NODE_LIMIT    8192
#define OLD_PIDS      4
#define TURNS_MAX     4
#define MAILBOX_LIMIT 4096
#define ROUND_OPS_MAX 100000
#define DEFAULT_OPS   30000000

/* A message. */
struct node {
    uint32_t next; /* in the list of a process */
    uint32_t sender;
    union {
        struct pool_link link; /* while free */
        skua_pid to;
    } as;
    struct stress_parcel parcel;
    uint64_t number; /* of this sender's messages to this process, from 0 */
    bool has_place;
    uint64_t unused;
};
_Static_assert(sizeof(struct node) == 64, "a power of two");

/* What a process knows; lies in its inline state. */
struct actor {
    skua_pid pid;
    uint32_t number;            /* its place in the directory */
    uint32_t requests;          /* seen so far */
    uint64_t expected[SENDERS]; /* the number of the next message */
    atomic_u32 running;
};
_Static_assert(sizeof(struct actor) <= PROCESS_INLINE_STATE, "it lies there");

/* What a sender knows about one place of the directory. */
struct acquaintance {
    skua_pid pid;
    uint64_t number;        /* of the next message to it */
    uint32_t requests;      /* that were admitted */
    skua_pid old[OLD_PIDS]; /* of processes that have ended; zero: none yet */
};

struct sender {
    CACHE_ALIGNED uint64_t random;
    uint32_t number;
    uint64_t serial;
    uint64_t admitted;
    uint64_t ops; /* of all threads, when this round ends */
    struct pool_cache nodes;
    struct acquaintance known[ACTORS];
};

struct worker {
    CACHE_ALIGNED uint64_t random;
    uint32_t number;
    atomic_u64 received;
    struct pool_cache nodes;
    struct pool_cache processes;
};

static struct stress stress;
static struct process_table table;
static struct object_pool nodes;
static struct global_queue ready;
static atomic_u64 directory[ACTORS]; /* the PID of the actor that has this place now */
static struct sender senders[SENDERS];
static struct worker workers[WORKERS];
static atomic_u32 round_is_over;
static bool is_final; /* nobody is born any more; written while no thread runs */

static struct node *node_at(uint32_t index)
{
    return object_pool_at(&nodes, index);
}

static struct actor *actor_of(struct process *process)
{
    return (struct actor *)(void *)process->state.inline_state;
}

static skua_pid current_pid(uint32_t place)
{
    return (skua_pid){load_acquire(&directory[place])}; /* its predecessor has ended */
}

static struct process *process_of(skua_pid pid)
{
    struct process *process = NULL;
    if (process_table_find(&table, pid, &process) != 0) {
        stress_fault(&stress, STRESS_BROKEN, "no record for PID %" PRIx64, pid.bits);
        abort();
    }
    return process;
}

static void enqueue(struct process *process)
{
    global_queue_push_any(&ready, &process->link.queue, &process->link.queue);
}

/* ---- senders ---- */

/* Learns of the process that has a place now; the one it knew has ended then. */
static void look_up(struct sender *sender, uint32_t place)
{
    struct acquaintance *known = &sender->known[place];
    const skua_pid pid = current_pid(place);
    if (skua_pid_equal(pid, known->pid)) {
        return;
    }
    known->old[random_below(&sender->random, OLD_PIDS)] = known->pid;
    known->pid = pid;
    known->number = 0;
    known->requests = 0;
}

/* As hand_over in deliver.c, but that a full mailbox is a reason to stop. */
static enum state_duty push(struct process *process, uint32_t generation, uint32_t index)
{
    struct node *node = node_at(index);
    if (!node->has_place) {
        return state_push_any(process, generation, index, &node->next);
    }
    if (state_wake_any(process, generation, index, &node->next)) {
        return STATE_ENQUEUE;
    }
    if (!mailbox_reserve_any(process)) {
        return STATE_CLOSED;
    }
    const enum state_duty duty = state_push_any(process, generation, index, &node->next);
    if (duty == STATE_CLOSED) {
        mailbox_unreserve_any(process);
    }
    return duty;
}

/* Returns whether the message was admitted. */
static bool send(struct sender *sender, skua_pid to, uint64_t number)
{
    uint32_t index;
    if (object_acquire_owner(&nodes, nodes.shape.layout, &sender->nodes, &index) !=
        OBJECT_POOL_OK) {
        (void)sched_yield(); /* the workers are behind */
        return false;
    }
    struct node *node = node_at(index);
    node->sender = sender->number;
    node->as.to = to;
    node->number = number;
    node->has_place = random_below(&sender->random, 4) != 0;
    stress_parcel_fill(&node->parcel, ++sender->serial * SENDERS + sender->number);
    struct process *process = process_of(to);
    switch (push(process, pid_generation(to), index)) {
    case STATE_ENQUEUE:
        stress_pause(&sender->random, 16);
        enqueue(process);
        break;
    case STATE_DONE:
        break;
    case STATE_CLOSED:
        store_relaxed(&node->parcel.under_way, 0); /* it is this thread's again */
        object_release_owner(&nodes, nodes.shape.layout, &sender->nodes, index);
        return false;
    }
    sender->admitted++;
    return true;
}

static void send_to_known(struct sender *sender, struct acquaintance *known)
{
    if (send(sender, known->pid, known->number)) {
        known->number++;
    }
}

static void send_to_old(struct sender *sender, struct acquaintance *known)
{
    const skua_pid pid = known->old[random_below(&sender->random, OLD_PIDS)];
    if (!skua_pid_is_none(pid) && send(sender, pid, 0)) {
        stress_fault(&stress, STRESS_BROKEN, "PID %" PRIx64 " has ended, but was sent to",
                     pid.bits);
    }
}

static void request(struct sender *sender, struct acquaintance *known)
{
    static const uint32_t choices[] = {STATE_KILL,    STATE_CANCEL, STATE_WATCHED,
                                       STATE_WATCHED, STATE_CANCEL, STATE_CANCEL | STATE_WATCHED};
    const uint32_t requests = choices[random_below(&sender->random, 6)];
    struct process *process = process_of(known->pid);
    switch (state_request_any(process, pid_generation(known->pid), requests)) {
    case STATE_ENQUEUE:
        if (requests == STATE_WATCHED) {
            stress_fault(&stress, STRESS_BROKEN, "watching has woken a process");
        }
        enqueue(process);
        break;
    case STATE_DONE:
        break;
    case STATE_CLOSED:
        return;
    }
    known->requests |= requests;
}

static void *run_sender(void *arg)
{
    struct sender *sender = arg;
    while (stress_goes_on(&stress, sender->ops)) {
        const uint32_t place = random_below(&sender->random, ACTORS);
        struct acquaintance *known = &sender->known[place];
        look_up(sender, place);
        const uint32_t burst = 1 + random_below(&sender->random, 32);
        for (uint32_t i = 0; i < burst; i++) {
            send_to_known(sender, known);
            stress_pause(&sender->random, 32);
        }
        if (burst % 4 == 0) {
            request(sender, known);
        }
        send_to_old(sender, known);
        stress_count(&stress, sender->number, burst + 1);
        stress_pause(&sender->random, 2);
    }
    /* The last things before the round's checks, so nothing that follows can make up for them. */
    for (uint32_t place = 0; place < ACTORS; place++) {
        look_up(sender, place);
        send_to_known(sender, &sender->known[place]);
        request(sender, &sender->known[place]);
    }
    return NULL;
}

/* ---- workers ---- */

static void receive(struct worker *worker, struct actor *actor, uint32_t index)
{
    struct node *node = node_at(index);
    (void)stress_parcel_empty(&stress, &node->parcel);
    if (!skua_pid_equal(node->as.to, actor->pid)) {
        stress_fault(&stress, STRESS_BROKEN, "a message for %" PRIx64 " came to %" PRIx64,
                     node->as.to.bits, actor->pid.bits);
    }
    uint64_t *expected = &actor->expected[node->sender];
    if (node->number != *expected) {
        stress_fault(&stress, STRESS_DISORDERED, "number %" PRIu64 " instead of %" PRIu64,
                     node->number, *expected);
    }
    *expected = node->number + 1;
    object_release_owner(&nodes, nodes.shape.layout, &worker->nodes, index);
    (void)fetch_add_relaxed(&worker->received, 1); /* statistic */
    stress_count(&stress, SENDERS + worker->number, 1);
}

/* Receives the oldest messages, `most` of them; the others stay in the backlog. */
static void receive_some(struct worker *worker, struct process *process, uint32_t most)
{
    for (uint32_t i = 0; i < most && process->backlog != OBJECT_NONE; i++) {
        const uint32_t index = process->backlog;
        process->backlog = node_at(index)->next;
        mailbox_consume_owner(process, node_at(index)->has_place ? 1 : 0);
        receive(worker, actor_of(process), index);
    }
}

static void accept_news(struct process *process, uint64_t news)
{
    const uint32_t first = event_list_first(news);
    const uint32_t oldest =
        event_list_reverse(&nodes, nodes.shape.layout, first, offsetof(struct node, next));
    if (process->backlog == OBJECT_NONE) {
        process->backlog = oldest;
    } else if (oldest != OBJECT_NONE) {
        if (node_at(process->backlog)->next != OBJECT_NONE) {
            stress_fault(&stress, STRESS_DISORDERED, "a list was taken before its time");
        }
        node_at(process->backlog)->next = oldest;
    }
    actor_of(process)->requests |= event_list_tag(news) & STATE_REQUESTS;
}

static void enter(struct process *process)
{
    if (exchange_acq_rel(&actor_of(process)->running, 1) != 0) {
        stress_fault(&stress, STRESS_BROKEN, "a process runs twice");
    }
}

static void leave(struct process *process)
{
    store_relaxed(&actor_of(process)->running, 0); /* the state hands it over */
}

static void begin_process(struct worker *worker, uint32_t place)
{
    uint32_t slot;
    if (object_acquire_owner(&table.pool, table.pool.shape.layout, &worker->processes, &slot) !=
        OBJECT_POOL_OK) {
        stress_fault(&stress, STRESS_LOST, "the slots of the processes");
        abort();
    }
    struct process *process = object_pool_at(&table.pool, slot);
    const uint32_t generation = state_prepare_owner(process);
    const skua_pid pid = process_table_pid(&table, process, generation);
    struct actor *actor = actor_of(process);
    *actor = (struct actor){.pid = pid, .number = place};
    process->backlog = OBJECT_NONE;
    store_relaxed(&process->mailbox_limit, MAILBOX_LIMIT); /* written before it is Ready */
    state_publish_owner(process, generation);
    store_release(&directory[place], pid.bits); /* the one before has ended */
    enqueue(process);
}

static void end_process(struct worker *worker, struct process *process)
{
    const uint64_t before = state_finish_owner(process);
    receive_some(worker, process, UINT32_MAX);
    accept_news(process, before);
    receive_some(worker, process, UINT32_MAX);
    const uint32_t place = actor_of(process)->number;
    leave(process);
    if (state_free_owner(process)) {
        object_release_owner(&table.pool, table.pool.shape.layout, &worker->processes,
                             process->slot);
    }
    if (!is_final) {
        begin_process(worker, place);
    }
}

static bool wants_to_end(struct worker *worker, struct process *process)
{
    return (actor_of(process)->requests & STATE_KILL) != 0 ||
           random_below(&worker->random, 128) == 0;
}

/* Ready -> Idle or Blocked, if it has nothing left to do. */
static bool rest(struct worker *worker, struct process *process)
{
    if (process->backlog != OBJECT_NONE || random_below(&worker->random, 16) == 0) {
        return false;
    }
    const bool blocked = random_below(&worker->random, 2) == 0;
    leave(process);
    stress_pause(&worker->random, 32);
    if (state_rest_owner(process, blocked ? STATE_BLOCKED : STATE_IDLE)) {
        return true;
    }
    enter(process);
    return false;
}

/* Events are added to at most one older one, as in step.c. */
static uint64_t take_news(struct process *process)
{
    if (!state_has_news_owner(process)) {
        return 0;
    }
    const uint32_t first = process->backlog;
    const bool few = first == OBJECT_NONE || node_at(first)->next == OBJECT_NONE;
    return few ? state_take_owner(process) : state_take_requests_owner(process);
}

/* One process from the queue, as step_run does it. */
static void run_process(struct worker *worker, struct process *process)
{
    enter(process);
    for (uint32_t turn = 0; turn < TURNS_MAX; turn++) {
        accept_news(process, take_news(process));
        receive_some(worker, process, 1 + random_below(&worker->random, 24));
        if (wants_to_end(worker, process)) {
            end_process(worker, process);
            return;
        }
        if (rest(worker, process)) {
            return;
        }
    }
    leave(process);
    stress_pause(&worker->random, 16);
    enqueue(process);
}

static bool run_next(struct worker *worker)
{
    struct queue_link *link;
    if (global_queue_pop_any(&ready, &link, 1, 1) == 0) {
        return false;
    }
    run_process(worker, process_of_link(link));
    return true;
}

static void *run_worker(void *arg)
{
    struct worker *worker = arg;
    while (load_acquire(&round_is_over) == 0) { /* ends the round */
        if (!run_next(worker)) {
            (void)sched_yield();
        }
    }
    return NULL;
}

/* ---- rounds ---- */

static bool all_is_received(void)
{
    uint64_t under_way = 0;
    for (uint32_t i = 0; i < SENDERS; i++) {
        under_way += senders[i].admitted;
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        under_way -= load_relaxed(&workers[i].received); /* statistic */
    }
    return under_way == 0;
}

/* With no sender left, a process that waits once will wait for ever. */
static bool all_wait(void)
{
    for (uint32_t i = 0; i < ACTORS; i++) {
        const skua_pid pid = current_pid(i);
        const uint32_t tag = event_list_tag(load_acquire(&process_of(pid)->word)); /* MO-state */
        if (state_generation(tag) != pid_generation(pid) || !state_is_waiting(tag)) {
            return false;
        }
    }
    return true;
}

/* What has reached a process that waits. Watching wakes nobody: it may still be in the word. */
static uint32_t requests_seen(struct process *process)
{
    return actor_of(process)->requests | (state_peek(process) & STATE_WATCHED);
}

static void check_requests(void)
{
    for (uint32_t i = 0; i < SENDERS * ACTORS; i++) {
        const struct acquaintance *known = &senders[i / ACTORS].known[i % ACTORS];
        const skua_pid pid = current_pid(i % ACTORS);
        const uint32_t missing = known->requests & ~requests_seen(process_of(pid));
        if (skua_pid_equal(known->pid, pid) && missing != 0) {
            stress_fault(&stress, STRESS_LOST, "requests %" PRIx32 " to a process that lives",
                         missing);
        }
    }
}

static void check_mailboxes(void)
{
    for (uint32_t i = 0; i < ACTORS; i++) {
        struct process *process = process_of(current_pid(i));
        if (mailbox_length(process) != 0) {
            stress_fault(&stress, STRESS_BROKEN, "a process rests with %" PRIu32 " places taken",
                         mailbox_length(process));
        }
    }
}

static void describe(void)
{
    for (uint32_t i = 0; i < ACTORS; i++) {
        const skua_pid pid = current_pid(i);
        (void)fprintf(stderr, "PID %" PRIx64 ": word %" PRIx64 "\n", pid.bits,
                      load_relaxed(&process_of(pid)->word));
    }
    (void)fprintf(stderr, "ready: %s\n", global_queue_has_items(&ready) ? "some" : "none");
}

static void run_round(uint64_t ops)
{
    pthread_t threads[WORKERS];
    store_relaxed(&round_is_over, 0); /* no thread yet */
    for (uint32_t i = 0; i < WORKERS; i++) {
        threads[i] = stress_start_thread(run_worker, &workers[i]);
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i].ops = ops;
    }
    stress_run_threads(SENDERS, run_sender, senders, sizeof *senders);
    while (!(all_is_received() && all_wait()) && !stress_has_failed(&stress)) {
        (void)sched_yield();
    }
    store_release(&round_is_over, 1); /* ends the round */
    for (uint32_t i = 0; i < WORKERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    check_requests();
    check_mailboxes();
}

static void end_all(void)
{
    is_final = true;
    for (uint32_t i = 0; i < ACTORS; i++) {
        const skua_pid pid = current_pid(i);
        struct process *process = process_of(pid);
        if (state_request_any(process, pid_generation(pid), STATE_KILL) == STATE_ENQUEUE) {
            enqueue(process);
        }
    }
    while (run_next(&workers[0])) {
    }
    for (uint32_t i = 0; i < ACTORS; i++) {
        if (state_of(state_peek(process_of(current_pid(i)))) != STATE_FREE) {
            stress_fault(&stress, STRESS_LOST, "the end of process %" PRIu32, i);
        }
    }
    for (uint32_t index = 1; object_pool_holds(&nodes, index); index++) {
        stress_parcel_expect_free(&stress, &node_at(index)->parcel);
    }
}

static void construct_node(void *object, uint32_t index, uint32_t floor)
{
    (void)index;
    (void)floor;
    struct node *node = object;
    store_relaxed(&node->parcel.under_way, 0); /* not shared yet */
}

static void init(const struct allocator *allocator)
{
    const struct object_pool_shape shape = {
        .layout = {sizeof(struct node), offsetof(struct node, as.link)},
        .limit = NODE_LIMIT,
        .cache_count = SENDERS + WORKERS,
        .construct = construct_node,
    };
    if (!object_pool_init(&nodes, allocator, &shape) ||
        !process_table_init(&table, allocator, 1, PROCESS_LIMIT, WORKERS)) {
        abort();
    }
    global_queue_init(&ready);
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i].random = stress_stream(&stress, i);
        senders[i].number = i;
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i].random = stress_stream(&stress, SENDERS + i);
        workers[i].number = i;
    }
    for (uint32_t i = 0; i < ACTORS; i++) {
        begin_process(&workers[0], i);
    }
}

static void deinit(void)
{
    global_queue_deinit(&ready);
    process_table_deinit(&table);
    object_pool_deinit(&nodes);
}

int main(int argc, char **argv)
{
    stress_begin(&stress, argc, argv, DEFAULT_OPS);
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    init(&memory.allocator);
    stress_describe_with(&stress, describe);
    uint64_t random = stress_stream(&stress, SENDERS + WORKERS);
    while (stress_goes_on(&stress, stress.ops)) {
        run_round(stress_done(&stress) + 1 + random_below(&random, ROUND_OPS_MAX));
    }
    if (!stress_has_failed(&stress)) {
        end_all();
    }
    stress_describe_with(&stress, NULL);
    deinit();
    return stress_end(&stress);
}
