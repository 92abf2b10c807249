/* SPDX-License-Identifier: MIT */
/* A process that works at regular intervals, notices when it misses some, and gives up at a
 * deadline.
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
    uint64_t began;
    uint64_t wanted;
    uint64_t seen;
};

static int metronome_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct metronome *metronome = self;
    char *end = "";
    metronome->began = skua_now(ctx);
    metronome->wanted = count > 0 ? strtoull(skua_payload_data(&input[0]), &end, 10) : 10;
    if (count > 1 || *end != '\0' || metronome->wanted == 0 || metronome->wanted > TICKS_MAX) {
        fprintf(stderr, "usage: skua run 05_ticker.so [-- TICKS], 1 to %d\n", TICKS_MAX);
        return SKUA_E_INVALID;
    }
    return 0;
}

/* Asks for the ticks, and for an end in case they never come. */
static int start(const struct metronome *metronome, skua_context *ctx)
{
    const int error = skua_yield_ticker(ctx, TAG_TICK, PERIOD);
    return error != 0 ? error : skua_yield_sleep(ctx, TAG_CURFEW, 100 * metronome->wanted * PERIOD);
}

static void tick(struct metronome *metronome, const skua_event *event)
{
    metronome->seen += skua_tick_count(event);
    printf("tick %2" PRIu64 " at %7.2f ms%s\n", metronome->seen,
           (double)(skua_tick_time(event) - metronome->began) / 1e6,
           skua_tick_count(event) > 1 ? " (some were missed)" : "");
}

static int metronome_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct metronome *metronome = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            return start(metronome, ctx);
        }
        if (events[i].type == SKUA_EVENT_COMPLETION) { /* the curfew: a ticker just goes on */
            return SKUA_E_TIMEOUT;
        }
        tick(metronome, &events[i]);
    }
    if (metronome->seen >= metronome->wanted) {
        /* Ticker and curfew end with the process; there is nothing to clean up. */
        return skua_done(ctx, skua_payload_u64(0, metronome->seen));
    }
    return 0;
}

static const skua_process_type metronome_type = {
    .name = "metronome",
    .state_size = sizeof(struct metronome),
    .init = metronome_init,
    .step = metronome_step,
};

SKUA_MODULE(.name = "ticker", .about = "works at regular intervals", .root = &metronome_type);
