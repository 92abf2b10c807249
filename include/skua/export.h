/* SPDX-License-Identifier: MIT */
/* How Skua's functions are declared. Included by every other public header. */
#ifndef SKUA_EXPORT_H
#define SKUA_EXPORT_H

/* On every function of the shared library; all else in it is hidden. */
#define SKUA_API __attribute__((visibility("default")))

/* On calls whose error leaves the caller without the thing it asked for. Calls whose failure is
 * often of no interest (a reply to a process that has gone) do not carry it. */
#define SKUA_NODISCARD __attribute__((warn_unused_result))

/* Around the declarations of a header, so that C++ programs can use them. */
#ifdef __cplusplus
#define SKUA_BEGIN_DECLS extern "C" {
#define SKUA_END_DECLS   }
#else
#define SKUA_BEGIN_DECLS
#define SKUA_END_DECLS
#endif

#endif
