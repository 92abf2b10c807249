/* SPDX-License-Identifier: MIT */
#include "kv_history.h"

#include <inttypes.h>
#include <skua/clock.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WRONG_TYPE "-WRONGTYPE"
#define NIL        "$-1\r\n"

/* Of the clock of a history, in a nanosecond: in so short a time nobody asks as often. */
#define MOMENTS 1024

/* ---- the model ---- */

enum kind { NOTHING, STRING, LIST, HASH };

static const struct verb {
    const char *name;
    enum kind kind;  /* of the value that it is for */
    uint32_t words;  /* of a request, for each key; the key is the first */
    bool is_reading; /* changes nothing */
} verbs[KV_VERBS] = {
    [KV_SET] = {"SET", STRING, 2, false},    [KV_GET] = {"GET", STRING, 1, true},
    [KV_DEL] = {"DEL", NOTHING, 1, false},   [KV_INCR] = {"INCR", STRING, 1, false},
    [KV_LPUSH] = {"LPUSH", LIST, 2, false},  [KV_RPUSH] = {"RPUSH", LIST, 2, false},
    [KV_LPOP] = {"LPOP", LIST, 1, false},    [KV_LRANGE] = {"LRANGE", LIST, 3, true},
    [KV_HSET] = {"HSET", HASH, 3, false},    [KV_HGET] = {"HGET", HASH, 2, true},
    [KV_MGET] = {"MGET", STRING, 1, true},   [KV_HGETALL] = {"HGETALL", HASH, 1, true},
    [KV_SET_EX] = {"SET", STRING, 4, false}, [KV_EXPIRE] = {"EXPIRE", NOTHING, 2, false},
    [KV_TTL] = {"TTL", NOTHING, 1, true},
};

/* What a key names. What is not used is zero. A hash has a number for each field that it has. */
struct value {
    uint32_t kind;
    uint32_t count;
    const struct kv_operation *expiring; /* that has said when it expires, or null */
    uint32_t numbers[KV_ELEMENTS_MAX];
};

__attribute__((format(printf, 2, 3))) static void say(struct kv_text *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const size_t room = sizeof text->bytes - text->length;
    const int length = vsnprintf(text->bytes + text->length, room, format, values);
    text->length += (size_t)length < room ? (size_t)length : room - 1;
    va_end(values);
}

/* A number as a bulk string, behind a prefix. */
static void say_word(struct kv_text *text, const char *prefix, uint32_t number)
{
    char word[16];
    const int length = snprintf(word, sizeof word, "%s%" PRIu32, prefix, number);
    say(text, "$%d\r\n%s\r\n", length, word);
}

static void say_bulk(struct kv_text *text, uint32_t number)
{
    say_word(text, "", number);
}

static void push(struct value *value, size_t at, uint32_t number)
{
    if (value->count < KV_ELEMENTS_MAX) {
        memmove(&value->numbers[at + 1], &value->numbers[at],
                (value->count - at) * sizeof value->numbers[0]);
        value->numbers[at] = number;
        value->count++;
    }
}

static void pop(struct value *value, struct kv_text *answer)
{
    if (value->count == 0) {
        say(answer, NIL);
        return;
    }
    say_bulk(answer, value->numbers[0]);
    value->count--;
    memmove(&value->numbers[0], &value->numbers[1], value->count * sizeof value->numbers[0]);
    value->numbers[value->count] = 0;
    if (value->count == 0) {
        *value = (struct value){.kind = NOTHING};
    }
}

static void say_range(const struct value *value, uint32_t last, struct kv_text *answer)
{
    const uint32_t count = last < value->count ? last + 1 : value->count;
    say(answer, "*%" PRIu32 "\r\n", count);
    for (uint32_t i = 0; i < count; i++) {
        say_bulk(answer, value->numbers[i]);
    }
}

static void use_list(struct value *value, const struct kv_operation *operation,
                     struct kv_text *answer)
{
    const bool at_front = operation->verb == KV_LPUSH;
    if (at_front || operation->verb == KV_RPUSH) {
        value->kind = LIST;
        push(value, at_front ? 0 : value->count, operation->number);
        say(answer, ":%" PRIu32 "\r\n", value->count);
    } else if (operation->verb == KV_LPOP) {
        pop(value, answer);
    } else {
        say_range(value, operation->number, answer);
    }
}

static void say_field(struct kv_text *answer, const struct value *value, uint32_t field)
{
    if (value->numbers[field] != 0) {
        say_word(answer, "f", field);
        say_bulk(answer, value->numbers[field]);
    }
}

static void say_fields(struct kv_text *answer, const struct value *value)
{
    uint32_t count = 0;
    for (uint32_t field = 0; field < KV_FIELDS; field++) {
        count += value->numbers[field] != 0;
    }
    say(answer, "*%" PRIu32 "\r\n", 2 * count);
    for (uint32_t field = 0; field < KV_FIELDS; field++) {
        say_field(answer, value, field);
    }
}

/* Whether it is the answer of the model but for the order of the fields. */
static bool has_same_fields(const struct value *value, const char *model, const char *answer)
{
    bool has_all = strlen(answer) == strlen(model);
    for (uint32_t field = 0; field < KV_FIELDS; field++) {
        struct kv_text text;
        text.length = 0;
        text.bytes[0] = '\0';
        say_field(&text, value, field);
        has_all = has_all && strstr(answer, text.bytes) != NULL;
    }
    return has_all;
}

static void use_hash(struct value *value, const struct kv_operation *operation,
                     struct kv_text *answer)
{
    uint32_t *number = &value->numbers[operation->field];
    if (operation->verb == KV_HGETALL) {
        say_fields(answer, value);
    } else if (operation->verb == KV_HSET) {
        say(answer, ":%d\r\n", *number == 0);
        value->kind = HASH;
        *number = operation->number;
    } else if (*number == 0) {
        say(answer, NIL);
    } else {
        say_bulk(answer, *number);
    }
}

static void use_string(struct value *value, enum kv_verb verb, struct kv_text *answer)
{
    if (verb == KV_INCR) {
        value->kind = STRING;
        say(answer, ":%" PRIu32 "\r\n", ++value->numbers[0]);
    } else if (value->kind == NOTHING) {
        say(answer, NIL);
    } else {
        say_bulk(answer, value->numbers[0]);
    }
}

static uint64_t time_of(uint64_t moment)
{
    return moment / MOMENTS;
}

static uint64_t first_end(const struct kv_operation *expiring)
{
    return time_of(expiring->invoked) + expiring->seconds * SKUA_SECOND;
}

/* No time is later than that of what nobody has heard of. */
static uint64_t last_end(const struct kv_operation *expiring)
{
    return time_of(expiring->answered) + expiring->seconds * SKUA_SECOND;
}

/* Of something that is left at that time, in seconds. */
static int64_t rounded(uint64_t end, uint64_t now)
{
    return end > now ? (int64_t)((end - now + SKUA_SECOND / 2) / SKUA_SECOND) : 0;
}

static bool may_be_left(const struct kv_operation *expiring, const struct kv_operation *asking)
{
    int64_t seconds = -1;
    const size_t size = strlen(asking->answer);
    return size > 3 && asking->answer[0] == ':' &&
           skua_bytes_to_number((skua_bytes){asking->answer + 1, size - 3}, &seconds) == 0 &&
           seconds >= rounded(first_end(expiring), time_of(asking->answered)) &&
           seconds <= rounded(last_end(expiring), time_of(asking->invoked));
}

/* For values of any kind. */
static void use_key(struct value *value, const struct kv_operation *operation,
                    struct kv_text *answer)
{
    const bool is_there = value->kind != NOTHING;
    if (operation->verb == KV_TTL) {
        say(answer, is_there ? ":-1\r\n" : ":-2\r\n");
        return;
    }
    say(answer, ":%d\r\n", is_there);
    if (operation->verb == KV_DEL) {
        *value = (struct value){.kind = NOTHING};
    } else if (is_there) {
        value->expiring = operation;
    }
}

static void carry_out(struct value *value, const struct kv_operation *operation,
                      struct kv_text *answer)
{
    const enum kv_verb verb = operation->verb;
    const enum kind kind = verbs[verb].kind;
    if (verb == KV_SET || verb == KV_SET_EX) {
        *value = (struct value){.kind = STRING,
                                .expiring = verb == KV_SET_EX ? operation : NULL,
                                .numbers = {operation->number}};
        say(answer, "+OK\r\n");
    } else if (kind == NOTHING) {
        use_key(value, operation, answer);
    } else if (verb == KV_MGET) {
        use_string(value->kind == STRING ? value : &(struct value){0}, verb, answer);
    } else if (value->kind != NOTHING && value->kind != kind) {
        say(answer, WRONG_TYPE);
    } else if (kind == LIST) {
        use_list(value, operation, answer);
    } else if (kind == HASH) {
        use_hash(value, operation, answer);
    } else {
        use_string(value, verb, answer);
    }
}

/* What happens to a key: an operation, or that the key expires as the operation has said. */
struct effect {
    const struct kv_operation *operation;
    bool is_end;
};

static bool is_answer(const struct value *value, const struct kv_operation *operation,
                      const struct kv_text *answer)
{
    if (operation->verb == KV_TTL && value->expiring != NULL) {
        return may_be_left(value->expiring, operation);
    }
    if (operation->verb == KV_HGETALL && answer->bytes[0] == '*') {
        return has_same_fields(value, answer->bytes, operation->answer);
    }
    return strcmp(answer->bytes, operation->answer) == 0;
}

static bool apply(void *state, const void *what, bool is_answered)
{
    struct value *value = state;
    const struct effect *effect = what;
    const struct kv_operation *operation = effect->operation;
    struct kv_text answer;
    answer.length = 0;
    if (effect->is_end) {
        const bool expires = value->expiring == operation;
        *value = (struct value){.kind = NOTHING};
        return expires;
    }
    if (value->expiring != NULL && last_end(value->expiring) < time_of(operation->invoked)) {
        return false; /* it has expired by now */
    }
    carry_out(value, operation, &answer);
    return !is_answered || is_answer(value, operation, &answer);
}

static const struct linear_model model = {.state_size = sizeof(struct value), .apply = apply};

/* ---- the history ---- */

static uint64_t next_moment(struct kv_history *history)
{
    const uint64_t first = history->time_ns * MOMENTS + 1;
    history->clock = history->clock < first ? first : history->clock + 1;
    return history->clock;
}

struct kv_operation *kv_invoke(struct kv_history *history, struct kv_operation operation)
{
    if (history->count == KV_OPERATIONS_MAX) {
        return NULL;
    }
    struct kv_operation *place = &history->operations[history->count++];
    *place = operation;
    place->invoked = next_moment(history);
    place->answered = LINEAR_UNANSWERED;
    place->answer[0] = '\0';
    return place;
}

void kv_answer(struct kv_history *history, struct kv_operation *operation, skua_bytes answer)
{
    size_t size = answer.size < KV_ANSWER_MAX ? answer.size : KV_ANSWER_MAX - 1;
    const char *space = memchr(answer.data, ' ', size);
    if (space != NULL) {
        size = (size_t)(space - answer.data);
    }
    memcpy(operation->answer, answer.data, size);
    operation->answer[size] = '\0';
    operation->answered = next_moment(history);
}

/* ---- requests ---- */

static void say_words(struct kv_text *text, const struct kv_operation *operation)
{
    const enum kv_verb verb = operation->verb;
    const uint32_t words = verbs[verb].words;
    const bool has_field = verbs[verb].kind == HASH && words > 1;
    say_word(text, "k", operation->key);
    if (has_field || verb == KV_LRANGE) {
        say_word(text, has_field ? "f" : "", has_field ? operation->field : 0);
    }
    if (words > 1 && verb != KV_HGET && verb != KV_EXPIRE) {
        say_word(text, "", operation->number);
    }
    say(text, verb == KV_SET_EX ? "$2\r\nEX\r\n" : "");
    if (verb == KV_SET_EX || verb == KV_EXPIRE) {
        say_word(text, "", operation->seconds);
    }
}

void kv_request(struct kv_text *text, const struct kv_operation *operations, size_t count)
{
    const enum kv_verb verb = operations[0].verb;
    const char *name = verb == KV_SET && count > 1 ? "MSET" : verbs[verb].name;
    say(text, "*%zu\r\n$%zu\r\n%s\r\n", 1 + count * verbs[verb].words, strlen(name), name);
    for (size_t i = 0; i < count; i++) {
        say_words(text, &operations[i]);
    }
}

/* ---- is it explained? ---- */

/* What has happened to one key. */
struct selection {
    struct linear_operation operations[2 * KV_OPERATIONS_MAX];
    struct effect effects[2 * KV_OPERATIONS_MAX];
    size_t count;
};

static void add(struct selection *selection, struct effect effect, struct linear_operation how)
{
    selection->effects[selection->count] = effect;
    how.what = &selection->effects[selection->count];
    selection->operations[selection->count++] = how;
}

/* The last one of the same connection before it, from 1; 0: there is none. */
static size_t find_before(const struct selection *selection, uint64_t connection)
{
    size_t count = selection->count;
    while (count > 0) {
        const struct effect *other = &selection->effects[count - 1];
        if (!other->is_end && other->operation->connection == connection) {
            break;
        }
        count--;
    }
    return count;
}

/* Adds an operation. That the key expires after it has no answer: if something else happens first,
 * it does not. */
static void select_one(struct selection *selection, const struct kv_operation *operation)
{
    add(selection, (struct effect){.operation = operation},
        (struct linear_operation){.invoked = operation->invoked,
                                  .answered = operation->answered,
                                  .after = find_before(selection, operation->connection)});
    if (operation->verb == KV_SET_EX || operation->verb == KV_EXPIRE) {
        add(selection, (struct effect){.operation = operation, .is_end = true},
            (struct linear_operation){.invoked = first_end(operation) * MOMENTS,
                                      .answered = LINEAR_UNANSWERED,
                                      .after = selection->count});
    }
}

/* Those of a key. Of what changes nothing and was never answered nothing can be said. */
static void select_key(const struct kv_history *history, uint32_t key, struct selection *selection)
{
    selection->count = 0;
    for (size_t i = 0; i < history->count; i++) {
        const struct kv_operation *operation = &history->operations[i];
        const bool is_lost = operation->answered == LINEAR_UNANSWERED;
        if (operation->key == key && !(is_lost && verbs[operation->verb].is_reading)) {
            select_one(selection, operation);
        }
    }
}

/* Its place in the longest order, from 1; 0: none. */
static size_t place_of(const struct linear_result *result, size_t operation)
{
    for (size_t i = 0; i < result->count; i++) {
        if (result->order[i] == operation) {
            return i + 1;
        }
    }
    return 0;
}

static void print_answer(FILE *out, const struct kv_operation *operation)
{
    if (operation->answered == LINEAR_UNANSWERED) {
        (void)fprintf(out, "  ... no answer");
    } else {
        (void)fprintf(out, "  at %3" PRIu64 ":", operation->answered);
    }
    for (const char *at = operation->answer; *at != '\0'; at++) {
        (void)fputc(*at == '\r' || *at == '\n' ? ' ' : *at, out);
    }
    (void)fputc('\n', out);
}

static void print_operation(FILE *out, const struct kv_operation *operation)
{
    const struct verb *verb = &verbs[operation->verb];
    (void)fprintf(out, "client %" PRIu32 ", connection %2" PRIu64 ", at %3" PRIu64 ":  %s",
                  operation->client, operation->connection, operation->invoked, verb->name);
    if (verb->kind == HASH && verb->words > 1) {
        (void)fprintf(out, " f%" PRIu32, operation->field);
    }
    if (verb->words > 1 && operation->verb != KV_HGET && operation->verb != KV_EXPIRE) {
        (void)fprintf(out, " %" PRIu32, operation->number);
    }
    if (operation->verb == KV_SET_EX || operation->verb == KV_EXPIRE) {
        (void)fprintf(out, " for %" PRIu32 " s", operation->seconds);
    }
    print_answer(out, operation);
}

static void print_selection(FILE *out, uint32_t key, const struct selection *selection,
                            const struct linear_result *result)
{
    (void)fprintf(out, "key k%" PRIu32 ": %s. The longest order that begins well:\n", key,
                  result->verdict == LINEAR_FAILS ? "no order explains the answers"
                                                  : "too many orders to try all");
    for (size_t i = 0; i < selection->count; i++) {
        (void)fprintf(out, "%3zu.  ", place_of(result, i));
        if (selection->effects[i].is_end) {
            (void)fprintf(out, "it expires after that\n");
        } else {
            print_operation(out, selection->effects[i].operation);
        }
    }
}

bool kv_is_explained(const struct kv_history *history, FILE *out)
{
    static struct selection selection;
    if (history->has_surplus && out != NULL) {
        (void)fprintf(out, "an answer that nobody had asked for\n");
    }
    bool holds = !history->has_surplus;
    for (uint32_t key = 0; key < KV_KEYS && holds; key++) {
        select_key(history, key, &selection);
        const struct linear_result result =
            linear_check(&model, selection.operations, selection.count);
        holds = result.verdict == LINEAR_HOLDS;
        if (!holds && out != NULL) {
            print_selection(out, key, &selection, &result);
        }
    }
    return holds;
}
