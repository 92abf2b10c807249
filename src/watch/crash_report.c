/* SPDX-License-Identifier: MIT */
#include "watch/crash_report.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mutex.h"
#include "process/state.h"
#include "sched/worker.h"
#include "watch/overflow.h"

#define FRAMES_MAX     64
#define LINE_SIZE      256
#define TYPE_NAME_MAX  64 /* what is printed of it */
#define STACK_SIZE_MIN ((size_t)64 * 1024)
/* Memory is mapped in multiples of this at least. */
#define PAGE_MIN 4096

/* ---- one line, formatted by hand: no function of stdio may be called in a handler ---- */

struct line {
    size_t length;
    char text[LINE_SIZE];
};

static void add_char(struct line *line, char c)
{
    if (line->length < sizeof line->text) {
        line->text[line->length++] = c;
    }
}

static void add_text(struct line *line, const char *text)
{
    for (; *text != '\0'; text++) {
        add_char(line, *text);
    }
}

static void add_hex(struct line *line, uint64_t number)
{
    for (int shift = 60; shift >= 0; shift -= 4) {
        add_char(line, "0123456789abcdef"[number >> shift & 15]);
    }
}

static void add_number(struct line *line, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0) {
        add_char(line, digits[--count]);
    }
}

static void write_line(const struct line *line)
{
    size_t done = 0;
    while (done < line->length) {
        const ssize_t count = write(STDERR_FILENO, line->text + done, line->length - done);
        if (count < 0 && errno != EINTR) {
            return;
        }
        done += count > 0 ? (size_t)count : 0;
    }
}

/* Copies what can be read of `size` bytes, and returns how many that are. The system does it, and
 * it does not crash: the program may have overwritten a pointer, or unloaded the module that has
 * the type. It copies either all of a piece or nothing, so the pieces end where a page does. */
static size_t read_memory(const void *from, void *to, size_t size)
{
    const size_t in_page = PAGE_MIN - (uintptr_t)from % PAGE_MIN;
    const size_t first = size < in_page ? size : in_page;
    const struct iovec local = {.iov_base = to, .iov_len = size};
    const struct iovec remote[] = {
        {.iov_base = (void *)(uintptr_t)from, .iov_len = first},
        {.iov_base = (void *)((uintptr_t)from + first), .iov_len = size - first},
    };
    const ssize_t count = process_vm_readv(getpid(), &local, 1, remote, 2, 0);
    return count > 0 ? (size_t)count : 0;
}

/* The name of a type, which the program may have damaged. */
static void add_type_name(struct line *line, const skua_process_type *type)
{
    const char *name;
    char text[TYPE_NAME_MAX];
    size_t size = 0;
    if (type != NULL && read_memory(&type->name, &name, sizeof name) == sizeof name) {
        size = read_memory(name, text, sizeof text);
    }
    if (size == 0) {
        add_char(line, '?');
    }
    for (size_t i = 0; i < size && text[i] != '\0'; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            text[i] = '?';
        }
        add_char(line, text[i]);
    }
}

/* ---- what a worker was doing ---- */

struct site {
    skua_pid pid;
    const skua_process_type *type; /* null: unknown */
    enum process_state state;      /* STATE_FREE: the process has ended */
    bool runs_step;
    uint64_t steps;
};

/* Finds the process that the worker has in hand; false if it has none. The only function here that
 * knows where that is noted. */
static bool find_site(struct worker *worker, struct site *site)
{
    const skua_context *context = worker->starting != NULL ? worker->starting : worker->context;
    const uint64_t running = load_relaxed(&worker->running); /* this thread's */
    if (running == RUNNING_NOTHING || running == RUNNING_UNKNOWN || context->process == NULL) {
        return false;
    }
    const uint32_t tag = state_peek(context->process);
    *site = (struct site){.pid = context->self};
    if (state_generation(tag) == pid_generation(context->self)) {
        const uint64_t progress = process_progress(context->process);
        site->type = process_type(context->process);
        site->state = state_of(tag);
        site->runs_step = (progress & PROCESS_RUNS) != 0;
        site->steps = progress >> PROCESS_STEP_SHIFT;
    }
    return true;
}

static void add_place(struct line *line, const struct site *site)
{
    switch (site->state) {
    case STATE_INIT:
        add_text(line, ", init");
        return;
    case STATE_COMPLETE:
        add_text(line, ", close");
        return;
    case STATE_FREE:
    case STATE_RETIRED:
        add_text(line, ", after its end");
        return;
    case STATE_READY:
    case STATE_BLOCKED:
    case STATE_IDLE:
        break;
    }
    add_text(line, site->runs_step ? ", step " : ", after step ");
    add_number(line, site->steps);
}

/* The function that this place is in, if it has a name. */
static void add_function(struct line *line, const void *place)
{
    Dl_info info;
    if (place != NULL && dladdr(place, &info) != 0 && info.dli_sname != NULL) {
        add_text(line, " in ");
        add_text(line, info.dli_sname);
        add_text(line, "()");
    }
}

/* If a task has used up its stack, that is what happened, and what to do about it. */
static void report_overflow(const struct worker *worker, const siginfo_t *info, const void *context)
{
    const size_t size = overflow_find(worker, info, context);
    if (size == 0) {
        return;
    }
    struct line line = {0};
    add_text(&line, "skua: the stack of process ");
    add_hex(&line, worker->context->self.bits);
    add_text(&line, " (type ");
    add_type_name(&line, process_type(worker->context->process));
    add_text(&line, ", ");
    add_number(&line, size >> 10);
    add_text(&line, " KiB) is used up");
    add_function(&line, overflow_place(context));
    add_text(&line, size < stacks_size(STACK_TIERS - 1) ? "; set .stack_size\n"
                                                        : "; there is no larger one\n");
    write_line(&line);
}

static void report(struct worker *worker, const char *signal_name, const siginfo_t *info,
                   const void *context)
{
    struct line line = {0};
    struct site site;
    void *frames[FRAMES_MAX];
    add_text(&line, "skua: ");
    add_text(&line, signal_name);
    if (find_site(worker, &site)) {
        add_text(&line, " in process ");
        add_hex(&line, site.pid.bits);
        add_text(&line, " (type ");
        add_type_name(&line, site.type);
        add_char(&line, ')');
        add_place(&line, &site);
    } else {
        add_text(&line, " outside of processes");
    }
    add_text(&line, ", worker ");
    add_number(&line, worker->index);
    add_char(&line, '\n');
    write_line(&line);
    report_overflow(worker, info, context);
    /* Neither allocates: backtrace was called once before. */
    backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), STDERR_FILENO);
}

/* ---- the handlers ---- */

/* Signals belong to the whole program, so these do, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t users; /* under lock */
static struct crash {
    int signal;
    const char *name;
    struct sigaction before; /* what to do after the report */
    bool is_below;           /* a handler of the program may call this one; under lock */
} crashes[] = {
    {.signal = SIGSEGV, .name = "SIGSEGV"},
    {.signal = SIGABRT, .name = "SIGABRT"},
    {.signal = SIGFPE, .name = "SIGFPE"},
    {.signal = SIGBUS, .name = "SIGBUS"},
};

#define CRASH_COUNT (sizeof crashes / sizeof crashes[0])

/* This thread is printing: a crash now is one of the report. */
static _Thread_local volatile sig_atomic_t reporting;

static void set_default(int signal)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(signal, &action, NULL);
}

/* The signal is blocked while its handler runs. So it comes when the handler returns, and a core
 * file shows the thread where it crashed. */
static void end_program(int signal)
{
    set_default(signal);
    (void)raise(signal);
}

static void chain(const struct crash *crash, siginfo_t *info, void *context)
{
    const struct sigaction *before = &crash->before;
    const bool is_ignored = before->sa_handler == SIG_IGN;
    if (is_ignored && info->si_code <= 0) {
        return; /* somebody sent it */
    }
    if (is_ignored || before->sa_handler == SIG_DFL) {
        end_program(crash->signal); /* as the system does: a fault cannot be ignored */
        return;
    }
    if ((before->sa_flags & (int)SA_RESETHAND) != 0) {
        set_default(crash->signal);
    }
    if ((before->sa_flags & SA_SIGINFO) != 0) {
        before->sa_sigaction(crash->signal, info, context);
    } else {
        before->sa_handler(crash->signal);
    }
}

/* Async-signal-safe. A fault inside of it ends the program, because the signals are blocked; abort
 * unblocks its own, so it comes here again. */
static void handle(int signal, siginfo_t *info, void *context)
{
    const int error = errno;
    const struct crash *crash = crashes;
    while (crash->signal != signal) {
        crash++;
    }
    if (reporting) {
        end_program(signal);
        return;
    }
    struct worker *worker = worker_of_thread();
    if (worker != NULL && worker->sched->config.crash_report) {
        reporting = 1;
        report(worker, crash->name, info, context);
        reporting = 0; /* the program's handler may not return */
    }
    errno = error;
    chain(crash, info, context);
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == handle;
}

static void install_locked(struct crash *crash)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction now;
    (void)sigaction(crash->signal, NULL, &now);
    const bool is_function = now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN;
    if (is_ours(&now) || (crash->is_below && is_function)) {
        return; /* on top of a handler that calls this one, each would call the other for ever */
    }
    crash->is_below = false;
    crash->before = now; /* first: the handler may run at once */
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < CRASH_COUNT; i++) {
        (void)sigaddset(&action.sa_mask, crashes[i].signal);
    }
    (void)sigaddset(&action.sa_mask, SIGPIPE); /* stderr may be one */
    (void)sigaction(crash->signal, &action, NULL);
}

static void remove_locked(struct crash *crash)
{
    struct sigaction now;
    (void)sigaction(crash->signal, NULL, &now);
    if (is_ours(&now)) {
        (void)sigaction(crash->signal, &crash->before, NULL);
    } else {
        crash->is_below = true; /* and `before` stays valid */
    }
}

void crash_report_install(void)
{
    void *frame;
    (void)backtrace(&frame, 1); /* loads what it needs, here and now */
    mutex_lock(&lock);
    if (users++ == 0) {
        for (size_t i = 0; i < CRASH_COUNT; i++) {
            install_locked(&crashes[i]);
        }
    }
    mutex_unlock(&lock);
}

void crash_report_remove(void)
{
    mutex_lock(&lock);
    if (--users == 0) {
        for (size_t i = 0; i < CRASH_COUNT; i++) {
            remove_locked(&crashes[i]);
        }
    }
    mutex_unlock(&lock);
}

/* ---- their stacks ---- */

/* Of the calling thread. */
static _Thread_local struct {
    void *memory; /* null: it has none */
    size_t size;
    stack_t before; /* what the thread had: that of a sanitizer, say */
} stack;

/* Mapped, as the thread's first stack is: a thread begins at any time, and an allocation at any
 * time would make the program's count of them differ from run to run. */
void crash_report_begin_thread(void)
{
    const long wanted = sysconf(_SC_SIGSTKSZ);
    stack.size = wanted > 0 && (size_t)wanted > STACK_SIZE_MIN ? (size_t)wanted : STACK_SIZE_MIN;
    void *memory = mmap(NULL, stack.size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) {
        return;
    }
    const stack_t ours = {.ss_sp = memory, .ss_size = stack.size};
    if (sigaltstack(&ours, &stack.before) != 0) {
        (void)munmap(memory, stack.size);
        return;
    }
    stack.memory = memory;
}

void crash_report_end_thread(void)
{
    if (stack.memory == NULL) {
        return;
    }
    (void)sigaltstack(&stack.before, NULL);
    (void)munmap(stack.memory, stack.size);
    stack.memory = NULL;
}
