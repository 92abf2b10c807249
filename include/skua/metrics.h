/* SPDX-License-Identifier: MIT */
/* The statistics of a runtime for Prometheus: what a /metrics page answers. */
#ifndef SKUA_METRICS_H
#define SKUA_METRICS_H

#include <skua/error.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* Writes the metrics in Prometheus' text format (version 0.0.4), as snprintf does: at most `size`
 * bytes with a zero at their end. Every counter has a label `worker`: its number, or "outside" for
 * work done on threads that are not workers; the sum over the label is the total. Times are in
 * seconds, memory in bytes. `text` may be null if `size` is 0.
 * Threads: any.      Blocks: never.
 * Returns: the length of the whole text, which may be more than fits; SKUA_E_INVALID. */
SKUA_API int skua_metrics_format(skua_runtime *runtime, char *text, size_t size);

SKUA_END_DECLS

#endif
