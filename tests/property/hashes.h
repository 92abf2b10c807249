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
    UINT64_C(0x0fd218edea8e1e49),
    UINT64_C(0xee3d30625655d458),
    UINT64_C(0x27f0292119964fbe),
    UINT64_C(0x9de89429e515bb61),
    UINT64_C(0xa49436e387c9476a),
    UINT64_C(0xf65ffae980c41332),
    UINT64_C(0x07d9c932ffeeb190),
    UINT64_C(0x136f2232d5fb24a9),
    UINT64_C(0xa78ec8a6910ececb),
    UINT64_C(0x22425ab040d6a376),
    UINT64_C(0x44364be60f3f3b08),
    UINT64_C(0x251f04b6dbe00a0b),
};
/* clang-format on */

#endif
