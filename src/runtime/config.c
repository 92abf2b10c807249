/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <skua/clock.h>

#include "base/cpu.h"
#include "runtime/runtime.h"

#define PROCESS_LIMIT_DEFAULT ((uint32_t)1 << 24)
#define MAILBOX_LIMIT_DEFAULT ((uint32_t)1 << 20)
#define PAYLOAD_LIMIT_DEFAULT ((size_t)1 << 30)
#define SEED_DEFAULT          1
#define NAME_LIMIT_DEFAULT    (UINT32_C(1) << 20)
#define NAME_LIMIT_MAX        (UINT32_C(1) << 24)
#define STACK_LIMIT_DEFAULT   (UINT32_C(1) << 20)
#define STACK_LIMIT_MAX       (UINT32_C(1) << 24)
#define GROUP_LIMIT_DEFAULT   (UINT32_C(1) << 20)
#define GROUP_LIMIT_MAX       (UINT32_C(1) << 24)
#define SPARE_LIMIT_DEFAULT   32
#define STALL_LIMIT_DEFAULT   (10 * SKUA_MILLISECOND)
#define STALL_LIMIT_MIN       SKUA_MILLISECOND
#define STANDARD_SIGNALS      32 /* numbers below; real-time signals begin above */

static uint32_t default_workers(void)
{
    const uint32_t cpus = cpu_usable_count();
    return cpus < SKUA_WORKERS_MAX ? cpus : SKUA_WORKERS_MAX;
}

/* Whether the runtime may take this signal. Those that report a fault of the program are needed for
 * that; two cannot be caught; and those between the standard and the real-time ones belong to the
 * C library. */
static bool is_usable(int signal)
{
    static const int refused[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL, SIGABRT,
                                  SIGKILL, SIGSTOP, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (signal == refused[i]) {
            return false;
        }
    }
    return signal > 0 && signal <= SIGRTMAX && (signal < STANDARD_SIGNALS || signal >= SIGRTMIN);
}

static int check(const skua_runtime_config *config)
{
    const bool fits =
        config->worker_count <= SKUA_WORKERS_MAX && config->process_limit <= SKUA_PROCESSES_MAX &&
        config->mailbox_limit <= SKUA_MAILBOX_MAX && config->name_limit <= NAME_LIMIT_MAX &&
        config->stack_limit <= STACK_LIMIT_MAX && config->group_limit <= GROUP_LIMIT_MAX &&
        (config->spare_limit <= SKUA_SPARES_MAX || config->spare_limit == SKUA_SPARES_NONE) &&
        config->stall_limit_ns >= STALL_LIMIT_MIN &&
        (config->stall_limit_ns <= SKUA_DURATION_MAX || config->stall_limit_ns == SKUA_FOREVER);
    if (!fits) {
        return SKUA_E_INVALID;
    }
    return config->stall_signal == 0 || is_usable(config->stall_signal) ? 0 : SKUA_E_SIGNAL;
}

int config_resolve(const skua_runtime_config *config, skua_runtime_config *resolved)
{
    *resolved = config != NULL ? *config : (skua_runtime_config){0};
    if (resolved->worker_count == 0) {
        resolved->worker_count = default_workers();
    }
    if (resolved->process_limit == 0) {
        resolved->process_limit = PROCESS_LIMIT_DEFAULT;
    }
    if (resolved->name_limit == 0) {
        resolved->name_limit = NAME_LIMIT_DEFAULT;
    }
    if (resolved->stack_limit == 0) {
        resolved->stack_limit = STACK_LIMIT_DEFAULT;
    }
    if (resolved->group_limit == 0) {
        resolved->group_limit = GROUP_LIMIT_DEFAULT;
    }
    if (resolved->mailbox_limit == 0) {
        resolved->mailbox_limit = MAILBOX_LIMIT_DEFAULT;
    }
    if (resolved->payload_limit == 0) {
        resolved->payload_limit = PAYLOAD_LIMIT_DEFAULT;
    }
    if (resolved->seed == 0) {
        resolved->seed = SEED_DEFAULT;
    }
    if (resolved->spare_limit == 0) {
        resolved->spare_limit = SPARE_LIMIT_DEFAULT;
    }
    if (resolved->stall_limit_ns == 0) {
        resolved->stall_limit_ns = STALL_LIMIT_DEFAULT;
    }
    if (resolved->alloc == NULL) {
        resolved->alloc = allocator_default;
        resolved->alloc_arg = NULL;
    }
    return check(resolved);
}
