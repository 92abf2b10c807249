/* SPDX-License-Identifier: MIT */
/* How often a test repeats what goes wrong only now and then. Sanitizers make a round five to fifty
 * times slower and see more in each, so there are fewer. */
#ifndef SKUA_TEST_EFFORT_H
#define SKUA_TEST_EFFORT_H

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define EFFORT_SHARE 10
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define EFFORT_SHARE 10
#endif
#endif
#ifndef EFFORT_SHARE
#define EFFORT_SHARE 1
#endif

#define EFFORT(rounds) ((rounds) / EFFORT_SHARE)

#endif
