/* SPDX-License-Identifier: MIT */
/* A module with a type that cannot do anything. */
#include <skua/skua.h>

static const skua_process_type root_type = {.name = "root"};

SKUA_MODULE(.name = "stepless", .root = &root_type);
