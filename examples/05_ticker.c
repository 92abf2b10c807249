/* SPDX-License-Identifier: MIT */
/* A ticker: a process that works in regular intervals, notices when it was too slow for some of
 * them, and ends at its deadline.
 *
 *   skua run 05_ticker.so [-- TICKS]      default: 10, one every 50 ms
 *
 * In the simulator (--sim) it is over at once: time jumps from tick to tick. */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

#define PERIOD    (50 * SKUA_MILLISECOND)
#define TICKS_MAX 1000000

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
    char *end = "";
    metronome->began = skua_context_now(ctx);
    metronome->wanted = input_count > 0 ? strtoull(skua_payload_data(&input[0]), &end, 10) : 10;
    if (input_count > 1 || *end != '\0' || metronome->wanted == 0 ||
        metronome->wanted > TICKS_MAX) {
        fprintf(stderr, "usage: skua run 05_ticker.so [-- TICKS], 1 to %d\n", TICKS_MAX);
        return SKUA_E_INVALID;
    }
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

SKUA_MODULE(.name = "ticker", .about = "works in regular intervals", .root = &metronome_type);
