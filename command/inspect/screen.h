/* SPDX-License-Identifier: MIT */
/* A screen that is drawn again and again: lines on a terminal, or plain text. */
#ifndef COMMAND_INSPECT_SCREEN_H
#define COMMAND_INSPECT_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* ---- the terminal ---- */

/* Takes the terminal over: another screen, no cursor, keys as they are pressed. It is given back by
 * terminal_leave, and when the program crashes. */
bool terminal_enter(void);
void terminal_leave(void);

/* What is readable when a key was pressed; -1 if there is no keyboard. */
int terminal_key_fd(void);

/* That key; -1 if the terminal is gone. */
int terminal_key(void);

/* ---- one picture ---- */

struct screen {
    FILE *out;
    size_t columns;    /* what goes beyond them is cut off; 0: nothing is */
    size_t lines_left; /* further ones are left out */
    bool is_terminal;
};

/* Plain text on stdout, of any size. */
struct screen screen_plain(void);

/* The terminal's whole screen, collected in `out` and drawn by screen_show. */
struct screen screen_terminal(FILE *out);

/* One line. */
__attribute__((format(printf, 2, 3))) void screen_line(struct screen *screen, const char *format,
                                                       ...);
/* One that stands out. */
__attribute__((format(printf, 2, 3))) void screen_title(struct screen *screen, const char *format,
                                                        ...);

/* Draws what was collected, in one write. */
void screen_show(const char *text, size_t size);

#endif
