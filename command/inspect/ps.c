/* SPDX-License-Identifier: MIT */
/* `skua ps`: the processes of a running program, as a table.
 *
 * The table is read and printed a page at a time, so that a million rows need no more memory than
 * a few, and the first ones are there at once. A page is read as a whole before it is printed:
 * whoever reads the table may take its time, while the program waits for nobody. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/commands.h"
#include "command/format.h"
#include "command/inspect/inspect.h"
#include "command/inspect/paper.h"
#include "command/support.h"

/* With --all, processes of larger programs are not asked what they wait for: that costs time, also
 * of the program. */
enum { ASKED_MAX = 10000 };

struct options {
    const char *program;
    enum process_sort sort;
    uint64_t rows; /* 0: not given */
    bool all;
    bool stacks;
    uint64_t after;
    struct process_filter filter;
};

struct table {
    const struct options *options;
    struct client *client;
    struct paper *paper;
    uint64_t rows_max;
    bool has_header;
    uint64_t rows;       /* printed so far */
    uint64_t last;       /* the PID of the last one */
    size_t type_columns; /* grows with the longest name seen */
    size_t name_columns; /* likewise */
    uint64_t live;       /* as the last page said */
    bool is_cut;         /* there are more */
    bool has_stacks;     /* of some process it is known how much of its stack was used */
};

static int help(void)
{
    fputs(
        "usage: skua ps [--sort KEY] [-n ROWS | --all] [--after PID] [--type NAME]\n"
        "               [--state STATE] [--stacks] [-p PROGRAM]\n\n"
        "Lists the processes of a running program: PID, type, state (ready, running, blocked,\n"
        "idle), messages in the mailbox, steps so far, how long they ran (by samples), age, name\n"
        "(+N: and N more), label in parentheses, and what they wait for. A process that is "
        "blocked\n"
        "waits for what it has yielded, an idle one for nothing but messages. The last columns "
        "are\n"
        "what the processes say of themselves: - if one does not answer within 20 ms.\n\n"
        "  --sort KEY             pid (default), or largest first by steps, mailbox, run or age;\n"
        "                         the latter show at most 256 rows\n"
        "  -n ROWS                how many rows; default 50, or what fits on the screen\n"
        "  --all                  all processes; on a terminal, through $PAGER or less. More than\n"
        "                         10000 are not asked for names and waits\n"
        "  --after PID            start after this PID, in the order of --sort pid\n"
        "  --type NAME            only processes of this type; -n counts what is shown\n"
        "  --state STATE          only processes in this state\n"
        "  --stacks               a column with the deepest use of a stack by a task of this "
        "type,\n"
        "                         in KiB, of how much, in programs with "
        "SKUA_DEBUG=stacks\n" HELP_PROGRAM "\nExamples:\n"
        "  skua ps --sort run -n 10\n"
        "  skua ps --all --type session --state ready\n",
        stdout);
    return 0;
}

/* ---- options ---- */

static bool option_sort(char **argv, int *i, enum process_sort *sort)
{
    const char *text;
    if (!option_text("ps", argv, i, &text)) {
        return false;
    }
    if (!parse_sort(text, sort)) {
        usage_error("ps", "invalid sort key '%s': use pid, steps, mailbox, run or age", text);
        return false;
    }
    return true;
}

static bool option_pid(char **argv, int *i, uint64_t *pid)
{
    const char *text;
    if (!option_text("ps", argv, i, &text)) {
        return false;
    }
    if (!parse_pid(text, pid)) {
        usage_error("ps", "invalid PID '%s': a PID has up to 16 hexadecimal digits", text);
        return false;
    }
    return true;
}

static bool option_state(char **argv, int *i, const char **state)
{
    static const char *const states[] = {"ready", "running", "blocked", "idle"};
    if (!option_text("ps", argv, i, state)) {
        return false;
    }
    for (size_t k = 0; k < sizeof states / sizeof states[0]; k++) {
        if (strcmp(*state, states[k]) == 0) {
            return true;
        }
    }
    usage_error("ps", "invalid state '%s': use ready, running, blocked or idle", *state);
    return false;
}

/* Returns whether the option and its value are right. */
static bool read_option(char **argv, int *i, struct options *options)
{
    const char *option = argv[*i];
    if (is_valued(option, "--sort")) {
        return option_sort(argv, i, &options->sort);
    }
    if (strcmp(option, "-n") == 0) {
        return option_number("ps", argv, i, 1, UINT32_MAX, &options->rows);
    }
    if (strcmp(option, "--all") == 0) {
        return options->all = true;
    }
    if (is_valued(option, "--after")) {
        return option_pid(argv, i, &options->after);
    }
    if (is_valued(option, "--type")) {
        return option_text("ps", argv, i, &options->filter.type);
    }
    if (is_valued(option, "--state")) {
        return option_state(argv, i, &options->filter.state);
    }
    if (strcmp(option, "--stacks") == 0) {
        return options->stacks = true;
    }
    if (is_program(option)) {
        return option_text("ps", argv, i, &options->program);
    }
    unknown_argument("ps", option);
    return false;
}

static bool is_filtered(const struct options *options)
{
    return options->filter.type != NULL || options->filter.state != NULL;
}

/* Whether the options go together. */
static bool check_options(const struct options *options)
{
    if (options->all && options->rows > 0) {
        usage_error("ps", "-n and --all exclude each other");
        return false;
    }
    if (options->sort == SORT_PID) {
        return true;
    }
    if (options->all || options->after != 0 || is_filtered(options)) {
        usage_error("ps", "--all, --after, --type and --state need --sort pid");
        return false;
    }
    if (options->rows > PAGE_ROWS_MAX) {
        usage_error("ps", "at most %d rows when sorted by %s", PAGE_ROWS_MAX,
                    sort_name(options->sort));
        return false;
    }
    return true;
}

/* ---- the table ---- */

/* The column of --stacks, or nothing. */
static struct formatted stack_column(const struct table *table, const char *text)
{
    struct formatted column = {""};
    if (table->options->stacks) {
        snprintf(column.text, sizeof column.text, "%11.20s  ", text);
    }
    return column;
}

static void print_header(struct table *table)
{
    struct screen screen = paper_lines(table->paper);
    screen_line(&screen, "%-16s  %-*s  %-7s  %9s  %11s  %8s  %8s  %s%-*s  %s", "PID",
                (int)table->type_columns, "TYPE", "STATE", "MAILBOX", "STEPS", "RUN", "AGE",
                stack_column(table, "STACK").text, (int)table->name_columns, "NAME", "WAITS FOR");
}

static void print_row(struct table *table, const struct process_row *row)
{
    struct screen screen = paper_lines(table->paper);
    screen_line(&screen,
                "%016" PRIx64 "  %-*s  %-7s  %9" PRIu64 "  %11" PRIu64 "  %8s  %8s  %s%-*s  %s",
                row->pid, text_width(row->type, table->type_columns), row->type, row->state,
                row->mailbox, row->steps, format_time(row->run_ns).text,
                format_time(row->age_ns).text, stack_column(table, row->stack).text,
                text_width(row->name, table->name_columns), row->name, row->waits.text);
    table->rows++;
    table->last = row->pid;
    table->has_stacks = table->has_stacks || strcmp(row->stack, "-") != 0;
}

static void widen(size_t *columns, const char *text)
{
    const size_t needed = text_columns(text);
    *columns = needed > *columns ? needed : *columns;
}

static void print_page(struct table *table, const struct process_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        widen(&table->type_columns, page->rows[i].type);
        widen(&table->name_columns, page->rows[i].name);
    }
    if (!table->has_header) {
        print_header(table);
        table->has_header = true;
    }
    for (size_t i = 0; i < page->count; i++) {
        if (table->rows == table->rows_max) {
            table->is_cut = true;
            return;
        }
        print_row(table, &page->rows[i]);
    }
}

/* One more than what is left to print: it tells whether there is anything behind that. */
static size_t page_limit(const struct table *table)
{
    const uint64_t left = table->rows_max - table->rows;
    return left >= PAGE_ROWS_MAX ? PAGE_ROWS_MAX : (size_t)left + 1;
}

static enum client_result read_page(struct table *table, uint64_t after, struct process_page *page)
{
    const struct options *options = table->options;
    return options->sort == SORT_PID
               ? page_read(table->client, &options->filter, after, page_limit(table), page)
               : page_read_largest(table->client, options->sort, (size_t)table->rows_max, page);
}

/* Asks those that will be printed what they wait for. */
static enum client_result describe_page(struct table *table, struct process_page *page)
{
    const uint64_t left = table->rows_max - table->rows;
    if (table->options->all && page->live > ASKED_MAX) {
        for (size_t i = 0; i < page->count; i++) {
            row_is_unknown(&page->rows[i]);
        }
        return CLIENT_END;
    }
    if (page->count > left) {
        row_is_unknown(&page->rows[left]); /* it only tells that there is more */
    }
    return rows_describe(table->client, page->rows, page->count < left ? page->count : left);
}

static enum client_result print_table(struct table *table)
{
    struct process_page page;
    uint64_t after = table->options->after;
    do {
        enum client_result result = read_page(table, after, &page);
        if (result == CLIENT_END) {
            result = describe_page(table, &page);
        }
        if (result != CLIENT_END) {
            return result;
        }
        if (page.more != 0 && page.more == after) {
            return CLIENT_BROKEN; /* would go on for ever */
        }
        print_page(table, &page);
        if (!paper_flush(table->paper)) {
            return CLIENT_END;
        }
        table->live = page.live;
        after = page.more;
    } while (after != 0 && !table->is_cut);
    table->is_cut |= table->options->sort != SORT_PID && table->rows < table->live;
    return CLIENT_END;
}

/* Why the column of --stacks is empty. */
static void explain_stacks(const struct table *table)
{
    if (table->options->stacks && !table->has_stacks) {
        fprintf(stderr, "skua ps: no stacks of tasks are measured; that takes a program which was "
                        "started with SKUA_DEBUG=stacks\n");
    }
}

/* How to see what the table does not show. */
static void print_rest(const struct table *table)
{
    const struct options *options = table->options;
    const uint64_t left = table->live > table->rows ? table->live - table->rows : 0;
    if (!table->is_cut) {
        return;
    }
    if (options->sort != SORT_PID) {
        fprintf(stderr,
                "skua ps: %" PRIu64 " more; -n shows up to %d, --sort pid --all shows all\n", left,
                PAGE_ROWS_MAX);
    } else if (is_filtered(options) || options->after != 0) {
        fprintf(stderr,
                "skua ps: more: continue with --after %016" PRIx64 ", or show all with --all\n",
                table->last);
    } else {
        fprintf(stderr,
                "skua ps: %" PRIu64 " more: continue with --after %016" PRIx64
                ", or show all with --all\n",
                left, table->last);
    }
}

static struct table make_table(struct client *client, const struct options *options,
                               struct paper *paper)
{
    struct table table = {
        .options = options,
        .client = client,
        .paper = paper,
        .rows_max = options->all        ? UINT64_MAX
                    : options->rows > 0 ? options->rows
                                        : paper_rows(),
        .type_columns = strlen("TYPE"),
        .name_columns = strlen("NAME"),
    };
    if (options->sort != SORT_PID && table.rows_max > PAGE_ROWS_MAX) {
        table.rows_max = PAGE_ROWS_MAX;
    }
    return table;
}

/* May be called again, with other paper. */
static enum client_result print(void *arg, struct paper *paper)
{
    struct table *table = arg;
    *table = make_table(table->client, table->options, paper);
    return print_table(table);
}

static int show(struct client *client, const struct options *options)
{
    struct paper paper;
    struct table table = {.client = client, .options = options};
    const int status = paper_print(client, options->all, print, &table, &paper);
    if (status == 0 && paper.write_error == 0) {
        explain_stacks(&table);
        print_rest(&table);
    }
    return status;
}

int ps_command(int argc, char **argv)
{
    struct options options = {.sort = SORT_PID};
    for (int i = 1; i < argc; i++) {
        if (is_help(argv[i])) {
            return help();
        }
        if (!read_option(argv, &i, &options)) {
            return STATUS_USAGE;
        }
    }
    if (!check_options(&options)) {
        return STATUS_USAGE;
    }
    struct client client;
    int status = client_open(&client, "ps", options.program);
    if (status == 0) {
        status = show(&client, &options);
        client_close(&client);
    }
    return status;
}
