/* SPDX-License-Identifier: MIT */
/* Sleeps, timers, tickers, deadlines, and commands that complete late or never: waiting.h says what
 * must hold. */
#include "waiting.h"

int main(int argc, char **argv)
{
    static const struct yield_kind *const kinds[] = {&yield_sleep, &yield_timer, &yield_ticker,
                                                     &yield_later, &yield_never};
    const struct waiting waiting = {.sleepers = {.kinds = kinds, .kind_count = COUNT_OF(kinds)},
                                    .ops = 750000};
    return waiting_main(argc, argv, &waiting);
}
