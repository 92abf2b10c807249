/* SPDX-License-Identifier: MIT */
/* The functions of skua/upgrade.h. */
#include <skua/upgrade.h>

#include "base/sized.h"
#include "runtime/caller.h"
#include "sched/upgrade.h"

int skua_become(skua_context *ctx, const skua_process_type *type)
{
    return upgrade_become(ctx, type);
}

int skua_runtime_upgrade(skua_runtime *runtime, const skua_process_type *old_type,
                         const skua_process_type *new_type)
{
    if (runtime == NULL) {
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const int asked = upgrade_start(&runtime->sched, worker, old_type, new_type);
    caller_leave(runtime, worker);
    return asked;
}

int skua_upgrade_read_sized(skua_runtime *runtime, const skua_process_type *old_type,
                            const skua_process_type *new_type, skua_upgrade_progress *progress,
                            size_t progress_size)
{
    if (runtime == NULL || old_type == NULL || new_type == NULL || progress == NULL) {
        return SKUA_E_INVALID;
    }
    const struct worker *worker = caller_look(runtime);
    const struct upgrade *upgrade = upgrade_find(&runtime->sched, old_type, new_type);
    if (upgrade != NULL) {
        const skua_upgrade_progress own = upgrade_progress(upgrade);
        sized_write(progress, progress_size, &own, sizeof own);
    }
    caller_look_away(runtime, worker);
    return upgrade != NULL ? 0 : SKUA_E_VERSION;
}
