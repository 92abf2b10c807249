%% SPDX-License-Identifier: MIT
%% Workloads of what the virtual machine does when it has nothing to run.
-module(bench_idle).

-export([cpu/0, idle_on/1, memory/0, timers/0]).

-define(MILLION, 1000000).

%% ---- idle processes: what they cost in memory and in wake-ups ----

%% Has 64 bytes of its own and waits for messages, which never come. It hibernates, as processes do
%% that are many and wait long: its heap is as small as what is in it.
idle(Started) ->
    State = erlang:make_tuple(8, 1),
    counters:add(Started, 1, 1),
    erlang:hibernate(?MODULE, idle_on, [State]).

idle_on(State) ->
    receive
        state -> State
    end.

start_idlers(Count) ->
    Started = counters:new(1, [atomics]),
    start_idlers(Count, Started),
    wait_until(Started, Count).

start_idlers(0, _) ->
    ok;
start_idlers(Count, Started) ->
    spawn(fun() -> idle(Started) end),
    start_idlers(Count - 1, Started).

wait_until(Counter, Count) ->
    case counters:get(Counter, 1) of
        Count ->
            ok;
        _ ->
            timer:sleep(1),
            wait_until(Counter, Count)
    end.

memory() ->
    Before = bench_system:resident_bytes(),
    Begin = erlang:monotonic_time(nanosecond),
    start_idlers(?MILLION),
    Result = bench:finish(?MILLION, Begin),
    {_, After} = lists:keyfind("rss_bytes", 1, Result),
    Result ++ [{"bytes_per_process", (After - Before) / ?MILLION}].

-define(IDLERS, 10000).
-define(REST_SECONDS, 5).

%% How often anything wakes in five seconds.
cpu() ->
    start_idlers(?IDLERS),
    Wakeups = bench_system:context_switches(?REST_SECONDS),
    bench:finish_after(?IDLERS, ?REST_SECONDS * 1000000000) ++ [{"wakeups", Wakeups}].

%% ---- timers: a million processes, each asleep for its own time ----

%% Durations are whole milliseconds, as all of Erlang's timers are.
timers() ->
    Late = atomics:new(?MILLION, []),
    Before = erlang:system_info(process_count),
    Cpu = bench_system:cpu_seconds(),
    Begin = erlang:monotonic_time(nanosecond),
    start_sleepers(?MILLION, Late),
    bench_system:wait_until_only(Before),
    Elapsed = erlang:monotonic_time(nanosecond) - Begin,
    Used = bench_system:cpu_seconds() - Cpu,
    Result = bench:finish_after(?MILLION, Elapsed),
    Sorted = lists:sort([atomics:get(Late, I) || I <- lists:seq(1, ?MILLION)]),
    bench:expect(true, hd(Sorted) > 0), % below: one fired early; 0: one did not fire
    Result
        ++ [{"wall_s", Elapsed / 1.0e9},
            {"cpu_s", Used},
            {"late_p50_us", percentile(Sorted, 50)},
            {"late_p99_us", percentile(Sorted, 99)}].

start_sleepers(0, _) ->
    ok;
start_sleepers(I, Late) ->
    Milliseconds = rand:uniform(1000) - 1,
    spawn(fun() -> sleep(Milliseconds, I, Late) end),
    start_sleepers(I - 1, Late).

sleep(Milliseconds, I, Late) ->
    Due = erlang:monotonic_time(nanosecond) + Milliseconds * 1000000,
    timer:sleep(Milliseconds),
    atomics:put(Late, I, erlang:monotonic_time(nanosecond) - Due).

%% In microseconds, of sorted nanoseconds.
percentile(Sorted, Percent) ->
    lists:nth(?MILLION * Percent div 100 + 1, Sorted) / 1000.
