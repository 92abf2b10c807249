/* SPDX-License-Identifier: MIT */
/* Frames that a process makes are those that another takes out of its input. */
#include <skua/codec.h>

#include "actor.h"

#define LARGEST 300

static const struct {
    enum skua_frame format;
    size_t size;
    uint16_t storage;
} frames[] = {
    {SKUA_FRAME_U8, 0, SKUA_PAYLOAD_INLINE},   {SKUA_FRAME_U8, 23, SKUA_PAYLOAD_INLINE},
    {SKUA_FRAME_U8, 24, SKUA_PAYLOAD_OWNED},   {SKUA_FRAME_LE64, 16, SKUA_PAYLOAD_INLINE},
    {SKUA_FRAME_LE64, 17, SKUA_PAYLOAD_OWNED}, {SKUA_FRAME_BE32, LARGEST, SKUA_PAYLOAD_OWNED},
};

static int make_frames(struct turn *turn, const struct act *act)
{
    skua_input *input = act->arg;
    char bytes[LARGEST];
    memset(bytes, 'x', sizeof bytes);
    for (size_t i = 0; i < COUNT_OF(frames); i++) {
        skua_bytes frame;
        skua_payload payload;
        assert_int_equal(
            skua_frame_payload(turn->ctx, frames[i].format, bytes, frames[i].size, &payload), 0);
        assert_int_equal(payload.storage, frames[i].storage);
        assert_int_equal(skua_input_append(input, payload), 0);
        assert_int_equal(skua_input_take_frame(input, frames[i].format, &frame), 1);
        assert_int_equal(frame.size, frames[i].size);
        assert_memory_equal(frame.data, bytes, frame.size);
    }
    skua_input_clear(input);
    return 0;
}

TEST(frame_of_a_process_comes_out_of_an_input_again)
{
    skua_input input = {.limit = LARGEST};
    world_open();
    assert_result(actor_run(actor_new(ACTS(does(make_frames, &input), finishes(7)))), 7);
}

static int make_impossible_frames(struct turn *turn, const struct act *act)
{
    skua_payload payload;
    char bytes[LARGEST] = {0};
    (void)act;
    assert_int_equal(skua_frame_payload(turn->ctx, SKUA_FRAME_U8, bytes, 256, &payload),
                     SKUA_E_TOO_LONG);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(skua_frame_payload(turn->ctx, (enum skua_frame)7, bytes, 1, &payload),
                     SKUA_E_INVALID);
    return 0;
}

TEST(frame_that_cannot_be_made_leaves_an_empty_payload)
{
    world_open();
    assert_result(actor_run(actor_new(ACTS(does(make_impossible_frames, NULL), finishes(7)))), 7);
}
