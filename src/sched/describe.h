/* SPDX-License-Identifier: MIT */
/* What a process is called and what it waits for. Only the worker that runs a process may look at
 * that, so the process is asked: the inspector pushes a question, an event that no step sees, and
 * waits for a while. The worker that takes the event fills the description in; a process that ends
 * before that is gone. Asking costs the process a turn without a step.
 *
 * A description is the asker's and, from the push on, also that of whoever has the question. The
 * one who is done with it last frees it: the asker, when there is an answer; if it has given up
 * before, who answers. Both look under the lock of the scheduler's `descriptions`, which nobody
 * holds while waiting.
 *
 * A process in a long step, or behind one, does not answer in time. No more than
 * DESCRIBE_OPEN_MAX questions are on their way, so those that nobody answers do not pile up. */
#ifndef SKUA_SCHED_DESCRIBE_H
#define SKUA_SCHED_DESCRIBE_H

#include <skua/supervisor.h>

#include "relations/name_key.h"
#include "sched/scheduler.h"

/* Processes that are asked at a time, and for how long they are waited for. */
#define DESCRIBE_MAX     64
#define DESCRIBE_WAIT_NS (UINT64_C(20) * 1000000)
/* Questions on their way, at most. */
#define DESCRIBE_OPEN_MAX 256

/* How much of each there is room for. */
#define DESCRIBE_WAITS   20
#define DESCRIBE_NAMES   16
#define DESCRIBE_GROUPS  16
#define DESCRIBE_PEERS   8
#define DESCRIBE_FRAMES  32
#define DESCRIBE_SOCKETS 20
#define DESCRIBE_WHERE   65 /* bytes of file and line */

/* Lists are counted up to this, so that no process is kept busy by those who look. */
#define DESCRIBE_COUNT_MAX 4096

enum description_answer {
    DESCRIPTION_OPEN, /* none yet */
    DESCRIPTION_TOLD,
    DESCRIPTION_GONE, /* the process has ended */
};

/* An open call: what the process has yielded. */
struct described_wait {
    uint32_t kind;   /* as call_subject has it */
    uint32_t number; /* of the descriptor or the command; the slot of the socket */
    skua_pid peer;   /* whom a call, monitor or join is about; zero: somebody who is gone */
    uint64_t tag;
    bool has_deadline;
    uint64_t left_ns; /* until a timer is due, or the timeout of anything else */
    uint64_t period;  /* of a ticker */
    uint64_t call;    /* skua_completion.call; and of a call to a process: */
    uint32_t hops;    /* how often that was forwarded */
    skua_pid debtor;  /* who owes the answer since; a guess, until describe_ask_debtors */
    char name[NAME_SIZE];
};

/* A call that the process has to answer. */
struct described_request {
    skua_pid caller;
    uint64_t age_ns;
    bool has_deadline;
    uint64_t left_ns;
    bool is_awaited; /* the caller has not given up */
};

/* The wait of a task. */
struct described_task {
    uint32_t kind;    /* SKUA_WAIT_...; 0: this is no task, or one that has not begun */
    uint32_t wanted;  /* the type of the payload that it receives */
    bool has_timeout; /* of a receive: of a yield, see described_wait */
    uint64_t left_ns;
    char where[DESCRIBE_WHERE]; /* the end of "file:line" */
};

/* The stack of a task, or of its type, if stacks are measured (stack_use.h). */
struct described_stack {
    size_t size; /* 0: not known */
    size_t deepest;
};

struct description_details {
    uint32_t other_names;                      /* how many of the next there are; likewise below */
    char names[DESCRIBE_NAMES - 1][NAME_SIZE]; /* besides the first, newest first */
    uint32_t groups;                           /* that it is in */
    uint32_t groups_shown;
    char group_names[DESCRIBE_GROUPS][NAME_SIZE];
    uint32_t waits_shown;
    struct described_wait waits[DESCRIBE_WAITS]; /* newest first */
    uint32_t links; /* counted up to DESCRIBE_COUNT_MAX; likewise below */
    skua_pid linked[DESCRIBE_PEERS];
    uint32_t monitors;
    skua_pid watching[DESCRIBE_PEERS];
    uint32_t owed;
    uint32_t owed_shown;
    struct described_request requests[DESCRIBE_PEERS]; /* oldest first */
    uint32_t deferred;                                 /* events that it has put off */
    uint32_t socket_slots[DESCRIBE_SOCKETS];           /* newest first */
    uint32_t frames_shown;
    void *frames[DESCRIBE_FRAMES]; /* of a task, innermost first */
};

/* Children of a supervisor. */
struct described_children {
    size_t place;      /* where to begin; then, where to go on */
    bool is_told;      /* its type tells of children */
    bool is_all;       /* there are none from `place` on */
    uint64_t now;      /* when, by the clock of the report */
    uint32_t capacity; /* of the next */
    uint32_t count;
    skua_child_report rows[];
};

struct description {
    enum description_answer answer; /* under lock, as is the next */
    bool is_given_up;               /* by the asker */
    bool is_detailed;
    struct description *next; /* of worker.described */
    skua_completion about;    /* of whom it is asked whether this call is owed; or zero */
    bool owes;                /* it is */
    struct described_children *children; /* who is asked for these, and nothing else; or null */

    uint32_t names;       /* how many; counted up to DESCRIBE_COUNT_MAX */
    char name[NAME_SIZE]; /* the first that it got */
    char label[NAME_SIZE];
    uint32_t waits;             /* how many; counted up to DESCRIBE_COUNT_MAX */
    bool has_wait;              /* the next is set: some call that is not just ending */
    struct described_wait wait; /* the newest */
    struct described_task task;
    struct described_stack stack;
    uint32_t sockets;                     /* how many; counted up to DESCRIBE_COUNT_MAX */
    struct description_details details[]; /* one, if is_detailed */
};

/* ---- the inspector: one thread at a time ---- */

/* Calls of these processes, DESCRIBE_MAX at most, that were forwarded: asks those that may owe the
 * answers. `debtor` becomes zero if that is not so, or not known. */
void describe_ask_debtors(struct scheduler *sched, const skua_pid *callers,
                          struct described_wait *const *waits, uint32_t count);

/* Asks up to DESCRIBE_MAX processes and waits until all have answered, DESCRIBE_WAIT_NS at most.
 * descriptions[i] is what pids[i] has answered, or null if it has not; to be freed. */
void describe_ask(struct scheduler *sched, const skua_pid *pids, uint32_t count, bool is_detailed,
                  struct description **descriptions);

/* Asks a process for up to `capacity` of its children, from a place on. Null if it has not answered
 * in time, or there is no memory; to be freed. */
struct description *describe_ask_children(struct scheduler *sched, skua_pid pid, size_t place,
                                          uint32_t capacity);
void describe_free(struct scheduler *sched, struct description *description);

/* ---- the worker of a process ---- */

/* A question has arrived: fills its description in. describe_tell then tells the inspector. */
void describe_take(struct worker *worker, struct process *process, uint32_t index);
void describe_tell_all(struct worker *worker);
static inline void describe_tell(struct worker *worker)
{
    if (UNLIKELY(worker->described != NULL)) {
        describe_tell_all(worker);
    }
}

/* The same for a process that has ended. */
void describe_drop(struct worker *worker, uint32_t index);

#endif
