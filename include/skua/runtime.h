/* SPDX-License-Identifier: MIT */
/* A runtime: create, register commands, start, use, stop, destroy. */
#ifndef SKUA_RUNTIME_H
#define SKUA_RUNTIME_H

#include <skua/error.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* The largest values of worker_count, process_limit and spare_limit in a configuration. */
#define SKUA_WORKERS_MAX   256
#define SKUA_PROCESSES_MAX (((uint32_t)1 << 26) - 1)
#define SKUA_SPARES_MAX    64

/* A spare_limit for no spare workers at all. */
#define SKUA_SPARES_NONE UINT32_MAX

/* How serious a line of the log is. */
enum skua_log_level {
    SKUA_LOG_INFO = 1,    /* good to know */
    SKUA_LOG_WARNING = 2, /* something is odd, but it works */
    SKUA_LOG_ERROR = 3,   /* something has failed */
};

/* A line of the runtime's log, for skua_runtime_config.on_log. */
typedef struct skua_log {
    enum skua_log_level level; /* how serious it is */
    const char *text;          /* one line without a line end; valid during the call */
    skua_pid pid;              /* the process it is about, or zero */
    const char *type_name;     /* of that process, or null */
} skua_log;

/* A step that runs too long, for skua_runtime_config.on_stall. */
typedef struct skua_stall {
    skua_pid pid;          /* whose step it is */
    const char *type_name; /* "?" if the process has ended and only on_exit still runs */
    uint64_t elapsed_ns;   /* how long the step has been seen running; it began a little earlier */
    uint32_t worker;       /* its number, as in skua_stats_read */
    uint32_t frame_count;  /* 0 unless stall_signal is set and the thread answered */
    void *const *frames;   /* addresses from where the thread is up to the step function, innermost
                             first, for backtrace_symbols and the like; valid during the call */
} skua_stall;

/* Why a message that was accepted reached no step. */
enum skua_dead_letter_cause {
    SKUA_DEAD_UNREAD = 1, /* its receiver ended before it got it */
    SKUA_DEAD_NEW = 2,    /* the mailbox was full: SKUA_OVERFLOW_DROP_NEW, or twice the limit */
    SKUA_DEAD_OLD = 3,    /* it made room for a newer one: SKUA_OVERFLOW_DROP_OLD */
};

/* A message that was accepted, so that its sender was told 0, and that no step gets, for
 * skua_runtime_config.on_dead_letter. What a sender or a caller learns from an error is none. */
typedef struct skua_dead_letter {
    skua_pid to;                       /* who would have got it; it may have ended */
    skua_pid from;                     /* the sender, or zero if a thread sent it */
    const skua_payload *payload;       /* what it carries; valid during the call */
    enum skua_dead_letter_cause cause; /* why */
} skua_dead_letter;

/* What a runtime is created with. Zero means the default, in every field. */
typedef struct skua_runtime_config {
    /* Worker threads; default: the CPUs this program may use, by its affinity mask and by the
     * quota of its control group. At most SKUA_WORKERS_MAX. */
    uint32_t worker_count;
    /* Processes alive at once; default 2^24, at most SKUA_PROCESSES_MAX. Never exceeded; free
     * places kept ready by workers (up to 1/64 of the limit) may make submit refuse a little
     * earlier. Limits below 128 for each worker and one more are exact. */
    uint32_t process_limit;
    /* Messages waiting in one mailbox, for types that set no limit of their own; default 2^20, at
     * most SKUA_MAILBOX_MAX. A sender that is interrupted while the receiver goes to rest can make
     * it one message more. Limits from 128 for each worker on, spares included (4,352 for two
     * workers and the default of spares), may be exceeded by 16 for each worker that runs a step:
     * workers count messages from one process to another sixteen at a time. */
    uint32_t mailbox_limit;
    /* Bytes in one payload; default 2^30. */
    size_t payload_limit;
    /* Seed of skua_random and of the choice of whom to steal from; default 1. */
    uint64_t seed;
    /* Memory; default: the C library's. */
    skua_alloc_fn *alloc;
    void *alloc_arg;
    /* Called once for every process that has ended, after its close, when its place is free again
     * and it is counted as finished. May take the result. (If more than 1,024 processes must be
     * told of the end, they are told first, and one that joins may have taken it.) A stop waits for
     * it to return.
     * Threads: the worker that ran the process.      Blocks: must not. */
    void (*on_exit)(void *arg, skua_exit *exit);
    void *on_exit_arg;
    /* Called by skua_runtime_stop for every process that outlives the timeout, before it ends it.
     * Threads: the one that called stop.      May call skua_ functions other than stop, wait, run
     * and destroy. */
    void (*on_survivor)(void *arg, const skua_process_snapshot *process);
    void *on_survivor_arg;
    /* Worker threads that may be added for those that are stuck in a step or between
     * skua_blocking_begin and end; default 32, at most SKUA_SPARES_MAX. With SKUA_SPARES_NONE what
     * waits for such a worker is left to the other workers, if there are any. */
    uint32_t spare_limit;
    /* How long a step may run before its worker counts as stuck: a spare worker then takes over all
     * that it holds up. Default 10 ms, at least 1 ms; SKUA_FOREVER: none ever does. Timers and
     * descriptors that no worker serves are rescued after a quarter of it, or after 2.5 ms if that
     * is shorter. */
    uint64_t stall_limit_ns;
    /* Called once for every step that exceeds the limit, while it still runs.
     * Threads: one of the runtime's own.      Blocks: must not.
     * May call skua_ functions other than stop, wait, run and destroy. */
    void (*on_stall)(void *arg, const skua_stall *stall);
    void *on_stall_arg;
    /* A signal with which the runtime may ask a stuck thread for its backtrace, once for each stuck
     * step; default: none. Its handler is replaced from start to stop. A sleep, poll, select,
     * epoll_wait or wait with a timeout that it interrupts does not end early: on x86-64 the call
     * is made again, and a timeout that is a duration begins anew; elsewhere such a thread is not
     * asked. Other calls that are never restarted (signal(7)), and one that begins at that very
     * moment, may return early with EINTR. Signals that report a fault or cannot be caught are
     * refused with SKUA_E_SIGNAL. */
    int stall_signal;
    /* Not null: processes run in the simulator, see skua/sim.h. Copied. Then there is one worker,
     * no spare one, no monitor and no thread. */
    const struct skua_sim_config *sim;
    /* Opens the inspector socket for `skua top` and its like, see skua/inspect.h. If that is not
     * possible, start fails with SKUA_E_INSPECT; with SKUA_INSPECT=1 in the environment it only
     * says so. */
    bool inspect;
    /* Called with a line when a process has failed and nobody watches it, a context was misused, or
     * the program has closed a descriptor of the runtime's own; and by supervisors, for every
     * restart, every start that fails, and when they give up.
     * A process that ends with an error other than SKUA_E_STOPPED and SKUA_E_CANCELLED gives one
     * line with its type, PID, name (or label), error and step, and who failed first if it ends
     * with that one by a link; unless a thread waits for it, or a process hears of it by a monitor,
     * a join, or a link with SKUA_LINK_TELL. Whoever ends with it, by another link, does not: it
     * gives a line of its own. At most five lines a second, not counting those of supervisors; the
     * next one says how many were left out.
     * Default: no log.
     * Threads: any of the runtime's, and those that call it.      Blocks: must not.
     * May call skua_ functions other than stop, wait, run and destroy. */
    void (*on_log)(void *arg, const skua_log *log);
    void *on_log_arg;
    /* Reports a crash inside a step, an init or a close on a worker: on SIGSEGV, SIGABRT, SIGFPE or
     * SIGBUS it prints the process, its type, the step and the worker to stderr, with a backtrace.
     * Then your program's own handler runs, or the signal ends the program as usual. The handlers
     * are in place from start to stop, for all runtimes that report; one that you replace meanwhile
     * stays replaced, and should call the one that was there. Workers have an alternate signal
     * stack, so that a stack overflow is reported, too; a thread that drives a simulation keeps the
     * one it has, if any. */
    bool crash_report;
    /* How many names processes may have or wait for at once (skua/name.h); default 2^20, at most
     * 2^24. */
    uint32_t name_limit;
    /* How many stacks tasks may have at once (skua/task.h); default 2^20, at most 2^24. Without a
     * stack a task ends with SKUA_E_STACK_LIMIT. */
    uint32_t stack_limit;
    /* How many groups there may be at once (skua/group.h); default 2^20, at most 2^24. */
    uint32_t group_limit;
    /* Called for every dead letter, before its payload is dropped. Those that come of what this
     * call itself does are counted (skua/stats.h), but not reported.
     * Threads: the worker that ran the receiver, or the thread that sent it.      Blocks: must not.
     * May call skua_ functions other than stop, wait, run and destroy. */
    void (*on_dead_letter)(void *arg, const skua_dead_letter *letter);
    void *on_dead_letter_arg;
    /* Called when `skua reload` asks to load `file`, and to upgrade processes by its types or, if
     * `type_name` is not null, by this one. Returns 0, or an error and why in `message`, text of up
     * to `size` bytes. `skua run` sets it. Default: the program cannot be reloaded.
     * Threads: the inspector's.      Blocks: may, but nobody else is answered meanwhile. */
    int (*on_reload)(void *arg, const char *file, const char *type_name, char *message,
                     size_t size);
    void *on_reload_arg;
} skua_runtime_config;

/* Like skua_runtime_create, with the size of the caller's struct. */
SKUA_API SKUA_NODISCARD int skua_runtime_create_sized(skua_runtime **runtime,
                                                      const skua_runtime_config *config,
                                                      size_t config_size);

/* Creates a runtime that has no threads yet.
 * Borrows: config; null means all defaults.
 * Gives:   *runtime, to be released with skua_runtime_destroy.
 * Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID; SKUA_E_SIGNAL; SKUA_E_NO_MEMORY. */
static inline SKUA_NODISCARD int skua_runtime_create(skua_runtime **runtime,
                                                     const skua_runtime_config *config)
{
    return skua_runtime_create_sized(runtime, config, sizeof *config);
}

/* Like skua_runtime_config_read, with the size of the caller's struct. */
SKUA_API int skua_runtime_config_read_sized(const skua_runtime *runtime,
                                            skua_runtime_config *config, size_t config_size);

/* The configuration in force, with every default filled in.
 * Gives:   *config.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID. */
static inline int skua_runtime_config_read(const skua_runtime *runtime, skua_runtime_config *config)
{
    return skua_runtime_config_read_sized(runtime, config, sizeof *config);
}

/* Starts the workers. From now on you can submit processes, and can no longer register commands.
 * The workers block all signals but those that a thread causes itself (SIGSEGV and the like) and
 * SIGPROF; threads that a handler starts inherit that.
 * Threads: any.      Blocks: briefly.
 * Returns: 0; SKUA_E_INVALID; SKUA_E_STARTED; SKUA_E_STOPPED; SKUA_E_THREAD, SKUA_E_POLLER,
 *          SKUA_E_INSPECT or SKUA_E_NO_MEMORY (nothing started, may be tried again). */
SKUA_API SKUA_NODISCARD int skua_runtime_start(skua_runtime *runtime);

/* Stops the runtime. New processes are refused from now on; every process without a supervisor is
 * cancelled (the reason is SKUA_E_STOPPED), supervisors stop their children (skua/supervisor.h),
 * and all have up to `timeout_ns` to end; the others are reported to on_survivor and ended. What
 * processes have written to sockets that are closed has the rest of that time to leave
 * (skua/socket.h). Functions that wait for a thread of a blocking pool are dropped, but for those
 * that a process yielded in its last step (skua_done): they are waited for. A step that does not
 * return cannot be ended, nor can a function on a blocking pool. If one blocks for 100 ms, or
 * computes for about as long, and nothing ends meanwhile, the call returns SKUA_E_STUCK and leaves
 * the threads as they are; call stop again to go on waiting. A step that waits for a CPU is not
 * stuck. A runtime that has stopped cannot be started again; stopping it again returns 0. A second
 * stop at the same time first waits for the other to return.
 * Threads: any but the runtime's own.      Blocks: yes, up to the timeout and what closing takes.
 * Returns: 0 (all finished by themselves); SKUA_E_TIMEOUT (stopped; some had to be ended);
 *          SKUA_E_STUCK; SKUA_E_DURATION; SKUA_E_INVALID; SKUA_E_NOT_STARTED; SKUA_E_INSIDE_STEP;
 *          SKUA_E_BUSY (a simulation that another thread drives). */
SKUA_API int skua_runtime_stop(skua_runtime *runtime, uint64_t timeout_ns);

/* Releases a runtime that was never started or has stopped. Other threads may still be in a call
 * that they have begun before: it waits for those that send, complete, cancel, terminate, submit,
 * wait, run, call a process, stop, close a descriptor, read statistics, metrics or process
 * information, list processes, or drive a simulation. None may begin a call any more. Null is
 * ignored.
 * Threads: any but the runtime's own.      Blocks: until such calls have returned.
 * Returns: 0; SKUA_E_BUSY (nothing released; stop it first). */
SKUA_API int skua_runtime_destroy(skua_runtime *runtime);

/* Like skua_run, with a pointer to the payload and the size of the caller's struct. */
SKUA_API int skua_run_sized(const skua_runtime_config *config, const skua_process_type *type,
                            skua_payload *payload, size_t config_size);

/* All of the above, for a `main` that runs one process: creates a runtime, starts it, starts the
 * process, waits until that has ended, stops the runtime, which leaves others a second to end, and
 * destroys it. If something of that fails, or the process does, it says so in a line on stderr. It
 * handles no signals.
 *
 *     int main(void)
 *     {
 *         return skua_run(NULL, &server_type, skua_nothing());
 *     }
 *
 * Takes:   payload, always.      Borrows: config; null means all defaults.
 * Threads: any but a runtime's own.      Blocks: yes.
 * Returns: 0, or 1 after an error: the exit status of a program. */
static inline int skua_run(const skua_runtime_config *config, const skua_process_type *type,
                           skua_payload payload)
{
    return skua_run_sized(config, type, &payload, sizeof *config);
}

SKUA_END_DECLS

#endif
