/* SPDX-License-Identifier: MIT */
#include "relations/request.h"

#include "base/assert.h"

#define VALUE_BITS 30
#define VALUE_MASK ((UINT32_C(1) << VALUE_BITS) - 1)

/* Units: the number of bits that they leave away. Half as many units as there are values reach 9
 * minutes, 9 hours, 26 days, 4 years. */
static const uint32_t units[] = {10, 16, 22, 28};
#define UNITS (sizeof units / sizeof units[0])

uint32_t request_pack_deadline(uint64_t deadline, uint64_t now)
{
    const uint64_t left = deadline > now ? deadline - now : 0;
    for (uint32_t unit = 0; unit < UNITS && deadline != SKUA_FOREVER; unit++) {
        if (left >> units[unit] < VALUE_MASK / 2) {
            const uint32_t value = (uint32_t)(deadline >> units[unit]) & VALUE_MASK;
            const uint32_t packed = value << 2 | unit;
            return packed != 0 ? packed : VALUE_MASK << 2; /* one unit earlier: 0 is taken */
        }
    }
    return 0;
}

uint64_t request_unpack_deadline(uint32_t packed, uint64_t now)
{
    const uint32_t bits = units[packed % UNITS];
    const uint64_t base = now >> bits;
    const uint32_t ahead = ((packed >> 2) - (uint32_t)base) & VALUE_MASK;
    if (ahead <= VALUE_MASK / 2) {
        return (base + ahead) << bits;
    }
    const uint64_t behind = VALUE_MASK - ahead + 1;
    return behind < base ? (base - behind) << bits : 0;
}

#define DEPENDENT_LOOKS 2

void request_owe_owner(struct object_pool *events, struct process *process, skua_pid server,
                       uint32_t index, uint64_t deadline)
{
    struct annex *annex = annex_of(events, process);
    struct event_node *node = event_at(events, index);
    struct owed_request *request = &node->as.request;
    request->dependents = OBJECT_NONE;
    request->deadline = deadline;
    request->server = server;
    request->previous = OBJECT_NONE;
    request->next = annex->owed;
    request->is_listed = true;
    request->is_opened = false;
    request->is_known = true;
    if (annex->owed != OBJECT_NONE) {
        event_at(events, annex->owed)->as.request.previous = index;
    }
    annex->owed = index;
    annex->owed_count++;
}

uint32_t request_take_owner(struct object_pool *events, struct annex *annex)
{
    const uint32_t index = annex->owed;
    request_remove_owner(events, annex, index);
    return index;
}

bool request_open_owner(const struct object_pool *events, struct event_node *node)
{
    const skua_completion completion = request_completion(node);
    struct event_node *call = event_at(events, call_index(completion));
    node->as.request.is_opened = true;
    store_release(&node->guard, load_relaxed(&node->guard) | REQUEST_OPEN); /* MO-request */
    const uint32_t guard = fetch_add_acq_rel(&call->guard, 0);              /* MO-request */
    if (LIKELY(guard == call_guard(completion))) {
        return true;
    }
    node->as.request.is_known = false;
    return false;
}

bool request_claim_any(struct event_node *node, uint32_t base)
{
    uint32_t guard = load_acquire(&node->guard); /* MO-request */
    while (guard - base < REQUEST_WINDOW && (guard & REQUEST_OPEN) != 0) {
        if (request_shut_any(node, guard)) {
            return true;
        }
        guard = load_acquire(&node->guard); /* MO-request: it was forwarded, or is over */
    }
    return false;
}

/* Somebody may be writing to it, or it may be the payload of an event: whoever is found there is
 * asked, and knows. So the race does no harm, and the thread sanitizer need not know. */
static RACY skua_pid guess_server(const volatile struct event_node *node)
{
    return (skua_pid){node->as.request.server.bits};
}

uint32_t request_peek_any(const struct object_pool *events, const skua_handler *listener,
                          skua_pid *guess)
{
    uint32_t base;
    const struct event_node *node = event_at(events, request_of_listener(listener, &base));
    const uint32_t hops = (load_relaxed(&node->guard) - base) / REQUEST_HOP_ONE; /* a snapshot */
    *guess = (skua_pid){0};
    if (hops == 0 || hops > REQUEST_HOPS_MAX) {
        return 0; /* it is just ending, or over */
    }
    *guess = guess_server(node);
    return hops;
}

static void append_dependent(const struct object_pool *events, uint32_t *last, uint32_t index)
{
    struct dependent_call *call = &event_at(events, index)->as.dependent;
    if (*last == OBJECT_NONE) {
        call->next = index;
    } else {
        struct dependent_call *before = &event_at(events, *last)->as.dependent;
        call->next = before->next;
        before->next = index;
    }
    *last = index;
}

uint32_t request_take_dependent_owner(const struct object_pool *events, uint32_t *last)
{
    struct dependent_call *before = &event_at(events, *last)->as.dependent;
    const uint32_t first = before->next;
    if (first == *last) {
        *last = OBJECT_NONE;
    } else {
        before->next = event_at(events, first)->as.dependent.next;
    }
    return first;
}

static bool is_over(const struct object_pool *events, uint32_t dependent)
{
    const uint64_t call = event_at(events, dependent)->as.dependent.call;
    const struct event_node *node = event_at(events, (uint32_t)(call >> 32));
    return load_relaxed(&node->guard) != (uint32_t)call; /* a hint: it may be over soon */
}

void request_add_dependent_owner(struct object_pool *events, struct pool_cache *cache,
                                 struct event_node *node, uint32_t dependent,
                                 skua_completion completion)
{
    uint32_t *last = &node->as.request.dependents;
    for (uint32_t i = 0; i < DEPENDENT_LOOKS && *last != OBJECT_NONE; i++) {
        const uint32_t first = request_take_dependent_owner(events, last);
        if (is_over(events, first)) {
            event_release_owner(events, cache, first);
        } else {
            append_dependent(events, last, first);
        }
    }
    event_at(events, dependent)->as.dependent.call = completion.call;
    append_dependent(events, last, dependent);
}
