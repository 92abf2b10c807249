/* SPDX-License-Identifier: MIT */
#include "kv_history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WRONG_TYPE "-WRONGTYPE"
#define NIL        "$-1\r\n"

/* ---- the model ---- */

enum kind { NOTHING, STRING, LIST, HASH };

static const struct verb {
    const char *name;
    enum kind kind;  /* of the value that it is for */
    uint32_t words;  /* of a request, for each key; the key is the first */
    bool is_reading; /* changes nothing */
} verbs[KV_VERBS] = {
    [KV_SET] = {"SET", STRING, 2, false},   [KV_GET] = {"GET", STRING, 1, true},
    [KV_DEL] = {"DEL", NOTHING, 1, false},  [KV_INCR] = {"INCR", STRING, 1, false},
    [KV_LPUSH] = {"LPUSH", LIST, 2, false}, [KV_RPUSH] = {"RPUSH", LIST, 2, false},
    [KV_LPOP] = {"LPOP", LIST, 1, false},   [KV_LRANGE] = {"LRANGE", LIST, 3, true},
    [KV_HSET] = {"HSET", HASH, 3, false},   [KV_HGET] = {"HGET", HASH, 2, true},
    [KV_MGET] = {"MGET", STRING, 1, true},
};

/* What a key names. What is not used is zero. A hash has a number for each field that it has. */
struct value {
    uint32_t kind;
    uint32_t count;
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
    value->kind = value->count > 0 ? LIST : NOTHING;
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

static void use_hash(struct value *value, const struct kv_operation *operation,
                     struct kv_text *answer)
{
    uint32_t *number = &value->numbers[operation->field];
    if (operation->verb == KV_HSET) {
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

static void carry_out(struct value *value, const struct kv_operation *operation,
                      struct kv_text *answer)
{
    const enum kv_verb verb = operation->verb;
    const enum kind kind = verbs[verb].kind;
    if (verb == KV_SET) {
        *value = (struct value){.kind = STRING, .numbers = {operation->number}};
        say(answer, "+OK\r\n");
    } else if (verb == KV_DEL) {
        say(answer, ":%d\r\n", value->kind != NOTHING);
        *value = (struct value){.kind = NOTHING};
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

static bool apply(void *state, const void *what, bool is_answered)
{
    const struct kv_operation *operation = what;
    struct kv_text answer;
    answer.length = 0;
    carry_out(state, operation, &answer);
    return !is_answered || strcmp(answer.bytes, operation->answer) == 0;
}

const struct linear_model kv_model = {.state_size = sizeof(struct value), .apply = apply};

/* ---- the history ---- */

struct kv_operation *kv_invoke(struct kv_history *history, struct kv_operation operation)
{
    if (history->count == KV_OPERATIONS_MAX) {
        return NULL;
    }
    struct kv_operation *place = &history->operations[history->count++];
    *place = operation;
    place->invoked = ++history->clock;
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
    operation->answered = ++history->clock;
}

/* ---- requests ---- */

static void say_words(struct kv_text *text, const struct kv_operation *operation)
{
    const enum kv_verb verb = operation->verb;
    const bool has_field = verbs[verb].kind == HASH;
    say_word(text, "k", operation->key);
    if (has_field || verb == KV_LRANGE) {
        say_word(text, has_field ? "f" : "", has_field ? operation->field : 0);
    }
    if (verbs[verb].words > 1 && verb != KV_HGET) {
        say_word(text, "", operation->number);
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

/* The last one of the same connection before it, from 1; 0: there is none. */
static size_t find_before(const struct linear_operation *operations, size_t count,
                          uint64_t connection)
{
    while (count > 0) {
        const struct kv_operation *other = operations[count - 1].what;
        if (other->connection == connection) {
            break;
        }
        count--;
    }
    return count;
}

/* Those of a key. Of what changes nothing and was never answered nothing can be said. */
static size_t select_key(const struct kv_history *history, uint32_t key,
                         struct linear_operation *selected)
{
    size_t count = 0;
    for (size_t i = 0; i < history->count; i++) {
        const struct kv_operation *operation = &history->operations[i];
        const bool is_lost = operation->answered == LINEAR_UNANSWERED;
        if (operation->key == key && !(is_lost && verbs[operation->verb].is_reading)) {
            selected[count] = (struct linear_operation){
                .invoked = operation->invoked,
                .answered = operation->answered,
                .after = find_before(selected, count, operation->connection),
                .what = operation};
            count++;
        }
    }
    return count;
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

static void print_history(FILE *out, uint32_t key, const struct linear_operation *operations,
                          size_t count, const struct linear_result *result)
{
    (void)fprintf(out, "key k%" PRIu32 ": %s. The longest order that begins well:\n", key,
                  result->verdict == LINEAR_FAILS ? "no order explains the answers"
                                                  : "too many orders to try all");
    for (size_t i = 0; i < count; i++) {
        const struct kv_operation *operation = operations[i].what;
        const struct verb *verb = &verbs[operation->verb];
        (void)fprintf(out,
                      "%3zu.  client %" PRIu32 ", connection %2" PRIu64 ", at %3" PRIu64 ":  %s",
                      place_of(result, i), operation->client, operation->connection,
                      operation->invoked, verb->name);
        if (verb->kind == HASH) {
            (void)fprintf(out, " f%" PRIu32, operation->field);
        }
        if (verb->words > 1 && operation->verb != KV_HGET) {
            (void)fprintf(out, " %" PRIu32, operation->number);
        }
        print_answer(out, operation);
    }
}

bool kv_is_explained(const struct kv_history *history, FILE *out)
{
    struct linear_operation selected[KV_OPERATIONS_MAX];
    if (history->has_surplus && out != NULL) {
        (void)fprintf(out, "an answer that nobody had asked for\n");
    }
    bool holds = !history->has_surplus;
    for (uint32_t key = 0; key < KV_KEYS && holds; key++) {
        const size_t count = select_key(history, key, selected);
        const struct linear_result result = linear_check(&kv_model, selected, count);
        holds = result.verdict == LINEAR_HOLDS;
        if (!holds && out != NULL) {
            print_history(out, key, selected, count, &result);
        }
    }
    return holds;
}
