/* SPDX-License-Identifier: MIT */
/* A ticker: a process that works in regular intervals, notices when it was too slow for some of
 * them, and ends at its deadline.
 *
 *   03_ticker [ticks]      default: 10, one every 50 ms */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

#define PERIOD (50 * SKUA_MILLISECOND)

enum { TAG_TICK, TAG_CURFEW };

struct metronome {
    bool ticks;
    uint64_t began;
    uint64_t wanted;
    uint64_t seen;
};

static int metronome_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                          size_t input_count)
{
    struct metronome *metronome = self;
    (void)method;
    metronome->began = skua_context_now(ctx);
    metronome->wanted = input_count > 0 ? skua_payload_to_u64(&input[0]) : 10;
    return 0;
}

/* The first step asks for the ticks, and for an end in case they never come. */
static int begin(struct metronome *metronome, skua_context *ctx, skua_step *out)
{
    metronome->ticks = true;
    const int error = skua_step_ticker(out, TAG_TICK, PERIOD);
    return error != 0
               ? error
               : skua_step_timer(out, TAG_CURFEW,
                                 skua_context_deadline(ctx, 100 * metronome->wanted * PERIOD));
}

static void tick(struct metronome *metronome, const skua_event *event)
{
    metronome->seen += skua_tick_count(event);
    printf("tick %2" PRIu64 " at %7.2f ms%s\n", metronome->seen,
           (double)(skua_tick_time(event) - metronome->began) / 1e6,
           skua_tick_count(event) > 1 ? " (some were missed)" : "");
}

static int metronome_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                          skua_step *out)
{
    struct metronome *metronome = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_TICK) {
            tick(metronome, &events[i]);
        } else if (events[i].type == SKUA_EVENT_CANCEL) {
            return events[i].error;
        } else if (events[i].type == SKUA_EVENT_COMPLETION && events[i].tag == TAG_CURFEW) {
            return SKUA_E_TIMEOUT;
        }
    }
    if (!metronome->ticks) {
        return begin(metronome, ctx, out);
    }
    if (metronome->seen >= metronome->wanted) {
        /* Ticker and timer end with the process; nothing has to be taken back. */
        skua_step_done(out, skua_payload_u64(0, metronome->seen));
    }
    return 0;
}

static const skua_process_type metronome_type = {
    .name = "metronome",
    .state_size = sizeof(struct metronome),
    .init = metronome_init,
    .step = metronome_step,
};

int main(int argc, char **argv)
{
    skua_runtime *runtime;
    skua_exit exit = {.error = SKUA_E_INVALID};
    const uint64_t ticks = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    skua_payload input = skua_payload_u64(0, ticks > 0 && ticks < 1000000 ? ticks : 10);
    int error = skua_runtime_create(&runtime, NULL);
    if (error == 0) {
        error = skua_runtime_start(runtime);
        if (error == 0) {
            error = skua_process_run(runtime, &metronome_type, NULL, &input, 1, &exit);
            (void)skua_runtime_stop(runtime, SKUA_SECOND);
        }
        (void)skua_runtime_destroy(runtime);
    }
    error = error != 0 ? error : exit.error;
    if (error != 0) {
        fprintf(stderr, "03_ticker: %s\n", skua_error_text(error));
    }
    return error == 0 ? 0 : 1;
}
