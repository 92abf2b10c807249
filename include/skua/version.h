/* SPDX-License-Identifier: MIT */
/* Versions: that of these headers, and that of the library a program runs with. */
#ifndef SKUA_VERSION_H
#define SKUA_VERSION_H

#include <skua/export.h>

/* The version of these headers. Until 1.0 a minor version may change the interface. */
#define SKUA_VERSION_MAJOR 0
#define SKUA_VERSION_MINOR 2
#define SKUA_VERSION_PATCH 0

/* The same as one number, 0x00020000 for 0.2.0: a byte each for major, minor and patch, the last is
 * zero. Later versions have larger numbers, and #if can compare them. */
#define SKUA_VERSION_HEX                                                                           \
    ((SKUA_VERSION_MAJOR << 24) | (SKUA_VERSION_MINOR << 16) | (SKUA_VERSION_PATCH << 8))

SKUA_BEGIN_DECLS

/* The version of the library in use, as "major.minor.patch".
 * Gives:   a static string.      Threads: any.      Blocks: never. */
SKUA_API const char *skua_version(void);

SKUA_END_DECLS

#endif
