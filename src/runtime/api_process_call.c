/* SPDX-License-Identifier: MIT */
/* skua_process_call: a process asks in the thread's stead. */
#include <skua/call.h>
#include <stdalign.h>

#include "runtime/caller.h"
#include "runtime/runtime.h"

/* The thread and the process share this; who is last frees it. */
struct asking {
    skua_runtime *runtime;
    atomic_u32 holders;
    skua_pid to;
    uint64_t timeout_ns;
    skua_payload payload; /* the question, then the answer */
    int error;
};

static void let_go(struct asking *asking)
{
    if (fetch_sub_acq_rel(&asking->holders, 1) == 1) { /* MO-asking */
        skua_payload_drop(&asking->payload);
        allocator_free(&asking->runtime->sched.allocator, asking, sizeof *asking,
                       alignof(struct asking));
    }
}

static void drop_asking(void *data, size_t size)
{
    (void)size;
    let_go(data);
}

static int begin_asking(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    skua_payload payload = skua_payload_take(input);
    *(struct asking **)self = payload.as.owned.data;
    return 0;
}

/* Others may know its PID, as the `from` of the call or from a list, and send it messages: they can
 * come with any of the two events that matter. */
static int ask(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct asking *asking = *(struct asking **)self;
    bool is_over = false;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            asking->error =
                skua_yield_call_from(ctx, 0, asking->to, &asking->payload, asking->timeout_ns);
            asking->payload = skua_payload_empty(0); /* it was taken */
            is_over = asking->error != 0;
        } else if (events[i].type == SKUA_EVENT_COMPLETION) {
            asking->error = events[i].error;
            asking->payload = skua_payload_take(&events[i].payload);
            is_over = true;
        }
    }
    return is_over ? skua_done(ctx, skua_payload_empty(0)) : 0;
}

static void end_asking(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)ctx;
    (void)exit;
    let_go(*(struct asking **)self);
}

static const skua_process_type asking_type = {
    .name = "skua_process_call",
    .state_size = sizeof(struct asking *),
    .init = begin_asking,
    .step = ask,
    .close = end_asking,
};

static int run_asking(struct asking *asking, skua_payload *reply)
{
    skua_exit exit;
    int error = skua_process_run(asking->runtime, &asking_type,
                                 skua_payload_pointer(0, asking, drop_asking), &exit);
    if (error == 0) {
        skua_payload_drop(&exit.result);
        error = exit.error != 0 ? exit.error : asking->error;
        if (reply != NULL && exit.error == 0) {
            *reply = skua_payload_take(&asking->payload);
        }
    }
    return error;
}

static int ask_and_wait(skua_runtime *runtime, skua_pid to, skua_payload *payload,
                        uint64_t timeout_ns, skua_payload *reply)
{
    struct asking *asking =
        allocator_alloc(&runtime->sched.allocator, sizeof *asking, alignof(struct asking));
    if (asking == NULL) {
        skua_payload_drop(payload);
        return SKUA_E_NO_MEMORY;
    }
    *asking = (struct asking){
        .runtime = runtime, .to = to, .timeout_ns = timeout_ns, .payload = *payload};
    store_relaxed(&asking->holders, 2); /* not shared yet */
    const int error = run_asking(asking, reply);
    let_go(asking);
    return error;
}

/* Counts as a caller that looks until it has let go of its memory, so that destroy waits for that.
 * Memory can be trimmed meanwhile. */
int skua_process_call(skua_runtime *runtime, skua_pid to, skua_payload payload, uint64_t timeout_ns,
                      skua_payload *reply)
{
    const struct worker *worker = runtime != NULL ? caller_look(runtime) : NULL;
    if (reply != NULL) {
        *reply = skua_payload_empty(0);
    }
    if (runtime == NULL) {
        skua_payload_drop(&payload);
        return SKUA_E_INVALID;
    }
    const int error = ask_and_wait(runtime, to, &payload, timeout_ns, reply);
    caller_look_away(runtime, worker);
    return error;
}
