/* SPDX-License-Identifier: MIT */
#include "sched/links.h"

#include <skua/watch.h>

#include "relations/link.h"
#include "relations/request.h"
#include "sched/deliver.h"
#include "sched/log.h"
#include "sched/worker.h"

/* What the end of one party means to the other: `flags` of that one's half. */
#define HALF_ENDS     UINT32_C(1) /* it ends, too, unless the end was orderly */
#define HALF_TELLS    UINT32_C(2) /* its step gets an event */
#define HALF_IS_CHILD UINT32_C(8) /* likewise, also if it was orderly */
/* What the end of this party means to the other, whose half is not this one's to read. */
#define HALF_IS_HEARD UINT32_C(4) /* its step gets an event */

static uint32_t flags_of_maker(uint32_t flags)
{
    if ((flags & SKUA_LINK_TELL) != 0) {
        return HALF_TELLS;
    }
    return (flags & SKUA_LINK_ONLY_IT) != 0 ? 0 : HALF_ENDS;
}

static uint32_t flags_of_peer(uint32_t flags)
{
    return ((flags & SKUA_LINK_ONLY_ME) != 0 ? 0 : HALF_ENDS) |
           ((flags & SKUA_LINK_TELL) != 0 ? HALF_IS_HEARD : 0);
}

static bool are_valid(uint32_t flags)
{
    const uint32_t one_sided = SKUA_LINK_ONLY_ME | SKUA_LINK_ONLY_IT;
    return (flags & ~(one_sided | SKUA_LINK_TELL)) == 0 && (flags & one_sided) != one_sided;
}

/* ---- making and unmaking ---- */

/* Links have tokens as requests do. No process has this PID, so none is taken for the other. */
static skua_pid token_owner(const skua_context *ctx)
{
    return (skua_pid){~ctx->self.bits};
}

enum { OWN_HALF, PEER_HALF, SPARE, LINK_NODES };

static bool acquire_nodes(struct scheduler *sched, struct worker *worker, uint32_t nodes[],
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!deliver_acquire_node(sched, worker, &nodes[i])) {
            while (i-- > 0) {
                deliver_release_node(sched, worker, nodes[i]);
            }
            return false;
        }
    }
    return true;
}

/* Makes a link and files the maker's half, for which it has an annex. */
static void make(skua_context *ctx, skua_pid pid, uint32_t flags, uint64_t tag,
                 const uint32_t nodes[LINK_NODES], skua_link_id *link)
{
    struct object_pool *events = &ctx->sched->events;
    const struct link_party maker = {
        .pid = ctx->self, .half = nodes[OWN_HALF], .flags = flags_of_maker(flags), .tag = tag};
    const struct link_party peer = {
        .pid = pid, .half = nodes[PEER_HALF], .flags = flags_of_peer(flags)};
    link_make(events, &maker, &peer);
    link_file_owner(events, annex_of(events, ctx->process), maker.half);
    if (link != NULL) {
        const uint32_t guard = load_relaxed(&event_at(events, maker.half)->guard); /* its own */
        link->bits = request_token(maker.half, guard, token_owner(ctx));
    }
}

static int prepare(skua_context *ctx, skua_pid pid, uint32_t flags, uint32_t nodes[LINK_NODES])
{
    if (!are_valid(flags) || skua_pid_equal(pid, ctx->self)) {
        return SKUA_E_INVALID;
    }
    if (signal_annex(ctx->sched, ctx->worker, ctx->process) == NULL ||
        !acquire_nodes(ctx->sched, ctx->worker, nodes, LINK_NODES)) {
        return SKUA_E_NO_MEMORY;
    }
    return 0;
}

int links_make(skua_context *ctx, skua_pid pid, uint32_t flags, uint64_t tag, skua_link_id *link)
{
    struct object_pool *events = &ctx->sched->events;
    struct process *process;
    uint32_t nodes[LINK_NODES];
    int error = process_table_find_live(&ctx->sched->table, pid, &process);
    if (error == 0) {
        error = prepare(ctx, pid, flags, nodes);
    }
    if (error != 0) {
        return error;
    }
    make(ctx, pid, flags, tag, nodes, link);
    event_at(events, nodes[PEER_HALF])->as.half.spare = nodes[SPARE];
    if (!signal_push(ctx->sched, ctx->worker, ctx->self, pid, nodes[PEER_HALF])) {
        link_remove_owner(events, annex_of(events, ctx->process), nodes[OWN_HALF]);
        for (uint32_t i = 0; i < LINK_NODES; i++) {
            deliver_release_node(ctx->sched, ctx->worker, nodes[i]);
        }
        error = SKUA_E_NO_PROCESS;
    }
    if (error != 0 && link != NULL) {
        *link = (skua_link_id){0};
    }
    return error;
}

int links_make_at_spawn(skua_context *ctx, struct process *process, skua_pid pid, uint32_t flags,
                        uint64_t tag, skua_link_id *link)
{
    struct object_pool *events = &ctx->sched->events;
    uint32_t nodes[LINK_NODES];
    const int error = prepare(ctx, pid, flags, nodes);
    if (error != 0) {
        return error;
    }
    make(ctx, pid, flags, tag, nodes, link);
    struct annex *annex = annex_of(events, process);
    if (annex == NULL) {
        annex = annex_attach_owner(events, process, nodes[SPARE]);
    } else {
        deliver_release_node(ctx->sched, ctx->worker, nodes[SPARE]);
    }
    link_file_owner(events, annex, nodes[PEER_HALF]);
    return 0;
}

/* ---- children ---- */

enum { CHILD_HALF, SUPERVISOR_HALF };

/* Makes the link between a child and its supervisor, and files the child's half. */
static void make_child(struct object_pool *events, struct process *process, skua_pid pid,
                       skua_pid supervisor, uint64_t tag, const uint32_t nodes[])
{
    const struct link_party child = {
        .pid = pid, .half = nodes[CHILD_HALF], .flags = HALF_ENDS | HALF_IS_CHILD | HALF_IS_HEARD};
    const struct link_party parent = {
        .pid = supervisor, .half = nodes[SUPERVISOR_HALF], .flags = HALF_TELLS, .tag = tag};
    link_make(events, &child, &parent);
    link_file_owner(events, annex_of(events, process), child.half);
}

int links_make_own_child(skua_context *ctx, struct process *process, skua_pid pid, uint64_t tag)
{
    struct object_pool *events = &ctx->sched->events;
    uint32_t nodes[LINK_NODES];
    struct annex *annex = signal_annex(ctx->sched, ctx->worker, ctx->process);
    if (annex == NULL || !acquire_nodes(ctx->sched, ctx->worker, nodes, SPARE)) {
        return SKUA_E_NO_MEMORY;
    }
    make_child(events, process, pid, ctx->self, tag, nodes);
    link_file_owner(events, annex, nodes[SUPERVISOR_HALF]);
    return 0;
}

bool links_make_child(struct scheduler *sched, struct worker *worker, struct process *process,
                      skua_pid pid, skua_pid supervisor, uint32_t *half, uint32_t *other)
{
    uint32_t nodes[LINK_NODES];
    if (!acquire_nodes(sched, worker, nodes, LINK_NODES)) {
        return false;
    }
    make_child(&sched->events, process, pid, supervisor, 0, nodes);
    event_at(&sched->events, nodes[SUPERVISOR_HALF])->as.half.spare = nodes[SPARE];
    *half = nodes[CHILD_HALF];
    *other = nodes[SUPERVISOR_HALF];
    return true;
}

void links_unmake_child(struct scheduler *sched, struct worker *worker, struct process *process,
                        uint32_t half)
{
    link_remove_owner(&sched->events, annex_of(&sched->events, process), half);
    deliver_release_node(sched, worker, half);
}

void links_drop_half(struct scheduler *sched, struct worker *worker, uint32_t other)
{
    deliver_release_node(sched, worker, event_at(&sched->events, other)->as.half.spare);
    deliver_release_node(sched, worker, other);
}

/* ---- ending ---- */

/* Its half becomes the signal that the link is over. */
static void push_end(struct scheduler *sched, struct worker *worker, skua_pid from, uint32_t index,
                     uint32_t type)
{
    struct event_node *node = event_at(&sched->events, index);
    node->as.half.type = type;
    if (!signal_push(sched, worker, from, node->as.half.peer, index)) {
        deliver_release_node(sched, worker, index);
    }
}

int links_unmake(skua_context *ctx, skua_link_id link)
{
    struct object_pool *events = &ctx->sched->events;
    const uint32_t index = request_node(events, link.bits, token_owner(ctx));
    if (index == OBJECT_NONE) {
        return SKUA_E_LATE;
    }
    link_remove_owner(events, annex_of(events, ctx->process), index);
    push_end(ctx->sched, ctx->worker, ctx->self, index, EVENT_UNLINK);
    return 0;
}

void links_unmake_all(struct scheduler *sched, struct worker *worker, struct process *process)
{
    struct annex *annex = annex_of(&sched->events, process);
    while (annex != NULL && annex->links != OBJECT_NONE) {
        push_end(sched, worker, (skua_pid){0}, link_take_owner(&sched->events, annex),
                 EVENT_UNLINK);
    }
}

/* ---- signals ---- */

static void release(struct worker *worker, uint32_t index)
{
    event_release_owner(&worker->sched->events, &worker->caches.events, index);
}

void links_take_new(struct worker *worker, struct process *process, uint32_t index)
{
    struct object_pool *events = &worker->sched->events;
    struct annex *annex = annex_of(events, process);
    const uint32_t spare = event_at(events, index)->as.half.spare;
    if (annex == NULL) {
        annex = annex_attach_owner(events, process, spare);
    } else {
        release(worker, spare);
    }
    event_at(events, index)->as.half.spare = OBJECT_NONE;
    link_file_owner(events, annex, index);
}

/* Takes the half that a signal names off the list, and returns it; or OBJECT_NONE. One that is on
 * no list was not filed, as the process is ending: it is among those that must be told, and the
 * peer will not know it. */
static uint32_t remove_named(struct worker *worker, struct process *process,
                             const struct event_node *signal)
{
    struct object_pool *events = &worker->sched->events;
    const uint32_t half = link_find_peer_owner(events, signal);
    if (half != OBJECT_NONE) {
        link_remove_owner(events, annex_of(events, process), half);
    }
    return half;
}

void links_take_unlink(struct worker *worker, struct process *process, uint32_t index)
{
    const uint32_t half = remove_named(worker, process, event_at(&worker->sched->events, index));
    if (half != OBJECT_NONE) {
        release(worker, half);
    }
    release(worker, index);
}

bool links_would_end(struct scheduler *sched, const struct event_node *node)
{
    const uint32_t half = link_find_peer_owner(&sched->events, node);
    const uint32_t flags = half != OBJECT_NONE ? event_at(&sched->events, half)->as.half.flags : 0;
    return (flags & HALF_IS_CHILD) != 0 ||
           ((flags & HALF_ENDS) != 0 && !log_is_orderly(node->as.half.error));
}

enum signal_outcome links_take_end(struct worker *worker, struct process *process, uint32_t index,
                                   skua_event *event, struct signal_end *end)
{
    struct scheduler *sched = worker->sched;
    const struct event_node *node = event_at(&sched->events, index);
    const bool ends = links_would_end(sched, node);
    const struct link_half signal = node->as.half;
    const uint32_t half = remove_named(worker, process, node);
    release(worker, index);
    if (half == OBJECT_NONE) {
        return SIGNAL_FILED;
    }
    const struct link_half own = event_at(&sched->events, half)->as.half;
    release(worker, half);
    *event = (skua_event){
        .type = SKUA_EVENT_EXIT,
        .error = signal.error,
        .tag = own.tag,
        .from = own.peer,
        .payload = skua_payload_u64(0, signal.cause.bits),
    };
    *end = (struct signal_end){.error = signal.error != 0 ? signal.error : SKUA_E_CANCELLED,
                               .cause = signal.cause};
    return ends ? SIGNAL_ENDS : (own.flags & HALF_TELLS) != 0 ? SIGNAL_EVENT : SIGNAL_FILED;
}

bool links_is_heard(struct scheduler *sched, const struct event_node *node)
{
    struct process *peer;
    return (node->as.half.flags & HALF_IS_HEARD) != 0 &&
           process_table_find_live(&sched->table, node->as.half.peer, &peer) == 0;
}

void links_tell(struct scheduler *sched, struct worker *worker, skua_pid pid,
                const struct ending *ending, uint32_t index)
{
    struct link_half *half = &event_at(&sched->events, index)->as.half;
    if (half->spare != OBJECT_NONE) {
        deliver_release_node(sched, worker, half->spare); /* it had not arrived */
        half->spare = OBJECT_NONE;
    }
    half->error = ending->error;
    half->cause = ending->cause;
    push_end(sched, worker, pid, index, EVENT_LINK_END);
}
