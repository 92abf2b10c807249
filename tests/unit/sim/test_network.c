/* SPDX-License-Identifier: MIT */
/* The simulated network without faults, as a transport: addresses, connections, bytes, windows,
 * ends. */
#include <errno.h>

#include "network_rig.h"

#define NO_FAULTS ((skua_sim_network){0})

/* Nobody holds a number any more, and all bytes are accounted for. */
static void assert_all_closed(void)
{
    const struct network_accounts accounts = network_audit(net.network);
    assert_int_equal(accounts.opened, accounts.closed);
}

/* ---- connecting ---- */

TEST(a_connection_needs_a_round_trip_and_an_accept)
{
    net_open(1, NO_FAULTS);
    const uint64_t began = net_now();
    const int listener = net_listen(1, "10.0.0.1:80");
    const int client = net_connect(2, "10.0.0.1:80");
    assert_int_equal(net_connected(client), -EINPROGRESS);
    assert_int_equal(net_accept(listener), -EAGAIN);
    net_run();
    assert_true(net_now() >= began + 2 * net.sim.config.faults.network.latency_ns);
    assert_int_equal(net_reports(client), SOCKET_WRITABLE);
    assert_int_equal(net_reports(listener), SOCKET_READABLE);
    assert_int_equal(net_connected(client), 0);
    const int server = net_accept(listener);
    assert_address(server, false, "10.0.0.1:80");
    assert_address(server, true, "10.0.0.2:49152");
    assert_address(client, false, "10.0.0.2:49152");
    assert_address(client, true, "10.0.0.1:80");
    net_close_pair(&(struct net_pair){listener, client, server});
    assert_all_closed();
}

TEST(a_connect_that_nobody_listens_for_is_refused)
{
    static const struct {
        const char *address;
        int error;
    } rows[] = {
        {"10.0.0.1:81", ECONNREFUSED},  {"10.0.0.2:80", ECONNREFUSED},
        {"127.0.0.1:80", ECONNREFUSED}, {"unix:@name", ECONNREFUSED},
        {"unix:/name", ENOENT},         {"[::1]:80", ECONNREFUSED},
    };
    FOR_ROWS (row, rows) {
        net_open(1, NO_FAULTS);
        const int listener = net_listen(1, "10.0.0.1:80");
        const int client = net_connect(2, row->address);
        net_run();
        assert_int_equal(net_connected(client), -row->error);
        assert_int_equal(net_reports(client), SOCKET_FAILED);
        net_close(client);
        net_close(listener);
        assert_all_closed();
    }
}

TEST(addresses_without_a_host_cannot_be_reached)
{
    net_open(1, NO_FAULTS);
    assert_int_equal(net_connect(1, "10.0.0.99:80"), -EHOSTUNREACH);
    assert_int_equal(net_connect(1, "10.0.1.1:80"), -ENETUNREACH);
    assert_int_equal(net_connect(1, "[2001:db8::1]:80"), -ENETUNREACH);
    assert_int_equal(net_listen(1, "10.0.0.2:80"), -EADDRNOTAVAIL);
    assert_int_equal(net_listen(1, "[2001:db8::1]:80"), -EADDRNOTAVAIL);
    assert_int_equal(net_connect_from(1, "10.0.0.2:80", "10.0.0.3:0"), -EADDRNOTAVAIL);
    assert_int_equal(net_connect_from(1, "10.0.0.2:80", "unix:@x"), -EINVAL);
}

/* Which addresses lead to a listener, from its own host and from another one. */
TEST(listeners_take_what_is_meant_for_them)
{
    static const struct {
        const char *bound;
        const char *address;
        uint32_t from;
        bool arrives;
    } rows[] = {
        {"0.0.0.0:80", "10.0.0.1:80", 1, true},    {"0.0.0.0:80", "10.0.0.1:80", 2, true},
        {"0.0.0.0:80", "127.0.0.1:80", 1, true},   {"0.0.0.0:80", "127.0.0.1:80", 2, false},
        {"127.0.0.1:80", "10.0.0.1:80", 2, false}, {"127.0.0.1:80", "0.0.0.0:80", 1, true},
        {"10.0.0.1:80", "127.0.0.1:80", 1, false}, {"[::1]:80", "[::1]:80", 1, true},
        {"[::]:80", "[::1]:80", 1, true},          {"[::1]:80", "[::]:80", 1, true},
        {"[::]:80", "127.0.0.1:80", 1, false},     {"unix:/a", "unix:/a", 1, true},
        {"unix:/a", "unix:/a", 2, false},          {"unix:@a", "unix:@a", 1, true},
        {"unix:@a", "unix:@ab", 1, false},
    };
    FOR_ROWS (row, rows) {
        net_open(1, NO_FAULTS);
        const int listener = net_listen(1, row->bound);
        const int client = net_connect(row->from, row->address);
        net_run();
        assert_int_equal(net_connected(client) == 0, row->arrives);
        net_close(client);
        net_close(listener);
        assert_all_closed();
    }
}

TEST(an_address_has_one_listener_unless_they_share_it)
{
    const skua_listen_options shares = {.reuseport = true};
    net_open(1, NO_FAULTS);
    const int first = net_listen(1, "127.0.0.1:80");
    assert_int_equal(net_listen(1, "127.0.0.1:80"), -EADDRINUSE);
    assert_int_equal(net_listen(1, "0.0.0.0:80"), -EADDRINUSE);
    assert_int_equal(net_listen_with(1, "0.0.0.0:80", shares), -EADDRINUSE);
    const int other = net_listen(1, "10.0.0.1:80");
    const int elsewhere = net_listen(2, "0.0.0.0:80");
    net_close(first);
    const int again = net_listen(1, "127.0.0.1:80");
    const int a = net_listen_with(1, "unix:@x", shares);
    assert_int_equal(net_listen(1, "unix:@x"), -EADDRINUSE);
    const int b = net_listen_with(1, "unix:@x", shares);
    for (int i = 0; i < 20; i++) {
        net_close(net_connect(1, "unix:@x"));
    }
    const int clients[] = {net_connect(1, "unix:@x"), net_connect(1, "unix:@x"),
                           net_connect(1, "unix:@x"), net_connect(1, "unix:@x"),
                           net_connect(1, "unix:@x"), net_connect(1, "unix:@x")};
    net_run();
    assert_true((net_reports(a) & net_reports(b) & SOCKET_READABLE) != 0);
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        net_close(clients[i]);
    }
    const int listeners[] = {other, elsewhere, again, a, b};
    for (size_t i = 0; i < COUNT_OF(listeners); i++) {
        net_close(listeners[i]);
    }
    assert_all_closed();
}

TEST(ports_and_sources_are_given_and_chosen)
{
    net_open(1, NO_FAULTS);
    const int listener = net_listen(1, "0.0.0.0:0");
    assert_address(listener, false, "0.0.0.0:49152");
    const int a = net_connect(1, "127.0.0.1:49152");
    assert_address(a, false, "127.0.0.1:49153");
    const int b = net_connect_from(1, "127.0.0.1:49152", "0.0.0.0:9");
    assert_address(b, false, "127.0.0.1:9");
    assert_int_equal(net_connect_from(1, "127.0.0.1:49152", "127.0.0.1:9"), -EADDRINUSE);
    const int c = net_connect_from(1, "10.0.0.2:1", "10.0.0.1:9");
    assert_address(c, false, "10.0.0.1:9");
    const int d = net_connect(1, "unix:@x");
    assert_address(d, false, "");
    assert_address(d, true, "unix:@x");
    net_close(a);
    net_close(b);
    net_close(c);
    net_close(d);
    net_close(listener);
}

TEST(a_full_backlog_makes_connects_wait)
{
    net_open(1, NO_FAULTS);
    const int listener = net_listen_with(1, "0.0.0.0:80", (skua_listen_options){.backlog = 1});
    const int first = net_connect(2, "10.0.0.1:80");
    net_run();
    const int second = net_connect(2, "10.0.0.1:80");
    net_run_for(10 * SKUA_SECOND);
    assert_int_equal(net_connected(first), 0);
    assert_int_equal(net_connected(second), -EINPROGRESS);
    const int accepted = net_accept(listener);
    assert_int_equal(net_accept(listener), -EAGAIN);
    net_run();
    assert_int_equal(net_connected(second), 0);
    const int third = net_connect(2, "10.0.0.1:80");
    net_run_for(200 * SKUA_SECOND);
    assert_int_equal(net_connected(third), -ETIMEDOUT);
    assert_int_equal(net_reports(third), SOCKET_FAILED);
    net_close(third);
    net_close(second);
    net_close_pair(&(struct net_pair){listener, first, accepted});
    assert_all_closed();
}

TEST(closing_a_listener_resets_what_waits_there)
{
    net_open(1, NO_FAULTS);
    const int listener = net_listen(1, "0.0.0.0:80");
    const int client = net_connect(2, "10.0.0.1:80");
    const int late = net_connect(3, "10.0.0.1:80");
    net_run();
    net_close(listener);
    net_run();
    assert_int_equal(net_reports(client), SOCKET_WRITABLE | SOCKET_FAILED);
    assert_read_fails(client, ECONNRESET);
    net_close(client);
    net_close(late);
    assert_all_closed();
}

TEST(turning_away_ends_the_connection_that_waits)
{
    net_open(1, NO_FAULTS);
    const int listener = net_listen(1, "0.0.0.0:80");
    const int client = net_connect(2, "10.0.0.1:80");
    net_run();
    net.transport->turn_away(net.transport, listener);
    net.transport->turn_away(net.transport, listener);
    net_run();
    assert_at_end(client);
    assert_int_equal(net_accept(listener), -EAGAIN);
    net_close(client);
    net_close(listener);
    assert_all_closed();
}

/* Whenever it is closed: before the request has come, before the answer has, and after. */
TEST(a_connect_can_be_given_up_at_any_time)
{
    FOR_ROUNDS (moment, 8) {
        net_open(1, NO_FAULTS);
        assert_int_equal(paths_set_latency(net.network, 1, 2, 3), 0);
        const int listener = net_listen(1, "0.0.0.0:80");
        const int client = net_connect(2, "10.0.0.1:80");
        net_run_for(moment);
        net_close(client);
        net_run();
        const int server = net_accept(listener);
        if (server >= 0) {
            net_run();
            assert_read_fails(server, moment < 6 ? ECONNRESET : 0);
            net_close(server);
        } else {
            assert_true(moment < 3);
        }
        net_close(listener);
        assert_all_closed();
    }
}

/* ---- bytes ---- */

TEST(bytes_take_a_while_and_come_in_order)
{
    net_open(1, (skua_sim_network){.latency_ns = 1000, .jitter_ns = 1000});
    const struct net_pair pair = net_make_pair(2, 1);
    assert_int_equal(net_write(pair.client, "one "), 4);
    assert_read_fails(pair.server, EAGAIN);
    net_run_for(500);
    assert_int_equal(net_write(pair.client, "two "), 4);
    assert_int_equal(net_write(pair.client, "three"), 5);
    assert_read_fails(pair.server, EAGAIN);
    net_run();
    assert_int_equal(net_reports(pair.server), SOCKET_READABLE);
    assert_reads(pair.server, "one two three");
    assert_read_fails(pair.server, EAGAIN);
    assert_int_equal(net_write(pair.server, "four"), 4);
    net_run();
    assert_reads(pair.client, "four");
    net_close_pair(&pair);
}

TEST(latency_differs_by_pair_if_it_is_set)
{
    net_open(1, NO_FAULTS);
    const struct net_pair far = net_make_pair(2, 1);
    const struct net_pair near = net_make_pair(3, 1);
    const struct net_pair own = net_make_pair(1, 1);
    assert_int_equal(paths_set_latency(net.network, 1, 2, SKUA_SECOND), 0);
    const uint64_t began = net_now();
    (void)net_write(far.server, "x");
    (void)net_write(near.server, "x");
    (void)net_write(own.server, "x");
    net_run_for(20 * SKUA_MICROSECOND);
    assert_reads(own.client, "x");
    assert_read_fails(near.client, EAGAIN);
    net_run_for(SKUA_MILLISECOND);
    assert_reads(near.client, "x");
    assert_read_fails(far.client, EAGAIN);
    net_run();
    assert_int_equal(net_now(), began + SKUA_SECOND);
    assert_reads(far.client, "x");
    net_close_pair(&far);
    net_close_pair(&near);
    net_close_pair(&own);
}

TEST(a_writer_waits_when_its_window_is_full)
{
    uint64_t sent = 0;
    uint64_t received = 0;
    net_open(1, (skua_sim_network){.window = 1000});
    const struct net_pair pair = net_make_pair(2, 1);
    assert_int_equal(net_write_many(pair.client, 700, &sent), 700);
    assert_int_equal(net_write_many(pair.client, 700, &sent), 300);
    assert_int_equal(net_write_many(pair.client, 1, &sent), -EAGAIN);
    net_run();
    assert_int_equal(net_write_many(pair.client, 1, &sent), -EAGAIN);
    assert_int_equal(net_read_many(pair.server, 100, &received), 100);
    assert_int_equal(net_write_many(pair.client, 1, &sent), -EAGAIN);
    net_run();
    assert_int_equal(net_reports(pair.client), SOCKET_WRITABLE);
    assert_int_equal(net_write_many(pair.client, 700, &sent), 100);
    net_run();
    assert_int_equal(net_read_many(pair.server, 5000, &received), 1000);
    assert_int_equal(received, sent);
    net_close_pair(&pair);
}

TEST(a_watch_begins_with_what_is_true)
{
    net_open(1, NO_FAULTS);
    const struct net_pair pair = net_make_pair(2, 1);
    const int client = net_connect(2, "10.0.0.1:7000");
    net_run();
    assert_int_equal(net_write(client, "x"), 1);
    net_shutdown(client);
    net_run();
    const int server = net_accept(pair.listener);
    net_run();
    assert_int_equal(net_reports(server), SOCKET_READABLE | SOCKET_WRITABLE | SOCKET_HANGUP);
    net_close(client);
    net_close(server);
    net_close_pair(&pair);
}

/* ---- ends ---- */

TEST(a_side_that_shuts_down_still_reads)
{
    net_open(1, NO_FAULTS);
    const struct net_pair pair = net_make_pair(2, 1);
    (void)net_write(pair.client, "last");
    net_shutdown(pair.client);
    net_shutdown(pair.client);
    assert_int_equal(net_write(pair.client, "more"), -EPIPE);
    net_run();
    assert_int_equal(net_reports(pair.server), SOCKET_READABLE | SOCKET_HANGUP);
    assert_reads(pair.server, "last");
    assert_at_end(pair.server);
    assert_at_end(pair.server);
    assert_int_equal(net_write(pair.server, "answer"), 6);
    net_close(pair.server);
    net_run();
    assert_reads(pair.client, "answer");
    assert_at_end(pair.client);
    net_close(pair.client);
    net_close(pair.listener);
    assert_all_closed();
}

TEST(who_closes_with_something_unread_resets)
{
    net_open(1, NO_FAULTS);
    const struct net_pair pair = net_make_pair(2, 1);
    (void)net_write(pair.client, "unread");
    net_run();
    net_close(pair.server);
    net_run();
    assert_int_equal(net_reports(pair.client), SOCKET_FAILED);
    assert_read_fails(pair.client, ECONNRESET);
    assert_int_equal(net_write(pair.client, "x"), -EPIPE);
    net_close(pair.client);
    net_close(pair.listener);
    assert_int_equal(network_audit(net.network).dropped, 6);
}

TEST(writing_to_one_that_has_closed_is_answered_with_a_reset)
{
    net_open(1, NO_FAULTS);
    const struct net_pair pair = net_make_pair(2, 1);
    net_close(pair.server);
    net_run();
    assert_at_end(pair.client);
    assert_int_equal(net_write(pair.client, "lost"), 4);
    net_run();
    assert_read_fails(pair.client, ECONNRESET);
    net_close(pair.client);
    net_close(pair.listener);
    assert_all_closed();
}

/* What came before a reset can be read, or not: both happen. */
TEST(a_reset_may_take_what_was_not_read)
{
    uint32_t kept = 0;
    net_open(1, NO_FAULTS);
    for (int i = 0; i < 20; i++) {
        const struct net_pair pair = net_make_pair(2, 1);
        char byte;
        (void)net_write(pair.client, "x");
        net_reset(pair.client);
        net_run();
        assert_true((net_reports(pair.server) & SOCKET_FAILED) != 0);
        kept += net.transport->read(net.transport, pair.server, &byte, 1) == 1;
        assert_read_fails(pair.server, ECONNRESET);
        net_close(pair.server);
        net_close(pair.listener);
    }
    assert_true(kept > 0 && kept < 20);
    assert_all_closed();
}

/* ---- the rest ---- */

TEST(alarms_ring_once_and_early)
{
    net_open(1, NO_FAULTS);
    const int listener = net_listen(1, "0.0.0.0:80");
    struct transport *transport = net.transport;
    const uint64_t began = net_now();
    transport->wake_at(transport, NULL, began + 500);
    transport->wake_at(transport, NULL, began + 300);
    transport->wake_at(transport, NULL, began + 400);
    net_run();
    assert_int_equal(net.alarms, 1);
    assert_int_equal(net_now(), began + 300);
    transport->wake_at(transport, NULL, began);
    net_run();
    assert_int_equal(net.alarms, 2);
    transport->wake_at(transport, NULL, began + 1000); /* it is taken back by the end */
    net_close(listener);
}

TEST(processes_are_on_the_host_they_were_put_on)
{
    struct process_hosts hosts;
    memory_open();
    hosts_init(&hosts, &memory.allocator);
    counting_allocator_fail_from(&memory, 1);
    assert_int_equal(hosts_set_any(&hosts, (skua_pid){5000}, HOSTS_FIRST), 0); /* needs nothing */
    assert_int_equal(hosts_set_any(&hosts, (skua_pid){5000}, 7), SKUA_E_NO_MEMORY);
    counting_allocator_fail_never(&memory);
    assert_int_equal(hosts_set_any(&hosts, (skua_pid){5000}, 7), 0);
    assert_int_equal(hosts_of(&hosts, (skua_pid){5000}), 7);
    assert_int_equal(hosts_of(&hosts, (skua_pid){4999}), HOSTS_FIRST);
    assert_int_equal(hosts_of(&hosts, (skua_pid){1000000}), HOSTS_FIRST);
    assert_int_equal(hosts_set_any(&hosts, (skua_pid){5000}, HOSTS_FIRST), 0); /* the next there */
    assert_int_equal(hosts_of(&hosts, (skua_pid){5000}), HOSTS_FIRST);
    hosts_deinit(&hosts);
}

/* Wherever memory ends, it is said, and all else goes on. */
TEST(without_memory_nothing_opens_and_nothing_is_lost)
{
    FOR_ROUNDS (n, 30) {
        uint64_t sent = 0;
        uint64_t received = 0;
        net_open(1, NO_FAULTS);
        const struct net_pair pair = net_make_pair(2, 1);
        counting_allocator_fail_from(&memory, n);
        for (int i = 0; i < 40; i++) {
            const int client = net_connect(3, "10.0.0.1:7000");
            assert_true(client >= 0 || client == -ENOMEM);
            const ssize_t written = net_write_many(pair.client, 10, &sent);
            assert_true(written == 10 || written == -ENOMEM);
            if (client >= 0) {
                net_run();
                net_close(client);
            }
        }
        net_run();
        counting_allocator_fail_never(&memory);
        (void)net_read_many(pair.server, 1000, &received);
        assert_int_equal(received, sent);
        net_close_pair(&pair);
        net_run();
        assert_all_closed();
    }
}
