/* SPDX-License-Identifier: MIT */
#include "inspect/described.h"

#include <inttypes.h>

#include <skua/switch.h>

#include "dispatch/call.h"
#include "inspect/socket_list.h"
#include "inspect/symbol.h"
#include "sched/process_info.h"

/* ---- fields; each begins with its tab ---- */

static void add_text(struct text *out, const char *text)
{
    text_add(out, "\t");
    text_add_name(out, text);
}

static void add_time_left(struct text *out, bool has_deadline, uint64_t left_ns)
{
    if (has_deadline) {
        text_add(out, "\t%" PRIu64, left_ns);
    } else {
        text_add(out, "\t-");
    }
}

/* A PID and its type, as far as it is known. */
static void add_peer(struct scheduler *sched, skua_pid pid, struct text *out)
{
    text_add(out, "\t%016" PRIx64, pid.bits);
    add_text(out, skua_pid_is_none(pid) ? "" : process_info_type_name(sched, pid));
}

static void add_number(struct text *out, uint32_t number)
{
    if (number != CALL_SUBJECT_UNKNOWN) {
        text_add(out, "\t%" PRIu32, number);
    } else {
        text_add(out, "\t-");
    }
}

static void add_command(struct scheduler *sched, uint32_t command, struct text *out)
{
    const skua_handler *handler =
        command != CALL_SUBJECT_UNKNOWN ? registry_find(sched->registry, command) : NULL;
    add_number(out, command);
    add_text(out, handler != NULL && handler->name != NULL ? handler->name : "");
}

/* The socket that a yield of this process is about, if it still has it. */
static bool find_socket(struct scheduler *sched, skua_pid owner, uint32_t slot,
                        skua_socket_snapshot *info)
{
    return sockets_snapshot(sockets_of_hooks(sched->sockets), slot, info) &&
           skua_pid_equal(info->owner, owner);
}

static bool is_about_socket(const struct described_wait *wait)
{
    return wait->kind > SERVICE_ACCEPT && wait->kind - 1 <= SERVICE_HANGUP &&
           wait->kind - 1 != SERVICE_CONNECT;
}

/* Its number and its address. */
static void add_socket(const skua_socket_snapshot *info, struct text *out)
{
    if (info->socket.bits != 0) {
        text_add(out, "\t%016" PRIx64 "\t", info->socket.bits);
        text_add_clean(out, info->local);
    } else {
        text_add(out, "\t-\t");
    }
}

/* Whom or what a yield is about: a number or a PID, and a name. */
static void add_subject(struct scheduler *sched, const struct described_wait *wait,
                        struct text *out)
{
    if (wait->kind == CALL_SUBJECT_COMMAND) {
        add_command(sched, wait->number, out);
        return;
    }
    switch (wait->kind - 1) {
    case SERVICE_READABLE:
    case SERVICE_WRITABLE:
        add_number(out, wait->number);
        text_add(out, "\t");
        break;
    case SERVICE_CALL:
    case SERVICE_MONITOR:
    case SERVICE_JOIN:
    case SERVICE_SEND:
        add_peer(sched, wait->peer, out);
        break;
    default:
        text_add(out, "\t-");
        add_text(out, wait->name);
        break;
    }
}

/* A yield of the process `pid`. */
static void add_wait(struct scheduler *sched, skua_pid pid, const struct described_wait *wait,
                     struct text *out)
{
    const bool is_command = wait->kind == CALL_SUBJECT_COMMAND;
    skua_socket_snapshot socket = {.socket = {0}};
    text_add(out, "\t%" PRIu64 "\t%s", wait->tag,
             is_command ? "command" : sched->services[wait->kind - 1].name);
    if (is_about_socket(wait)) {
        if (!find_socket(sched, pid, wait->number, &socket)) {
            socket = (skua_socket_snapshot){.socket = {0}};
        }
        add_socket(&socket, out);
    } else {
        add_subject(sched, wait, out);
    }
    add_time_left(out, wait->has_deadline, wait->left_ns);
    text_add(out, "\t%" PRIu64, wait->period);
    if (is_about_socket(wait)) {
        text_add(out, "\t");
        text_add_clean(out, socket.peer);
    }
    if (wait->hops > 0) {
        text_add(out, "\t%" PRIu32, wait->hops);
        add_peer(sched, wait->debtor, out);
    }
}

/* ---- calls that were forwarded ---- */

struct forwarded {
    uint32_t count;
    skua_pid callers[DESCRIBE_MAX];
    struct described_wait *waits[DESCRIBE_MAX];
};

static void add_if_forwarded(struct forwarded *forwarded, skua_pid caller,
                             struct described_wait *wait)
{
    if (wait->hops > 0 && forwarded->count < DESCRIBE_MAX) {
        forwarded->callers[forwarded->count] = caller;
        forwarded->waits[forwarded->count++] = wait;
    }
}

static void find_debtors(struct scheduler *sched, const struct forwarded *forwarded)
{
    if (forwarded->count > 0) {
        describe_ask_debtors(sched, forwarded->callers, forwarded->waits, forwarded->count);
    }
}

/* ---- lines ---- */

/* What a task waits for: its own line, which follows. */
static void add_task(skua_pid pid, const struct described_task *task, struct text *out)
{
    static const char *const kinds[] = {
        [SKUA_WAIT_EVENT_] = "receive", [SKUA_WAIT_TYPE_] = "type",
        [SKUA_WAIT_MATCH_] = "match",   [SKUA_WAIT_COMPLETION_] = "completion",
        [SKUA_WAIT_TURN_] = "turn",
    };
    if (task->kind == 0) {
        return;
    }
    text_add(out, "task\t%016" PRIx64 "\t%s", pid.bits, kinds[task->kind]);
    if (task->kind == SKUA_WAIT_TYPE_) {
        text_add(out, "\t%" PRIu32, task->wanted);
    } else {
        text_add(out, "\t-");
    }
    add_time_left(out, task->has_timeout, task->left_ns);
    add_text(out, task->where);
    text_add(out, "\n");
}

static void add_stack(skua_pid pid, const struct described_stack *stack, struct text *out)
{
    if (stack->size != 0) {
        text_add(out, "stack\t%016" PRIx64 "\t%zu\t%zu\n", pid.bits, stack->deepest, stack->size);
    }
}

static void add_socket_count(skua_pid pid, uint32_t count, struct text *out)
{
    if (count > 0) {
        text_add(out, "sockets\t%016" PRIx64 "\t%" PRIu32 "\n", pid.bits, count);
    }
}

static void add_described(struct scheduler *sched, skua_pid pid,
                          const struct description *description, struct text *out)
{
    text_add(out, "described\t%016" PRIx64, pid.bits);
    if (description == NULL) {
        text_add(out, "\tsilent\n");
        return;
    }
    if (description->answer == DESCRIPTION_GONE) {
        text_add(out, "\tgone\n");
        return;
    }
    text_add(out, "\ttold\t%" PRIu32, description->names);
    add_text(out, description->name);
    add_text(out, description->label);
    text_add(out, "\t%" PRIu32, description->waits);
    if (description->has_wait) {
        add_wait(sched, pid, &description->wait, out);
    }
    text_add(out, "\n");
    add_task(pid, &description->task, out);
    add_stack(pid, &description->stack, out);
    add_socket_count(pid, description->sockets, out);
}

uint32_t described_add(struct scheduler *sched, const skua_pid *pids, uint32_t count,
                       struct text *out)
{
    struct description *descriptions[DESCRIBE_MAX];
    struct forwarded forwarded = {.count = 0};
    describe_ask(sched, pids, count, false, descriptions);
    for (uint32_t i = 0; i < count; i++) {
        if (descriptions[i] != NULL) {
            add_if_forwarded(&forwarded, pids[i], &descriptions[i]->wait);
        }
    }
    find_debtors(sched, &forwarded);
    for (uint32_t i = 0; i < count; i++) {
        add_described(sched, pids[i], descriptions[i], out);
        describe_free(sched, descriptions[i]);
    }
    return count + forwarded.count;
}

static void add_names(const struct description *description, struct text *out)
{
    const struct description_details *details = &description->details[0];
    text_add(out, "detail\tnames\t%" PRIu32 "\n", description->names);
    if (description->name[0] != '\0') {
        text_add(out, "name");
        add_text(out, description->name);
        text_add(out, "\n");
    }
    for (uint32_t i = details->other_names; i > 0; i--) {
        text_add(out, "name");
        add_text(out, details->names[i - 1]);
        text_add(out, "\n");
    }
    if (description->label[0] != '\0') {
        text_add(out, "detail\tlabel");
        add_text(out, description->label);
        text_add(out, "\n");
    }
}

static void add_groups(const struct description_details *details, struct text *out)
{
    text_add(out, "detail\tgroups\t%" PRIu32 "\n", details->groups);
    for (uint32_t i = 0; i < details->groups_shown; i++) {
        text_add(out, "group");
        add_text(out, details->group_names[i]);
        text_add(out, "\n");
    }
}

static void add_peers(struct scheduler *sched, const char *kind, const skua_pid *pids,
                      uint32_t count, struct text *out)
{
    text_add(out, "detail\t%ss\t%" PRIu32 "\n", kind, count);
    for (uint32_t i = 0; i < count && i < DESCRIBE_PEERS; i++) {
        text_add(out, "%s", kind);
        add_peer(sched, pids[i], out);
        text_add(out, "\n");
    }
}

static void add_requests(struct scheduler *sched, const struct description_details *details,
                         struct text *out)
{
    text_add(out, "detail\towed\t%" PRIu32 "\n", details->owed);
    for (uint32_t i = 0; i < details->owed_shown; i++) {
        const struct described_request *request = &details->requests[i];
        text_add(out, "owes");
        add_peer(sched, request->caller, out);
        text_add(out, "\t%" PRIu64, request->age_ns);
        add_time_left(out, request->has_deadline, request->left_ns);
        text_add(out, request->is_awaited ? "\tawaited\n" : "\tgiven-up\n");
    }
    if (details->deferred > 0) {
        text_add(out, "detail\tdeferred\t%" PRIu32 "\n", details->deferred);
    }
}

static void add_yields(struct scheduler *sched, skua_pid pid, const struct description *description,
                       struct text *out)
{
    text_add(out, "detail\tyields\t%" PRIu32 "\n", description->waits);
    for (uint32_t i = 0; i < description->details[0].waits_shown; i++) {
        text_add(out, "yield");
        add_wait(sched, pid, &description->details[0].waits[i], out);
        text_add(out, "\n");
    }
}

static void add_sockets(struct scheduler *sched, skua_pid pid,
                        const struct description *description, struct text *out)
{
    skua_socket_snapshot info;
    text_add(out, "detail\tsockets\t%" PRIu32 "\n", description->sockets);
    for (uint32_t i = 0; i < description->sockets && i < DESCRIBE_SOCKETS; i++) {
        if (find_socket(sched, pid, description->details[0].socket_slots[i], &info)) {
            socket_list_add_line(sched, &info, out);
        }
    }
}

static void add_frames(const struct description *description, struct text *out)
{
    const struct description_details *details = &description->details[0];
    if (description->task.kind == 0) {
        return;
    }
    text_add(out, "detail\tframes\t%" PRIu32 "\n", details->frames_shown);
    for (uint32_t i = 0; i < details->frames_shown; i++) {
        text_add(out, "frame\t");
        symbol_add(out, details->frames[i], true);
        text_add(out, "\n");
    }
}

uint32_t described_add_details(struct scheduler *sched, skua_pid pid, struct text *out)
{
    struct description *description;
    struct forwarded forwarded = {.count = 0};
    describe_ask(sched, &pid, 1, true, &description);
    if (description != NULL) {
        add_if_forwarded(&forwarded, pid, &description->wait);
        for (uint32_t i = 0; i < description->details[0].waits_shown; i++) {
            add_if_forwarded(&forwarded, pid, &description->details[0].waits[i]);
        }
        find_debtors(sched, &forwarded);
    }
    add_described(sched, pid, description, out);
    if (description != NULL && description->answer == DESCRIPTION_TOLD) {
        const struct description_details *details = &description->details[0];
        add_names(description, out);
        add_groups(details, out);
        add_peers(sched, "link", details->linked, details->links, out);
        add_peers(sched, "monitor", details->watching, details->monitors, out);
        add_requests(sched, details, out);
        add_yields(sched, pid, description, out);
        add_sockets(sched, pid, description, out);
        add_frames(description, out);
    }
    describe_free(sched, description);
    return 1 + forwarded.count;
}
