/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "explorer.h"

static const char *operation_name(enum model_operation operation)
{
    switch (operation) {
    case MODEL_LOAD:
        return "load";
    case MODEL_STORE:
        return "store";
    case MODEL_EXCHANGE:
        return "exchange";
    case MODEL_ADD:
        return "add";
    case MODEL_SUBTRACT:
        return "subtract";
    case MODEL_OR:
        return "or";
    case MODEL_AND:
        return "and";
    case MODEL_COMPARE_EXCHANGE:
        return "cas";
    case MODEL_LOCK:
        return "lock";
    case MODEL_TAKE:
        return "take";
    case MODEL_FUTEX_WAIT:
        return "futex wait";
    case MODEL_FUTEX_WOKEN:
        return "woken";
    case MODEL_FUTEX_WAKE:
        return "futex wake";
    case MODEL_CONDITION:
        return "condition";
    case MODEL_JOIN:
        return "join";
    case MODEL_UNKNOWN:
        return "step";
    }
    return "?";
}

/* "(&deque->head)" is shorter as "deque->head". */
static void print_name(const char *name)
{
    int length = (int)strlen(name);
    if (name[0] == '(' && name[length - 1] == ')') {
        name++;
        length -= 2;
    }
    if (name[0] == '&') {
        name++;
        length--;
    }
    printf(" %.*s", length, name);
}

const char *short_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    while (slash != NULL && slash > path && slash[-1] != '/') {
        slash--;
    }
    return slash != NULL ? slash : path;
}

void trace_step(const struct step *step, const char *effect, ...)
{
    if (!explorer.tracing) {
        return;
    }
    printf("  %4" PRIu32 "  %-10s %-10s", explorer.position,
           explorer.threads[explorer.running].what->name, operation_name(step->site->operation));
    print_name(step->site->name);
    va_list arguments;
    va_start(arguments, effect);
    (void)vprintf(effect, arguments);
    va_end(arguments);
    printf("    %s\n", short_path(step->site->where));
}

void explore_note(const char *format, ...)
{
    if (!explorer.tracing) {
        return;
    }
    const struct thread *thread = running_thread();
    printf("        %-10s . . . . ", thread != NULL ? thread->what->name : "");
    va_list arguments;
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}
