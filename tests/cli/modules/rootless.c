/* SPDX-License-Identifier: MIT */
/* A module without a root. */
#include <skua/skua.h>

SKUA_MODULE(.name = "rootless");
