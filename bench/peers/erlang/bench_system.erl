%% SPDX-License-Identifier: MIT
%% What the system knows of this program, and a way to wait for processes.
-module(bench_system).

-export([context_switches/1, cpu_seconds/0, resident_bytes/0, wait_until_only/1]).

resident_bytes() ->
    {ok, Status} = file:read_file("/proc/self/status"),
    {match, [Kilobytes]} = re:run(Status, "VmRSS:\\s*(\\d+) kB", [{capture, [1], binary}]),
    binary_to_integer(Kilobytes) * 1024.

%% User and system time of all threads, in seconds. The system has them in hundredths, as fields
%% twelve and thirteen behind the program's name, which is in parentheses.
cpu_seconds() ->
    {ok, Stat} = file:read_file("/proc/self/stat"),
    [_, Fields] = binary:split(Stat, <<") ">>),
    [User, System | _] = lists:nthtail(11, binary:split(Fields, <<" ">>, [global])),
    (binary_to_integer(User) + binary_to_integer(System)) / 100.

%% Context switches of all threads in the next seconds, once they have come to rest. A program of
%% its own counts them: doing it here would wake schedulers.
context_switches(Seconds) ->
    Script =
        "count() { cat /proc/~s/task/*/status |"
        "    awk '/ctxt_switches/ { n += $2 } END { print n }'; };"
        "sleep 0.5; before=$(count); sleep ~b; echo $(($(count) - before))",
    Printed = os:cmd(lists:flatten(io_lib:format(Script, [os:getpid(), Seconds]))),
    list_to_integer(string:trim(Printed)).

%% Waits until there are no more processes than this.
wait_until_only(Count) ->
    case erlang:system_info(process_count) > Count of
        true ->
            timer:sleep(1),
            wait_until_only(Count);
        false ->
            ok
    end.
