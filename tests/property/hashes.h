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
    UINT64_C(0x381ff59323422fa5),
    UINT64_C(0x057dccacb074468d),
    UINT64_C(0x9e93b3206186212c),
    UINT64_C(0x660b5d7586cc3f69),
    UINT64_C(0xced9755bf51e6597),
    UINT64_C(0x90dbc6158cfbd9a1),
    UINT64_C(0x47866a327981df75),
    UINT64_C(0x22a6344063a4fefe),
    UINT64_C(0x2cb0538cb4011108),
    UINT64_C(0xc98244e985fd5c6a),
    UINT64_C(0x361e736e4ab0a2a1),
    UINT64_C(0x5bf2d9033572795c),
};
/* clang-format on */

#endif
