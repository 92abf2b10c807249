/* SPDX-License-Identifier: MIT */
/* What the programs of this folder share. Each is one test of one function that is told the size of
 * a caller's struct, and is compiled twice, with headers that are not quite the library's (./run
 * makes them): SHORTER ones, as an older program has them, and LONGER ones, as a newer one has. */
#ifndef SKUA_TESTS_ABI_H
#define SKUA_TESTS_ABI_H

#include <stdint.h>
#include <string.h>

#include <skua/skua.h>

/* Ends the program unless the condition holds. */
#define CHECK(condition) abi_check(condition, #condition, __FILE__, __LINE__)
void abi_check(bool is_right, const char *condition, const char *file, int line);

/* Room for callers' structs, with the byte ABI_FILL all over. It ends where a page begins that
 * cannot be touched: whoever reads or writes behind a struct ends the program. */
#define ABI_FENCED(type, count) ((type *)abi_fenced((count) * sizeof(type)))
void *abi_fenced(size_t size);
enum { ABI_FILL = 0xa5 };

/* Whether nobody has written to an object in fenced memory. */
bool abi_is_untouched(const void *object, size_t size);

/* The fields that only this program knows, the library does not. */
#ifdef LONGER
enum { ABI_TAIL_WORDS = 3 };
#define ABI_TAIL(object) ((object)->abi_tail)
#else
enum { ABI_TAIL_WORDS = 0 };
#define ABI_TAIL(object) ((void)(object), (uint64_t *)0)
#endif

/* In a struct that the library has filled they are zero. */
#define CHECK_TAIL(object) CHECK(abi_is_zero(ABI_TAIL(object), ABI_TAIL_WORDS))
bool abi_is_zero(const uint64_t *words, int count);

/* In a struct that the library reads, each of them is refused unless it is zero. */
#define CHECK_TAIL_REFUSED(object, call)                                                           \
    for (int word = 0; word < ABI_TAIL_WORDS; word++) {                                            \
        uint64_t *tail = ABI_TAIL(object);                                                         \
        tail[word] = UINT64_C(1) << 56;                                                            \
        CHECK((call) == SKUA_E_INVALID);                                                           \
        tail[word] = 0;                                                                            \
    }

/* A simulated runtime that has been started: nothing happens in it until somebody drives it. */
skua_runtime *abi_start(void);
void abi_stop(skua_runtime *runtime);

/* Starts a process in it. Its first step ends it with ABI_EXIT. */
skua_pid abi_submit(skua_runtime *runtime);
extern const skua_process_type abi_type;
enum { ABI_EXIT = SKUA_E_USER - 7 };

#endif
