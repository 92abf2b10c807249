/* SPDX-License-Identifier: MIT */
/* Two pipes, and what goes through them: plain C for 06_pipe.c and 11_pipe_task.c, nothing of Skua
 * is in here. */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define BYTES (4u << 20) /* much more than a pipe holds */
#define CHUNK 4096       /* a pipe that is ready for writing has room for so much */

/* All ends but the last, which is for main, never block. */
static bool open_pipes(int first[2], int second[2])
{
    return pipe2(first, O_NONBLOCK | O_CLOEXEC) == 0 && pipe2(second, O_CLOEXEC) == 0 &&
           fcntl(second[1], F_SETFL, O_NONBLOCK) == 0;
}

/* The next bytes, of which *made have been made so far. Returns how many, 0 at the end. */
static ssize_t make_bytes(unsigned char *buffer, uint64_t *made)
{
    ssize_t size = 0;
    while (size < CHUNK && *made < BYTES) {
        buffer[size++] = (unsigned char)((*made)++ % 251);
    }
    return size;
}

/* Reads to the end, and counts the bytes that are as they should be. */
static uint64_t check_bytes(int input)
{
    unsigned char buffer[CHUNK];
    uint64_t total = 0, right = 0;
    for (ssize_t size; (size = read(input, buffer, sizeof buffer)) > 0;) {
        for (ssize_t i = 0; i < size; i++) {
            right += buffer[i] == total++ % 251;
        }
    }
    return right;
}
