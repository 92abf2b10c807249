%% SPDX-License-Identifier: MIT
%% Workloads of processes that talk.
-module(bench_messages).

-export([fanin/0, fanout/0, pairs/0, pingpong/0, ring/1, yield/0]).

-define(MILLION, 1000000).

%% Waits for so many messages.
await(_, 0) ->
    ok;
await(Message, Missing) ->
    receive
        Message -> await(Message, Missing - 1)
    end.

%% ---- pingpong and pairs: two processes, or many twos, and round trips ----

%% Answers whoever tells its name.
pong() ->
    receive
        stop ->
            ok;
        From ->
            From ! pong,
            pong()
    end.

ping(_, 0) ->
    ok;
ping(Pong, RoundTrips) ->
    Pong ! self(),
    receive
        pong -> ping(Pong, RoundTrips - 1)
    end.

play(RoundTrips) ->
    Pong = spawn(fun pong/0),
    ping(Pong, RoundTrips),
    Pong ! stop.

pingpong() ->
    Begin = erlang:monotonic_time(nanosecond),
    play(?MILLION),
    bench:finish(2 * ?MILLION, Begin).

-define(PAIRS, 1000).
-define(ROUND_TRIPS, 1000).

pairs() ->
    Self = self(),
    Begin = erlang:monotonic_time(nanosecond),
    Pair = fun() ->
              play(?ROUND_TRIPS),
              Self ! done
           end,
    [spawn(Pair) || _ <- lists:seq(1, ?PAIRS)],
    await(done, ?PAIRS),
    bench:finish(2 * ?PAIRS * ?ROUND_TRIPS, Begin).

%% ---- ring: processes in a circle pass tokens on ----

-define(RING_LENGTH, 1000).

%% A token is a number: how often it is still to be passed on.
node_loop(Next, Root) ->
    receive
        0 -> Root ! ended;
        Left -> Next ! Left - 1
    end,
    node_loop(Next, Root).

%% The last node comes first; it hears of the first one when that exists.
ring(Tokens) ->
    Root = self(),
    Begin = erlang:monotonic_time(nanosecond),
    Last = spawn(fun() -> receive {next, Next} -> node_loop(Next, Root) end end),
    Nodes = [First | _] = build_ring(?RING_LENGTH - 1, [Last], Root),
    Last ! {next, First},
    put_tokens(Nodes, ?RING_LENGTH div Tokens, ?MILLION div Tokens - 1),
    await(ended, Tokens),
    bench:finish(?MILLION, Begin).

build_ring(0, Nodes, _) ->
    Nodes;
build_ring(Missing, Nodes = [Next | _], Root) ->
    Node = spawn(fun() -> node_loop(Next, Root) end),
    build_ring(Missing - 1, [Node | Nodes], Root).

put_tokens([], _, _) ->
    ok;
put_tokens(Nodes = [Node | _], Distance, Hops) ->
    Node ! Hops,
    put_tokens(lists:nthtail(Distance, Nodes), Distance, Hops).

%% ---- fanin: many producers, one consumer ----

-define(PRODUCERS, 100).
-define(PRODUCE_EACH, 10000).

%% Messages are kept off the consumer's heap, as is usual for a process that many send to at once:
%% senders then need not wait for each other.
fanin() ->
    process_flag(message_queue_data, off_heap),
    Consumer = self(),
    Begin = erlang:monotonic_time(nanosecond),
    [spawn(fun() -> produce(Consumer, 0) end) || _ <- lists:seq(1, ?PRODUCERS)],
    Sum = consume(?PRODUCERS * ?PRODUCE_EACH, 0),
    Result = bench:finish(?PRODUCERS * ?PRODUCE_EACH, Begin),
    bench:expect(?PRODUCERS * ?PRODUCE_EACH * (?PRODUCE_EACH - 1) div 2, Sum),
    Result.

produce(_, ?PRODUCE_EACH) ->
    ok;
produce(Consumer, Number) ->
    Consumer ! Number,
    produce(Consumer, Number + 1).

consume(0, Sum) ->
    Sum;
consume(Missing, Sum) ->
    receive
        Number -> consume(Missing - 1, Sum + Number)
    end.

%% ---- fanout: one asks many, all answer, and again ----

-define(LISTENERS, 1000).
-define(ROUNDS, 1000).

fanout() ->
    Begin = erlang:monotonic_time(nanosecond),
    Listeners = [spawn(fun pong/0) || _ <- lists:seq(1, ?LISTENERS)],
    ask(Listeners, ?ROUNDS),
    bench:finish(2 * ?LISTENERS * ?ROUNDS, Begin).

ask(_, 0) ->
    ok;
ask(Listeners, Rounds) ->
    Self = self(),
    lists:foreach(fun(Listener) -> Listener ! Self end, Listeners),
    await(pong, ?LISTENERS),
    ask(Listeners, Rounds - 1).

%% ---- yield: a process that gives way a million times ----

yield() ->
    Begin = erlang:monotonic_time(nanosecond),
    give_way(?MILLION),
    bench:finish(?MILLION, Begin).

give_way(0) ->
    ok;
give_way(Times) ->
    erlang:yield(),
    give_way(Times - 1).
