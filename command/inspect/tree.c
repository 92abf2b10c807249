/* SPDX-License-Identifier: MIT */
/* `skua tree`: who supervises whom in a running program. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/commands.h"
#include "command/format.h"
#include "command/inspect/paper.h"
#include "command/inspect/tree.h"
#include "command/support.h"

/* Without --all, so many children of each supervisor. */
enum { CHILDREN_DEFAULT = 50 };

/* Types that the end of the table lists. */
enum { TYPES_MAX = 1000 };

struct options {
    const char *program;
    uint64_t pid; /* 0: not given */
    bool all;
    bool ascii;
};

/* How many processes of a type have no supervisor. */
struct type_count {
    char type[sizeof((struct process_row *)NULL)->type];
    uint64_t count;
};

struct view {
    const struct options *options;
    struct client *client;
    struct tree tree;
    struct process_page page;
    struct type_count others[TYPES_MAX];
    size_t other_count;
    bool is_no_supervisor; /* the process that was asked for */
};

static int help(void)
{
    fputs(
        "usage: skua tree [PID] [--all] [--ascii] [-p PROGRAM]\n\n"
        "Shows who supervises whom in a running program: each supervisor with its children, and\n"
        "their children, by name; PID and type, state (starting, running, stopping, stopped,\n"
        "waiting to be started again), how often it was started again, for how long it runs now,\n"
        "how it last ended, and when it will be started again. A supervisor that does not answer\n"
        "within 20 ms is busy: then its living children are shown without what it knows of them.\n"
        "With a PID, as `skua ps` shows it, only this supervisor and what is below.\n\n"
        "  --all                  all children, not just 50 of each supervisor; and how many\n"
        "                         processes of each type have no supervisor. On a terminal,\n"
        "                         through $PAGER or less\n"
        "  --ascii                draw lines with ASCII characters, as where the locale has no\n"
        "                         UTF-8\n" HELP_PROGRAM "\nExamples:\n"
        "  skua tree\n"
        "  skua tree 0001000000000001 --all\n",
        stdout);
    return 0;
}

/* ---- processes without a supervisor ---- */

static void count_type(struct view *view, const char *type)
{
    size_t i = 0;
    while (i < view->other_count && strcmp(view->others[i].type, type) != 0) {
        i++;
    }
    if (i == TYPES_MAX) {
        return;
    }
    if (i == view->other_count) {
        view->other_count++;
        view->others[i].count = 0;
        copy_text(view->others[i].type, sizeof view->others[i].type, type);
    }
    view->others[i].count++;
}

static enum client_result count_others(struct view *view)
{
    static const struct process_filter everything = {NULL, NULL};
    uint64_t after = 0;
    view->other_count = 0;
    do {
        const enum client_result result =
            page_read(view->client, &everything, after, PAGE_ROWS_MAX, &view->page);
        if (result != CLIENT_END) {
            return result;
        }
        for (size_t i = 0; i < view->page.count; i++) {
            const struct process_row *row = &view->page.rows[i];
            if (row->supervisor == 0 && !tree_has_root(&view->tree, row->pid)) {
                count_type(view, row->type);
            }
        }
        if (view->page.more != 0 && view->page.more <= after) {
            return CLIENT_BROKEN; /* would go on for ever */
        }
        after = view->page.more;
    } while (after != 0);
    return CLIENT_END;
}

static int compare_types(const void *a, const void *b)
{
    return strcmp(((const struct type_count *)a)->type, ((const struct type_count *)b)->type);
}

static void print_others(struct view *view, struct screen *screen)
{
    qsort(view->others, view->other_count, sizeof view->others[0], compare_types);
    for (size_t i = 0; i < view->other_count; i++) {
        screen_line(screen, "without a supervisor: %" PRIu64 " of type %s", view->others[i].count,
                    view->others[i].type);
    }
}

/* ---- the table ---- */

static enum client_result read_all(struct view *view)
{
    const struct options *options = view->options;
    const struct tree_wish wish = {.pid = options->pid,
                                   .rows_most = TREE_ROWS_MAX,
                                   .children_most =
                                       options->all ? TREE_ROWS_MAX : CHILDREN_DEFAULT};
    const enum client_result result = tree_read(view->client, &wish, &view->tree);
    if (result == CLIENT_ERROR && strcmp(view->client->error.name, "SKUA_E_INVALID") == 0) {
        copy_text(view->client->error.text, sizeof view->client->error.text,
                  "the program has an older version of Skua, which does not tell");
    }
    return result == CLIENT_END && options->all && options->pid == 0 ? count_others(view) : result;
}

/* May be called again, with other paper. */
static enum client_result print(void *arg, struct paper *paper)
{
    struct view *view = arg;
    const enum client_result result = read_all(view);
    if (result != CLIENT_END) {
        return result;
    }
    view->is_no_supervisor =
        view->tree.first != TREE_NONE && !view->tree.rows[view->tree.first].is_supervisor;
    if (view->is_no_supervisor) {
        return CLIENT_END;
    }
    struct screen screen = paper_lines(paper);
    if (view->tree.first == TREE_NONE) {
        screen_line(&screen, "no supervisors");
    } else {
        (void)tree_draw(&view->tree, &screen, 0, SIZE_MAX,
                        view->options->ascii || !tree_has_lines());
    }
    if (view->options->all && view->options->pid == 0) {
        print_others(view, &screen);
    }
    (void)paper_flush(paper);
    return CLIENT_END;
}

static int show(struct client *client, const struct options *options)
{
    static struct view view; /* much for a stack */
    struct paper paper;
    view.client = client;
    view.options = options;
    int status = paper_print(client, options->all, print, &view, &paper);
    if (status == 0 && view.is_no_supervisor) {
        status = failure("tree", "process %016" PRIx64 " (%s) is no supervisor", options->pid,
                         view.tree.rows[0].type);
    }
    tree_free(&view.tree);
    return status;
}

/* Returns whether an argument is right. */
static bool read_argument(char **argv, int *i, struct options *options)
{
    const char *argument = argv[*i];
    if (strcmp(argument, "--all") == 0) {
        return options->all = true;
    }
    if (strcmp(argument, "--ascii") == 0) {
        return options->ascii = true;
    }
    if (is_program(argument)) {
        return option_text("tree", argv, i, &options->program);
    }
    if (argument[0] == '-' || options->pid != 0) {
        unknown_argument("tree", argument);
        return false;
    }
    if (!parse_pid(argument, &options->pid) || options->pid == 0) {
        usage_error("tree", "invalid PID '%s': a PID has up to 16 hexadecimal digits", argument);
        return false;
    }
    return true;
}

int tree_command(int argc, char **argv)
{
    struct options options = {.program = NULL};
    for (int i = 1; i < argc; i++) {
        if (is_help(argv[i])) {
            return help();
        }
        if (!read_argument(argv, &i, &options)) {
            return STATUS_USAGE;
        }
    }
    struct client client;
    int status = client_open(&client, "tree", options.program);
    if (status == 0) {
        status = show(&client, &options);
        client_close(&client);
    }
    return status;
}
