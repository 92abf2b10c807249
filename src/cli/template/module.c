/* @NAME@: a program of processes, for Skua. `make run` builds and runs it.
 *
 * There is one process, which says hello twice a second, ten times. An argument says to whom:
 *
 *     make run ARGS=everybody
 */
#include <skua/skua.h>
#include <stdio.h>

/* What the process knows. Nobody else can touch it, so it needs no lock. */
struct greeter {
    skua_payload name;
    unsigned greetings;
    bool started;
};

/* Called once, with the arguments; `self` has been filled with zeros. */
static int greeter_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                        size_t input_count)
{
    struct greeter *greeter = self;
    (void)ctx;
    (void)method;
    if (input_count > 0) {
        greeter->name = skua_payload_take(&input[0]);
    }
    return 0;
}

static void greet(struct greeter *greeter)
{
    const char *name = skua_payload_data(&greeter->name);
    greeter->greetings++;
    printf("%2u: hello, %s\n", greeter->greetings, name != NULL ? name : "world");
}

/* Called at the start, and whenever something has arrived. It must not wait for anything: it asks
 * for what it wants next, and returns. */
static int greeter_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct greeter *greeter = self;
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) { /* Ctrl-C */
            return events[i].error;
        }
        if (events[i].type == SKUA_EVENT_TICK) {
            greet(greeter);
        }
    }
    if (!greeter->started) {
        greeter->started = true;
        return skua_step_ticker(out, 0, SKUA_SECOND / 2);
    }
    if (greeter->greetings >= 10) {
        skua_step_done(out, skua_payload_u64(0, greeter->greetings)); /* the result: printed */
    }
    return 0; /* the process waits for the next event */
}

/* Called once, whatever way the process ends. */
static void greeter_close(void *self)
{
    struct greeter *greeter = self;
    skua_payload_drop(&greeter->name);
}

static const skua_process_type greeter_type = {
    .name = "greeter",
    .state_size = sizeof(struct greeter),
    .init = greeter_init,
    .step = greeter_step,
    .close = greeter_close,
};

SKUA_MODULE(.name = "@NAME@", .about = "says hello for five seconds", .root = &greeter_type);
