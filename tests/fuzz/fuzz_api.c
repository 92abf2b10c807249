/* SPDX-License-Identifier: MIT */
/* A fuzz target: reads its input as a program of calls of the public interface. Two runtimes are
 * created, started, used, stopped and destroyed in whatever order the bytes say, by one thread or
 * two, with right and wrong arguments; their processes are scripts out of the same bytes
 * (script.c). Whatever the program was: every call has answered as documented, both runtimes can
 * be stopped and destroyed, all memory is back, every payload was dropped once, every process
 * closed once, every yield completed at most once, every event was asked for, and nobody has a name
 * any more. In a simulation the same program does the same twice.
 *
 * Built with libFuzzer by `make fuzz`, and with replay_main.c for the tests. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/random.h"
#include "board.h"
#include "calls.h"
#include "commands.h"
#include "counting_allocator.h"
#include "ledger.h"
#include "script.h"
#include "sockets.h"
#include "waits.h"

#define SLOTS 2
/* Each stop takes at least 100 ms before it says that a step is stuck. */
#define STOPS_MAX 400

/* A place for a runtime. */
struct slot {
    skua_runtime *runtime; /* or null */
    struct counting_allocator memory;
    atomic_uint exits;
};

static struct slot slots[SLOTS];

/* What the program runs on. */
static enum {
    ON_THREADS,
    ON_BOTH,      /* one on threads, one simulated */
    IN_SIMULATION /* by one thread: it can be repeated */
} driver;

/* Of the simulations that have ended, in their order. */
static uint64_t simulated;

/* The second thread. */
static struct {
    bool is_running;
    pthread_t thread;
    struct reader reader;
} other;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- life and death of a runtime ---- */

static void count_exit(void *arg, skua_exit *exit)
{
    struct slot *slot = arg;
    const unsigned exits = atomic_fetch_add(&slot->exits, 1);
    if (exits % 2 == 0) {
        skua_payload result = skua_payload_take(&exit->result);
        skua_payload_drop(&result);
    }
}

static void look_at_survivor(void *arg, const skua_process_snapshot *info)
{
    skua_process_snapshot now;
    struct slot *slot = arg;
    (void)ANSWERS(skua_process_info(slot->runtime, info->pid, &now),
                  ANSWER_OK | ANSWER(NO_PROCESS));
}

static void read_record(void *arg, const skua_sim_record *record)
{
    char text[200];
    (void)arg;
    EXPECT(skua_sim_record_format(record, text, sizeof text) > 0);
}

static void read_log(void *arg, const skua_log *log)
{
    (void)arg;
    EXPECT(log->text[0] != '\0' && log->level >= SKUA_LOG_WARNING);
}

static bool spare_some(void *arg, const skua_process_snapshot *info)
{
    (void)arg;
    return info->steps % 2 == 0;
}

static skua_sim_faults choose_faults(struct reader *reader)
{
    static const uint32_t rates[] = {0, 0, 20000, 300000};
    const uint8_t choice = reader_byte(reader);
    const uint8_t more = reader_byte(reader);
    const uint32_t broken = rates[more / 16 % 4]; /* of all that is the network's */
    return (skua_sim_faults){
        .message_delay = rates[choice % 4],
        .handler_error = rates[choice / 4 % 4],
        .slow_completion = rates[choice / 16 % 4],
        .no_memory = rates[choice / 64],
        .spurious_wake = rates[more % 4],
        .process_kill = rates[more / 4 % 4] / 10,
        .delay_max_ns = more == 0xff ? UINT64_MAX : SKUA_MICROSECOND * more,
        .may_kill = more >= 0x80 ? spare_some : NULL,
        .network = {.window = more % 16 == 1 ? 1 : 0,
                    .connect_refused = broken,
                    .connect_delay = broken,
                    .accept_delay = broken,
                    .no_descriptors = broken / 4,
                    .short_read = broken,
                    .short_write = broken,
                    .reset = broken / 10,
                    .silent_drop = broken / 10,
                    .eof_late = broken,
                    .clog = broken,
                    .partition = broken},
    };
}

static skua_sim_config choose_simulation(struct reader *reader)
{
    return (skua_sim_config){.faults = choose_faults(reader), .on_record = read_record};
}

/* Mostly one that works, with narrow limits. */
static skua_runtime_config choose_config(struct reader *reader, struct slot *slot)
{
    static const uint32_t process_limits[] = {0, 0, 0, 1, 3, 40, SKUA_PROCESSES_MAX, UINT32_MAX};
    const uint8_t choice = reader_byte(reader);
    skua_runtime_config config = {
        .worker_count = 1 + choice % 2,
        .process_limit = process_limits[choice / 2 % 8],
        .spare_limit = 2,
        .seed = reader_byte(reader),
        .alloc = counting_allocate,
        .alloc_arg = &slot->memory,
        .on_exit = count_exit,
        .on_exit_arg = slot,
        .on_survivor = look_at_survivor,
        .on_survivor_arg = slot,
        .on_log = read_log,
    };
    switch (choice / 16) {
    case 0:
        config.mailbox_limit = 1;
        break;
    case 1:
        config.payload_limit = 32;
        break;
    case 2:
        config.stall_limit_ns = SKUA_MILLISECOND;
        config.stall_signal = SIGWINCH;
        break;
    case 3:
        config.stall_signal = reader_byte(reader);
        break;
    case 4:
        config.worker_count = SKUA_WORKERS_MAX + 1;
        break;
    case 5:
        config.mailbox_limit = UINT32_MAX;
        break;
    case 6:
        config.spare_limit = choice % 2 == 0 ? SKUA_SPARES_NONE : SKUA_SPARES_MAX + 1;
        config.stall_limit_ns = SKUA_FOREVER;
        break;
    case 7:
        config.worker_count = 0;
        break;
    case 8:
        config.name_limit = 1 + choice % 2;
        break;
    case 9:
        config.name_limit = choice % 2 == 0 ? UINT32_MAX : 0;
        break;
    case 10:
        config.stack_limit = 1 + choice % 4;
        config.group_limit = 1 + choice % 4;
        break;
    default:
        break;
    }
    return config;
}

static void create(struct reader *reader, struct slot *slot)
{
    if (slot->runtime != NULL) {
        return;
    }
    counting_allocator_init(&slot->memory);
    atomic_store(&slot->exits, 0);
    skua_runtime_config config = choose_config(reader, slot);
    skua_sim_config simulation;
    if (driver == IN_SIMULATION || (driver == ON_BOTH && slot == &slots[0])) {
        simulation = choose_simulation(reader);
        config.sim = &simulation;
    }
    if (ANSWERS(skua_runtime_create(&slot->runtime, &config),
                ANSWER_OK | ANSWER(INVALID) | ANSWER(SIGNAL) | ANSWER(NO_MEMORY))) {
        commands_register(slot->runtime);
    }
}

static void start(struct reader *reader, struct slot *slot)
{
    (void)reader;
    (void)ANSWERS(skua_runtime_start(slot->runtime),
                  ANSWER_OK | ANSWER(INVALID) | ANSWER(STARTED) | ANSWER(STOPPED));
}

/* A runtime is gone. */
static void check_memory(struct slot *slot)
{
    EXPECT(counting_allocator_is_clean(&slot->memory));
    slot->runtime = NULL;
}

static void destroy(struct reader *reader, struct slot *slot)
{
    (void)reader;
    const uint64_t hash = skua_sim_hash(slot->runtime);
    if (ANSWERS(skua_runtime_destroy(slot->runtime), ANSWER_OK | ANSWER(BUSY))) {
        simulated = random_mix(simulated + hash);
        check_memory(slot);
    }
}

/* Lets the processes go on for a while, without anybody who interferes. */
static void let_run(struct slot *slot)
{
    const uint64_t until = skua_sim_now(slot->runtime) + SKUA_MILLISECOND;
    const int more = skua_sim_run(slot->runtime, until);
    (void)ANSWERS(more > 0 ? 0 : more,
                  ANSWER_OK | ANSWER(INVALID) | ANSWER(NOT_STARTED) | ANSWER(STOPPED));
    if (more == SKUA_E_INVALID) { /* it is not simulated, or there is none */
        calls_wait_a_moment(slot->runtime);
    }
}

/* Returns what the last stop did. */
static int stop_for_good(struct slot *slot)
{
    int error = skua_runtime_stop(slot->runtime, 0);
    for (int i = 0; error == SKUA_E_STUCK && i < STOPS_MAX; i++) {
        error = skua_runtime_stop(slot->runtime, 50 * SKUA_MILLISECOND);
    }
    return error;
}

/* What holds of every runtime that has stopped. */
static void check_stopped(struct slot *slot)
{
    skua_stats stats;
    skua_payload input = ledger_payload(true, 0);
    EXPECT(skua_stats_read(slot->runtime, &stats, NULL, 0) > 0);
    EXPECT(stats.live == 0);
    EXPECT(stats.spawned == stats.finished);
    EXPECT(stats.finished == atomic_load(&slot->exits));
    EXPECT(skua_runtime_stop(slot->runtime, 0) == 0);
    EXPECT(skua_runtime_start(slot->runtime) == SKUA_E_STOPPED);
    EXPECT(skua_process_send(slot->runtime, (skua_pid){0}, input) < 0);
    for (uint32_t i = 0; i < BOARD_NAMES; i++) {
        skua_pid pid;
        EXPECT(skua_name_find(slot->runtime, board_name(i), &pid) == SKUA_E_NO_PROCESS);
    }
}

static void end(struct slot *slot)
{
    if (slot->runtime == NULL) {
        return;
    }
    const int error = stop_for_good(slot);
    (void)ANSWERS(error, ANSWER_OK | ANSWER(TIMEOUT) | ANSWER(NOT_STARTED));
    if (error != SKUA_E_NOT_STARTED) {
        check_stopped(slot);
    }
    destroy(NULL, slot);
    EXPECT(slot->runtime == NULL);
}

/* ---- the second thread ---- */

static void *do_otherwise(void *arg)
{
    struct reader *reader = arg;
    while (!reader_is_empty(reader)) {
        const uint8_t choice = reader_byte(reader);
        skua_runtime *runtime = slots[choice % SLOTS].runtime;
        if (choice < 0xc0) {
            calls_make_one(reader, runtime);
        } else {
            calls_make_one_that_waits(reader, runtime, false);
        }
    }
    return NULL;
}

/* Before what only one thread may do, and before the end. */
static void join_other(void)
{
    if (other.is_running) {
        EXPECT(pthread_join(other.thread, NULL) == 0);
        other.is_running = false;
    }
}

static void start_other(struct reader *reader, struct slot *slot)
{
    (void)slot;
    join_other();
    other.reader = choose_stretch(reader);
    other.is_running = driver != IN_SIMULATION &&
                       pthread_create(&other.thread, NULL, do_otherwise, &other.reader) == 0;
}

/* ---- the program ---- */

static void create_alone(struct reader *reader, struct slot *slot)
{
    join_other();
    create(reader, slot);
}

static void register_alone(struct reader *reader, struct slot *slot)
{
    join_other();
    commands_register_one(reader, slot->runtime);
}

static void destroy_alone(struct reader *reader, struct slot *slot)
{
    join_other();
    destroy(reader, slot);
}

static void call(struct reader *reader, struct slot *slot)
{
    calls_make_one(reader, slot->runtime);
}

static void call_and_wait(struct reader *reader, struct slot *slot)
{
    calls_make_one_that_waits(reader, slot->runtime, false);
}

static void move_pipe(struct reader *reader, struct slot *slot)
{
    board_move_pipe(reader, slot->runtime);
}

static void run_short_of_memory(struct reader *reader, struct slot *slot)
{
    const uint8_t choice = reader_byte(reader);
    if (choice < 0x80) {
        counting_allocator_fail_once(&slot->memory, 1 + choice % 16);
    } else if (choice < 0xc0) {
        counting_allocator_fail_from(&slot->memory, 1 + choice % 16);
    } else {
        counting_allocator_fail_never(&slot->memory);
    }
}

static void complete_later(struct reader *reader, struct slot *slot)
{
    const skua_completion completion = choose_completion(reader);
    const uint64_t delay = choose_duration(reader);
    join_other(); /* only the thread that drives may do that */
    (void)ANSWERS(skua_sim_complete_after(slot->runtime, completion, delay, 0,
                                          choose_payload(reader, slot->runtime)),
                  ANSWER_OK | ANSWER(INVALID) | ANSWER(NO_MEMORY) | ANSWER(NOT_STARTED) |
                      ANSWER(STOPPED));
}

/* Not while the other thread might drive: a switch at no point in particular makes runs differ. */
static void switch_faults(struct reader *reader, struct slot *slot)
{
    const skua_sim_faults faults = choose_faults(reader);
    join_other();
    (void)ANSWERS(skua_sim_faults_set(slot->runtime, &faults), ANSWER_OK | ANSWER(INVALID));
}

/* The same for hosts: mostly some that can exist. */
static void move_hosts(struct reader *reader, struct slot *slot)
{
    const uint8_t choice = reader_byte(reader);
    const uint32_t a = choice % 4;
    const uint32_t b = choice >= 0xf0 ? 1000 : choice / 4 % 4;
    join_other();
    switch (choice / 16 % 4) {
    case 0:
        (void)ANSWERS(skua_sim_host_submit(slot->runtime, a, script_simple_type(),
                                           choose_payload(reader, slot->runtime), NULL),
                      ANSWERS_OF_SUBMIT);
        break;
    case 1:
        (void)ANSWERS(skua_sim_partition(slot->runtime, a, b, choice % 2 == 0),
                      ANSWER_OK | ANSWER(INVALID) | ANSWER(NO_MEMORY));
        break;
    case 2:
        (void)ANSWERS(skua_sim_heal(slot->runtime, a, b), ANSWER_OK | ANSWER(INVALID));
        break;
    default:
        (void)ANSWERS(skua_sim_latency_set(slot->runtime, a, b, choose_duration(reader)),
                      ANSWER_OK | ANSWER(INVALID) | ANSWER(NO_MEMORY) | ANSWER(DURATION));
        break;
    }
}

static void run_operations(struct reader *reader)
{
    static void (*const operations[])(struct reader *, struct slot *) = {
        call,          call,           call,          call,           call,
        call,          call,           call,          call,           call,
        move_pipe,     move_pipe,      create_alone,  register_alone, start,
        destroy_alone, start_other,    call_and_wait, call_and_wait,  run_short_of_memory,
        call_and_wait, complete_later, switch_faults, move_hosts,
    };
    while (!reader_is_empty(reader)) {
        const uint8_t choice = reader_byte(reader);
        struct slot *slot = &slots[choice >= 0xc0];
        operations[choice % (sizeof operations / sizeof operations[0])](reader, slot);
    }
}

/* Most programs are about a runtime that runs, with some processes that can be called. */
static void set_out(struct reader *reader)
{
    const uint8_t choice = reader_byte(reader);
    driver = choice < 0xc0 ? choice / 0x60 : IN_SIMULATION;
    for (unsigned i = 0; i < SLOTS; i++) {
        if (choice % 8 > 2 * i) {
            create(reader, &slots[i]);
        }
        if (choice % 8 > 2 * i + 1) {
            start(reader, &slots[i]);
            calls_start_servers(reader, slots[i].runtime);
        }
    }
}

/* Returns what identifies the run, in a simulation. */
static uint64_t run_program(const uint8_t *data, size_t size)
{
    struct reader reader = {.next = data, .end = data + size};
    simulated = 0;
    ledger_begin();
    waits_begin();
    sockets_begin();
    board_begin(data, size);
    set_out(&reader);
    run_operations(&reader);
    join_other();
    for (unsigned i = 0; i < SLOTS; i++) {
        if (size % 4 != 0) {
            let_run(&slots[i]);
        }
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        end(&slots[i]);
    }
    board_end();
    waits_check();
    ledger_check();
    return simulated;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t run = run_program(data, size);
    if (driver == IN_SIMULATION) {
        EXPECT(run_program(data, size) == run);
    }
    return 0;
}
