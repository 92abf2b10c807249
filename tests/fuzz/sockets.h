/* SPDX-License-Identifier: MIT */
/* What processes do with sockets: with their own, those of others, those that are closed, and
 * numbers that never were one. */
#ifndef SKUA_TESTS_FUZZ_SOCKETS_H
#define SKUA_TESTS_FUZZ_SOCKETS_H

#include "play.h"

/* One operation of a step. */
void sockets_perform(struct play *play);

/* A new program: no socket is known. */
void sockets_begin(void);

/* Mostly one of this process's, or one that somebody has, or had, or nobody. */
skua_socket choose_socket(struct reader *reader, skua_context *ctx);

/* Somebody has got one. */
void sockets_note(skua_socket socket);

/* An address of this machine, or what is none. */
const char *choose_address(struct reader *reader, skua_context *ctx);

/* How much is to be read: mostly little. */
size_t choose_size(struct reader *reader);

#endif
