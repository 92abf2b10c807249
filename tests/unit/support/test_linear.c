/* SPDX-License-Identifier: MIT */
/* The search for an order that explains a history: a register, and the store of kv_history.h. */
#include "kv_history.h"
#include "linear.h"
#include "test.h"

/* ---- a register ---- */

/* A write of a number, or a read that found it. Zero is what a register begins with. */
struct access {
    bool is_write;
    uint32_t number;
};

static bool use_register(void *state, const void *what, bool is_answered)
{
    const struct access *access = what;
    uint32_t *value = state;
    if (access->is_write) {
        *value = access->number;
        return true;
    }
    return !is_answered || *value == access->number;
}

static const struct linear_model register_model = {.state_size = sizeof(uint32_t),
                                                   .apply = use_register};

#define WRITES(number) (&(const struct access){true, number})
#define READS(number)  (&(const struct access){false, number})
#define NEVER          LINEAR_UNANSWERED

#define HISTORY(...)                                                                               \
    linear_check(&register_model, (const struct linear_operation[]){__VA_ARGS__},                  \
                 COUNT_OF(((const struct linear_operation[]){__VA_ARGS__})))

#define assert_explained(...)     assert_int_equal(HISTORY(__VA_ARGS__).verdict, LINEAR_HOLDS)
#define assert_not_explained(...) assert_int_equal(HISTORY(__VA_ARGS__).verdict, LINEAR_FAILS)

TEST(one_after_the_other_is_explained)
{
    assert_explained({1, 2, 0, WRITES(5)}, {3, 4, 0, READS(5)}, {5, 6, 0, READS(5)});
    assert_not_explained({1, 2, 0, WRITES(5)}, {3, 4, 0, READS(0)});
    assert_not_explained({1, 2, 0, WRITES(5)}, {3, 4, 0, READS(6)});
    assert_int_equal(linear_check(&register_model, NULL, 0).verdict, LINEAR_HOLDS);
}

TEST(what_overlaps_may_happen_in_any_order)
{
    assert_explained({1, 4, 0, WRITES(5)}, {2, 3, 0, READS(0)});
    assert_explained({1, 4, 0, WRITES(5)}, {2, 3, 0, READS(5)});
    assert_explained({1, 6, 0, WRITES(5)}, {2, 5, 0, WRITES(6)}, {3, 4, 0, READS(6)},
                     {7, 8, 0, READS(5)});
}

TEST(nobody_reads_what_was_there_before_something_that_was_read)
{
    assert_explained({1, 9, 0, WRITES(5)}, {2, 3, 0, READS(0)}, {4, 5, 0, READS(5)});
    assert_not_explained({1, 9, 0, WRITES(5)}, {2, 3, 0, READS(5)}, {4, 5, 0, READS(0)});
}

TEST(what_was_not_answered_takes_effect_late_or_never_but_not_twice)
{
    assert_explained({1, NEVER, 0, WRITES(5)}, {2, 3, 0, READS(0)}, {4, 5, 0, READS(5)});
    assert_explained({1, NEVER, 0, WRITES(5)}, {2, 3, 0, READS(0)}, {4, 5, 0, READS(0)});
    assert_explained({1, NEVER, 0, WRITES(5)}, {2, 3, 0, WRITES(6)}, {4, 5, 0, READS(5)});
    assert_not_explained({1, 2, 0, READS(5)}, {3, NEVER, 0, WRITES(5)});
    assert_not_explained({1, NEVER, 0, WRITES(5)}, {2, 3, 0, READS(5)}, {4, 5, 0, WRITES(6)},
                         {6, 7, 0, READS(5)});
}

TEST(nothing_overtakes_on_a_stream)
{
    assert_explained({1, NEVER, 0, WRITES(5)}, {2, NEVER, 0, WRITES(6)}, {3, 4, 0, READS(6)},
                     {5, 6, 0, READS(5)});
    assert_not_explained({1, NEVER, 0, WRITES(5)}, {2, NEVER, 1, WRITES(6)}, {3, 4, 0, READS(6)},
                         {5, 6, 0, READS(5)});
    assert_explained({1, NEVER, 0, WRITES(5)}, {2, NEVER, 1, WRITES(6)}, {3, 4, 0, READS(6)},
                     {5, 6, 0, READS(6)});
}

TEST(longest_order_that_begins_well_is_told)
{
    const struct linear_result result =
        HISTORY({1, 2, 0, WRITES(5)}, {3, 4, 0, READS(5)}, {5, 6, 0, READS(6)});
    assert_int_equal(result.verdict, LINEAR_FAILS);
    assert_int_equal(result.count, 2);
    assert_int_equal(result.order[0], 0);
    assert_int_equal(result.order[1], 1);
}

/* All writes overlap, and then somebody reads what was never written: with a register only which
 * were written counts, and which was last; without that memory there would be 12! orders. */
TEST(same_set_and_state_are_not_tried_again)
{
    struct access accesses[13];
    struct linear_operation operations[13];
    for (uint32_t i = 0; i < 12; i++) {
        accesses[i] = (struct access){true, 1 + i};
        operations[i] = (struct linear_operation){1 + i, 100 + i, 0, &accesses[i]};
    }
    accesses[12] = (struct access){false, 99};
    operations[12] = (struct linear_operation){200, 201, 0, &accesses[12]};
    const struct linear_result result = linear_check(&register_model, operations, 13);
    assert_int_equal(result.verdict, LINEAR_FAILS);
    assert_int_equal(result.tried, 1 + 12 * 2048);
}

TEST(history_that_is_too_long_is_said_to_be_so)
{
    static struct linear_operation operations[LINEAR_MAX + 1];
    assert_int_equal(linear_check(&register_model, operations, LINEAR_MAX + 1).verdict,
                     LINEAR_TOO_HARD);
    for (size_t i = 0; i < 40; i++) {
        static struct access accesses[40];
        accesses[i] = (struct access){i < 39, (uint32_t)(i < 39 ? i : 99)};
        operations[i] =
            (struct linear_operation){1 + i, i < 39 ? LINEAR_UNANSWERED : 50, 0, &accesses[i]};
    }
    assert_int_equal(linear_check(&register_model, operations, 40).verdict, LINEAR_TOO_HARD);
}

/* ---- the store ---- */

static struct kv_history history;

static struct kv_operation *ask(struct kv_operation operation)
{
    return kv_invoke(&history, operation);
}

static void answer(struct kv_operation *operation, const char *text)
{
    kv_answer(&history, operation, (skua_bytes){text, strlen(text)});
}

static void ask_and_answer(struct kv_operation operation, const char *text)
{
    answer(ask(operation), text);
}

static void begin(void)
{
    memset(&history, 0, sizeof history);
}

TEST(store_answers_as_redis_does)
{
    begin();
    ask_and_answer((struct kv_operation){.verb = KV_GET}, "$-1\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_SET, .number = 41}, "+OK\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_INCR}, ":42\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_GET}, "$2\r\n42\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_LPOP}, "-WRONGTYPE some words\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_DEL}, ":1\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_LPUSH, .number = 2}, ":1\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_LPUSH, .number = 1}, ":2\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_RPUSH, .number = 3}, ":3\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_MGET}, "$-1\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_LRANGE, .number = 1},
                   "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_LPOP}, "$1\r\n1\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_LPOP}, "$1\r\n2\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_LPOP}, "$1\r\n3\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_LPOP}, "$-1\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_HSET, .field = 1, .number = 5}, ":1\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_HSET, .field = 1, .number = 6}, ":0\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_HGET, .field = 1}, "$1\r\n6\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_HGET, .field = 2}, "$-1\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_GET, .key = 1}, "$-1\r\n");
    assert_true(kv_is_explained(&history, stderr));
}

TEST(two_increments_with_one_answer_are_not_explained)
{
    begin();
    struct kv_operation *one = ask((struct kv_operation){.verb = KV_INCR, .connection = 1});
    struct kv_operation *other = ask((struct kv_operation){.verb = KV_INCR, .connection = 2});
    answer(one, ":1\r\n");
    answer(other, ":1\r\n");
    assert_false(kv_is_explained(&history, NULL));
}

TEST(increment_that_nobody_has_heard_of_explains_a_gap)
{
    begin();
    (void)ask((struct kv_operation){.verb = KV_INCR, .connection = 1});
    ask_and_answer((struct kv_operation){.verb = KV_INCR, .connection = 2}, ":2\r\n");
    assert_true(kv_is_explained(&history, stderr));
    ask_and_answer((struct kv_operation){.verb = KV_INCR, .connection = 2}, ":4\r\n");
    assert_false(kv_is_explained(&history, NULL));
}

TEST(fields_of_a_hash_may_come_in_any_order)
{
    begin();
    ask_and_answer((struct kv_operation){.verb = KV_HGETALL}, "*0\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_HSET, .field = 2, .number = 7}, ":1\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_HSET, .field = 0, .number = 8}, ":1\r\n");
    ask_and_answer((struct kv_operation){.verb = KV_HGETALL},
                   "*4\r\n$2\r\nf2\r\n$1\r\n7\r\n$2\r\nf0\r\n$1\r\n8\r\n");
    assert_true(kv_is_explained(&history, stderr));
    ask_and_answer((struct kv_operation){.verb = KV_HGETALL},
                   "*4\r\n$2\r\nf2\r\n$1\r\n8\r\n$2\r\nf0\r\n$1\r\n8\r\n");
    assert_false(kv_is_explained(&history, NULL));
}

/* Asks for a key that was set to expire 2 s after some time between 10.1 and 10.4 s. */
static bool may_be(uint64_t time_ms, enum kv_verb verb, const char *text)
{
    begin();
    history.time_ns = 10100 * SKUA_MILLISECOND;
    struct kv_operation *set =
        ask((struct kv_operation){.verb = KV_SET_EX, .number = 5, .seconds = 2});
    history.time_ns = 10400 * SKUA_MILLISECOND;
    answer(set, "+OK\r\n");
    history.time_ns = time_ms * SKUA_MILLISECOND;
    ask_and_answer((struct kv_operation){.verb = verb}, text);
    return kv_is_explained(&history, NULL);
}

TEST(key_expires_between_the_earliest_and_the_latest_instant)
{
    assert_true(may_be(12000, KV_GET, "$1\r\n5\r\n"));
    assert_false(may_be(12000, KV_GET, "$-1\r\n"));
    assert_true(may_be(12200, KV_GET, "$1\r\n5\r\n"));
    assert_true(may_be(12200, KV_GET, "$-1\r\n"));
    assert_false(may_be(12500, KV_GET, "$1\r\n5\r\n"));
    assert_true(may_be(12500, KV_GET, "$-1\r\n"));
    assert_true(may_be(10500, KV_TTL, ":2\r\n"));
    assert_true(may_be(10700, KV_TTL, ":1\r\n"));
    assert_true(may_be(10700, KV_TTL, ":2\r\n"));
    assert_false(may_be(11000, KV_TTL, ":2\r\n"));
    assert_false(may_be(11000, KV_TTL, ":-1\r\n"));
    assert_true(may_be(12500, KV_TTL, ":-2\r\n"));
    assert_true(may_be(12200, KV_EXPIRE, ":0\r\n"));
    assert_true(may_be(12200, KV_INCR, ":1\r\n"));
    assert_true(may_be(12200, KV_INCR, ":6\r\n"));
}

TEST(what_is_set_again_does_not_expire)
{
    assert_true(may_be(11000, KV_SET, "+OK\r\n"));
    history.time_ns = 20 * SKUA_SECOND;
    ask_and_answer((struct kv_operation){.verb = KV_TTL}, ":-1\r\n");
    assert_true(kv_is_explained(&history, stderr));
    ask_and_answer((struct kv_operation){.verb = KV_GET}, "$-1\r\n");
    assert_false(kv_is_explained(&history, NULL));
}

TEST(requests_are_those_of_redis)
{
    struct kv_text text = {0};
    const struct kv_operation both[] = {{.verb = KV_SET, .number = 7},
                                        {.verb = KV_SET, .key = 1, .number = 18}};
    kv_request(&text, both, 1);
    assert_string_equal(text.bytes, "*3\r\n$3\r\nSET\r\n$2\r\nk0\r\n$1\r\n7\r\n");
    text.length = 0;
    kv_request(&text, both, 2);
    assert_string_equal(text.bytes,
                        "*5\r\n$4\r\nMSET\r\n$2\r\nk0\r\n$1\r\n7\r\n$2\r\nk1\r\n$2\r\n18\r\n");
    text.length = 0;
    kv_request(&text, &(struct kv_operation){.verb = KV_LRANGE, .number = 3}, 1);
    assert_string_equal(text.bytes, "*4\r\n$6\r\nLRANGE\r\n$2\r\nk0\r\n$1\r\n0\r\n$1\r\n3\r\n");
}
