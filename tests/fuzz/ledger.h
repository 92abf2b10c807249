/* SPDX-License-Identifier: MIT */
/* What one fuzzed program has made and what must have become of it at the end: payloads dropped
 * exactly once, processes closed exactly once, and every call answered with an error that its
 * header documents. Whatever is wrong aborts the program, which is what a fuzzer looks for.
 *
 * Every function may be called from any thread, but begin and check. */
#ifndef SKUA_TESTS_FUZZ_LEDGER_H
#define SKUA_TESTS_FUZZ_LEDGER_H

#include <skua/skua.h>

/* ---- the books ---- */

/* Nothing has been made yet. */
void ledger_begin(void);

/* With nothing under way any more: all that was made has come to its end, once. */
void ledger_check(void);

/* The largest payload. */
#define LEDGER_PAYLOAD_MAX 256

/* A payload whose drop is counted; empty if too many have been made. `object`: it is a bare
 * pointer, and the size does not matter. */
skua_payload ledger_payload(bool object, size_t size);

/* The largest number of a process. */
#define LEDGER_PROCESSES_MAX 128

/* A number for a process whose init has been called, or 0 if there are too many: more than any
 * program needs, so that one which starts itself again and again comes to an end. */
uint32_t ledger_process_begins(void);

/* Its close has been called; `number` may be 0. */
void ledger_process_ends(uint32_t number);

/* ---- answers ---- */

/* A set of errors, with a bit for each of Skua's. */
#define ANSWER(name)   (UINT64_C(1) << (-5000 - SKUA_E_##name))
#define ANSWER_OK      UINT64_C(1)
#define ANSWER_OF_USER (UINT64_C(1) << 63)

/* Aborts unless the error is in the set; returns whether it is success. */
bool ledger_answer(int error, uint64_t documented, const char *call);

#define ANSWERS(call, documented) ledger_answer((call), (documented), #call)

/* ---- failing ---- */

__attribute__((format(printf, 1, 2))) _Noreturn void ledger_fail(const char *format, ...);

#define EXPECT(condition)                                                                          \
    ((condition) ? (void)0 : ledger_fail("%s:%d: not true: %s", __FILE__, __LINE__, #condition))

#endif
