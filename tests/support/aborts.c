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

/* To those of the system, not of the test program or a sanitizer. */
static void reset_handlers(void)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (void)signal(numbers[i], SIG_DFL);
    }
}

/* Calls the function in a child whose stderr goes to `messages`. The expected message and a core
 * file would only make people look for a failure. */
static pid_t start_child(void (*function)(void *arg), void *arg, int messages)
{
    const pid_t child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        (void)dup2(messages, STDERR_FILENO);
        reset_handlers();
        function(arg);
        _exit(0);
    }
    return child;
}

/* The signal that ended the child; 0 if none did, -1 if it failed otherwise. */
static int await_child(pid_t child)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return -1;
    }
    if (WIFSIGNALED(status)) {
        return WTERMSIG(status);
    }
    return WEXITSTATUS(status) == 0 ? 0 : -1;
}

bool aborts(void (*function)(void *arg), void *arg)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const bool aborted = await_child(start_child(function, arg, nowhere)) == SIGABRT;
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

int ends_by(void (*function)(void *arg), void *arg, char *message, size_t size)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    const pid_t child = start_child(function, arg, ends[1]);
    (void)close(ends[1]);
    read_all(ends[0], message, size);
    (void)close(ends[0]);
    return await_child(child);
}

bool aborts_saying(void (*function)(void *arg), void *arg, const char *text)
{
    char message[MESSAGE_SIZE];
    if (ends_by(function, arg, message, sizeof message) == SIGABRT &&
        strstr(message, text) != NULL) {
        return true;
    }
    (void)fprintf(stderr, "expected \"%s\", got: %s\n", text, message);
    return false;
}
