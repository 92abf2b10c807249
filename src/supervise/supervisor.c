/* SPDX-License-Identifier: MIT */
#include "supervise/supervisor.h"

#define TEXT_SIZE 256

static const skua_process_type supervisor_type;

/* ---- init ---- */

static int check(const struct supervisor *self, skua_pid pid)
{
    char text[TEXT_SIZE];
    const int error = specification_check(self->spec, text, sizeof text);
    if (error != 0) {
        journal_wrong(self, pid, text);
    }
    return error;
}

static void find_log(struct supervisor *self, const skua_runtime *runtime)
{
    skua_runtime_config config;
    if (skua_runtime_config_read(runtime, &config) == 0) {
        self->on_log = config.on_log;
        self->on_log_arg = config.on_log_arg;
    }
}

static bool has_quota(const skua_quota *quota)
{
    return quota->processes != 0 || quota->messages != 0 || quota->bytes != 0;
}

static int begin(void *state, skua_context *ctx, skua_payload *input, size_t count)
{
    struct supervisor *self = state;
    if (count != 1 || input->storage != SKUA_PAYLOAD_POINTER || input->as.owned.data == NULL) {
        return SKUA_E_INVALID;
    }
    self->spec = input->as.owned.data;
    find_log(self, skua_runtime_of(ctx));
    int error = check(self, skua_self(ctx));
    error = error != 0 ? error : roster_init(self, ctx);
    error = error != 0 ? error : skua_label(ctx, self->spec->name);
    if (error == 0 && has_quota(&self->spec->quota)) {
        error = skua_limit(ctx, self->spec->quota);
    }
    return error != 0 ? error : skua_supervise(ctx, self->spec);
}

/* ---- events ---- */

/* A child's timer has ended, which means what its state says. */
static void take_timer(struct supervisor *self, uint64_t tag)
{
    struct child *child = roster_take_timer(self, tag);
    if (child == NULL) {
        return;
    }
    if (child->state == SKUA_CHILD_WAITING) {
        recover_now(self, child);
    } else if (child->state == SKUA_CHILD_STOPPING) {
        halt_too_late(self, child);
    } else if (child->state == SKUA_CHILD_STARTING && !child->is_doomed) {
        launch_too_late(self, child);
    }
}

static void take_exit(struct supervisor *self, const skua_event *event)
{
    struct child *child = roster_find(self, event->from);
    if (child != NULL) { /* or there was no memory for it */
        recover_from_end(self, child, event->error, skua_payload_to_pid(&event->payload));
    }
}

static void take_news(struct supervisor *self, skua_event *event)
{
    if (event->tag == SKUA_CHILD_STARTED) {
        launch_adopt(self, event);
        return;
    }
    struct child *child = roster_find(self, event->from);
    if (child != NULL && child->state == SKUA_CHILD_STARTING) {
        launch_ready(self, child);
    }
}

static void take_event(struct supervisor *self, skua_event *event)
{
    switch (event->type) {
    case SKUA_EVENT_EXIT:
        take_exit(self, event);
        break;
    case SKUA_EVENT_CHILD:
        take_news(self, event);
        break;
    case SKUA_EVENT_COMPLETION:
        take_timer(self, event->tag);
        break;
    case SKUA_EVENT_CANCEL:
        halt_begin(self, event->error, (skua_pid){0});
        break;
    case SKUA_EVENT_CALL:
        overview_answer(self, event);
        break;
    default:
        break; /* START and CONTINUE; messages are none of its business */
    }
}

/* What is next: the doomed end, or others start. False if all is over. */
static bool go_on(struct supervisor *self)
{
    if (self->doomed == 0 && !self->is_ending) {
        launch_next(self);
    }
    if (self->doomed > 0) {
        halt_next(self);
        return true;
    }
    return !self->is_ending;
}

static int end(struct supervisor *self)
{
    if (self->exit_error == 0) {
        return skua_done(self->ctx, skua_nothing());
    }
    (void)skua_blame(self->ctx, self->cause); /* it has all the memory that it needs */
    return self->exit_error;
}

static int step(void *state, skua_context *ctx, skua_event *events, size_t count)
{
    struct supervisor *self = state;
    self->ctx = ctx;
    for (size_t i = 0; i < count; i++) {
        take_event(self, &events[i]);
    }
    if (!go_on(self)) {
        return end(self);
    }
    roster_retry_timers(self);
    return 0;
}

static void let_go(void *state, skua_context *ctx, const skua_exit *exit)
{
    struct supervisor *self = state;
    (void)ctx;
    (void)exit;
    for (uint32_t i = 0; i < self->used; i++) {
        skua_payload_drop(&self->children[i].start);
    }
}

static int tell_of_child(const void *state, size_t place, skua_child_report *child)
{
    return overview_child(state, place, child);
}

/* ---- the type ---- */

static const skua_process_type supervisor_type = {
    .name = "skua_supervisor",
    .state_size = sizeof(struct supervisor),
    .init = begin,
    .step = step,
    .close = let_go,
    .cancel = SKUA_CANCEL_EVENT,
    .calls = true,
    .children = tell_of_child,
};

const skua_process_type *skua_supervisor_type(void)
{
    return &supervisor_type;
}

int skua_supervisor_start(skua_context *ctx, const skua_supervisor *specification, skua_pid *pid)
{
    return skua_spawn(ctx, &supervisor_type, skua_supervisor_input(specification), pid);
}

int skua_process_start_supervisor(skua_runtime *runtime, const skua_supervisor *specification,
                                  skua_pid *pid)
{
    return skua_process_submit(runtime, &supervisor_type, skua_supervisor_input(specification),
                               pid);
}
