/* SPDX-License-Identifier: MIT */
/* Supervisors with children in all states, for those who look from outside. The root says "ready"
 * and the PID of the supervisor on top when all of them are what they will be. */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR   (3600 * SKUA_SECOND)
#define FAILED (SKUA_E_USER - 7)

/* ---- children ---- */

static int rest_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx, (void)events, (void)count;
    return 0;
}

static int fail_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx, (void)events, (void)count;
    return SKUA_E_RESET;
}

static int fail_otherwise_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx, (void)events, (void)count;
    return FAILED;
}

static int done_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)events, (void)count;
    return skua_done(ctx, skua_nothing());
}

static const skua_process_type clerk_type = {.name = "clerk", .step = rest_step};
static const skua_process_type clumsy_type = {.name = "clumsy", .step = fail_step};
static const skua_process_type odd_type = {.name = "odd", .step = fail_otherwise_step};
static const skua_process_type brief_type = {.name = "brief", .step = done_step};
static const skua_process_type guest_type = {.name = "guest", .step = rest_step};

/* ---- a supervisor of one's own, which does not tell of its children ---- */

static const skua_supervisor no_templates = {.name = "own"};

static int own_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)count;
    if (events[0].type != SKUA_EVENT_START) {
        return 0;
    }
    const skua_spawn_options options = {
        .type = &clerk_type, .label = "clerk", .supervisor = skua_self(ctx)};
    skua_pid pid;
    const int error = skua_supervise(ctx, &no_templates);
    return error != 0 ? error : skua_spawn_with(ctx, &options, &pid);
}

static const skua_process_type own_type = {.name = "own_supervisor", .step = own_step};

/* ---- one that tells of a child that does not exist, with a name that has no end ---- */

static int tell_of_child(const void *self, size_t place, skua_child_report *child)
{
    (void)self;
    if (place != 1) {
        return place == 0 ? 0 : SKUA_E_INVALID;
    }
    memset(child->name, 'x', sizeof child->name);
    child->state = SKUA_CHILD_STOPPING;
    return 1;
}

static int teller_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)count;
    return events[0].type == SKUA_EVENT_START ? skua_supervise(ctx, &no_templates) : 0;
}

static const skua_process_type teller_type = {
    .name = "teller", .step = teller_step, .children = tell_of_child};

/* ---- the tree ---- */

static const skua_child guest = {.name = "guest", .type = &guest_type};
static const skua_supervisor guests = {
    .name = "guests",
    .templates = &guest,
    .template_count = 1,
    .quota = {.processes = 5000, .bytes = 600},
};
static const skua_supervisor back = {
    .name = "back",
    .children =
        (const skua_child[]){
            {.name = "slow", .type = &clerk_type, .start_ns = SKUA_FOREVER},
            {.name = "never begun", .type = &clerk_type},
        },
    .child_count = 2,
};
static const skua_supervisor shop = {
    .name = "shop",
    .children =
        (const skua_child[]){
            {.name = "clerk", .type = &clerk_type, .registered = true},
            {.name = "clumsy", .type = &clumsy_type, .backoff = {.first_ns = HOUR, .max_ns = HOUR}},
            {.name = "odd", .type = &odd_type, .backoff = {.first_ns = HOUR, .max_ns = HOUR}},
            {.name = "brief", .type = &brief_type, .restart = SKUA_RESTART_ON_ERROR},
            {.name = "broken", .type = &clumsy_type, .restart = SKUA_RESTART_NEVER},
            {.name = "guests", .supervisor = &guests},
            {.name = "own", .type = &own_type},
            {.name = "teller", .type = &teller_type},
            {.name = "back yard", .supervisor = &back},
        },
    .child_count = 9,
};

/* ---- the root: one method for each kind of tree ---- */

static int start_shop(skua_context *ctx, uint64_t count)
{
    skua_pid pid;
    skua_payload report;
    skua_child_report child = {.pid = {0}};
    int error = skua_supervisor_start(ctx, &shop, &pid);
    /* Until those that fail have failed twice, and the last one lives. */
    for (bool is_done = false; error == 0 && !is_done;) {
        skua_child_report clumsy, odd, last;
        error = skua_task_call(ctx, pid, skua_payload_empty(SKUA_SUPERVISOR_REPORT), HOUR, &report);
        is_done = error == 0 && skua_report_child(&report, 1, &clumsy) == 0 &&
                  skua_report_child(&report, 2, &odd) == 0 &&
                  skua_report_child(&report, 5, &child) == 0 &&
                  skua_report_child(&report, 8, &last) == 0 && clumsy.state == SKUA_CHILD_WAITING &&
                  odd.state == SKUA_CHILD_WAITING && !skua_pid_is_none(child.pid) &&
                  !skua_pid_is_none(last.pid);
        skua_payload_drop(&report);
    }
    for (uint64_t i = 0; i < count && error == 0; i++) {
        skua_pid guest_pid;
        const skua_spawn_options options = {.type = &guest_type, .supervisor = child.pid};
        error = skua_spawn_with(ctx, &options, &guest_pid);
    }
    printf("ready %016" PRIx64 "\n", pid.bits);
    fflush(stdout);
    return error;
}

/* Keeps the only supervisor busy: its first child does not return from its init. */
static int stuck_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)self, (void)ctx, (void)input, (void)count;
    printf("ready 0000000000000000\n");
    fflush(stdout);
    while (nanosleep(&(struct timespec){.tv_sec = 3600}, NULL) != 0) {
        /* whoever looks ends the program */
    }
    return 0;
}

static const skua_process_type stuck_type = {
    .name = "stuck", .init = stuck_init, .step = rest_step};
static const skua_supervisor hall = {
    .name = "hall",
    .children =
        (const skua_child[]){
            {.name = "first", .type = &clerk_type},
            {.name = "stuck", .type = &stuck_type},
        },
    .child_count = 2,
};

static int start_hall(skua_context *ctx)
{
    skua_pid pid;
    return skua_supervisor_start(ctx, &hall, &pid);
}

static int start_nothing(void)
{
    printf("ready 0000000000000000\n");
    fflush(stdout);
    return 0;
}

static int root_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    *(uint64_t *)self = count > 0 ? strtoull(skua_payload_data(&input[0]), NULL, 10) : 0;
    return 0;
}

static const char *const methods[] = {"shop", "hall", "nothing", NULL};

static int root_main(void *self, skua_context *ctx)
{
    const char *method = skua_method(ctx);
    const int error = method == methods[0]   ? start_shop(ctx, *(const uint64_t *)self)
                      : method == methods[1] ? start_hall(ctx)
                                             : start_nothing();
    return error != 0 ? error : skua_task_sleep(ctx, 1000 * HOUR);
}

static const skua_process_type root_type = {.name = "root",
                                            .state_size = sizeof(uint64_t),
                                            .methods = methods,
                                            .init = root_init,
                                            .main = root_main};

SKUA_MODULE(.name = "family", .about = "supervisors", .root = &root_type);
