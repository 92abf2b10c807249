/* SPDX-License-Identifier: MIT */
/* How a task and its worker change places: internal. It is here because it pays to have it inline:
 * the processor predicts where functions return to, and a switch inside of a function that is
 * called spoils that for all its callers. */
#ifndef SKUA_SWITCH_H
#define SKUA_SWITCH_H

#include <skua/types.h>

/* What a task waits for: internal, the beginning of a context. */
struct skua_wait_ {
    void **peer; /* null: not a task, or it does not run */
    uint32_t kind;
    int32_t result;
    uint64_t context[6]; /* the library's */
    struct skua_event *event;
    const char *where; /* in the program */
};

/* The kinds of waits: internal. */
enum {
    SKUA_WAIT_EVENT_ = 1,  /* any event */
    SKUA_WAIT_TYPE_,       /* a message or call of one type */
    SKUA_WAIT_MATCH_,      /* what a function accepts */
    SKUA_WAIT_COMPLETION_, /* the end of its own yield */
    SKUA_WAIT_TURN_,       /* its next turn */
};

#ifndef __has_feature
#define SKUA_HAS_FEATURE_(x) 0
#else
#define SKUA_HAS_FEATURE_(x) __has_feature(x)
#endif

/* Sanitizers want to know of every switch, so the library does it for programs that use them; also
 * for compilers and processors that this file does not know. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    SKUA_HAS_FEATURE_(address_sanitizer) || SKUA_HAS_FEATURE_(thread_sanitizer) ||                 \
    !defined(__GNUC__) || !(defined(__x86_64__) || defined(__aarch64__))
#define SKUA_SWITCH_IS_INLINE 0
#else
#define SKUA_SWITCH_IS_INLINE 1
#endif

#if defined(__x86_64__) && defined(__GNUC__)

#ifdef __AVX512F__
#define SKUA_SWITCH_WIDE_                                                                          \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",    \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5",  \
        "k6", "k7"
#else
#define SKUA_SWITCH_WIDE_
#endif

/* Goes on where *peer says, and leaves there where this side goes on. The compiler saves what it
 * needs, but for rbx and rbp, which it may have reserved. Skips the red zone. The rounding mode and
 * other control registers are left as they are. */
static inline __attribute__((always_inline)) void skua_switch_(void **peer)
{
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "push %%rbp\n\t"
                     "push %%rbx\n\t"
                     "lea 1f(%%rip), %%rax\n\t"
                     "push %%rax\n\t"
                     "mov (%0), %%rdx\n\t"
                     "mov %%rsp, (%0)\n\t"
                     "mov %%rdx, %%rsp\n\t"
                     "pop %%rax\n\t"
                     "jmp *%%rax\n"
                     "1:\n\t"
                     "endbr64\n\t"
                     "pop %%rbx\n\t"
                     "pop %%rbp\n\t"
                     "lea 128(%%rsp), %%rsp"
                     : "+D"(peer)
                     :
                     : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
                       "r15", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                       "xmm15", "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7", "st",
                       "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)",
                       "st(7)" SKUA_SWITCH_WIDE_);
}

#elif defined(__aarch64__) && defined(__GNUC__)

#ifdef __ARM_FEATURE_SVE
#define SKUA_SWITCH_WIDE_                                                                          \
    , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13",      \
        "p14", "p15"
#else
#define SKUA_SWITCH_WIDE_
#endif

/* The same; the compiler may have reserved x19 and x29. */
static inline __attribute__((always_inline)) void skua_switch_(void **peer)
{
    register void **at __asm__("x0") = peer;
    __asm__ volatile("adr x9, 1f\n\t"
                     "stp x19, x29, [sp, #-32]!\n\t"
                     "str x9, [sp, #16]\n\t"
                     "ldr x10, [x0]\n\t"
                     "mov x11, sp\n\t"
                     "str x11, [x0]\n\t"
                     "mov sp, x10\n\t"
                     "ldr x9, [sp, #16]\n\t"
                     "br x9\n"
                     "1:\n\t"
                     "hint #36\n\t" /* bti j */
                     "ldp x19, x29, [sp], #32"
                     : "+r"(at)
                     :
                     : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
                       "x13", "x14", "x15", "x16", "x17", "x18", "x20", "x21", "x22", "x23", "x24",
                       "x25", "x26", "x27", "x28", "x30", "cc", "memory", "v0", "v1", "v2", "v3",
                       "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
                       "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
                       "v27", "v28", "v29", "v30", "v31" SKUA_SWITCH_WIDE_);
}

#endif

#endif
