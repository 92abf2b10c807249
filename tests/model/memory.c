/* SPDX-License-Identifier: MIT */
/* Each atomic word is a location with its history: a list of messages, one for each store, in
 * modification order, which here is the order of execution. Each thread has a view: how far back in
 * each history it may still read. Reading and writing a message moves the view of its location on;
 * acquiring joins the view that was released. This is the operational form of C11's release and
 * acquire (as in Kang et al. 2017, without promises). Besides, a seq_cst load reads nothing older
 * than what a seq_cst operation wrote or read before: the order of execution serves as the one
 * order of all seq_cst operations.
 *
 * Memory itself always holds the newest value. What does not want to choose, reads that. */
#include <string.h>

#include "base/assert.h"
#include "explorer.h"

#define MESSAGES_MAX 16384
#define NO_MESSAGE   UINT32_MAX
#define NULL_PAGE    4096 /* no object is there */
#define TABLE_SIZE   2048 /* addresses in one schedule, at most half of this; a power of two */
#define IGNORED      UINT32_MAX /* in place of a location */
#define CHOICES_MAX  27         /* a schedule writes the older ones as letters */

struct message {
    uint64_t value;
    uint32_t older;
    uint16_t number; /* in its history, from 0 */
    struct knowledge carried;
};

struct location {
    uint32_t newest;
    uint16_t beginning; /* messages before this one cannot be read by anybody */
    uint16_t seq_cst;   /* messages before this one cannot be read by seq_cst loads */
};

static struct {
    struct message messages[MESSAGES_MAX];
    uint32_t message_count;
    struct location locations[LOCATIONS_MAX];
    uint32_t location_count;
    struct {
        const volatile void *address;
        uint32_t epoch; /* other than the present one: empty */
        uint32_t location;
    } table[TABLE_SIZE];
    uint32_t address_count;
    uint32_t epoch; /* one for each schedule */
} memory;

/* ---- words ---- */

uint64_t memory_peek(const volatile void *address, size_t size)
{
    if (size == sizeof(uint64_t)) {
        return *(const volatile uint64_t *)address;
    }
    return size == sizeof(uint32_t) ? *(const volatile uint32_t *)address : 0;
}

static uint64_t truncate(uint64_t value, size_t size)
{
    return size == sizeof(uint64_t) ? value : (uint32_t)value;
}

static void write_word(const struct step *step, uint64_t value)
{
    void *const address = (void *)(uintptr_t)step->address;
    if (step->site->size == sizeof(uint64_t)) {
        *(volatile uint64_t *)address = value;
    } else {
        *(volatile uint32_t *)address = (uint32_t)value;
    }
}

/* What the operation makes of the value it has read. */
static uint64_t result_of(const struct step *step, uint64_t read)
{
    switch (step->site->operation) {
    case MODEL_STORE:
    case MODEL_EXCHANGE:
        return step->operand;
    case MODEL_ADD:
        return truncate(read + step->operand, step->site->size);
    case MODEL_SUBTRACT:
    case MODEL_TAKE:
        return truncate(read - step->operand, step->site->size);
    case MODEL_OR:
        return read | step->operand;
    case MODEL_AND:
        return read & step->operand;
    case MODEL_COMPARE_EXCHANGE:
        return read == step->expected ? step->operand : read;
    case MODEL_LOAD:
    case MODEL_LOCK:
    case MODEL_FUTEX_WAIT:
    case MODEL_FUTEX_WOKEN:
    case MODEL_FUTEX_WAKE:
    case MODEL_CONDITION:
    case MODEL_JOIN:
    case MODEL_UNKNOWN:
        break;
    }
    return read;
}

static bool fails(const struct step *step, uint64_t read)
{
    return step->site->operation == MODEL_COMPARE_EXCHANGE && read != step->expected;
}

static bool writes(const struct step *step, uint64_t read)
{
    return step->site->operation != MODEL_LOAD && !fails(step, read);
}

/* ---- knowledge ---- */

static bool views_matter(void)
{
    return explorer.stale_left > 0;
}

static uint16_t oldest_readable(const struct knowledge *knowledge, uint32_t location)
{
    return location < knowledge->locations ? knowledge->oldest[location] : 0;
}

static void widen(struct knowledge *knowledge, uint32_t locations)
{
    if (knowledge->locations < locations) {
        memset(&knowledge->oldest[knowledge->locations], 0,
               (locations - knowledge->locations) * sizeof knowledge->oldest[0]);
        knowledge->locations = locations;
    }
}

static void see(struct knowledge *knowledge, uint32_t location, uint16_t number)
{
    widen(knowledge, location + 1);
    if (knowledge->oldest[location] < number) {
        knowledge->oldest[location] = number;
    }
}

static void forget(struct knowledge *knowledge)
{
    memset(knowledge->clock, 0, sizeof knowledge->clock);
    knowledge->locations = 0;
}

void knowledge_join(struct knowledge *to, const struct knowledge *from)
{
    for (int i = 0; i < EXPLORE_THREADS_MAX; i++) {
        to->clock[i] = to->clock[i] < from->clock[i] ? from->clock[i] : to->clock[i];
    }
    if (!views_matter()) {
        return;
    }
    widen(to, from->locations);
    for (uint32_t i = 0; i < from->locations; i++) {
        to->oldest[i] = to->oldest[i] < from->oldest[i] ? from->oldest[i] : to->oldest[i];
    }
}

static void copy(struct knowledge *to, const struct knowledge *from)
{
    forget(to);
    knowledge_join(to, from);
}

void knowledge_release(struct knowledge *to, struct thread *thread)
{
    knowledge_join(to, &thread->knowledge);
    SKUA_ASSERT(thread->knowledge.clock[thread->number] < UINT16_MAX);
    thread->knowledge.clock[thread->number]++;
}

static bool acquires(memory_order order)
{
    return order == memory_order_acquire || order == memory_order_acq_rel ||
           order == memory_order_seq_cst;
}

static bool releases(memory_order order)
{
    return order == memory_order_release || order == memory_order_acq_rel ||
           order == memory_order_seq_cst;
}

/* ---- histories ---- */

void memory_begin(void)
{
    memory.epoch++;
    memory.message_count = 0;
    memory.location_count = 0;
    memory.address_count = 0;
    for (int i = 0; i < explorer.thread_count; i++) {
        struct thread *thread = &explorer.threads[i];
        forget(&thread->knowledge);
        thread->knowledge.clock[i] = 1;
    }
}

/* Where the table has the address, or would have it. */
static uint32_t slot_of(const volatile void *address)
{
    uint32_t slot = (uint32_t)(((uintptr_t)address >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 53);
    while (memory.table[slot].epoch == memory.epoch && memory.table[slot].address != address) {
        slot = (slot + 1) % TABLE_SIZE;
    }
    return slot;
}

static uint32_t add_location(void)
{
    SKUA_ASSERT(memory.location_count < LOCATIONS_MAX);
    memory.locations[memory.location_count] = (struct location){.newest = NO_MESSAGE};
    return memory.location_count++;
}

/* Finds an address, or adds it: as one that is ignored, or as a new location. */
static uint32_t find(const volatile void *address)
{
    const uint32_t slot = slot_of(address);
    if (memory.table[slot].epoch != memory.epoch) {
        SKUA_ASSERT(++memory.address_count <= TABLE_SIZE / 2);
        memory.table[slot].epoch = memory.epoch;
        memory.table[slot].address = address;
        memory.table[slot].location = is_ignored(address) ? IGNORED : add_location();
    }
    return memory.table[slot].location;
}

static struct message *newest_of(const struct location *location)
{
    return &memory.messages[location->newest];
}

static struct message *append(struct location *location, uint64_t value)
{
    SKUA_ASSERT(memory.message_count < MESSAGES_MAX);
    struct message *message = &memory.messages[memory.message_count];
    message->value = value;
    message->older = location->newest;
    message->number =
        location->newest == NO_MESSAGE ? 0 : (uint16_t)(newest_of(location)->number + 1);
    forget(&message->carried);
    location->newest = memory.message_count++;
    return message;
}

/* The location of a step, with a history that ends with what memory holds. If it did not, the word
 * is new, or it was written plainly: its history begins here. */
static struct location *locate(const struct step *step)
{
    const uint64_t value = memory_peek(step->address, step->site->size);
    struct location *location = &memory.locations[find(step->address)];
    if (location->newest == NO_MESSAGE || newest_of(location)->value != value) {
        location->beginning = append(location, value)->number;
    }
    return location;
}

/* Goes back in a history from the newest message, *at, as far as the step may and `n` messages at
 * most. Returns how many it went. */
static uint32_t go_back(const struct thread *thread, const struct step *step,
                        const struct location *location, uint32_t n, struct message **at)
{
    const bool is_cas = step->site->operation == MODEL_COMPARE_EXCHANGE;
    const memory_order order = is_cas ? step->site->failure : step->site->order;
    uint16_t oldest = oldest_readable(&thread->knowledge, (uint32_t)(location - memory.locations));
    oldest = oldest > location->beginning ? oldest : location->beginning;
    if (order == memory_order_seq_cst && oldest < location->seq_cst) {
        oldest = location->seq_cst;
    }
    uint32_t reached = 0;
    struct message *message = *at;
    while (reached < n && message->number > oldest) {
        message = &memory.messages[message->older];
        if (!is_cas || message->value != step->expected) {
            *at = message;
            reached++;
        }
    }
    return reached;
}

uint32_t memory_choices(const struct thread *thread, const struct step *step)
{
    if (!views_matter() ||
        (step->site->operation != MODEL_LOAD && step->site->operation != MODEL_COMPARE_EXCHANGE)) {
        return 1;
    }
    const struct location *location = &memory.locations[find(step->address)];
    if (location->newest == NO_MESSAGE ||
        newest_of(location)->value != memory_peek(step->address, step->site->size)) {
        return 1;
    }
    struct message *last = newest_of(location);
    return 1 + go_back(thread, step, location, CHOICES_MAX - 1, &last);
}

/* ---- operations ---- */

static void read_message(struct thread *thread, struct location *location,
                         const struct message *message, memory_order order)
{
    if (views_matter()) {
        see(&thread->knowledge, (uint32_t)(location - memory.locations), message->number);
    }
    if (acquires(order)) {
        knowledge_join(&thread->knowledge, &message->carried);
    }
    if (order == memory_order_seq_cst && location->seq_cst < message->number) {
        location->seq_cst = message->number;
    }
}

/* A read-modify-write hands on what the message it has read carried: the release sequence goes on.
 * When nobody can read older messages any more, the newest is overwritten. */
static void write_message(struct thread *thread, const struct step *step, struct location *location,
                          uint64_t value)
{
    struct message *message = newest_of(location);
    if (views_matter()) {
        const struct message *read = message;
        message = append(location, value);
        if (step->site->operation != MODEL_STORE) {
            copy(&message->carried, &read->carried);
        }
        see(&thread->knowledge, (uint32_t)(location - memory.locations), message->number);
    } else {
        message->value = value;
        if (step->site->operation == MODEL_STORE) {
            forget(&message->carried);
        }
    }
    if (step->site->order == memory_order_seq_cst) {
        location->seq_cst = message->number;
    }
    if (releases(step->site->order)) {
        knowledge_release(&message->carried, thread);
    }
    write_word(step, value);
}

static void trace_operation(const struct step *step, uint64_t read, uint64_t newest)
{
    const unsigned long long before = read;
    const unsigned long long last = newest;
    if (writes(step, read)) {
        trace_step(step, "  0x%llx -> 0x%llx", last, (unsigned long long)result_of(step, newest));
    } else if (explorer.message > 0) {
        trace_step(step, "  0x%llx (stale: newest 0x%llx)", before, last);
    } else {
        trace_step(step, "  0x%llx", before);
    }
}

/* By a thread, on a word that is not ignored. */
static uint64_t perform(struct thread *thread, const struct step *step)
{
    struct location *location = locate(step);
    struct message *message = newest_of(location);
    if (explorer.message > 0) {
        (void)go_back(thread, step, location, explorer.message, &message);
    }
    const uint64_t read = message->value;
    if (explorer.tracing) {
        trace_operation(step, read, newest_of(location)->value);
    }
    shadow_touch(writes(step, read) ? ACCESS_ATOMIC_WRITE : ACCESS_ATOMIC_READ, step->address,
                 step->site->size, step->site->where);
    if (step->site->operation != MODEL_STORE) {
        read_message(thread, location, message,
                     fails(step, read) ? step->site->failure : step->site->order);
    }
    if (writes(step, read)) {
        write_message(thread, step, location, result_of(step, read));
    }
    return read;
}

/* By nobody, or on a word that is ignored. */
static uint64_t perform_plainly(const struct step *step)
{
    const uint64_t read = memory_peek(step->address, step->site->size);
    if (writes(step, read)) {
        write_word(step, result_of(step, read));
    }
    return read;
}

/* Steps are built in place: copying what has just been written would stall. */
static inline uint64_t operate(const struct model_site *site, const volatile void *address,
                               uint64_t operand, uint64_t expected)
{
    struct thread *thread = running_thread();
    if (UNLIKELY((uintptr_t)address < NULL_PAGE)) {
        fail_with("an atomic operation through a null pointer");
    }
    if (thread == NULL || find(address) == IGNORED) {
        return perform_plainly(&(struct step){site, address, operand, expected});
    }
    struct step *step = &thread->next;
    step->site = site;
    step->address = address;
    step->operand = operand;
    step->expected = expected;
    if (thread->locks == 0) {
        reach(thread);
    } else {
        explorer.message = 0; /* in a closed mutex all is fresh */
    }
    return perform(thread, step);
}

uint64_t model_operate(const struct model_site *site, const volatile void *address,
                       uint64_t operand)
{
    return operate(site, address, operand, 0);
}

bool model_compare_exchange(const struct model_site *site, const volatile void *address,
                            void *expected, uint64_t operand)
{
    const uint64_t wanted = memory_peek(expected, site->size);
    const uint64_t read = operate(site, address, operand, wanted);
    if (read == wanted) {
        return true;
    }
    memcpy(expected, &read, site->size); /* the low half comes first */
    return false;
}

uint64_t explore_peek_at(const volatile void *address, size_t size)
{
    return memory_peek(address, size);
}
