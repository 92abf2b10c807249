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

#include "command/run/session.h"
#include "command/support.h"

/* What processes get to finish after --timeout. */
#define TIMEOUT_GRACE_NS (5 * SKUA_SECOND)

/* Signals that come closer together are one. */
#define SIGNAL_APART_NS (200 * SKUA_MILLISECOND)

/* What the main thread has waited for. */
enum news { NEWS_EVENT, NEWS_SIGNAL, NEWS_TIME };

/* ---- the other threads ---- */

static void raise_event(int event)
{
    const uint64_t one = 1;
    if (write(event, &one, sizeof one) != (ssize_t)sizeof one) {
        abort(); /* it is written to once, and an eventfd takes that */
    }
}

static void *drive_root(void *arg)
{
    struct session *session = arg;
    root_run(session);
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
    seeds_erase_progress();
    (void)failure(RUN, "stopping, %" PRIu64 " process%s left%s", stats.live,
                  stats.live == 1 ? "" : "es", hint);
}

static void note_signal(struct session *session, int signal)
{
    session->interrupt = signal;
    session->insisting_ns = time_after(SIGNAL_APART_NS);
}

/* Ends the program although processes run. */
static _Noreturn void leave_at_once(struct session *session, const char *why, int status)
{
    seeds_erase_progress();
    report_survivors(session->runtime, why);
    if (session->trace != NULL && session->trace != stdout) {
        (void)fflush(session->trace);
    }
    _exit(status);
}

/* The first signal is a request, as the end of the root is; who insists gets their way. (The
 * command `timeout` signals a program, and at once its group: that is one request.) */
static void take_signal(struct session *session, int signal)
{
    if (session->interrupt != 0 && clock_ns() < session->insisting_ns) {
        return;
    }
    if (session->interrupt != 0 || session->told) {
        leave_at_once(session, "stopped at once", 128 + signal);
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
                leave_at_once(session, "not finished 5s after --timeout", STATUS_FAILURE);
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

/* Prints at once what the root has brought, even if other processes take long to stop. Of many
 * seeds only the failures count. */
static void print_result(struct session *session)
{
    if (session->exited && session->exit.error == 0) {
        if (session->options->last_seed == 0) {
            report_result(&session->exit.result);
        }
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

/* Of many seeds, the first complaint says which it is and how to repeat it. */
static void complain(struct session *session, const char *reason)
{
    if (session->options->last_seed != 0 && !session->complained) {
        seeds_tell_failure(session->options, reason);
    } else {
        (void)failure(RUN, "%s: %s", session->module->name, reason);
    }
    session->complained = true;
}

/* Why the root, which still lives, is asked to finish: 0, or the status after a complaint. */
static int tell_why(struct session *session)
{
    if (session->interrupt != 0) {
        return 128 + session->interrupt;
    }
    if (session->timed_out) {
        complain(session, "--timeout expired");
        return STATUS_FAILURE;
    }
    if (session->ending == ROOT_RESTS) {
        complain(session, "the simulation has come to rest, and the root still waits");
        return STATUS_FAILURE;
    }
    return 0;
}

/* After a request to stop, failing with just that is what a process is expected to do. */
static int tell_failure(struct session *session, bool asked)
{
    char reason[200];
    const int error = session->error != 0 ? session->error : session->exit.error;
    if (error == 0 || (asked && (error == SKUA_E_STOPPED || error == SKUA_E_TERMINATED))) {
        return 0;
    }
    const int status = report_format_error(error, reason, sizeof reason);
    complain(session, reason);
    return status;
}

static int use_runtime(struct session *session)
{
    if (pthread_create(&session->runner, NULL, drive_root, session) != 0) {
        return failure(RUN, "cannot create a thread");
    }
    wait_for_root(session);
    const int why = tell_why(session);
    if (!stop(session)) {
        _exit(failure(RUN, "cannot create a thread"));
    }
    print_result(session);
    const int failed = tell_failure(session, why != 0);
    if (session->interrupt != 0) {
        return 128 + session->interrupt;
    }
    return why != 0 ? why : failed;
}

/* ---- the runtime ---- */

static void print_log(void *arg, const skua_log *log)
{
    (void)arg;
    (void)fprintf(stderr, "skua %s: %s\n", RUN, log->text); /* as one: threads print meanwhile */
}

static int create(struct session *session)
{
    const struct run_options *options = session->options;
    skua_sim_config sim = {
        .faults = options->faults,
        .on_record = session->trace != NULL ? sim_trace_write : NULL,
        .on_record_arg = session->trace,
    };
    sim.faults.may_kill = root_is_another;
    sim.faults.may_kill_arg = session;
    const skua_runtime_config config = {
        .worker_count = options->workers,
        .seed = options->seed,
        .sim = options->sim ? &sim : NULL,
        .on_exit = options->sim ? root_note_exit : NULL,
        .on_exit_arg = session,
        .inspect = !options->sim,
        .crash_report = true,
        .on_reload = replace_modules,
        .on_reload_arg = session,
        .on_log = options->first_seed != 0 ? NULL : print_log,
    };
    const int error = skua_runtime_create(&session->runtime, &config);
    return error == 0 ? module_register(session->module, session->runtime)
                      : failure(RUN, "cannot create a runtime: %s", skua_error_text(error));
}

static int start(struct session *session)
{
    const int status = create(session);
    int error = status == 0 ? skua_runtime_start(session->runtime) : 0;
    if (error == SKUA_E_INSPECT) { /* no reason to keep anybody from running a program */
        char folder[PATH_MAX] = "";
        (void)skua_inspect_directory(folder, sizeof folder);
        (void)failure(
            RUN,
            "warning: cannot open the inspector socket in %s; `skua top` will not see this program",
            folder);
        (void)setenv("SKUA_INSPECT", "0", 1);
        error = skua_runtime_start(session->runtime);
    }
    return error != 0 ? failure(RUN, "cannot start: %s", skua_error_text(error)) : status;
}

/* Of many seeds, those of the last one that is run. */
static bool wants_stats(const struct run_options *options, int status)
{
    return options->stats &&
           (status != 0 || options->last_seed == 0 || options->last_seed == options->seed);
}

static int create_and_use_runtime(struct session *session, struct run_totals *totals)
{
    int status = start(session);
    if (status == 0) {
        status = use_runtime(session);
        if (wants_stats(session->options, status)) {
            report_stats(session->runtime);
        }
        (void)skua_runtime_stop(session->runtime, SKUA_FOREVER); /* if that got nowhere */
        if (totals != NULL) {
            totals->virtual_ns += skua_sim_now(session->runtime) - SKUA_SIM_START_NS;
            totals->steps += root_count_steps(session);
            totals->hash = skua_sim_hash(session->runtime);
        }
    }
    (void)skua_runtime_destroy(session->runtime);
    replace_forget(session);
    return status;
}

static int use_traced_runtime(struct session *session, struct run_totals *totals)
{
    const char *trace = session->options->trace;
    int status = trace != NULL ? sim_trace_open(trace, &session->trace) : 0;
    if (status != 0) {
        return status;
    }
    status = create_and_use_runtime(session, totals);
    const int written = trace != NULL ? sim_trace_close(trace, session->trace) : 0;
    return status != 0 ? status : written;
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

int session_take_interrupt(void)
{
    const struct timespec at_once = {0};
    sigset_t signals;
    choose_signals(&signals);
    const int signal = sigtimedwait(&signals, NULL, &at_once);
    return signal > 0 ? 128 + signal : 0;
}

int session_run(const skua_module *module, const struct run_options *options,
                struct run_totals *totals)
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
        (void)failure(RUN, "cannot create descriptors for signals and events: %s", strerror(errno));
    } else {
        status = use_traced_runtime(&session, totals);
    }
    (void)close(session.signals);
    (void)close(session.root_ended);
    (void)close(session.stopped);
    (void)sem_destroy(&session.stop_asked);
    return status;
}
