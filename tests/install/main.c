/* SPDX-License-Identifier: MIT */
/* A user's smallest program: prints the version it was linked with. */
#include <stdio.h>
#include <string.h>

#include <skua/skua.h>

int main(void)
{
    skua_runtime *runtime;
    if (skua_runtime_create(&runtime, NULL) != 0)
        return 1;
    if (skua_runtime_destroy(runtime) != 0)
        return 1;
    if (strcmp(skua_error_name(SKUA_E_TIMEOUT), "SKUA_E_TIMEOUT") != 0)
        return 1;
    puts(skua_version());
    return 0;
}
