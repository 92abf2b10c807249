/* SPDX-License-Identifier: MIT */
/* Functions on pools, one of them often full: waiting.h says what must hold. */
#include "waiting.h"

int main(int argc, char **argv)
{
    static const struct yield_kind *const kinds[] = {&yield_call, &yield_call,          &yield_call,
                                                     &yield_call, &yield_call,          &yield_call,
                                                     &yield_call, &yield_call_elsewhere};
    const struct waiting waiting = {.sleepers = {.kinds = kinds, .kind_count = COUNT_OF(kinds)},
                                    .ops = 750000,
                                    .calls_min = 100000};
    return waiting_main(argc, argv, &waiting);
}
