/* SPDX-License-Identifier: MIT */
/* One run of a module: what the thread of its root (root.c) and the others (session.c) share. */
#ifndef COMMAND_RUN_SESSION_H
#define COMMAND_RUN_SESSION_H

#include <pthread.h>
#include <semaphore.h>

#include "command/run/run.h"

/* Why `drive_root` has returned. */
enum ending {
    ROOT_ENDED = 1, /* or could not be started: see `error` */
    ROOT_RESTS,     /* simulated: nothing can happen any more */
    ROOT_TIMED_OUT, /* simulated */
    ROOT_LEFT,      /* simulated: somebody wants to stop */
};

struct session {
    const skua_module *module;
    struct known_type *types; /* of replace.c, on the inspector's thread; null: none came later */
    const struct run_options *options;
    skua_runtime *runtime;
    FILE *trace;    /* where the trace of a simulation goes; null: nowhere */
    int signals;    /* readable if one has come */
    int root_ended; /* readable if `drive_root` has done its part */
    int stopped;    /* readable if `stop_all` has */

    /* Written by `drive_root` (in simulations also by `stop_all`), read after it was joined. */
    enum ending ending;
    int error;   /* why the root could not be started, or waited for */
    bool exited; /* `exit` is valid */
    skua_pid root;
    skua_exit exit;

    sem_t stop_asked; /* for a `drive_root` that drives a simulation */
    pthread_t runner;
    bool runner_joined;
    int interrupt;         /* the signal that came first, or 0 */
    uint64_t insisting_ns; /* from when on another one is a second one */
    bool timed_out;        /* the time-out has passed */
    bool told;             /* that it is stopping */
    bool complained;       /* of the seed */
};

/* Starts the root and waits for it; in a simulation, drives that. Fills `ending` and what belongs
 * to it. */
void root_run(struct session *session);

/* Simulations only; `arg` is the session. The on_exit of the runtime: nobody waits there for the
 * root in particular. */
void root_note_exit(void *arg, skua_exit *exit);

/* Likewise the may_kill of the faults: a run whose root is killed tells nothing. */
bool root_is_another(void *arg, const skua_process_snapshot *info);

/* The on_reload of the runtime: `arg` is the session. */
int replace_modules(void *arg, const char *file, const char *type_name, char *message, size_t size);

/* Forgets which types came, when nobody asks for a module any more. */
void replace_forget(struct session *session);

/* Steps of all processes so far. */
uint64_t root_count_steps(const struct session *session);

#endif
