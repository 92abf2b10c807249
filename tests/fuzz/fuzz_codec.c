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

#define CHUNKS      ((enum skua_frame)3) /* none of the library's */
#define CHUNK_EXTRA 32                   /* bytes of a chunk that are not its content */

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

/* What was cut off is cut off again, all of it. */
static int take_chunk(skua_input *input, size_t limit, skua_bytes *chunk)
{
    const skua_bytes all = skua_input_bytes(input);
    skua_bytes rest = all, again = all, whole;
    const int more = skua_bytes_cut_chunk(&rest, '$', limit, chunk);
    EXPECT(skua_bytes_cut_chunks(&again, '$', limit, 1, &whole) == more);
    EXPECT(skua_bytes_equal(rest, again) && whole.size + rest.size == all.size);
    EXPECT(skua_input_skip(input, whole.size) == 0);
    return more == SKUA_E_INVALID ? SKUA_E_TOO_LONG : more;
}

static int take_one(skua_input *input, const struct plan *plan, skua_bytes *bytes)
{
    if (plan->format == CHUNKS) {
        return take_chunk(input, plan->limit, bytes);
    }
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
    const size_t limit = plan->limit + (plan->format == CHUNKS ? CHUNK_EXTRA : 0);
    skua_input input = {.limit = limit, .alloc = counting_allocate, .alloc_arg = &memory};
    while (size > 0 && outcome.error == 0) {
        const uint32_t longest = 1 + (uint32_t)(plan->cuts % 40);
        size_t length = plan->cuts != 0 ? 1 + random_below(&cuts, longest) : size;
        length = length < size ? length : size;
        EXPECT(skua_input_append(&input, copy_of(data, length)) == 0);
        take_all(&input, plan, &outcome);
        EXPECT(counting_allocator_live_bytes(&memory) <= limit + SKUA_FRAME_PREFIX_MAX);
        data += length;
        size -= length;
    }
    outcome.left = outcome.error == 0 ? skua_input_size(&input) : 0;
    skua_input_clear(&input);
    EXPECT(counting_allocator_is_clean(&memory));
    return outcome;
}

/* A text is edited as a plain array of bytes is. */
static void edit(const uint8_t *data, size_t size)
{
    char expected[64 * 256];
    size_t length = 0;
    skua_output output = {0};
    for (unsigned i = 0; i < 64 && size >= 3; i++) {
        const size_t at = data[0] < length ? data[0] : length;
        const size_t removed = data[1] < length - at ? data[1] : length - at;
        const size_t added = data[2] < size - 3 ? data[2] : size - 3;
        memmove(expected + at + added, expected + at + removed, length - at - removed);
        memcpy(expected + at, data + 3, added);
        length = length - removed + added;
        skua_output_replace(&output, data[0], data[1], (skua_bytes){(const char *)data + 3, added});
        EXPECT(skua_bytes_equal(skua_output_peek(&output), (skua_bytes){expected, length}));
        data += 3 + added;
        size -= 3 + added;
    }
    skua_output_clear(&output);
}

/* What is put together is taken apart again, piece by piece. */
static void put_together(skua_output *output, skua_bytes bytes, int64_t number)
{
    const size_t before = skua_output_peek(output).size;
    skua_output_bytes(output, bytes);
    skua_output_put(output, "\n", 1);
    skua_output_number(output, number);
    skua_output_format(output, "\n%lld\n", (long long)number);
    skua_output_count(output, '*', (int64_t)bytes.size);
    skua_output_chunk(output, '$', bytes);
    skua_output_text(output, "end\n");
    EXPECT(skua_output_peek(output).size > before);
}

static void expect_number(skua_bytes *rest, int64_t expected)
{
    skua_bytes line;
    int64_t number;
    EXPECT(skua_bytes_cut_line(rest, &line));
    EXPECT(skua_bytes_to_number(line, &number) == 0 && number == expected);
}

static void take_apart(skua_bytes *rest, skua_bytes bytes, int64_t expected)
{
    skua_bytes line, chunk;
    size_t count;
    EXPECT(rest->size > bytes.size);
    EXPECT(skua_bytes_equal((skua_bytes){rest->data, bytes.size}, bytes));
    rest->data += bytes.size + 1;
    rest->size -= bytes.size + 1;
    expect_number(rest, expected);
    expect_number(rest, expected);
    EXPECT(skua_bytes_cut_count(rest, '*', SIZE_MAX, &count) == 1 && count == bytes.size);
    EXPECT(skua_bytes_cut_chunk(rest, '$', bytes.size, &chunk) == 1);
    EXPECT(skua_bytes_equal(chunk, bytes) &&
           skua_bytes_hash(chunk, 1) == skua_bytes_hash(bytes, 1));
    EXPECT(skua_bytes_cut_line(rest, &line) && skua_bytes_is(line, "end"));
}

static void write_and_read(const uint8_t *data, size_t size)
{
    const skua_bytes bytes = {(const char *)data, size};
    const struct {
        enum skua_frame format;
        uint64_t most;
    } frames[] = {{SKUA_FRAME_U8, UINT8_MAX},
                  {SKUA_FRAME_BE16, UINT16_MAX},
                  {SKUA_FRAME_LE64, UINT64_MAX},
                  {CHUNKS, 0}};
    unsigned char prefix[SKUA_FRAME_PREFIX_MAX];
    skua_output output = {0};
    skua_payload all;
    int64_t number;
    memcpy(&number, data, sizeof number);
    put_together(&output, bytes, number);
    EXPECT(skua_output_take(&output, &all) == 0 && skua_output_peek(&output).size == 0);
    skua_bytes rest = skua_payload_bytes(&all);
    take_apart(&rest, bytes, number);
    EXPECT(rest.size == 0);
    skua_payload_drop(&all);
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        const int length = skua_frame_prefix(frames[i].format, size, prefix);
        EXPECT(length == (frames[i].format == CHUNKS ? SKUA_E_INVALID
                          : size > frames[i].most    ? SKUA_E_TOO_LONG
                                                     : (int)(frames[i].format & 0xf)));
    }
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
        CHUNKS,
    };
    if (size < HEAD) {
        return 0;
    }
    struct plan plan = {.format = formats[data[0] % 9], .limit = 1 + data[1]};
    const struct outcome whole = play(&plan, data + HEAD, size - HEAD);
    memcpy(&plan.cuts, data, sizeof plan.cuts);
    plan.cuts |= 1;
    const struct outcome cut = play(&plan, data + HEAD, size - HEAD);
    EXPECT(whole.hash == cut.hash && whole.items == cut.items);
    EXPECT(whole.error == cut.error && whole.left == cut.left);
    edit(data, size);
    write_and_read(data, size);
    return 0;
}
