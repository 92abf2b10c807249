/* SPDX-License-Identifier: MIT */
/* What the simulator makes of the seeds from 0 on: the same on every machine and with every
 * compiler. They change whenever the simulator, the generator or the processes do something else or
 * draw another random number. If that was meant, put in what `property_programs --hashes` prints.
 */
#ifndef SKUA_TESTS_PROPERTY_HASHES_H
#define SKUA_TESTS_PROPERTY_HASHES_H

#include <stdint.h>

/* As the program prints it: */
/* clang-format off */
static const uint64_t hashes_expected[] = {
    UINT64_C(0x42416ad2de0a4082),
    UINT64_C(0x35fe0b0f9220b392),
    UINT64_C(0x0bc7befb140121eb),
    UINT64_C(0xc6dd188cca85c42e),
    UINT64_C(0x8e113d37ecd27963),
    UINT64_C(0x3a179871e3ea88cf),
    UINT64_C(0x66df213d58af6086),
    UINT64_C(0x65c64a947b8a8ef7),
    UINT64_C(0xf3cf632b510ea77b),
    UINT64_C(0x0ffa6015af40d609),
    UINT64_C(0x733b8bca6654aa29),
    UINT64_C(0xa620185d498c8c9e),
};
/* clang-format on */

#endif
