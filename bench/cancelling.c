/* SPDX-License-Identifier: MIT */
/* The workload of a process that takes back yields. */
#include "bench.h"

#define HOUR_NS          (3600 * SKUA_SECOND)
#define CANCELLED_A_STEP 100u
#define STRIDE           7919u /* a prime: tags are taken back in no order */

/* Opens timers, takes them all back and waits until each has completed; again and again. Only
 * taking back is timed, with the completions. */
struct canceller {
    uint32_t size;
    uint32_t rounds; /* not begun */
    uint32_t cancelled;
    uint32_t completed;
    uint64_t begin_ns;
    uint64_t elapsed_ns;
};

static int canceller_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct canceller *canceller = self;
    (void)ctx;
    (void)input_count;
    canceller->size = (uint32_t)skua_payload_to_u64(&input[0]);
    canceller->rounds = bench_rounds(canceller->size);
    return 0;
}

static int open_timers(struct canceller *canceller, skua_context *ctx)
{
    int error = 0;
    for (uint32_t i = 0; i < canceller->size && error == 0; i++) {
        error = skua_yield_sleep(ctx, i, HOUR_NS);
    }
    canceller->rounds--;
    canceller->cancelled = 0;
    canceller->completed = 0;
    canceller->begin_ns = 0;
    return error != 0 ? error : skua_continue(ctx);
}

static int cancel_some(struct canceller *canceller, skua_context *ctx)
{
    const uint32_t left = canceller->size - canceller->cancelled;
    int error = 0;
    if (canceller->begin_ns == 0) {
        canceller->begin_ns = now_ns();
    }
    for (uint32_t i = 0; i < CANCELLED_A_STEP && i < left && error == 0; i++) {
        const uint64_t tag = (uint64_t)canceller->cancelled++ * STRIDE % canceller->size;
        error = skua_yield_cancel(ctx, tag);
    }
    return error != 0 || left <= CANCELLED_A_STEP ? error : skua_continue(ctx);
}

static int end_round(struct canceller *canceller, skua_context *ctx)
{
    canceller->elapsed_ns += now_ns() - canceller->begin_ns;
    return canceller->rounds > 0 ? open_timers(canceller, ctx)
                                 : skua_done(ctx, skua_payload_u64(0, canceller->elapsed_ns));
}

static int canceller_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct canceller *canceller = self;
    if (bench_starts(events)) {
        return open_timers(canceller, ctx);
    }
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_COMPLETION) {
            expect_right(events[i].error == SKUA_E_CANCELLED, "cancel: a timer was not cancelled");
            canceller->completed++;
        }
    }
    if (canceller->completed == canceller->size) {
        return end_round(canceller, ctx);
    }
    return canceller->cancelled < canceller->size ? cancel_some(canceller, ctx) : 0;
}

static const skua_process_type canceller_type = {.name = "canceller",
                                                 .state_size = sizeof(struct canceller),
                                                 .init = canceller_init,
                                                 .step = canceller_step};

struct measurement bench_cancel(uint32_t workers, uint32_t size)
{
    uint64_t elapsed;
    skua_runtime *runtime = bench_start(workers);
    size -= size % STRIDE == 0; /* so that the stride comes to every tag */
    (void)bench_run_sized(runtime, &canceller_type, size, &elapsed);
    return bench_finish(runtime, (uint64_t)size * bench_rounds(size), elapsed);
}
