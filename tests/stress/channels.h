/* SPDX-License-Identifier: MIT */
/* Channels: pairs of descriptors that everybody may wait for, with numbers that do not change. Some
 * are closed properly, the others behind the runtime's back.
 *
 * All that is done with descriptors here is done by bare system calls. Of the C library's functions
 * a thread sanitizer knows what they do: it would report uses of closed and reused numbers, which
 * are what is tested here, and take a pipe for a means of synchronisation. */
#ifndef SKUA_TESTS_STRESS_CHANNELS_H
#define SKUA_TESTS_STRESS_CHANNELS_H

#include "stress_load.h"

#define CHANNELS 16

/* ---- descriptors ---- */

/* A pipe or a pair of sockets; fds[0] is read from, fds[1] written to. */
bool make_pair(uint64_t *random, int fds[2]);

void close_bare(int fd);
long read_bytes(int fd, void *bytes, size_t size);
long write_bytes(int fd, const void *bytes, size_t size);
void drain(int fd);
void fill(int fd);

/* ---- channels ---- */

/* Of a whole program. Raises the limit of open files if it has to. */
void channels_begin(void);
void channels_end(void);

int channel_fd(uint32_t channel, uint32_t end);

/* Whether it is closed by skua_descriptor_close. */
bool channel_is_proper(uint32_t channel);

/* Writes to, drains or replaces one of them. */
void use_channel(uint64_t *random);

void open_channels(uint64_t *random);

/* For good. Whoever waits for a proper one hears of it. */
void close_channels(uint64_t *random, bool proper);

#endif
