/* SPDX-License-Identifier: MIT */
/* Processes: what they are made of, how they are started and ended, what they may do in a step.
 *
 * A process is a state machine. The runtime calls its step function with the events that have
 * arrived; the step changes the state, sends, spawns, asks for commands ("yields") and says what
 * it wants next. One worker at a time runs a process, so its state needs no lock. A step should
 * be short and must not block: while it runs, its worker runs nothing else. */
#ifndef SKUA_PROCESS_H
#define SKUA_PROCESS_H

#include <skua/error.h>
#include <skua/payload.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* ---- events ---- */

/* What an event is; it says which fields of skua_event have a meaning. */
enum skua_event_type {
    SKUA_EVENT_MESSAGE = 1,    /* sent by `from`, with `payload` */
    SKUA_EVENT_COMPLETION = 2, /* the yield with `tag` ended: `error`, or 0 and `payload` */
    SKUA_EVENT_CANCEL = 3,     /* please finish: `error` is the reason */
    SKUA_EVENT_TICK = 4,       /* the ticker with `tag` has ticked, see skua/clock.h */
};

/* What a step is called with. */
typedef struct skua_event {
    uint32_t type;        /* enum skua_event_type */
    int32_t error;        /* completions: 0 or why it failed; cancels: the reason */
    uint64_t tag;         /* completions and ticks: that of the yield */
    skua_pid from;        /* messages: the sending process, or zero if sent from outside */
    skua_payload payload; /* messages and completions: take it out to keep it */
} skua_event;

/* ---- process types ---- */

/* Prepares a new process: `self` is zeroed memory of `state_size` bytes. `method` names the entry
 * point and is never null. May take payloads out of `input`; what is left is dropped after it.
 * Returns 0, or a negative error that the submit or spawn then returns; `close` is called on the
 * state in that case too. May use `ctx`, but nobody can send to the process before init ends. */
typedef int skua_init_fn(void *self, skua_context *ctx, const char *method, skua_payload *input,
                         size_t input_count);

/* Advances the process. Gets up to SKUA_EVENTS_PER_STEP events in order of arrival. The first step
 * comes without waiting for any, as does one after skua_step_continue: it may have none, or what
 * has arrived already. May take payloads out of them; what is left is dropped after it. Writes what
 * it wants into `out`; by default the process then waits for the next event. Returns 0, or a
 * negative error with which the process ends at once (its yields of this step are dropped). */
typedef int skua_step_fn(void *self, skua_context *ctx, skua_event *events, size_t count,
                         skua_step *out);

/* Releases what the state holds. Called exactly once for every state that `init` was called on,
 * whatever way the process ends; the memory itself belongs to the runtime. */
typedef void skua_close_fn(void *self);

/* What the processes of one kind have in common. A type must stay valid and unchanged until the
 * last runtime that used it is destroyed. */
typedef struct skua_process_type {
    const char *name;  /* for traces and skua_process_info; never null */
    size_t state_size; /* bytes of state; up to 64 cost no allocation */
    /* Entry points, ended by a null. Null: the one method "main". */
    const char *const *methods;
    skua_init_fn *init;     /* null: the zeroed state is ready */
    skua_step_fn *step;     /* never null */
    skua_close_fn *close;   /* null: nothing to release */
    uint32_t mailbox_limit; /* messages waiting at once, to SKUA_MAILBOX_MAX; 0: the runtime's */
} skua_process_type;

/* The largest mailbox limit. */
#define SKUA_MAILBOX_MAX ((uint32_t)1 << 30)

/* No step gets more events than this; the rest come with the next one. */
#define SKUA_EVENTS_PER_STEP 100

/* ---- what a step may write ---- */

/* The process wants to run again soon, with or without new events.
 * Threads: worker (inside step).      Blocks: never. */
SKUA_API void skua_step_continue(skua_step *out);

/* The process waits for any event (this is the default).
 * Threads: worker (inside step).      Blocks: never. */
SKUA_API void skua_step_idle(skua_step *out);

/* The process waits for its yields (this is the default of a step that has yielded or cancelled
 * something). Any event runs it; the difference to idle is what skua_process_info shows, and there
 * is none if no yield is open.
 * Threads: worker (inside step).      Blocks: never. */
SKUA_API void skua_step_wait(skua_step *out);

/* As skua_step_done. The functions with `_from` take what is in a payload and leave it empty. The
 * others call them: a payload that was just built is then copied once, not twice.
 * Takes:   what is in *result. */
SKUA_API void skua_step_done_from(skua_step *out, skua_payload *result);

/* The process has finished with `result`. Yields of this step are still carried out; nobody hears
 * of their completion.
 * Takes:   result.      Threads: worker (inside step).      Blocks: never. */
static inline void skua_step_done(skua_step *out, skua_payload result)
{
    skua_step_done_from(out, &result);
}

/* As skua_step_yield, with the payload where it is. */
SKUA_API int skua_step_yield_from(skua_step *out, uint32_t command, uint64_t tag,
                                  skua_payload *payload);

/* Asks for a command. Its end comes as a completion event with the same `tag`, exactly once per
 * yield. Any number of yields may be outstanding, from this and earlier steps.
 * Takes:   payload, always.      Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null out); SKUA_E_PAYLOAD_SIZE; SKUA_E_NO_MEMORY. On error there is
 *          no yield and no completion. An unknown command is no error here: its completion says
 *          SKUA_E_UNKNOWN_COMMAND. */
static inline int skua_step_yield(skua_step *out, uint32_t command, uint64_t tag,
                                  skua_payload payload)
{
    return skua_step_yield_from(out, command, tag, &payload);
}

/* Gives the yield that this step made last a deadline, an instant of skua_context_now's clock (see
 * skua_context_deadline). If it passes before the command has ended, the completion comes with
 * SKUA_E_TIMEOUT and what the command brings later is dropped. A deadline that has passed when the
 * step returns ends the yield at once; its handler is not called. SKUA_FOREVER takes it away again.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (no yield in this step, the last one was refused, or something has
 *          been cancelled since). */
SKUA_API int skua_step_deadline(skua_step *out, uint64_t deadline_ns);

/* Takes back all open yields with this tag, those of this step before the call included: each that
 * has not ended yet ends with SKUA_E_CANCELLED, so every yield still has exactly one completion. A
 * command that is being carried out is not interrupted, its result is dropped. The time it takes
 * grows with the number of the process's open yields.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0 (whether or not there was such a yield); SKUA_E_INVALID; SKUA_E_NO_MEMORY. */
SKUA_API SKUA_NODISCARD int skua_step_cancel(skua_step *out, uint64_t tag);

/* ---- what a process may do in init and step: direct calls, on its own thread ---- */

/* The process that runs.
 * Threads: worker (inside init or step).      Blocks: never. */
SKUA_API skua_pid skua_context_self(const skua_context *ctx);

/* The runtime it runs in.
 * Threads: worker (inside init or step).      Blocks: never. */
SKUA_API skua_runtime *skua_context_runtime(const skua_context *ctx);

/* Monotonic time in nanoseconds, the same throughout one step.
 * Threads: worker (inside init or step).      Blocks: never. */
SKUA_API uint64_t skua_context_now(skua_context *ctx);

/* A random number. It depends only on the runtime's seed, the process, the number of the step and
 * the number of the call within it.
 * Threads: worker (inside init or step).      Blocks: never. */
SKUA_API uint64_t skua_context_random(skua_context *ctx);

/* As skua_context_send, with the payload where it is: see skua_step_done_from. */
SKUA_API int skua_context_send_from(skua_context *ctx, skua_pid to, skua_payload *payload);

/* Sends a message, with the running process as `from`. Messages from one process to another arrive
 * in the order they were sent.
 * Takes:   payload, always.      Threads: worker (inside init or step).      Blocks: never.
 * Returns: as skua_message_send. */
static inline int skua_context_send(skua_context *ctx, skua_pid to, skua_payload payload)
{
    return skua_context_send_from(ctx, to, &payload);
}

/* Starts a process, as skua_process_submit does. It may run on another worker before this step
 * ends.
 * Takes:   the payloads of input, always (the array itself is borrowed).
 * Threads: worker (inside init or step).      Blocks: never (but runs the user's init).
 * Returns: as skua_process_submit. */
SKUA_API int skua_context_spawn(skua_context *ctx, const skua_process_type *type,
                                const char *method, skua_payload *input, size_t input_count,
                                skua_pid *pid);

/* Memory from the runtime's allocator, aligned for any type; not tied to the process.
 * Gives:   memory to release with skua_context_free, or null if there is none or `size` is 0.
 * Threads: worker (inside init or step).      Blocks: never. */
SKUA_API void *skua_context_alloc(skua_context *ctx, size_t size);

/* Releases memory of skua_context_alloc. `size` is what was asked for; null is ignored.
 * Threads: worker (inside init or step).      Blocks: never. */
SKUA_API void skua_context_free(skua_context *ctx, void *pointer, size_t size);

/* ---- from anywhere ---- */

/* Starts a process: runs its init on this thread, then makes it visible and ready.
 * `method` null means the type's first method. `pid` may be null; it is written before the process
 * first runs.
 * Takes:   the payloads of input, always (the array itself is borrowed).
 * Threads: any.      Blocks: never (but runs the user's init).
 * Returns: 0; SKUA_E_INVALID; SKUA_E_UNKNOWN_METHOD; SKUA_E_PAYLOAD_SIZE; SKUA_E_PROCESS_LIMIT;
 *          SKUA_E_NO_MEMORY; SKUA_E_NOT_STARTED; SKUA_E_STOPPED; what init returned. On error no
 *          trace of the process stays. */
SKUA_API SKUA_NODISCARD int skua_process_submit(skua_runtime *runtime,
                                                const skua_process_type *type, const char *method,
                                                skua_payload *input, size_t input_count,
                                                skua_pid *pid);

/* Ends a process: at once if it waits or is queued, after its step if that is running. Its `close`
 * is called, its exit error is SKUA_E_TERMINATED. Returns before that has happened.
 * Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID; SKUA_E_FOREIGN_PID; SKUA_E_NO_PROCESS. */
SKUA_API int skua_process_terminate(skua_runtime *runtime, skua_pid pid);

/* Asks a process to finish: delivers a cancel event with `reason` in its `error`. Not subject to
 * the mailbox limit. What the process does with it is its own affair.
 * Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID; SKUA_E_FOREIGN_PID; SKUA_E_NO_PROCESS; SKUA_E_NO_MEMORY. */
SKUA_API int skua_process_cancel(skua_runtime *runtime, skua_pid pid, int reason);

/* How a process ended. */
typedef struct skua_exit {
    skua_pid pid;                  /* who */
    const skua_process_type *type; /* of what type */
    int error;                     /* 0: done; SKUA_E_TERMINATED; or what its step returned */
    skua_payload result;           /* of skua_step_done; empty on an error */
} skua_exit;

/* Waits until a process has ended and its close has returned. A process that ended before the call
 * is SKUA_E_NO_PROCESS: to start one and wait for it without that race use skua_process_run.
 * Gives:   *exit (may be null); drop its result. If several threads wait for one process, a result
 *          that owns memory goes to one of them only, the others get an empty one.
 * Threads: any but a worker's.      Blocks: yes.
 * Returns: 0 (the process ended, see exit->error); SKUA_E_INVALID; SKUA_E_FOREIGN_PID;
 *          SKUA_E_NO_PROCESS; SKUA_E_TIMEOUT; SKUA_E_INSIDE_STEP; in a simulation also SKUA_E_BUSY
 *          or SKUA_E_STOPPED (another thread drives it, or has stopped it) and SKUA_E_AT_REST (it
 *          would never end). */
SKUA_API SKUA_NODISCARD int skua_process_wait(skua_runtime *runtime, skua_pid pid,
                                              uint64_t timeout_ns, skua_exit *exit);

/* Starts a process and waits until it has ended, however long that takes.
 * Takes:   the payloads of input, always.      Gives: *exit (may be null), as skua_process_wait.
 * Threads: any but a worker's.      Blocks: yes.
 * Returns: 0 (the process ended, see exit->error); SKUA_E_INSIDE_STEP; as skua_process_submit; in a
 *          simulation also SKUA_E_BUSY and SKUA_E_AT_REST, as above: then the process lives on. */
SKUA_API SKUA_NODISCARD int skua_process_run(skua_runtime *runtime, const skua_process_type *type,
                                             const char *method, skua_payload *input,
                                             size_t input_count, skua_exit *exit);

/* What a process is doing. */
enum skua_process_state {
    SKUA_PROCESS_READY = 1,   /* queued to run */
    SKUA_PROCESS_RUNNING = 2, /* a worker runs its step */
    SKUA_PROCESS_BLOCKED = 3, /* waits for its yields */
    SKUA_PROCESS_IDLE = 4,    /* waits for any event */
};

/* A process, as it was at one moment. */
typedef struct skua_process_info {
    skua_pid pid;                  /* who */
    enum skua_process_state state; /* what it was doing */
    uint64_t steps;                /* how many steps it has begun */
    uint32_t mailbox_length;       /* messages not yet handed to a step; for a moment also those
                                      being refused */
    const char *type_name;         /* skua_process_type.name */
    /* How long its steps have run: by samples, every 2.5 ms while a worker is busy, so that steps
     * pay nothing for it. It adds up for what runs long or often; a process that has run for a
     * moment has most likely 0. Zero in simulations. */
    uint64_t run_ns;
    uint64_t age_ns; /* since it was started, to about 20 ms (80 if nothing else runs) */
} skua_process_info;

/* A look at a process as it is at this moment; it may have moved on when the call returns.
 * Gives:   *info.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID; SKUA_E_FOREIGN_PID; SKUA_E_NO_PROCESS. */
SKUA_API SKUA_NODISCARD int skua_process_info_read(skua_runtime *runtime, skua_pid pid,
                                                   skua_process_info *info);

/* Looks at all processes, a page at a time: those that come after the process `after`, whether that
 * still lives or not, in an order in which each process has its place for all its life. A process
 * that lives from before the first page until after the last is on one of them.
 * Gives:   infos[0] to infos[count - 1].
 * Threads: any.      Blocks: never; takes about 50 ns for each place of a process that it looks at,
 *          in use or not.
 * Returns: how many were written: `capacity`, or fewer if there are no more; SKUA_E_INVALID;
 *          SKUA_E_FOREIGN_PID. */
SKUA_API int skua_process_list(skua_runtime *runtime, skua_pid after, skua_process_info *infos,
                               size_t capacity);

/* The name of a state: "ready", "running", "blocked", "idle", or "?".
 * Gives:   a static string.      Threads: any.      Blocks: never. */
SKUA_API const char *skua_process_state_name(enum skua_process_state state);

SKUA_END_DECLS

#endif
