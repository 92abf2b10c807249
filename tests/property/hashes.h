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
    UINT64_C(0x173d1f26ecea67d6),
    UINT64_C(0x8869c2bf2028b69d),
    UINT64_C(0x0bc7befb140121eb),
    UINT64_C(0x641080089c20b5ee),
    UINT64_C(0xa4914a3c4a13a91e),
    UINT64_C(0x0fc6e1232c8d60ff),
    UINT64_C(0x6b90221375d36113),
    UINT64_C(0x65c64a947b8a8ef7),
    UINT64_C(0x8967f450ff3f91fd),
    UINT64_C(0xd98dab6dec359ccc),
    UINT64_C(0x074d1be2c8418d3a),
    UINT64_C(0xa620185d498c8c9e),
};
/* clang-format on */

#endif
