/* SPDX-License-Identifier: MIT */
#include "supervise/supervisor.h"

/* Payloads of an input that need no memory of their own. */
#define INPUT_FEW 4

/* The runtime refuses new processes because it stops. The supervisor will be asked to end, after
 * others it may be: until then there is no hurry, and this is nobody's failure. */
#define STOPPED_NS SKUA_SECOND

/* ---- starting one ---- */

static int ref_all(const skua_payload *from, size_t count, skua_payload *to)
{
    int error = 0;
    for (size_t i = 0; i < count; i++) {
        const int refused = skua_payload_ref(&from[i], &to[i]);
        error = error != 0 ? error : refused;
    }
    return error;
}

/* Starts a process whose options have all but the input, which is repeated. */
static int make_process(struct supervisor *self, skua_spawn_options *options,
                        const skua_payload *input, size_t count, skua_pid *pid)
{
    skua_context *ctx = self->ctx;
    skua_payload few[INPUT_FEW];
    skua_payload *copy = count <= INPUT_FEW ? few : skua_alloc(ctx, count * sizeof *copy);
    if (copy == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    int error = ref_all(input, count, copy);
    options->input = copy;
    options->input_count = count;
    options->supervisor = skua_self(ctx);
    if (error == 0) {
        error = skua_spawn_with(ctx, options, pid);
    }
    options->input = NULL;
    options->input_count = 0;
    if (copy != few) {
        skua_free(ctx, copy, count * sizeof *copy);
    }
    return error;
}

static int make_listed(struct supervisor *self, const skua_child *spec, skua_pid *pid)
{
    skua_spawn_options options = {
        .type = spec->type,
        .method = spec->method,
        .name = spec->registered ? spec->name : NULL,
        .label = spec->name,
    };
    if (spec->supervisor != NULL) {
        const skua_payload input = skua_supervisor_input(spec->supervisor);
        options.type = skua_supervisor_type();
        return make_process(self, &options, &input, 1, pid);
    }
    return make_process(self, &options, spec->input, spec->input_count, pid);
}

static int make_dynamic(struct supervisor *self, const struct child *child, skua_pid *pid)
{
    const skua_child_start *start = skua_payload_data(&child->start);
    skua_spawn_options options = {
        .type = start->type,
        .method = start->method,
        .name = start->name,
        .label = start->label,
    };
    return make_process(self, &options, start->input, start->input_count, pid);
}

/* A child lives: waits until it is ready, or knows that it is. */
static void begin(struct supervisor *self, struct child *child, skua_pid pid)
{
    roster_live(self, child, pid);
    child->was_refused = false;
    child->started_at = skua_now(self->ctx);
    child->failure = 0;
    if (child->spec->start_ns == 0) {
        launch_ready(self, child);
        return;
    }
    child->state = SKUA_CHILD_STARTING;
    if (child->spec->start_ns != SKUA_FOREVER) {
        roster_set_timer(self, child, child->spec->start_ns);
    }
}

/* Whether a start is to be put off. The second time it may be the child that says so, whose orderly
 * end that is; one that is started again after such an end waits all the same. */
static bool is_put_off(struct child *child, int error)
{
    const bool is_first = !child->was_refused;
    child->was_refused = error == SKUA_E_STOPPED;
    return child->was_refused && (is_first || child->spec->restart == SKUA_RESTART_ALWAYS);
}

void launch_child(struct supervisor *self, struct child *child)
{
    skua_pid pid = {0};
    const int error =
        child->is_dynamic ? make_dynamic(self, child, &pid) : make_listed(self, child->spec, &pid);
    if (is_put_off(child, error)) {
        recover_later(self, child, STOPPED_NS);
        return;
    }
    if (child->started_at != 0) {
        child->restarts++;
        (void)skua_count(self->ctx, SKUA_COUNT_RESTART); /* cannot fail */
    }
    if (error != 0) {
        child->started_at = skua_now(self->ctx);
        recover_child(self, child, error, (skua_pid){0}, (skua_pid){0});
        return;
    }
    begin(self, child, pid);
}

void launch_ready(struct supervisor *self, struct child *child)
{
    roster_clear_timer(self, child);
    child->state = SKUA_CHILD_RUNNING;
    child->ready_at = skua_now(self->ctx);
}

void launch_too_late(struct supervisor *self, struct child *child)
{
    child->failure = SKUA_E_TIMEOUT;
    halt_child(self, child);
}

/* ---- the list ---- */

/* Whether the child at the front may be started: under ALL it waits for the back-off of any that
 * has failed. Under REST it waits for those before it only, and they are running. */
static bool may_start(const struct supervisor *self, const struct child *child)
{
    return child->state == SKUA_CHILD_STOPPED &&
           (self->spec->strategy != SKUA_STRATEGY_ALL || self->waiting == 0);
}

/* Without memory it is said in the next step, which comes only if it is asked for. */
static void say_ready(struct supervisor *self)
{
    self->is_ready = skua_ready(self->ctx) == 0;
    if (!self->is_ready) {
        (void)skua_continue(self->ctx); /* cannot fail */
    }
}

void launch_next(struct supervisor *self)
{
    while (self->front < listed(self)) {
        struct child *child = &self->children[self->front];
        if (child->is_over || child->state == SKUA_CHILD_RUNNING) {
            self->front++;
        } else if (may_start(self, child)) {
            launch_child(self, child);
            if (self->doomed > 0 || self->is_ending) {
                return;
            }
        } else {
            return;
        }
    }
    if (!self->is_ready) {
        say_ready(self);
    }
}

/* ---- templates ---- */

/* There is one: otherwise the child could not have been started. */
static const skua_child *find_template(const struct supervisor *self, const skua_process_type *type)
{
    const skua_child *template = self->spec->templates;
    while (template->type != type) {
        template ++;
    }
    return template;
}

void launch_adopt(struct supervisor *self, skua_event *event)
{
    const skua_child_start *start = skua_payload_data(&event->payload);
    const skua_child *spec = find_template(self, start->type);
    struct child *child;
    const int error = roster_add(self, spec, &child);
    if (error != 0) {
        journal_lost(self, spec, event->from, error);
        (void)skua_terminate(self->ctx, event->from);
        return;
    }
    child->start = skua_payload_take(&event->payload);
    begin(self, child, event->from);
    if (self->is_ending) {
        halt_doom(self, child);
    }
}
