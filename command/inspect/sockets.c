/* SPDX-License-Identifier: MIT */
/* `skua sockets`: the sockets of a running program, as a table. Read and printed a page at a time,
 * as `skua ps` does. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command/commands.h"
#include "command/format.h"
#include "command/inspect/inspect.h"
#include "command/inspect/paper.h"
#include "command/support.h"

/* With --all, owners of larger numbers of sockets are not asked for their names: that costs time,
 * also of the program. */
enum { ASKED_MAX = 10000 };

enum sort { BY_SOCKET, BY_IN, BY_OUT, BY_QUEUED, BY_IDLE };
static const char *const sorts[] = {"socket", "in", "out", "queued", "idle"};
enum { SORTS = sizeof sorts / sizeof sorts[0] };

struct options {
    const char *program;
    enum sort sort;
    uint64_t rows; /* 0: not given */
    bool all;
    uint64_t after;
    uint64_t owner;    /* 0: any */
    const char *state; /* null: any */
    const char *type;  /* of the owner; null: any */
};

struct page {
    size_t count;
    struct socket_row rows[PAGE_ROWS_MAX];
    char names[PAGE_ROWS_MAX][NAME_TEXT_SIZE]; /* of the owners */
    uint64_t open;
    uint64_t more; /* the next page begins after this one; 0: there is none */
};

/* How wide the columns are whose texts differ much; they grow. */
struct widths {
    size_t type;
    size_t local;
    size_t peer;
    size_t name;
};

struct table {
    const struct options *options;
    struct client *client;
    struct paper *paper;
    uint64_t rows_max;
    bool has_header;
    uint64_t rows; /* printed so far */
    uint64_t last; /* the last of them */
    struct widths widths;
    uint64_t open; /* as the last page said */
    bool is_cut;   /* there are more */
    struct page page;
};

static int help(void)
{
    fputs(
        "usage: skua sockets [--sort KEY] [-n ROWS | --all] [--after SOCKET] [--owner PID]\n"
        "                    [--type NAME] [--state STATE] [-p PROGRAM]\n\n"
        "Lists the sockets of a running program: the process that owns it and its type, state\n"
        "(listening, connecting, open, shut-down, closing), its address and that of its peer,\n"
        "bytes received and sent so far, bytes that wait to be written, how long nothing has come\n"
        "or gone, the name of the owner, its label in parentheses, and the socket's own number. A\n"
        "socket that is closing has no owner any more, and still writes what was queued.\n\n"
        "  --sort KEY             socket (default, in no particular order), or largest first by\n"
        "                         in, out, queued or idle; the latter show at most 256 rows\n"
        "  -n ROWS                how many rows; default 50, or what fits on the screen\n"
        "  --all                  all sockets; on a terminal, through $PAGER or less. If there "
        "are\n"
        "                         more than 10000, owners are not asked for their names\n"
        "  --after SOCKET         start after this number, in the order of --sort socket\n"
        "  --owner PID            only sockets of this process\n"
        "  --type NAME            only sockets of processes of this type\n"
        "  --state STATE          only sockets in this state\n" HELP_PROGRAM "\nExamples:\n"
        "  skua sockets --sort queued -n 10\n"
        "  skua sockets --all --type session --state open\n",
        stdout);
    return 0;
}

/* ---- options ---- */

static bool option_sort(char **argv, int *i, enum sort *sort)
{
    const char *text;
    if (!option_text("sockets", argv, i, &text)) {
        return false;
    }
    for (size_t k = 0; k < SORTS; k++) {
        if (strcmp(text, sorts[k]) == 0) {
            *sort = (enum sort)k;
            return true;
        }
    }
    usage_error("sockets", "invalid sort key '%s': use socket, in, out, queued or idle", text);
    return false;
}

/* A PID, or the number of a socket, which looks the same. */
static bool option_id(char **argv, int *i, const char *what, uint64_t *id)
{
    const char *text;
    if (!option_text("sockets", argv, i, &text)) {
        return false;
    }
    if (!parse_pid(text, id) || *id == 0) {
        usage_error("sockets", "invalid %s '%s': it has up to 16 hexadecimal digits", what, text);
        return false;
    }
    return true;
}

static bool option_state(char **argv, int *i, const char **state)
{
    static const char *const states[] = {"listening", "connecting", "open", "shut-down", "closing"};
    if (!option_text("sockets", argv, i, state)) {
        return false;
    }
    for (size_t k = 0; k < sizeof states / sizeof states[0]; k++) {
        if (strcmp(*state, states[k]) == 0) {
            return true;
        }
    }
    usage_error("sockets",
                "invalid state '%s': use listening, connecting, open, shut-down or closing",
                *state);
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
        return option_number("sockets", argv, i, 1, UINT32_MAX, &options->rows);
    }
    if (strcmp(option, "--all") == 0) {
        return options->all = true;
    }
    if (is_valued(option, "--after")) {
        return option_id(argv, i, "socket", &options->after);
    }
    if (is_valued(option, "--owner")) {
        return option_id(argv, i, "PID", &options->owner);
    }
    if (is_valued(option, "--type")) {
        return option_text("sockets", argv, i, &options->type);
    }
    if (is_valued(option, "--state")) {
        return option_state(argv, i, &options->state);
    }
    if (is_program(option)) {
        return option_text("sockets", argv, i, &options->program);
    }
    unknown_argument("sockets", option);
    return false;
}

static bool is_filtered(const struct options *options)
{
    return options->type != NULL || options->state != NULL || options->owner != 0;
}

/* Whether the options go together. */
static bool check_options(const struct options *options)
{
    if (options->all && options->rows > 0) {
        usage_error("sockets", "-n and --all exclude each other");
        return false;
    }
    if (options->sort == BY_SOCKET) {
        return true;
    }
    if (options->all || options->after != 0 || is_filtered(options)) {
        usage_error("sockets", "--all, --after, --owner, --type and --state need --sort socket");
        return false;
    }
    if (options->rows > PAGE_ROWS_MAX) {
        usage_error("sockets", "at most %d rows when sorted by %s", PAGE_ROWS_MAX,
                    sorts[options->sort]);
        return false;
    }
    return true;
}

/* ---- reading ---- */

static bool take_line(const struct line *line, size_t limit, struct page *page)
{
    if (line_is(line, "socket")) {
        return page->count < limit && socket_row_read(line, &page->rows[page->count++]);
    }
    if (line_is(line, "seen")) {
        return line_number(line, 1, &page->open);
    }
    return line_is(line, "more") ? line_pid(line, 1, &page->more) : true;
}

/* One more than what is left to print: it tells whether there is anything behind that. */
static size_t page_limit(const struct table *table)
{
    const uint64_t left = table->rows_max - table->rows;
    return left >= PAGE_ROWS_MAX ? PAGE_ROWS_MAX : (size_t)left + 1;
}

static size_t ask(struct table *table, uint64_t after)
{
    const struct options *options = table->options;
    char type[sizeof table->page.rows[0].type + 1] = ""; /* one byte more, as in processes.c */
    if (options->sort != BY_SOCKET) {
        client_ask(table->client, "sockets %s 0 %" PRIu64, sorts[options->sort], table->rows_max);
        return (size_t)table->rows_max;
    }
    if (options->type != NULL) {
        copy_text(type, sizeof type, options->type);
        make_printable(type); /* a line must stay one */
    }
    client_ask(table->client, "sockets socket %016" PRIx64 " %zu %s %016" PRIx64 "%s%s", after,
               page_limit(table), options->state != NULL ? options->state : "any", options->owner,
               options->type != NULL ? " " : "", type);
    return page_limit(table);
}

static enum client_result read_page(struct table *table, uint64_t after)
{
    struct page *page = &table->page;
    struct line line;
    enum client_result result;
    const size_t limit = ask(table, after);
    page->count = 0;
    page->open = 0;
    page->more = 0;
    while ((result = client_read(table->client, &line)) == CLIENT_LINE) {
        if (!take_line(&line, limit, page)) {
            return CLIENT_BROKEN;
        }
    }
    return result;
}

/* ---- names of owners ---- */

static bool take_names(void *arg, uint64_t pid, const char *name, const char *label)
{
    struct page *page = arg;
    for (size_t i = 0; i < page->count; i++) {
        if (page->rows[i].owner == pid && (name[0] != '\0' || label[0] != '\0')) {
            snprintf(page->names[i], sizeof page->names[i], "%s%s%s%s%s", name,
                     name[0] != '\0' && label[0] != '\0' ? " " : "", label[0] != '\0' ? "(" : "",
                     label, label[0] != '\0' ? ")" : "");
        }
    }
    return true;
}

/* Asks each owner once. */
static enum client_result name_owners(struct table *table)
{
    struct page *page = &table->page;
    uint64_t pids[PAGE_ROWS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < page->count; i++) {
        copy_text(page->names[i], sizeof page->names[i], "-");
        bool is_new = page->rows[i].owner != 0;
        for (size_t k = 0; k < count; k++) {
            is_new = is_new && pids[k] != page->rows[i].owner;
        }
        if (is_new) {
            pids[count++] = page->rows[i].owner;
        }
    }
    return table->options->all && page->open > ASKED_MAX
               ? CLIENT_END
               : names_describe(table->client, pids, count, take_names, page);
}

/* ---- the table ---- */

static void widen(size_t *columns, const char *text)
{
    const size_t needed = text_columns(text);
    *columns = needed > *columns ? needed : *columns;
}

static void print_header(struct table *table)
{
    struct screen screen = paper_lines(table->paper);
    const struct widths *widths = &table->widths;
    screen_line(&screen, "%-16s  %-*s  %-10s  %-*s  %-*s  %6s  %6s  %6s  %8s  %-*s  %s", "OWNER",
                (int)widths->type, "TYPE", "STATE", (int)widths->local, "LOCAL", (int)widths->peer,
                "PEER", "IN", "OUT", "QUEUED", "IDLE", (int)widths->name, "NAME", "SOCKET");
}

static void print_row(struct table *table, const struct socket_row *row, const char *name)
{
    struct screen screen = paper_lines(table->paper);
    const struct widths *widths = &table->widths;
    char owner[17] = "-";
    if (row->owner != 0) {
        snprintf(owner, sizeof owner, "%016" PRIx64, row->owner);
    }
    screen_line(&screen, "%-16s  %-*s  %-10s  %-*s  %-*s  %6s  %6s  %6s  %8s  %-*s  %016" PRIx64,
                owner, text_width(row->type, widths->type), row->type, row->state,
                text_width(row->local, widths->local), row->local,
                text_width(row->peer, widths->peer), row->peer,
                format_count((double)row->bytes_in).text, format_count((double)row->bytes_out).text,
                format_count((double)row->queued).text, format_time(row->idle_ns).text,
                text_width(name, widths->name), name, row->socket);
    table->rows++;
    table->last = row->socket;
}

static void print_page(struct table *table)
{
    const struct page *page = &table->page;
    for (size_t i = 0; i < page->count; i++) {
        widen(&table->widths.type, page->rows[i].type);
        widen(&table->widths.local, page->rows[i].local);
        widen(&table->widths.peer, page->rows[i].peer);
        widen(&table->widths.name, page->names[i]);
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
        print_row(table, &page->rows[i], page->names[i]);
    }
}

static enum client_result print_table(struct table *table)
{
    uint64_t after = table->options->after;
    do {
        enum client_result result = read_page(table, after);
        if (result == CLIENT_END) {
            result = name_owners(table);
        }
        if (result != CLIENT_END) {
            return result;
        }
        if (table->page.more != 0 && table->page.more <= after) {
            return CLIENT_BROKEN; /* would go on for ever */
        }
        print_page(table);
        if (!paper_flush(table->paper)) {
            return CLIENT_END;
        }
        table->open = table->page.open;
        after = table->page.more;
    } while (after != 0 && !table->is_cut);
    table->is_cut |= table->options->sort != BY_SOCKET && table->rows < table->open;
    return CLIENT_END;
}

/* May be called again, with other paper. */
static enum client_result print(void *arg, struct paper *paper)
{
    struct table *table = arg;
    const struct options *options = table->options;
    table->paper = paper;
    table->rows_max = options->all ? UINT64_MAX : options->rows > 0 ? options->rows : paper_rows();
    if (options->sort != BY_SOCKET && table->rows_max > PAGE_ROWS_MAX) {
        table->rows_max = PAGE_ROWS_MAX;
    }
    table->rows = 0;
    table->has_header = false;
    table->is_cut = false;
    table->widths =
        (struct widths){strlen("TYPE"), strlen("LOCAL"), strlen("PEER"), strlen("NAME")};
    const enum client_result result = print_table(table);
    if (result == CLIENT_ERROR && strcmp(table->client->error.name, "SKUA_E_INVALID") == 0) {
        copy_text(table->client->error.text, sizeof table->client->error.text,
                  "the program has an older version of Skua, which does not tell");
    }
    return result;
}

/* How to see what the table does not show. */
static void print_rest(const struct table *table)
{
    const uint64_t left = table->open > table->rows ? table->open - table->rows : 0;
    char count[32] = "";
    if (!table->is_cut) {
        return;
    }
    if (table->options->sort != BY_SOCKET) {
        fprintf(stderr,
                "skua sockets: %" PRIu64
                " more; -n shows up to %d, --sort socket --all shows all\n",
                left, PAGE_ROWS_MAX);
        return;
    }
    if (!is_filtered(table->options) && table->options->after == 0) {
        snprintf(count, sizeof count, "%" PRIu64 " ", left);
    }
    fprintf(stderr,
            "skua sockets: %smore: continue with --after %016" PRIx64 ", or show all with --all\n",
            count, table->last);
}

static int show(struct client *client, const struct options *options)
{
    static struct table table; /* much for a stack */
    struct paper paper;
    table.client = client;
    table.options = options;
    const int status = paper_print(client, options->all, print, &table, &paper);
    if (status == 0 && paper.write_error == 0) {
        print_rest(&table);
    }
    return status;
}

int sockets_command(int argc, char **argv)
{
    struct options options = {.sort = BY_SOCKET};
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
    int status = client_open(&client, "sockets", options.program);
    if (status == 0) {
        status = show(&client, &options);
        client_close(&client);
    }
    return status;
}
