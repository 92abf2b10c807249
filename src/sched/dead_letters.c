/* SPDX-License-Identifier: MIT */
#include "sched/dead_letters.h"

#include "sched/note.h"
#include "sched/worker.h"

/* Whether this thread is in the program's hook: if that sends a message which is dropped in turn,
 * it would be called again, and so on. */
static _Thread_local bool is_reporting;

static void count(struct scheduler *sched, struct worker *worker, enum skua_dead_letter_cause cause)
{
    switch (cause) {
    case SKUA_DEAD_UNREAD:
        NOTE_COUNT(sched, worker, dead_unread);
        break;
    case SKUA_DEAD_NEW:
        NOTE_COUNT(sched, worker, dead_new);
        break;
    case SKUA_DEAD_OLD:
        NOTE_COUNT(sched, worker, dead_old);
        break;
    }
}

NOINLINE void dead_letters_report(struct scheduler *sched, struct worker *worker,
                                  enum skua_dead_letter_cause cause, skua_pid from, skua_pid to,
                                  const skua_payload *payload)
{
    count(sched, worker, cause);
    if (LIKELY(sched->config.on_dead_letter == NULL) || is_reporting) {
        return;
    }
    const skua_dead_letter letter = {.to = to, .from = from, .payload = payload, .cause = cause};
    is_reporting = true;
    sched->config.on_dead_letter(sched->config.on_dead_letter_arg, &letter);
    is_reporting = false;
}
