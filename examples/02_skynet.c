/* SPDX-License-Identifier: MIT */
/* A tree of processes: every node starts ten children until there are a million leaves. A leaf
 * sends its number to its parent, a parent the sum of its children; the root's sum is checked.
 *
 *   02_skynet [LEAVES] [WORKERS]
 */
#include <inttypes.h>
#include <pthread.h>
#include <skua/skua.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define DEGREE 10

enum { SUM = 1 };

/* What a node is told: who waits for its sum, and which numbers are below it. */
struct range {
    skua_pid parent;
    uint64_t first;
    uint64_t size;
};

struct node {
    struct range range;
    uint64_t sum;
    unsigned waiting;
    bool started;
};

static int node_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                     size_t input_count)
{
    struct node *node = self;
    (void)ctx;
    (void)method;
    if (input_count != 1 || skua_payload_size(&input[0]) != sizeof node->range) {
        return SKUA_E_INVALID;
    }
    node->range = *(const struct range *)skua_payload_data(&input[0]);
    return 0;
}

static int node_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out);

static const skua_process_type node_type = {
    .name = "node",
    .state_size = sizeof(struct node),
    .init = node_init,
    .step = node_step,
};

static int start_children(struct node *node, skua_context *ctx)
{
    struct range child = {skua_context_self(ctx), node->range.first, node->range.size / DEGREE};
    for (unsigned i = 0; i < DEGREE; i++) {
        skua_payload input;
        int error = skua_payload_copy(skua_context_runtime(ctx), 0, &child, sizeof child, &input);
        if (error == 0) {
            error = skua_context_spawn(ctx, &node_type, NULL, &input, 1, NULL);
        }
        if (error != 0) {
            return error;
        }
        child.first += child.size;
    }
    node->waiting = DEGREE;
    return 0;
}

static int node_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct node *node = self;
    if (!node->started) {
        node->started = true;
        if (node->range.size > 1) {
            return start_children(node, ctx);
        }
        node->sum = node->range.first;
    }
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            return events[i].error;
        }
        node->sum += skua_payload_to_u64(&events[i].payload);
        node->waiting--;
    }
    if (node->waiting > 0) {
        return 0;
    }
    skua_step_done(out, skua_payload_u64(SUM, node->sum));
    if (skua_pid_is_none(node->range.parent)) {
        return 0;
    }
    return skua_context_send(ctx, node->range.parent, skua_payload_u64(SUM, node->sum));
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Shows on a terminal how far the run is. */
struct progress {
    skua_runtime *runtime;
    uint64_t total;
    atomic_bool finished;
};

static void *show_progress(void *arg)
{
    struct progress *progress = arg;
    while (!atomic_load(&progress->finished)) {
        skua_stats stats;
        if (skua_stats_read(progress->runtime, &stats, NULL, 0) > 0) {
            fprintf(stderr, "\r%3" PRIu64 " %%  %" PRIu64 " processes alive  ",
                    stats.finished * 100 / progress->total, stats.live);
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    fprintf(stderr, "\r%40s\r", "");
    return NULL;
}

static int fail(const char *what, int error)
{
    fprintf(stderr, "02_skynet: %s: %s (%s)\n", what, skua_error_text(error),
            skua_error_name(error));
    return 1;
}

/* A node that fails would leave its parent waiting for ever, so the program ends with it. */
static void check_exit(void *arg, skua_exit *exit)
{
    (void)arg;
    if (exit->error != 0) {
        _Exit(fail("a node failed", exit->error));
    }
}

/* The size of the tree; 0 if there is no such tree. */
static uint64_t count_processes(uint64_t leaves)
{
    uint64_t total = 1;
    for (; leaves > 1; leaves /= DEGREE) {
        if (leaves % DEGREE != 0) {
            return 0;
        }
        total += leaves;
    }
    return total;
}

static int run_tree(skua_runtime *runtime, uint64_t leaves, uint64_t total, skua_exit *exit)
{
    struct progress progress = {.runtime = runtime, .total = total};
    pthread_t thread;
    const bool shown =
        isatty(STDERR_FILENO) && pthread_create(&thread, NULL, show_progress, &progress) == 0;
    const struct range all = {.size = leaves};
    skua_payload input;
    int error = skua_payload_copy(runtime, 0, &all, sizeof all, &input);
    if (error == 0) {
        error = skua_process_run(runtime, &node_type, NULL, &input, 1, exit);
    }
    if (shown) {
        atomic_store(&progress.finished, true);
        pthread_join(thread, NULL);
    }
    return error != 0 ? error : exit->error;
}

static void report(skua_runtime *runtime, uint64_t leaves, uint64_t sum, uint64_t elapsed_ns)
{
    skua_stats stats;
    struct rusage usage;
    const int workers = skua_stats_read(runtime, &stats, NULL, 0);
    getrusage(RUSAGE_SELF, &usage);
    printf("sum of 0 .. %" PRIu64 ": %" PRIu64 ", as it should be\n", leaves - 1, sum);
    printf("workers      %12d\n", workers);
    printf("processes    %12" PRIu64 "\n", stats.finished);
    printf("messages     %12" PRIu64 "\n", stats.messages);
    printf("steps        %12" PRIu64 "\n", stats.steps);
    printf("steals       %12" PRIu64 "  (%" PRIu64 " processes)\n", stats.steal_successes,
           stats.stolen);
    printf("wall time    %12.3f s  (%.0f ns per process)\n", (double)elapsed_ns / 1e9,
           (double)elapsed_ns / (double)stats.finished);
    printf("peak memory  %12.1f MiB\n", (double)usage.ru_maxrss / 1024);
}

int main(int argc, char **argv)
{
    const uint64_t leaves = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    const uint64_t total = count_processes(leaves);
    const skua_runtime_config config = {
        .worker_count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0,
        .on_exit = check_exit,
    };
    if (argc > 3 || leaves == 0 || total == 0) {
        fprintf(stderr, "usage: 02_skynet [LEAVES, a power of %d] [WORKERS]\n", DEGREE);
        return 2;
    }
    skua_runtime *runtime;
    int error = skua_runtime_create(&runtime, &config);
    if (error != 0) {
        return fail("cannot create a runtime", error);
    }
    error = skua_runtime_start(runtime);
    if (error != 0) {
        return fail("cannot start the workers", error);
    }
    skua_exit exit;
    const uint64_t start = now_ns();
    error = run_tree(runtime, leaves, total, &exit);
    const uint64_t elapsed = now_ns() - start;
    if (error != 0) {
        return fail("cannot run the tree", error);
    }
    const uint64_t sum = skua_payload_to_u64(&exit.result);
    if (sum != leaves * (leaves - 1) / 2) {
        fprintf(stderr, "02_skynet: wrong sum %" PRIu64 "\n", sum);
        return 1;
    }
    skua_runtime_stop(runtime, SKUA_FOREVER);
    report(runtime, leaves, sum, elapsed);
    return skua_runtime_destroy(runtime);
}
