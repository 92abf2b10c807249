/* SPDX-License-Identifier: MIT */
/* Where a table goes that may be longer than a screen: to stdout or, if all of it is wanted and
 * there is a terminal, to a pager. */
#ifndef COMMAND_INSPECT_PAPER_H
#define COMMAND_INSPECT_PAPER_H

#include "command/inspect/client.h"
#include "command/inspect/screen.h"

struct paper {
    FILE *out;
    size_t columns;  /* of the terminal; 0: lines may be longer */
    int write_error; /* an errno */
};

/* How many rows fit on the terminal, or what is usual elsewhere. */
uint64_t paper_rows(void);

/* To print one line. */
struct screen paper_lines(const struct paper *paper);

/* Hands on what was printed so far. False if that is not possible, or nobody reads it any more. */
bool paper_flush(struct paper *paper);

/* Calls `print`, which prints a table that it reads from `client`: again from the beginning if the
 * pager turns out to be none. Complains of what went wrong. Returns the exit status, 0 also if a
 * reader had enough: then `paper.write_error` is set. */
int paper_print(struct client *client, bool is_paged,
                enum client_result (*print)(void *arg, struct paper *paper), void *arg,
                struct paper *paper);

#endif
