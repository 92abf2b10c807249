%% SPDX-License-Identifier: MIT
%% The workloads of `skua bench` in Erlang, with the same parameters and the same checks. One run of
%% the program is one run of one workload; the script `run` starts it.
%%
%% There are no `submit` and `stop`: Erlang has no threads beside those that run processes, and one
%% of a NIF can send but not spawn.
-module(bench).

-export([main/0, expect/2, finish/2, finish_after/2]).

workloads() ->
    [{"spawn", fun bench_processes:spawn_many/0},
     {"pingpong", fun bench_messages:pingpong/0},
     {"pairs", fun bench_messages:pairs/0},
     {"ring", fun() -> bench_messages:ring(1) end},
     {"ring100", fun() -> bench_messages:ring(100) end},
     {"fanin", fun bench_messages:fanin/0},
     {"fanout", fun bench_messages:fanout/0},
     {"skynet", fun bench_processes:skynet/0},
     {"fib", fun bench_processes:fib/0},
     {"skynet-inline", fun bench_processes:skynet_inline/0},
     {"fib-inline", fun bench_processes:fib_inline/0},
     {"steal", fun bench_processes:steal/0},
     {"yield", fun bench_messages:yield/0},
     {"call", fun() -> bench_relations:call(infinity) end},
     {"call-timeout", fun() -> bench_relations:call(10000) end},
     {"monitor", fun bench_relations:monitor/0},
     {"monitor-storm", fun bench_relations:monitor_storm/0},
     {"link-storm", fun bench_relations:link_storm/0},
     {"burst-exit", fun bench_relations:mailbox_end/0},
     {"publish", fun bench_relations:publish/0},
     {"restart", fun bench_supervising:restart/0},
     {"stop-children", fun bench_supervising:stop_children/0},
     {"name-find", fun bench_relations:name_find/0},
     %% A process is straight-line code already.
     {"task-pingpong", fun bench_messages:pingpong/0},
     {"task-spawn", fun bench_processes:spawn_many/0},
     {"task-memory", fun bench_idle:memory/0},
     {"idle-memory", fun bench_idle:memory/0},
     {"idle-cpu", fun bench_idle:cpu/0},
     {"timers", fun bench_idle:timers/0},
     {"wake", fun bench_wake:wake/0},
     {"heartbeat-4x5ms", fun() -> bench_latency:heartbeat(4, 5000000) end},
     {"heartbeat-50x1ms", fun() -> bench_latency:heartbeat(50, 1000000) end},
     {"heartbeat-500x0.1ms", fun() -> bench_latency:heartbeat(500, 100000) end},
     {"child-latency", fun bench_latency:child/0}].

main() ->
    case init:get_plain_arguments() of
        ["--list"] ->
            [io:put_chars([Name, $\n]) || {Name, _} <- workloads()],
            halt(0);
        [Name, Workers] ->
            measure(lists:keyfind(Name, 1, workloads()), string:to_integer(Workers));
        _ ->
            refuse("usage: run --list | run WORKLOAD WORKERS")
    end.

measure(false, _) ->
    refuse("there is no such workload");
measure({Name, Workload}, {Workers, ""}) when Workers > 0 ->
    {_, Monitor} = spawn_monitor(fun() -> exit({measured, Workload()}) end),
    receive
        {'DOWN', Monitor, process, _, {measured, Result}} ->
            report([{"workload", Name}, {"workers", Workers} | Result]),
            halt(0);
        {'DOWN', Monitor, process, _, Reason} ->
            complain(io_lib:format("~p", [Reason])),
            halt(1)
    end;
measure(_, _) ->
    refuse("WORKERS is a number from 1").

refuse(Why) ->
    complain(Why),
    halt(2).

complain(Why) ->
    io:put_chars(standard_error, [Why, $\n]).

report(Result) ->
    Fields = [io_lib:format("\"~s\": ~s", [Name, json(Value)]) || {Name, Value} <- Result],
    io:format("{~s}~n", [lists:join(", ", Fields)]).

json(Value) when is_integer(Value) -> integer_to_list(Value);
json(Value) when is_float(Value) -> io_lib:format("~.3f", [Value]);
json(Value) -> [$", Value, $"].

%% Ends the run with a message unless the result is right.
expect(Result, Result) -> ok;
expect(Expected, Result) -> exit({wrong_result, Result, expected, Expected}).

%% The measurement of so many operations since `Begin`.
finish(Ops, Begin) ->
    finish_after(Ops, erlang:monotonic_time(nanosecond) - Begin).

finish_after(Ops, Elapsed) ->
    [{"ops", Ops}, {"ns_per_op", Elapsed / Ops}, {"rss_bytes", bench_system:resident_bytes()}].
