/* SPDX-License-Identifier: MIT */
/* Messages from outside a process. Inside one, skua_context_send is the shorter way. */
#ifndef SKUA_MESSAGE_H
#define SKUA_MESSAGE_H

#include <skua/error.h>
#include <skua/payload.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* Sends a message to a process and wakes it if it waits. Messages sent by one thread to one process
 * arrive in the order they were sent. An accepted message is handed to a step exactly once, unless
 * the process ends first.
 * Takes:   payload, always.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID; SKUA_E_FOREIGN_PID; SKUA_E_NO_PROCESS; SKUA_E_MAILBOX_FULL;
 *          SKUA_E_PAYLOAD_SIZE; SKUA_E_NO_MEMORY. */
SKUA_API int skua_message_send(skua_runtime *runtime, skua_pid to, skua_payload payload);

SKUA_END_DECLS

#endif
