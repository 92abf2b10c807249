/* SPDX-License-Identifier: MIT */
/* A supervisor: an ordinary process on the public interface, which any program could have. It never
 * waits: its steps react to events, and all that it knows is in a table of children.
 *
 * A child is in one state at a time (enum skua_child_state):
 *
 *             launch                 skua_ready, or no start_ns
 *   STOPPED ----------> STARTING -----------------------------> RUNNING
 *    ^  ^                 |  too late                             |
 *    |  |    halt         v                                       |
 *    |  +------------- STOPPING <---------------------------------+ halt
 *    |                    |                                       |
 *    |                    | its start failed                      | ends by itself
 *    |  back-off is over  v                                       |
 *    +---------------- WAITING <----------------------------------+ recover
 *
 * Two numbers drive what the children of the list do together:
 *   - `doomed`: how many of them must end, last to first, before anything else happens;
 *   - `front`: all children before it have been started; it is the next.
 * A child that fails under ALL or REST dooms others and moves `front` back. If another one fails
 * while that is going on, it does the same to the same two numbers: it joins, and nothing nests.
 *
 * Each file is about one subject:
 *   specification.c  is it right?             roster.c    the table
 *   launch.c         starting                 halt.c      stopping
 *   recover.c        what a failure leads to  backoff.c   how long to wait, and how often
 *   overview.c       reports                  journal.c   lines of the log
 *   supervisor.c     the process: which event goes where */
#ifndef SKUA_SUPERVISE_SUPERVISOR_H
#define SKUA_SUPERVISE_SUPERVISOR_H

#include <skua/clock.h>
#include <skua/name.h>
#include <skua/runtime.h>
#include <skua/supervisor.h>

/* No child. */
#define NOBODY UINT32_MAX

/* When children were started again lately, for a budget. */
struct spending {
    uint64_t *times; /* a ring of as many as the budget allows; null: there is no budget */
    uint32_t count;  /* of them in use */
    uint32_t next;   /* the oldest, once all are */
};

struct child {
    const skua_child *spec; /* its line in the specification, or its template; null: a free place */
    skua_payload start;     /* of a template's child: how it was started; otherwise empty */
    skua_pid pid;           /* none: it does not live */
    enum skua_child_state state;
    bool is_dynamic;  /* a template's child */
    bool is_over;     /* has ended for good */
    bool is_doomed;   /* lives and must end, because others do */
    bool is_unarmed;  /* there was no memory for its timer */
    bool was_refused; /* its last start, with SKUA_E_STOPPED */
    int failure;      /* why its start has failed, if it lived then; otherwise 0 */
    int last_error;
    uint32_t failures;   /* in a row: the step of its back-off */
    uint64_t restarts;   /* how often it was started again */
    uint64_t started_at; /* 0: never */
    uint64_t ready_at;   /* since when it has been ready; 0: it has not */
    uint64_t next_start; /* while it waits */
    uint64_t timer;      /* the tag of its timer, or 0 */
    uint64_t timer_ns;   /* how long that takes */
    struct spending spent;
    uint32_t next_free; /* of a free place */
};

struct supervisor {
    const skua_supervisor *spec;
    skua_context *ctx; /* of the step that runs */

    struct child *children; /* those of the list, in order, then those of templates */
    uint32_t used;          /* places ever used */
    uint32_t capacity;
    uint32_t first_free; /* place for a template's child, or NOBODY */
    uint32_t *by_pid;    /* finds those that live (roster.c) */

    uint32_t front;       /* of the list: the next to be started */
    uint32_t doomed;      /* children */
    uint32_t dynamic;     /* template's children that live */
    uint32_t waiting;     /* children of the list, for their back-off */
    uint32_t halt_at;     /* children of the list from here on need not be looked at to stop one */
    uint32_t significant; /* children of the list that have not ended for good */
    uint32_t unarmed;     /* children without the timer that they need */
    uint32_t serial;      /* of the last timer */
    struct spending spent;

    bool is_ready;  /* has started all once */
    bool is_ending; /* then: */
    int exit_error;
    skua_pid cause; /* who failed, if it ends with an error */

    void (*on_log)(void *arg, const skua_log *log);
    void *on_log_arg;
};

static inline bool is_orderly(int error)
{
    return error == 0 || error == SKUA_E_STOPPED || error == SKUA_E_CANCELLED;
}

static inline uint32_t listed(const struct supervisor *self)
{
    return (uint32_t)self->spec->child_count;
}

/* ---- specification.c ---- */

/* As skua_supervisor_check, of one that is not null. */
int specification_check(const skua_supervisor *spec, char *text, size_t size);

/* ---- roster.c ---- */

/* Makes the table with the children of the list. */
int roster_init(struct supervisor *self, skua_context *ctx);

/* Adds a template's child; an error without memory. Moves the table. */
int roster_add(struct supervisor *self, const skua_child *spec, struct child **added);
void roster_remove(struct supervisor *self, struct child *child);

/* The child lives, as `pid`; it does not any more. */
void roster_live(struct supervisor *self, struct child *child, skua_pid pid);
void roster_die(struct supervisor *self, struct child *child);
struct child *roster_find(const struct supervisor *self, skua_pid pid);

/* Timers: one for each child, in place of the one that it had. If there is no memory, another try
 * is made at the end of each step. */
void roster_set_timer(struct supervisor *self, struct child *child, uint64_t duration_ns);
void roster_clear_timer(struct supervisor *self, struct child *child);
void roster_retry_timers(struct supervisor *self);
/* The child whose timer has ended, or null: it has another one by now. */
struct child *roster_take_timer(struct supervisor *self, uint64_t tag);

/* ---- launch.c ---- */

/* Starts a child now. */
void launch_child(struct supervisor *self, struct child *child);

/* Starts those of the list whose turn it is. */
void launch_next(struct supervisor *self);

/* Somebody else has started a template's child. */
void launch_adopt(struct supervisor *self, skua_event *event);

/* A child is ready; or has not been in time. */
void launch_ready(struct supervisor *self, struct child *child);
void launch_too_late(struct supervisor *self, struct child *child);

/* ---- halt.c ---- */

/* Begins to stop this supervisor, which then ends with this error. */
void halt_begin(struct supervisor *self, int error, skua_pid cause);

/* Asks a child to end; ends it, if that was not in time. */
void halt_child(struct supervisor *self, struct child *child);
void halt_too_late(struct supervisor *self, const struct child *child);

/* A child must end because others do. */
void halt_doom(struct supervisor *self, struct child *child);

/* Stops the doomed one whose turn it is. */
void halt_next(struct supervisor *self);

/* ---- recover.c ---- */

/* A child that lived has ended: `cause` is who failed first. */
void recover_from_end(struct supervisor *self, struct child *child, int error, skua_pid cause);

/* A child has failed, or could not be started: acts on that. */
void recover_child(struct supervisor *self, struct child *child, int error, skua_pid pid,
                   skua_pid cause);

/* Has a child wait before it is started; the time is over. */
void recover_later(struct supervisor *self, struct child *child, uint64_t delay_ns);
void recover_now(struct supervisor *self, struct child *child);

/* ---- backoff.c ---- */

/* How long to wait before the next start, after so many failures in a row before this one. */
uint64_t backoff_delay(const skua_backoff *backoff, uint32_t failures, uint64_t random);

/* The longest wait, give or take a quarter. */
uint64_t backoff_max(const skua_backoff *backoff);

/* For how long a child must run to begin anew. */
uint64_t backoff_stable(const skua_backoff *backoff);

/* Takes the memory that counting needs, ahead of the first failure: by then there may be none, and
 * a budget that is not kept is no budget. Returns 0, or why there is none. */
int backoff_reserve(skua_context *ctx, const skua_budget *budget, struct spending *spent);

/* Whether a budget allows one restart more at this instant; counts it. */
bool backoff_spend(const skua_budget *budget, struct spending *spent, uint64_t now);

/* ---- overview.c ---- */

/* What a child is called. */
const char *overview_name(const struct child *child);
const skua_process_type *overview_type(const struct child *child);

/* Tells of the child at a place, as skua_children_fn. */
int overview_child(const struct supervisor *self, size_t place, skua_child_report *child);

/* Answers a call. */
void overview_answer(struct supervisor *self, const skua_event *event);

/* ---- journal.c ---- */

void journal_wrong(const struct supervisor *self, skua_pid pid, const char *text);
void journal_restart(const struct supervisor *self, const struct child *child, skua_pid pid,
                     int error, uint64_t delay_ns, uint32_t others);
/* A child that lives is stopped, and started again unless it must not be, because another is. */
void journal_restart_with(const struct supervisor *self, const struct child *child,
                          const struct child *failed);
void journal_over(const struct supervisor *self, const struct child *child, skua_pid pid,
                  int error);
void journal_give_up(const struct supervisor *self, const struct child *child, skua_pid pid,
                     int error, const skua_budget *budget);
/* A template's child that cannot be supervised. */
void journal_lost(const struct supervisor *self, const skua_child *template, skua_pid pid,
                  int error);

#endif
