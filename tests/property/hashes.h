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
    UINT64_C(0x8dfaacfd1c5da490),
    UINT64_C(0x09ce9c44b0967dc5),
    UINT64_C(0xe6d861d626bad9ee),
    UINT64_C(0x0e72b89cc69386e9),
    UINT64_C(0x9389dd5e41f50b2e),
    UINT64_C(0x53f1315ed46547c7),
    UINT64_C(0x797855c1e2ff56bb),
    UINT64_C(0x82b7d9d07e542237),
    UINT64_C(0x029b09a04702f5e3),
    UINT64_C(0x9a9849ea52efa6c3),
    UINT64_C(0xc47ef257bcd6d54b),
    UINT64_C(0x51b8f15e1bf4439e),
};
/* clang-format on */

#endif
