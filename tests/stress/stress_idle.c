/* SPDX-License-Identifier: MIT */
/* All that a process can wait for, mixed: waiting.h says what must hold. */
#include "waiting.h"

int main(int argc, char **argv)
{
    static const struct yield_kind *const kinds[] = {
        &yield_sleep, &yield_timer,   &yield_ticker,        &yield_later,
        &yield_never, &yield_channel, &yield_read,          &yield_read,
        &yield_write, &yield_call,    &yield_call_elsewhere};
    const struct waiting waiting = {
        .sleepers = {.kinds = kinds, .kind_count = COUNT_OF(kinds), .uses_channels = true},
        .ops = 750000};
    return waiting_main(argc, argv, &waiting);
}
