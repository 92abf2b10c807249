/* SPDX-License-Identifier: MIT */
/* Descriptors for tests. What these functions open is closed at the end of the test, after its
 * runtime; the test closes something earlier by fd_close. All of this is for the thread of the
 * test; waits.h has processes that wait for descriptors. */
#ifndef SKUA_TESTS_DESCRIPTORS_H
#define SKUA_TESTS_DESCRIPTORS_H

#include "world.h"

/* Neither blocks. Of a pipe the near end is read from, the far one written to. */
struct ends {
    int near;
    int far;
};

struct ends pipe_open(void);
struct ends pair_open(void);      /* sockets: both directions */
struct ends full_pair_open(void); /* the near end can be neither read nor written */
int eventfd_open(void);
int file_open(void); /* a regular one, that has no name any more */

/* Whether there is a network to try things on; a test that needs it is skipped without. */
bool has_loopback(void);
void need_loopback(void);

/* On loopback: a socket that listens, and one that connects, which with the flag SOCK_NONBLOCK may
 * take until later, and may be refused. */
int listener_open(void);
uint16_t port_of(int listener);
int connection_open(uint16_t port, int flags);

/* Hands a descriptor over that the test has opened; there must be one. Returns it. */
int fd_own(int fd);
/* The opposite: somebody else has closed it. */
void fd_disown(int fd);
void fd_close(int fd);
bool fd_is_open(int fd);

/* Closes it by skua_descriptor_close, and returns what that did. */
int fd_close_by_runtime(int fd);

/* Makes `number`, which is closed, mean the near end of a new pipe. Returns the far one. */
int number_reuse(int number);

void write_byte(int fd);
void signal_eventfd(int fd);
void fill(int fd);  /* until nothing more fits in */
void drain(int fd); /* until nothing is left */

/* How many files the program may open: as many as the system permits, or this number. What it was
 * before is so again at the end of the test. */
void files_allow_many(void);
void files_allow(uint64_t count);

#endif
