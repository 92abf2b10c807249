/* SPDX-License-Identifier: MIT */
/* `skua run`: the runtime of a module, from start to stop.
 *
 * The main thread receives the signals, by a descriptor, and so always can: it never calls what
 * waits for a process. Two threads of its own do that. The first, `drive_root`, starts the root and
 * waits for it (in the simulator it is the one that drives); the second, `stop_all`, stops the
 * runtime. Each says that it is done by a descriptor, too.
 *
 * The signals are blocked before any other thread exists, so that all inherit that. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "command/run/run.h"
#include "command/support.h"

/* What processes get to finish after --timeout. */
#define TIMEOUT_GRACE_NS (5 * SKUA_SECOND)

/* Of virtual time, between two looks at what else is to be done. */
#define SLICE_MIN (100 * SKUA_MICROSECOND)
#define SLICE_MAX (3600 * SKUA_SECOND)

/* Signals that come closer together are one. */
#define SIGNAL_APART_NS (200 * SKUA_MILLISECOND)

/* Why `drive_root` has returned. */
enum ending {
    ROOT_ENDED = 1, /* or could not be started: see `error` */
    ROOT_RESTS,     /* simulated: nothing can happen any more */
    ROOT_TIMED_OUT, /* simulated */
    ROOT_LEFT,      /* simulated: somebody wants to stop */
};

struct session {
    const skua_module *module;
    const struct run_options *options;
    skua_runtime *runtime;
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
};

/* What the main thread has waited for. */
enum news { NEWS_EVENT, NEWS_SIGNAL, NEWS_TIME };

/* ---- the root ---- */

static void raise_event(int event)
{
    const uint64_t one = 1;
    if (write(event, &one, sizeof one) != (ssize_t)sizeof one) {
        abort(); /* it is written to once, and an eventfd takes that */
    }
}

/* The arguments as payloads; null if there is no memory. */
static skua_payload *copy_arguments(struct session *session)
{
    const struct run_options *options = session->options;
    skua_payload *input = calloc(options->argument_count + 1, sizeof input[0]);
    for (size_t i = 0; input != NULL && i < options->argument_count; i++) {
        const char *argument = options->arguments[i];
        if (skua_payload_copy(session->runtime, 0, argument, strlen(argument) + 1, &input[i]) !=
            0) {
            while (i > 0) {
                skua_payload_drop(&input[--i]);
            }
            free(input);
            input = NULL;
        }
    }
    return input;
}

/* Simulations only: nobody waits there for the root in particular. */
static void note_exit(void *arg, skua_exit *exit)
{
    struct session *session = arg;
    if (skua_pid_equal(exit->pid, session->root)) {
        session->exit = *exit;
        session->exit.result = skua_payload_take(&exit->result);
        session->exited = true;
    }
}

/* A slice of virtual time that takes neither so little real time that slices cost more than what is
 * in them, nor so much that a signal would wait for its end. */
static uint64_t next_slice(uint64_t slice, uint64_t took_ns)
{
    if (took_ns < 5 * SKUA_MILLISECOND && slice < SLICE_MAX) {
        return 2 * slice;
    }
    return took_ns > 20 * SKUA_MILLISECOND && slice > SLICE_MIN ? slice / 2 : slice;
}

/* Looks up from time to time: whether to stop, and whether there is anything to come. (A wait
 * without a time-out would tell the latter by itself.) */
static enum ending drive(struct session *session)
{
    uint64_t slice = SLICE_MIN;
    for (uint64_t left = session->options->timeout_ns;;) {
        const uint64_t begin = clock_ns();
        session->error =
            skua_process_wait(session->runtime, session->root, left < slice ? left : slice, NULL);
        if (session->error != SKUA_E_TIMEOUT) {
            return ROOT_ENDED;
        }
        session->error = 0;
        if (sem_trywait(&session->stop_asked) == 0) {
            return ROOT_LEFT;
        }
        if (left <= slice) {
            return ROOT_TIMED_OUT;
        }
        if (skua_sim_run(session->runtime, skua_sim_now(session->runtime)) == 0) {
            return ROOT_RESTS;
        }
        left -= slice;
        slice = next_slice(slice, clock_ns() - begin);
    }
}

static void simulate_root(struct session *session, skua_payload *input)
{
    const struct run_options *options = session->options;
    session->ending = ROOT_ENDED;
    session->error = skua_process_submit(session->runtime, session->module->root, options->method,
                                         input, options->argument_count, &session->root);
    if (session->error == 0) {
        session->ending = drive(session);
    }
}

static void execute_root(struct session *session, skua_payload *input)
{
    const struct run_options *options = session->options;
    session->ending = ROOT_ENDED;
    session->error = skua_process_run(session->runtime, session->module->root, options->method,
                                      input, options->argument_count, &session->exit);
    session->exited = session->error == 0;
}

static void *drive_root(void *arg)
{
    struct session *session = arg;
    skua_payload *input = copy_arguments(session);
    if (input == NULL) {
        session->ending = ROOT_ENDED;
        session->error = SKUA_E_NO_MEMORY;
    } else if (session->options->sim) {
        simulate_root(session, input);
    } else {
        execute_root(session, input);
    }
    free(input);
    raise_event(session->root_ended);
    return NULL;
}

static void join_runner(struct session *session)
{
    if (!session->runner_joined) {
        (void)pthread_join(session->runner, NULL);
        session->runner_joined = true;
    }
}

/* A simulation has to be left before it can be stopped; on threads the stop is what ends the
 * root. A function on a blocking pool can make the stop return early. */
static void *stop_all(void *arg)
{
    struct session *session = arg;
    if (session->options->sim) {
        (void)sem_post(&session->stop_asked);
        join_runner(session);
    }
    while (skua_runtime_stop(session->runtime, SKUA_FOREVER) == SKUA_E_STUCK) {
    }
    join_runner(session);
    raise_event(session->stopped);
    return NULL;
}

/* ---- the main thread waits ---- */

static uint64_t time_after(uint64_t duration_ns)
{
    const uint64_t now = clock_ns();
    return duration_ns < SKUA_FOREVER - now ? now + duration_ns : SKUA_FOREVER;
}

/* Waits for a descriptor to become readable, until `deadline` at most; returns poll's result. */
static int wait_until(struct pollfd *fds, nfds_t count, uint64_t deadline)
{
    const uint64_t now = clock_ns();
    const uint64_t left = deadline > now ? deadline - now : 0;
    const struct timespec timeout = {.tv_sec = (time_t)(left / SKUA_SECOND),
                                     .tv_nsec = (long)(left % SKUA_SECOND)};
    return ppoll(fds, count, deadline == SKUA_FOREVER ? NULL : &timeout, NULL);
}

/* Waits for an event, a signal or the deadline. If there are several, in this order. */
static enum news wait_for_news(struct session *session, int event, uint64_t deadline, int *signal)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = event, .events = POLLIN},
                               {.fd = session->signals, .events = POLLIN}};
        const int ready = wait_until(fds, 2, deadline);
        struct signalfd_siginfo info;
        if (ready == 0) {
            return NEWS_TIME;
        }
        if (ready > 0 && fds[0].revents != 0) {
            return NEWS_EVENT;
        }
        if (ready > 0 && read(session->signals, &info, sizeof info) == (ssize_t)sizeof info) {
            *signal = (int)info.ssi_signo;
            return NEWS_SIGNAL;
        }
    }
}

/* ---- stopping ---- */

static void tell_progress(struct session *session)
{
    skua_stats stats;
    if (skua_stats_read(session->runtime, &stats, NULL, 0) < 0) {
        return;
    }
    const char *hint = session->told ? "" : " (Ctrl-C ends at once)";
    session->told = true;
    (void)failure(RUN, "stopping, %" PRIu64 " process%s left%s", stats.live,
                  stats.live == 1 ? "" : "es", hint);
}

static void note_signal(struct session *session, int signal)
{
    session->interrupt = signal;
    session->insisting_ns = time_after(SIGNAL_APART_NS);
}

/* The first signal is a request, as the end of the root is; who insists gets their way. (The
 * command `timeout` signals a program, and at once its group: that is one request.) */
static void take_signal(struct session *session, int signal)
{
    if (session->interrupt != 0 && clock_ns() < session->insisting_ns) {
        return;
    }
    if (session->interrupt != 0 || session->told) {
        report_survivors(session->runtime, "ended at once");
        _exit(128 + signal);
    }
    note_signal(session, signal);
}

static void wait_for_stop(struct session *session)
{
    /* Who limits the time wants an end. */
    const uint64_t end = session->timed_out ? time_after(TIMEOUT_GRACE_NS) : SKUA_FOREVER;
    for (;;) {
        int signal = 0;
        switch (wait_for_news(session, session->stopped, time_after(SKUA_SECOND), &signal)) {
        case NEWS_EVENT:
            return;
        case NEWS_TIME:
            if (clock_ns() >= end) {
                report_survivors(session->runtime, "not finished 5s after --timeout, and ended");
                _exit(STATUS_FAILURE);
            }
            tell_progress(session);
            break;
        case NEWS_SIGNAL:
            take_signal(session, signal);
            tell_progress(session);
            break;
        }
    }
}

static bool stop(struct session *session)
{
    pthread_t stopper;
    if (pthread_create(&stopper, NULL, stop_all, session) != 0) {
        return false;
    }
    wait_for_stop(session);
    (void)pthread_join(stopper, NULL);
    return true;
}

/* ---- one run ---- */

/* Prints at once what the root has brought, even if other processes take long to stop. */
static void print_result(struct session *session)
{
    if (session->exited && session->exit.error == 0) {
        report_result(&session->exit.result);
        skua_payload_drop(&session->exit.result);
        (void)fflush(stdout);
    }
}

/* Returns when there is a reason to stop. */
static void wait_for_root(struct session *session)
{
    /* The simulation has a clock of its own. */
    const uint64_t timeout = session->options->sim ? SKUA_FOREVER : session->options->timeout_ns;
    int signal = 0;
    switch (wait_for_news(session, session->root_ended, time_after(timeout), &signal)) {
    case NEWS_EVENT:
        join_runner(session);
        session->timed_out = session->ending == ROOT_TIMED_OUT;
        print_result(session);
        break;
    case NEWS_SIGNAL:
        note_signal(session, signal);
        break;
    case NEWS_TIME:
        session->timed_out = true;
        break;
    }
    if (session->interrupt != 0 && isatty(STDERR_FILENO)) {
        tell_progress(session);
    }
}

/* Why the root, which still lives, is asked to finish: 0, or the status after a complaint. */
static int tell_why(const struct session *session)
{
    const char *name = session->module->name;
    if (session->interrupt != 0) {
        return 128 + session->interrupt;
    }
    if (session->timed_out) {
        return failure(RUN, "%s: the time allowed by --timeout has passed", name);
    }
    if (session->ending == ROOT_RESTS) {
        return failure(RUN,
                       "%s: the simulation has come to rest: the root waits for something "
                       "that can never happen",
                       name);
    }
    return 0;
}

/* After a request to stop, failing with just that is what a process is expected to do. */
static int tell_failure(const struct session *session, bool asked)
{
    const int error = session->error != 0 ? session->error : session->exit.error;
    if (error == 0 || (asked && (error == SKUA_E_STOPPED || error == SKUA_E_TERMINATED))) {
        return 0;
    }
    return report_error(session->module, error);
}

static int use_runtime(struct session *session)
{
    if (pthread_create(&session->runner, NULL, drive_root, session) != 0) {
        return failure(RUN, "the system refused to create a thread");
    }
    wait_for_root(session);
    const int why = tell_why(session);
    if (!stop(session)) {
        _exit(failure(RUN, "the system refused to create a thread"));
    }
    print_result(session);
    const int failed = tell_failure(session, why != 0);
    if (session->interrupt != 0) {
        return 128 + session->interrupt;
    }
    return why != 0 ? why : failed;
}

/* ---- the runtime ---- */

static int create(struct session *session)
{
    const struct run_options *options = session->options;
    const skua_sim_config sim = {0};
    const skua_runtime_config config = {
        .worker_count = options->workers,
        .seed = options->seed,
        .sim = options->sim ? &sim : NULL,
        .on_exit = options->sim ? note_exit : NULL,
        .on_exit_arg = session,
        .inspect = !options->sim,
        .crash_report = true,
    };
    const int error = skua_runtime_create(&session->runtime, &config);
    return error == 0 ? module_register(session->module, session->runtime)
                      : failure(RUN, "cannot make a runtime: %s", skua_error_text(error));
}

static int start(struct session *session)
{
    const int status = create(session);
    int error = status == 0 ? skua_runtime_start(session->runtime) : 0;
    if (error == SKUA_E_INSPECT) { /* no reason to keep anybody from running a program */
        char folder[PATH_MAX] = "";
        (void)skua_inspect_directory(folder, sizeof folder);
        (void)failure(RUN, "warning: no socket in %s; `skua top` will not see this program",
                      folder);
        (void)setenv("SKUA_INSPECT", "0", 1);
        error = skua_runtime_start(session->runtime);
    }
    return error != 0 ? failure(RUN, "cannot start: %s", skua_error_text(error)) : status;
}

static int create_and_use_runtime(struct session *session)
{
    int status = start(session);
    if (status == 0) {
        status = use_runtime(session);
        if (session->options->stats) {
            report_stats(session->runtime);
        }
        (void)skua_runtime_stop(session->runtime, SKUA_FOREVER); /* if that got nowhere */
    }
    (void)skua_runtime_destroy(session->runtime);
    return status;
}

static void choose_signals(sigset_t *signals)
{
    (void)sigemptyset(signals);
    (void)sigaddset(signals, SIGINT);
    (void)sigaddset(signals, SIGTERM);
}

void session_hold_signals(void)
{
    sigset_t signals;
    choose_signals(&signals);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

int session_run(const skua_module *module, const struct run_options *options)
{
    struct session session = {.module = module, .options = options};
    sigset_t signals;
    choose_signals(&signals);
    session.signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    session.root_ended = eventfd(0, EFD_CLOEXEC);
    session.stopped = eventfd(0, EFD_CLOEXEC);
    (void)sem_init(&session.stop_asked, 0, 0);
    int status = STATUS_FAILURE;
    if (session.signals < 0 || session.root_ended < 0 || session.stopped < 0) {
        (void)failure(RUN, "no descriptors for signals and events: %s", strerror(errno));
    } else {
        status = create_and_use_runtime(&session);
    }
    (void)close(session.signals);
    (void)close(session.root_ended);
    (void)close(session.stopped);
    (void)sem_destroy(&session.stop_asked);
    return status;
}
