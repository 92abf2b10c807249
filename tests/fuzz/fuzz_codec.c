/* SPDX-License-Identifier: MIT */
/* A stream, cut in two ways: what is taken out of it does not depend on the cuts, and no input
 * holds more memory than its limit allows. The first bytes choose the limit, what to take and the
 * cuts; the rest is the stream. */
#include <skua/codec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "counting_allocator.h"
#include "ledger.h"

#define HEAD  8   /* bytes that choose */
#define ITEMS 600 /* more than a stream can have */

/* What came out: where it was in the stream, by a hash; and how it ended. */
struct outcome {
    uint64_t hash;
    unsigned items;
    size_t left;
    int error;
};

struct plan {
    enum skua_frame format; /* 0: lines */
    size_t limit;
    uint64_t cuts; /* their seed; 0: none */
};

static void note(struct outcome *outcome, skua_bytes bytes)
{
    outcome->hash = random_mix(outcome->hash + bytes.size + 1);
    for (size_t i = 0; i < bytes.size; i++) {
        outcome->hash = random_mix(outcome->hash + (unsigned char)bytes.data[i]);
    }
    outcome->items++;
    EXPECT(outcome->items < ITEMS);
}

static int take_one(skua_input *input, const struct plan *plan, skua_bytes *bytes)
{
    return plan->format != 0 ? skua_input_take_frame(input, plan->format, bytes)
                             : skua_input_take_line(input, bytes);
}

static void take_all(skua_input *input, const struct plan *plan, struct outcome *outcome)
{
    skua_bytes bytes;
    int more;
    while ((more = take_one(input, plan, &bytes)) > 0) {
        EXPECT(bytes.size <= plan->limit);
        note(outcome, bytes);
    }
    EXPECT(more == 0 || more == SKUA_E_TOO_LONG);
    outcome->error = more;
}

static skua_payload copy_of(const uint8_t *data, size_t size)
{
    void *copy = malloc(size);
    EXPECT(copy != NULL);
    memcpy(copy, data, size);
    return skua_payload_owned(0, copy, size, skua_drop_free);
}

static struct outcome play(const struct plan *plan, const uint8_t *data, size_t size)
{
    struct counting_allocator memory;
    struct outcome outcome = {0};
    uint64_t cuts = plan->cuts;
    counting_allocator_init(&memory);
    skua_input input = {.limit = plan->limit, .alloc = counting_allocate, .alloc_arg = &memory};
    while (size > 0 && outcome.error == 0) {
        const uint32_t longest = 1 + (uint32_t)(plan->cuts % 40);
        size_t length = plan->cuts != 0 ? 1 + random_below(&cuts, longest) : size;
        length = length < size ? length : size;
        EXPECT(skua_input_append(&input, copy_of(data, length)) == 0);
        take_all(&input, plan, &outcome);
        EXPECT(counting_allocator_live_bytes(&memory) <= plan->limit + SKUA_FRAME_PREFIX_MAX);
        data += length;
        size -= length;
    }
    outcome.left = outcome.error == 0 ? skua_input_size(&input) : 0;
    skua_input_clear(&input);
    EXPECT(counting_allocator_is_clean(&memory));
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum skua_frame formats[] = {
        0,
        SKUA_FRAME_U8,
        SKUA_FRAME_BE16,
        SKUA_FRAME_LE16,
        SKUA_FRAME_BE32,
        SKUA_FRAME_LE32,
        SKUA_FRAME_BE64,
        SKUA_FRAME_LE64,
    };
    if (size < HEAD) {
        return 0;
    }
    struct plan plan = {.format = formats[data[0] % 8], .limit = 1 + data[1]};
    const struct outcome whole = play(&plan, data + HEAD, size - HEAD);
    memcpy(&plan.cuts, data, sizeof plan.cuts);
    plan.cuts |= 1;
    const struct outcome cut = play(&plan, data + HEAD, size - HEAD);
    EXPECT(whole.hash == cut.hash && whole.items == cut.items);
    EXPECT(whole.error == cut.error && whole.left == cut.left);
    return 0;
}
