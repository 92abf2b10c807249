/* SPDX-License-Identifier: MIT */
/* Reads a tree of supervision: the supervisors on top, and for each supervisor, from the top down,
 * its children. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/format.h"
#include "command/inspect/tree.h"

/* Lines in one answer; programs give no more. */
enum { PAGE_MAX = 64 };

/* Fields of a line `child`. */
enum {
    CHILD_PID = 1,
    CHILD_TYPE,
    CHILD_STATE,
    CHILD_KIND,
    CHILD_OVER,
    CHILD_RESTARTS,
    CHILD_ERROR,
    CHILD_ERROR_NAME,
    CHILD_NEXT,
    CHILD_UP,
    CHILD_NAME
};

/* Fields of a line `children`. */
enum { HEAD_ANSWER = 2, HEAD_TYPE, HEAD_UP, HEAD_NAME };

/* ---- rows ---- */

void tree_free(struct tree *tree)
{
    free(tree->rows);
    *tree = (struct tree){.first = TREE_NONE};
}

/* Another row, empty; null if there are too many. */
static struct tree_row *add_row(struct tree *tree)
{
    if (tree->count == tree->capacity) {
        const size_t capacity = tree->capacity > 0 ? 2 * tree->capacity : PAGE_MAX;
        struct tree_row *rows = capacity / 4 <= (size_t)TREE_ROWS_MAX
                                    ? realloc(tree->rows, capacity * sizeof *rows)
                                    : NULL;
        if (rows == NULL) {
            return NULL;
        }
        tree->rows = rows;
        tree->capacity = capacity;
    }
    struct tree_row *row = &tree->rows[tree->count++];
    *row = (struct tree_row){.next = TREE_NONE};
    strcpy(row->restarts, "-");
    strcpy(row->up, "-");
    strcpy(row->error, "-");
    strcpy(row->next_start, "-");
    return row;
}

/* A time of a line, in words; `-` stays. */
static bool read_time(const struct line *line, size_t field, const char *before, char *text,
                      size_t size)
{
    uint64_t time_ns;
    if (field < line->count && strcmp(line->field[field], "-") == 0) {
        return true;
    }
    if (!line_number(line, field, &time_ns)) {
        return false;
    }
    snprintf(text, size, "%s%s", before, format_time(time_ns).text);
    return true;
}

/* By its name, or by its number if it is one of the program's own. */
static bool read_error(const struct line *line, struct tree_row *row)
{
    char number[16];
    char name[40];
    if (!line_text(line, CHILD_ERROR, number, sizeof number) ||
        !line_text(line, CHILD_ERROR_NAME, name, sizeof name)) {
        return false;
    }
    if (strcmp(number, "0") != 0) {
        const bool is_named = strchr(name, '?') == NULL && name[0] != '-';
        snprintf(row->error, sizeof row->error, "%s%s", is_named ? "" : "error ",
                 is_named ? name : number);
    }
    return true;
}

static bool read_child(const struct line *line, struct tree_row *row)
{
    char kind[16];
    char over[8];
    if (!line_pid(line, CHILD_PID, &row->pid) ||
        !line_text(line, CHILD_TYPE, row->type, sizeof row->type) ||
        !line_text(line, CHILD_STATE, row->state, sizeof row->state) ||
        !line_text(line, CHILD_KIND, kind, sizeof kind) ||
        !line_text(line, CHILD_OVER, over, sizeof over) ||
        !line_text(line, CHILD_RESTARTS, row->restarts, sizeof row->restarts) ||
        !read_error(line, row) ||
        !read_time(line, CHILD_NEXT, "in ", row->next_start, sizeof row->next_start) ||
        !read_time(line, CHILD_UP, "", row->up, sizeof row->up) ||
        !line_text(line, CHILD_NAME, row->name, sizeof row->name)) {
        return false;
    }
    row->is_supervisor = strcmp(kind, "supervisor") == 0 && row->pid != 0;
    if (strcmp(over, "over") == 0) {
        strcpy(row->next_start, "never");
    }
    if (row->pid == 0) {
        strcpy(row->up, "-");
    }
    return true;
}

/* What is said of the supervisor itself. A child has most of it from its own supervisor. */
static bool read_head(const struct line *line, struct tree_row *row)
{
    char answer[16];
    if (!line_text(line, HEAD_ANSWER, answer, sizeof answer)) {
        return false;
    }
    row->is_supervisor = strcmp(answer, "none") != 0;
    if (strcmp(answer, "silent") == 0) {
        strcpy(row->state, "busy");
    }
    if (row->depth > 0) {
        return true;
    }
    if (row->state[0] == '\0') {
        strcpy(row->state, "running");
    }
    return line_text(line, HEAD_TYPE, row->type, sizeof row->type) &&
           read_time(line, HEAD_UP, "", row->up, sizeof row->up) &&
           line_text(line, HEAD_NAME, row->name, sizeof row->name);
}

/* Appends what is in use of one of its limits, if there is one. */
static bool read_limit(const struct line *line, size_t field, const char *kind,
                       struct tree_row *row)
{
    uint64_t used;
    uint64_t limit;
    const size_t length = strlen(row->quota);
    if (!line_number(line, field, &used) || !line_number(line, field + 1, &limit)) {
        return false;
    }
    if (limit != 0) {
        snprintf(row->quota + length, sizeof row->quota - length, "%s%" PRIu64 " of %" PRIu64 " %s",
                 length > 0 ? ", " : "", used, limit, kind);
    }
    return true;
}

static bool read_quota(const struct line *line, struct tree_row *row)
{
    row->quota[0] = '\0';
    return read_limit(line, 1, "processes", row) && read_limit(line, 3, "messages", row) &&
           read_limit(line, 5, "bytes", row);
}

/* ---- children ---- */

/* Those of one supervisor, while they are read. */
struct family {
    struct tree *tree;
    size_t parent; /* rows */
    size_t last;   /* the one above the next: the parent, or a child */
    size_t count;
    uint64_t more; /* where to go on; 0: that was all */
};

/* A row below the last one. */
static struct tree_row *add_child(struct family *family)
{
    struct tree *tree = family->tree;
    struct tree_row *row = add_row(tree);
    if (row == NULL) {
        return NULL;
    }
    const struct tree_row *parent = &tree->rows[family->parent];
    row->depth = parent->depth + 1;
    row->lines = parent->lines | (uint64_t)(parent->depth > 0 && !parent->is_last) << parent->depth;
    row->is_last = true;
    row->next = tree->rows[family->last].next;
    if (family->last != family->parent) {
        tree->rows[family->last].is_last = false;
    }
    tree->rows[family->last].next = tree->count - 1;
    family->last = tree->count - 1;
    family->count++;
    return row;
}

static bool take_line(struct family *family, const struct line *line)
{
    if (line_is(line, "children")) {
        return read_head(line, &family->tree->rows[family->parent]);
    }
    if (line_is(line, "child")) {
        struct tree_row *row = add_child(family);
        return row != NULL && read_child(line, row);
    }
    if (line_is(line, "quota")) {
        return read_quota(line, &family->tree->rows[family->parent]);
    }
    return line_is(line, "more") ? line_pid(line, 1, &family->more) : true;
}

static enum client_result read_page(struct client *client, struct family *family, uint64_t place,
                                    size_t limit)
{
    struct line line;
    enum client_result result;
    family->more = 0;
    client_ask(client, "children %016" PRIx64 " %016" PRIx64 " %zu",
               family->tree->rows[family->parent].pid, place, limit);
    while ((result = client_read(client, &line)) == CLIENT_LINE) {
        if (!take_line(family, &line)) {
            return CLIENT_BROKEN;
        }
    }
    return result;
}

/* The last one stands for all that are not shown. */
static void hide_last(struct family *family)
{
    struct tree_row *row = &family->tree->rows[family->last];
    row->is_place_more = true;
    row->is_supervisor = false;
    row->type[0] = row->error[0] = '\0';
    strcpy(row->name, "and more");
}

/* One more than is to be shown tells whether there is anything behind that. */
static enum client_result read_children(struct client *client, struct tree *tree, size_t parent,
                                        size_t most)
{
    struct family family = {.tree = tree, .parent = parent, .last = parent};
    uint64_t place = 0;
    do {
        const size_t left = most + 1 - family.count;
        const enum client_result result =
            read_page(client, &family, place, left < PAGE_MAX ? left : PAGE_MAX);
        if (result != CLIENT_END) {
            return result;
        }
        if (family.more != 0 && family.more <= place) {
            return CLIENT_BROKEN; /* would go on for ever */
        }
        place = family.more;
    } while (place != 0 && family.count <= most);
    if (family.count > most) {
        hide_last(&family);
    }
    return CLIENT_END;
}

/* A supervisor that has ended meanwhile has no children. */
static bool is_gone(const struct client *client, enum client_result result)
{
    return result == CLIENT_ERROR && strcmp(client->error.name, "SKUA_E_NO_PROCESS") == 0;
}

/* ---- all of them ---- */

static int compare_rows(const void *a, const void *b)
{
    const uint64_t x = ((const struct tree_row *)a)->pid;
    const uint64_t y = ((const struct tree_row *)b)->pid;
    return x < y ? -1 : x > y;
}

bool tree_has_root(const struct tree *tree, uint64_t pid)
{
    const struct tree_row wanted = {.pid = pid};
    return tree->root_count > 0 && bsearch(&wanted, tree->rows, tree->root_count,
                                           sizeof tree->rows[0], compare_rows) != NULL;
}

static bool take_root(struct tree *tree, const struct line *line, uint64_t *more)
{
    if (line_is(line, "root")) {
        struct tree_row *row = add_row(tree);
        return row != NULL && line_pid(line, 1, &row->pid);
    }
    return line_is(line, "more") ? line_pid(line, 1, more) : true;
}

static enum client_result read_roots(struct client *client, struct tree *tree)
{
    uint64_t place = 0;
    uint64_t more;
    do {
        struct line line;
        enum client_result result;
        more = 0;
        client_ask(client, "roots %016" PRIx64 " %d", place, PAGE_MAX);
        while ((result = client_read(client, &line)) == CLIENT_LINE) {
            if (!take_root(tree, &line, &more)) {
                return CLIENT_BROKEN;
            }
        }
        if (result != CLIENT_END) {
            return result;
        }
        if (more != 0 && more <= place) {
            return CLIENT_BROKEN; /* would go on for ever */
        }
        place = more;
    } while (place != 0 && tree->count < TREE_ROWS_MAX);
    return CLIENT_END;
}

/* The rows on top, in the order of their PIDs. */
static void order_roots(struct tree *tree)
{
    if (tree->count == 0) {
        return;
    }
    qsort(tree->rows, tree->count, sizeof tree->rows[0], compare_rows);
    tree->first = 0;
    tree->root_count = tree->count;
    for (size_t i = 0; i < tree->count; i++) {
        tree->rows[i].is_supervisor = true;
        tree->rows[i].next = i + 1 < tree->count ? i + 1 : TREE_NONE;
    }
}

static enum client_result read_top(struct client *client, uint64_t pid, struct tree *tree)
{
    if (pid == 0) {
        const enum client_result result = read_roots(client, tree);
        order_roots(tree);
        return result;
    }
    struct tree_row *row = add_row(tree);
    if (row == NULL) {
        return CLIENT_BROKEN;
    }
    row->pid = pid;
    order_roots(tree);
    return CLIENT_END;
}

enum client_result tree_read(struct client *client, const struct tree_wish *wish, struct tree *tree)
{
    tree->count = tree->root_count = 0;
    tree->first = TREE_NONE;
    enum client_result result = read_top(client, wish->pid, tree);
    size_t at = tree->first;
    for (size_t shown = 0; at != TREE_NONE && shown < wish->rows_most && result == CLIENT_END;
         shown++) {
        const struct tree_row *row = &tree->rows[at];
        if (row->is_supervisor && row->depth < TREE_DEPTH_MAX) {
            const size_t left = wish->rows_most - shown;
            result = read_children(client, tree, at,
                                   left < wish->children_most ? left : wish->children_most);
        }
        if (is_gone(client, result) && (wish->pid == 0 || shown > 0)) {
            result = CLIENT_END;
            strcpy(tree->rows[at].state, "ended");
        }
        at = tree->rows[at].next;
    }
    return result;
}
