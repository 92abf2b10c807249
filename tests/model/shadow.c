/* SPDX-License-Identifier: MIT */
/* Data races: two accesses to the same bytes by different threads, one of them a write, not both
 * atomic, and none of them happens before the other. The compiler reports plain accesses (it is
 * told to instrument for its thread sanitizer, whose functions are here; the sanitizer itself is
 * not linked), and memory.c the atomic ones. Of every byte it is known when each thread last read
 * and wrote it, plainly and atomically; an access by another thread must know of that instant.
 *
 * Not looked at: the stack of the thread itself, thread-local variables (all threads of a model
 * are one to the system), what explore_ignore names, EXPLORE_OWN, and what runs in setup, may_rest
 * and finish. Library functions (memcmp, qsort) are seen where they are called through the names
 * in instrument.h only. */
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "explorer.h"

#define TABLE_SIZE 16384 /* words in one schedule, at most half of this; a power of two */
#define CELLS_MAX  1024
#define NO_CELL    UINT32_MAX
#define WORD       8
#define SOURCE_MAX 256

static const char *const kind_names[] = {"read", "write", "atomic read", "atomic write"};

/* Where an access was made, for traces. */
struct place {
    const void *where; /* the code, or for an atomic access its name */
    uint32_t step;
};

/* Some bytes of a word that have always been accessed together. */
struct cell {
    uint32_t next;   /* of the same word, in `cells` */
    uint8_t mask;    /* its bytes; none: the first access is yet to come */
    uint8_t kinds;   /* of access there have been, as bits */
    uint8_t threads; /* that made them, as bits */
    /* When each thread last did it, by its own clock; 0: never. */
    uint16_t instants[ACCESS_KINDS][EXPLORE_THREADS_MAX];
};

static struct {
    struct {
        uintptr_t word;
        uint32_t epoch; /* other than the present one: empty */
        struct cell first;
    } table[TABLE_SIZE];
    struct cell cells[CELLS_MAX]; /* of words whose bytes are accessed apart */
    uint32_t word_count;
    uint32_t cell_count;
    uint32_t epoch; /* one for each schedule */
    uintptr_t thread_local_start;
    uintptr_t thread_local_end;
    /* Of the word that races; noted only when a schedule is run again for its trace. */
    uintptr_t racing;
    struct place places[WORD][ACCESS_KINDS][EXPLORE_THREADS_MAX];
} shadow;

/* ---- memory that is not looked at ---- */

/* The first object is the program itself. */
static int find_thread_local(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            shadow.thread_local_start = (uintptr_t)info->dlpi_tls_data;
            shadow.thread_local_end = shadow.thread_local_start + info->dlpi_phdr[i].p_memsz;
        }
    }
    return 1;
}

/* The section of EXPLORE_OWN; absent if no variable is in it. */
extern char __start_explore_own[] __attribute__((weak));
extern char __stop_explore_own[] __attribute__((weak));

static bool is_exempt(uintptr_t address)
{
    return (address >= shadow.thread_local_start && address < shadow.thread_local_end) ||
           is_ignored((const void *)address);
}

static bool is_models_own(uintptr_t address)
{
    return address - (uintptr_t)__start_explore_own <
           (uintptr_t)__stop_explore_own - (uintptr_t)__start_explore_own;
}

static bool is_on_own_stack(const struct thread *thread, uintptr_t address)
{
    return address - (uintptr_t)thread->fiber.stack < thread->fiber.stack_size;
}

void shadow_begin(void)
{
    if (shadow.epoch++ == 0) {
        (void)dl_iterate_phdr(find_thread_local, NULL);
    }
    shadow.word_count = 0;
    shadow.cell_count = 0;
    if (!explorer.tracing) {
        shadow.racing = 0;
    }
}

/* ---- races ---- */

/* "function at file:line", as well as it can be found out. */
static void describe(const void *code, char *text)
{
    Dl_info info;
    (void)snprintf(text, SOURCE_MAX, "%p", code);
    if (dladdr(code, &info) == 0) {
        return;
    }
    /* The return address belongs to the next line. */
    const uintptr_t offset = (uintptr_t)code - (uintptr_t)info.dli_fbase - 1;
    char command[SOURCE_MAX];
    (void)snprintf(command, sizeof command, "addr2line -f -p -s -i -e /proc/%d/exe 0x%" PRIxPTR,
                   (int)getpid(), offset);
    FILE *output = popen(command, "r");
    if (output == NULL) {
        return;
    }
    char line[SOURCE_MAX];
    if (fgets(line, sizeof line, output) != NULL && strncmp(line, "??", 2) != 0) {
        line[strcspn(line, "\n")] = '\0';
        memcpy(text, line, sizeof line);
    }
    (void)pclose(output);
}

static void tell_place(const struct thread *thread, enum access_kind kind, struct place place)
{
    char text[SOURCE_MAX];
    if (kind >= ACCESS_ATOMIC_READ) {
        (void)snprintf(text, sizeof text, "%s", short_path(place.where));
    } else {
        describe(place.where, text);
    }
    explore_note("%s by %s after step %" PRIu32 ": %s", kind_names[kind], thread->what->name,
                 place.step, text);
}

/* The first time it only notes the address. When the same schedule is run again for its trace, the
 * places of all accesses to it are known. */
static void fail_by_race(const struct thread *thread, enum access_kind kind, uintptr_t address,
                         enum access_kind other_kind, int other, const void *where)
{
    if (is_exempt(address)) {
        return;
    }
    const struct thread *other_thread = &explorer.threads[other];
    shadow.racing = address;
    if (explorer.tracing) {
        explore_note("data race:");
        tell_place(other_thread, other_kind, shadow.places[address % WORD][other_kind][other]);
        tell_place(thread, kind, (struct place){where, explorer.position});
    }
    fail_with("data race: %s by %s and %s by %s at 0x%" PRIxPTR, kind_names[other_kind],
              other_thread->what->name, kind_names[kind], thread->what->name, address);
}

static void check_against(const struct thread *thread, enum access_kind kind, uintptr_t word,
                          const struct cell *cell, enum access_kind other, const void *where)
{
    for (int i = 0; i < EXPLORE_THREADS_MAX; i++) {
        if (UNLIKELY(cell->instants[other][i] > thread->knowledge.clock[i])) {
            const uintptr_t address = word + (uintptr_t)__builtin_ctz(cell->mask);
            fail_by_race(thread, kind, address, other, i, where);
        }
    }
}

/* Two accesses need an order if one writes and not both are atomic. */
static const uint8_t conflicting[ACCESS_KINDS] = {
    [ACCESS_READ] = 1 << ACCESS_WRITE | 1 << ACCESS_ATOMIC_WRITE,
    [ACCESS_WRITE] =
        1 << ACCESS_READ | 1 << ACCESS_WRITE | 1 << ACCESS_ATOMIC_READ | 1 << ACCESS_ATOMIC_WRITE,
    [ACCESS_ATOMIC_READ] = 1 << ACCESS_WRITE,
    [ACCESS_ATOMIC_WRITE] = 1 << ACCESS_READ | 1 << ACCESS_WRITE,
};

static void check_cell(const struct thread *thread, enum access_kind kind, uintptr_t word,
                       const struct cell *cell, const void *where)
{
    for (uint32_t left = cell->kinds & conflicting[kind]; left != 0; left &= left - 1) {
        check_against(thread, kind, word, cell, (enum access_kind)__builtin_ctz(left), where);
    }
}

static void note_place(const struct thread *thread, enum access_kind kind, uintptr_t word,
                       uint32_t mask, const void *where)
{
    if (word == shadow.racing - shadow.racing % WORD) {
        for (uint32_t byte = 0; byte < WORD; byte++) {
            if ((mask >> byte & 1) != 0) {
                shadow.places[byte][kind][thread->number] =
                    (struct place){where, explorer.position};
            }
        }
    }
}

/* ---- cells ---- */

/* The cells of a word. If it is new it has one, of no bytes. */
static struct cell *first_of(uintptr_t word)
{
    uint32_t slot = (uint32_t)((word >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 50);
    while (shadow.table[slot].epoch == shadow.epoch && shadow.table[slot].word != word) {
        slot = (slot + 1) % TABLE_SIZE;
    }
    struct cell *first = &shadow.table[slot].first;
    if (shadow.table[slot].epoch != shadow.epoch) {
        SKUA_ASSERT(++shadow.word_count <= TABLE_SIZE / 2);
        shadow.table[slot].epoch = shadow.epoch;
        shadow.table[slot].word = word;
        *first = (struct cell){.next = NO_CELL};
    }
    return first;
}

static struct cell *next_of(const struct cell *cell)
{
    return cell->next == NO_CELL ? NULL : &shadow.cells[cell->next];
}

/* Another cell of the same word, with the same past, for some of its bytes. */
static void add_cell(struct cell *first, const struct cell *past, uint32_t mask)
{
    SKUA_ASSERT(shadow.cell_count < CELLS_MAX);
    struct cell *cell = &shadow.cells[shadow.cell_count];
    *cell = *past;
    cell->mask = (uint8_t)mask;
    cell->next = first->next;
    first->next = shadow.cell_count++;
}

/* Sees to it that each cell has either only bytes that are accessed now, or none of them. */
static void split_cells(struct cell *first, uint32_t mask)
{
    static const struct cell unused;
    uint32_t known = 0;
    for (struct cell *cell = first; cell != NULL; cell = next_of(cell)) {
        known |= cell->mask;
        const uint32_t rest = cell->mask & ~mask;
        if (rest != 0 && rest != cell->mask) {
            cell->mask &= (uint8_t)mask;
            add_cell(first, cell, rest);
        }
    }
    if ((mask & ~known) != 0) {
        add_cell(first, &unused, mask & ~known);
    }
}

static inline void touch_cell(const struct thread *thread, enum access_kind kind, uintptr_t word,
                              struct cell *cell, const void *where)
{
    const uint16_t now = thread->knowledge.clock[thread->number];
    if (cell->instants[kind][thread->number] == now) {
        return; /* who came since has looked at this */
    }
    const uint8_t self = (uint8_t)(1 << thread->number);
    if (cell->threads != self) {
        check_cell(thread, kind, word, cell, where);
    }
    cell->instants[kind][thread->number] = now;
    cell->kinds |= (uint8_t)(1 << kind);
    cell->threads |= self;
}

static inline void touch_word(const struct thread *thread, enum access_kind kind, uintptr_t word,
                              uint32_t mask, const void *where)
{
    struct cell *first = first_of(word);
    if (LIKELY(first->mask == mask)) {
        touch_cell(thread, kind, word, first, where);
    } else if (first->mask == 0) {
        first->mask = (uint8_t)mask;
        touch_cell(thread, kind, word, first, where);
    } else {
        split_cells(first, mask);
        for (struct cell *cell = first; cell != NULL; cell = next_of(cell)) {
            if ((cell->mask & mask) != 0) {
                touch_cell(thread, kind, word, cell, where);
            }
        }
    }
    if (UNLIKELY(explorer.tracing)) {
        note_place(thread, kind, word, mask, where);
    }
}

static NOINLINE void touch_bytes(const struct thread *thread, enum access_kind kind,
                                 uintptr_t address, size_t size, const void *where)
{
    while (size > 0) {
        const uintptr_t offset = address % WORD;
        const size_t count = size < WORD - offset ? size : WORD - offset;
        touch_word(thread, kind, address - offset, ((UINT32_C(1) << count) - 1) << offset, where);
        address += count;
        size -= count;
    }
}

/* Most accesses end here: this much is inline. */
static inline void touch(enum access_kind kind, const volatile void *start, size_t size,
                         const void *where)
{
    const struct thread *thread = running_thread();
    const uintptr_t address = (uintptr_t)start;
    if (thread != NULL && !is_on_own_stack(thread, address) && !is_models_own(address)) {
        touch_bytes(thread, kind, address, size, where);
    }
}

void shadow_touch(enum access_kind kind, const volatile void *start, size_t size, const void *where)
{
    touch(kind, start, size, where);
}

/* ---- what the compiler calls ---- */

#define HOOK(name, size)                                                                           \
    void __tsan_read##name(const void *address);                                                   \
    void __tsan_read##name(const void *address)                                                    \
    {                                                                                              \
        touch(ACCESS_READ, address, size, __builtin_return_address(0));                            \
    }                                                                                              \
    void __tsan_write##name(const void *address);                                                  \
    void __tsan_write##name(const void *address)                                                   \
    {                                                                                              \
        touch(ACCESS_WRITE, address, size, __builtin_return_address(0));                           \
    }
#define HOOKS(size)                                                                                \
    HOOK(size, size)                                                                               \
    void __tsan_unaligned_read##size(const void *address)                                          \
        __attribute__((alias("__tsan_read" #size)));                                               \
    void __tsan_unaligned_write##size(const void *address)                                         \
        __attribute__((alias("__tsan_write" #size)));                                              \
    void __tsan_volatile_read##size(const void *address)                                           \
        __attribute__((alias("__tsan_read" #size)));                                               \
    void __tsan_volatile_write##size(const void *address)                                          \
        __attribute__((alias("__tsan_write" #size)));

HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(const void *address, size_t size);
void __tsan_read_range(const void *address, size_t size)
{
    touch(ACCESS_READ, address, size, __builtin_return_address(0));
}

void __tsan_write_range(const void *address, size_t size);
void __tsan_write_range(const void *address, size_t size)
{
    touch(ACCESS_WRITE, address, size, __builtin_return_address(0));
}

void *model_memcpy(void *to, const void *from, size_t size)
{
    touch(ACCESS_READ, from, size, __builtin_return_address(0));
    touch(ACCESS_WRITE, to, size, __builtin_return_address(0));
    return memcpy(to, from, size);
}

void *model_memmove(void *to, const void *from, size_t size)
{
    touch(ACCESS_READ, from, size, __builtin_return_address(0));
    touch(ACCESS_WRITE, to, size, __builtin_return_address(0));
    return memmove(to, from, size);
}

void *model_memset(void *to, int value, size_t size)
{
    touch(ACCESS_WRITE, to, size, __builtin_return_address(0));
    return memset(to, value, size);
}

/* Newer compilers call these where a structure is copied. */
void *__tsan_memcpy(void *to, const void *from, size_t size) __attribute__((alias("model_memcpy")));
void *__tsan_memmove(void *to, const void *from, size_t size)
    __attribute__((alias("model_memmove")));
void *__tsan_memset(void *to, int value, size_t size) __attribute__((alias("model_memset")));

void __tsan_init(void);
void __tsan_init(void) {}

void __tsan_func_entry(const void *caller);
void __tsan_func_entry(const void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void) {}
