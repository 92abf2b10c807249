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
 * with SKUA_E_NOT_SIMULATED, unless the program brings a double (skua_sim_services). Sockets
 * (skua/socket.h) work between simulated hosts.
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

/* ---- faults ---- */

/* The simulated network: how it is, and what goes wrong there, in a million occasions. Zero means
 * the default, which for a rate is never. Delays are up to delay_max_ns of skua_sim_faults. */
typedef struct skua_sim_network {
    uint64_t latency_ns; /* the least that anything takes from one host to another; default 100
                            microseconds. Within a host it is a tenth of that. */
    uint64_t jitter_ns;  /* it takes up to this much longer; default: as latency_ns */
    uint32_t window;     /* bytes of a stream that its reader has not read; default 64 KiB */
    /* A connect is refused, though somebody listens. */
    uint32_t connect_refused;
    /* A connect takes longer. */
    uint32_t connect_delay;
    /* A new connection can be accepted only later. */
    uint32_t accept_delay;
    /* A listen, connect or accept: there are no descriptors. */
    uint32_t no_descriptors;
    /* A read gives some of the bytes only; the others can be read soon after. */
    uint32_t short_read;
    /* A write takes some of the bytes only; the same. */
    uint32_t short_write;
    /* A read or write: the connection is reset, for both sides. */
    uint32_t reset;
    /* A write: from now on nothing arrives any more, on either side; nobody is told. */
    uint32_t silent_drop;
    /* The end of a side's output: arrives later. */
    uint32_t eof_late;
    /* A write or connect between two hosts: what goes the same way, on whatever stream, arrives
     * later. */
    uint32_t clog;
    /* A write or connect between two hosts: they are cut off from each other, in one direction or
     * both; or one of them from all others. What is on its way then waits. */
    uint32_t partition;
    uint64_t partition_min_ns; /* that lasts at least so long, and so do pauses; default 100 ms */
    uint64_t partition_max_ns; /* and at most so long; default 2 s */
    uintptr_t reserved[4];     /* zero */
} skua_sim_network;

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
    skua_sim_network network; /* faults of sockets, and how fast these are */
    uintptr_t reserved[4];    /* zero */
} skua_sim_faults;

/* ---- doubles and the trace ---- */

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
    SKUA_SIM_CLOCK = 1,   /* time has jumped to what happens next */
    SKUA_SIM_STEP = 2,    /* step number `step` of `pid` begins, with `count` events */
    SKUA_SIM_EVENT = 3,   /* one of them: `what` is its enum skua_event_type */
    SKUA_SIM_YIELD = 4,   /* the step has asked for the command `what` */
    SKUA_SIM_CANCEL = 5,  /* the step has taken back what has `tag` */
    SKUA_SIM_EXIT = 6,    /* `pid` has ended, with `error` */
    SKUA_SIM_FAULT = 7,   /* `what` is an enum skua_sim_fault */
    SKUA_SIM_NETWORK = 8, /* something has come from `host` to `peer_host`: `what` is an enum
                             skua_sim_arrival */
    SKUA_SIM_GROUP = 10,  /* `pid` has joined a group (`what` is 1) or left it (0) */
    SKUA_SIM_BECOME = 9,  /* `pid` has changed from version `count` to version `what` of its type
                             or, with an `error`, could not */
};

/* Which of the faults in skua_sim_faults, or in its `network`, has happened. */
enum skua_sim_fault {
    SKUA_SIM_MESSAGE_DELAY = 1,   /* message_delay */
    SKUA_SIM_HANDLER_ERROR = 2,   /* handler_error */
    SKUA_SIM_SLOW_COMPLETION = 3, /* slow_completion */
    SKUA_SIM_NO_MEMORY = 4,       /* no_memory */
    SKUA_SIM_SPURIOUS_WAKE = 5,   /* spurious_wake */
    SKUA_SIM_PROCESS_KILL = 6,    /* process_kill */
    SKUA_SIM_CONNECT_REFUSED = 7, /* connect_refused; this and the following: of the network */
    SKUA_SIM_CONNECT_DELAY = 8,   /* connect_delay */
    SKUA_SIM_ACCEPT_DELAY = 9,    /* accept_delay */
    SKUA_SIM_NO_DESCRIPTORS = 10, /* no_descriptors */
    SKUA_SIM_SHORT_READ = 11,     /* short_read */
    SKUA_SIM_SHORT_WRITE = 12,    /* short_write */
    SKUA_SIM_RESET = 13,          /* reset */
    SKUA_SIM_SILENT_DROP = 14,    /* silent_drop */
    SKUA_SIM_EOF_LATE = 15,       /* eof_late */
    SKUA_SIM_CLOG = 16,           /* clog */
    SKUA_SIM_PARTITION = 17,      /* partition, for each direction; or skua_sim_partition */
    SKUA_SIM_HEAL = 18,           /* no fault, but the end of some: skua_sim_heal */
};

/* What arrives in the simulated network. */
enum skua_sim_arrival {
    SKUA_SIM_ARRIVES_CONNECT = 1, /* a connection is asked for */
    SKUA_SIM_ARRIVES_ANSWER = 2, /* the answer to that; `error` is 0, or an errno: it is not made */
    SKUA_SIM_ARRIVES_BYTES = 3,  /* `count` bytes */
    SKUA_SIM_ARRIVES_END = 4,    /* the end of input */
    SKUA_SIM_ARRIVES_RESET = 5,  /* a reset */
};

/* One line of the trace. Fields that its type does not use are zero. */
typedef struct skua_sim_record {
    uint32_t type;         /* enum skua_sim_record_type */
    uint32_t what;         /* as its type says */
    uint64_t now_ns;       /* what the virtual clock showed */
    skua_pid pid;          /* the process it is about */
    const char *type_name; /* of the process; of the handler, for its yields and faults; or null */
    uint64_t step;         /* the number of its step, from 1 */
    uint64_t count;        /* of a step's events; of the bytes that it carries, or that arrive */
    uint64_t tag;          /* of the event, yield or cancel */
    skua_pid from;         /* who sent the message */
    int32_t error;         /* of the event, or of the process that has ended; of a connect */
    uint32_t payload_type; /* of what an event or yield carries */
    const char *name;      /* that the process got first, or null; valid during the call */
    const char *label;     /* of the process, or null; the same */
    uint32_t host;         /* of what the network does: from which host ... */
    uint32_t peer_host;    /* ... to which */
    uint64_t stream;       /* on which connection, from 1; 0: none */
    const char *group;     /* that the process has joined or left; valid during the call */
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

/* ---- driving ---- */

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

/* A hash of all steps so far: PIDs, numbers, events with their payloads' bytes, yields, ends, and
 * of what the network did. Equal for two runs that did the same. (A pointer payload, the news of a
 * child and the report of a supervisor count without their bytes, which are addresses.) 0 if the
 * runtime is not simulated, or nothing has happened yet.
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

/* ---- hosts ---- */

/* Sockets (skua/socket.h) in a simulation connect hosts, which are numbers from 1 to
 * SKUA_SIM_HOSTS_MAX. A process is on the host of the process that has started it; those that a
 * thread starts are on host 1, unless skua_sim_host_submit has started them. A host exists once it
 * had a process; host 1 always does.
 *
 * Host n has the address 10.0.0.n. 127.0.0.1 and [::1] are the own host; 0.0.0.0 and [::] listen on
 * all addresses of the own host; names of Unix sockets are local to a host. Nothing else can be
 * reached. Bytes take a while, come in order, and wait in the writer's window until they are read.
 * There are no packets, and nothing is lost but by a reset or a silent drop. An attempt to connect
 * ends after 127 s with SKUA_E_TIMEOUT, as on Linux. There are no descriptors: skua_socket_adopt
 * and skua_socket_detach return SKUA_E_NOT_SIMULATED. */
#define SKUA_SIM_HOSTS_MAX 254

/* Like skua_sim_host_submit, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_sim_host_submit_from(skua_runtime *runtime, uint32_t host,
                                                      const skua_process_type *type,
                                                      skua_payload *payload, skua_pid *pid);

/* Starts a process on a host, otherwise as skua_process_submit does; also inside a step.
 * Takes:   payload, always.      Gives: *pid (may be null).
 * Threads: as skua_sim_faults_set.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, not simulated, or not such a number); SKUA_E_BUSY (another
 *          thread drives); an error of skua_process_submit. */
static inline SKUA_NODISCARD int skua_sim_host_submit(skua_runtime *runtime, uint32_t host,
                                                      const skua_process_type *type,
                                                      skua_payload payload, skua_pid *pid)
{
    return skua_sim_host_submit_from(runtime, host, type, &payload, pid);
}

/* Cuts host b off from what host a sends: what is on its way stays where it is, until skua_sim_heal
 * or for ever; with both_ways, also what b sends to a. 0 for b: all other hosts there are.
 * Connections stay, but nothing arrives. Within a host nothing is ever cut off.
 * Threads: as skua_sim_faults_set.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, not simulated, not such a number, or a is b); SKUA_E_BUSY
 *          (another thread drives); SKUA_E_NO_MEMORY. */
SKUA_API int skua_sim_partition(skua_runtime *runtime, uint32_t a, uint32_t b, bool both_ways);

/* Ends partitions and clogs between two hosts, in both directions, also those that faults have
 * made: what has waited arrives now. 0: all hosts, for either.
 * Threads: as skua_sim_faults_set.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, not simulated, not such a number, or a is b); SKUA_E_BUSY
 *          (another thread drives). */
SKUA_API int skua_sim_heal(skua_runtime *runtime, uint32_t a, uint32_t b);

/* Sets the latency between two hosts, in both directions, in place of latency_ns and jitter_ns,
 * for what is sent from now on; 0: as these say. a may be b: within a host.
 * Threads: as skua_sim_faults_set.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, not simulated, or not such a number); SKUA_E_DURATION;
 *          SKUA_E_BUSY (another thread drives); SKUA_E_NO_MEMORY. */
SKUA_API int skua_sim_latency_set(skua_runtime *runtime, uint32_t a, uint32_t b,
                                  uint64_t latency_ns);

/* ---- records as text ---- */

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
