%% SPDX-License-Identifier: MIT
%% Workloads of supervisors.
-module(bench_supervising).
-behaviour(supervisor).

-export([restart/0, stop_children/0]).
-export([init/1, start_child/2, start_idler/0]).

%% ---- restart: what it takes to start a child again, beyond a start ----

-define(RESTARTS, 200000).
-define(RESTARTS_EACH, 20).

%% What fails is logged by default; a program that fails by design has no use for that, and Skua logs
%% nothing either.
%%
%% With each restart a supervisor of Erlang looks through those of the last second. One that makes
%% hundreds of thousands, as Skua's does here, would do little else. So there are many, one after the
%% other, and each makes a few.
restart() ->
    ok = logger:set_primary_config(level, none),
    Children = [start_failing() || _ <- lists:seq(1, ?RESTARTS div ?RESTARTS_EACH)],
    Chain = time(fun() -> chain(?RESTARTS) end),
    Restarts = time(fun() -> [fail(Child) || Child <- Children] end),
    bench:finish_after(?RESTARTS, Restarts) ++ [{"beyond_ns", (Restarts - Chain) / ?RESTARTS}].

time(Action) ->
    Begin = erlang:monotonic_time(nanosecond),
    Action(),
    erlang:monotonic_time(nanosecond) - Begin.

%% The same number of starts and ends: each starts the next.
chain(Count) ->
    Self = self(),
    spawn(fun() -> live(Count, Self) end),
    receive over -> ok end.

live(1, Last) ->
    Last ! over;
live(Left, Last) ->
    spawn(fun() -> live(Left - 1, Last) end).

%% Returns the child, which waits to be told to fail.
start_failing() ->
    Self = self(),
    {ok, Supervisor} = supervisor:start_link(?MODULE, {restart, atomics:new(1, []), Self}),
    [{child, Child, worker, _}] = supervisor:which_children(Supervisor),
    Child.

fail(Child) ->
    Child ! fail,
    receive over -> ok end.

%% A child without an init of its own needs no acknowledgement: proc_lib:spawn_link.
start_child(Lives, Last) ->
    {ok, proc_lib:spawn_link(fun() -> fail_unless_last(atomics:add_get(Lives, 1, 1), Last) end)}.

%% It fails in its first moment, but for the first time, when it waits, and for the last.
fail_unless_last(1, _) ->
    receive fail -> exit(failed) end;
fail_unless_last(Life, _) when Life =< ?RESTARTS_EACH ->
    exit(failed);
fail_unless_last(_, Last) ->
    Last ! over,
    receive stop -> ok end.

%% ---- stop-children: 10,000 children of a template, stopped at once ----

-define(CHILDREN, 10000).

%% simple_one_for_one stops its children all at once, as a supervisor of Skua does with those of a
%% template.
stop_children() ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, crowd),
    [{ok, _} = supervisor:start_child(Supervisor, []) || _ <- lists:seq(1, ?CHILDREN)],
    bench:expect(?CHILDREN, proplists:get_value(active, supervisor:count_children(Supervisor))),
    unlink(Supervisor),
    Monitor = erlang:monitor(process, Supervisor),
    Begin = erlang:monotonic_time(nanosecond),
    exit(Supervisor, shutdown),
    receive
        {'DOWN', Monitor, process, Supervisor, shutdown} -> ok
    end,
    bench:finish(?CHILDREN, Begin).

start_idler() ->
    {ok, proc_lib:spawn_link(fun() -> receive stop -> ok end end)}.

init({restart, Lives, Last}) ->
    {ok,
     {#{strategy => one_for_one, intensity => ?RESTARTS_EACH, period => 1},
      [#{id => child, start => {?MODULE, start_child, [Lives, Last]}, restart => transient}]}};
init(crowd) ->
    {ok,
     {#{strategy => simple_one_for_one},
      [#{id => idle, start => {?MODULE, start_idler, []}, shutdown => 5000}]}}.
