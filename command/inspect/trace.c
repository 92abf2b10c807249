/* SPDX-License-Identifier: MIT */
/* `skua trace`: records a running program for a while, and writes a file that Perfetto opens. */
#include "command/inspect/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <skua/types.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/commands.h"
#include "command/format.h"
#include "command/inspect/inspect.h"
#include "command/support.h"

enum {
    READ_MAX = 1000, /* records in one answer: fewer mean that there are no more for now */
    RECORDS_DEFAULT = 1000000,
    RECORDS_MAX = 50000000,
    NAMED_MAX = 1024, /* processes that are asked for their names */
};

/* How long to wait when there was nothing to read, or enough. */
#define PAUSE (5 * SKUA_MILLISECOND)

/* A program closes the connection of who has begun a trace and asks nothing more for 5 seconds. */
#define SILENCE_MAX SKUA_SECOND

/* How long to read, at the end, what the program has recorded by then. */
#define TAIL (200 * SKUA_MILLISECOND)

struct options {
    const char *program;
    const char *path;
    uint64_t duration_ns;
    uint64_t records;
};

struct recording {
    struct client client;
    struct options options;
    struct trace trace;
    uint64_t start_ns;
    uint64_t asked_ns;         /* when something was asked for the last time */
    uint64_t next_progress_ns; /* 0: no progress is shown */
    int stop_fd;               /* Ctrl-C ends the recording, not the command */
    bool program_ended;
    bool is_full; /* there is no memory for more records */
};

static int help(void)
{
    fputs(
        "usage: skua trace [-d DURATION] [-o FILE] [-n RECORDS] [-p PROGRAM]\n\n"
        "Records a trace of a running program as JSON for https://ui.perfetto.dev: one track per\n"
        "worker with its steps, parks and steals, and arrows from each send, timer or completion\n"
        "to the step that received it. Ctrl-C stops recording early and writes the file.\n\n"
        "  -d DURATION            how long to record; default 5s\n"
        "  -o FILE                where to write; default trace.json, - for stdout\n"
        "  -n RECORDS             at most this many; default 1000000. A busy program is sampled "
        "in\n"
        "                         pieces of some thousand records, so a small number covers only\n"
        "                         the first moment\n" HELP_PROGRAM "\nExamples:\n"
        "  skua trace\n"
        "  skua trace -d 200ms -o burst.json\n",
        stdout);
    return 0;
}

/* ---- recording ---- */

static uint64_t elapsed_ns(const struct recording *recording)
{
    return clock_ns() - recording->start_ns;
}

/* How many records to ask for, of those that may be read in all by now. */
static size_t read_limit(const struct recording *recording, uint64_t records)
{
    const uint64_t have = recording->trace.count;
    const uint64_t left = records > have ? records - have : 0;
    return left < READ_MAX ? (size_t)left : READ_MAX;
}

/* Those that have their turn by now: those of a busy program would otherwise all come from the
 * first moment. */
static uint64_t records_by_now(const struct recording *recording)
{
    const double part = (double)elapsed_ns(recording) / (double)recording->options.duration_ns;
    return (uint64_t)((double)recording->options.records * (part < 1 ? part : 1));
}

static void print_progress(struct recording *recording)
{
    const uint64_t now = clock_ns();
    if (recording->next_progress_ns == 0 || now < recording->next_progress_ns) {
        return;
    }
    recording->next_progress_ns = now + 100 * SKUA_MILLISECOND;
    fprintf(stderr, "\rskua trace: %s of %s, %zu records, %" PRIu64 " lost \033[K",
            format_time(elapsed_ns(recording)).text,
            format_time(recording->options.duration_ns).text, recording->trace.count,
            recording->trace.lost);
}

/* Reads the records of the answer to what was asked, up to READ_MAX. `*count`: how many. */
static enum client_result read_answer(struct recording *recording, size_t *count)
{
    struct line line;
    enum client_result result;
    *count = 0;
    recording->asked_ns = clock_ns();
    while ((result = client_read(&recording->client, &line)) == CLIENT_LINE) {
        *count += line_is(&line, "r");
        switch (trace_add(&recording->trace, &line)) {
        case TRACE_ADDED:
        case TRACE_IGNORED:
            break;
        case TRACE_NO_RECORD:
            return CLIENT_BROKEN;
        case TRACE_NO_MEMORY:
            recording->is_full = true;
            return CLIENT_STOPPED;
        }
        if (*count > READ_MAX) {
            return CLIENT_BROKEN;
        }
    }
    return result;
}

/* `*has_more`: there are as many as were asked for, at least. */
static enum client_result read_records(struct recording *recording, size_t most, bool *has_more)
{
    size_t count;
    client_ask(&recording->client, "trace read %zu", most);
    const enum client_result result = read_answer(recording, &count);
    *has_more = count >= most;
    return result;
}

/* Where there is nothing to read yet, a sign of life. */
static enum client_result keep_connected(struct recording *recording)
{
    size_t count;
    if (clock_ns() - recording->asked_ns < SILENCE_MAX) {
        return CLIENT_END;
    }
    client_ask(&recording->client, "hello");
    return read_answer(recording, &count);
}

/* Waits for at most so long; returns false if the user has had enough. */
static bool pause_recording(const struct recording *recording, int most_ms)
{
    struct pollfd fd = {.fd = recording->stop_fd, .events = POLLIN};
    return poll(&fd, 1, most_ms) <= 0;
}

static enum client_result record(struct recording *recording)
{
    bool has_more = true;
    enum client_result result = CLIENT_END;
    while (result == CLIENT_END && elapsed_ns(recording) < recording->options.duration_ns) {
        const size_t most = read_limit(recording, records_by_now(recording));
        print_progress(recording);
        result = most > 0 ? read_records(recording, most, &has_more) : keep_connected(recording);
        const bool at_once = most == READ_MAX && has_more;
        if (!pause_recording(recording, at_once ? 0 : PAUSE / SKUA_MILLISECOND)) {
            return result;
        }
    }
    const uint64_t end_ns = clock_ns() + TAIL;
    size_t most = read_limit(recording, recording->options.records);
    while (result == CLIENT_END && has_more && most > 0 && clock_ns() < end_ns) {
        result = read_records(recording, most, &has_more);
        most = read_limit(recording, recording->options.records);
    }
    return result;
}

static bool set_names(void *arg, uint64_t pid, const char *name, const char *label)
{
    struct trace *trace = arg;
    return trace_set_names(trace, pid, name, label);
}

/* Asks the processes that live what they are called. Those that do not answer go without a name. */
static void name_processes(struct recording *recording)
{
    static uint64_t pids[NAMED_MAX];
    const size_t count = trace_find_steppers(&recording->trace, pids, NAMED_MAX);
    if (count > 0) {
        (void)names_describe(&recording->client, pids, count, set_names, &recording->trace);
    }
}

/* Ends the trace; the answer tells what is missing at its end. A user who does not want to wait for
 * a program that hangs gets what has been read. */
static enum client_result end_recording(struct recording *recording, enum client_result result)
{
    size_t count;
    recording->client.stop_fd = -1;
    if (result == CLIENT_END) {
        client_ask(&recording->client, "trace stop");
        result = read_answer(recording, &count);
    }
    if (result == CLIENT_END) {
        name_processes(recording);
    }
    return result == CLIENT_STOPPED && !recording->is_full ? CLIENT_END : result;
}

/* Returns 0, or the exit status. */
static int run(struct recording *recording)
{
    client_ask(&recording->client, "trace start");
    enum client_result result = client_skip(&recording->client);
    if (result == CLIENT_ERROR && strcmp(recording->client.error.name, "SKUA_E_BUSY") == 0) {
        return failure("trace", "another client is already tracing this program");
    }
    recording->start_ns = clock_ns();
    recording->asked_ns = recording->start_ns;
    recording->next_progress_ns = isatty(STDERR_FILENO) ? recording->start_ns : 0;
    if (result == CLIENT_END) {
        recording->client.stop_fd = recording->stop_fd;
        result = end_recording(recording, record(recording));
        if (recording->next_progress_ns > 0) {
            fputs("\r\033[K", stderr);
        }
    }
    if (recording->is_full) {
        return failure("trace", "out of memory; try fewer records (-n)");
    }
    if (result == CLIENT_GONE && recording->trace.count > 0) {
        recording->program_ended = true; /* what there is of it may be what somebody looks for */
        return 0;
    }
    return result == CLIENT_END ? 0 : client_failure(&recording->client, result);
}

/* ---- the file ---- */

/* Opens the file before anything is recorded: if that fails, it fails at once. What is in it stays
 * until there is something better. `*is_new`: it did not exist. */
static FILE *open_file(const char *path, bool *is_new)
{
    *is_new = false;
    if (strcmp(path, "-") == 0) {
        return stdout;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    *is_new = fd >= 0;
    if (fd < 0 && errno == EEXIST) {
        /* Without waiting for somebody to read a pipe; writing to it may wait. */
        fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0) {
            (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        }
    }
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        failure("trace", "cannot write %s: %s", path, strerror(errno));
    }
    return file;
}

/* The records have been sorted by time. */
static void print_summary(const struct recording *recording, long size)
{
    const struct trace *trace = &recording->trace;
    const uint64_t length_ns =
        trace->count > 0 ? trace->records[trace->count - 1].time_ns - trace->records[0].time_ns : 0;
    fprintf(stderr, "skua trace: %zu record%s of %s, %" PRIu64 " lost", trace->count,
            trace->count == 1 ? "" : "s", format_time(length_ns).text, trace->lost);
    if (size >= 0) {
        fprintf(stderr, "; %s, %sB: open it at https://ui.perfetto.dev", recording->options.path,
                format_count((double)size).text);
    }
    fprintf(stderr, "%s\n", recording->program_ended ? " (the program has ended)" : "");
}

static int write_file(struct recording *recording, FILE *file)
{
    const char *path = recording->options.path;
    struct stat status;
    const bool is_regular = fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode);
    if (file != stdout && is_regular && ftruncate(fileno(file), 0) != 0) {
        return failure("trace", "cannot write %s: %s", path, strerror(errno));
    }
    if (!trace_write_json(&recording->trace, recording->client.process, recording->client.name,
                          file)) {
        return failure("trace", "out of memory; try fewer records (-n)");
    }
    if (fflush(file) != 0 || ferror(file) != 0) {
        return failure("trace", "cannot write %s: %s", path, strerror(errno));
    }
    print_summary(recording, file != stdout ? ftell(file) : -1);
    return 0;
}

static int trace_to(struct recording *recording, FILE *file)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    recording->stop_fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
    int status = run(recording);
    /* The one that ended the recording must not end the command; the next one may. */
    struct signalfd_siginfo stopped;
    while (read(recording->stop_fd, &stopped, sizeof stopped) == (ssize_t)sizeof stopped) {
    }
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    return status != 0 ? status : write_file(recording, file);
}

/* ---- the command ---- */

static bool read_option(char **argv, int *i, struct options *options)
{
    const char *option = argv[*i];
    if (strcmp(option, "-d") == 0) {
        return option_interval("trace", argv, i, &options->duration_ns);
    }
    if (strcmp(option, "-o") == 0) {
        return option_text("trace", argv, i, &options->path);
    }
    if (strcmp(option, "-n") == 0) {
        return option_number("trace", argv, i, 1, RECORDS_MAX, &options->records);
    }
    if (is_program(option)) {
        return option_text("trace", argv, i, &options->program);
    }
    unknown_argument("trace", option);
    return false;
}

int trace_command(int argc, char **argv)
{
    static struct recording recording = {.options = {.path = "trace.json",
                                                     .duration_ns = 5 * SKUA_SECOND,
                                                     .records = RECORDS_DEFAULT}};
    for (int i = 1; i < argc; i++) {
        if (is_help(argv[i])) {
            return help();
        }
        if (!read_option(argv, &i, &recording.options)) {
            return STATUS_USAGE;
        }
    }
    int status = client_open(&recording.client, "trace", recording.options.program);
    if (status != 0) {
        return status;
    }
    bool is_new;
    FILE *file = open_file(recording.options.path, &is_new);
    status = file == NULL ? STATUS_FAILURE : trace_to(&recording, file);
    if (status != 0 && is_new) {
        unlink(recording.options.path);
    }
    if (file != NULL) {
        fclose(file);
    }
    trace_discard(&recording.trace);
    client_close(&recording.client);
    return status;
}
