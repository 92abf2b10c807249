/* SPDX-License-Identifier: MIT */
/* `skua top`: a running program, live: what it does per second, its workers, and the processes that
 * stand out. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <skua/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "command/commands.h"
#include "command/format.h"
#include "command/inspect/inspect.h"
#include "command/inspect/screen.h"
#include "command/inspect/tree.h"
#include "command/support.h"

enum { PLAIN_ROWS_DEFAULT = 20 };

struct options {
    const char *program;
    uint64_t interval_ns;
    enum process_sort sort;
    uint64_t rows; /* at most; 0: what fits */
    bool once;
};

/* What is known of the program at one moment. */
struct snapshot {
    struct sample sample;
    struct process_page page;
};

struct top {
    struct client client;
    struct options options;
    struct snapshot snapshots[2];
    size_t newest;     /* which of them */
    size_t first;      /* the row that the list begins with */
    size_t rows_shown; /* by the last picture */
    bool shows_help;
    bool shows_tree;  /* in place of workers and processes */
    struct tree tree; /* as far as it is shown */
    bool is_ascii;    /* draw it so */
    int stop_fd;      /* signals that end it */
    int change_fd;    /* signals that do not: another size, Ctrl-Z */
};

static int help(void)
{
    fputs(
        "usage: skua top [-i INTERVAL] [--sort KEY] [-n ROWS] [--once] [-p PROGRAM]\n\n"
        "Shows a running program live: rates, what its workers do, and its top processes; if it\n"
        "has sockets, how many, and what goes through them.\n"
        "Press `h` for the keys.\n\n"
        "  -i INTERVAL            time between updates, at least 10ms; default 1s\n"
        "  --sort KEY             largest first by run (default), steps, mailbox or age\n"
        "  -n ROWS                show at most this many processes, up to 256\n"
        "  --once                 print one update as text and exit; the default if the output is\n"
        "                         not a terminal\n" HELP_PROGRAM "\nExamples:\n"
        "  skua top\n"
        "  skua top --once -i 5s --sort mailbox\n",
        stdout);
    return 0;
}

/* ---- the picture ---- */

static const struct snapshot *current(const struct top *top)
{
    return &top->snapshots[top->newest];
}

static const struct snapshot *previous(const struct top *top)
{
    return &top->snapshots[1 - top->newest];
}

static struct formatted rate(const struct top *top, enum counter counter)
{
    return format_count(sample_rate(&previous(top)->sample, &current(top)->sample, counter));
}

static void draw_sockets(const struct top *top, struct screen *screen)
{
    const struct sample *now = &current(top)->sample;
    const uint64_t open = now->sockets > now->closing ? now->sockets - now->closing : 0;
    screen_line(screen,
                "sockets: %" PRIu64 " open, %" PRIu64 " closing; per second: accepted %s, "
                "connected %s, bytes in %s, out %s",
                open, now->closing, rate(top, COUNTER_accepted).text,
                rate(top, COUNTER_connected).text, rate(top, COUNTER_received_bytes).text,
                rate(top, COUNTER_sent_bytes).text);
}

static void draw_head(const struct top *top, struct screen *screen)
{
    const struct sample *now = &current(top)->sample;
    screen_line(screen,
                "%s (%" PRIu64 ".%" PRIu64 "), up %s: %" PRIu64 " process%s, %" PRIu64
                " queued, workers %s busy",
                top->client.name, top->client.process, top->client.runtime,
                format_time(now->age_ns).text, now->live, now->live == 1 ? "" : "es",
                sample_queued(now), format_percent(sample_busy(&previous(top)->sample, now)).text);
    screen_line(screen,
                "per second: spawns %s, messages %s, steps %s, stolen %s, parks %s, "
                "timers %s",
                rate(top, COUNTER_spawned).text, rate(top, COUNTER_messages).text,
                rate(top, COUNTER_steps).text, rate(top, COUNTER_stolen).text,
                rate(top, COUNTER_parks).text, rate(top, COUNTER_timers).text);
    if (sample_has_sockets(now)) {
        draw_sockets(top, screen);
    }
    screen_line(screen, "%s", "");
}

static void draw_worker(const struct top *top, struct screen *screen,
                        const struct worker_sample *worker)
{
    const struct sample *before = &previous(top)->sample;
    const struct sample *now = &current(top)->sample;
    char name[32];
    char runs[96] = "";
    snprintf(name, sizeof name, "%" PRIu64 "%s", worker->number, worker->is_spare ? " spare" : "");
    if (worker->pid != 0) {
        snprintf(runs, sizeof runs, "%s %016" PRIx64, worker->type, worker->pid);
    }
    screen_line(screen, "%-9s %-9s %6" PRIu64 " %6s %9s %8s %7" PRIu64 "  %s", name, worker->doing,
                worker->queue, format_percent(worker_busy(before, now, worker)).text,
                format_count(worker_rate(before, now, worker, COUNTER_stolen)).text,
                format_count(worker_rate(before, now, worker, COUNTER_parks)).text,
                worker->counter[COUNTER_stalls], runs);
}

/* On a terminal, all workers or half of what is left of the screen. */
static void draw_workers(const struct top *top, struct screen *screen)
{
    const struct sample *now = &current(top)->sample;
    const size_t most = screen->is_terminal ? screen->lines_left / 2 : SIZE_MAX;
    screen_title(screen, "%-9s %-9s %6s %6s %9s %8s %7s  %s", "WORKER", "STATE", "QUEUE", "BUSY",
                 "STOLEN/S", "PARKS/S", "STALLS", "RUNS");
    for (size_t i = 0; i < now->worker_count; i++) {
        if (i + 1 == most && i + 1 < now->worker_count) {
            screen_line(screen, "and %zu more", now->worker_count - i);
            break;
        }
        draw_worker(top, screen, &now->workers[i]);
    }
    screen_line(screen, "%s", "");
}

/* The share of time that a process has run since the previous snapshot; empty if that did not list
 * it. */
static struct formatted part_of_run(const struct top *top, const struct process_row *row)
{
    const struct snapshot *before = previous(top);
    const uint64_t now = current(top)->sample.now_ns;
    for (size_t i = 0; i < before->page.count; i++) {
        const struct process_row *was = &before->page.rows[i];
        if (was->pid == row->pid && was->run_ns <= row->run_ns && before->sample.now_ns < now) {
            return format_percent((double)(row->run_ns - was->run_ns) /
                                  (double)(now - before->sample.now_ns));
        }
    }
    return (struct formatted){""};
}

/* How wide two of the columns are. */
struct widths {
    size_t type;
    size_t name;
};

static struct widths widths_of(const struct process_page *page)
{
    struct widths widths = {strlen("TYPE"), strlen("NAME")};
    for (size_t i = 0; i < page->count; i++) {
        const size_t type = text_columns(page->rows[i].type);
        const size_t name = text_columns(page->rows[i].name);
        widths.type = type > widths.type ? type : widths.type;
        widths.name = name > widths.name ? name : widths.name;
    }
    return widths;
}

/* A field of a column that programs without sockets do not have. */
static struct formatted socket_field(const struct top *top, const char *text)
{
    struct formatted field = {""};
    if (sample_has_sockets(&current(top)->sample)) {
        snprintf(field.text, sizeof field.text, "%7s  ", text);
    }
    return field;
}

static void draw_process(const struct top *top, struct screen *screen, struct widths widths,
                         const struct process_row *row)
{
    screen_line(screen,
                "%016" PRIx64 "  %-*s  %-7s  %9" PRIu64 "  %11" PRIu64
                "  %6s  %8s  %8s  %s%-*s  %s",
                row->pid, text_width(row->type, widths.type), row->type, row->state, row->mailbox,
                row->steps, part_of_run(top, row).text, format_time(row->run_ns).text,
                format_time(row->age_ns).text, socket_field(top, row->sockets).text,
                text_width(row->name, widths.name), row->name, row->waits.text);
}

/* How many processes a picture shows, at most. */
static size_t rows_most(const struct top *top, bool is_terminal)
{
    return top->options.rows > 0 ? (size_t)top->options.rows
           : is_terminal         ? PAGE_ROWS_MAX
                                 : PLAIN_ROWS_DEFAULT;
}

static void draw_processes(struct top *top, struct screen *screen)
{
    const struct process_page *page = &current(top)->page;
    const struct widths widths = widths_of(page);
    const size_t most = rows_most(top, screen->is_terminal);
    char pid[32];
    snprintf(pid, sizeof pid, "PID (by %s)", sort_name(top->options.sort));
    screen_title(screen, "%-16s  %-*s  %-7s  %9s  %11s  %6s  %8s  %8s  %s%-*s  %s", pid,
                 (int)widths.type, "TYPE", "STATE", "MAILBOX", "STEPS", "RUN%", "RUN", "AGE",
                 socket_field(top, "SOCKETS").text, (int)widths.name, "NAME", "WAITS FOR");
    if (top->first >= page->count) {
        top->first = 0;
    }
    top->rows_shown = 0;
    for (size_t i = top->first; i < page->count; i++) {
        if (top->rows_shown == most || screen->lines_left == 0) {
            break;
        }
        draw_process(top, screen, widths, &page->rows[i]);
        top->rows_shown++;
    }
}

static void draw_help(struct screen *screen)
{
    static const char *const lines[] = {
        "r s m a   sort by run time, steps, mailbox, age",
        "space n   next page of processes (up to 256)",
        "p         previous page",
        "t         show or leave the tree of supervisors (skua tree)",
        "h         show or leave this help",
        "q         quit",
        "",
        "BUSY: CPU time of a worker's thread, as a share of the time",
        "RUN%: share of time a process ran, sampled",
        "SOCKETS: how many it has; - if there is none, or no answer",
        "NAME: the first, +N more, and the label; - if there is none, or no answer",
        "WAITS FOR: what it has yielded, the newest; nothing: messages only",
        "STALLS: steps that ran too long since the start",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        screen_line(screen, "%s", lines[i]);
    }
}

static void draw_tree(struct top *top, struct screen *screen)
{
    if (top->tree.count == 0) {
        screen_line(screen, "no supervisors");
        return;
    }
    if (top->first >= top->tree.count) {
        top->first = 0;
    }
    top->rows_shown = tree_draw(&top->tree, screen, top->first, rows_most(top, screen->is_terminal),
                                top->is_ascii);
}

static void draw(struct top *top, struct screen *screen)
{
    draw_head(top, screen);
    if (top->shows_help) {
        draw_help(screen);
    } else if (top->shows_tree) {
        draw_tree(top, screen);
    } else {
        draw_workers(top, screen);
        draw_processes(top, screen);
    }
}

static void redraw(struct top *top)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return;
    }
    struct screen screen = screen_terminal(out);
    draw(top, &screen);
    fclose(out);
    screen_show(text, size);
    free(text);
}

/* ---- snapshots ---- */

/* Takes a snapshot; the previous one stays. */
static enum client_result take_snapshot(struct top *top)
{
    struct snapshot *next = &top->snapshots[1 - top->newest];
    enum client_result result = sample_read(&top->client, &next->sample);
    if (result == CLIENT_END) {
        result = page_read_largest(&top->client, top->options.sort, PAGE_ROWS_MAX, &next->page);
    }
    if (result == CLIENT_END) {
        top->newest = 1 - top->newest;
    }
    return result;
}

/* Asks the processes that are about to be shown what they wait for. The others are not asked. */
static enum client_result describe_rows(struct top *top, bool is_terminal)
{
    struct process_page *page = &top->snapshots[top->newest].page;
    size_t most = rows_most(top, is_terminal);
    if (is_terminal) {
        const size_t lines = screen_terminal(NULL).lines_left;
        most = most < lines ? most : lines;
    }
    const size_t first = top->first < page->count ? top->first : 0;
    const size_t left = page->count - first;
    for (size_t i = 0; i < page->count; i++) {
        row_is_unknown(&page->rows[i]);
    }
    return rows_describe(&top->client, &page->rows[first], left < most ? left : most);
}

/* Reads as much of the tree as is about to be shown, and a page more. */
static enum client_result read_tree(struct top *top)
{
    const size_t lines = screen_terminal(NULL).lines_left;
    const struct tree_wish wish = {.rows_most = top->first + 2 * lines,
                                   .children_most = TREE_ROWS_MAX};
    const enum client_result result = tree_read(&top->client, &wish, &top->tree);
    if (result != CLIENT_ERROR) {
        return result;
    }
    tree_free(&top->tree); /* the program has an older version, which does not tell */
    return CLIENT_END;
}

/* What a snapshot lacks of the rows that are about to be shown. */
static enum client_result fill_rows(struct top *top, bool is_terminal)
{
    return top->shows_tree ? read_tree(top) : describe_rows(top, is_terminal);
}

/* A snapshot with that. */
static enum client_result take_described(struct top *top, bool is_terminal)
{
    const enum client_result result = take_snapshot(top);
    return result == CLIENT_END ? fill_rows(top, is_terminal) : result;
}

static enum client_result print_once(struct top *top)
{
    enum client_result result = take_snapshot(top);
    if (result != CLIENT_END) {
        return result;
    }
    if (!client_wait(&top->client, clock_ns() + top->options.interval_ns)) {
        return CLIENT_GONE;
    }
    result = take_described(top, false);
    if (result == CLIENT_END) {
        struct screen screen = screen_plain();
        draw(top, &screen);
    }
    return result;
}

/* ---- keys and signals ---- */

static void turn_page(struct top *top, bool forward)
{
    const size_t count = top->shows_tree ? top->tree.count : current(top)->page.count;
    const size_t step = top->rows_shown > 0 ? top->rows_shown : 1;
    if (forward) {
        top->first = top->first + step < count ? top->first + step : top->first;
    } else {
        top->first = top->first > step ? top->first - step : 0;
    }
}

static void sort_by(struct top *top, enum process_sort sort)
{
    top->options.sort = sort;
    top->first = 0;
}

/* Returns false if the user quits. `*refresh`: the key asks for something that the snapshot
 * lacks. */
static bool press(struct top *top, int key, bool *refresh)
{
    static const struct {
        char key;
        enum process_sort sort;
    } sorts[] = {{'r', SORT_RUN}, {'s', SORT_STEPS}, {'m', SORT_MAILBOX}, {'a', SORT_AGE}};
    for (size_t i = 0; i < sizeof sorts / sizeof sorts[0]; i++) {
        if (key == sorts[i].key) {
            sort_by(top, sorts[i].sort);
            *refresh = true;
        }
    }
    if (key == 'h' || key == '?') {
        top->shows_help = !top->shows_help;
    } else if (key == ' ' || key == 'n') {
        turn_page(top, true);
    } else if (key == 'p') {
        turn_page(top, false);
    } else if (key == 't') {
        top->shows_tree = !top->shows_tree;
        top->first = 0;
        *refresh = true;
    }
    return key != 'q';
}

/* Another size needs another picture, which is drawn anyway. */
static void handle_change(const struct top *top)
{
    struct signalfd_siginfo signal;
    while (read(top->change_fd, &signal, sizeof signal) == (ssize_t)sizeof signal) {
        if (signal.ssi_signo == SIGTSTP) {
            terminal_leave();
            raise(SIGSTOP);
            terminal_enter();
        }
    }
}

static int open_signals(const int *signals, size_t count)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) {
        sigaddset(&set, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static bool catch_signals(struct top *top)
{
    top->stop_fd = open_signals((const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT}, 4);
    top->change_fd = open_signals((const int[]){SIGWINCH, SIGTSTP}, 2);
    top->client.stop_fd = top->stop_fd;
    return top->stop_fd >= 0 && top->change_fd >= 0;
}

/* Waits for what comes first: a key, a signal, the end of the interval or of the program.
 * Returns CLIENT_END if it is time for another snapshot. */
static enum client_result wait_for_change(struct top *top, uint64_t until_ns)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = terminal_key_fd(), .events = POLLIN},
                               {.fd = top->stop_fd, .events = POLLIN},
                               {.fd = top->change_fd, .events = POLLIN},
                               {.fd = top->client.fd, .events = POLLIN}};
        const uint64_t now = clock_ns();
        if (now >= until_ns) {
            return CLIENT_END;
        }
        poll(fds, sizeof fds / sizeof fds[0], (int)((until_ns - now) / SKUA_MILLISECOND) + 1);
        if (fds[1].revents != 0) {
            return CLIENT_STOPPED;
        }
        if (fds[3].revents != 0) {
            return CLIENT_GONE;
        }
        bool refresh = false;
        const size_t first = top->first;
        handle_change(top);
        if (fds[0].revents != 0) {
            const int key = terminal_key();
            if (key < 0 || !press(top, key, &refresh)) {
                return CLIENT_STOPPED;
            }
        }
        if (refresh) {
            return CLIENT_END;
        }
        if (top->first != first) {
            const enum client_result result = fill_rows(top, true);
            if (result != CLIENT_END) {
                return result;
            }
        }
        redraw(top);
    }
}

static enum client_result watch(struct top *top)
{
    enum client_result result = take_described(top, true);
    /* The first interval is a short one: the screen should not stay empty. */
    uint64_t next_ns = clock_ns() + 100 * SKUA_MILLISECOND;
    while (result == CLIENT_END) {
        redraw(top);
        result = wait_for_change(top, next_ns);
        if (result == CLIENT_END) {
            result = take_described(top, true);
            next_ns = clock_ns() + top->options.interval_ns;
        }
    }
    return result;
}

static int run(struct top *top)
{
    enum client_result result;
    if (top->options.once || !isatty(STDOUT_FILENO)) {
        result = print_once(top);
    } else {
        if (!catch_signals(top) || !terminal_enter()) {
            return failure("top", "cannot use the terminal");
        }
        top->is_ascii = !tree_has_lines();
        result = watch(top);
        terminal_leave();
    }
    if (result == CLIENT_GONE) {
        fprintf(stderr, "skua top: the program has ended\n");
        return 0;
    }
    return result == CLIENT_END || result == CLIENT_STOPPED ? 0
                                                            : client_failure(&top->client, result);
}

/* ---- options ---- */

static bool option_sort(char **argv, int *i, enum process_sort *sort)
{
    const char *text;
    if (!option_text("top", argv, i, &text)) {
        return false;
    }
    if (!parse_sort(text, sort) || *sort == SORT_PID) {
        usage_error("top", "invalid sort key '%s': use run, steps, mailbox or age", text);
        return false;
    }
    return true;
}

static bool read_option(char **argv, int *i, struct options *options)
{
    const char *option = argv[*i];
    if (strcmp(option, "-i") == 0) {
        return option_interval("top", argv, i, &options->interval_ns);
    }
    if (is_valued(option, "--sort")) {
        return option_sort(argv, i, &options->sort);
    }
    if (strcmp(option, "-n") == 0) {
        return option_number("top", argv, i, 1, PAGE_ROWS_MAX, &options->rows);
    }
    if (strcmp(option, "--once") == 0) {
        return options->once = true;
    }
    if (is_program(option)) {
        return option_text("top", argv, i, &options->program);
    }
    unknown_argument("top", option);
    return false;
}

int top_command(int argc, char **argv)
{
    static struct top top = {.options = {.interval_ns = SKUA_SECOND, .sort = SORT_RUN}};
    for (int i = 1; i < argc; i++) {
        if (is_help(argv[i])) {
            return help();
        }
        if (!read_option(argv, &i, &top.options)) {
            return STATUS_USAGE;
        }
    }
    int status = client_open(&top.client, "top", top.options.program);
    if (status == 0) {
        status = finish_output("top", run(&top));
        client_close(&top.client);
    }
    tree_free(&top.tree);
    sample_free(&top.snapshots[0].sample);
    sample_free(&top.snapshots[1].sample);
    return status;
}
