/* SPDX-License-Identifier: MIT */
/* Processes: what they are made of, what they can do, how they start and end.
 *
 * A process is a state machine. The runtime calls its step with the events that have arrived; the
 * step changes the state, sends messages, starts processes and asks for work that completes later
 * ("yields"). One worker at a time runs a process, so its state needs no lock. A step should be
 * short and must not block: while it runs, its worker runs nothing else.
 *
 * The name tells what kind of call it is. Inside a process the first argument is always `ctx`:
 *     skua_send, skua_spawn, skua_done ...      act now
 *     skua_yield, skua_yield_sleep ...          ask for something that ends later, with an event
 * On any thread, `skua_process_...` and `skua_runtime_...` take the runtime.
 *
 * The compiler warns if the error of a yield or a spawn is ignored: nothing would come of it. That
 * of a send may be, as the receiver may have ended. */
#ifndef SKUA_PROCESS_H
#define SKUA_PROCESS_H

#include <skua/error.h>
#include <skua/payload.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* ---- events ---- */

/* The types of events. The type decides which fields of skua_event are in use. */
enum skua_event_type {
    SKUA_EVENT_MESSAGE = 1,    /* `from` has sent `payload` */
    SKUA_EVENT_COMPLETION = 2, /* the yield with `tag` has ended: `error`, or 0 and `payload` */
    SKUA_EVENT_CANCEL = 3,     /* please end; `error` is the reason; see SKUA_CANCEL_EVENT */
    SKUA_EVENT_TICK = 4,       /* the ticker with `tag` has ticked, see skua/clock.h */
    SKUA_EVENT_START = 5,      /* the first event of every process */
    SKUA_EVENT_CONTINUE = 6,   /* the last step called skua_continue */
    SKUA_EVENT_CALL = 7,       /* `from` calls with `payload`: answer `request`, see skua/call.h */
    SKUA_EVENT_ABANDON = 8,    /* nobody waits for the answer to `request` any more */
    SKUA_EVENT_EXIT = 9,       /* `from` has ended with `error`; the link to it has `tag`, see
                                  skua/watch.h */
    SKUA_EVENT_CHILD = 10,     /* `from` is a new child of this process, or is ready, as `tag` says,
                                  see skua/supervisor.h */
    SKUA_EVENT_GROUP = 11,     /* news of the group that is watched with `tag`, see skua/group.h */
    SKUA_EVENT_BECOME = 12,    /* skua_become has failed with `error`, see skua/upgrade.h */
};

/* One of the events that a step gets. */
typedef struct skua_event {
    uint32_t type; /* enum skua_event_type */
    int32_t error; /* completions: 0, or why it failed; cancels: the reason; exits: how it ended */
    union {
        uint64_t tag;         /* completions, ticks and news of groups: the tag of the yield;
                                 exits: of the link */
        skua_request request; /* calls and abandons: what skua_reply answers */
    };
    skua_pid from;        /* messages: the sender, or zero if a thread sent it; calls and abandons:
                             the caller; exits: who has ended; children: which */
    skua_payload payload; /* messages, calls, completions, children, news: take it out to keep it */
} skua_event;

/* ---- process types ---- */

struct skua_exit;

/* Prepares a new process. `self` is zeroed memory of `state_size` bytes, or null if that is 0. May
 * take payloads out of `input`; the rest is dropped. May use `ctx`, but not yield; nobody can reach
 * the process before init returns.
 * Returns 0, or a negative error, which the spawn or submit then returns; `close` is called even
 * so. */
typedef int skua_init_fn(void *self, skua_context *ctx, skua_payload *input, size_t count);

/* An init for states that are just what they are started with: copies the bytes of the inputs into
 * the state, one after the other. The rest of it stays zero.
 * Threads: as any init.      Blocks: never.
 * Returns: 0; SKUA_E_PAYLOAD_SIZE (more than the state has room for); SKUA_E_PAYLOAD_TYPE (a
 *          pointer payload); SKUA_E_CONTEXT. */
SKUA_API int skua_init_bytes(void *self, skua_context *ctx, skua_payload *input, size_t count);

/* Advances the process. Gets 1 to SKUA_EVENTS_PER_STEP events in order of arrival, and may take
 * payloads out of them; the rest is dropped. The process then waits for the next event, unless it
 * has called skua_done or skua_continue.
 * Returns 0, or a negative error that ends the process at once; the yields of this step are then
 * dropped. A positive number ends it with SKUA_E_INVALID. */
typedef int skua_step_fn(void *self, skua_context *ctx, skua_event *events, size_t count);

/* Releases what the state holds. Called exactly once for every state that init was called on,
 * however the process ends. May send, free, and look at its PID, the time and `exit`; cannot yield
 * or spawn (SKUA_E_CONTEXT). */
typedef void skua_close_fn(void *self, skua_context *ctx, const struct skua_exit *exit);

/* A task: one function for the life of the process, which waits where it stands (skua/task.h). The
 * process ends when it returns.
 * Returns 0, or a negative error, which becomes the exit error. */
typedef int skua_main_fn(void *self, skua_context *ctx);

/* A task for each event: called with a message, a call or another event, in order of arrival; what
 * it leaves in `event` is dropped when it returns. Events that arrive while it waits are for its
 * waits, or else for the next call. Each call has a stack: if there is none to be had, the process
 * ends with SKUA_E_STACK_LIMIT or SKUA_E_NO_MEMORY. (It does not wait for one: those who have them
 * may wait for this process.) Returns 0, or a negative error that ends the process. */
typedef int skua_serve_fn(void *self, skua_context *ctx, skua_event *event);

/* Makes the state of this type from that of an older version, for a process that changes to this
 * type between two steps (skua/upgrade.h). `new_state` is zeroed memory of the new `state_size`
 * bytes, where it stays; `old_state` has what the process had, perhaps as a copy, and may only be
 * read. Each is null if its type has no state. May use `ctx` as init may.
 * Returns 0, or a negative error (a positive number is SKUA_E_INVALID). After 0 the new state owns
 * what the old one did: that is not closed, only its memory is freed. After an error the process
 * goes on with its old type and state, as if nothing had been tried: so free what you have made
 * until then, and change nothing that `old_state` points to before you are sure. */
typedef int skua_migrate_fn(uint32_t old_version, const void *old_state, void *new_state,
                            skua_context *ctx);

struct skua_child_report;

/* Tells of a supervisor's child, for `skua tree` (skua/supervisor.h): the one at this place, from 0
 * on. Runs between two steps of the process, on its worker, and calls nothing of Skua. `child` is
 * zeroed; fields that are not known stay so.
 * Returns 1 if there is one, 0 if the place is empty, or a negative error behind the last place. */
typedef int skua_children_fn(const void *self, size_t place, struct skua_child_report *child);

/* What a cancel does to a process, once it has handled the events that came before. A task is told
 * by its waits (skua/task.h). */
enum skua_cancel_mode {
    SKUA_CANCEL_END = 0,   /* ends it; the reason becomes its exit error */
    SKUA_CANCEL_EVENT = 1, /* its step gets SKUA_EVENT_CANCEL, tidies up and ends */
};

/* What becomes of a message that finds the mailbox full. Calls have their own rule: one that finds
 * it full is refused with SKUA_E_MAILBOX_FULL, whatever the type says, because its caller waits for
 * an answer. So has skua_yield_send, which waits for room. */
enum skua_overflow {
    SKUA_OVERFLOW_REFUSE = 0,   /* it is refused: the sender gets SKUA_E_MAILBOX_FULL */
    SKUA_OVERFLOW_DROP_NEW = 1, /* it is dropped: the sender gets 0, and it is a dead letter
                                   (skua_dead_letter in skua/runtime.h) */
    /* It is accepted, and the process drops the oldest message that no step has got: before the
     * next step, up to 1,000 at once. Meanwhile up to twice the limit may wait, or 1,000 more if
     * that is more; what comes then is dropped, as by SKUA_OVERFLOW_DROP_NEW. All of them are dead
     * letters. */
    SKUA_OVERFLOW_DROP_OLD = 2,
    /* It is refused, and the process ends as by skua_terminate, but with SKUA_E_OVERFLOW. */
    SKUA_OVERFLOW_END = 3,
};

/* What processes of one kind have in common. A type stays valid and unchanged until the last
 * runtime that used it is destroyed. Fields that are not set are zero. */
typedef struct skua_process_type {
    const char *name;             /* never null */
    size_t state_size;            /* bytes of state; up to 64 cost no allocation, 48 in a task */
    skua_init_fn *init;           /* null: the zeroed state will do */
    skua_step_fn *step;           /* this or main or serve, and no other of them */
    skua_close_fn *close;         /* null: nothing to release */
    const char *const *methods;   /* entry points, ended by a null; null: the one method "main" */
    uint32_t mailbox_limit;       /* messages waiting at once, at most SKUA_MAILBOX_MAX;
                                      0: the runtime's limit */
    enum skua_cancel_mode cancel; /* by default a cancel ends the process */
    size_t own_limit;             /* bytes of skua_own_alloc per process; 0: no limit */
    bool calls;                   /* it answers calls, see skua/call.h */
    bool abandons;                /* and gets SKUA_EVENT_ABANDON when a caller stops waiting */
    bool urgent;                  /* it takes urgent messages, see skua_send_urgent */
    skua_main_fn *main;           /* a task for the life of the process */
    skua_serve_fn *serve;         /* a task for each event */
    size_t stack_size;            /* of a task: rounded up to 16, 64 or 256 KiB or 1 MiB, not more;
                                      0: 64 KiB */
    enum skua_overflow overflow;  /* what a full mailbox means to a message; by default, refused */
    skua_migrate_fn *migrate;     /* takes over processes of an older version; null: cannot */
    uint32_t version;             /* of the code and the state, see skua/upgrade.h; 0: none */
    skua_children_fn *children;   /* of a supervisor of one's own; null: it does not tell */
    uintptr_t reserved[3];        /* zero */
} skua_process_type;

/* Whether processes of a type can be started: it has a name and exactly one of step, main and
 * serve; its sizes, limits and choices are in range; reserved words are zero.
 * Borrows: type.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID. */
SKUA_API int skua_process_type_check(const skua_process_type *type);

/* The largest mailbox limit. */
#define SKUA_MAILBOX_MAX ((uint32_t)1 << 30)

/* The most entry points that a type can have. */
#define SKUA_METHODS_MAX 256

/* No step gets more events than this; the rest come with the next one. */
#define SKUA_EVENTS_PER_STEP 100

/* How a process ended. */
typedef struct skua_exit {
    skua_pid pid;                  /* who */
    const skua_process_type *type; /* of what type */
    int error;                     /* 0: done; what its step returned; the reason of a cancel;
                                      SKUA_E_TERMINATED; SKUA_E_OVERFLOW */
    skua_payload result;           /* of skua_done; empty on an error */
    skua_pid cause;                /* if it failed: who failed first, among those linked to it; its
                                      own PID if it failed by itself. Zero after an orderly end */
} skua_exit;

/* ---- inside a process: what happens now ---- */

/* The PID of this process.
 * Threads: worker (inside init, step or close).      Blocks: never. */
SKUA_API skua_pid skua_self(const skua_context *ctx);

/* The runtime of this process.
 * Threads: worker (inside init, step or close).      Blocks: never. */
SKUA_API skua_runtime *skua_runtime_of(const skua_context *ctx);

/* The method that this process was started with: one of the type's strings.
 * Threads: worker (inside init, step or close).      Blocks: never. */
SKUA_API const char *skua_method(const skua_context *ctx);

/* Monotonic time in nanoseconds, the same throughout one step.
 * Threads: worker (inside init, step or close).      Blocks: never. */
SKUA_API uint64_t skua_now(skua_context *ctx);

/* A random number. It depends only on the runtime's seed, the process, the number of the step and
 * the number of the call within it.
 * Threads: worker (inside init, step or close).      Blocks: never. */
SKUA_API uint64_t skua_random(skua_context *ctx);

/* Like skua_send, with a pointer to the payload. The `_from` functions take what is in the payload
 * and leave it empty or marked as taken. The plain ones call them, so that a payload is copied
 * once, not twice. */
SKUA_API int skua_send_from(skua_context *ctx, skua_pid to, skua_payload *payload);

/* Sends a message. Messages from one process to another arrive in the order they were sent; an
 * accepted one is handed to a step exactly once, unless its receiver ends first or its type drops
 * messages.
 * Takes:   payload, always.      Threads: worker (inside init, step or close).      Blocks: never.
 * Returns: 0; SKUA_E_NO_PROCESS; SKUA_E_MAILBOX_FULL (see enum skua_overflow);
 *          SKUA_E_MESSAGE_QUOTA (see skua_quota in skua/supervisor.h); SKUA_E_FOREIGN_PID;
 *          SKUA_E_PAYLOAD_SIZE; SKUA_E_NO_MEMORY; SKUA_E_TAKEN; SKUA_E_CONTEXT;
 *          SKUA_E_INVALID. */
static inline int skua_send(skua_context *ctx, skua_pid to, skua_payload payload)
{
    return skua_send_from(ctx, to, &payload);
}

/* Like skua_send_urgent, with a pointer to the payload. */
SKUA_API int skua_send_urgent_from(skua_context *ctx, skua_pid to, skua_payload *payload);

/* Sends an urgent message: a step gets it, as a message like any other, before the ordinary events
 * that wait; those of a step that runs already aside. Urgent messages of one sender arrive in
 * order, and so does what else it does; but they overtake that. The receiver's type must set
 * `.urgent`. They count against the mailbox limit like others, but a full mailbox still takes
 * urgent ones: as many as the limit, and 2 * SKUA_EVENTS_PER_STEP more. Then the type's `.overflow`
 * says what becomes of one, as of others at the limit; but SKUA_OVERFLOW_DROP_OLD drops the new
 * one: old urgent messages are never dropped.
 * Takes:   payload, always.      Threads: worker (inside init, step or close).      Blocks: never.
 * Returns: as skua_send; SKUA_E_NOT_URGENT. */
static inline int skua_send_urgent(skua_context *ctx, skua_pid to, skua_payload payload)
{
    return skua_send_urgent_from(ctx, to, &payload);
}

/* Like skua_spawn, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_spawn_from(skua_context *ctx, const skua_process_type *type,
                                            skua_payload *payload, skua_pid *pid);

/* Starts a process of a type, with `payload` as the only input of its init. It may run on another
 * worker before this step ends.
 * Takes:   payload, always.      Gives: *pid (may be null), before the process first runs.
 * Threads: worker (inside init or step).      Blocks: never (but runs the type's init).
 * Returns: 0; SKUA_E_PROCESS_LIMIT; SKUA_E_PROCESS_QUOTA (see skua_quota in skua/supervisor.h);
 *          SKUA_E_NO_MEMORY; SKUA_E_STOPPED; SKUA_E_PAYLOAD_SIZE;
 *          SKUA_E_UNKNOWN_METHOD; SKUA_E_TAKEN; SKUA_E_CONTEXT; SKUA_E_INVALID (among others, init
 *          returned a positive number); what init returned. On error there is no process. */
static inline SKUA_NODISCARD int skua_spawn(skua_context *ctx, const skua_process_type *type,
                                            skua_payload payload, skua_pid *pid)
{
    return skua_spawn_from(ctx, type, &payload, pid);
}

/* Everything that a process can be started with. Leave the rest zero. */
typedef struct skua_spawn_options {
    const skua_process_type *type; /* never null */
    const char *method;            /* null: the type's first */
    skua_payload *input;           /* what init gets; the payloads are taken, the array is not */
    size_t input_count;            /* how many; 0 if input is null */
    /* In a step only: watch the new process, or link it to this one, before it first runs
     * (skua/watch.h). */
    bool monitor;          /* as skua_yield_monitor, with monitor_tag and no timeout */
    bool link;             /* as skua_link, with link_flags and link_tag */
    uint32_t link_flags;   /* SKUA_LINK_BOTH and so on; this process is the one that links */
    bool join;             /* as skua_yield_join, with join_tag and no timeout */
    uint64_t monitor_tag;  /* any number */
    uint64_t join_tag;     /* any number */
    uint64_t link_tag;     /* any number */
    skua_link_id *link_id; /* where to put it, for skua_unlink; may be null */
    /* The name of the new process, or null (skua/name.h). If another process has it already, the
     * start fails with SKUA_E_NAME_TAKEN after the type's init, and *pid is that process. */
    const char *name;
    const char *label; /* as by skua_label, or null */
    /* A socket of this process that becomes one of the new process, before that first runs; zero:
     * none. On error it stays. In a step only (skua/socket.h). */
    skua_socket socket;
    /* The supervisor of the new process, which ends when that ends, for whatever reason; zero:
     * none. Either this process, in a step; or one that has a template for the type: it hears of
     * the process before that first runs, and from then on supervises it (skua/supervisor.h). If
     * that one has no memory left to do so, or ends at this moment, the new process ends, too: the
     * start has succeeded, and a monitor or a join sees it end with SKUA_E_TERMINATED. */
    skua_pid supervisor;
} skua_spawn_options;

/* Like skua_spawn_with, with the size of the caller's struct. */
SKUA_API SKUA_NODISCARD int skua_spawn_with_sized(skua_context *ctx,
                                                  const skua_spawn_options *options, skua_pid *pid,
                                                  size_t options_size);

/* Starts a process with options.
 * Takes:   the payloads of options->input, always.      Gives: *pid (may be null).
 * Threads: worker (inside init or step).      Blocks: never (but runs the type's init).
 * Returns: as skua_spawn; as skua_name_register; as skua_socket_give; SKUA_E_CONTEXT (a monitor, a
 *          join, a link or a socket, or a child of its own, and not inside a step). Of a
 *          supervisor: SKUA_E_NO_PROCESS; SKUA_E_FOREIGN_PID; SKUA_E_LATE (it has begun to stop);
 *          SKUA_E_NO_TEMPLATE; SKUA_E_NOT_SHARED (it may have to start the process again, and a
 *          payload of the input cannot be repeated). */
static inline SKUA_NODISCARD int skua_spawn_with(skua_context *ctx,
                                                 const skua_spawn_options *options, skua_pid *pid)
{
    return skua_spawn_with_sized(ctx, options, pid, sizeof *options);
}

/* Asks a process to end: see enum skua_cancel_mode. `reason` is a negative error, or 0 for
 * SKUA_E_CANCELLED. Not subject to the mailbox limit.
 * Threads: worker (inside init, step or close).      Blocks: never.
 * Returns: 0; SKUA_E_NO_PROCESS; SKUA_E_FOREIGN_PID; SKUA_E_NO_MEMORY; SKUA_E_CONTEXT;
 *          SKUA_E_INVALID (positive reason). */
SKUA_API int skua_cancel(skua_context *ctx, skua_pid pid, int reason);

/* Ends a process, whatever it is doing: at once if it waits or is queued, after its step if that is
 * running. If this returns 0, its exit error is SKUA_E_TERMINATED and its result is empty, even if
 * that step says skua_done or fails; or SKUA_E_OVERFLOW, if that ends it at the same time. Does not
 * wait for the end.
 * Threads: worker (inside init, step or close).      Blocks: never.
 * Returns: 0; SKUA_E_NO_PROCESS; SKUA_E_FOREIGN_PID; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API int skua_terminate(skua_context *ctx, skua_pid pid);

/* Like skua_done, with a pointer to the payload. */
SKUA_API int skua_done_from(skua_context *ctx, skua_payload *result);

/* Ends the process after this step, with `result` and exit error 0, unless it is terminated until
 * then. This is final: what the step returns does not matter any more, and later yields, continues
 * and dones are refused with SKUA_E_DONE; sends and spawns still work. Yields made before it in
 * this step are carried out, but nobody gets their completions: handlers are called, and functions
 * run on their blocking pools.
 * Takes:   result, always.      Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_DONE; SKUA_E_TAKEN; SKUA_E_CONTEXT; SKUA_E_INVALID. */
static inline int skua_done(skua_context *ctx, skua_payload result)
{
    return skua_done_from(ctx, &result);
}

/* Runs the process again soon, even if nothing arrives: the last event of its next step is
 * SKUA_EVENT_CONTINUE. Needs no memory.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_DONE; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API int skua_continue(skua_context *ctx);

/* Puts off an event of this step that the process cannot handle now: a message or a call. It is
 * handed to a step again after skua_resume, an urgent message as an ordinary one. Until then it
 * counts against the mailbox limit, which a step that defers may exceed by what it got: to senders
 * the mailbox is full meanwhile. Whatever `.overflow` says, nothing that is deferred is dropped for
 * new messages before it is resumed. A call is in the mailbox as before it came: `request` is no
 * longer valid, and if the caller gives up, it is not handed out again. When the process ends, it
 * drops what it has deferred like what it has not got: messages are dead letters, and callers are
 * told. One that changes its type keeps what it has deferred. In a task, `event` is what it has
 * received last, or what its serve was called with. The first time takes memory, later ones only
 * for a message that had waited for room (skua_yield_send).
 * Takes:   *event, on success: leave it alone from then on.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (neither a message nor a call, or no event of this step, as far as
 *          that shows); SKUA_E_TAKEN (its payload was taken out, or it is deferred already);
 *          SKUA_E_LATE (a call that was answered or forwarded, or whose caller has given up);
 *          SKUA_E_MESSAGE_QUOTA (a message whose place in the quota that the process is under was
 *          taken since the step got it); SKUA_E_DONE; SKUA_E_NO_MEMORY; SKUA_E_CONTEXT. On error
 *          the event stays the step's. */
SKUA_API SKUA_NODISCARD int skua_defer(skua_context *ctx, skua_event *event);

/* Brings back all that the process has deferred: its next steps get it, in the order in which it
 * was deferred, before all that has come since but urgent messages. The other events of this step
 * are the step's already: one that must not handle them first defers them, and then resumes. Needs
 * no memory.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0, also if nothing is deferred; SKUA_E_DONE; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API int skua_resume(skua_context *ctx);

/* ---- inside a process: memory ---- */

/* Memory from the runtime's allocator, aligned for any type. It belongs to no process: it may be
 * passed on, and nobody frees it for you.
 * Gives:   memory to be freed with skua_free, or null if there is none or `size` is 0.
 * Threads: worker (inside init, step or close).      Blocks: never. */
SKUA_API void *skua_alloc(skua_context *ctx, size_t size);

/* Frees memory of skua_alloc. `size` is what was asked for; null is ignored.
 * Threads: worker (inside init, step or close).      Blocks: never. */
SKUA_API void skua_free(skua_context *ctx, void *pointer, size_t size);

/* Memory that belongs to the process: freed when it ends, after its close. Zeroed, aligned for any
 * type, counted against the type's own_limit and the quotas that the process is under (skua_quota
 * in skua/supervisor.h).
 * Gives:   *pointer, null on error.      Threads: worker (inside init or step).      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, or a size of 0); SKUA_E_OWN_LIMIT;
 *          SKUA_E_MEMORY_QUOTA; SKUA_E_NO_MEMORY; SKUA_E_CONTEXT. */
SKUA_API SKUA_NODISCARD int skua_own_alloc(skua_context *ctx, size_t size, void **pointer);

/* Frees memory of skua_own_alloc early. Null is ignored.
 * Threads: worker (inside init, step or close).      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (not memory of this process, as far as that shows); SKUA_E_CONTEXT. */
SKUA_API int skua_own_free(skua_context *ctx, void *pointer);

/* ---- inside a step: what completes later ---- */

/* Like skua_yield, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_yield_from(skua_context *ctx, uint64_t tag, uint32_t command,
                                            skua_payload *payload, uint64_t timeout_ns);

/* Asks for a command (skua/command.h). After this step its handler carries it out; then the process
 * gets one completion event with `tag`, exactly one per yield. Any number of yields may be open. If
 * `timeout_ns` passes first, the completion says SKUA_E_TIMEOUT, and a later result is dropped; 0
 * accepts only what the handler completes at once; SKUA_FOREVER means no timeout.
 * Takes:   payload, always.      Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_PAYLOAD_SIZE; SKUA_E_NO_MEMORY; SKUA_E_DURATION; SKUA_E_RESERVED; SKUA_E_DONE;
 *          SKUA_E_TAKEN; SKUA_E_CONTEXT; SKUA_E_INVALID. On error there is no yield and no
 *          completion. An unknown command completes with SKUA_E_UNKNOWN_COMMAND. */
static inline SKUA_NODISCARD int skua_yield(skua_context *ctx, uint64_t tag, uint32_t command,
                                            skua_payload payload, uint64_t timeout_ns)
{
    return skua_yield_from(ctx, tag, command, &payload, timeout_ns);
}

/* Like skua_yield_send, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_yield_send_from(skua_context *ctx, uint64_t tag, skua_pid to,
                                                 skua_payload *payload, uint64_t timeout_ns);

/* Sends a message after this step, and completes with 0 when it is admitted: at once if the mailbox
 * has room. If that is full, the message waits at the receiver, in its place among those that come
 * before and after it, and is admitted when the receiver gets to it. No thread waits for that.
 * Otherwise the completion is SKUA_E_TIMEOUT, SKUA_E_CANCELLED (by skua_yield_cancel),
 * SKUA_E_NO_PROCESS (also if the receiver ends first), SKUA_E_FOREIGN_PID or, at once if a quota is
 * used up, SKUA_E_MESSAGE_QUOTA, and the message is not delivered; nor is one that waits when this
 * process ends. (If the type of the receiver drops old messages, one of these makes room at once,
 * as by skua_send; SKUA_E_MAILBOX_FULL beyond that.)
 * What a process sends to another in its steps arrives in that order, by sends and by these; sends
 * act at once, these after the step.
 * Takes:   payload, always.      Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield. */
static inline SKUA_NODISCARD int skua_yield_send(skua_context *ctx, uint64_t tag, skua_pid to,
                                                 skua_payload payload, uint64_t timeout_ns)
{
    return skua_yield_send_from(ctx, tag, to, &payload, timeout_ns);
}

/* Takes back all open yields with this tag, including those made earlier in this step: each that
 * has not ended yet completes with SKUA_E_CANCELLED. A command that is being carried out is not
 * interrupted; its result is dropped. Takes constant time on average, however many yields are open.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0 (whether or not there was such a yield); SKUA_E_NO_MEMORY; SKUA_E_DONE;
 *          SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_yield_cancel(skua_context *ctx, uint64_t tag);

/* ---- from any thread ---- */

/* Like skua_process_submit, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_process_submit_from(skua_runtime *runtime,
                                                     const skua_process_type *type,
                                                     skua_payload *payload, skua_pid *pid);

/* Starts a process of a type, with `payload` as the only input of its init, which runs on this
 * thread.
 * Takes:   payload, always.      Gives: *pid (may be null), before the process first runs.
 * Threads: any.      Blocks: never (but runs the type's init).
 * Returns: as skua_spawn, without SKUA_E_CONTEXT; SKUA_E_NOT_STARTED. */
static inline SKUA_NODISCARD int skua_process_submit(skua_runtime *runtime,
                                                     const skua_process_type *type,
                                                     skua_payload payload, skua_pid *pid)
{
    return skua_process_submit_from(runtime, type, &payload, pid);
}

/* Like skua_process_submit_with, with the size of the caller's struct. */
SKUA_API SKUA_NODISCARD int skua_process_submit_with_sized(skua_runtime *runtime,
                                                           const skua_spawn_options *options,
                                                           skua_pid *pid, size_t options_size);

/* Starts a process with options.
 * Takes:   the payloads of options->input, always.      Gives: *pid (may be null).
 * Threads: any.      Blocks: never (but runs the type's init).
 * Returns: as skua_process_submit; as skua_name_register; of a supervisor as skua_spawn_with;
 *          SKUA_E_CONTEXT (a monitor, a join or a link: a thread has none). */
static inline SKUA_NODISCARD int
skua_process_submit_with(skua_runtime *runtime, const skua_spawn_options *options, skua_pid *pid)
{
    return skua_process_submit_with_sized(runtime, options, pid, sizeof *options);
}

/* Sends a message to a process. What one thread sends to one process arrives in order. Inside a
 * process use skua_send: only that tells the receiver who sent it.
 * Takes:   payload, always.      Threads: any.      Blocks: never.
 * Returns: as skua_send, without SKUA_E_CONTEXT. */
SKUA_API int skua_process_send(skua_runtime *runtime, skua_pid to, skua_payload payload);

/* Like skua_send_urgent, from any thread.
 * Takes:   payload, always.      Threads: any.      Blocks: never.
 * Returns: as skua_send_urgent, without SKUA_E_CONTEXT. */
SKUA_API int skua_process_send_urgent(skua_runtime *runtime, skua_pid to, skua_payload payload);

/* Like skua_cancel, from any thread.
 * Threads: any.      Blocks: never.
 * Returns: as skua_cancel, without SKUA_E_CONTEXT. */
SKUA_API int skua_process_cancel(skua_runtime *runtime, skua_pid pid, int reason);

/* Like skua_terminate, from any thread.
 * Threads: any.      Blocks: never.
 * Returns: as skua_terminate, without SKUA_E_CONTEXT. */
SKUA_API int skua_process_terminate(skua_runtime *runtime, skua_pid pid);

/* Like skua_process_wait, with the size of the caller's struct. */
SKUA_API SKUA_NODISCARD int skua_process_wait_sized(skua_runtime *runtime, skua_pid pid,
                                                    uint64_t timeout_ns, skua_exit *exit,
                                                    size_t exit_size);

/* Waits until a process has ended and its close has returned. A process that ended before the
 * call is SKUA_E_NO_PROCESS: skua_process_run starts one and waits for it without that race.
 * Gives:   *exit (may be null); drop its result. If several threads wait for one process, a
 *          result that owns memory goes to one of them, the others get an empty one.
 * Threads: any but a worker's.      Blocks: yes.
 * Returns: 0 (the process has ended, see exit->error); SKUA_E_TIMEOUT; SKUA_E_NO_PROCESS;
 *          SKUA_E_FOREIGN_PID; SKUA_E_DURATION; SKUA_E_INSIDE_STEP; SKUA_E_INVALID; in a
 *          simulation also SKUA_E_BUSY or SKUA_E_STOPPED (another thread drives it, or has
 *          stopped it) and SKUA_E_AT_REST (it would never end). */
static inline SKUA_NODISCARD int skua_process_wait(skua_runtime *runtime, skua_pid pid,
                                                   uint64_t timeout_ns, skua_exit *exit)
{
    return skua_process_wait_sized(runtime, pid, timeout_ns, exit, sizeof *exit);
}

/* Like skua_process_run, with a pointer to the payload and the size of the caller's struct. */
SKUA_API SKUA_NODISCARD int skua_process_run_sized(skua_runtime *runtime,
                                                   const skua_process_type *type,
                                                   skua_payload *payload, skua_exit *exit,
                                                   size_t exit_size);

/* Starts a process and waits until it has ended, however long that takes.
 * Takes:   payload, always.      Gives: *exit (may be null), as skua_process_wait.
 * Threads: any but a worker's.      Blocks: yes.
 * Returns: 0 (the process has ended, see exit->error); SKUA_E_INSIDE_STEP; as skua_process_submit;
 *          in a simulation also SKUA_E_BUSY and SKUA_E_AT_REST: then the process lives on. */
static inline SKUA_NODISCARD int skua_process_run(skua_runtime *runtime,
                                                  const skua_process_type *type,
                                                  skua_payload payload, skua_exit *exit)
{
    return skua_process_run_sized(runtime, type, &payload, exit, sizeof *exit);
}

/* Like skua_process_run_with, with the sizes of the caller's structs. */
SKUA_API SKUA_NODISCARD int skua_process_run_with_sized(skua_runtime *runtime,
                                                        const skua_spawn_options *options,
                                                        skua_exit *exit, size_t options_size,
                                                        size_t exit_size);

/* Starts a process with options and waits until it has ended.
 * Takes:   the payloads of options->input, always.      Gives: *exit (may be null).
 * Threads: any but a worker's.      Blocks: yes.
 * Returns: as skua_process_run. */
static inline SKUA_NODISCARD int
skua_process_run_with(skua_runtime *runtime, const skua_spawn_options *options, skua_exit *exit)
{
    return skua_process_run_with_sized(runtime, options, exit, sizeof *options, sizeof *exit);
}

/* ---- inspecting processes ---- */

/* What a process is doing. */
enum skua_process_state {
    SKUA_PROCESS_READY = 1,   /* queued to run */
    SKUA_PROCESS_RUNNING = 2, /* a worker runs its step */
    SKUA_PROCESS_BLOCKED = 3, /* waits for its yields */
    SKUA_PROCESS_IDLE = 4,    /* waits for any event */
};

/* A process at one moment. */
typedef struct skua_process_snapshot {
    skua_pid pid;                  /* who */
    enum skua_process_state state; /* what it was doing */
    uint64_t steps;                /* steps it has begun */
    uint32_t mailbox_length;       /* messages not yet handed to a step, and what is deferred; may
                                      briefly include messages that are being refused, and lack
                                      up to 15 of each step that is sending to a large mailbox */
    const char *type_name;         /* skua_process_type.name */
    /* How long its steps have run, sampled every 2.5 ms while a worker is busy, so that steps pay
     * nothing for it. Good for what runs long or often; most likely 0 for a process that ran only
     * briefly. Zero in simulations. */
    uint64_t run_ns;
    uint64_t age_ns;     /* since it was started, to about 20 ms (80 if nothing else runs) */
    skua_pid supervisor; /* of this process; zero: it has none */
    /* For on_survivor only, and during that call: the names of its supervisors, from the root, and
     * its own, as "shop/orders/desk"; otherwise null. */
    const char *path;
    uint32_t type_version; /* skua_process_type.version */
} skua_process_snapshot;

/* Like skua_process_info, with the size of the caller's struct. */
SKUA_API SKUA_NODISCARD int skua_process_info_sized(skua_runtime *runtime, skua_pid pid,
                                                    skua_process_snapshot *snapshot,
                                                    size_t snapshot_size);

/* Tells what a process is doing at this moment.
 * Gives:   *snapshot.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_NO_PROCESS; SKUA_E_FOREIGN_PID; SKUA_E_INVALID. */
static inline SKUA_NODISCARD int skua_process_info(skua_runtime *runtime, skua_pid pid,
                                                   skua_process_snapshot *snapshot)
{
    return skua_process_info_sized(runtime, pid, snapshot, sizeof *snapshot);
}

/* Like skua_process_list, with the size of the elements of the caller's array. */
SKUA_API int skua_process_list_sized(skua_runtime *runtime, skua_pid after,
                                     skua_process_snapshot *snapshots, size_t capacity,
                                     size_t stride);

/* Lists all processes, a page at a time: those that come after the process `after` (zero: from the
 * first on), whether or not that one still lives. A process keeps its place in the order for life;
 * one that lives from before the first page until after the last is on exactly one of them.
 * Gives:   snapshots[0] and so on.
 * Threads: any.      Blocks: never; takes about 50 ns for each slot, in use or not.
 * Returns: how many were written: `capacity`, or fewer if there are no more; SKUA_E_INVALID;
 *          SKUA_E_FOREIGN_PID. */
static inline int skua_process_list(skua_runtime *runtime, skua_pid after,
                                    skua_process_snapshot *snapshots, size_t capacity)
{
    return skua_process_list_sized(runtime, after, snapshots, capacity, sizeof *snapshots);
}

/* The name of a state: "ready", "running", "blocked", "idle", or "?".
 * Gives:   a static string.      Threads: any.      Blocks: never. */
SKUA_API const char *skua_process_state_name(enum skua_process_state state);

SKUA_END_DECLS

#endif
