/* SPDX-License-Identifier: MIT */
/* `skua info`: all there is to know of one process. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command/commands.h"
#include "command/format.h"
#include "command/inspect/inspect.h"
#include "command/support.h"

static int help(void)
{
    fputs("usage: skua info PID [-p PROGRAM]\n\n"
          "Shows one process of a running program, one line per detail: its supervisor, what it\n"
          "waits for, its names and its label, up to 16 of its groups, up to 8 of the processes "
          "that it is\n"
          "linked to, that monitor it, and whose calls it has not answered, and up to 20 of its\n"
          "open yields and of its sockets. Of a task also the file and line where it waits, and\n"
          "the functions that have called each other there.\n"
          "PID is what `skua ps` shows; leading zeros may be left out.\n\n" HELP_PROGRAM
          "\nExamples:\n"
          "  skua info 0001000000000001\n",
          stdout);
    return 0;
}

static void print_row(const struct process_row *row)
{
    printf("pid: %016" PRIx64 "\n", row->pid);
    printf("type: %s\n", row->type);
    printf("state: %s\n", row->state);
    printf("mailbox: %" PRIu64 "\n", row->mailbox);
    printf("steps: %" PRIu64 "\n", row->steps);
    printf("run: %s\n", format_time(row->run_ns).text);
    printf("age: %s\n", format_time(row->age_ns).text);
    if (row->supervisor != 0) {
        printf("supervisor: %016" PRIx64 "\n", row->supervisor);
    }
}

/* Lines of this kind that are not shown, because there are many. */
static void print_rest(const char *what, uint64_t count, uint64_t shown, bool is_exact)
{
    if (count > shown) {
        printf("%s: and %s%" PRIu64 " more\n", what, is_exact ? "" : "at least ", count - shown);
    }
}

static bool print_list_line(const struct line *line, bool is_task)
{
    struct wait_text text;
    if (line_is(line, "name") && line->count >= 2) {
        printf("name: %s\n", line->field[1]);
    } else if (line_is(line, "group") && line->count >= 2) {
        printf("group: %s\n", line->field[1]);
    } else if ((line_is(line, "link") || line_is(line, "monitor")) && line->count >= 3) {
        printf("%s: %s (%s)\n", line->field[0], line->field[1], line->field[2]);
    } else if (line_is(line, "frame") && line->count >= 2) {
        printf("frame: %s\n", line->field[1]);
    } else if (line_is(line, "owes")) {
        if (!request_describe(line, &text)) {
            return false;
        }
        printf("owes an answer to: %s\n", text.text);
    } else if (line_is(line, "yield")) {
        if (!yield_describe(line, is_task, &text)) {
            return false;
        }
        printf("yield: %s\n", text.text);
    } else if (line_is(line, "socket")) {
        if (!socket_describe(line, &text)) {
            return false;
        }
        printf("socket: %s\n", text.text);
    }
    return true;
}

/* A list begins with a detail that has its length. */
struct list {
    const char *kind; /* of its lines; null: none has begun */
    uint64_t count;
    uint64_t shown;
    bool is_exact; /* its length is */
};

static void end_list(struct list *list)
{
    if (list->kind != NULL) {
        print_rest(list->kind, list->count, list->shown, list->is_exact);
    }
    *list = (struct list){0};
}

static void begin_list(struct list *list, const struct line *line)
{
    static const struct {
        const char *detail;
        const char *kind;
    } lists[] = {{"names", "name"},   {"links", "link"},   {"monitors", "monitor"},
                 {"owed", "owes"},    {"yields", "yield"}, {"sockets", "socket"},
                 {"frames", "frame"}, {"groups", "group"}};
    end_list(list);
    list->is_exact = true;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(line->field[1], lists[i].detail) == 0 && line_number(line, 2, &list->count)) {
            list->kind = lists[i].kind;
            list->is_exact = list->count < LIST_COUNT_MAX || strcmp(lists[i].detail, "owed") == 0 ||
                             strcmp(lists[i].detail, "groups") == 0;
        }
    }
}

/* What has been read. */
struct view {
    struct process_row row;
    bool has_waits; /* which are not printed yet: the next line may say more of them */
    struct list list;
};

static void print_waits(struct view *view)
{
    if (view->has_waits) {
        printf("waits for: %s\n", view->row.waits.text);
        if (view->row.where[0] != '\0') {
            printf("waits at: %s\n", view->row.where);
        }
    }
    view->has_waits = false;
}

/* Returns false if the line makes no sense. */
static bool print_line(const struct line *line, struct view *view)
{
    if (line_is(line, "task")) {
        return row_describe_task(&view->row, line);
    }
    print_waits(view);
    if (line_is(line, "stack")) {
        if (!row_describe_stack(&view->row, line)) {
            return false;
        }
        printf("stack_used: %s\n", view->row.stack);
        return true;
    }
    if (line_is(line, "process")) {
        if (!row_read(line, &view->row)) {
            return false;
        }
        print_row(&view->row);
    } else if (line_is(line, "described")) {
        view->has_waits = true;
        return row_describe(&view->row, line);
    } else if (line_is(line, "detail") && line->count >= 3) {
        begin_list(&view->list, line);
        printf("%s: %s%s\n", line->field[1], line->field[2], view->list.is_exact ? "" : " or more");
    } else {
        view->list.shown += view->list.kind != NULL && line_is(line, view->list.kind);
        return print_list_line(line, view->row.is_task);
    }
    return true;
}

static int show(struct client *client, uint64_t pid)
{
    struct line line;
    struct view view = {.has_waits = false};
    enum client_result result;
    client_ask(client, "process %016" PRIx64, pid);
    while ((result = client_read(client, &line)) == CLIENT_LINE) {
        if (!print_line(&line, &view)) {
            return client_failure(client, CLIENT_BROKEN);
        }
    }
    print_waits(&view);
    end_list(&view.list);
    return result == CLIENT_END ? 0 : client_failure(client, result);
}

int info_command(int argc, char **argv)
{
    const char *command = "info";
    const char *program = NULL;
    const char *process = NULL;
    uint64_t pid;
    for (int i = 1; i < argc; i++) {
        if (is_help(argv[i])) {
            return help();
        }
        if (is_program(argv[i])) {
            if (!option_text(command, argv, &i, &program)) {
                return STATUS_USAGE;
            }
        } else if (argv[i][0] != '-' && process == NULL) {
            process = argv[i];
        } else {
            return unknown_argument(command, argv[i]);
        }
    }
    if (process == NULL) {
        return usage_error(command, "missing PID; `skua ps` lists them");
    }
    if (!parse_pid(process, &pid) || pid == 0) {
        return usage_error(command, "invalid PID '%s': a PID has up to 16 hexadecimal digits",
                           process);
    }
    struct client client;
    int status = client_open(&client, command, program);
    if (status == 0) {
        status = finish_output(command, show(&client, pid));
        client_close(&client);
    }
    return status;
}
