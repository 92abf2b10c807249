%% SPDX-License-Identifier: MIT
%% Workloads of processes that compute, and of what has to run beside them.
-module(bench_latency).

-export([child/0, heartbeat/2]).

%% ---- fixed work ----

%% Cut to 32 bits, as whole numbers have no end here and would leave their registers.
compute(0, Work) -> Work;
compute(Turns, Work) -> compute(Turns - 1, (Work * 3 + Turns) band 16#ffffffff).

%% Short ones: some are not interrupted, even on a busy machine.
-define(TRIALS, 1000).
-define(TRIAL_TURNS, 100000).

%% How many turns take so long on a CPU that has nothing else to do, by the fastest of all trials.
turns_of(Nanoseconds) ->
    Fastest = lists:min([time_trial() || _ <- lists:seq(1, ?TRIALS)]),
    Nanoseconds * ?TRIAL_TURNS div Fastest.

time_trial() ->
    Begin = now_ns(),
    compute(?TRIAL_TURNS, 1),
    now_ns() - Begin.

now_ns() ->
    erlang:monotonic_time(nanosecond).

%% So many of a thousand are below it.
permille(Values, Permille) ->
    Sorted = lists:sort(Values),
    lists:nth(length(Sorted) * Permille div 1000 + 1, Sorted).

milliseconds(Nanoseconds) ->
    Nanoseconds / 1.0e6.

%% ---- heartbeat: a process beats a thousand times a second beside others that compute ----

-define(PERIOD, 1000000).
-define(BEATS, 2000).
-define(WARM_MS, 100).
%% Before the heartbeat, and again after it.
-define(ALONE_MS, 500).

heartbeat(Crunchers, StepNanoseconds) ->
    Turns = turns_of(StepNanoseconds),
    Steps = counters:new(1, [atomics]),
    Busy = [spawn_monitor(fun() -> crunch(Turns, Steps) end) || _ <- lists:seq(1, Crunchers)],
    timer:sleep(?WARM_MS),
    First = watch_alone(Steps),
    process_flag(priority, high), % as a process has it that must not be late
    {Late, Between, Beside} = beat(Steps),
    process_flag(priority, normal),
    Second = watch_alone(Steps),
    [exit(Cruncher, kill) || {Cruncher, _} <- Busy],
    [await_end(Monitor) || {_, Monitor} <- Busy],
    bench:expect(true, lists:min(Late) >= 0), % below: one is early
    P99 = permille(Late, 990),
    bench:finish_after(length(Late), P99 * length(Late))
        ++ [{"p50_ms", milliseconds(permille(Late, 500))},
            {"p99_ms", milliseconds(P99)},
            {"p999_ms", milliseconds(permille(Late, 999))},
            {"steps_between_p50", permille(Between, 500)},
            {"steps_between_p99", permille(Between, 990)},
            {"steps_per_second", per_second(Beside)},
            {"throughput_share", per_second(Beside) / per_second(add(First, Second))}].

%% A step takes at least 0.1 ms: counting it costs nothing.
crunch(Turns, Steps) ->
    compute(Turns, 1),
    counters:add(Steps, 1, 1),
    crunch(Turns, Steps).

await_end(Monitor) ->
    receive
        {'DOWN', Monitor, process, _, Reason} -> bench:expect(killed, Reason)
    end.

%% How many steps there were in a time.
watch_alone(Steps) ->
    Before = counters:get(Steps, 1),
    Begin = now_ns(),
    timer:sleep(?ALONE_MS),
    {counters:get(Steps, 1) - Before, now_ns() - Begin}.

add({Steps, Elapsed}, {MoreSteps, MoreElapsed}) ->
    {Steps + MoreSteps, Elapsed + MoreElapsed}.

per_second({Steps, Elapsed}) ->
    Steps * 1.0e9 / Elapsed.

%% Returns how late each beat was, how many steps there were between two, and the steps beside them.
%% The first instant is a whole millisecond, as those of all timers are.
beat(Steps) ->
    Begin = (now_ns() div ?PERIOD + 1) * ?PERIOD,
    First = counters:get(Steps, 1),
    {Late, Between, {Last, End}} = beat(1, Begin, First, Steps, [], []),
    {Late, Between, {Last - First, End - Begin}}.

%% Beats that are missed altogether are left out: the next one is that after now.
beat(Next, Begin, Before, Steps, Late, Between) ->
    Due = Begin + Next * ?PERIOD,
    erlang:send_after(Due div ?PERIOD, self(), beat, [{abs, true}]),
    receive
        beat -> ok
    end,
    Now = now_ns(),
    Done = counters:get(Steps, 1),
    NowLate = [Now - Due | Late],
    NowBetween = [Done - Before | Between],
    case (Now - Begin) div ?PERIOD + 1 of
        Coming when Coming > ?BEATS ->
            {NowLate, NowBetween, {Done, Now}};
        Coming ->
            beat(Coming, Begin, Done, Steps, NowLate, NowBetween)
    end.

%% ---- child-latency: a process starts another and computes on ----

-define(CHILDREN, 500).
-define(COMPUTE, 2000000).
-define(PAUSE_MS, 1).

child() ->
    Turns = turns_of(?COMPUTE),
    start_children(?CHILDREN, Turns),
    Waits = [receive {wait, Wait} -> Wait end || _ <- lists:seq(1, ?CHILDREN)],
    P99 = permille(Waits, 990),
    bench:finish_after(?CHILDREN, P99 * ?CHILDREN)
        ++ [{"p50_ms", milliseconds(permille(Waits, 500))}, {"p99_ms", milliseconds(P99)}].

start_children(0, _) ->
    ok;
start_children(Children, Turns) ->
    timer:sleep(?PAUSE_MS),
    Self = self(),
    Spawned = now_ns(),
    spawn(fun() -> Self ! {wait, now_ns() - Spawned} end),
    compute(Turns, 1),
    start_children(Children - 1, Turns).
