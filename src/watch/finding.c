/* SPDX-License-Identifier: MIT */
#include "watch/finding.h"

#ifdef SKUA_AUDIT

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Objects checked for each moment at which an audit is possible, on average. */
#define OBJECTS_PER_MOMENT 16

void finding_note(struct finding *finding, const char *format, ...)
{
    va_list args;
    if (finding_is_none(finding)) {
        va_start(args, format);
        (void)vsnprintf(finding->text, sizeof finding->text, format, args);
        va_end(args);
    }
}

void finding_abort(const struct finding *finding)
{
    (void)fprintf(stderr, "skua: audit: %s\n", finding->text);
    abort();
}

const char *finding_state_name(enum process_state state)
{
    static const char *const names[] = {
        [STATE_FREE] = "Free",       [STATE_READY] = "Ready", [STATE_BLOCKED] = "Blocked",
        [STATE_IDLE] = "Idle",       [STATE_INIT] = "Init",   [STATE_COMPLETE] = "Complete",
        [STATE_RETIRED] = "Retired",
    };
    return names[state];
}

bool finding_can_afford(uint64_t objects)
{
    static _Thread_local uint64_t budget;
    budget += OBJECTS_PER_MOMENT;
    if (budget < objects) {
        return false;
    }
    budget = 0;
    return true;
}

#endif
