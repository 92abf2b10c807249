/* SPDX-License-Identifier: MIT */
/* `skua reload`: a new version of a module into a running program. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <skua/types.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/commands.h"
#include "command/format.h"
#include "command/inspect/inspect.h"
#include "command/support.h"

#define COMMAND "reload"

enum { FILE_NAME_MAX = 1000, TYPE_NAME_MAX = 100 };

/* How long processes are waited for, and how often the program is asked meanwhile. */
#define WAIT_NS  (5 * SKUA_SECOND)
#define PAUSE_NS (20 * SKUA_MILLISECOND)

/* A line `upgrade`. */
struct upgrade {
    uint64_t number;
    char type[TYPE_TEXT_SIZE];
    uint64_t from;
    uint64_t to;
    uint64_t asked;
    uint64_t migrated;
    uint64_t failed;
    uint64_t gone;
    uint64_t migrates; /* whether the new version can take over processes */
};

struct upgrades {
    size_t count;
    size_t capacity;
    struct upgrade *rows;
};

static int help(void)
{
    fputs(
        "usage: skua reload FILE [--type NAME] [-p PROGRAM]\n\n"
        "Loads a new version of a module into a program that `skua run` runs. Types are the same\n"
        "if they have the same name. Each whose version is higher than any that was loaded\n"
        "replaces it: processes that are started from now on are of the new version, and those\n"
        "that live change to it between two steps, if it can migrate their state. The others\n"
        "keep running the old code, which is never unloaded.\n\n"
        "Prints a line for each type that was replaced: how many processes were asked to "
        "change,\n"
        "have changed, could not (failed), and have ended before they could (gone). Waits up to\n"
        "5 seconds for them. Only the user who runs the program, or root, can reload it.\n\n"
        "  --type NAME            replace this type only\n" HELP_PROGRAM "\nExamples:\n"
        "  skua reload ./counter_v2.so\n"
        "  skua reload ./counter_v2.so --type counter -p 4711\n\n"
        "Exit status: 0 if all processes that were asked have changed or ended; 1 if some have\n"
        "not, or the module cannot be loaded; 2 for wrong usage.\n",
        stdout);
    return 0;
}

/* ---- the answers ---- */

static bool read_upgrade(const struct line *line, struct upgrade *row)
{
    return line_is(line, "upgrade") && line_number(line, 1, &row->number) &&
           line_text(line, 2, row->type, sizeof row->type) && line_number(line, 3, &row->from) &&
           line_number(line, 4, &row->to) && line_number(line, 5, &row->asked) &&
           line_number(line, 6, &row->migrated) && line_number(line, 7, &row->failed) &&
           line_number(line, 8, &row->gone) && line_number(line, 9, &row->migrates);
}

static struct upgrade *add_row(struct upgrades *upgrades)
{
    if (upgrades->count == upgrades->capacity) {
        const size_t capacity = 2 * upgrades->capacity + 16;
        upgrades->rows =
            skua_must_alloc(NULL, upgrades->rows, upgrades->capacity * sizeof *upgrades->rows,
                            capacity * sizeof *upgrades->rows, alignof(struct upgrade));
        upgrades->capacity = capacity;
    }
    return &upgrades->rows[upgrades->count++];
}

static enum client_result read_upgrades(struct client *client, struct upgrades *upgrades)
{
    struct line line;
    enum client_result result;
    upgrades->count = 0;
    while ((result = client_read(client, &line)) == CLIENT_LINE) {
        if (!read_upgrade(&line, add_row(upgrades))) {
            return CLIENT_BROKEN;
        }
    }
    return result;
}

static uint64_t open_in(const struct upgrade *row)
{
    const uint64_t settled = row->migrated + row->failed + row->gone;
    return row->asked > settled ? row->asked - settled : 0;
}

static bool are_over(const struct upgrades *upgrades)
{
    for (size_t i = 0; i < upgrades->count; i++) {
        if (open_in(&upgrades->rows[i]) > 0) {
            return false;
        }
    }
    return true;
}

/* Asks until all processes have answered, or for long enough. */
static enum client_result await(struct client *client, struct upgrades *upgrades)
{
    enum client_result result = CLIENT_END;
    const uint64_t deadline_ns = clock_ns() + WAIT_NS;
    const uint64_t before =
        upgrades->count > 0 ? upgrades->rows[upgrades->count - 1].number - 1 : 0;
    while (result == CLIENT_END && !are_over(upgrades) && clock_ns() < deadline_ns) {
        if (!client_wait(client, clock_ns() + PAUSE_NS)) {
            return CLIENT_GONE;
        }
        client_ask(client, "upgrades %" PRIu64, before);
        result = read_upgrades(client, upgrades);
    }
    return result;
}

static bool are_same(const struct upgrade *one, const struct upgrade *other)
{
    return one->from == other->from && one->to == other->to && strcmp(one->type, other->type) == 0;
}

/* Several modules may have had the same version of a type: they become one row. */
static void merge(struct upgrades *upgrades)
{
    size_t count = 0;
    for (size_t i = 0; i < upgrades->count; i++) {
        const struct upgrade row = upgrades->rows[i];
        size_t same = 0;
        while (same < count && !are_same(&upgrades->rows[same], &row)) {
            same++;
        }
        if (same == count) {
            upgrades->rows[count++] = row;
            continue;
        }
        upgrades->rows[same].asked += row.asked;
        upgrades->rows[same].migrated += row.migrated;
        upgrades->rows[same].failed += row.failed;
        upgrades->rows[same].gone += row.gone;
    }
    upgrades->count = count;
}

/* Whether another row is of the same new type, and says more than this one, which nobody was asked
 * for. */
static bool is_idle(const struct upgrades *upgrades, const struct upgrade *row)
{
    for (size_t i = 0; row->asked == 0 && i < upgrades->count; i++) {
        const struct upgrade *other = &upgrades->rows[i];
        if (strcmp(other->type, row->type) == 0 && (other->asked > 0 || other->from > row->from)) {
            return true;
        }
    }
    return false;
}

static void print_row(const struct upgrade *row)
{
    printf("%s v%" PRIu64 " to v%" PRIu64 ": ", row->type, row->from, row->to);
    if (!row->migrates) {
        printf("only for new processes: v%" PRIu64 " has no migrate\n", row->to);
        return;
    }
    printf("%" PRIu64 " asked, %" PRIu64 " changed, %" PRIu64 " failed, %" PRIu64 " gone",
           row->asked, row->migrated, row->failed, row->gone);
    if (open_in(row) > 0) {
        printf(", %" PRIu64 " still to change", open_in(row));
    }
    printf("\n");
}

static int report(struct upgrades *upgrades)
{
    uint64_t old = 0;
    merge(upgrades);
    for (size_t i = upgrades->count; i > 0; i--) {
        const struct upgrade *row = &upgrades->rows[i - 1];
        if (!is_idle(upgrades, row)) {
            print_row(row);
        }
        old += row->failed + open_in(row);
    }
    return old == 0 ? 0
                    : failure(COMMAND, "%" PRIu64 " process%s not changed, and run%s the old code",
                              old, old == 1 ? " has" : "es have", old == 1 ? "s" : "");
}

static int reload(struct client *client, struct upgrades *upgrades, const char *path,
                  const char *type)
{
    client_ask(client, "reload %s%s%s", path, type != NULL ? "\t" : "", type != NULL ? type : "");
    enum client_result result = read_upgrades(client, upgrades);
    if (result == CLIENT_ERROR && strcmp(client->error.name, "SKUA_E_INVALID") == 0) {
        return failure(COMMAND, "the program is of a version of Skua that cannot be reloaded");
    }
    if (result == CLIENT_END) {
        result = await(client, upgrades);
    }
    return result == CLIENT_END ? report(upgrades) : client_failure(client, result);
}

/* ---- the command line ---- */

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == '\x7f') {
            return false;
        }
    }
    return true;
}

/* The program has a folder of its own, so the name begins at the root. Returns 0, or the status
 * after a complaint. */
static int find_file(const char *file, char path[PATH_MAX])
{
    if (realpath(file, path) == NULL) {
        return failure(COMMAND, "%s: %s", file, strerror(errno));
    }
    if (strlen(path) > FILE_NAME_MAX || !is_printable(path)) {
        return failure(COMMAND,
                       "the name of the file has control characters, or more than %d bytes",
                       FILE_NAME_MAX);
    }
    return 0;
}

static int check_type(const char *type)
{
    const bool is_good =
        type == NULL || (type[0] != '\0' && strlen(type) <= TYPE_NAME_MAX && is_printable(type));
    return is_good ? 0 : usage_error(COMMAND, "invalid type '%.100s'", type);
}

static int find_and_reload(const char *file, const char *type, const char *program)
{
    char path[PATH_MAX];
    struct client client;
    int status = check_type(type);
    status = status != 0 ? status : find_file(file, path);
    status = status != 0 ? status : client_open(&client, COMMAND, program);
    if (status == 0) {
        struct upgrades upgrades = {0};
        status = finish_output(COMMAND, reload(&client, &upgrades, path, type));
        free(upgrades.rows);
        client_close(&client);
    }
    return status;
}

int reload_command(int argc, char **argv)
{
    const char *program = NULL;
    const char *file = NULL;
    const char *type = NULL;
    for (int i = 1; i < argc; i++) {
        if (is_help(argv[i])) {
            return help();
        }
        if (is_program(argv[i]) || is_valued(argv[i], "--type")) {
            if (!option_text(COMMAND, argv, &i, is_program(argv[i]) ? &program : &type)) {
                return STATUS_USAGE;
            }
        } else if (argv[i][0] != '-' && file == NULL) {
            file = argv[i];
        } else {
            return unknown_argument(COMMAND, argv[i]);
        }
    }
    if (file == NULL) {
        return usage_error(COMMAND, "missing module; usage: skua reload FILE [OPTION...]");
    }
    return find_and_reload(file, type, program);
}
