/* SPDX-License-Identifier: MIT */
/* Processes for C: this header includes all the others. */
#ifndef SKUA_SKUA_H
#define SKUA_SKUA_H

#include <skua/blocking.h>
#include <skua/call.h>
#include <skua/clock.h>
#include <skua/codec.h>
#include <skua/command.h>
#include <skua/error.h>
#include <skua/group.h>
#include <skua/inspect.h>
#include <skua/message.h>
#include <skua/metrics.h>
#include <skua/module.h>
#include <skua/name.h>
#include <skua/net.h>
#include <skua/payload.h>
#include <skua/process.h>
#include <skua/runtime.h>
#include <skua/serve.h>
#include <skua/sim.h>
#include <skua/socket.h>
#include <skua/stats.h>
#include <skua/supervisor.h>
#include <skua/task.h>
#include <skua/types.h>
#include <skua/upgrade.h>
#include <skua/version.h>
#include <skua/watch.h>

#endif
