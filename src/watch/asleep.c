/* SPDX-License-Identifier: MIT */
#include "watch/asleep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define NO_CALL (-1L)

/* Those that end with EINTR although the handler has SA_RESTART, and that have done nothing if they
 * end so: sleeps, polls, and waits with a timeout. Old machines have calls that new ones lack. */
static const long calls[] = {
    SYS_nanosleep,    SYS_clock_nanosleep, SYS_ppoll,      SYS_pselect6, SYS_epoll_pwait,
    SYS_futex,        SYS_semtimedop,      SYS_msgsnd,     SYS_msgrcv,   SYS_recvfrom,
    SYS_recvmsg,      SYS_accept,          SYS_accept4,    SYS_semop,
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
#ifdef SYS_poll
    SYS_poll,         SYS_select,          SYS_epoll_wait,
#endif
};

static bool is_in_list(long number)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i] == number) {
            return true;
        }
    }
    return false;
}

/* The text is "running", "-1 stack next", or "number argument... stack next". */
static bool parse(struct asleep *asleep, const char *text)
{
    enum { FIELDS = 8 };
    uint64_t fields[FIELDS];
    char *rest;
    asleep->number = strtol(text, &rest, 10);
    if (rest == text || asleep->number < 0) {
        return false;
    }
    for (size_t i = 0; i < FIELDS; i++) {
        const char *begin = rest;
        fields[i] = strtoull(begin, &rest, 16);
        if (rest == begin) {
            return false;
        }
    }
    for (size_t i = 0; i < FIELDS - 2; i++) {
        asleep->arguments[i] = fields[i];
    }
    asleep->stack = fields[FIELDS - 2];
    asleep->next = fields[FIELDS - 1];
    return true;
}

void asleep_look(struct asleep *asleep, pid_t thread)
{
    char path[64];
    char text[256];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)thread);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    if (!parse(asleep, text) || !is_in_list(asleep->number)) {
        asleep->number = NO_CALL;
    }
}

#if defined(__x86_64__) && defined(__LP64__)

#define CAN_RESUME 1

/* The instruction is two bytes long. */
#define SYSCALL_SIZE 2

/* Only if it is the call that was seen: everything the kernel keeps is as it was. */
void asleep_resume(const struct asleep *asleep, void *context)
{
    static const int registers[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    greg_t *now = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (asleep->number < 0 || now[REG_RAX] != -EINTR || (uint64_t)now[REG_RSP] != asleep->stack ||
        (uint64_t)now[REG_RIP] != asleep->next) {
        return;
    }
    for (size_t i = 0; i < sizeof registers / sizeof registers[0]; i++) {
        if ((uint64_t)now[registers[i]] != asleep->arguments[i]) {
            return;
        }
    }
    now[REG_RAX] = asleep->number;
    now[REG_RIP] -= SYSCALL_SIZE;
}

void *asleep_address(const void *context)
{
    return (void *)(uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

#else

#define CAN_RESUME 0

void asleep_resume(const struct asleep *asleep, void *context)
{
    (void)asleep;
    (void)context;
}

void *asleep_address(const void *context)
{
    (void)context;
    return NULL;
}

#endif

bool asleep_can_be_interrupted(const struct asleep *asleep)
{
    return asleep->number < 0 || CAN_RESUME;
}
