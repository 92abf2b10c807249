/* SPDX-License-Identifier: MIT */
/* Plain control sequences that every terminal of the last decades knows: ECMA-48, and xterm's other
 * screen. A library for more than that would be a dependency for nothing. */
#include "command/inspect/screen.h"

#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "command/format.h"

#define ENTER      "\033[?1049h\033[?25l" /* the other screen; no cursor */
#define LEAVE      "\033[?25h\033[?1049l"
#define HOME       "\033[H"
#define REST_LINE  "\033[K"
#define REST_BELOW "\033[J"
#define REVERSE    "\033[7m"
#define NORMAL     "\033[m"

/* Of the one terminal there is; signal handlers need it. */
static struct termios before;
static volatile sig_atomic_t is_entered;
static bool has_keys;

static void write_all(const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(STDOUT_FILENO, text, size);
        if (written <= 0) {
            return; /* a terminal that is gone misses nothing */
        }
        text += written;
        size -= (size_t)written;
    }
}

/* Only calls that a signal handler may make. */
void terminal_leave(void)
{
    if (is_entered) {
        is_entered = 0;
        write_all(LEAVE, strlen(LEAVE));
        if (has_keys) {
            tcsetattr(STDIN_FILENO, TCSANOW, &before);
        }
    }
}

static void crash(int signal)
{
    terminal_leave();
    raise(signal); /* the handler was for once */
}

static void leave_on_crash(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction action = {.sa_handler = crash, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        sigaction(signals[i], &action, NULL);
    }
}

bool terminal_enter(void)
{
    if (!isatty(STDOUT_FILENO)) {
        return false;
    }
    leave_on_crash();
    has_keys = tcgetattr(STDIN_FILENO, &before) == 0;
    is_entered = 1;
    if (has_keys) {
        struct termios raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* Ctrl-C and Ctrl-Z stay signals */
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    write_all(ENTER, strlen(ENTER));
    return true;
}

int terminal_key_fd(void)
{
    return has_keys ? STDIN_FILENO : -1;
}

int terminal_key(void)
{
    unsigned char key;
    return read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}

struct screen screen_plain(void)
{
    return (struct screen){.out = stdout, .lines_left = SIZE_MAX};
}

struct screen screen_terminal(FILE *out)
{
    struct winsize size;
    struct screen screen = {.out = out, .columns = 80, .lines_left = 24, .is_terminal = true};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        screen.columns = size.ws_col;
        screen.lines_left = size.ws_row;
    }
    return screen;
}

/* Columns at the end of a table may be empty. */
static void trim(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ') {
        text[--length] = '\0';
    }
}

/* Cuts off what is beyond the last column. */
static void cut(char *text, size_t columns)
{
    for (; *text != '\0'; text++) {
        const bool begins_character = ((unsigned char)*text & 0xc0) != 0x80;
        if (begins_character && columns-- == 0) {
            *text = '\0';
            return;
        }
    }
}

static void put_line(struct screen *screen, bool is_title, const char *format, va_list arguments)
{
    char text[512];
    if (screen->lines_left == 0) {
        return;
    }
    screen->lines_left--;
    vsnprintf(text, sizeof text, format, arguments);
    trim(text);
    make_printable(text); /* the last character may have been cut in half */
    if (!screen->is_terminal) {
        if (screen->columns > 0) {
            cut(text, screen->columns);
        }
        fprintf(screen->out, "%s\n", text);
        return;
    }
    /* Behind a full line some terminals erase its last character. */
    cut(text, screen->columns - 1);
    /* No new line behind the last one: that would scroll. */
    fprintf(screen->out, "%s%s%s" REST_LINE "%s", is_title ? REVERSE : "", text,
            is_title ? NORMAL : "", screen->lines_left > 0 ? "\r\n" : "");
}

void screen_line(struct screen *screen, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_line(screen, false, format, arguments);
    va_end(arguments);
}

void screen_title(struct screen *screen, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_line(screen, true, format, arguments);
    va_end(arguments);
}

void screen_show(const char *text, size_t size)
{
    write_all(HOME, strlen(HOME));
    write_all(text, size);
    write_all(REST_BELOW, strlen(REST_BELOW));
}
