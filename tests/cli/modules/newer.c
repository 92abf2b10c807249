/* SPDX-License-Identifier: MIT */
/* A module of a version that this one cannot know. Nothing else of it may be looked at. */
#include <skua/skua.h>

extern SKUA_API const skua_module skua_module_descriptor;
const skua_module skua_module_descriptor = {
    .version = UINT32_C(7) << 16 | 3,
    .root = (const skua_process_type *)(uintptr_t)1,
};
