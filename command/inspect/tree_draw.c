/* SPDX-License-Identifier: MIT */
/* Draws a tree of supervision. */
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "command/format.h"
#include "command/inspect/tree.h"

/* How a row is tied to those around it; each is three columns wide. */
struct style {
    const char *passes; /* a line to a row below */
    const char *nothing;
    const char *branch; /* this row, and others below */
    const char *last;
};

static const struct style unicode = {"│  ", "   ", "├─ ", "└─ "};
static const struct style ascii = {"|  ", "   ", "|- ", "`- "};

/* Room for these, and a name. */
enum { DRAWN_SIZE = (TREE_DEPTH_MAX + 1) * 8 + 65 };

struct widths {
    size_t name;
    size_t type;
    size_t error;
    size_t next_start; /* 0: it is the last column, because there are no quotas */
};

bool tree_has_lines(void)
{
    return setlocale(LC_CTYPE, "") != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static void widen(size_t *columns, size_t needed)
{
    *columns = needed > *columns ? needed : *columns;
}

static struct widths widths_of(const struct tree *tree)
{
    struct widths widths = {strlen("NAME"), strlen("TYPE"), strlen("LAST ERROR"), 0};
    size_t next_start = strlen("NEXT START");
    bool has_quota = false;
    for (size_t i = tree->first; i != TREE_NONE; i = tree->rows[i].next) {
        const struct tree_row *row = &tree->rows[i];
        widen(&widths.name, 3 * (size_t)row->depth + text_columns(row->name));
        widen(&widths.type, text_columns(row->type));
        widen(&widths.error, text_columns(row->error));
        has_quota = has_quota || row->quota[0] != '\0';
        widen(&next_start, text_columns(row->next_start));
    }
    widths.next_start = has_quota ? next_start : 0;
    return widths;
}

static void draw_name(const struct tree_row *row, const struct style *style, char text[DRAWN_SIZE])
{
    size_t length = 0;
    text[0] = '\0';
    for (unsigned level = 1; level <= row->depth; level++) {
        const bool passes = (row->lines >> level & 1) != 0;
        const char *piece = level < row->depth ? (passes ? style->passes : style->nothing)
                            : row->is_last     ? style->last
                                               : style->branch;
        length += (size_t)snprintf(text + length, DRAWN_SIZE - length, "%s", piece);
    }
    (void)snprintf(text + length, DRAWN_SIZE - length, "%s", row->name);
}

static void draw_row(const struct tree_row *row, struct screen *screen, const struct style *style,
                     struct widths widths)
{
    char name[DRAWN_SIZE];
    char pid[17] = "-";
    draw_name(row, style, name);
    if (row->is_place_more) {
        screen_line(screen, "%s", name);
        return;
    }
    if (row->pid != 0) {
        snprintf(pid, sizeof pid, "%016" PRIx64, row->pid);
    }
    const bool has_quota = row->quota[0] != '\0';
    screen_line(screen, "%-*s  %-16s  %-*s  %-8s  %8s  %8s  %-*s  %-*s%s%s",
                text_width(name, widths.name), name, pid, text_width(row->type, widths.type),
                row->type, row->state, row->restarts, row->up, text_width(row->error, widths.error),
                row->error, has_quota ? (int)widths.next_start : 0, row->next_start,
                has_quota ? "  " : "", row->quota);
}

size_t tree_draw(const struct tree *tree, struct screen *screen, size_t from, size_t most,
                 bool is_ascii)
{
    const struct widths widths = widths_of(tree);
    size_t place = 0;
    size_t drawn = 0;
    screen_title(screen, "%-*s  %-16s  %-*s  %-8s  %8s  %8s  %-*s  %-*s%s", (int)widths.name,
                 "NAME", "PID", (int)widths.type, "TYPE", "STATE", "RESTARTS", "UP",
                 (int)widths.error, "LAST ERROR", (int)widths.next_start, "NEXT START",
                 widths.next_start > 0 ? "  QUOTA" : "");
    for (size_t i = tree->first; i != TREE_NONE && drawn < most && screen->lines_left > 0;
         i = tree->rows[i].next, place++) {
        if (place >= from) {
            draw_row(&tree->rows[i], screen, is_ascii ? &ascii : &unicode, widths);
            drawn++;
        }
    }
    return drawn;
}
