/* SPDX-License-Identifier: MIT */
/* The trace of a simulation, and the hash that tells runs apart. */
#include <inttypes.h>
#include <skua/supervisor.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/sized.h"
#include "net/address.h"
#include "process/annex.h"
#include "sched/naming.h"
#include "sched/publishing.h"
#include "sched/worker.h"
#include "sim/sim.h"

/* ---- the hash ---- */

static void add(struct sim *sim, uint64_t number)
{
    sim->hash = random_mix(sim->hash + RANDOM_STEP + random_mix(number));
}

void sim_hash_add(struct sim *sim, uint64_t number)
{
    add(sim, number);
}

static void add_bytes(struct sim *sim, const unsigned char *bytes, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    add(sim, hash);
}

/* The bytes behind a pointer are the program's and do not count; nor does a report of a supervisor,
 * which has addresses of types. */
static void add_payload(struct sim *sim, const skua_payload *payload)
{
    add(sim, payload->type);
    add(sim, skua_payload_size(payload));
    if (payload->storage != SKUA_PAYLOAD_POINTER && payload->type != SKUA_SUPERVISOR_REPORT) {
        add_bytes(sim, skua_payload_data(payload), skua_payload_size(payload));
    }
}

static void add_event(struct sim *sim, const skua_event *event)
{
    add(sim, (uint64_t)event->type << 32 | (uint32_t)event->error);
    add(sim, event->tag);
    add(sim, event->from.bits);
    if (event->type != SKUA_EVENT_CHILD) { /* its payload is made of addresses */
        add_payload(sim, &event->payload);
    }
}

/* ---- the trace ---- */

static void read_names(struct sim *sim, struct process *process, skua_pid pid,
                       struct sim_names *names)
{
    const struct annex *annex = annex_of(&sim->sched->events, process);
    *names = (struct sim_names){.pid = pid};
    if (annex != NULL) {
        (void)!naming_first(sim->sched, annex, names->name);
    }
    if (annex != NULL && annex->label != NULL) {
        memcpy(names->label, annex->label, NAME_SIZE); /* both have so many */
    }
}

/* A process that has ended has neither any more: then what it was called before. */
static const struct sim_names *find_names(struct sim *sim, skua_pid pid)
{
    struct process *process;
    if (pid.bits == sim->leaving.pid.bits) {
        return &sim->leaving;
    }
    if (process_table_find_live(&sim->sched->table, pid, &process) != 0) {
        sim->names = (struct sim_names){0};
    } else {
        read_names(sim, process, pid, &sim->names);
    }
    return &sim->names;
}

void sim_record(struct sim *sim, const skua_sim_record *record)
{
    if (sim->config.on_record != NULL) {
        const struct sim_names *names = find_names(sim, record->pid);
        skua_sim_record dated = *record;
        dated.now_ns = sim_now(sim);
        dated.name = names->name[0] != '\0' ? names->name : NULL;
        dated.label = names->label[0] != '\0' ? names->label : NULL;
        sim->config.on_record(sim->config.on_record_arg, &dated);
    }
}

static struct sim *observed_sim(struct observer *observer)
{
    return CONTAINER_OF(observer, struct sim, observer);
}

/* The process that runs. */
static skua_sim_record record_of(const struct worker *worker, enum skua_sim_record_type type)
{
    struct process *process = worker->context->process;
    return (skua_sim_record){
        .type = type,
        .pid = worker->context->self,
        .type_name = process_type(process)->name,
        .step = process_steps(process),
    };
}

static void record_step_begin(struct observer *observer, const struct worker *worker,
                              const skua_event *events, size_t count)
{
    struct sim *sim = observed_sim(observer);
    skua_sim_record record = record_of(worker, SKUA_SIM_STEP);
    record.count = count;
    add(sim, record.pid.bits);
    add(sim, record.step);
    add(sim, count);
    sim_record(sim, &record);
    for (size_t i = 0; i < count; i++) {
        const skua_event *event = &events[i];
        add_event(sim, event);
        record.type = SKUA_SIM_EVENT;
        record.what = event->type;
        record.count = skua_payload_size(&event->payload);
        record.payload_type = event->payload.type;
        record.tag = event->tag;
        record.from = event->from;
        record.error = event->error;
        sim_record(sim, &record);
    }
}

static const char *command_name(const struct scheduler *sched, const struct yield *yield)
{
    if (yield->command >= SKUA_COMMAND_RESERVED) {
        return sched->services[yield->command - SKUA_COMMAND_RESERVED].name;
    }
    const skua_handler *handler = registry_find(sched->registry, yield->command);
    return handler != NULL ? handler->name : NULL;
}

/* The payload of a call to a process. */
static const skua_payload *input_of_call(const struct sim *sim, const struct yield *yield)
{
    return &event_at(&sim->sched->events, yield->as.peer.node)->as.event.payload;
}

/* The bytes of a write. */
static const skua_payload *output_of_write(const struct sim *sim, const struct yield *yield)
{
    return &event_at(&sim->sched->events, yield->as.write.node)->as.event.payload;
}

static void add_text(struct sim *sim, const char *text)
{
    add_bytes(sim, (const unsigned char *)text, strlen(text));
}

/* What a yield carries besides its command and tag. */
static void add_arguments(struct sim *sim, const struct yield *yield)
{
    add(sim, yield->timeout);
    if (yield->command < SKUA_COMMAND_RESERVED) {
        add_payload(sim, &yield->as.payload);
        return;
    }
    switch ((enum service_id)(yield->command - SKUA_COMMAND_RESERVED)) {
    case SERVICE_SLEEP:
    case SERVICE_TICKER:
        add(sim, yield->as.duration);
        break;
    case SERVICE_TIMER:
        add(sim, yield->as.instant);
        break;
    case SERVICE_READABLE:
    case SERVICE_WRITABLE:
        add(sim, (uint64_t)yield->as.fd);
        break;
    case SERVICE_BLOCKING: /* its function is an address, and differs from run to run */
        add_payload(sim, blocking_input(yield));
        break;
    case SERVICE_CALL:
    case SERVICE_SEND:
        add(sim, yield->as.peer.pid.bits);
        add_payload(sim, input_of_call(sim, yield));
        break;
    case SERVICE_MONITOR:
    case SERVICE_JOIN:
        add(sim, yield->as.peer.pid.bits);
        break;
    case SERVICE_NAME:
        add_text(sim, yield->as.name.text);
        break;
    case SERVICE_GROUP:
        add_text(sim, yield->as.group.text);
        break;
    case SERVICE_PUBLISH:
        add_text(sim, publishing_name(yield));
        add_payload(sim, publishing_payload(yield));
        break;
    case SERVICE_ACCEPT:
    case SERVICE_READ:
    case SERVICE_HANGUP:
        add(sim, yield->as.read.socket.bits);
        add(sim, yield->as.read.want);
        break;
    case SERVICE_WRITE:
        add(sim, yield->as.write.socket.bits);
        add_payload(sim, output_of_write(sim, yield));
        break;
    case SERVICE_CONNECT:
        add_bytes(sim, (const unsigned char *)&yield->as.addresses[0].as,
                  yield->as.addresses[0].size);
        break;
    case SERVICE_BECOME: /* its type is an address; see record_change */
    case SERVICE_COUNT:
        break;
    }
}

static void record_yield(struct sim *sim, const struct worker *worker, const struct yield *yield,
                         skua_sim_record record)
{
    record.what = yield->command;
    record.type_name = command_name(worker->sched, yield);
    record.tag =
        yield->node != OBJECT_NONE ? event_at(&worker->sched->events, yield->node)->as.call.tag : 0;
    add(sim, (uint64_t)SKUA_SIM_YIELD << 32 | yield->command);
    add(sim, record.tag);
    add_arguments(sim, yield);
    if (yield->command < SKUA_COMMAND_RESERVED) {
        record.count = skua_payload_size(&yield->as.payload);
        record.payload_type = yield->as.payload.type;
    } else if (yield->command >= service_command(SERVICE_CALL) &&
               yield->command <= service_command(SERVICE_SEND)) {
        record.from = yield->as.peer.pid;
    }
    sim_record(sim, &record);
}

static void record_step_end(struct observer *observer, const struct worker *worker)
{
    struct sim *sim = observed_sim(observer);
    const struct step_output *out = &worker->out;
    add(sim, out->yield_count);
    for (uint32_t i = 0; i < out->yield_count; i++) {
        const struct yield *yield = &out->yields[i];
        if (!yield_cancels(yield)) {
            record_yield(sim, worker, yield, record_of(worker, SKUA_SIM_YIELD));
            continue;
        }
        skua_sim_record record = record_of(worker, SKUA_SIM_CANCEL);
        record.type_name = NULL;
        record.tag = yield->cancels;
        add(sim, (uint64_t)SKUA_SIM_CANCEL << 32);
        add(sim, record.tag);
        sim_record(sim, &record);
    }
}

static void keep_names(struct observer *observer, const struct worker *worker)
{
    struct sim *sim = observed_sim(observer);
    read_names(sim, worker->context->process, worker->context->self, &sim->leaving);
}

static void record_group_change(struct observer *observer, const struct worker *worker,
                                const char *group, bool has_joined)
{
    struct sim *sim = observed_sim(observer);
    skua_sim_record record = record_of(worker, SKUA_SIM_GROUP);
    record.what = has_joined;
    record.group = group;
    add(sim, (uint64_t)SKUA_SIM_GROUP << 32 | record.what);
    add(sim, record.pid.bits);
    add_text(sim, group);
    sim_record(sim, &record);
}

static void record_change(struct observer *observer, const struct worker *worker,
                          const skua_process_type *from, const skua_process_type *to, int error)
{
    struct sim *sim = observed_sim(observer);
    skua_sim_record record = record_of(worker, SKUA_SIM_BECOME);
    record.type_name = to->name;
    record.what = to->version;
    record.count = from->version;
    record.error = error;
    add(sim, record.pid.bits);
    add(sim, (uint64_t)from->version << 32 | to->version);
    add(sim, (uint32_t)error);
    sim_record(sim, &record);
}

static void record_exit(struct observer *observer, const skua_exit *exit)
{
    struct sim *sim = observed_sim(observer);
    add(sim, exit->pid.bits);
    add(sim, (uint32_t)exit->error);
    add_payload(sim, &exit->result);
    sim_record(sim, &(skua_sim_record){.type = SKUA_SIM_EXIT,
                                       .pid = exit->pid,
                                       .type_name = exit->type->name,
                                       .error = exit->error});
    sim_drop_events(sim, exit);
}

void sim_observe(struct sim *sim)
{
    sim->observer =
        (struct observer){sim_place_process,   record_step_begin, record_step_end, keep_names,
                          record_group_change, record_change,     record_exit};
    sim->sched->observer = &sim->observer;
}

/* ---- as text ---- */

/* A text as snprintf builds it: `length` counts what did not fit, too. */
struct text {
    char *start;
    size_t size;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    char *at = text->length < text->size ? text->start + text->length : NULL;
    const size_t room = at != NULL ? text->size - text->length : 0;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(at, room, format, arguments);
    va_end(arguments);
    text->length += length > 0 ? (size_t)length : 0;
}

/* A PID as its slot and the generation in it. */
static void put_pid(struct text *text, skua_pid pid)
{
    put(text, "%" PRIu32 ".%" PRIu32, pid_slot(pid), pid_generation(pid));
}

static void put_process(struct text *text, const skua_sim_record *record)
{
    put(text, "%s ", record->type_name != NULL ? record->type_name : "?");
    if (record->name != NULL) {
        put(text, "%s ", record->name);
    }
    if (record->label != NULL) {
        put(text, "(%s) ", record->label);
    }
    put_pid(text, record->pid);
}

static void put_error(struct text *text, int error)
{
    if (error != 0) {
        put(text, ", %s (%d)", skua_error_name(error), error);
    }
}

/* What an event or yield carries. */
static void put_payload(struct text *text, const skua_sim_record *record)
{
    put(text, " type %" PRIu32 ", %" PRIu64 " bytes", record->payload_type, record->count);
}

static void put_event(struct text *text, const skua_sim_record *record)
{
    static const char *const names[] = {
        [SKUA_EVENT_MESSAGE] = "message", [SKUA_EVENT_COMPLETION] = "completion",
        [SKUA_EVENT_CANCEL] = "cancel",   [SKUA_EVENT_TICK] = "tick",
        [SKUA_EVENT_START] = "start",     [SKUA_EVENT_CONTINUE] = "continue",
        [SKUA_EVENT_CALL] = "call",       [SKUA_EVENT_ABANDON] = "abandon",
        [SKUA_EVENT_EXIT] = "exit",       [SKUA_EVENT_CHILD] = "child",
        [SKUA_EVENT_GROUP] = "group",     [SKUA_EVENT_BECOME] = "become",
    };
    const size_t count = sizeof names / sizeof names[0];
    const bool known = record->what < count && names[record->what] != NULL;
    put(text, "    %s", known ? names[record->what] : "?");
    if (record->what == SKUA_EVENT_MESSAGE || record->what == SKUA_EVENT_CALL) {
        put_payload(text, record);
    }
    if (record->what == SKUA_EVENT_MESSAGE ||
        (record->what >= SKUA_EVENT_CALL && record->what <= SKUA_EVENT_CHILD)) {
        put(text, record->what >= SKUA_EVENT_EXIT ? " of " : " from ");
        put_pid(text, record->from);
    } else if (record->what == SKUA_EVENT_COMPLETION || record->what == SKUA_EVENT_TICK ||
               record->what == SKUA_EVENT_GROUP) {
        put(text, " tag %" PRIu64 ",", record->tag);
        put_payload(text, record);
    }
    put_error(text, record->error);
}

/* The numbers of the runtime's own services say nothing, and these carry no payload. */
static void put_yield(struct text *text, const skua_sim_record *record)
{
    put(text, "    yields %s", record->type_name != NULL ? record->type_name : "?");
    if (record->what >= SKUA_COMMAND_RESERVED) {
        put(text, " tag %" PRIu64, record->tag);
        return;
    }
    put(text, " (%" PRIu32 ") tag %" PRIu64 ",", record->what, record->tag);
    put_payload(text, record);
}

/* From which host to which, and on which connection. */
static void put_way(struct text *text, const skua_sim_record *record)
{
    put(text, ", host %" PRIu32 " to %" PRIu32, record->host, record->peer_host);
    if (record->stream != 0) {
        put(text, ", stream %" PRIu64, record->stream);
    }
}

static void put_arrival(struct text *text, const skua_sim_record *record)
{
    static const char *const names[] = {
        [SKUA_SIM_ARRIVES_CONNECT] = "connects", [SKUA_SIM_ARRIVES_ANSWER] = "answer",
        [SKUA_SIM_ARRIVES_BYTES] = "bytes",      [SKUA_SIM_ARRIVES_END] = "end of input",
        [SKUA_SIM_ARRIVES_RESET] = "reset",
    };
    const bool known =
        record->what >= SKUA_SIM_ARRIVES_CONNECT && record->what <= SKUA_SIM_ARRIVES_RESET;
    put(text, "network: %s", known ? names[record->what] : "?");
    if (record->what == SKUA_SIM_ARRIVES_BYTES) {
        put(text, " (%" PRIu64 ")", record->count);
    } else if (record->error != 0) {
        put(text, " (errno %" PRId32 ")", record->error);
    }
    put_way(text, record);
}

static void put_fault(struct text *text, const skua_sim_record *record)
{
    static const char *const names[] = {
        [SKUA_SIM_MESSAGE_DELAY] = "a message is delayed",
        [SKUA_SIM_HANDLER_ERROR] = "a handler fails",
        [SKUA_SIM_SLOW_COMPLETION] = "a completion comes late",
        [SKUA_SIM_NO_MEMORY] = "an allocation fails",
        [SKUA_SIM_SPURIOUS_WAKE] = "woken for no reason",
        [SKUA_SIM_PROCESS_KILL] = "terminated",
        [SKUA_SIM_CONNECT_REFUSED] = "a connect is refused",
        [SKUA_SIM_CONNECT_DELAY] = "a connect takes longer",
        [SKUA_SIM_ACCEPT_DELAY] = "a connection has to wait",
        [SKUA_SIM_NO_DESCRIPTORS] = "no descriptors are left",
        [SKUA_SIM_SHORT_READ] = "a read is short",
        [SKUA_SIM_SHORT_WRITE] = "a write is short",
        [SKUA_SIM_RESET] = "a connection is reset",
        [SKUA_SIM_SILENT_DROP] = "a connection is dead",
        [SKUA_SIM_EOF_LATE] = "the end comes late",
        [SKUA_SIM_CLOG] = "clogged",
        [SKUA_SIM_PARTITION] = "cut off",
        [SKUA_SIM_HEAL] = "healed",
    };
    const bool known = record->what >= SKUA_SIM_MESSAGE_DELAY && record->what <= SKUA_SIM_HEAL;
    put(text, "fault: %s", known ? names[record->what] : "?");
    if (record->host != 0) {
        put_way(text, record);
    } else if (record->type_name != NULL) {
        put(text, ": ");
        put_process(text, record);
    }
}

static void put_record(struct text *text, const skua_sim_record *record)
{
    switch (record->type) {
    case SKUA_SIM_CLOCK:
        put(text, "the clock moves on");
        break;
    case SKUA_SIM_STEP:
        put_process(text, record);
        put(text, " step %" PRIu64 ", %" PRIu64 " events", record->step, record->count);
        break;
    case SKUA_SIM_EVENT:
        put_event(text, record);
        break;
    case SKUA_SIM_YIELD:
        put_yield(text, record);
        break;
    case SKUA_SIM_CANCEL:
        put(text, "    takes back tag %" PRIu64, record->tag);
        break;
    case SKUA_SIM_EXIT:
        put_process(text, record);
        put(text, " ends");
        put_error(text, record->error);
        break;
    case SKUA_SIM_BECOME:
        put_process(text, record);
        put(text, " changes from version %" PRIu64 " to %" PRIu32, record->count, record->what);
        put_error(text, record->error);
        break;
    case SKUA_SIM_FAULT:
        put_fault(text, record);
        break;
    case SKUA_SIM_NETWORK:
        put_arrival(text, record);
        break;
    case SKUA_SIM_GROUP:
        put_process(text, record);
        put(text, record->what != 0 ? " joins group %s" : " leaves group %s",
            record->group != NULL ? record->group : "?");
        break;
    default:
        put(text, "?");
        break;
    }
}

int skua_sim_record_format_sized(const skua_sim_record *record, char *text, size_t size,
                                 size_t record_size)
{
    skua_sim_record own;
    if (record == NULL || (text == NULL && size > 0) ||
        !sized_read(&own, sizeof own, record, record_size)) {
        return SKUA_E_INVALID;
    }
    struct text out = {.start = text, .size = size};
    put(&out, "%8" PRIu64 ".%09" PRIu64 "  ", own.now_ns / SKUA_SECOND, own.now_ns % SKUA_SECOND);
    put_record(&out, &own);
    return (int)out.length;
}
