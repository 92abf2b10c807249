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
    UINT64_C(0xd045ead921396a67),
    UINT64_C(0x9dba108420c5e589),
    UINT64_C(0x477bd6063f36c3c5),
    UINT64_C(0xec473faf44061003),
    UINT64_C(0x09983f91aecc53df),
    UINT64_C(0xd46d6d0fa4184fb0),
    UINT64_C(0x12b2f7c08e0307e9),
    UINT64_C(0x3d5271e6c15df729),
    UINT64_C(0x54433600e8849f91),
    UINT64_C(0x1193060a1635a273),
    UINT64_C(0xb8a8b22942437bce),
    UINT64_C(0x04f512378ad3bf75),
};
/* clang-format on */

#endif
