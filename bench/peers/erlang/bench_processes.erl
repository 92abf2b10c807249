%% SPDX-License-Identifier: MIT
%% Workloads of processes that start and end.
-module(bench_processes).

-export([fib/0, fib_inline/0, skynet/0, skynet_inline/0, spawn_many/0, steal/0]).

-define(MILLION, 1000000).

repeat(0, _) ->
    ok;
repeat(Times, Action) ->
    Action(),
    repeat(Times - 1, Action).

%% Adds up the numbers that so many children tell.
gather(0, Sum) ->
    Sum;
gather(Missing, Sum) ->
    receive
        Number -> gather(Missing - 1, Sum + Number)
    end.

%% ---- spawn: a million processes that end at once, started from inside one ----

spawn_many() ->
    Before = erlang:system_info(process_count),
    Begin = erlang:monotonic_time(nanosecond),
    repeat(?MILLION, fun() -> spawn(fun() -> ok end) end),
    bench_system:wait_until_only(Before),
    bench:finish(?MILLION, Begin).

%% ---- skynet: a tree of ten branches each ----

-define(SKYNET_DEGREE, 10).
-define(SKYNET_PROCESSES, 1111111).

skynet() ->
    Self = self(),
    Begin = erlang:monotonic_time(nanosecond),
    spawn(fun() -> skynet_branch(Self, 0, ?MILLION) end),
    Sum = gather(1, 0),
    Result = bench:finish(?SKYNET_PROCESSES, Begin),
    bench:expect(?MILLION * (?MILLION - 1) div 2, Sum),
    Result.

skynet_branch(Parent, First, 1) ->
    Parent ! First;
skynet_branch(Parent, First, Size) ->
    start_branches(self(), First, Size div ?SKYNET_DEGREE, ?SKYNET_DEGREE),
    Parent ! gather(?SKYNET_DEGREE, 0).

start_branches(_, _, _, 0) ->
    ok;
start_branches(Parent, First, Share, Left) ->
    spawn(fun() -> skynet_branch(Parent, First, Share) end),
    start_branches(Parent, First + Share, Share, Left - 1).

%% As such trees are really written: a process has one of its branches itself. Which child a number
%% is from says its tag: those of a branch that is not over are in the same mailbox.
skynet_inline() ->
    Begin = erlang:monotonic_time(nanosecond),
    Sum = skynet_sum(0, ?MILLION),
    Result = bench:finish(?SKYNET_PROCESSES, Begin),
    bench:expect(?MILLION * (?MILLION - 1) div 2, Sum),
    Result.

skynet_sum(First, 1) ->
    First;
skynet_sum(First, Size) ->
    Share = Size div ?SKYNET_DEGREE,
    start_sums(self(), First + Share, Share, ?SKYNET_DEGREE - 1),
    gather_tagged(Share, ?SKYNET_DEGREE - 1, skynet_sum(First, Share)).

start_sums(_, _, _, 0) ->
    ok;
start_sums(Parent, First, Share, Left) ->
    spawn(fun() -> Parent ! {Share, skynet_sum(First, Share)} end),
    start_sums(Parent, First + Share, Share, Left - 1).

gather_tagged(_, 0, Sum) ->
    Sum;
gather_tagged(Tag, Missing, Sum) ->
    receive
        {Tag, Number} -> gather_tagged(Tag, Missing - 1, Sum + Number)
    end.

%% ---- fib: a process for every call ----

-define(FIB_N, 30).
-define(FIB_RESULT, 832040).
-define(FIB_PROCESSES, 2692537).

fib() ->
    Self = self(),
    Begin = erlang:monotonic_time(nanosecond),
    spawn(fun() -> fib_call(Self, ?FIB_N) end),
    Number = gather(1, 0),
    Result = bench:finish(?FIB_PROCESSES, Begin),
    bench:expect(?FIB_RESULT, Number),
    Result.

fib_call(Parent, N) when N < 2 ->
    Parent ! N;
fib_call(Parent, N) ->
    Self = self(),
    spawn(fun() -> fib_call(Self, N - 1) end),
    spawn(fun() -> fib_call(Self, N - 2) end),
    Parent ! gather(2, 0).

fib_inline() ->
    Begin = erlang:monotonic_time(nanosecond),
    Number = fib_number(?FIB_N),
    Result = bench:finish(?FIB_PROCESSES, Begin),
    bench:expect(?FIB_RESULT, Number),
    Result.

fib_number(N) when N < 2 ->
    N;
fib_number(N) ->
    Self = self(),
    spawn(fun() -> Self ! {N, fib_number(N - 1)} end),
    gather_tagged(N, 1, fib_number(N - 2)).

%% ---- steal: one process starts tasks of uneven length ----

-define(TASKS, 20000).
-define(TURNS_MAX, 20000).
%% A prime: the lengths differ, and are the same in every run.
-define(TURNS_STEP, 7919).

steal() ->
    Before = erlang:system_info(process_count),
    Begin = erlang:monotonic_time(nanosecond),
    start_tasks(0),
    bench_system:wait_until_only(Before),
    bench:finish(?TASKS, Begin).

start_tasks(?TASKS) ->
    ok;
start_tasks(I) ->
    spawn(fun() -> turn(0, I * ?TURNS_STEP rem ?TURNS_MAX, 1) end),
    start_tasks(I + 1).

%% Cut to 32 bits, as whole numbers have no end here and would leave their registers.
turn(Turns, Turns, Work) -> Work;
turn(I, Turns, Work) -> turn(I + 1, Turns, (Work * 3 + I) band 16#ffffffff).
