/* SPDX-License-Identifier: MIT */
#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>

#include "test.h"

struct thread {
    pthread_t id;
    void (*function)(void *arg);
    void *arg;
    atomic_bool is_done;
};

static void *thread_main(void *arg)
{
    struct thread *thread = arg;
    thread->function(thread->arg);
    atomic_store(&thread->is_done, true);
    return NULL;
}

struct thread *thread_start(void (*function)(void *arg), void *arg)
{
    struct thread *thread = test_alloc(sizeof *thread);
    thread->function = function;
    thread->arg = arg;
    assert_int_equal(pthread_create(&thread->id, NULL, thread_main, thread), 0);
    return thread;
}

void thread_join(struct thread *thread)
{
    assert_int_equal(pthread_join(thread->id, NULL), 0);
}

bool thread_is_done(struct thread *thread)
{
    return atomic_load(&thread->is_done);
}

void thread_run(void (*function)(void *arg), void *arg)
{
    thread_join(thread_start(function, arg));
}
