/* SPDX-License-Identifier: MIT */
#include "sched/children.h"

#include <stdalign.h>
#include <string.h>

#include "process/annex.h"
#include "process/payload.h"
#include "relations/lineage.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/limits.h"
#include "sched/links.h"
#include "sched/signal.h"
#include "sched/upgrade.h"
#include "sched/worker.h"

/* ---- the news ---- */

/* A skua_child_start in memory of the runtime, with all that it points to. */
struct news {
    const struct allocator *allocator;
    size_t size; /* of all */
    skua_child_start start;
    skua_payload input[];
};

static void drop_news(void *data, size_t size)
{
    (void)size;
    struct news *news = CONTAINER_OF(data, struct news, start);
    payload_discard_all(news->input, news->start.input_count);
    allocator_free(news->allocator, news, news->size, alignof(struct news));
}

static size_t bytes_of(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static const char *put_text(char **end, const char *text)
{
    const char *copy = text != NULL ? *end : NULL;
    if (text != NULL) {
        memcpy(*end, text, bytes_of(text));
        *end += bytes_of(text);
    }
    return copy;
}

static int copy_input(struct news *news, const struct spawn_request *request)
{
    for (size_t i = 0; i < request->input_count; i++) {
        const int error = skua_payload_ref(&request->input[i], &news->input[i]);
        if (error != 0) {
            return error;
        }
        news->start.input_count++;
    }
    return 0;
}

/* The supervisor needs the input only to start the child again. */
static int make_news(struct scheduler *sched, const struct spawn_request *request,
                     const char *method, const skua_child *template, skua_payload *payload)
{
    const size_t copies = template->restart != SKUA_RESTART_NEVER ? request->input_count : 0;
    const char *name = request->options->name;
    const char *label = request->options->label;
    if (copies > SIZE_MAX / 2 / sizeof(skua_payload)) {
        return SKUA_E_NO_MEMORY;
    }
    const size_t size =
        sizeof(struct news) + copies * sizeof(skua_payload) + bytes_of(name) + bytes_of(label);
    struct news *news = allocator_alloc(&sched->allocator, size, alignof(struct news));
    if (news == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    char *end = (char *)&news->input[copies];
    *news = (struct news){.allocator = &sched->allocator, .size = size};
    news->start = (skua_child_start){
        .type = template->type, .method = method, .input = copies > 0 ? news->input : NULL};
    news->start.name = put_text(&end, name);
    news->start.label = put_text(&end, label);
    *payload = skua_payload_owned(0, &news->start, sizeof news->start, drop_news);
    const int error = copies > 0 ? copy_input(news, request) : 0;
    if (error != 0) {
        skua_payload_drop(payload);
    }
    return error;
}

/* ---- a child is started ---- */

/* The template for a type. It may name another version of it: code that was upgraded starts what it
 * knows, and a specification never changes. */
static const skua_child *find_template(struct scheduler *sched, const skua_supervisor *offers,
                                       const skua_process_type *type)
{
    const skua_process_type *newest = upgrade_newest(sched, type);
    for (size_t i = 0; i < offers->template_count; i++) {
        const skua_child *template = &offers->templates[i];
        if (template->type == type || upgrade_newest(sched, template->type) == newest) {
            return template;
        }
    }
    return NULL;
}

/* A child of another process, which must have a template for it. */
static int conceive_for_other(struct scheduler *sched, const struct spawn_request *request,
                              const char *method, struct birth *birth)
{
    struct process *process;
    const skua_supervisor *offers;
    int error = process_table_find_live(&sched->table, birth->supervisor, &process);
    if (error == 0) {
        error = lineage_read_offers_any(&sched->lineage, birth->supervisor, &offers, &birth->quota);
    }
    if (error == SKUA_E_NO_TEMPLATE) { /* it may have ended meanwhile, and left */
        const int gone = process_table_find_live(&sched->table, birth->supervisor, &process);
        error = gone != 0 ? gone : error;
    }
    if (error == 0) {
        const skua_child *template = find_template(sched, offers, request->type);
        error = template != NULL ? make_news(sched, request, method, template, &birth->news)
                                 : SKUA_E_NO_TEMPLATE;
    }
    if (error != 0) {
        quota_let_go_any(&sched->quotas, birth->quota);
    }
    return error;
}

int children_conceive(struct scheduler *sched, const struct spawn_request *request,
                      const char *method, struct birth *birth)
{
    const skua_context *parent = request->parent;
    const bool is_own =
        parent != NULL && skua_pid_equal(request->options->supervisor, parent->self);
    *birth = (struct birth){
        .supervisor = request->options->supervisor,
        .is_own = is_own,
        .news = skua_payload_empty(0),
    };
    if (request->input == NULL && request->input_count > 0) {
        return SKUA_E_INVALID;
    }
    if (is_own) {
        return (parent->phase & CONTEXT_STEP) != 0 ? 0 : SKUA_E_CONTEXT;
    }
    return conceive_for_other(sched, request, method, birth);
}

static int tie_to_supervisor(struct scheduler *sched, struct worker *worker,
                             const struct spawn_request *request, struct process *process,
                             skua_pid pid)
{
    struct birth *birth = request->birth;
    if (birth->is_own) {
        return links_make_own_child(request->parent, process, pid, request->options->link_tag);
    }
    if (!deliver_acquire_node(sched, worker, &birth->signal)) {
        return SKUA_E_NO_MEMORY;
    }
    if (!links_make_child(sched, worker, process, pid, birth->supervisor, &birth->half,
                          &birth->other)) {
        deliver_release_node(sched, worker, birth->signal);
        return SKUA_E_NO_MEMORY;
    }
    birth->is_linked = true;
    return 0;
}

int children_link(struct scheduler *sched, struct worker *worker,
                  const struct spawn_request *request, struct process *process, skua_pid pid)
{
    const skua_spawn_options *options = request->options;
    struct wing *wing = signal_wing(sched, worker, process);
    const int error =
        wing != NULL ? tie_to_supervisor(sched, worker, request, process, pid) : SKUA_E_NO_MEMORY;
    if (error != 0) {
        return error;
    }
    const char *name = options->name != NULL ? options->name : options->label;
    lineage_join_any(&sched->lineage, &wing->member, pid, request->birth->supervisor, name);
    process_set_progress_owner(process, process_progress(process) | PROCESS_SUPERVISED);
    return 0;
}

void children_announce(struct scheduler *sched, struct worker *worker, struct process *process,
                       skua_pid pid, struct birth *birth)
{
    if (birth->is_own) {
        return;
    }
    event_at(&sched->events, birth->signal)->as.event = (skua_event){
        .type = EVENT_CHILD,
        .tag = birth->other,
        .from = pid,
        .payload = birth->news,
    };
    if (signal_push_now(sched, worker, birth->supervisor, birth->signal)) {
        birth->news = skua_payload_empty(0);
        return;
    }
    deliver_release_node(sched, worker, birth->signal);
    links_drop_half(sched, worker, birth->other);
    const enum state_duty duty = state_request_any(process, pid_generation(pid), STATE_KILL);
    SKUA_ASSERT(duty == STATE_DONE); /* it is Ready, and its token is here */
}

void children_undo(struct scheduler *sched, struct worker *worker, struct process *process,
                   const struct birth *birth)
{
    children_leave(sched, process);
    if (birth->is_linked) {
        links_unmake_child(sched, worker, process, birth->half);
        links_drop_half(sched, worker, birth->other);
        deliver_release_node(sched, worker, birth->signal);
    }
}

void children_forget(struct scheduler *sched, struct birth *birth)
{
    skua_payload_drop(&birth->news);
    quota_let_go_any(&sched->quotas, birth->quota);
}

void children_stop(struct scheduler *sched, struct process *process)
{
    struct wing *wing = annex_wing(&sched->events, process);
    if (wing != NULL && wing->member.offers != NULL) { /* only this process changes that */
        lineage_offer_any(&sched->lineage, &wing->member, NULL);
    }
}

void children_leave(struct scheduler *sched, struct process *process)
{
    struct wing *wing = annex_wing(&sched->events, process);
    if (wing != NULL) {
        lineage_leave_any(&sched->lineage, &wing->member);
    }
}

/* ---- at the supervisor ---- */

static void release(struct worker *worker, uint32_t index)
{
    event_release_owner(&worker->sched->events, &worker->caches.events, index);
}

void children_take(struct worker *worker, struct process *process, uint32_t index,
                   skua_event *event)
{
    *event = event_at(&worker->sched->events, index)->as.event;
    release(worker, index);
    if (event->type == EVENT_CHILD) {
        links_take_new(worker, process, (uint32_t)event->tag);
        event->tag = SKUA_CHILD_STARTED;
    } else {
        event->tag = SKUA_CHILD_READY;
    }
    event->type = SKUA_EVENT_CHILD;
}

void children_drop(struct worker *worker, struct process *process, uint32_t index)
{
    skua_event event;
    children_take(worker, process, index, &event); /* the child is told with all others */
    skua_payload_drop(&event.payload);
}

/* ---- verbs ---- */

int children_ready(skua_context *ctx)
{
    struct scheduler *sched = ctx->sched;
    const struct wing *wing = annex_wing(&sched->events, ctx->process);
    uint32_t node;
    if ((process_progress(ctx->process) & PROCESS_SUPERVISED) == 0) {
        return 0;
    }
    if (!deliver_acquire_node(sched, ctx->worker, &node)) {
        return SKUA_E_NO_MEMORY;
    }
    event_at(&sched->events, node)->as.event = (skua_event){
        .type = EVENT_CHILD_READY, .from = ctx->self, .payload = skua_payload_empty(0)};
    if (!signal_push(sched, ctx->worker, ctx->self, wing->member.supervisor, node)) {
        deliver_release_node(sched, ctx->worker, node); /* the end of this one is on its way */
    }
    return 0;
}

int children_supervise(skua_context *ctx, const skua_supervisor *specification)
{
    struct scheduler *sched = ctx->sched;
    if (specification != NULL &&
        (specification->name == NULL ||
         (specification->templates == NULL && specification->template_count > 0))) {
        return SKUA_E_SPECIFICATION;
    }
    struct wing *wing = signal_wing(sched, ctx->worker, ctx->process);
    if (wing == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    lineage_join_any(&sched->lineage, &wing->member, ctx->self, (skua_pid){0},
                     specification != NULL ? specification->name : NULL);
    if (wing->granted == NULL) {
        lineage_set_quota_any(&sched->lineage, &wing->member, wing->quota, false);
    }
    lineage_offer_any(&sched->lineage, &wing->member, specification);
    return 0;
}

int children_blame(skua_context *ctx, skua_pid cause)
{
    struct wing *wing = signal_wing(ctx->sched, ctx->worker, ctx->process);
    if (wing == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    wing->blamed = cause;
    return 0;
}

skua_pid children_blamed(struct scheduler *sched, struct process *process, skua_pid self)
{
    const struct wing *wing = annex_wing(&sched->events, process);
    return wing != NULL && !skua_pid_is_none(wing->blamed) ? wing->blamed : self;
}
