/* SPDX-License-Identifier: MIT */
/* The report of a crash, and what happens after it. Each crash happens in a child process, whose
 * handlers are the system's at first, also under a sanitizer. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "aborts.h"
#include "actor.h"
#include "threads.h"

#define CHILD_MESSAGE_SIZE ((size_t)1 << 16)
#define STACK_LEAST        ((size_t)64 * 1024)
#define REPORT             "skua: SIG"

/* ---- ways to crash ---- */

static char *fresh_pages(size_t size)
{
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        abort();
    }
    return pages;
}

static char *protected_page(void)
{
    char *page = fresh_pages(1);
    (void)mprotect(page, 1, PROT_NONE);
    return page;
}

static void write_to(volatile char *place)
{
    *place = 1;
}

static void fault(void)
{
    write_to(protected_page());
}

/* Memory of a file that is shorter. */
static void fault_behind_file(void)
{
    const int file = memfd_create("empty", MFD_CLOEXEC);
    char *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) {
        _exit(1);
    }
    write_to(page);
}

static void raise_fpe(void)
{
    (void)raise(SIGFPE);
}

static void raise_segv(void)
{
    (void)raise(SIGSEGV);
}

/* ---- where ---- */

static void tell(const char *what)
{
    (void)!write(STDERR_FILENO, what, strlen(what));
}

/* An act; not static, so that the backtrace names it. */
int crash_here(struct turn *turn, const struct act *act);
int crash_here(struct turn *turn, const struct act *act)
{
    char text[32];
    (void)snprintf(text, sizeof text, "pid %016" PRIx64 "\n", turn->actor->pid.bits);
    tell(text);
    (*(void (*const *)(void))act->arg)();
    return 0;
}

static struct act crashes(void (*const *function)(void))
{
    return does(crash_here, (void *)(uintptr_t)function);
}

static void (*const fault_function)(void) = fault;

/* With one spare worker: on a slow machine there would soon be more. */
static void open_reporting(void)
{
    world_open_with(
        (skua_runtime_config){.worker_count = 1, .spare_limit = 1, .crash_report = true});
}

static void crash_in_step(void *arg)
{
    void (*const *function)(void) = arg;
    open_reporting();
    actor_await_end(actor_start(ACTS(continues(3), crashes(function), finishes(0))));
}

static void crash_in_init(void *arg)
{
    (void)arg;
    open_reporting();
    struct actor *child = actor_new(NO_ACTS);
    child->type.name = "child";
    child->in_init = ACTS(crashes(&fault_function));
    actor_await_end(actor_start(ACTS(spawns(child), finishes(0))));
}

static void crash_after_init(void *arg)
{
    (void)arg;
    open_reporting();
    struct actor *child = actor_new(NO_ACTS);
    actor_await_end(actor_start(ACTS(spawns(child), crashes(&fault_function), finishes(0))));
}

static void fault_in_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)ctx;
    (void)exit;
    fault();
}

static void crash_in_close(void *arg)
{
    (void)arg;
    open_reporting();
    struct actor *actor = actor_new(ACTS(finishes(0)));
    actor->type.close = fault_in_close;
    (void)actor_run(actor);
}

static void fault_on_exit(void *arg, skua_exit *exit)
{
    (void)arg;
    (void)exit;
    fault();
}

static void crash_on_exit(void *arg)
{
    (void)arg;
    world_open_with(
        (skua_runtime_config){.worker_count = 1, .crash_report = true, .on_exit = fault_on_exit});
    (void)actor_run(actor_new(ACTS(finishes(0))));
}

static void crash_in_simulation(void *arg)
{
    (void)arg;
    const skua_sim_config sim = {0};
    world_open_with((skua_runtime_config){.sim = &sim, .crash_report = true});
    (void)actor_run(actor_new(ACTS(continues(1), crashes(&fault_function), finishes(0))));
}

/* Its memory does not have the name that it should. */
static void crash_with_bad_name(void *arg)
{
    (void)arg;
    open_reporting();
    struct actor *actor = actor_new(ACTS(crashes(&fault_function), finishes(0)));
    actor->type.name = protected_page();
    (void)actor_run(actor);
}

static void crash_with_odd_name(void *arg)
{
    (void)arg;
    open_reporting();
    struct actor *actor = actor_new(ACTS(crashes(&fault_function), finishes(0)));
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = fresh_pages(2 * page);
    char *name = pages + page - 3; /* without an end, before memory that may not be read */
    memcpy(name, "a\nb", 3);
    (void)mprotect(pages + page, page, PROT_NONE);
    actor->type.name = name;
    (void)actor_run(actor);
}

/* ---- what the children say ---- */

static char said[CHILD_MESSAGE_SIZE];

static unsigned count_in(const char *text, const char *wanted)
{
    unsigned count = 0;
    for (; (text = strstr(text, wanted)) != NULL; text += strlen(wanted)) {
        count++;
    }
    return count;
}

static void assert_ends_by(int number, void (*function)(void *arg), const void *arg)
{
    const int ended = ends_by(function, (void *)(uintptr_t)arg, said, sizeof said);
    if (ended != number) {
        print_message("ended by %d, saying: %s\n", ended, said);
    }
    assert_int_equal(ended, number);
}

/* That a line names the signal and what it was in, and the PID that crash_here has told. */
static void assert_reported(const char *name, const char *where)
{
    char line[160];
    const char *pid = strstr(said, "pid ");
    if (pid != NULL) {
        (void)snprintf(line, sizeof line, "\nskua: %s in process %.16s (type %s\n", name, pid + 4,
                       where);
    } else {
        (void)snprintf(line, sizeof line, " (type %s\n", where);
    }
    if (strstr(said, line) == NULL) {
        print_message("expected: %s, got: %s\n", line, said);
    }
    assert_non_null(strstr(said, line));
    assert_int_equal(count_in(said, REPORT), 1);
}

static void assert_not_reported(void)
{
    assert_null(strstr(said, REPORT));
}

/* ---- reports ---- */

TEST(crash_in_a_step_is_reported)
{
    static const struct {
        int number;
        const char *name;
        void (*function)(void);
    } rows[] = {
        {SIGSEGV, "SIGSEGV", fault},           {SIGSEGV, "SIGSEGV", raise_segv},
        {SIGABRT, "SIGABRT", abort},           {SIGFPE, "SIGFPE", raise_fpe},
        {SIGBUS, "SIGBUS", fault_behind_file},
    };
    FOR_ROWS (row, rows) {
        assert_ends_by(row->number, crash_in_step, &row->function);
        assert_reported(row->name, "actor), step 4, worker 0");
        assert_non_null(strstr(said, "crash_here"));
    }
}

TEST(crash_beside_a_step_is_reported)
{
    static const struct {
        void (*function)(void *arg);
        const char *where;
    } rows[] = {
        {crash_in_init, "child), init, worker 0"},
        {crash_after_init, "actor), step 1, worker 0"},
        {crash_in_close, "actor), close, worker 0"},
        {crash_on_exit, "?), after its end, worker 0"},
        {crash_in_simulation, "actor), step 2, worker 0"},
        {crash_with_bad_name, "?), step 1, worker 0"},
        {crash_with_odd_name, "a?b), step 1, worker 0"},
    };
    FOR_ROWS (row, rows) {
        assert_ends_by(SIGSEGV, row->function, NULL);
        assert_reported("SIGSEGV", row->where);
    }
}

/* Each init starts a process whose init ... */
static int spawn_again(struct turn *turn, const struct act *act)
{
    (void)act;
    return perform(turn, spawns(turn->actor));
}

static struct act overflows(void)
{
    struct actor *actor = actor_new(NO_ACTS);
    actor->type.name = "endless";
    actor->in_init = ACTS(does(spawn_again, NULL));
    return spawns(actor);
}

/* With workers whose stacks are full soon: filling the usual ones takes a sanitizer very long. */
static void open_with_small_stacks(void)
{
    pthread_attr_t small;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, (size_t)1 << 21), 0);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    assert_int_equal(pthread_attr_destroy(&small), 0);
    open_reporting();
}

static void overflow(void *arg)
{
    (void)arg;
    open_with_small_stacks();
    actor_await_end(actor_start(ACTS(overflows(), finishes(0))));
}

static void overflow_on_spare(void *arg)
{
    (void)arg;
    open_with_small_stacks();
    actor_perform_until_held(actor_start(NO_ACTS), ACTS(blocks()));
    actor_await_end(actor_start(ACTS(overflows(), finishes(0))));
}

TEST(crash_by_stack_overflow_is_reported)
{
    assert_ends_by(SIGSEGV, overflow, NULL);
    assert_reported("SIGSEGV", "endless), init, worker 0");
    assert_ends_by(SIGSEGV, overflow_on_spare, NULL);
    assert_reported("SIGSEGV", "endless), init, worker 1");
}

static void fault_on_thread(void *arg)
{
    (void)arg;
    fault();
}

static void crash_on_thread(void *arg)
{
    (void)arg;
    open_reporting();
    thread_run(fault_on_thread, NULL);
}

/* Another runtime of the program wants reports. */
static void crash_without_report(void *arg)
{
    struct api other;
    (void)arg;
    api_create(&other, (skua_runtime_config){.worker_count = 1, .crash_report = true});
    api_start(&other);
    world_open_with((skua_runtime_config){.worker_count = 1});
    (void)actor_run(actor_new(ACTS(crashes(&fault_function), finishes(0))));
}

static void crash_after_stop(void *arg)
{
    (void)arg;
    open_reporting();
    world_close();
    world_open_with((skua_runtime_config){.worker_count = 1});
    (void)actor_run(actor_new(ACTS(crashes(&fault_function), finishes(0))));
}

TEST(crash_elsewhere_is_not_reported)
{
    static void (*const functions[])(void *arg) = {crash_on_thread, crash_without_report,
                                                   crash_after_stop};
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        assert_ends_by(SIGSEGV, functions[i], NULL);
        assert_not_reported();
    }
}

static void crash_in_second(void *arg)
{
    struct api other;
    (void)arg;
    api_create(&other, (skua_runtime_config){.worker_count = 1, .crash_report = true});
    api_start(&other);
    open_reporting();
    api_stop(&other);
    (void)actor_run(actor_new(ACTS(crashes(&fault_function), finishes(0))));
}

TEST(crash_in_one_of_two_runtimes_is_reported)
{
    assert_ends_by(SIGSEGV, crash_in_second, NULL);
    assert_reported("SIGSEGV", "actor), step 1, worker 0");
}

/* ---- a crash in the report ---- */

static bool abort_in_report;

/* The names are the linker's. */
void __real_backtrace_symbols_fd(void *const *frames, int count, int fd);
void __wrap_backtrace_symbols_fd(void *const *frames, int count, int fd);
void __wrap_backtrace_symbols_fd(void *const *frames, int count, int fd)
{
    if (abort_in_report) {
        abort();
    }
    __real_backtrace_symbols_fd(frames, count, fd);
}

static void crash_in_report(void *arg)
{
    abort_in_report = true;
    crash_in_step(arg);
}

TEST(crash_in_the_report_ends_the_program)
{
    assert_ends_by(SIGABRT, crash_in_report, &fault_function);
    assert_reported("SIGSEGV", "actor), step 4, worker 0");
}

/* ---- handlers of the program ---- */

static void handle_plainly(int number)
{
    tell(number == SIGSEGV ? "handled\n" : "wrong signal\n");
    _exit(0);
}

static char *volatile page_of_fault;

static void repair(int number, siginfo_t *info, void *context)
{
    if (number != SIGSEGV || info->si_addr != page_of_fault || context == NULL) {
        _exit(1);
    }
    tell("handled\n");
    (void)mprotect(page_of_fault, 1, PROT_READ | PROT_WRITE);
}

/* The fault comes again. */
static void handle_once(int number)
{
    (void)number;
    tell("handled\n");
}

static void handle_by_abort(int number)
{
    (void)number;
    (void)signal(SIGABRT, SIG_DFL);
    tell("handled\n");
    abort();
}

static void fault_in_page(void)
{
    page_of_fault = protected_page();
    write_to(page_of_fault);
    tell("went on\n");
}

static void (*const fault_in_page_function)(void) = fault_in_page;

static void crash_with_handler(void *arg)
{
    (void)sigaction(SIGSEGV, arg, NULL);
    open_reporting();
    assert_result(actor_run(actor_new(ACTS(crashes(&fault_in_page_function), finishes(0)))), 0);
    world_close();
}

TEST(crash_goes_on_to_the_handler_of_the_program)
{
    static const struct {
        struct sigaction action;
        int ends_by;
        unsigned handled;
        bool goes_on;
    } rows[] = {
        {{.sa_handler = handle_plainly}, 0, 1, false},
        {{.sa_sigaction = repair, .sa_flags = SA_SIGINFO}, 0, 1, true},
        {{.sa_handler = handle_once, .sa_flags = (int)SA_RESETHAND}, SIGSEGV, 1, false},
        {{.sa_handler = handle_by_abort}, SIGABRT, 1, false},
        {{.sa_handler = SIG_DFL, .sa_flags = SA_SIGINFO}, SIGSEGV, 0, false},
    };
    FOR_ROWS (row, rows) {
        assert_ends_by(row->ends_by, crash_with_handler, &row->action);
        assert_reported("SIGSEGV", "actor), step 1, worker 0");
        assert_int_equal(count_in(said, "handled\n"), row->handled);
        assert_int_equal(count_in(said, "went on\n"), row->goes_on);
        const char *handled = strstr(said, "handled\n");
        assert_true(handled == NULL || handled > strstr(said, REPORT));
    }
}

static void (*const raise_function)(void) = raise_segv;

static void raise_ignored(void *arg)
{
    (void)arg;
    (void)signal(SIGSEGV, SIG_IGN);
    open_reporting();
    assert_result(actor_run(actor_new(ACTS(crashes(&raise_function), finishes(0)))), 0);
    world_close();
}

static void (*const fault_behind_file_function)(void) = fault_behind_file;

static void fault_ignored(void *arg)
{
    (void)signal(SIGBUS, SIG_IGN);
    crash_in_step(arg);
}

TEST(crash_signal_is_ignored_only_if_it_was_sent)
{
    assert_ends_by(0, raise_ignored, NULL);
    assert_ends_by(SIGBUS, fault_ignored, &fault_behind_file_function);
}

/* ---- whose handlers are installed ---- */

static const int numbers[] = {SIGSEGV, SIGABRT, SIGFPE, SIGBUS};

static void handle_mine(int number)
{
    (void)number;
    _exit(1);
}

static bool all_are_mine(void)
{
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct sigaction action;
        assert_int_equal(sigaction(numbers[i], NULL, &action), 0);
        count += action.sa_handler == handle_mine;
    }
    assert_true(count == 0 || count == COUNT_OF(numbers));
    return count > 0;
}

static struct sigaction saved[COUNT_OF(numbers)];

static void restore_handlers(void)
{
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        (void)sigaction(numbers[i], &saved[i], NULL);
    }
}

static void install_mine(void)
{
    const struct sigaction mine = {.sa_handler = handle_mine};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        assert_int_equal(sigaction(numbers[i], &mine, &saved[i]), 0);
    }
    test_at_end(restore_handlers);
}

TEST(crash_handlers_are_handed_back_by_the_last_runtime)
{
    struct api apis[2];
    const skua_sim_config sim = {0};
    install_mine();
    api_create(&apis[0], (skua_runtime_config){.worker_count = 1, .crash_report = true});
    api_create(&apis[1], (skua_runtime_config){.sim = &sim, .crash_report = true});
    assert_true(all_are_mine());
    for (size_t i = 0; i < COUNT_OF(apis); i++) {
        api_start(&apis[i]);
        assert_false(all_are_mine());
    }
    api_stop(&apis[0]);
    assert_false(all_are_mine());
    api_stop(&apis[1]);
    assert_true(all_are_mine());
}

TEST(crash_handlers_are_installed_on_request_only)
{
    install_mine();
    world_open();
    assert_true(all_are_mine());
}

TEST(crash_handlers_that_were_replaced_stay)
{
    world_open_with((skua_runtime_config){.crash_report = true});
    install_mine();
    world_close();
    assert_true(all_are_mine());
}

/* A handler that calls the one it has replaced. */
static struct sigaction replaced;

static void call_replaced(int number, siginfo_t *info, void *context)
{
    tell("handled\n");
    replaced.sa_sigaction(number, info, context);
}

static void crash_below_handler(void *arg)
{
    const struct sigaction action = {.sa_sigaction = call_replaced, .sa_flags = SA_SIGINFO};
    (void)arg;
    open_reporting();
    (void)sigaction(SIGSEGV, &action, &replaced);
    world_close();
    open_reporting();
    (void)actor_run(actor_new(ACTS(crashes(&fault_function), finishes(0))));
}

TEST(crash_handler_that_is_called_by_a_later_one_is_not_installed_again)
{
    assert_ends_by(SIGSEGV, crash_below_handler, NULL);
    assert_reported("SIGSEGV", "actor), step 1, worker 0");
    assert_int_equal(count_in(said, "handled\n"), 1);
}

/* ---- stacks ---- */

static int read_stack(struct turn *turn, const struct act *act)
{
    (void)turn;
    return sigaltstack(NULL, act->arg);
}

TEST(crash_stack_is_there_on_workers_only)
{
    stack_t mine;
    stack_t seen = {0};
    assert_int_equal(sigaltstack(NULL, &mine), 0);
    world_open_with((skua_runtime_config){.worker_count = 1, .crash_report = true});
    assert_result(actor_run(actor_new(ACTS(does(read_stack, &seen), finishes(0)))), 0);
    assert_int_equal(seen.ss_flags, 0);
    assert_true(seen.ss_size >= STACK_LEAST);
    world_close();
    const skua_sim_config sim = {0};
    world_open_with((skua_runtime_config){.sim = &sim, .crash_report = true});
    assert_result(actor_run(actor_new(ACTS(does(read_stack, &seen), finishes(0)))), 0);
    assert_ptr_equal(seen.ss_sp, mine.ss_sp);
}
