/* SPDX-License-Identifier: MIT */
#include "aborts.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE_SIZE 512

/* Calls the function in a child whose stderr goes to `messages`. The expected message and a core
 * file would only make people look for a failure. */
static pid_t start_child(void (*function)(void *arg), void *arg, int messages)
{
    const pid_t child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        (void)dup2(messages, STDERR_FILENO);
        (void)signal(SIGABRT, SIG_DFL); /* not a handler of the test program */
        function(arg);
        _exit(0);
    }
    return child;
}

static bool has_aborted(pid_t child)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return false;
    }
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

bool aborts(void (*function)(void *arg), void *arg)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const bool aborted = has_aborted(start_child(function, arg, nowhere));
    (void)close(nowhere);
    return aborted;
}

/* What fits is kept; the rest is read, too, so that nobody waits for it to be. */
static void read_all(int from, char *message, size_t size)
{
    char rest[MESSAGE_SIZE];
    size_t length = 0;
    ssize_t count;
    while ((count = read(from, rest, sizeof rest)) > 0) {
        const size_t room = size - 1 - length;
        const size_t kept = (size_t)count < room ? (size_t)count : room;
        memcpy(message + length, rest, kept);
        length += kept;
    }
    message[length] = '\0';
}

bool aborts_saying(void (*function)(void *arg), void *arg, const char *text)
{
    char message[MESSAGE_SIZE];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    const pid_t child = start_child(function, arg, ends[1]);
    (void)close(ends[1]);
    read_all(ends[0], message, sizeof message);
    (void)close(ends[0]);
    const bool aborted = has_aborted(child);
    if (aborted && strstr(message, text) != NULL) {
        return true;
    }
    (void)fprintf(stderr, "expected \"%s\", got: %s\n", text, message);
    return false;
}
