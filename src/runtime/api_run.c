/* SPDX-License-Identifier: MIT */
/* A program that is one process: only what everybody could write. */
#include <errno.h>
#include <skua/runtime.h>
#include <stdio.h>

#include "process/payload.h"

static int start(skua_runtime **runtime, const skua_runtime_config *config, size_t config_size)
{
    const int error = skua_runtime_create_sized(runtime, config, config_size);
    return error != 0 ? error : skua_runtime_start(*runtime);
}

int skua_run_sized(const skua_runtime_config *config, const skua_process_type *type,
                   skua_payload *payload, size_t config_size)
{
    skua_runtime *runtime = NULL;
    skua_exit exit = {.error = 0};
    int error = start(&runtime, config, config_size);
    if (error == 0) {
        error = skua_process_run_sized(runtime, type, payload, &exit, sizeof exit);
        (void)skua_runtime_stop(runtime, SKUA_SECOND);
    } else {
        payload_discard(payload);
    }
    (void)skua_runtime_destroy(runtime);
    skua_payload_drop(&exit.result);
    error = error != 0 ? error : exit.error;
    if (error != 0) {
        (void)fprintf(stderr, "%s: %s\n", program_invocation_short_name, skua_error_text(error));
    }
    return error != 0 ? 1 : 0;
}
