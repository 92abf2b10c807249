/* SPDX-License-Identifier: MIT */
/* What clients of a key-value store have asked and been answered, and whether that is what a store
 * answers that carries out one command after the other. The store speaks the protocol of Redis, and
 * has strings, lists and hashes.
 *
 * A key that expires does so at an instant that nobody sees, between the earliest and the latest
 * that the command which said so allows; what is asked meanwhile may be answered either way.
 *
 * A command with several keys is written down as one operation for each: it need not be carried out
 * for all of them at the same moment. */
#ifndef SKUA_TESTS_KV_HISTORY_H
#define SKUA_TESTS_KV_HISTORY_H

#include <skua/codec.h>
#include <stdio.h>

#include "linear.h"

#define KV_KEYS           4
#define KV_FIELDS         3 /* of a hash */
#define KV_OPERATIONS_MAX 256
#define KV_ANSWER_MAX     512
#define KV_TEXT_MAX       2048
#define KV_ELEMENTS_MAX   60 /* of a list */

/* A part of MSET is the same as SET; a part of MGET is not the same as GET. */
enum kv_verb {
    KV_SET,
    KV_GET,
    KV_DEL,
    KV_INCR,
    KV_LPUSH,
    KV_RPUSH,
    KV_LPOP,
    KV_LRANGE,
    KV_HSET,
    KV_HGET,
    KV_MGET,
    KV_HGETALL,
    KV_SET_EX,
    KV_EXPIRE,
    KV_TTL,
    KV_VERBS,
};

struct kv_operation {
    enum kv_verb verb;
    uint32_t key;
    uint32_t field;
    uint32_t number;  /* that is set or pushed; the last one that LRANGE asks for */
    uint32_t seconds; /* after which it expires */
    uint32_t client;
    uint64_t
        connection; /* what is asked on one happens in order, or not at all from some point on */
    uint64_t invoked;
    uint64_t answered;
    char answer[KV_ANSWER_MAX]; /* as it came; of an error, the first word */
};

/* Ends with a zero. */
struct kv_text {
    size_t length;
    char bytes[KV_TEXT_MAX];
};

struct kv_history {
    struct kv_operation operations[KV_OPERATIONS_MAX];
    size_t count;
    uint64_t clock;
    uint64_t time_ns; /* what the clock of the store shows; needed if keys expire */
    uint64_t connections;
    bool has_surplus; /* an answer has come that nobody had asked for */
};

/* Adds an operation that is sent now; all but its last three fields are filled in. Null if there is
 * no more room. */
struct kv_operation *kv_invoke(struct kv_history *history, struct kv_operation operation);

/* Its answer has come. */
void kv_answer(struct kv_history *history, struct kv_operation *operation, skua_bytes answer);

/* Appends a request for one operation; or for several with the same verb, KV_SET or KV_MGET. */
void kv_request(struct kv_text *text, const struct kv_operation *operations, size_t count);

/* Whether some order explains what was answered about each key. If not, says what was, unless `out`
 * is null. */
bool kv_is_explained(const struct kv_history *history, FILE *out);

#endif
