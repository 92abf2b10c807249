/* SPDX-License-Identifier: MIT */
/* Versions: that of these headers, and that of the library a program runs with. */
#ifndef SKUA_VERSION_H
#define SKUA_VERSION_H

#include <skua/export.h>

/* The version of these headers. Until 1.0 a minor version may change the interface. */
#define SKUA_VERSION_MAJOR 0
#define SKUA_VERSION_MINOR 1
#define SKUA_VERSION_PATCH 0

SKUA_BEGIN_DECLS

/* The version of the library in use, as "major.minor.patch".
 * Gives:   a static string.      Threads: any.      Blocks: never. */
SKUA_API const char *skua_version(void);

SKUA_END_DECLS

#endif
