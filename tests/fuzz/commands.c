/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <time.h>

#include "calls.h"
#include "count_of.h"
#include "ledger.h"

/* ---- handlers ---- */

static int succeed(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    *result = ledger_payload(false, 16);
    return 0;
}

static int fail(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    *result = ledger_payload(true, 0);
    return SKUA_E_USER;
}

static int hand_back(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    *result = skua_payload_take(&command->input);
    return 0;
}

static int return_nonsense(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    *result = ledger_payload(false, 16);
    return 7;
}

/* Somebody else may complete it. */
static int leave_open(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)result;
    board_note_completion(command->completion);
    return SKUA_PENDING;
}

static void complete_now(skua_command *command)
{
    (void)ANSWERS(
        skua_command_complete(command->runtime, command->completion, 0, ledger_payload(false, 16)),
        ANSWER_OK | ANSWER(LATE));
}

static int complete_and_say_so(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)result;
    complete_now(command);
    return SKUA_PENDING;
}

static int complete_twice(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    board_note_completion(command->completion);
    complete_now(command);
    *result = ledger_payload(false, 16);
    return 0;
}

static int end_the_process(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)result;
    EXPECT(skua_process_terminate(command->runtime, command->completion.process) == 0);
    return SKUA_PENDING;
}

/* Only in a simulation. */
static int finish_later(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)result;
    (void)ANSWERS(skua_sim_complete_after(command->runtime, command->completion, SKUA_MILLISECOND,
                                          0, ledger_payload(false, 16)),
                  ANSWER_OK | ANSWER(NO_MEMORY));
    return SKUA_PENDING;
}

/* Nobody waits for it any more, so nobody can complete it. */
static void give_up(void *arg, skua_runtime *runtime, skua_completion completion)
{
    (void)arg;
    EXPECT(skua_command_complete(runtime, completion, 0, ledger_payload(false, 16)) == SKUA_E_LATE);
}

static skua_handler_fn *const handlers[] = {
    succeed,         fail,       hand_back,           return_nonsense,
    leave_open,      leave_open, complete_and_say_so, complete_twice,
    end_the_process,
};

/* Some ids are found directly, others are searched for. */
static uint32_t id_of(uint32_t handler)
{
    return handler % 2 == 0 ? handler : 1000 * handler;
}

void commands_register(skua_runtime *runtime)
{
    for (uint32_t i = 0; i < COUNT_OF(handlers); i++) {
        const skua_handler handler = {.name = "some",
                                      .run = handlers[i],
                                      .sim_safe = true,
                                      .abandon = i % 2 == 0 ? give_up : NULL};
        (void)ANSWERS(skua_command_register(runtime, id_of(i), &handler),
                      ANSWER_OK | ANSWER(NO_MEMORY));
    }
}

uint32_t choose_command(struct reader *reader)
{
    const uint8_t choice = reader_byte(reader);
    if (choice >= 0xf0) {
        return SKUA_COMMAND_RESERVED + choice - 0xf0;
    }
    return id_of(choice % (COUNT_OF(handlers) + 1)); /* nobody has the last one */
}

/* ---- blocking functions ---- */

static int return_result(skua_payload *input, skua_payload *result)
{
    (void)input;
    *result = ledger_payload(false, 16);
    return 0;
}

static int return_input(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_take(input);
    return SKUA_E_USER;
}

static int return_positive(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    return 3;
}

static int take_time(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return 0;
}

skua_blocking_fn *choose_blocking_function(struct reader *reader)
{
    static skua_blocking_fn *const functions[] = {
        return_result, return_result, return_input, return_positive, take_time, take_time, NULL,
    };
    return functions[reader_below(reader, COUNT_OF(functions))];
}

skua_pool choose_pool(struct reader *reader)
{
    return (skua_pool){reader_below(reader, 4) * reader_below(reader, 2)}; /* often the default */
}

/* ---- registering ---- */

static void register_pool(struct reader *reader, skua_runtime *runtime)
{
    static const skua_blocking_pool pools[] = {
        {.name = "default", .thread_limit = 2, .idle_ns = 1, .sim_safe = true},
        {.name = "direct", .thread_limit = 1, .direct = true},
        {.name = "narrow", .thread_limit = 1, .queue_limit = 1, .sim_safe = true},
        {.name = ""},
        {.name = NULL},
    };
    const uint32_t choice = reader_below(reader, COUNT_OF(pools) + 1);
    const skua_blocking_pool *pool = choice < COUNT_OF(pools) ? &pools[choice] : NULL;
    skua_pool handle;
    (void)ANSWERS(skua_blocking_register(runtime, pool, choice % 2 == 0 ? &handle : NULL),
                  ANSWER_OK | ANSWER(INVALID) | ANSWER(POOL_EXISTS) | ANSWER(FROZEN));
}

static void register_handler(struct reader *reader, skua_runtime *runtime)
{
    const uint8_t choice = reader_byte(reader);
    const skua_handler handler = {
        .name = "odd",
        .run = choice % 4 == 0 ? NULL : succeed,
        .simulate = choice % 4 == 1 ? finish_later : NULL,
    };
    const uint32_t id = choice >= 0xf0 ? SKUA_COMMAND_RESERVED + choice : choice * UINT32_C(50);
    (void)ANSWERS(skua_command_register(runtime, id, choice % 8 == 0 ? NULL : &handler),
                  ANSWER_OK | ANSWER(INVALID) | ANSWER(COMMAND_EXISTS) | ANSWER(FROZEN) |
                      ANSWER(RESERVED) | ANSWER(NO_MEMORY));
}

void commands_register_one(struct reader *reader, skua_runtime *runtime)
{
    if (reader_below(reader, 2) == 0) {
        register_pool(reader, runtime);
    } else {
        register_handler(reader, runtime);
    }
}
