/* SPDX-License-Identifier: MIT */
/* The simulator: the same processes on one thread, in virtual time, with every choice made from a
 * seed. A runtime whose configuration has `sim` set starts no threads; it runs while somebody calls
 * skua_sim_run, skua_sim_step, skua_process_run, skua_process_wait or skua_runtime_stop, on the
 * thread that calls. Everything else of the interface works as always.
 *
 * The same seed gives the same run, to the last event, on any machine: which process is next, how
 * its events are cut into steps, which faults come when. Time stands still while something can run,
 * but for `step_ns` per turn, and otherwise jumps to the next thing that happens. So a test runs
 * hours in seconds, and a bug that a seed has found is there again in the next run.
 *
 * That holds as long as the program keeps its side: steps take time and chance from their context
 * only, order nothing by addresses, and only one thread calls. Calls from other threads are safe
 * but make runs differ. Handlers must say that they may be called here, or bring a double (see
 * skua/command.h); so must blocking pools (skua/blocking.h). Waiting for a descriptor completes
 * with SKUA_E_NOT_SIMULATED, unless the program brings a double (skua_sim_services).
 *
 * skua_process_run and skua_process_wait have two more errors here, after which the process lives
 * on: SKUA_E_AT_REST (nothing can happen any more, and no timeout was given) and SKUA_E_BUSY
 * (another thread drives). skua_runtime_stop returns SKUA_E_BUSY likewise. Timeouts are in virtual
 * time. */
#ifndef SKUA_SIM_H
#define SKUA_SIM_H

#include <skua/blocking.h>
#include <skua/command.h>
#include <skua/error.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* What the clock shows when a simulation starts. */
#define SKUA_SIM_START_NS SKUA_SECOND

/* How often things go wrong, in a million occasions; 0: never. */
typedef struct skua_sim_faults {
    /* A message from one process to another arrives later. What the one sends the other stays in
     * order, cancel events included. It has its place in the mailbox from the start. */
    uint32_t message_delay;
    /* A command ends with SKUA_E_INJECTED, and its handler is not called. Timers are spared. */
    uint32_t handler_error;
    /* What a handler completes at once comes later; a function on a blocking pool takes longer. */
    uint32_t slow_completion;
    /* During a turn, the runtime's allocator has no memory. The pools of processes and events take
     * theirs in large pieces, so most occasions are a program's own. */
    uint32_t no_memory;
    /* Before a turn: a process that waits is queued for no reason. Its step is not called. */
    uint32_t spurious_wake;
    /* Before a turn: a process is terminated. */
    uint32_t process_kill;
    /* Delays are up to this long; default 10 ms. */
    uint64_t delay_max_ns;
    /* Says whether a process may be terminated; null: any may. Must not call skua_ functions. */
    bool (*may_kill)(void *arg, const skua_process_snapshot *process);
    void *may_kill_arg;
    uintptr_t reserved[4]; /* zero */
} skua_sim_faults;

/* Doubles for what a simulation cannot have: descriptors, and functions that block. Each returns 0
 * if it is done at once, a negative error, or SKUA_PENDING if it completes later, by
 * skua_sim_complete_after or skua_command_complete. Leave what you do not set zero.
 * Threads: the one that drives the simulation.      Must not call what waits. */
typedef struct skua_sim_services {
    /* Instead of waiting until a descriptor, which need not exist, is readable or writable. Null:
     * waits complete with SKUA_E_NOT_SIMULATED. */
    int (*wait)(void *arg, skua_completion completion, int fd, bool for_writing);
    /* Instead of running a function on a blocking pool, whether or not that is sim_safe; may take
     * the input, and writes *result. Null: functions of pools that are sim_safe run, the others
     * complete with SKUA_E_NOT_SIMULATED. */
    int (*blocking)(void *arg, skua_completion completion, skua_pool pool,
                    skua_blocking_fn *function, skua_payload *input, skua_payload *result);
    void *arg;             /* handed to both */
    uintptr_t reserved[4]; /* zero */
} skua_sim_services;

/* What a record of the trace is about. */
enum skua_sim_record_type {
    SKUA_SIM_CLOCK = 1,  /* time has jumped to what happens next */
    SKUA_SIM_STEP = 2,   /* step number `step` of `pid` begins, with `count` events */
    SKUA_SIM_EVENT = 3,  /* one of them: `what` is its enum skua_event_type */
    SKUA_SIM_YIELD = 4,  /* the step has asked for the command `what` */
    SKUA_SIM_CANCEL = 5, /* the step has taken back what has `tag` */
    SKUA_SIM_EXIT = 6,   /* `pid` has ended, with `error` */
    SKUA_SIM_FAULT = 7,  /* `what` is an enum skua_sim_fault */
};

/* Which of the faults in skua_sim_faults has happened. */
enum skua_sim_fault {
    SKUA_SIM_MESSAGE_DELAY = 1,   /* message_delay */
    SKUA_SIM_HANDLER_ERROR = 2,   /* handler_error */
    SKUA_SIM_SLOW_COMPLETION = 3, /* slow_completion */
    SKUA_SIM_NO_MEMORY = 4,       /* no_memory */
    SKUA_SIM_SPURIOUS_WAKE = 5,   /* spurious_wake */
    SKUA_SIM_PROCESS_KILL = 6,    /* process_kill */
};

/* One line of the trace. Fields that its type does not use are zero. */
typedef struct skua_sim_record {
    uint32_t type;         /* enum skua_sim_record_type */
    uint32_t what;         /* as its type says */
    uint64_t now_ns;       /* what the virtual clock showed */
    skua_pid pid;          /* the process it is about */
    const char *type_name; /* of the process; of the handler, for its yields and faults; or null */
    uint64_t step;         /* the number of its step, from 1 */
    uint64_t count;        /* of a step's events; of the bytes that an event or yield carries */
    uint64_t tag;          /* of the event, yield or cancel */
    skua_pid from;         /* who sent the message */
    int32_t error;         /* of the event, or of the process that has ended */
    uint32_t payload_type; /* of what an event or yield carries */
    const char *name;      /* that the process got first, or null; valid during the call */
    const char *label;     /* of the process, or null; the same */
} skua_sim_record;

/* What a simulation is made with. Zero means the default, in every field. The seed is that
 * of the runtime's configuration. */
typedef struct skua_sim_config {
    /* How much time a turn of a process takes; default 1 microsecond. It is what ends a process
     * that continues until some time has come. */
    uint64_t step_ns;
    skua_sim_faults faults; /* none by default */
    /* Called for every record, as things happen.
     * Threads: the one that drives the simulation.      Must not call skua_ functions other than
     * skua_sim_record_format. */
    void (*on_record)(void *arg, const skua_sim_record *record);
    void *on_record_arg;
    skua_sim_services services; /* doubles; none by default */
    uintptr_t reserved[4];      /* zero */
} skua_sim_config;

/* Runs everything that begins before an instant of the virtual clock; SKUA_FOREVER: until nothing
 * can happen any more. Then the clock shows that instant, if it is not SKUA_FOREVER, or the end of
 * the last turn if that is later. A run in several pieces is the same run as one in one piece.
 * Threads: any but those of the runtime (that is, not inside a step), one at a time.
 * Blocks:  for as long as the steps take.
 * Returns: 1 (more will happen later); 0 (nothing can happen any more, unless it comes from
 *          outside); SKUA_E_INVALID (null, or a runtime that is not simulated); SKUA_E_NOT_STARTED;
 *          SKUA_E_STOPPED; SKUA_E_INSIDE_STEP; SKUA_E_BUSY (another thread drives). */
SKUA_API int skua_sim_run(skua_runtime *runtime, uint64_t until_ns);

/* Does the next thing: one turn of a process, or a jump of the clock to whatever comes next.
 * Threads: as skua_sim_run.      Blocks: for as long as the step takes.
 * Returns: 1 (done); 0 (there was nothing to do); an error, as skua_sim_run. */
SKUA_API int skua_sim_step(skua_runtime *runtime);

/* What the virtual clock shows; 0 if the runtime is not simulated.
 * Threads: any.      Blocks: never. */
SKUA_API uint64_t skua_sim_now(skua_runtime *runtime);

/* A hash of all steps so far: PIDs, numbers, events with their payloads' bytes, yields, ends. Equal
 * for two runs that did the same. (A pointer payload counts by its type alone.) 0 if the runtime is
 * not simulated, or nothing has happened yet.
 * Threads: any, while nobody drives. */
SKUA_API uint64_t skua_sim_hash(skua_runtime *runtime);

/* Switches the faults of a simulation from now on, so that a test can break things, let them settle
 * and then check; {0} switches all off. What is delayed already still comes late. The same switches
 * at the same points give the same run.
 * Borrows: faults.      Threads: the one that drives the simulation, also inside a step or a
 * handler; any while nobody drives.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, not simulated, or a rate or delay that skua_runtime_create
 *          would refuse); SKUA_E_BUSY (another thread drives). On error the faults stay as they
 *          were. */
SKUA_API int skua_sim_faults_set(skua_runtime *runtime, const skua_sim_faults *faults);

/* Completes a command after a while of virtual time: for doubles of handlers that take time.
 * Takes:   result, always.      Threads: the one that drives the simulation.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, not simulated, error is positive, or delay_ns is more than
 *          SKUA_DURATION_MAX); SKUA_E_NOT_STARTED; SKUA_E_STOPPED; SKUA_E_NO_MEMORY. Whether it
 *          comes too late shows only then. */
SKUA_API int skua_sim_complete_after(skua_runtime *runtime, skua_completion completion,
                                     uint64_t delay_ns, int error, skua_payload result);

/* Like skua_sim_record_format, with the size of the caller's struct. */
SKUA_API int skua_sim_record_format_sized(const skua_sim_record *record, char *text, size_t size,
                                          size_t record_size);

/* Writes a record as one line of text without a line end, as snprintf does.
 * Borrows: record.      Threads: any.      Blocks: never.
 * Returns: the length of the text, which may be more than fits; SKUA_E_INVALID. */
static inline int skua_sim_record_format(const skua_sim_record *record, char *text, size_t size)
{
    return skua_sim_record_format_sized(record, text, size, sizeof *record);
}

SKUA_END_DECLS

#endif
