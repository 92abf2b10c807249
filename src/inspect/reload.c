/* SPDX-License-Identifier: MIT */
#include "inspect/reload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sched/upgrade.h"

/* Lines of one answer. */
#define UPGRADES_MAX 1000

void reload_add_upgrades(struct scheduler *sched, uint64_t after, struct text *out)
{
    const struct upgrade *upgrade = upgrade_last(sched);
    for (uint32_t i = 0; i < UPGRADES_MAX && upgrade != NULL && upgrade->number > after; i++) {
        const skua_upgrade_progress progress = upgrade_progress(upgrade);
        text_add(out, "upgrade\t%" PRIu32 "\t", upgrade->number);
        text_add_name(out, upgrade->to->name);
        text_add(out,
                 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
                 "\t%d\n",
                 upgrade->from->version, upgrade->to->version, progress.asked, progress.migrated,
                 progress.failed, progress.gone, upgrade->to->migrate != NULL);
        upgrade = upgrade->earlier;
    }
}

int reload_file(struct scheduler *sched, char *words, struct text *out, char *why, size_t why_size)
{
    char *type_name = words;
    const char *file = strsep(&type_name, "\t");
    const struct upgrade *last = upgrade_last(sched);
    if (file[0] == '\0') {
        return SKUA_E_INVALID;
    }
    if (sched->config.on_reload == NULL) {
        (void)snprintf(why, why_size, "the program cannot be reloaded: `skua run` does not run it");
        return SKUA_E_MODULE;
    }
    const int error =
        sched->config.on_reload(sched->config.on_reload_arg, file, type_name, why, why_size);
    if (error == 0) {
        reload_add_upgrades(sched, last != NULL ? last->number : 0, out);
    }
    return error;
}
