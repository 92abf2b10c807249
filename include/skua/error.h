/* SPDX-License-Identifier: MIT */
/* Errors. A function that can fail returns an int: 0 is success, a negative number one of the
 * errors below. A process may fail with any negative number; those at or below SKUA_E_USER are
 * yours. */
#ifndef SKUA_ERROR_H
#define SKUA_ERROR_H

#include <skua/export.h>

/* All errors, for programs that want a table of their own: X(name, value, text). */
#define SKUA_ERROR_MAP(X)                                                                          \
    X(INVALID, -5001, "an argument, or what a function returned, is out of range")                 \
    X(NO_MEMORY, -5002, "out of memory")                                                           \
    X(NO_PROCESS, -5003, "no such process: it has finished or never existed")                      \
    X(FOREIGN_PID, -5004, "the process belongs to another runtime")                                \
    X(PROCESS_LIMIT, -5005, "the runtime has as many processes as its configuration allows")       \
    X(MAILBOX_FULL, -5006, "the mailbox of the receiving process is full")                         \
    X(PAYLOAD_SIZE, -5007, "the payload is larger than the runtime's configuration allows")        \
    X(UNKNOWN_METHOD, -5008, "the process type has no such method")                                \
    X(UNKNOWN_COMMAND, -5009, "no handler is registered for this command")                         \
    X(COMMAND_EXISTS, -5010, "a handler is already registered for this command")                   \
    X(FROZEN, -5011, "commands and pools are registered before the runtime is started")            \
    X(NOT_STARTED, -5012, "the runtime has not been started")                                      \
    X(STARTED, -5013, "the runtime has already been started")                                      \
    X(STOPPED, -5014, "the runtime is stopping or has stopped")                                    \
    X(INSIDE_STEP, -5015, "this call would wait for the thread that it is made on")                \
    X(TIMEOUT, -5016, "the time allowed has passed")                                               \
    X(TERMINATED, -5017, "the process was ended from outside")                                     \
    X(LATE, -5018, "what it refers to is over, or its process has ended")                          \
    X(THREAD, -5019, "the system refused to create a thread")                                      \
    X(STUCK, -5020, "a step or handler did not return, so its worker thread still runs")           \
    X(BUSY, -5021, "the runtime is in use: stop it, or wait for the other thread")                 \
    X(CANCELLED, -5022, "the yield was taken back, or the process was asked to end")               \
    X(DURATION, -5023, "the duration is negative or too long, or a period is zero")                \
    X(DESCRIPTOR, -5024, "the descriptor is not open, or of a kind that cannot be waited for")     \
    X(CLOSED, -5025, "the descriptor or socket was closed while it was waited for")                \
    X(POLLER, -5026, "the system refused what waiting for descriptors needs")                      \
    X(UNKNOWN_POOL, -5027, "the runtime has no such blocking pool")                                \
    X(POOL_EXISTS, -5028, "the runtime already has a blocking pool of this name")                  \
    X(POOL_FULL, -5029, "all threads of the blocking pool are busy and its queue is full")         \
    X(NOT_SIMULATED, -5030, "the simulator cannot do this, and there is no double for it")         \
    X(INJECTED, -5031, "the simulator has made this fail")                                         \
    X(AT_REST, -5032, "the simulation has come to rest: nothing can happen any more")              \
    X(INSPECT, -5033, "cannot open the inspector socket")                                          \
    X(SIGNAL, -5034, "no such signal, or one that a runtime cannot use")                           \
    X(DONE, -5035, "the process has already said that it is done")                                 \
    X(CONTEXT, -5036, "the context is not valid here: its call is over, or does not allow this")   \
    X(TAKEN, -5037, "the payload was taken or sent before")                                        \
    X(RESERVED, -5038, "the command id is reserved for Skua")                                      \
    X(PAYLOAD_TYPE, -5039, "the payload is of another type or size")                               \
    X(NOT_SHARED, -5040, "the payload has one owner and cannot be shared")                         \
    X(OWN_LIMIT, -5041, "the process has as much memory of its own as its type allows")            \
    X(NAME, -5042, "the name or label is empty or has control characters")                         \
    X(NAME_LENGTH, -5043, "the name or label is longer than 63 bytes")                             \
    X(NAME_TAKEN, -5044, "a process has this name already")                                        \
    X(NAME_LIMIT, -5045, "the runtime has as many names as its configuration allows")              \
    X(NOT_CALLABLE, -5046, "processes of this type cannot be called")                              \
    X(PEER_ENDED, -5047, "the process that was called ended before it answered")                   \
    X(FORWARDED, -5048, "the request was forwarded too often")                                     \
    X(NOT_TASK, -5049, "only a task can wait")                                                     \
    X(STACK_LIMIT, -5050, "the runtime has as many stacks as its configuration allows")            \
    X(SHADOW_STACK, -5051, "tasks cannot run on threads with a shadow stack")                      \
    X(SOCKET, -5052, "not a socket of this process, or not of the right kind")                     \
    X(SOCKET_BUSY, -5053, "another such yield is open on the socket, or it holds data")            \
    X(SOCKET_FULL, -5054, "more bytes would be queued than the socket's limit allows")             \
    X(RESET, -5055, "the peer has broken off the connection")                                      \
    X(REFUSED, -5056, "nobody listens at the address")                                             \
    X(UNREACHABLE, -5057, "no way leads to the address")                                           \
    X(ADDRESS, -5058, "not an address, or not one of this machine")                                \
    X(ADDRESS_IN_USE, -5059, "the address is in use")                                              \
    X(PERMISSION, -5060, "the system does not permit it")                                          \
    X(DESCRIPTORS, -5061, "the program or the system has no descriptors left")                     \
    X(NETWORK, -5062, "the system refused what the socket needs")                                  \
    X(IDLE, -5063, "no data went through the connection for as long as its limit allows")          \
    X(NO_PROGRESS, -5064, "the peer has taken none of the queued data for too long")               \
    X(TOO_LONG, -5065, "what was to be read is longer than its limit")                             \
    X(SHUT_DOWN, -5066, "the socket has been shut down for writing")                               \
    X(RESTARTS, -5067, "children failed more often than their supervisor allows")                  \
    X(SPECIFICATION, -5068, "the specification of a supervisor is wrong")                          \
    X(NO_TEMPLATE, -5069, "the process has no template for children of this type")                 \
    X(GROUP_LIMIT, -5070, "the runtime has as many groups as its configuration allows")            \
    X(NOT_MEMBER, -5071, "the process is not a member of the group")                               \
    X(OVERFLOW, -5072, "more messages came than the process could take; its type ends it then")    \
    X(NOT_URGENT, -5073, "processes of this type take no urgent messages")                         \
    X(VERSION, -5074, "the type has no higher version, or cannot replace the old one")             \
    X(MODULE, -5076, "not a module that can be loaded here")                                       \
    X(PROCESS_QUOTA, -5077, "as many processes live under a supervisor as its quota allows")       \
    X(MESSAGE_QUOTA, -5078, "as many messages wait under a supervisor as its quota allows")        \
    X(MEMORY_QUOTA, -5079, "the processes under a supervisor own as much as its quota allows")

/* The errors by their names: SKUA_E_INVALID and so on. */
#define SKUA_ERROR_ENUM(name, value, text) SKUA_E_##name = (value),
enum { SKUA_ERROR_MAP(SKUA_ERROR_ENUM) };
#undef SKUA_ERROR_ENUM

/* Errors of your own begin here and go down. */
#define SKUA_E_USER (-10000)

SKUA_BEGIN_DECLS

/* The name of an error, as "SKUA_E_TIMEOUT"; "SKUA_E_?" for a number that is none of Skua's.
 * Gives:   a static string.      Threads: any.      Blocks: never. */
SKUA_API const char *skua_error_name(int error);

/* What an error means, in one sentence without a full stop.
 * Gives:   a static string.      Threads: any.      Blocks: never. */
SKUA_API const char *skua_error_text(int error);

/* The errno of the last system call that made a skua_ function fail on this thread. Look at it
 * after an error that says that the system refused something: SKUA_E_THREAD, SKUA_E_POLLER,
 * SKUA_E_INSPECT, SKUA_E_DESCRIPTOR, SKUA_E_NETWORK.
 * Threads: any.      Blocks: never.
 * Returns: the errno; 0 if there was none. */
SKUA_API int skua_error_os(void);

SKUA_END_DECLS

#endif
