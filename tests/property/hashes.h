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
    UINT64_C(0x1cea42e55ee276f1),
    UINT64_C(0x09ce9c44b0967dc5),
    UINT64_C(0x7e6a3e0343aa6414),
    UINT64_C(0x4b5f03f079dd56e3),
    UINT64_C(0x9389dd5e41f50b2e),
    UINT64_C(0x37a37f23035a59cc),
    UINT64_C(0x452f90fe0c96aedb),
    UINT64_C(0xa5f59b385139935e),
    UINT64_C(0x029b09a04702f5e3),
    UINT64_C(0x4c9c9e6051f28793),
    UINT64_C(0xba5c78015cb83818),
    UINT64_C(0x51b8f15e1bf4439e),
};
/* clang-format on */

#endif
