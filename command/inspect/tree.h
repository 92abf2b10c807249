/* SPDX-License-Identifier: MIT */
/* The tree of supervision of a program, read and drawn: for `skua tree` and `skua top`. */
#ifndef COMMAND_INSPECT_TREE_H
#define COMMAND_INSPECT_TREE_H

#include "command/inspect/inspect.h"
#include "command/inspect/screen.h"

/* Levels that are shown, and rows that are read, at most: a program may be anything. */
enum { TREE_DEPTH_MAX = 48, TREE_ROWS_MAX = 100000 };

#define TREE_NONE SIZE_MAX

struct tree_row {
    uint64_t pid; /* 0: it does not run */
    char name[65];
    char type[TYPE_TEXT_SIZE];
    char state[16];
    char restarts[24]; /* - if that is not known; likewise below */
    char up[24];       /* how long it runs */
    char error[48];    /* how it last ended */
    char next_start[24];
    char quota[160]; /* what is in use of that of a supervisor; empty: it has none */
    bool is_supervisor;
    /* Where it is drawn. */
    unsigned depth;
    bool is_last;       /* of its siblings */
    uint64_t lines;     /* bit n: at level n, a line passes by */
    size_t next;        /* the row below, or TREE_NONE */
    bool is_place_more; /* no process: there are more children than are shown */
};

/* All zero before the first tree_read. */
struct tree {
    struct tree_row *rows; /* in the order that they were read in: see `first` and `next` */
    size_t count;
    size_t capacity;
    size_t first;      /* or TREE_NONE */
    size_t root_count; /* rows on top: the first that were read, in the order of their PIDs */
};

/* What is to be read. */
struct tree_wish {
    uint64_t pid;         /* of the supervisor on top; 0: all that have none */
    size_t rows_most;     /* rows from the top, TREE_ROWS_MAX at most */
    size_t children_most; /* of one supervisor */
};

/* Reads the tree anew. A process on top that is no supervisor is the only row, and not marked as
 * one. */
enum client_result tree_read(struct client *client, const struct tree_wish *wish,
                             struct tree *tree);
void tree_free(struct tree *tree);

/* Whether a process is on top. */
bool tree_has_root(const struct tree *tree, uint64_t pid);

/* Whether lines can be drawn in UTF-8: as the locale says. */
bool tree_has_lines(void);

/* Draws rows from a place in their order on, `most` of them at most. Returns how many. */
size_t tree_draw(const struct tree *tree, struct screen *screen, size_t from, size_t most,
                 bool is_ascii);

#endif
