/* SPDX-License-Identifier: MIT */
/* Workloads of processes that start and end. */
#include <inttypes.h>
#include <stdio.h>

#include "bench.h"

/* ---- spawn: a million processes that end in their first step, started from inside one ---- */

static int trivial_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return skua_done(ctx, skua_nothing());
}

static const skua_process_type trivial = {.name = "trivial", .step = trivial_step};

static int spawn_some(skua_context *ctx, uint32_t count)
{
    int error = 0;
    for (uint32_t i = 0; i < count && error == 0; i++) {
        error = skua_spawn(ctx, &trivial, skua_nothing(), NULL);
    }
    return error;
}

#define SPAWNED_A_STEP 100u

static int spawner_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    uint32_t *spawned = self;
    (void)events;
    (void)count;
    const int error = spawn_some(ctx, SPAWNED_A_STEP);
    *spawned += SPAWNED_A_STEP;
    if (*spawned < MILLION) {
        skua_continue(ctx);
    } else {
        skua_done(ctx, skua_nothing());
    }
    return error;
}

static const skua_process_type spawner_type = {
    .name = "spawner", .state_size = sizeof(uint32_t), .step = spawner_step};

struct measurement bench_spawn(uint32_t workers)
{
    skua_runtime *runtime = bench_start(workers);
    const uint64_t begin = now_ns();
    (void)bench_run(runtime, &spawner_type, NULL, NULL);
    bench_wait_until_empty(runtime, MILLION + 1);
    return bench_finish(runtime, MILLION, now_ns() - begin);
}

/* ---- spawn-burst: all of them in one step; if they are few, again and again ---- */

/* Every hundredth process of a burst tells that it has run. When all these have, the burst is over
 * but for a few, and the next one may begin: so about as many are alive as the size says, and
 * telling adds next to nothing to the cost of a process. */
#define TELLS_EVERY 100u

static int teller_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)ctx;
    if (input_count == 1) {
        *(skua_pid *)self = skua_payload_to_pid(&input[0]);
    }
    return 0;
}

static int teller_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)events;
    (void)count;
    skua_done(ctx, skua_nothing());
    return skua_send(ctx, *(const skua_pid *)self, skua_nothing());
}

static const skua_process_type teller_type = {
    .name = "teller", .state_size = sizeof(skua_pid), .init = teller_init, .step = teller_step};

struct burst {
    uint32_t size;
    uint32_t rounds;  /* not begun */
    uint32_t missing; /* of this one: who have not told yet */
};

static int burst_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct burst *burst = self;
    (void)ctx;
    burst->size = input_count == 1 ? (uint32_t)skua_payload_to_u64(&input[0]) : MILLION;
    burst->rounds = bench_rounds(burst->size);
    return 0;
}

static int burst_begin(struct burst *burst, skua_context *ctx)
{
    int error = 0;
    for (uint32_t left = burst->size; left > 0 && error == 0;) {
        const uint32_t some = left < TELLS_EVERY ? left : TELLS_EVERY;
        skua_payload self = skua_payload_pid(0, skua_self(ctx));
        burst->missing++;
        error = skua_spawn(ctx, &teller_type, self, NULL);
        error = error != 0 ? error : spawn_some(ctx, some - 1);
        left -= some;
    }
    return error;
}

static int burst_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct burst *burst = self;
    burst->missing -= (uint32_t)bench_count(events, count);
    if (burst->missing > 0) {
        return 0;
    }
    if (burst->rounds == 0) {
        skua_done(ctx, skua_nothing());
        return 0;
    }
    burst->rounds--;
    return burst_begin(burst, ctx);
}

static const skua_process_type burst_type = {
    .name = "burst", .state_size = sizeof(struct burst), .init = burst_init, .step = burst_step};

struct measurement bench_spawn_burst(uint32_t workers, uint32_t size)
{
    const uint64_t ops = (uint64_t)size * bench_rounds(size);
    skua_runtime *runtime = bench_start(workers);
    const uint64_t begin = now_ns();
    (void)bench_run_sized(runtime, &burst_type, size, NULL);
    bench_wait_until_empty(runtime, ops + 1);
    return bench_finish(runtime, ops, now_ns() - begin);
}

/* ---- crowd: so many are alive at once, and the oldest makes place for a new one ---- */

/* Lives until it gets a message. */
static int lodger_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    return bench_count(events, count) > 0 ? skua_done(ctx, skua_nothing()) : 0;
}

static const skua_process_type lodger_type = {.name = "lodger", .step = lodger_step};

/* They are started `size` at a time: to fill the places, then to replace each at least once. */
struct crowd {
    uint32_t size;
    uint64_t starts; /* in all */
    uint64_t done;   /* starts; and when these are over, ends of those who are left */
    skua_pid *lodgers;
};

static uint64_t crowd_starts(uint32_t size)
{
    return (uint64_t)size * (1 + bench_rounds(size));
}

static int crowd_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct crowd *crowd = self;
    crowd->size = input_count == 1 ? (uint32_t)skua_payload_to_u64(&input[0]) : MILLION;
    crowd->starts = crowd_starts(crowd->size);
    crowd->lodgers = skua_alloc(ctx, crowd->size * sizeof(skua_pid));
    return crowd->lodgers != NULL ? 0 : SKUA_E_NO_MEMORY;
}

static int crowd_move(struct crowd *crowd, skua_context *ctx)
{
    skua_pid *place = &crowd->lodgers[crowd->done % crowd->size];
    int error = 0;
    if (crowd->done >= crowd->size) {
        error = skua_send(ctx, *place, skua_nothing());
    }
    if (crowd->done < crowd->starts && error == 0) {
        error = skua_spawn(ctx, &lodger_type, skua_nothing(), place);
    }
    crowd->done++;
    return error;
}

static int crowd_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct crowd *crowd = self;
    (void)events;
    (void)count;
    int error = 0;
    const uint64_t end = crowd->starts + crowd->size;
    for (uint32_t i = 0; i < SPAWNED_A_STEP && crowd->done < end && error == 0; i++) {
        error = crowd_move(crowd, ctx);
    }
    if (crowd->done < end) {
        skua_continue(ctx);
        return error;
    }
    skua_free(ctx, crowd->lodgers, crowd->size * sizeof(skua_pid));
    skua_done(ctx, skua_nothing());
    return error;
}

static const skua_process_type crowd_type = {
    .name = "crowd", .state_size = sizeof(struct crowd), .init = crowd_init, .step = crowd_step};

struct measurement bench_crowd(uint32_t workers, uint32_t size)
{
    const uint64_t starts = crowd_starts(size);
    skua_runtime *runtime = bench_start(workers);
    const uint64_t begin = now_ns();
    (void)bench_run_sized(runtime, &crowd_type, size, NULL);
    bench_wait_until_empty(runtime, starts + 1);
    return bench_finish(runtime, starts, now_ns() - begin);
}

/* ---- submit: trivial ones from a thread that is no worker ---- */

struct measurement bench_submit(uint32_t workers)
{
    skua_runtime *runtime = bench_start(workers);
    const uint64_t begin = now_ns();
    for (uint32_t i = 0; i < MILLION; i++) {
        expect_ok(skua_process_submit(runtime, &trivial, skua_nothing(), NULL), "submit");
    }
    bench_wait_until_empty(runtime, MILLION);
    return bench_finish(runtime, MILLION, now_ns() - begin);
}

/* ---- trees: each process starts some, waits for their numbers and tells the sum ---- */

/* What a branch is told, in one payload as in examples/08_skynet.c. The root has no parent. In
 * skynet the number is that of its first leaf, and the size how many are below it; in fib, n. */
SKUA_MESSAGE(share, 0, skua_pid parent; uint64_t number; uint64_t size;);

struct branch {
    struct share share;
    uint64_t sum;
    uint32_t missing; /* children that have not told yet */
};

static int branch_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct branch *branch = self;
    (void)ctx;
    return input_count > 0 ? share_get(&input[0], &branch->share) : 0;
}

static int start_branch(skua_context *ctx, const skua_process_type *type, uint64_t number,
                        uint64_t size)
{
    const struct share share = {.parent = skua_self(ctx), .number = number, .size = size};
    skua_payload input;
    const int error = skua_payload_of_bytes(ctx, share_number, &share, sizeof share, &input);
    return error != 0 ? error : skua_spawn(ctx, type, input, NULL);
}

static int tell(struct branch *branch, skua_context *ctx, uint64_t sum)
{
    skua_done(ctx, skua_payload_u64(0, sum));
    return skua_pid_is_none(branch->share.parent)
               ? 0
               : skua_send(ctx, branch->share.parent, skua_payload_u64(0, sum));
}

/* Adds up what the children have told; true when all have. */
static bool gather(struct branch *branch, const skua_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        branch->sum += skua_payload_to_u64(&events[i].payload);
        branch->missing--;
    }
    return branch->missing == 0;
}

#define SKYNET_LEAVES    MILLION
#define SKYNET_DEGREE    10
#define SKYNET_PROCESSES 1111111u

static int skynet_step(void *self, skua_context *ctx, skua_event *events, size_t count);

static const skua_process_type skynet_type = {.name = "skynet",
                                              .state_size = sizeof(struct branch),
                                              .init = branch_init,
                                              .step = skynet_step};

static int skynet_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct branch *branch = self;
    if (!bench_starts(events)) {
        return gather(branch, events, count) ? tell(branch, ctx, branch->sum) : 0;
    }
    if (skua_pid_is_none(branch->share.parent)) {
        branch->share.size = SKYNET_LEAVES;
    }
    if (branch->share.size == 1) {
        return tell(branch, ctx, branch->share.number);
    }
    const uint64_t size = branch->share.size / SKYNET_DEGREE;
    int error = 0;
    for (; branch->missing < SKYNET_DEGREE && error == 0; branch->missing++) {
        error =
            start_branch(ctx, &skynet_type, branch->share.number + branch->missing * size, size);
    }
    return error;
}

struct measurement bench_skynet(uint32_t workers)
{
    uint64_t sum;
    skua_runtime *runtime = bench_start(workers);
    const uint64_t elapsed = bench_run(runtime, &skynet_type, NULL, &sum);
    expect_right(sum == (uint64_t)SKYNET_LEAVES * (SKYNET_LEAVES - 1) / 2, "skynet: the sum");
    return bench_finish(runtime, SKYNET_PROCESSES, elapsed);
}

#define FIB_N         30
#define FIB_RESULT    832040u
#define FIB_PROCESSES 2692537u

static int fib_step(void *self, skua_context *ctx, skua_event *events, size_t count);

static const skua_process_type fib_type = {
    .name = "fib", .state_size = sizeof(struct branch), .init = branch_init, .step = fib_step};

static int fib_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct branch *branch = self;
    if (!bench_starts(events)) {
        return gather(branch, events, count) ? tell(branch, ctx, branch->sum) : 0;
    }
    const uint64_t n = skua_pid_is_none(branch->share.parent) ? FIB_N : branch->share.number;
    if (n < 2) {
        return tell(branch, ctx, n);
    }
    branch->missing = 2;
    const int error = start_branch(ctx, &fib_type, n - 1, 0);
    return error != 0 ? error : start_branch(ctx, &fib_type, n - 2, 0);
}

struct measurement bench_fib(uint32_t workers)
{
    uint64_t result;
    skua_runtime *runtime = bench_start(workers);
    const uint64_t elapsed = bench_run(runtime, &fib_type, NULL, &result);
    expect_right(result == FIB_RESULT, "fib: the result");
    return bench_finish(runtime, FIB_PROCESSES, elapsed);
}

/* ---- steal: one process starts uneven work, the other workers must come and take it ---- */

#define TASKS      20000u
#define TURNS_MAX  20000u
#define TURNS_STEP 7919u /* a prime: the lengths differ, and are the same in every run */

static int task_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)ctx;
    *(uint64_t *)self = input_count > 0 ? skua_payload_to_u64(&input[0]) : 0;
    return 0;
}

static int task_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)ctx;
    (void)events;
    (void)count;
    volatile uint64_t work = 1;
    for (uint64_t i = 0; i < *(const uint64_t *)self; i++) {
        work = work * 3 + i;
    }
    return skua_done(ctx, skua_nothing());
}

static const skua_process_type task_type = {
    .name = "task", .state_size = sizeof(uint64_t), .init = task_init, .step = task_step};

static int foreman_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    int error = 0;
    for (uint32_t i = 0; i < TASKS && error == 0; i++) {
        skua_payload turns = skua_payload_u64(0, (uint64_t)i * TURNS_STEP % TURNS_MAX);
        error = skua_spawn(ctx, &task_type, turns, NULL);
    }
    skua_done(ctx, skua_nothing());
    return error;
}

static const skua_process_type foreman_type = {.name = "foreman", .step = foreman_step};

struct measurement bench_steal(uint32_t workers)
{
    skua_stats shares[SKUA_WORKERS_MAX];
    skua_runtime *runtime = bench_start(workers);
    const uint64_t begin = now_ns();
    (void)bench_run(runtime, &foreman_type, NULL, NULL);
    bench_wait_until_empty(runtime, TASKS + 1);
    const uint64_t elapsed = now_ns() - begin;
    (void)skua_stats_read(runtime, NULL, shares, workers);
    uint64_t least = UINT64_MAX;
    uint64_t stolen = 0;
    for (uint32_t i = 0; i < workers; i++) {
        least = shares[i].steps < least ? shares[i].steps : least;
        stolen += shares[i].stolen;
    }
    struct measurement result = bench_finish(runtime, TASKS, elapsed);
    snprintf(result.note, sizeof result.note,
             "the laziest worker ran %.0f %% of its share; %" PRIu64 " stolen",
             100.0 * (double)least * workers / (TASKS + 1), stolen);
    return result;
}
