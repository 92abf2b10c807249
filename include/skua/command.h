/* SPDX-License-Identifier: MIT */
/* Commands: work that a process asks for and that completes later.
 *
 * A step yields a command; the runtime calls the handler registered for it; the process gets one
 * completion event. The handler may complete at once, later, or from any thread. */
#ifndef SKUA_COMMAND_H
#define SKUA_COMMAND_H

#include <skua/error.h>
#include <skua/payload.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* The right to complete one yield, once. A plain value: keep it as long as you like. */
typedef struct skua_completion {
    skua_pid process; /* who gets the completion */
    uint64_t call;    /* which of its yields; the number means nothing outside of Skua */
} skua_completion;

/* What a handler is called with. */
typedef struct skua_command {
    uint32_t id;                /* the command that was yielded */
    skua_runtime *runtime;      /* of the process that yielded it */
    skua_completion completion; /* for skua_command_complete */
    skua_payload input; /* take it out to keep it; what is left is dropped after the handler */
    uint64_t deadline;  /* when the yield times out, or SKUA_FOREVER; for information */
} skua_command;

/* Ids from here on are Skua's own: timers, descriptors, blocking calls. */
#define SKUA_COMMAND_RESERVED UINT32_C(0xffff0000)

/* What a handler returns when it will complete the command later. */
#define SKUA_PENDING 1

/* Carries out a command. Returns 0 and the result in *result (empty at the call) if it is done; a
 * negative error if it failed; SKUA_PENDING if skua_command_complete will be, or already was,
 * called for it. (Any other positive number completes it with SKUA_E_INVALID.) A result returned
 * after such a call, or after the yield has timed out, is a late completion: counted and dropped.
 * Threads: the worker of the yielding process, after its step.      Blocks: must not.
 * May call every skua_ function that does not wait. */
typedef int skua_handler_fn(void *arg, skua_command *command, skua_payload *result);

/* Tells a handler that nobody waits any more for a yield that it has left pending: it was taken
 * back, has timed out, or its process has ended. So a handler can call off what it has started, and
 * forget the completion. For each yield for which `run` has returned SKUA_PENDING either one
 * skua_command_complete returns 0, or this is called, once; whichever comes first, also if both are
 * under way on two threads. It is never called before `run` has returned.
 * Threads: the worker of the process, between two steps; one of the runtime's own, if the timeout
 * has passed at the moment when the process ended. No lock of Skua's is held.      Blocks: must
 * not. May call every skua_ function that does not wait. */
typedef void skua_abandon_fn(void *arg, skua_runtime *runtime, skua_completion completion);

/* A handler. Leave what you do not set zero. */
typedef struct skua_handler {
    const char *name;     /* for traces of the simulator, and `skua ps`; may be null */
    skua_handler_fn *run; /* carries out the command */
    void *arg;            /* passed to it with every call */
    /* For the simulator (skua/sim.h): called there instead of `run`, with the same arg. */
    skua_handler_fn *simulate;
    /* Or: `run` itself may be called there, because it depends on nothing but its arguments and the
     * runtime's clock. With neither, the simulator completes the command with
     * SKUA_E_NOT_SIMULATED. */
    bool sim_safe;
    skua_abandon_fn *abandon; /* null: need not be told; in the simulator as well */
    uintptr_t reserved[3];    /* zero */
} skua_handler;

/* Registers the handler of a command. Ids 0 to 255 are the fastest to find.
 * Borrows: handler; keeps its name and arg until the runtime is destroyed.
 * Threads: one at a time, before start.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null runtime, handler or run); SKUA_E_RESERVED;
 *          SKUA_E_COMMAND_EXISTS; SKUA_E_FROZEN; SKUA_E_NO_MEMORY. */
SKUA_API SKUA_NODISCARD int skua_command_register(skua_runtime *runtime, uint32_t id,
                                                  const skua_handler *handler);

/* Completes a command: its process gets a completion event with `error` and `result`. A completion
 * that comes too late, or a second one, changes nothing: it is counted and its result dropped.
 * Takes:   result, always.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null runtime, or error is positive); SKUA_E_FOREIGN_PID;
 *          SKUA_E_LATE. */
SKUA_API int skua_command_complete(skua_runtime *runtime, skua_completion completion, int error,
                                   skua_payload result);

SKUA_END_DECLS

#endif
