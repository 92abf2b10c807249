/* SPDX-License-Identifier: MIT */
/* A thread outside Erlang's schedulers, for bench_wake: it sends messages to a process, as drivers
 * of devices and bindings of libraries do. */
#include <erl_nif.h>
#include <time.h>

static struct {
    ErlNifTid thread;
    ErlNifPid receiver;
    unsigned sends;
} waker;

static ErlNifSInt64 now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (ErlNifSInt64)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Sends the time of sending, once a millisecond: by then all schedulers sleep. */
static void *send_often(void *arg)
{
    (void)arg;
    ErlNifEnv *env = enif_alloc_env();
    for (unsigned i = 0; i < waker.sends; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        const ERL_NIF_TERM sent = enif_make_int64(env, now_ns());
        (void)enif_send(NULL, &waker.receiver, env, sent);
        enif_clear_env(env);
    }
    enif_free_env(env);
    return NULL;
}

/* start(Sends): to the calling process. */
static ERL_NIF_TERM start(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    if (argc != 1 || !enif_get_uint(env, argv[0], &waker.sends) ||
        enif_self(env, &waker.receiver) == NULL ||
        enif_thread_create("waker", &waker.thread, send_often, NULL, NULL) != 0) {
        return enif_make_badarg(env);
    }
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM join(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    (void)enif_thread_join(waker.thread, NULL);
    return enif_make_atom(env, "ok");
}

/* Erlang's own clock cannot be read by the thread. */
static ERL_NIF_TERM now(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_int64(env, now_ns());
}

static ErlNifFunc functions[] = {
    {.name = "start", .arity = 1, .fptr = start},
    {.name = "join", .arity = 0, .fptr = join},
    {.name = "now", .arity = 0, .fptr = now},
};

ERL_NIF_INIT(bench_wake, functions, NULL, NULL, NULL, NULL)
