%% SPDX-License-Identifier: MIT
%% From a send by a thread outside to the process. The thread is one of a NIF, as in bindings of C
%% libraries: Erlang itself has none beside those that run processes.
-module(bench_wake).

-export([join/0, now/0, start/1, wake/0]).
-compile({no_auto_import, [now/0]}).

-define(WAKES, 1000).

%% bench_waker.c has these.
start(_) -> erlang:nif_error(not_loaded).

join() -> erlang:nif_error(not_loaded).

now() -> erlang:nif_error(not_loaded).

wake() ->
    ok = erlang:load_nif(filename:join(filename:dirname(code:which(?MODULE)), "bench_waker"), 0),
    ok = start(?WAKES),
    Waits = lists:sort(receive_all(?WAKES, [])),
    ok = join(),
    bench:expect(?WAKES, length(Waits)),
    P50 = percentile(Waits, 50),
    bench:finish_after(?WAKES, P50 * ?WAKES)
        ++ [{"p50_us", P50 / 1000}, {"p99_us", percentile(Waits, 99) / 1000}].

receive_all(0, Waits) ->
    Waits;
receive_all(Missing, Waits) ->
    receive
        Sent -> receive_all(Missing - 1, [?MODULE:now() - Sent | Waits])
    end.

percentile(Sorted, Percent) ->
    lists:nth(?WAKES * Percent div 100 + 1, Sorted).
