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
    UINT64_C(0x7421791142a43e44),
    UINT64_C(0x3c9fe62197db9681),
    UINT64_C(0xd4c8f432417a940c),
    UINT64_C(0x25d233696a7a57ab),
    UINT64_C(0xba97f72bdc1ff6f4),
    UINT64_C(0xafa68ba722683139),
    UINT64_C(0x2c2139df67f7d5a8),
    UINT64_C(0xd555ea49b854430e),
    UINT64_C(0xf6e14300125811bf),
    UINT64_C(0x79114f2a0d166ab9),
    UINT64_C(0x1799d419c8cf7aaa),
    UINT64_C(0xde95ece1d9ce80f6),
};
/* clang-format on */

#endif
