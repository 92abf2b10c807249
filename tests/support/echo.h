/* SPDX-License-Identifier: MIT */
/* A server of the test's runtime, and connections to it from the test's own thread:
 *
 *   echo_start();
 *   const int fd = echo_connect();
 *   echo_exchange(fd, 100);
 *
 * The server listens on 127.0.0.1. For each connection it starts a task, an echoer, that writes
 * back what it reads. When an exchange is over, both of the echoer's directions have been used. */
#ifndef SKUA_TESTS_ECHO_H
#define SKUA_TESTS_ECHO_H

#include "world.h"

/* Returns when it listens; its PID. */
skua_pid echo_start(void);

/* Where it listens. */
const char *echo_address(void);

/* A descriptor that is connected to it, and has been accepted. It is closed at the end of the test,
 * unless echo_close does so: then its echoer ends, too. */
int echo_connect(void);
void echo_close(int fd);

/* The address of a descriptor's own side, as Skua writes it. */
void echo_own_address(int fd, char text[SKUA_ADDRESS_SIZE]);

/* Sends so many bytes and reads them back. */
void echo_exchange(int fd, size_t count);

/* A process of the runtime, the dialer, that connects to the server, sends a number, reads it back
 * and then waits to read. Returns when it has; its PID. */
skua_pid echo_dial(void);

#endif
