/* SPDX-License-Identifier: MIT */
/* What a task keeps over a wait, as compilers have it: values of every kind in as many registers as
 * there are, and errno, which must be that of the thread it goes on on; and that it can jump back
 * over a wait. Run with SKUA_DEBUG=migrate. */
#include <setjmp.h>
#include <skua/skua.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "switch.h"

#define TASKS 9
#define WAITS 300

typedef double vector __attribute__((vector_size(32)));

static atomic_uint wrong;
static atomic_uint done;

/* Waits, in every way that is compiled into the task itself, and some that are not. */
static inline int wait_somehow(skua_context *ctx, unsigned turn)
{
    skua_event *event;
    if (turn % 3 == 0) {
        return skua_task_pause(ctx);
    }
    const int error = skua_send(ctx, skua_self(ctx), skua_payload_u64(1, turn));
    if (error != 0) {
        return error;
    }
    return skua_task_receive(ctx, &event, turn % 3 == 1 ? SKUA_FOREVER : SKUA_SECOND * 1000);
}

struct values {
    uint64_t a, b, c, d, e, f, g, h, i, j, k, l;
    double p, q, r, s, t, u, v, w;
    vector x, y, z;
};

/* All values are live over the wait; `ctx` is null to do the same without one. */
static int mix(skua_context *ctx, uint64_t seed, struct values *end)
{
    uint64_t a = seed, b = seed * 3, c = seed * 5, d = seed * 7, e = seed * 9, f = seed * 11;
    uint64_t g = seed * 13, h = seed * 15, i = seed * 17, j = seed * 19, k = seed * 21, l = 23;
    double p = (double)seed, q = p * 1.5, r = p * 2.5, s = p * 3.5, t = p * 4.5, u = p * 5.5;
    double v = p * 6.5, w = p * 7.5;
    vector x = {p, q, r, s}, y = {t, u, v, w}, z = {1, 2, 3, 4};
    for (unsigned turn = 0; turn < WAITS; turn++) {
        const int error = ctx != NULL ? wait_somehow(ctx, turn) : 0;
        if (error != 0) {
            return error;
        }
        a += b, b ^= c, c += d, d ^= e, e += f, f ^= g, g += h, h ^= i, i += j, j ^= k, k += l;
        l ^= a + turn;
        p = p * 0.5 + q, q = q * 0.25 + r, r = r * 0.5 + s, s = s * 0.25 + t, t = t * 0.5 + u;
        u = u * 0.25 + v, v = v * 0.5 + w, w = w * 0.25 + 1;
        x = x * 0.5 + y, y = y * 0.25 + z, z = z * 0.5 + x * 0.125;
    }
    memset(end, 0, sizeof *end);
    *end = (struct values){a, b, c, d, e, f, g, h, i, j, k, l, p, q, r, s, t, u, v, w, x, y, z};
    return 0;
}

static int keep_main(void *self, skua_context *ctx)
{
    struct values here;
    struct values there;
    (void)self;
    const uint64_t seed = skua_self(ctx).bits;
    const int error = mix(ctx, seed, &here);
    (void)mix(NULL, seed, &there);
    atomic_fetch_add(&wrong, error != 0 || memcmp(&here, &there, sizeof here) != 0);
    atomic_fetch_add(&done, 1);
    return 0;
}

static inline void fail_here(int error)
{
    errno = error;
}

static int errno_main(void *self, skua_context *ctx)
{
    (void)self;
    for (int turn = 1; turn < WAITS; turn++) {
        fail_here(turn);
        atomic_fetch_add(&wrong, *errno_of_thread() != turn);
        if (wait_somehow(ctx, (unsigned)turn) != 0) {
            return -1;
        }
        fail_elsewhere(turn + 1000);
        atomic_fetch_add(&wrong, *errno_of_thread() != turn + 1000 || errno != turn + 1000);
        *errno_of_thread() = turn + 2000;
        atomic_fetch_add(&wrong, !has_failed_with(turn + 2000));
    }
    atomic_fetch_add(&done, 1);
    return 0;
}

/* Waits, and jumps back to a frame above that of its caller. */
static __attribute__((noinline)) void jump_to(skua_context *ctx, jmp_buf *start, unsigned turn)
{
    atomic_fetch_add(&wrong, wait_somehow(ctx, turn) != 0);
    longjmp(*start, (int)turn);
}

static __attribute__((noinline)) void wait_and_jump(skua_context *ctx, jmp_buf *start,
                                                    unsigned turn)
{
    volatile char frame[100] = {0};
    atomic_fetch_add(&wrong, wait_somehow(ctx, turn + 1) != frame[99]);
    jump_to(ctx, start, turn);
}

static int jump_main(void *self, skua_context *ctx)
{
    (void)self;
    jmp_buf start;
    volatile unsigned turn = 0;
    const int jumped = setjmp(start);
    atomic_fetch_add(&wrong, jumped != (int)turn);
    atomic_fetch_add(&wrong, wait_somehow(ctx, turn) != 0);
    if (turn < WAITS) {
        turn++;
        wait_and_jump(ctx, &start, turn);
    }
    atomic_fetch_add(&done, 1);
    return 0;
}

static const skua_process_type keep_type = {.name = "keep", .main = keep_main, .stack_size = 16384};
static const skua_process_type errno_type = {.name = "errno", .main = errno_main};
static const skua_process_type jump_type = {.name = "jump", .main = jump_main};

int main(void)
{
    static const skua_process_type *const types[] = {&keep_type, &errno_type, &jump_type};
    skua_runtime *runtime;
    skua_pid pids[TASKS];
    const skua_runtime_config config = {.worker_count = 2};
    int error = skua_runtime_create(&runtime, &config);
    error = error != 0 ? error : skua_runtime_start(runtime);
    for (unsigned i = 0; i < TASKS && error == 0; i++) {
        error = skua_process_submit(runtime, types[i % 3], skua_payload_empty(0), &pids[i]);
    }
    if (error != 0) {
        (void)printf("cannot start: %s\n", skua_error_text(error));
        return 1;
    }
    for (unsigned i = 0; i < TASKS; i++) {
        (void)!skua_process_wait(runtime, pids[i], SKUA_FOREVER, NULL);
    }
    (void)skua_runtime_stop(runtime, SKUA_FOREVER);
    (void)skua_runtime_destroy(runtime);
    if (atomic_load(&wrong) != 0 || atomic_load(&done) != TASKS) {
        (void)printf("%u wrong, %u of %d done\n", atomic_load(&wrong), atomic_load(&done), TASKS);
        return 1;
    }
    return 0;
}
