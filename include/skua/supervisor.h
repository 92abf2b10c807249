/* SPDX-License-Identifier: MIT */
/* Supervisors: processes that start others, start them again when they fail, and stop them in
 * order.
 *
 * What a supervisor does is written down in a specification, which is constant data. Children are
 * started in the order of the list; when the supervisor ends, they are stopped in reverse order.
 * All of them have ended by then: unless the supervisor is terminated. Then they are terminated,
 * too, and none of them begins another step once it has been told; but a step that is under way, of
 * a child or further below, is not interrupted. For as long as that takes the child outlives its
 * supervisor, and if that is started again, its successor may run beside it.
 *
 *     static const skua_supervisor shop = {
 *         .name = "shop",
 *         .children = (const skua_child[]){{.name = "stock", .type = &stock_type},
 *                                          {.name = "desk", .type = &desk_type}},
 *         .child_count = 2,
 *         .strategy = SKUA_STRATEGY_REST, // the desk needs the stock
 *     };
 *     error = skua_process_start_supervisor(runtime, &shop, &pid);
 *
 * A child that fails is started again: at once the first time, then after a pause that doubles from
 * failure to failure. */
#ifndef SKUA_SUPERVISOR_H
#define SKUA_SUPERVISOR_H

#include <skua/call.h>
#include <skua/error.h>
#include <skua/payload.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* ---- specifications ---- */

/* Who else is stopped and started again when a child of the list has to be. Children of templates
 * are always on their own. */
enum skua_strategy {
    SKUA_STRATEGY_ONE = 0,  /* nobody */
    SKUA_STRATEGY_ALL = 1,  /* all others */
    SKUA_STRATEGY_REST = 2, /* those after it in the list */
};

/* When a child is started again after its end. Ends with 0, SKUA_E_STOPPED and SKUA_E_CANCELLED are
 * orderly, all others are failures. */
enum skua_restart {
    SKUA_RESTART_ALWAYS = 0,   /* whenever it ends */
    SKUA_RESTART_ON_ERROR = 1, /* when it fails; an orderly end is final */
    SKUA_RESTART_NEVER = 2,    /* never, not even together with others */
};

/* Whether a supervisor stops when significant children have ended for good. */
enum skua_auto_stop {
    SKUA_AUTO_STOP_NEVER = 0, /* it does not */
    SKUA_AUTO_STOP_ANY = 1,   /* when one of them has */
    SKUA_AUTO_STOP_ALL = 2,   /* when all of them have */
};

/* How often children may be started again after they have ended by themselves, or could not be
 * started. One more such end within the period ends the supervisor with SKUA_E_RESTARTS. Both zero:
 * as often as it takes. A supervisor takes the memory for it when it starts, 8 bytes a restart. */
typedef struct skua_budget {
    uint32_t restarts;  /* at most SKUA_RESTARTS_MAX */
    uint64_t period_ns; /* in any span of this length */
} skua_budget;

/* The largest budget. */
#define SKUA_RESTARTS_MAX ((uint32_t)1 << 16)

/* What all processes under a supervisor may have together: those that it starts, those that they
 * start, and so on; not the supervisor itself. Zero: as much as they like. Whatever is beyond fails
 * with an error of its own, and what is over is given back in full: no start of a child fails for
 * the place of one that has ended. A supervisor within it may have a quota of its own: what is
 * under that counts against both. What one of them refuses is taken back from those further in, by
 * which it was counted first: so while a quota further out is full, one further in may refuse what
 * would just have fitted. */
typedef struct skua_quota {
    uint32_t processes; /* that live at once; beyond: SKUA_E_PROCESS_QUOTA */
    uint32_t messages;  /* that wait for them at once, urgent and deferred ones and calls that are
                           not answered included, but no other events; beyond:
                           SKUA_E_MESSAGE_QUOTA, whatever the receiver's type does with a full
                           mailbox (enum skua_overflow) */
    size_t bytes;       /* of skua_own_alloc; beyond: SKUA_E_MEMORY_QUOTA */
} skua_quota;

/* How long to wait before a child is started again. The first restart is immediate. Later ones wait
 * for `first_ns`, and each time twice as long, up to `max_ns`; all give or take a quarter, at
 * random: so the longest wait is a quarter more than `max_ns`. A child that has been ready for
 * `stable_ns` begins anew, whether it then fails by itself or is stopped with others. */
typedef struct skua_backoff {
    uint64_t first_ns;  /* 0: 10 ms */
    uint64_t max_ns;    /* 0: 30 s */
    uint64_t stable_ns; /* 0: 10 s */
} skua_backoff;

/* A child, or a template for children that are started later (skua_spawn_options.supervisor).
 * Fields that are not set are zero. */
typedef struct skua_child {
    const char *name;                         /* 1 to 63 bytes; no other in the list has it */
    const skua_process_type *type;            /* this, */
    const struct skua_supervisor *supervisor; /* or a supervisor with children of its own */
    /* What it is started with, every time: payloads that skua_payload_ref can repeat. Templates
     * have none of this: it comes with each start. */
    const char *method;        /* null: the type's first */
    const skua_payload *input; /* what init gets */
    size_t input_count;        /* how many */
    bool registered;           /* `name` also is the name of the process (skua/name.h): no other
                                  registered child of the whole tree has it */
    bool significant;          /* see enum skua_auto_stop */
    enum skua_restart restart; /* by default always */
    /* 0: it is ready as soon as its init has returned. Otherwise it must call skua_ready within
     * this time, or its start has failed with SKUA_E_TIMEOUT. The next child of the list is started
     * when this one is ready. */
    uint64_t start_ns;
    uint64_t stop_ns;      /* from a cancel to a terminate; 0: 5 s, or SKUA_FOREVER for a
                              supervisor. Without memory for the cancel the child is terminated at
                              once */
    skua_budget budget;    /* its own; that of the supervisor counts as well. None, and no
                              back-off, if it is never started again */
    skua_backoff backoff;  /* how long to wait before it is started again */
    uintptr_t reserved[4]; /* zero */
} skua_child;

/* What a supervisor has to do. It stays valid and unchanged, with all that it points to, until the
 * last runtime that used it is destroyed. Fields that are not set are zero. */
typedef struct skua_supervisor {
    const char *name;              /* 1 to 63 bytes, for the log; that of its place, if it is a
                                      child, is what `skua ps` and `skua tree` show */
    const skua_child *children;    /* in the order of their start */
    size_t child_count;            /* how many */
    const skua_child *templates;   /* for children that are started later, one for each type */
    size_t template_count;         /* how many */
    enum skua_strategy strategy;   /* by default each child is on its own */
    enum skua_auto_stop auto_stop; /* by default never */
    bool parallel_stop;            /* stop the children all at once */
    skua_budget budget;            /* of all children together */
    skua_quota quota;              /* of all processes under it together; by default none */
    uintptr_t reserved[2];         /* zero */
} skua_supervisor;

/* The most children in a list, and templates. A template can have any number of children. */
#define SKUA_CHILDREN_MAX 4096

/* The most children in the lists of a supervisor and of all supervisors in it together. */
#define SKUA_TREE_MAX ((uint32_t)1 << 20)

/* Supervisors in supervisors: no more levels than this. */
#define SKUA_SUPERVISORS_DEEP 32

/* Checks a specification, with all supervisors in it.
 * Borrows: specification.      Gives: text (may be null), of up to `size` bytes with a zero at its
 *          end: what is wrong, with the names of the child and the field; empty if all is well.
 * Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_SPECIFICATION; SKUA_E_INVALID (null specification). */
SKUA_API int skua_supervisor_check(const skua_supervisor *specification, char *text, size_t size);

/* ---- starting one ---- */

/* Starts a supervisor. Its children are started one after the other in its steps. If you cancel it,
 * it stops its children and ends with the reason of the cancel. For more, use skua_supervisor_type.
 * Borrows: specification.      Gives: *pid (may be null).
 * Threads: worker (inside init or step).      Blocks: never.
 * Returns: as skua_spawn; SKUA_E_SPECIFICATION (the log says why); SKUA_E_MEMORY_QUOTA (it has own
 *          memory, some 200 bytes for each child); SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int
skua_supervisor_start(skua_context *ctx, const skua_supervisor *specification, skua_pid *pid);

/* Like skua_supervisor_start, from any thread.
 * Borrows: specification.      Gives: *pid (may be null).
 * Threads: any.      Blocks: never.
 * Returns: as skua_process_submit; SKUA_E_SPECIFICATION, SKUA_E_MEMORY_QUOTA and SKUA_E_INVALID, as
 *          skua_supervisor_start. */
SKUA_API SKUA_NODISCARD int skua_process_start_supervisor(skua_runtime *runtime,
                                                          const skua_supervisor *specification,
                                                          skua_pid *pid);

/* The type of supervisors, to start one with skua_spawn_with, or under another one by a template.
 * Its only input is skua_supervisor_input(&specification).
 * Gives:   a static type.      Threads: any.      Blocks: never. */
SKUA_API const skua_process_type *skua_supervisor_type(void);

/* What a supervisor is started with. */
static inline skua_payload skua_supervisor_input(const skua_supervisor *specification)
{
    return skua_payload_pointer(0, (void *)(uintptr_t)specification, NULL);
}

/* ---- in a child ---- */

/* Says that this process is ready: a supervisor that waits for that goes on (skua_child.start_ns).
 * Without a supervisor it does nothing.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_NO_MEMORY; SKUA_E_CONTEXT. */
SKUA_API int skua_ready(skua_context *ctx);

/* ---- looking at one ---- */

/* What a child does. */
enum skua_child_state {
    SKUA_CHILD_STOPPED = 1,  /* does not run: its turn to start has not come, or it has ended for
                                good */
    SKUA_CHILD_STARTING = 2, /* is not ready yet */
    SKUA_CHILD_RUNNING = 3,  /* runs */
    SKUA_CHILD_WAITING = 4,  /* will be started again at `next_start` */
    SKUA_CHILD_STOPPING = 5, /* was asked to end */
};

/* One child in a report. */
typedef struct skua_child_report {
    char name[64];                 /* as in the specification; of a template's child its own name or
                                      label, if it has one */
    skua_pid pid;                  /* zero if it does not run */
    const skua_process_type *type; /* skua_supervisor_type() for one that has children */
    enum skua_child_state state;   /* what it does */
    bool is_supervisor;            /* a supervisor: ask it for a report of its own */
    bool is_dynamic;               /* started by a template */
    bool is_over;                  /* it has ended and will not be started again */
    int last_error;                /* how it last ended, or why it could not start; 0: never yet,
                                      or orderly */
    uint64_t restarts;             /* how often it was started again */
    uint64_t started_at;           /* when it was last started, by skua_now's clock; 0: never */
    uint64_t next_start;           /* if it waits: when it will be started; otherwise 0 */
} skua_child_report;

/* The type of a call that asks a supervisor for its report. */
#define SKUA_SUPERVISOR_REPORT UINT32_C(0x534b5550)

/* Asks a supervisor for its report. The payload of the completion is the report; read it with the
 * functions below. A task gets it by skua_task_call with
 * skua_payload_empty(SKUA_SUPERVISOR_REPORT).
 * Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield_call. */
static inline SKUA_NODISCARD int skua_yield_supervisor_report(skua_context *ctx, uint64_t tag,
                                                              skua_pid pid, uint64_t timeout_ns)
{
    return skua_yield_call(ctx, tag, pid, skua_payload_empty(SKUA_SUPERVISOR_REPORT), timeout_ns);
}

/* Asks a supervisor for its report, and waits for it.
 * Gives:   *report: drop it; empty on an error.      Threads: any but a worker's.      Blocks: yes.
 * Returns: as skua_process_call. */
static inline SKUA_NODISCARD int skua_supervisor_report(skua_runtime *runtime, skua_pid pid,
                                                        uint64_t timeout_ns, skua_payload *report)
{
    return skua_process_call(runtime, pid, skua_payload_empty(SKUA_SUPERVISOR_REPORT), timeout_ns,
                             report);
}

/* How many children a report has: those of the list, in their order, then those of templates. 0 if
 * the payload is no report.
 * Borrows: report.      Threads: any.      Blocks: never. */
SKUA_API size_t skua_report_count(const skua_payload *report);

/* Like skua_report_child, with the size of the caller's struct. */
SKUA_API int skua_report_child_sized(const skua_payload *report, size_t index,
                                     skua_child_report *child, size_t child_size);

/* One child of a report.
 * Borrows: report.      Gives: *child.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, or there is no such child). */
static inline int skua_report_child(const skua_payload *report, size_t index,
                                    skua_child_report *child)
{
    return skua_report_child_sized(report, index, child, sizeof *child);
}

/* The name of a state: "stopped", "starting", "running", "waiting", "stopping", or "?".
 * Gives:   a static string.      Threads: any.      Blocks: never. */
SKUA_API const char *skua_child_state_name(enum skua_child_state state);

/* Where a process is in the tree: the names of its supervisors, from the root, and its own, as
 * "shop/orders/desk"; of a long path the end. Empty if it has no supervisor and is none.
 * Gives:   path, of up to `size` bytes with a zero at its end.
 * Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_NO_PROCESS; SKUA_E_FOREIGN_PID; SKUA_E_INVALID (null, or no size). */
SKUA_API int skua_process_path(skua_runtime *runtime, skua_pid pid, char *path, size_t size);

/* ---- writing a supervisor of your own ----
 *
 * What skua_process_start_supervisor starts is a process like any other: what follows is all that
 * it needs besides. Start a child with skua_spawn_options.supervisor = skua_self(ctx): it is linked
 * to this process, ends with it however that ends, and when the child ends first, this process gets
 * SKUA_EVENT_EXIT with `from`, `error` and the tag of skua_spawn_options.link_tag.
 *
 * `skua tree` shows processes that have called skua_supervise, with their children. Only the
 * process itself knows more of these than that they live: skua_process_type.children tells. */

/* What `tag` of SKUA_EVENT_CHILD says. */
enum skua_child_news {
    SKUA_CHILD_STARTED = 0, /* `from` was started as a child of this process, by somebody else; the
                               payload is a skua_child_start */
    SKUA_CHILD_READY = 1,   /* `from` has called skua_ready */
};

/* How somebody else has started a child of this process: the payload of SKUA_EVENT_CHILD. */
typedef struct skua_child_start {
    const skua_process_type *type; /* of a template */
    const char *method;            /* one of the type's */
    const char *name;              /* of the process, or null */
    const char *label;             /* or null */
    const skua_payload *input;     /* what init got, to be repeated with skua_payload_ref; none if
                                      the template says SKUA_RESTART_NEVER */
    size_t input_count;            /* how many */
} skua_child_start;

/* From now on others can start children under this process: of the types that the templates of
 * `specification` name. Each is told by SKUA_EVENT_CHILD before it first runs; its end, by
 * SKUA_EVENT_EXIT with the tag 0. The name of the specification is that of this process in the
 * tree. Null: no more children; such starts are refused with SKUA_E_LATE.
 * Borrows: specification, which stays valid as a type does.
 * Threads: worker (inside init or step).      Blocks: never.
 * Returns: 0; SKUA_E_SPECIFICATION (no name, or a template_count without templates);
 *          SKUA_E_NO_MEMORY; SKUA_E_CONTEXT. */
SKUA_API int skua_supervise(skua_context *ctx, const skua_supervisor *specification);

/* What skua_count counts. */
enum skua_counted {
    SKUA_COUNT_RESTART = 1, /* this process has started a child again */
    SKUA_COUNT_GIVE_UP = 2, /* it ends because that was too often */
};

/* Counts something that this process has done as a supervisor: `restarts` and `give_ups` of
 * skua/stats.h.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (no such thing); SKUA_E_CONTEXT. */
SKUA_API int skua_count(skua_context *ctx, enum skua_counted what);

/* Says who failed first, if this process ends because of that: its skua_exit.cause, should one of
 * its steps now return an error. Zero takes it back.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_NO_MEMORY; SKUA_E_CONTEXT. */
SKUA_API int skua_blame(skua_context *ctx, skua_pid cause);

/* Sets a quota for all that this process starts from now on, for what they start, and for children
 * that others start under this process; at least one limit of it. It can be set once, and lies
 * within the one that this process counts against itself, if there is one. What handlers, callbacks
 * and threads start counts against none.
 * Threads: worker (inside init or step).      Blocks: never.
 * Returns: 0; SKUA_E_NO_MEMORY; SKUA_E_CONTEXT; SKUA_E_INVALID (no limit, or it has a quota). */
SKUA_API int skua_limit(skua_context *ctx, skua_quota quota);

/* How much of a quota is in use; what has no limit is not counted. */
typedef struct skua_quota_use {
    skua_quota limit; /* as it was set; all zero: the process has set none */
    skua_quota used;  /* at this moment */
} skua_quota_use;

/* Like skua_process_quota, with the size of the caller's struct. */
SKUA_API int skua_process_quota_sized(skua_runtime *runtime, skua_pid pid, skua_quota_use *use,
                                      size_t use_size);

/* Reads the quota that a process has set for those under it.
 * Gives:   *use.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_NO_PROCESS; SKUA_E_FOREIGN_PID; SKUA_E_INVALID. */
static inline int skua_process_quota(skua_runtime *runtime, skua_pid pid, skua_quota_use *use)
{
    return skua_process_quota_sized(runtime, pid, use, sizeof *use);
}

SKUA_END_DECLS

#endif
