/* SPDX-License-Identifier: MIT */
#include "calls.h"

#include <string.h>

#include "count_of.h"
#include "ledger.h"
#include "script.h"
#include "supervision.h"

#define ANSWERS_OF_NAME   (ANSWER_OK | ANSWER(NO_PROCESS) | ANSWER(NAME) | ANSWER(NAME_LENGTH))
#define ANSWERS_OF_LOOKUP (ANSWER_OK | ANSWER(INVALID) | ANSWER(FOREIGN_PID) | ANSWER(NO_PROCESS))

static void send(struct reader *reader, skua_runtime *runtime)
{
    const skua_pid to = choose_pid(reader);
    (void)ANSWERS(skua_process_send(runtime, to, choose_payload(reader, runtime)), ANSWERS_OF_SEND);
}

static void send_urgent(struct reader *reader, skua_runtime *runtime)
{
    const skua_pid to = choose_pid(reader);
    const int error = skua_process_send_urgent(runtime, to, choose_payload(reader, runtime));
    (void)(error == SKUA_E_NOT_URGENT || ANSWERS(error, ANSWERS_OF_SEND));
}

/* A thread has no monitors and links, and is mostly aware of that. */
static void choose_start(struct reader *reader, skua_runtime *runtime, struct script_start *start)
{
    script_choose(reader, runtime, start);
    const uint8_t choice = reader_byte(reader);
    if (choice >= 0x80) {
        script_choose_relations(reader, start);
    }
    if (choice < 0xf0) {
        start->options.monitor = start->options.join = start->options.link = false;
    }
}

static bool is_context_needed(const struct script_start *start)
{
    return start->options.monitor || start->options.join || start->options.link;
}

static void submit(struct reader *reader, skua_runtime *runtime)
{
    struct script_start start;
    skua_pid pid;
    choose_start(reader, runtime, &start);
    if (ANSWERS(skua_process_submit_with(runtime, &start.options, &pid), ANSWERS_OF_SUBMIT)) {
        EXPECT(!is_context_needed(&start));
        board_note_pid(pid);
    }
}

void calls_start_servers(struct reader *reader, skua_runtime *runtime)
{
    for (uint32_t left = reader_below(reader, 8); left > 0; left--) {
        struct script_start start;
        skua_pid pid;
        choose_start(reader, runtime, &start);
        script_make_server(&start, left);
        if (ANSWERS(skua_process_submit_with(runtime, &start.options, &pid), ANSWERS_OF_SUBMIT)) {
            board_note_pid(pid);
        }
    }
}

/* The default, one of the program's, or one that is refused. */
int choose_reason(struct reader *reader)
{
    const uint8_t choice = reader_byte(reader);
    return choice < 16 ? (int)choice % 2 : SKUA_E_USER - choice;
}

/* A payload is taken and handed on; or there is one too many, and it is told so. */
static void submit_one(struct reader *reader, skua_runtime *runtime)
{
    skua_payload payload = choose_payload(reader, runtime);
    skua_payload taken = skua_payload_take(&payload);
    const int error = skua_process_submit_from(runtime, script_simple_type(), &payload, NULL);
    EXPECT(error == (runtime == NULL ? SKUA_E_INVALID : SKUA_E_TAKEN));
    EXPECT(payload.storage == SKUA_PAYLOAD_TAKEN);
    (void)ANSWERS(skua_process_submit(runtime, script_simple_type(), taken, NULL),
                  ANSWERS_OF_SUBMIT);
}

static void find_pool(struct reader *reader, skua_runtime *runtime)
{
    static const char *const names[] = {"default", "direct", "narrow", "unknown", "", NULL};
    const uint32_t choice = reader_below(reader, COUNT_OF(names));
    skua_pool pool;
    (void)ANSWERS(skua_blocking_find(runtime, names[choice], &pool),
                  ANSWER(INVALID) | ANSWER(UNKNOWN_POOL) | ANSWER_OK);
    EXPECT(skua_blocking_find(runtime, names[choice], NULL) == SKUA_E_INVALID);
}

/* What is written is read again. */
static void write_pid(struct reader *reader, skua_runtime *runtime)
{
    char text[SKUA_PID_TEXT_SIZE];
    const skua_pid pid = choose_pid(reader);
    skua_pid read;
    (void)runtime;
    EXPECT(skua_pid_parse(skua_pid_format(pid, text), &read) == 0);
    EXPECT(skua_pid_equal(pid, read));
    text[reader_below(reader, sizeof text)] = (char)reader_byte(reader);
    text[sizeof text - 1] = '\0';
    (void)ANSWERS(skua_pid_parse(text, &read), ANSWER_OK | ANSWER(INVALID));
}

static void cancel(struct reader *reader, skua_runtime *runtime)
{
    const skua_pid pid = choose_pid(reader);
    (void)ANSWERS(skua_process_cancel(runtime, pid, choose_reason(reader)),
                  ANSWERS_OF_LOOKUP | ANSWER(NO_MEMORY));
}

static void terminate(struct reader *reader, skua_runtime *runtime)
{
    (void)ANSWERS(skua_process_terminate(runtime, choose_pid(reader)), ANSWERS_OF_LOOKUP);
}

static void complete(struct reader *reader, skua_runtime *runtime)
{
    const skua_completion completion = choose_completion(reader);
    const int error = 1 - (int)reader_below(reader, 4);
    (void)ANSWERS(
        skua_command_complete(runtime, completion, error, choose_payload(reader, runtime)),
        ANSWER_OK | ANSWER(INVALID) | ANSWER(FOREIGN_PID) | ANSWER(LATE));
}

static void look_for_name(struct reader *reader, skua_runtime *runtime)
{
    skua_pid pid = {1};
    const char *name = board_name(choose_name(reader));
    (void)ANSWERS(skua_name_find(runtime, name, &pid), ANSWERS_OF_NAME | ANSWER(INVALID));
    EXPECT(skua_name_find(runtime, name, NULL) == SKUA_E_INVALID);
}

/* A number that was made of a name now can be looked up at once. */
static void look_for_number(struct reader *reader, skua_runtime *runtime)
{
    skua_pid pid;
    skua_name number;
    const uint64_t answers = ANSWER_OK | ANSWER(NO_PROCESS) | ANSWER(INVALID) | ANSWER(LATE);
    (void)ANSWERS(skua_name_holder(runtime, choose_number(reader), &pid), answers);
    if (ANSWERS(skua_name_of(runtime, board_name(choose_name(reader)), &number),
                ANSWERS_OF_NAME | ANSWER(NO_MEMORY) | ANSWER(INVALID))) {
        board_note_number(number);
        (void)ANSWERS(skua_name_holder(runtime, number, &pid), ANSWER_OK | ANSWER(NO_PROCESS));
    }
    EXPECT(skua_name_of(runtime, "a", NULL) == SKUA_E_INVALID);
    EXPECT(skua_name_holder(runtime, (skua_name){0}, NULL) == SKUA_E_INVALID);
}

static void look_at_process(struct reader *reader, skua_runtime *runtime)
{
    skua_process_snapshot info;
    const skua_pid pid = choose_pid(reader);
    if (ANSWERS(skua_process_info(runtime, pid, &info), ANSWERS_OF_LOOKUP)) {
        EXPECT(skua_pid_equal(info.pid, pid));
        EXPECT(skua_process_state_name(info.state)[0] != '?');
        EXPECT(info.type_name != NULL);
    }
}

/* A page of processes, after any PID: each has a name, and none comes twice. */
static void look_at_page(struct reader *reader, skua_runtime *runtime)
{
    skua_process_snapshot infos[4];
    const size_t capacity = reader_below(reader, 5);
    const int count = skua_process_list(runtime, choose_pid(reader), infos, capacity);
    if (count < 0) {
        EXPECT(count == SKUA_E_INVALID ? runtime == NULL : count == SKUA_E_FOREIGN_PID);
        return;
    }
    EXPECT((size_t)count <= capacity);
    for (int i = 0; i < count; i++) {
        EXPECT(infos[i].type_name != NULL);
        EXPECT(i == 0 || !skua_pid_equal(infos[i].pid, infos[i - 1].pid));
    }
}

/* As snprintf does: a zero at the end of what fits. */
static void look_at_metrics(struct reader *reader, skua_runtime *runtime)
{
    char text[64];
    const size_t size = reader_below(reader, sizeof text + 1);
    const int length = skua_metrics_format(runtime, text, size);
    EXPECT(runtime == NULL ? length == SKUA_E_INVALID : length > 0);
    EXPECT(length < 0 || size == 0 || memchr(text, '\0', size) == text + size - 1);
}

static void look_at_runtime(struct reader *reader, skua_runtime *runtime)
{
    skua_stats total;
    skua_stats workers[2];
    skua_runtime_config config;
    (void)reader;
    const int count = skua_stats_read(runtime, &total, workers, 2);
    EXPECT(runtime == NULL ? count == SKUA_E_INVALID : count > 0);
    (void)ANSWERS(skua_runtime_config_read(runtime, &config), ANSWER_OK | ANSWER(INVALID));
    EXPECT(skua_stats_read(runtime, NULL, NULL, 1) == SKUA_E_INVALID);
    EXPECT(skua_runtime_config_read(runtime, NULL) == SKUA_E_INVALID);
    EXPECT(skua_process_info(runtime, (skua_pid){0}, NULL) == SKUA_E_INVALID);
}

/* Who is in a group, and which groups there are. */
static void look_at_groups(struct reader *reader, skua_runtime *runtime)
{
    skua_pid pids[4];
    skua_group_snapshot groups[2];
    const uint32_t index = choose_name(reader);
    const size_t capacity = reader_below(reader, 5);
    const int count = skua_group_members(runtime, board_name(index), pids, capacity);
    EXPECT(count >= 0 || runtime == NULL || index >= BOARD_NAMES);
    for (int i = 0; i < count && (size_t)i < capacity; i++) {
        EXPECT(!skua_pid_is_none(pids[i]));
    }
    const int total = skua_group_list(runtime, groups, 2);
    EXPECT(runtime == NULL ? total == SKUA_E_INVALID : total >= 0);
    EXPECT(total < 1 || groups[0].members + groups[0].watchers > 0);
    EXPECT(skua_group_list(runtime, NULL, 1) == SKUA_E_INVALID);
}

void calls_make_one(struct reader *reader, skua_runtime *runtime)
{
    static void (*const calls[])(struct reader *, skua_runtime *) = {
        send,
        send,
        send,
        send_urgent,
        submit,
        submit,
        submit,
        cancel,
        terminate,
        complete,
        complete,
        look_at_process,
        look_at_runtime,
        look_at_page,
        look_at_metrics,
        submit_one,
        find_pool,
        write_pid,
        look_for_name,
        look_for_number,
        look_at_groups,
        supervision_make_one,
        supervision_make_one,
    };
    calls[reader_below(reader, sizeof calls / sizeof calls[0])](reader, runtime);
}

/* ---- calls that wait ---- */

/* In a simulation they drive it, which only one thread may do at a time. */
#define ANSWERS_OF_DRIVING (ANSWER(BUSY) | ANSWER(STOPPED) | ANSWER(AT_REST))

/* The small process that asks can be ended by others, as any can. */
#define ANSWERS_OF_PROCESS_CALL                                                                    \
    (ANSWERS_OF_DRIVING | ANSWERS_OF_SEND | ANSWER(TIMEOUT) | ANSWER(CANCELLED) |                  \
     ANSWER(NOT_CALLABLE) | ANSWER(PEER_ENDED) | ANSWER(DURATION) | ANSWER(PROCESS_LIMIT) |        \
     ANSWER(NOT_STARTED) | ANSWER(TERMINATED) | ANSWER_OF_USER)

static void wait_for_process(struct reader *reader, skua_runtime *runtime, uint64_t refusal)
{
    skua_exit exit;
    const skua_pid pid = choose_pid(reader);
    if (ANSWERS(skua_process_wait(runtime, pid, choose_timeout(reader), &exit),
                refusal != 0 ? refusal
                             : ANSWERS_OF_LOOKUP | ANSWER(TIMEOUT) | ANSWERS_OF_DRIVING)) {
        EXPECT(skua_pid_equal(exit.pid, pid));
        skua_payload_drop(&exit.result);
    }
}

/* The first process may have ended long ago: then nobody waits. */
void calls_wait_a_moment(skua_runtime *runtime)
{
    for (uint8_t i = 0; i < 8; i++) {
        struct reader reader = {.next = &i, .end = &i + 1};
        (void)ANSWERS(skua_process_wait(runtime, choose_pid(&reader), 30 * SKUA_MICROSECOND, NULL),
                      ANSWERS_OF_LOOKUP | ANSWER(TIMEOUT));
    }
}

static void run_process(struct reader *reader, skua_runtime *runtime, uint64_t refusal)
{
    struct script_start start;
    skua_exit exit;
    choose_start(reader, runtime, &start);
    script_make_mortal(&start);
    if (ANSWERS(skua_process_run_with(runtime, &start.options, &exit),
                refusal != 0 ? refusal : ANSWERS_OF_SUBMIT | ANSWERS_OF_DRIVING)) {
        EXPECT(exit.type == start.options.type || exit.type->version > 0); /* it has changed */
        skua_payload_drop(&exit.result);
    }
}

/* Not for ever: few servers answer everything. */
static void ask_for_report(struct reader *reader, skua_runtime *runtime, uint64_t refusal)
{
    skua_payload report = skua_nothing();
    const skua_pid to = choose_server(reader);
    const uint64_t timeout = reader_byte(reader) * UINT64_C(500);
    const int error = skua_supervisor_report(runtime, to, timeout, &report);
    (void)ANSWERS(error, refusal != 0 ? refusal | ANSWER(NO_MEMORY) : ANSWERS_OF_PROCESS_CALL);
    supervision_read_report(&report);
    skua_payload_drop(&report);
}

static void call_process(struct reader *reader, skua_runtime *runtime, uint64_t refusal)
{
    skua_payload answer;
    const skua_pid to = choose_server(reader);
    const uint8_t choice = reader_byte(reader);
    const uint64_t timeout =
        choice < 0xf0 ? choice * UINT64_C(500) : SKUA_DURATION_MAX + 1 + choice;
    const int error = skua_process_call(runtime, to, choose_payload(reader, runtime), timeout,
                                        choice % 8 != 0 ? &answer : NULL);
    (void)ANSWERS(error, refusal != 0 ? refusal | ANSWER(NO_MEMORY) : ANSWERS_OF_PROCESS_CALL);
    if (choice % 8 != 0) {
        EXPECT(error == 0 || error <= SKUA_E_USER || error == SKUA_E_PEER_ENDED ||
               answer.storage == SKUA_PAYLOAD_EMPTY);
        skua_payload_drop(&answer);
    }
}

static void stop(struct reader *reader, skua_runtime *runtime, uint64_t refusal)
{
    (void)ANSWERS(skua_runtime_stop(runtime, choose_timeout(reader)),
                  refusal != 0 ? refusal
                               : ANSWER_OK | ANSWER(TIMEOUT) | ANSWER(STUCK) | ANSWER(INVALID) |
                                     ANSWER(NOT_STARTED) | ANSWER(BUSY));
}

/* Not for ever: a ticker never comes to rest. */
static void drive(struct reader *reader, skua_runtime *runtime, uint64_t refusal)
{
    const uint64_t until = skua_sim_now(runtime) + reader_byte(reader) * (8 * SKUA_MICROSECOND);
    const int more =
        reader_below(reader, 2) == 0 ? skua_sim_run(runtime, until) : skua_sim_step(runtime);
    (void)ANSWERS(more > 0 ? 0 : more,
                  ANSWER(INVALID) | (refusal != 0 ? refusal
                                                  : ANSWER_OK | ANSWER(NOT_STARTED) |
                                                        ANSWER(STOPPED) | ANSWER(BUSY)));
}

void calls_make_one_that_waits(struct reader *reader, skua_runtime *runtime, bool inside)
{
    static void (*const calls[])(struct reader *, skua_runtime *, uint64_t) = {
        wait_for_process,
        wait_for_process,
        wait_for_process,
        wait_for_process,
        run_process,
        run_process,
        run_process,
        call_process,
        call_process,
        call_process,
        call_process,
        ask_for_report,
        stop,
        drive,
        drive,
        drive,
        drive,
    };
    calls[reader_below(reader, sizeof calls / sizeof calls[0])](reader, runtime,
                                                                inside ? ANSWER(INSIDE_STEP) : 0);
    if (inside) {
        EXPECT(skua_runtime_destroy(runtime) == SKUA_E_BUSY);
    }
}
