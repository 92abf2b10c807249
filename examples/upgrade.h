/* SPDX-License-Identifier: MIT */
/* Of 17_upgrade and 17_upgrade_2: a process that calls the counter again and again, and counts the
 * answers. Each must be one more than the last: whatever becomes of the counter, no call is lost.
 */
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

/* The answer of the counter: its count, and the version of its code. */
SKUA_MESSAGE(counted, 1, uint64_t count; uint32_t version;);

static const skua_process_type counter_type; /* in each of the two */

struct caller {
    skua_pid counter;
    uint64_t left; /* calls */
    struct counted last;
};

static int caller_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct caller *caller = self;
    caller->left = count > 0 ? strtoull(skua_payload_data(&input[0]), NULL, 10) : 1000;
    return skua_spawn(ctx, &counter_type, skua_nothing(), &caller->counter);
}

static int caller_main(void *self, skua_context *ctx)
{
    struct caller *caller = self;
    struct counted answer = {0};
    int error = 0;
    for (; caller->left > 0 && error == 0; caller->left--) {
        skua_payload reply;
        error = skua_task_call(ctx, caller->counter, skua_nothing(), SKUA_SECOND, &reply);
        error = error != 0 ? error : counted_get(&reply, &answer);
        if (error == 0 && answer.count != caller->last.count + 1) {
            return SKUA_E_USER; /* one was lost */
        }
        if (error == 0 && answer.version != caller->last.version) {
            printf("call %llu: version %u\n", (unsigned long long)answer.count, answer.version);
        }
        caller->last = answer;
        error = error != 0 ? error : skua_task_sleep(ctx, 10 * SKUA_MILLISECOND);
    }
    printf("%llu calls, the last answered by version %u\n", (unsigned long long)answer.count,
           answer.version);
    return error;
}

static const skua_process_type caller_type = {.name = "caller",
                                              .state_size = sizeof(struct caller),
                                              .init = caller_init,
                                              .main = caller_main};
