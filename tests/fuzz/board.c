/* SPDX-License-Identifier: MIT */
#include "board.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "ledger.h"

#define PLACES 32

/* For a thread sanitizer a file that is closed while another thread names its number is a race. It
 * is one, and the library must live with it, but then nothing else would be found. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FILES_STAY_OPEN
#endif
#elif defined(__SANITIZE_THREAD__)
#define FILES_STAY_OPEN
#endif
#ifdef FILES_STAY_OPEN
static const bool files_stay_open = true;
#else
static const bool files_stay_open = false;
#endif

enum descriptor { PIPE_READS, PIPE_WRITES, NOT_WAITABLE, DESCRIPTORS };

/* Numbers that calls were given. */
struct numbers {
    atomic_uint count;
    _Atomic uint64_t bits[PLACES];
};

static struct {
    const uint8_t *input;
    size_t size;
    atomic_bool has_forged_completion;
    struct numbers pids;
    struct numbers servers;
    struct numbers requests;
    struct numbers links;
    struct numbers names;
    pthread_mutex_t lock;
    unsigned completion_count;           /* under lock */
    skua_completion completions[PLACES]; /* under lock */
    atomic_int descriptors[DESCRIPTORS]; /* -1: closed */
} board = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the board ---- */

static void open_descriptors(void)
{
    int ends[2];
    EXPECT(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
    atomic_store(&board.descriptors[PIPE_READS], ends[0]);
    atomic_store(&board.descriptors[PIPE_WRITES], ends[1]);
    atomic_store(&board.descriptors[NOT_WAITABLE], open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
}

static void clear_numbers(struct numbers *numbers)
{
    atomic_store(&numbers->count, 0);
    for (unsigned i = 0; i < PLACES; i++) {
        atomic_store(&numbers->bits[i], 0);
    }
}

static void note_number(struct numbers *numbers, uint64_t bits)
{
    EXPECT(bits != 0);
    const unsigned count = atomic_fetch_add(&numbers->count, 1);
    atomic_store(&numbers->bits[count % PLACES], bits);
}

void board_begin(const uint8_t *input, size_t size)
{
    board.input = input;
    board.size = size;
    board.completion_count = 0;
    atomic_store(&board.has_forged_completion, false);
    clear_numbers(&board.pids);
    clear_numbers(&board.servers);
    clear_numbers(&board.requests);
    clear_numbers(&board.links);
    clear_numbers(&board.names);
    for (unsigned i = 0; i < PLACES; i++) {
        board.completions[i] = (skua_completion){0};
    }
    (void)signal(SIGPIPE, SIG_IGN); /* the end that is read from may be closed */
    open_descriptors();
}

void board_end(void)
{
    for (unsigned i = 0; i < DESCRIPTORS; i++) {
        const int fd = atomic_load(&board.descriptors[i]);
        if (fd >= 0) {
            (void)close(fd);
        }
    }
}

void board_note_pid(skua_pid pid)
{
    note_number(&board.pids, pid.bits);
}

void board_note_server(skua_pid pid)
{
    note_number(&board.servers, pid.bits);
}

void board_note_request(skua_request request)
{
    note_number(&board.requests, request.bits);
}

void board_note_link(skua_link_id link)
{
    note_number(&board.links, link.bits);
}

void board_note_number(skua_name number)
{
    note_number(&board.names, number.bits);
}

void board_note_completion(skua_completion completion)
{
    (void)pthread_mutex_lock(&board.lock);
    board.completions[board.completion_count++ % PLACES] = completion;
    (void)pthread_mutex_unlock(&board.lock);
}

/* ---- choices ---- */

struct reader choose_stretch(struct reader *reader)
{
    const uint32_t high = reader_byte(reader);
    const size_t start = (high << 8 | reader_byte(reader)) % (board.size + 1);
    const size_t left = board.size - start;
    const size_t length = reader_byte(reader);
    const uint8_t *first = board.input + start;
    return (struct reader){.next = first, .end = first + (length < left ? length : left)};
}

/* One number in eight gets another bit flipped: nobody has been given that one. */
static uint64_t perhaps_forge(struct reader *reader, uint8_t choice, uint64_t bits)
{
    return choice < 0xe0 ? bits : bits ^ UINT64_C(1) << reader_below(reader, 64);
}

skua_pid choose_pid(struct reader *reader)
{
    const uint8_t choice = reader_byte(reader);
    const uint64_t bits = atomic_load(&board.pids.bits[choice % PLACES]);
    return (skua_pid){perhaps_forge(reader, choice, bits)};
}

/* Mostly one of the first four: so some are called often. */
skua_pid choose_server(struct reader *reader)
{
    const uint8_t choice = reader_byte(reader);
    if (choice >= 0xc0) {
        return choose_pid(reader);
    }
    const uint32_t which = choice < 0x80 ? choice % 4 : choice % PLACES;
    return (skua_pid){atomic_load(&board.servers.bits[which])};
}

/* One in sixteen has nothing to do with any that was given. */
static uint64_t choose_bits(struct reader *reader, struct numbers *numbers)
{
    const uint8_t choice = reader_byte(reader);
    if (choice < 0xf0) {
        return perhaps_forge(reader, choice, atomic_load(&numbers->bits[choice % PLACES]));
    }
    uint64_t bits = 0;
    for (unsigned i = 0; i < sizeof bits; i++) {
        bits = bits << 8 | reader_byte(reader);
    }
    return bits;
}

skua_request choose_request(struct reader *reader)
{
    return (skua_request){choose_bits(reader, &board.requests)};
}

skua_link_id choose_link(struct reader *reader)
{
    return (skua_link_id){choose_bits(reader, &board.links)};
}

skua_name choose_number(struct reader *reader)
{
    return (skua_name){choose_bits(reader, &board.names)};
}

#define TEN_BYTES "0123456789"
#define SIXTY     TEN_BYTES TEN_BYTES TEN_BYTES TEN_BYTES TEN_BYTES TEN_BYTES

const char *board_name(uint32_t index)
{
    static const char *const names[BOARD_NAMES_ALL] = {
        "a",
        "name",
        "with a space",
        "longer than seven",
        SIXTY "abc",
        "caf\xc3\xa9 \xff",
        SIXTY "abcd",
        "",
        "line\n",
        "\x01",
        "\x7f",
        SIXTY SIXTY,
        NULL,
    };
    return names[index];
}

uint32_t choose_name(struct reader *reader)
{
    const uint8_t choice = reader_byte(reader);
    return choice < 0xe0 ? choice % BOARD_NAMES : choice % BOARD_NAMES_ALL;
}

skua_completion choose_completion(struct reader *reader)
{
    const uint8_t choice = reader_byte(reader);
    (void)pthread_mutex_lock(&board.lock);
    skua_completion completion = board.completions[choice % PLACES];
    (void)pthread_mutex_unlock(&board.lock);
    const uint64_t given = completion.call;
    completion.call = perhaps_forge(reader, choice, given);
    if (completion.call != given) {
        atomic_store(&board.has_forged_completion, true);
    }
    completion.process.bits = perhaps_forge(reader, choice ^ 0x80, completion.process.bits);
    return completion;
}

bool board_has_forged_completion(void)
{
    return atomic_load(&board.has_forged_completion);
}

static skua_payload choose_copy(struct reader *reader, skua_runtime *runtime)
{
    static const char bytes[256];
    skua_payload copy;
    (void)ANSWERS(skua_payload_copy(runtime, 1, bytes, reader_byte(reader), &copy),
                  ANSWER_OK | ANSWER(INVALID) | ANSWER(PAYLOAD_SIZE) | ANSWER(NO_MEMORY));
    return copy; /* empty on error */
}

/* With one owner more and one less. */
static skua_payload choose_shared(struct reader *reader, skua_runtime *runtime)
{
    static const unsigned char bytes[256];
    skua_payload first;
    skua_payload second;
    const size_t size = reader_byte(reader);
    if (!ANSWERS(skua_payload_shared(runtime, 5, bytes, size, &first),
                 ANSWER_OK | ANSWER(PAYLOAD_SIZE) | ANSWER(NO_MEMORY))) {
        return first;
    }
    EXPECT(skua_payload_ref(&first, &second) == 0);
    skua_payload_drop(&first);
    EXPECT(skua_payload_size(&second) == size);
    return second;
}

skua_payload choose_payload(struct reader *reader, skua_runtime *runtime)
{
    switch (reader_below(reader, 10)) {
    case 0:
        return skua_payload_empty(0);
    case 8:
        return runtime != NULL ? choose_shared(reader, runtime) : skua_payload_empty(0);
    case 9:
        return skua_payload_static(4, "that nobody frees", reader_below(reader, 18));
    case 1:
        return skua_payload_u64(2, 1000 + reader_byte(reader)); /* no file has such a number */
    case 2:
        return skua_payload_pid(3, choose_pid(reader));
    case 3:
        return ledger_payload(true, 0);
    case 4:
        return runtime != NULL ? choose_copy(reader, runtime) : skua_payload_empty(0);
    default:
        return ledger_payload(false, reader_byte(reader));
    }
}

int choose_descriptor(struct reader *reader)
{
    const uint32_t choice = reader_below(reader, 8);
    if (choice < 6 || files_stay_open) {
        return atomic_load(&board.descriptors[choice % DESCRIPTORS]);
    }
    return (int)reader_below(reader, 17) - 1; /* one of the first files of the program, or none */
}

uint64_t choose_duration(struct reader *reader)
{
    const uint8_t choice = reader_byte(reader);
    if (choice >= 0xf8) {
        return SKUA_DURATION_MAX + choice - 0xfb; /* around the limit */
    }
    return choice * SKUA_MICROSECOND;
}

uint64_t choose_timeout(struct reader *reader)
{
    return reader_byte(reader) * UINT64_C(500);
}

/* ---- the pipe ---- */

static void close_end(enum descriptor end, skua_runtime *runtime)
{
    const int fd = files_stay_open ? -1 : atomic_exchange(&board.descriptors[end], -1);
    const uint64_t documented = ANSWER_OK | ANSWER(INVALID) | ANSWER(DESCRIPTOR);
    if (!ANSWERS(skua_descriptor_close(runtime, fd), documented) && fd >= 0) {
        EXPECT(runtime == NULL);
        (void)close(fd);
    }
}

void board_move_pipe(struct reader *reader, skua_runtime *runtime)
{
    char bytes[256] = {0};
    switch (reader_below(reader, 8)) {
    case 0:
        close_end(PIPE_READS, runtime);
        break;
    case 1:
        close_end(PIPE_WRITES, runtime);
        break;
    case 2:
    case 3:
        (void)!read(atomic_load(&board.descriptors[PIPE_READS]), bytes, sizeof bytes);
        break;
    default:
        (void)!write(atomic_load(&board.descriptors[PIPE_WRITES]), bytes, 1);
        break;
    }
}
