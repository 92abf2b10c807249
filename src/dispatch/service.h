/* SPDX-License-Identifier: MIT */
/* Services: what the runtime itself carries out for a yield. Time, descriptors and blocking pools
 * are above the scheduler, so each fills in its entry here. A program's own commands go through the
 * registry instead (dispatch/registry.h). */
#ifndef SKUA_DISPATCH_SERVICE_H
#define SKUA_DISPATCH_SERVICE_H

#include <skua/command.h>

#include "process/step_output.h"

struct worker;

enum service_id {
    SERVICE_SLEEP,
    SERVICE_TIMER,
    SERVICE_TICKER,
    SERVICE_READABLE,
    SERVICE_WRITABLE,
    SERVICE_BLOCKING,
    SERVICE_CALL,
    SERVICE_MONITOR,
    SERVICE_JOIN,
    SERVICE_SEND,
    SERVICE_NAME,
    SERVICE_ACCEPT,
    SERVICE_CONNECT,
    SERVICE_READ,
    SERVICE_WRITE,
    SERVICE_HANGUP,
    SERVICE_BECOME,
    SERVICE_GROUP,
    SERVICE_PUBLISH,
    SERVICE_COUNT,
};

struct service {
    const char *name; /* in traces */
    /* Carries out a yield of the worker's process. Its deadline, if any, is armed already. Returns
     * as a handler does: 0 and *result, an error, or SKUA_PENDING. */
    int (*start)(void *arg, struct worker *worker, const struct yield *yield,
                 skua_completion completion, skua_payload *result);
    /* Frees what the arguments of a yield hold that will not be started; null: nothing. */
    void (*discard)(struct worker *worker, const struct yield *yield);
    void *arg;
};

_Static_assert(SERVICE_COUNT < 32, "a call has room for each (CALL_SUBJECT_SHIFT)");

/* What yields of a service have as their command; programs cannot yield these. */
static inline uint32_t service_command(enum service_id id)
{
    return SKUA_COMMAND_RESERVED + (uint32_t)id;
}

/* The service of a yield; null if it is a program's command. */
static inline const struct service *service_of(const struct service *services,
                                               const struct yield *yield)
{
    return yield->command >= SKUA_COMMAND_RESERVED
               ? &services[yield->command - SKUA_COMMAND_RESERVED]
               : NULL;
}

#endif
