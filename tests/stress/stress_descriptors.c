/* SPDX-License-Identifier: MIT */
/* Waits for descriptors that are written to, drained and closed meanwhile: waiting.h says what must
 * hold. */
#include "waiting.h"

int main(int argc, char **argv)
{
    static const struct yield_kind *const kinds[] = {&yield_channel, &yield_read, &yield_write};
    const struct waiting waiting = {
        .sleepers = {.kinds = kinds, .kind_count = COUNT_OF(kinds), .uses_channels = true},
        .ops = 750000};
    return waiting_main(argc, argv, &waiting);
}
