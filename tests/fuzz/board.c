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

static struct {
    const uint8_t *input;
    size_t size;
    atomic_uint pid_count;
    _Atomic uint64_t pids[PLACES];
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

void board_begin(const uint8_t *input, size_t size)
{
    board.input = input;
    board.size = size;
    board.completion_count = 0;
    atomic_store(&board.pid_count, 0);
    for (unsigned i = 0; i < PLACES; i++) {
        atomic_store(&board.pids[i], 0);
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
    EXPECT(!skua_pid_is_none(pid));
    const unsigned count = atomic_fetch_add(&board.pid_count, 1);
    atomic_store(&board.pids[count % PLACES], pid.bits);
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
    const uint64_t bits = atomic_load(&board.pids[choice % PLACES]);
    return (skua_pid){perhaps_forge(reader, choice, bits)};
}

skua_completion choose_completion(struct reader *reader)
{
    const uint8_t choice = reader_byte(reader);
    (void)pthread_mutex_lock(&board.lock);
    skua_completion completion = board.completions[choice % PLACES];
    (void)pthread_mutex_unlock(&board.lock);
    completion.call = perhaps_forge(reader, choice, completion.call);
    completion.process.bits = perhaps_forge(reader, choice ^ 0x80, completion.process.bits);
    return completion;
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
