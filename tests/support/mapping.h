/* SPDX-License-Identifier: MIT */
/* What the system tells of a part of this program's memory. */
#ifndef SKUA_TESTS_MAPPING_H
#define SKUA_TESTS_MAPPING_H

#include <stddef.h>

/* The flags of the mapping that an address lies in, as /proc/self/smaps has them; empty if the
 * system does not tell. */
void mapping_flags(const void *address, char *flags, size_t size);

#endif
