/* SPDX-License-Identifier: MIT */
#include "command/inspect/paper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/support.h"

enum { ROWS_DEFAULT = 50, ROWS_LEAST = 10 };

/* The status of a shell that finds no such command. */
enum { NO_COMMAND = 127 };

uint64_t paper_rows(void)
{
    struct winsize size;
    const int around = 3; /* the header, the line about what is left, the prompt */
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) {
        return ROWS_DEFAULT;
    }
    return size.ws_row < ROWS_LEAST + around ? ROWS_LEAST : (uint64_t)(size.ws_row - around);
}

/* How wide the terminal is; 0 if the table goes elsewhere. */
static size_t terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

struct screen paper_lines(const struct paper *paper)
{
    return (struct screen){.out = paper->out, .columns = paper->columns, .lines_left = SIZE_MAX};
}

/* Whether nobody reads the pipe any more. Where a filter lets nothing through, writing would not
 * tell. */
static bool is_closed(FILE *out)
{
    struct pollfd fd = {.fd = fileno(out)};
    if (poll(&fd, 1, 0) <= 0 || (fd.revents & POLLERR) == 0) {
        return false;
    }
    errno = EPIPE;
    return true;
}

bool paper_flush(struct paper *paper)
{
    if (fflush(paper->out) != 0 || is_closed(paper->out)) {
        paper->write_error = errno;
        return false;
    }
    return true;
}

/* Opens a pager; null if there is none, or nobody to look at it. */
static FILE *open_pager(void)
{
    const char *pager = getenv("PAGER");
    if (!isatty(STDOUT_FILENO) || (pager != NULL && pager[0] == '\0')) {
        return NULL;
    }
    if (pager == NULL) {
        if (system("command -v less >/dev/null 2>&1") != 0) {
            return NULL;
        }
        pager = "less -S";
    }
    return popen(pager, "w");
}

/* Waits until the pager has ended. Returns whether there was one: the shell has said why not. */
static bool close_pager(FILE *pager)
{
    const int status = pclose(pager);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == NO_COMMAND);
}

/* Prints the table through a pager. Returns false if there is none. */
static bool print_paged(enum client_result (*print)(void *arg, struct paper *paper), void *arg,
                        struct paper *paper, enum client_result *result)
{
    *paper = (struct paper){.out = open_pager()};
    if (paper->out == NULL) {
        return false;
    }
    signal(SIGINT, SIG_IGN); /* Ctrl-C is the pager's */
    *result = print(arg, paper);
    const bool was_there = close_pager(paper->out);
    signal(SIGINT, SIG_DFL);
    return was_there;
}

int paper_print(struct client *client, bool is_paged,
                enum client_result (*print)(void *arg, struct paper *paper), void *arg,
                struct paper *paper)
{
    enum client_result result;
    signal(SIGPIPE, SIG_IGN);
    if (!is_paged || !print_paged(print, arg, paper, &result)) {
        *paper = (struct paper){.out = stdout, .columns = terminal_columns()};
        result = print(arg, paper);
    }
    if (result != CLIENT_END) {
        return client_failure(client, result);
    }
    if (paper->write_error != 0 && paper->write_error != EPIPE) {
        return failure(client->command, "cannot write: %s", strerror(paper->write_error));
    }
    return 0;
}
