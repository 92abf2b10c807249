/* SPDX-License-Identifier: MIT */
#include "process/step_output.h"

#include <stdalign.h>

#include "process/payload.h"

/* The initial capacity; it doubles when full and stays for later steps of the worker. */
#define YIELDS_FIRST 16

static size_t array_size(uint32_t capacity)
{
    return capacity * sizeof(struct yield);
}

static bool make_room(skua_step *out)
{
    if (LIKELY(out->yield_count < out->yield_capacity)) {
        return true;
    }
    const uint32_t capacity = out->yield_capacity == 0 ? YIELDS_FIRST : 2 * out->yield_capacity;
    struct yield *yields =
        allocator_grow(out->allocator, out->yields, array_size(out->yield_capacity),
                       array_size(capacity), alignof(struct yield));
    if (yields == NULL) {
        return false;
    }
    out->yields = yields;
    out->yield_capacity = capacity;
    return true;
}

static int append_yield(skua_step *out, uint32_t command, uint64_t tag, const skua_payload *payload)
{
    uint32_t index;
    if (UNLIKELY(skua_payload_size(payload) > out->payload_limit)) {
        return SKUA_E_PAYLOAD_SIZE;
    }
    if (!make_room(out) || !event_acquire_owner(out->events, out->event_cache, &index)) {
        return SKUA_E_NO_MEMORY;
    }
    event_at(out->events, index)->as.call.tag = tag;
    struct yield *yield = &out->yields[out->yield_count++];
    yield->command = command;
    yield->node = index;
    yield->deadline = SKUA_FOREVER;
    payload_put(&yield->payload, payload);
    return 0;
}

int skua_step_deadline(skua_step *out, uint64_t deadline_ns)
{
    if (out == NULL || !out->open || !out->yielded) {
        return SKUA_E_INVALID;
    }
    out->yields[out->yield_count - 1].deadline = deadline_ns;
    return 0;
}

int skua_step_cancel(skua_step *out, uint64_t tag)
{
    if (out == NULL || !out->open) {
        return SKUA_E_INVALID;
    }
    step_output_refuse(out);
    if (!make_room(out)) {
        return SKUA_E_NO_MEMORY;
    }
    out->yields[out->yield_count++] =
        (struct yield){.node = OBJECT_NONE, .cancels = tag, .payload = skua_payload_empty(0)};
    return 0;
}

int skua_step_yield_from(skua_step *out, uint32_t command, uint64_t tag, skua_payload *payload)
{
    const bool valid = out != NULL && out->open && payload != NULL;
    const int error = valid ? append_yield(out, command, tag, payload) : SKUA_E_INVALID;
    if (UNLIKELY(error != 0)) {
        step_output_refuse(out);
        payload_drop_all(payload, payload != NULL ? 1 : 0);
        return error;
    }
    payload->storage = SKUA_PAYLOAD_EMPTY;
    out->yielded = true;
    return 0;
}

/* Drops a result that this call replaces. */
static void set_status(skua_step *out, enum step_status status)
{
    if (out == NULL || !out->open) {
        return;
    }
    if (out->status == STEP_DONE) {
        skua_payload_drop(&out->result);
    }
    out->status = status;
}

void skua_step_continue(skua_step *out)
{
    set_status(out, STEP_CONTINUE);
}

void skua_step_idle(skua_step *out)
{
    set_status(out, STEP_IDLE);
}

void skua_step_wait(skua_step *out)
{
    set_status(out, STEP_WAIT);
}

void skua_step_done_from(skua_step *out, skua_payload *result)
{
    if (out == NULL || !out->open || result == NULL) {
        payload_drop_all(result, result != NULL ? 1 : 0);
        return;
    }
    set_status(out, STEP_DONE);
    payload_put(&out->result, result);
    result->storage = SKUA_PAYLOAD_EMPTY;
}

void step_output_discard(skua_step *out)
{
    for (uint32_t i = 0; i < out->yield_count; i++) {
        skua_payload_drop(&out->yields[i].payload);
        if (out->yields[i].node != OBJECT_NONE) {
            event_release_owner(out->events, out->event_cache, out->yields[i].node);
        }
    }
    if (out->status == STEP_DONE) {
        skua_payload_drop(&out->result);
    }
    out->status = STEP_DEFAULT;
    out->yield_count = 0;
}

void step_output_deinit(skua_step *out)
{
    allocator_free(out->allocator, out->yields, array_size(out->yield_capacity),
                   alignof(struct yield));
}
