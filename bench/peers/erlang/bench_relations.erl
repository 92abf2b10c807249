%% SPDX-License-Identifier: MIT
%% Workloads of processes that ask each other, that hear of each other's end, and that have names.
-module(bench_relations).
-behaviour(gen_server).

-export([call/1, link_storm/0, mailbox_end/0, monitor/0, monitor_storm/0, name_find/0,
         publish/0]).
-export([handle_call/3, handle_cast/2, init/1]).

-define(MILLION, 1000000).

now_ns() ->
    erlang:monotonic_time(nanosecond).

%% ---- call, call-timeout: one asks, the other answers ----

init([]) -> {ok, none}.

handle_call(ask, _, State) -> {reply, answer, State}.

handle_cast(_, State) -> {noreply, State}.

call(Timeout) ->
    {ok, Server} = gen_server:start(?MODULE, [], []),
    Begin = now_ns(),
    ask(Server, Timeout, ?MILLION),
    Result = bench:finish(?MILLION, Begin),
    gen_server:stop(Server),
    Result.

ask(_, _, 0) ->
    ok;
ask(Server, Timeout, Left) ->
    answer = gen_server:call(Server, ask, Timeout),
    ask(Server, Timeout, Left - 1).

%% ---- monitor: set and taken back ----

monitor() ->
    Idler = spawn(fun() -> receive stop -> ok end end),
    Begin = now_ns(),
    watch_and_stop(Idler, ?MILLION),
    Result = bench:finish(?MILLION, Begin),
    Idler ! stop,
    Result.

watch_and_stop(_, 0) ->
    ok;
watch_and_stop(Idler, Left) ->
    true = erlang:demonitor(erlang:monitor(process, Idler), [flush]),
    watch_and_stop(Idler, Left - 1).

%% ---- a heartbeat beside all that follows ----

%% Timers have a resolution of a millisecond. Tells how late it was at most.
beat(Latest) ->
    Due = now_ns() div 1000000 + 2,
    erlang:send_after(Due, self(), beat, [{abs, true}]),
    receive
        beat -> ok
    end,
    Late = max(Latest, now_ns() - Due * 1000000),
    receive
        {stop, From} -> From ! {late, Late}
    after 0 ->
        beat(Late)
    end.

%% Runs `Storm`, which says when it began, beside a heartbeat; how late that was at most, and the
%% processor time.
beside_heart(Size, Storm) ->
    Heart = spawn(fun() -> beat(0) end),
    timer:sleep(20),
    Cpu = bench_system:cpu_seconds(),
    Begin = now_ns(),
    Storm(),
    Elapsed = now_ns() - Begin,
    Used = bench_system:cpu_seconds() - Cpu,
    Heart ! {stop, self()},
    Late = receive {late, Most} -> Most end,
    bench:finish_after(Size, Elapsed)
        ++ [{"wall_s", Elapsed / 1.0e9}, {"cpu_s", Used}, {"max_ms", Late / 1.0e6}].

wait_for(Counter, Count) ->
    case counters:get(Counter, 1) of
        Count ->
            ok;
        _ ->
            timer:sleep(1),
            wait_for(Counter, Count)
    end.

repeat(0, _) ->
    ok;
repeat(Times, Action) ->
    Action(),
    repeat(Times - 1, Action).

%% ---- monitor-storm: a process ends, and a million that watch it are told ----

monitor_storm() ->
    Subject = spawn(fun() -> receive stop -> ok end end),
    Watching = counters:new(1, [write_concurrency]),
    Told = counters:new(1, [write_concurrency]),
    repeat(?MILLION, fun() -> spawn(fun() -> watch(Subject, Watching, Told) end) end),
    wait_for(Watching, ?MILLION),
    beside_heart(?MILLION,
                 fun() ->
                    Subject ! stop,
                    wait_for(Told, ?MILLION)
                 end).

%% It lives on, as a process that watches a service would.
watch(Subject, Watching, Told) ->
    Monitor = erlang:monitor(process, Subject),
    counters:add(Watching, 1, 1),
    receive
        {'DOWN', Monitor, process, Subject, normal} -> counters:add(Told, 1, 1)
    end,
    receive
        stop -> ok
    end.

%% ---- link-storm: a process fails, and 100,000 that are linked to it end with it ----

-define(MEMBERS, 100000).

link_storm() ->
    Before = erlang:system_info(process_count),
    Self = self(),
    Leader =
        spawn(fun() ->
                 repeat(?MEMBERS, fun() -> spawn_link(fun() -> receive stop -> ok end end) end),
                 Self ! linked,
                 receive stop -> exit(failed) end
              end),
    receive
        linked -> ok
    end,
    beside_heart(?MEMBERS,
                 fun() ->
                    Leader ! stop,
                    bench_system:wait_until_only(Before + 1) % and the heart
                 end).

%% ---- burst-exit: a process ends with a million messages ----

mailbox_end() ->
    {Hoarder, Monitor} = spawn_monitor(fun() -> receive {stop, now} -> ok end end),
    repeat(?MILLION, fun() -> Hoarder ! 1 end),
    beside_heart(1,
                 fun() ->
                    exit(Hoarder, kill),
                    receive
                        {'DOWN', Monitor, process, Hoarder, killed} -> ok
                    end
                 end).

%% ---- name-find: finding one of 1,000 processes by its name ----

-define(NAMES, 1000).
-define(FINDS, 10000000).

name_find() ->
    Names = [list_to_atom("process " ++ integer_to_list(I)) || I <- lists:seq(1, ?NAMES)],
    [register(Name, spawn(fun() -> receive stop -> ok end end)) || Name <- Names],
    Begin = now_ns(),
    repeat(?FINDS div ?NAMES, fun() -> find_all(Names) end),
    bench:finish(?FINDS, Begin).

find_all([]) ->
    ok;
find_all([Name | Names]) ->
    true = is_pid(whereis(Name)),
    find_all(Names).

%% ---- publish: a message to a group of 100,000, ten times, until all have it ----

-define(ROUNDS, 10).

publish() ->
    {ok, _} = pg:start(?MODULE),
    Got = counters:new(1, [write_concurrency]),
    Members = [spawn(fun() -> listen(Got) end) || _ <- lists:seq(1, ?MEMBERS)],
    ok = pg:join(?MODULE, members, Members), % all at once: each join copies the list of members
    News = binary:copy(<<"news">>, 16),
    beside_heart(?MEMBERS * ?ROUNDS,
                 fun() ->
                    repeat(?ROUNDS, fun() -> broadcast(pg:get_members(?MODULE, members), News) end),
                    wait_for(Got, ?MEMBERS * ?ROUNDS)
                 end).

listen(Got) ->
    receive
        {news, News} when byte_size(News) =:= 64 ->
            counters:add(Got, 1, 1),
            listen(Got)
    end.

broadcast([], _) ->
    ok;
broadcast([Member | Members], News) ->
    Member ! {news, News},
    broadcast(Members, News).
