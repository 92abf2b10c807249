/* SPDX-License-Identifier: MIT */
#include "stress_round.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/monotonic.h"
#include "counting_allocator.h"
#include "runtime/runtime.h" /* to look into the pools of objects */
#include "sched/socket_hooks.h"

static const struct stress_plan *plan;

/* The stop that took longest beyond its timeout. */
static struct {
    uint64_t beyond_ns;
    uint64_t timeout_ns;
} longest_stop;

static uint32_t count_files(void)
{
    uint32_t open_files = 0;
    for (int fd = 0; fd < STRESS_FILES_MAX; fd++) {
        open_files += fcntl(fd, F_GETFD) >= 0;
    }
    return open_files;
}

/* ---- the beginning ---- */

static void on_survivor(void *arg, const skua_process_snapshot *info)
{
    (void)arg;
    if (current.is_graceful) {
        stress_fault(&stress, STRESS_LOST, "a %s is %s after %" PRIu64 " steps and does not end",
                     info->type_name, skua_process_state_name(info->state), info->steps);
    }
}

static void begin_round(uint64_t *random, struct counting_allocator *memory)
{
    stress_forget_pids();
    current = (struct stress_round){
        .config = {.seed = random_next(random),
                   .alloc = counting_allocate,
                   .alloc_arg = memory,
                   .on_survivor = on_survivor},
        .known_pids = plan->known_pids,
        .is_graceful = once_in(random, plan->graceful),
        .ops = stress_done(&stress) + 1 + random_below(random, plan->round_ops_max),
    };
    plan->configure(random, &current.config);
    if (skua_runtime_create(&current.runtime, &current.config) != 0) {
        abort();
    }
    plan->prepare(random);
    if (skua_runtime_start(current.runtime) != 0) {
        abort();
    }
}

/* ---- the threads ---- */

static void *run_outsider(void *arg)
{
    struct stress_outsider *outsider = arg;
    stress_become_outsider();
    while (load_acquire(&current.is_over) == 0) { /* ends the round */
        plan->act(outsider);
    }
    return NULL;
}

static void end_outsiders(const pthread_t *threads)
{
    store_release(&current.is_over, 1); /* ends the round */
    for (uint32_t i = 1; i < STRESS_OUTSIDERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

static void note_stop(uint64_t took_ns, uint64_t timeout_ns)
{
    const uint64_t beyond_ns = took_ns > timeout_ns ? took_ns - timeout_ns : 0;
    if (beyond_ns > longest_stop.beyond_ns) {
        longest_stop.beyond_ns = beyond_ns;
        longest_stop.timeout_ns = timeout_ns;
    }
}

void stress_stop(uint64_t timeout_ns)
{
    const uint64_t allowed_ns = current.is_graceful ? plan->hang_ns : timeout_ns;
    const uint64_t start_ns = monotonic_ns();
    int error = skua_runtime_stop(current.runtime, allowed_ns);
    note_stop(monotonic_ns() - start_ns, allowed_ns);
    if (error == SKUA_E_STUCK) {
        stress_tally(TALLY_STUCK);
    }
    while (error == SKUA_E_STUCK) { /* a step or function took long, or had no CPU for long */
        error = skua_runtime_stop(current.runtime, plan->hang_ns);
    }
    stress_expect(error == 0 || (error == SKUA_E_TIMEOUT && !current.is_graceful), "stop", error);
}

static void stop(uint64_t *random)
{
    store_relaxed(&current.is_stopping, 1); /* a hint */
    plan->stop(random);
}

/* Everybody works until the round's operations are done; this thread is an outsider as well. */
static void run_threads(uint64_t *random)
{
    struct stress_outsider outsiders[STRESS_OUTSIDERS];
    pthread_t threads[STRESS_OUTSIDERS];
    stress_jobs_begin(random_next(random));
    for (uint32_t i = 0; i < STRESS_OUTSIDERS; i++) {
        outsiders[i] = (struct stress_outsider){.random = random_next(random), .number = 1 + i};
    }
    for (uint32_t i = 1; i < STRESS_OUTSIDERS; i++) {
        threads[i] = stress_start_thread(run_outsider, &outsiders[i]);
    }
    while (stress_goes_on(&stress, current.ops)) {
        plan->act(&outsiders[0]);
    }
    if (current.is_graceful) {
        end_outsiders(threads);
        stop(random);
    } else {
        stop(random);
        end_outsiders(threads);
    }
    stress_jobs_end();
}

/* ---- the end ---- */

/* INV-20: with nothing alive, each object of a pool is in a cache, a chain or a trimmed page. */
static void check_pool(const char *what, struct object_pool *pool, uint64_t in_caches)
{
    const uint64_t chain_length = pool->batch > 0 ? pool->batch : 1;
    uint64_t free_objects = in_caches + object_pool_trimmed_objects(pool);
    for (uint32_t first = pool->chains; first != OBJECT_NONE;) {
        free_objects += chain_length;
        first = object_pool_link(pool, object_pool_at(pool, first))->next_chain;
    }
    const uint64_t objects = load_relaxed(&pool->ready) - 1; /* no thread */
    stress_expect_equal(STRESS_LOST, what, free_objects, objects);
}

static uint64_t cached(const struct pool_cache *cache)
{
    return cache->active.count + cache->spare.count;
}

static void count_node(void *count, uint32_t node)
{
    (void)node;
    ++*(uint64_t *)count;
}

static void check_pools(struct scheduler *sched)
{
    uint64_t events = cached(&sched->outside.caches.events);
    sched->sockets->show(sched->sockets, count_node, &events); /* of what is still being sent */
    uint64_t processes = cached(&sched->outside.caches.processes);
    for (uint32_t i = 0; i < sched->capacity; i++) {
        events += cached(&sched->workers[i].caches.events);
        processes += cached(&sched->workers[i].caches.processes);
    }
    check_pool("free event nodes", &sched->events, events);
    check_pool("free process records", &sched->table.pool, processes);
}

static void check_round(void)
{
    const uint64_t spawned = stress_total(TALLY_SPAWNED);
    skua_stats sum;
    (void)skua_stats_read(current.runtime, &sum, NULL, 0);
    stress_expect_equal(STRESS_LOST, "alive after stop", sum.live, 0);
    stress_expect_equal(STRESS_LOST, "processes accepted", sum.spawned, spawned);
    stress_expect_equal(STRESS_LOST, "processes finished", sum.finished, spawned);
    stress_expect_equal(STRESS_LOST, "exits", stress_total(TALLY_EXITS), spawned);
    stress_expect_equal(STRESS_LOST, "closes", stress_total(TALLY_CLOSES),
                        stress_total(TALLY_INITS));
    stress_expect_equal(STRESS_LOST, "messages accepted", sum.messages,
                        stress_total(TALLY_MESSAGES));
    check_pools(&current.runtime->sched);
    plan->check(&sum);
}

static void end_round(struct counting_allocator *memory)
{
    const int error = skua_runtime_destroy(current.runtime);
    stress_expect(error == 0, "destroy", error);
    if (!counting_allocator_is_clean(memory)) {
        stress_fault(&stress, STRESS_BROKEN, "memory is left after destroy");
    }
    stress_loads_expect_free();
    stress_tallies_end();
}

/* ---- the whole run ---- */

static void describe(void)
{
    skua_stats sum;
    (void)skua_stats_read(current.runtime, &sum, NULL, 0);
    (void)fprintf(stderr,
                  "%" PRIu32 " workers, %" PRIu32 " spare ones, a%s round, %" PRIu64
                  " alive, %" PRIu64 " steps, %" PRIu64 " timers\n",
                  current.config.worker_count, current.config.spare_limit,
                  current.is_graceful ? " graceful" : "n abrupt", sum.live, sum.steps, sum.timers);
}

static void run_round(uint64_t *random)
{
    const uint32_t files = count_files();
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    begin_round(random, &memory);
    stress_describe_with(&stress, describe);
    run_threads(random);
    check_round();
    stress_describe_with(&stress, NULL);
    end_round(&memory);
    stress_expect_equal(STRESS_BROKEN, "open descriptors", count_files(), files);
}

static void print_summary(uint32_t rounds)
{
    (void)printf("%s: %" PRIu32 " rounds, %" PRIu64 " processes", stress.name, rounds,
                 stress_total_before(TALLY_EXITS));
    for (uint32_t i = 0; i < TALLIES_MAX; i++) {
        const uint64_t total = stress_total_before(i);
        if (plan->tally_names[i] != NULL && total > 0) {
            (void)printf(", %" PRIu64 " %s", total, plan->tally_names[i]);
        }
    }
    /* Printed, not judged: that is up to the machine as well. */
    (void)printf("\n%s: the longest stop took %.1f ms beyond its timeout of %.1f ms; %" PRIu64
                 " were stuck at first\n",
                 stress.name, (double)longest_stop.beyond_ns / (double)SKUA_MILLISECOND,
                 (double)longest_stop.timeout_ns / (double)SKUA_MILLISECOND,
                 stress_total_before(TALLY_STUCK));
}

/* A plan that wants more than the operations gets it as long as there is time: after that a round
 * would do next to nothing. */
static bool goes_on(void)
{
    const bool wants_more = plan->goes_on != NULL && plan->goes_on();
    return stress_goes_on(&stress, wants_more ? UINT64_MAX : stress.ops);
}

int stress_rounds(int argc, char **argv, const struct stress_plan *of_program)
{
    plan = of_program;
    stress_begin(&stress, argc, argv, plan->ops);
    uint64_t random = stress_stream(&stress, 0);
    uint32_t rounds = 0;
    for (; goes_on(); rounds++) {
        run_round(&random);
    }
    print_summary(rounds);
    return stress_end(&stress);
}
