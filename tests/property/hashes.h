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
    UINT64_C(0xc8a57219d674248f),
    UINT64_C(0x8293b7b194cf57e9),
    UINT64_C(0x58bb39c8cac220eb),
    UINT64_C(0xc9940c0c0ad29ebc),
    UINT64_C(0x759d78891017b990),
    UINT64_C(0x40a12ec6a08e3342),
    UINT64_C(0x48fe17b33ae4d93a),
    UINT64_C(0xd373c2a56335ed5e),
    UINT64_C(0x515442bd46be5b22),
    UINT64_C(0x90c734b2863111ff),
    UINT64_C(0x074d1be2c8418d3a),
    UINT64_C(0xb30dbced1cebcf06),
};
/* clang-format on */

#endif
