/* SPDX-License-Identifier: MIT */
#include "survivors.h"

static void note_survivor(void *arg, const skua_process_snapshot *info)
{
    struct survivors *survivors = arg;
    if (survivors->count < SURVIVORS_MAX) {
        survivors->infos[survivors->count] = *info;
    }
    survivors->count++;
    if (survivors->then != NULL) {
        survivors->then(survivors->then_arg, info);
    }
}

struct survivors *survivors_watch(skua_runtime_config *config)
{
    struct survivors *survivors = test_alloc(sizeof *survivors);
    config->on_survivor = note_survivor;
    config->on_survivor_arg = survivors;
    return survivors;
}

const skua_process_snapshot *survivors_find(const struct survivors *survivors, skua_pid pid)
{
    const skua_process_snapshot *found = NULL;
    for (uint32_t i = 0; i < survivors->count && i < SURVIVORS_MAX; i++) {
        if (skua_pid_equal(survivors->infos[i].pid, pid)) {
            assert_null(found);
            found = &survivors->infos[i];
        }
    }
    assert_non_null(found);
    return found;
}
