/* SPDX-License-Identifier: MIT */
/* What all parts of one fuzzed program share: its bytes, and the processes, completions, requests,
 * links, names and descriptors that its calls may name. Right and wrong arguments are chosen here,
 * by the bytes.
 *
 * Every function may be called from any thread, but begin and end. */
#ifndef SKUA_TESTS_FUZZ_BOARD_H
#define SKUA_TESTS_FUZZ_BOARD_H

#include <skua/skua.h>

/* ---- bytes ---- */

/* A stretch of the input that one thread or one process reads. */
struct reader {
    const uint8_t *next;
    const uint8_t *end;
};

static inline bool reader_is_empty(const struct reader *reader)
{
    return reader->next == reader->end;
}

/* 0 at the end. */
static inline uint8_t reader_byte(struct reader *reader)
{
    return reader_is_empty(reader) ? 0 : *reader->next++;
}

/* Less than `bound`, which is not 0. */
static inline uint32_t reader_below(struct reader *reader, uint32_t bound)
{
    return reader_byte(reader) % bound;
}

/* ---- the board ---- */

/* A new program, with nothing to name yet but its descriptors. Keeps `input` until the end. */
void board_begin(const uint8_t *input, size_t size);
void board_end(void);

void board_note_pid(skua_pid pid);
void board_note_server(skua_pid pid); /* one that can be called */
void board_note_completion(skua_completion completion);
void board_note_request(skua_request request);
void board_note_link(skua_link_id link);
void board_note_number(skua_name number);

/* ---- choices ---- */

/* Another stretch of the input, anywhere in it. */
struct reader choose_stretch(struct reader *reader);

/* A process of any runtime, alive or not, or one that never was. */
skua_pid choose_pid(struct reader *reader);

/* The same, but mostly one that can be called. */
skua_pid choose_server(struct reader *reader);

/* The same for completions. */
skua_completion choose_completion(struct reader *reader);

/* Whether one was forged: it may have been that of another yield, of any kind, by chance. */
bool board_has_forged_completion(void);

/* The same for requests, links and the numbers of names; or any bits at all. */
skua_request choose_request(struct reader *reader);
skua_link_id choose_link(struct reader *reader);
skua_name choose_number(struct reader *reader);

/* Names and what cannot be one. Those below BOARD_NAMES are good. */
#define BOARD_NAMES     6
#define BOARD_NAMES_ALL 13
const char *board_name(uint32_t index); /* may be null */

/* An index for board_name, mostly of a good one. */
uint32_t choose_name(struct reader *reader);

/* A payload of any kind, with memory of `runtime` if it is a copy. */
skua_payload choose_payload(struct reader *reader, skua_runtime *runtime);

/* An end of the pipe, a file that cannot be waited for, or a number that may be anything's. */
int choose_descriptor(struct reader *reader);

/* From nothing to a quarter of a millisecond, or more than is allowed. */
uint64_t choose_duration(struct reader *reader);

/* The same, but short: for calls that wait. */
uint64_t choose_timeout(struct reader *reader);

/* Makes the pipe ready, or not ready, or closes one end of it by a runtime's call; one thread at a
 * time. */
void board_move_pipe(struct reader *reader, skua_runtime *runtime);

#endif
