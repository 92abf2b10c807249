/* SPDX-License-Identifier: MIT */
/* What goes wrong in the simulated network, each fault alone and all at once; and what is cut off
 * and healed. */
#include <errno.h>

#include "base/random.h"
#include "network_rig.h"
#include "sim_support.h"

#define SOMETIMES (SIM_ALWAYS / 3)

#define NO_FAULTS ((skua_sim_network){0})

/* ---- connecting ---- */

TEST(refused_connects_are_refused)
{
    net_open(1, (skua_sim_network){.connect_refused = SIM_ALWAYS});
    const int listener = net_listen(1, "0.0.0.0:80");
    const int client = net_connect(2, "10.0.0.1:80");
    net_run();
    assert_int_equal(net_connected(client), -ECONNREFUSED);
    assert_int_equal(net_accept(listener), -EAGAIN);
    assert_int_equal(net.faults[SKUA_SIM_CONNECT_REFUSED], 1);
    net_close(client);
    net_close(listener);
}

TEST(connects_and_accepts_take_longer)
{
    static const skua_sim_network faults[] = {{.connect_delay = SIM_ALWAYS},
                                              {.accept_delay = SIM_ALWAYS}};
    FOR_ROWS (fault, faults) {
        uint64_t longest = 0;
        net_open(1, *fault);
        const int listener = net_listen(1, "0.0.0.0:80");
        for (int i = 0; i < 10; i++) {
            const uint64_t began = net_now();
            const int client = net_connect(2, "10.0.0.1:80");
            net_run();
            const int server = net_accept(listener);
            const uint64_t took = net_now() - began;
            longest = took > longest ? took : longest;
            assert_int_equal(net_connected(client), 0);
            net_close(server);
            net_close(client);
        }
        assert_true(longest > SKUA_MILLISECOND);
        net_close(listener);
    }
}

TEST(a_listener_may_close_while_a_connection_has_to_wait)
{
    net_open(1, (skua_sim_network){.accept_delay = SIM_ALWAYS});
    const int listener = net_listen(1, "0.0.0.0:80");
    const int client = net_connect(2, "10.0.0.1:80");
    while (net_connected(client) != 0) {
        net_run_for(SKUA_MICROSECOND);
    }
    assert_int_equal(net_accept(listener), -EAGAIN);
    net_close(listener);
    const int other = net_listen(1, "0.0.0.0:81"); /* has its number */
    net_run();
    assert_read_fails(client, ECONNRESET);
    assert_int_equal(net_accept(other), -EAGAIN);
    net_close(client);
    net_close(other);
}

TEST(there_may_be_no_descriptors)
{
    net_open(1, NO_FAULTS);
    const int listener = net_listen(1, "0.0.0.0:80");
    const int client = net_connect(2, "10.0.0.1:80");
    net_run();
    net_set_faults((skua_sim_network){.no_descriptors = SIM_ALWAYS});
    assert_int_equal(net_accept(listener), -EMFILE);
    assert_int_equal(net_connect(2, "10.0.0.1:80"), -EMFILE);
    assert_int_equal(net_listen(2, "0.0.0.0:80"), -EMFILE);
    net_set_faults(NO_FAULTS);
    const int server = net_accept(listener);
    net_close_pair(&(struct net_pair){listener, client, server});
}

/* ---- bytes ---- */

/* Sends and receives as long as there is something to do, as sockets would: who got less than there
 * was waits for a report. Returns how many bytes came. */
static uint64_t transfer(const struct net_pair *pair, size_t size)
{
    uint64_t sent = 0;
    uint64_t received = 0;
    net.reports[pair->client] = SOCKET_WRITABLE;
    while (sent < size) {
        if ((net_reports(pair->client) & SOCKET_WRITABLE) != 0) {
            const size_t most = size - (size_t)sent;
            while (sent < size && net_write_many(pair->client, most, &sent) == (ssize_t)most) {
            }
        }
        net_run();
        if ((net_reports(pair->server) & SOCKET_READABLE) != 0) {
            (void)net_read_many(pair->server, 900, &received); /* one read */
        }
        assert_true(net.reports[pair->client] != 0 || sent == size || net.sim.agenda.count > 0 ||
                    net.reports[pair->server] != 0);
    }
    for (net_run(); (net_reports(pair->server) & SOCKET_READABLE) != 0; net_run()) {
        (void)net_read_many(pair->server, 900, &received);
    }
    (void)net_read_many(pair->server, SIZE_MAX, &received);
    return received;
}

TEST(short_reads_and_writes_lose_nothing)
{
    FOR_ROUNDS (seed, 20) {
        net_open(seed, (skua_sim_network){
                           .short_read = SOMETIMES, .short_write = SOMETIMES, .window = 700});
        const struct net_pair pair = net_make_pair(2, 1);
        assert_int_equal(transfer(&pair, 5000), 5000);
        assert_true(net.faults[SKUA_SIM_SHORT_READ] > 0 && net.faults[SKUA_SIM_SHORT_WRITE] > 0);
        net_close_pair(&pair);
    }
}

TEST(a_reset_is_for_both_sides)
{
    net_open(1, NO_FAULTS);
    const struct net_pair pair = net_make_pair(2, 1);
    (void)net_write(pair.server, "x");
    net_run();
    net_set_faults((skua_sim_network){.reset = SIM_ALWAYS});
    assert_int_equal(net_write(pair.client, "y"), -ECONNRESET);
    net_run();
    assert_int_equal(net_reports(pair.server) & SOCKET_FAILED, SOCKET_FAILED);
    assert_read_fails(pair.client, ECONNRESET);
    assert_read_fails(pair.server, ECONNRESET);
    assert_int_equal(net.faults[SKUA_SIM_RESET], 1);
    net_close_pair(&pair);
    assert_int_equal(network_audit(net.network).dropped, 1);
}

TEST(a_read_may_find_a_reset)
{
    net_open(1, NO_FAULTS);
    const struct net_pair pair = net_make_pair(2, 1);
    (void)net_write(pair.client, "x");
    net_run();
    net_set_faults((skua_sim_network){.reset = SIM_ALWAYS});
    assert_read_fails(pair.server, ECONNRESET);
    net_run();
    assert_read_fails(pair.client, ECONNRESET);
    net_close_pair(&pair);
}

/* Both sides wait for ever, and only what has come before can be read. */
TEST(after_a_silent_drop_nothing_arrives)
{
    uint64_t sent = 0;
    net_open(1, (skua_sim_network){.window = 100});
    const struct net_pair pair = net_make_pair(2, 1);
    (void)net_write(pair.client, "before");
    net_run();
    (void)net_write(pair.server, "on its way");
    (void)net_reports(pair.server);
    net_set_faults((skua_sim_network){.silent_drop = SIM_ALWAYS, .window = 100});
    assert_int_equal(net_write_many(pair.client, 60, &sent), 60);
    net_set_faults((skua_sim_network){.window = 100});
    assert_int_equal(net_write_many(pair.client, 60, &sent), 34);
    net_run();
    assert_int_equal(net_reports(pair.client) | net_reports(pair.server), 0);
    assert_int_equal(net_write_many(pair.client, 60, &sent), -EAGAIN);
    assert_reads(pair.server, "before");
    assert_read_fails(pair.server, EAGAIN);
    assert_read_fails(pair.client, EAGAIN);
    net_close(pair.client);
    net_run();
    assert_read_fails(pair.server, EAGAIN);
    net_close(pair.server);
    net_close(pair.listener);
    assert_int_equal(network_audit(net.network).dropped, 10 + 60 + 34);
}

TEST(probes_notice_a_silent_drop)
{
    net_open(1, NO_FAULTS);
    const struct transport *transport = net.transport;
    const struct net_pair pair = net_make_pair(2, 1);
    const uint64_t idle = 5 * SKUA_SECOND;
    assert_int_equal(transport->set(net.transport, pair.client, SKUA_SOCKET_KEEPALIVE, idle), 0);
    net_run_for(3600 * SKUA_SECOND); /* nothing is wrong yet */
    assert_int_equal(net_connected(pair.client), 0);
    net_set_faults((skua_sim_network){.silent_drop = SIM_ALWAYS});
    assert_int_equal(net_write(pair.client, "x"), 1);
    const uint64_t began = net_now();
    net_run();
    assert_int_equal(net_now(), began + 65 * SKUA_SECOND);
    assert_int_equal(net_reports(pair.client), SOCKET_FAILED);
    assert_read_fails(pair.client, ETIMEDOUT);
    assert_read_fails(pair.server, EAGAIN); /* it has not asked for that */
    assert_int_equal(transport->set(net.transport, pair.server, SKUA_SOCKET_KEEPALIVE, idle), 0);
    assert_int_equal(transport->set(net.transport, pair.server, SKUA_SOCKET_KEEPALIVE, 0), 0);
    net_run();
    assert_read_fails(pair.server, EAGAIN);
    net_close_pair(&pair);
}

TEST(the_end_may_come_late)
{
    net_open(1, (skua_sim_network){.eof_late = SIM_ALWAYS});
    uint64_t longest = 0;
    for (int i = 0; i < 10; i++) {
        const struct net_pair pair = net_make_pair(2, 1);
        (void)net_write(pair.client, "x");
        net_shutdown(pair.client);
        const uint64_t began = net_now();
        net_run_for(SKUA_MILLISECOND);
        assert_reads(pair.server, "x");
        net_run();
        longest = net_now() - began > longest ? net_now() - began : longest;
        assert_at_end(pair.server);
        net_close_pair(&pair);
    }
    assert_true(longest > 2 * SKUA_MILLISECOND);
}

/* ---- between hosts ---- */

TEST(a_clog_is_for_all_streams_of_its_way)
{
    net_open(1, NO_FAULTS);
    const struct net_pair a = net_make_pair(2, 1);
    const struct net_pair b = net_make_pair(2, 1);
    net_set_faults((skua_sim_network){.clog = SIM_ALWAYS});
    uint64_t clear = 0;
    while (clear < net_now() + 2 * SKUA_MILLISECOND) { /* a long one */
        (void)net_write(a.client, "x");
        clear = paths_open_at(net.network, 2, 1);
    }
    net_set_faults(NO_FAULTS);
    (void)net_write(b.client, "y");
    (void)net_write(b.server, "z");
    net_run_for(SKUA_MILLISECOND);
    assert_read_fails(a.server, EAGAIN);
    assert_read_fails(b.server, EAGAIN);
    assert_reads(b.client, "z");
    net_run();
    assert_int_equal(net_now(), clear);
    assert_reads(b.server, "y");
    net_close_pair(&a);
    net_close_pair(&b);
}

TEST(a_partition_freezes_what_is_on_its_way_until_it_is_healed)
{
    net_open(1, NO_FAULTS);
    const struct net_pair pair = net_make_pair(2, 1);
    const struct net_pair other = net_make_pair(3, 1);
    (void)net_write(pair.client, "one ");
    (void)net_write(other.client, "three");
    assert_int_equal(paths_cut(net.network, 2, 1, false), 0);
    (void)net_write(pair.client, "two");
    net_shutdown(pair.client);
    (void)net_write(pair.server, "back"); /* this way is open */
    net_run();
    net_run_for(3600 * SKUA_SECOND);
    assert_read_fails(pair.server, EAGAIN);
    assert_reads(pair.client, "back");
    assert_reads(other.server, "three");
    paths_heal(net.network, 1, 2);
    net_run();
    assert_reads(pair.server, "one two");
    assert_at_end(pair.server);
    assert_int_equal(net.faults[SKUA_SIM_PARTITION], 1);
    assert_int_equal(net.faults[SKUA_SIM_HEAL], 1);
    net_close_pair(&pair);
    net_close_pair(&other);
}

TEST(acknowledgements_freeze_as_well)
{
    uint64_t sent = 0;
    uint64_t received = 0;
    net_open(1, (skua_sim_network){.window = 10});
    const struct net_pair pair = net_make_pair(2, 1);
    assert_int_equal(net_write_many(pair.client, 20, &sent), 10);
    net_run();
    assert_int_equal(paths_cut(net.network, 1, 2, false), 0); /* the way back */
    assert_int_equal(net_read_many(pair.server, 10, &received), 10);
    net_run();
    assert_int_equal(net_write_many(pair.client, 20, &sent), -EAGAIN);
    paths_heal(net.network, 0, 0);
    net_run();
    assert_int_equal(net_reports(pair.client), SOCKET_WRITABLE);
    assert_int_equal(net_write_many(pair.client, 20, &sent), 10);
    net_close_pair(&pair);
}

TEST(a_host_can_be_cut_off_from_all_others)
{
    net_open(1, NO_FAULTS);
    const struct net_pair a = net_make_pair(2, 1);
    const struct net_pair b = net_make_pair(1, 3);
    const struct net_pair own = net_make_pair(1, 1);
    const struct net_pair others = net_make_pair(2, 3);
    assert_int_equal(paths_cut(net.network, 1, 0, true), 0);
    (void)net_write(a.client, "x");
    (void)net_write(b.client, "x");
    (void)net_write(own.client, "x");
    (void)net_write(others.client, "x");
    net_run();
    assert_read_fails(a.server, EAGAIN);
    assert_read_fails(b.server, EAGAIN);
    assert_reads(own.server, "x");
    assert_reads(others.server, "x");
    paths_heal(net.network, 1, 3);
    net_run();
    assert_read_fails(a.server, EAGAIN);
    assert_reads(b.server, "x");
    net_close_pair(&a);
    net_close_pair(&b);
    net_close_pair(&own);
    net_close_pair(&others);
}

/* For two minutes, as Linux asks again and again; whichever way is cut off. */
TEST(a_connect_through_a_partition_gives_up)
{
    static const uint32_t ways[] = {1, 2};
    FOR_ROWS (from, ways) {
        net_open(1, NO_FAULTS);
        const int listener = net_listen(1, "0.0.0.0:80");
        assert_int_equal(paths_cut(net.network, *from, 3 - *from, false), 0);
        const uint64_t began = net_now();
        const int client = net_connect(2, "10.0.0.1:80");
        net_run();
        assert_true(net_now() >= began + 127 * SKUA_SECOND);
        assert_int_equal(net_connected(client), -ETIMEDOUT);
        paths_heal(net.network, 0, 0);
        net_run();
        const int server = net_accept(listener);
        if (*from == 1) { /* the request has come: the reset comes behind it */
            net_run();
            assert_read_fails(server, ECONNRESET);
            net_close(server);
        } else {
            assert_int_equal(server, -EAGAIN);
        }
        net_close(client);
        net_close(listener);
    }
}

TEST(drawn_partitions_last_and_pass)
{
    uint32_t one_way = 0;
    net_open(1, (skua_sim_network){.partition = SIM_ALWAYS});
    const struct net_pair pair = net_make_pair(2, 1);
    for (int i = 0; i < 30; i++) {
        const uint64_t began = net_now();
        const uint32_t before = net.faults[SKUA_SIM_PARTITION];
        (void)net_write(pair.client, "x");
        one_way += net.faults[SKUA_SIM_PARTITION] == before + 1;
        net_run();
        if (net.faults[SKUA_SIM_PARTITION] > before && paths_open_at(net.network, 2, 1) == 0 &&
            net_now() > began + SKUA_MILLISECOND) {
            assert_true(net_now() >= began + 100 * SKUA_MILLISECOND);
            assert_true(net_now() <= began + 2 * SKUA_SECOND);
        }
        assert_reads(pair.server, "x");
        net_run_for(SKUA_SECOND);
    }
    assert_true(net.faults[SKUA_SIM_PARTITION] > 10);
    assert_true(one_way > 0);
    net_close_pair(&pair);
}

/* A partition of two hosts, as it was seen to begin. */
struct seen_partition {
    uint64_t began; /* 0: there was none yet */
    uint64_t until;
};

/* Looks at two hosts; returns whether they have just been cut off from each other. */
static bool check_partition(struct seen_partition *seen, uint32_t a, uint32_t b)
{
    const uint64_t there = paths_open_at(net.network, a, b);
    const uint64_t back = paths_open_at(net.network, b, a);
    const uint64_t until = there > back ? there : back;
    if (until == 0) {
        return false;
    }
    if (net_now() < seen->until) {
        assert_int_equal(until, seen->until); /* it is still the same */
        return false;
    }
    assert_true(seen->began == 0 || net_now() >= seen->until + 100 * SKUA_MILLISECOND);
    assert_in_range(until - net_now(), 100 * SKUA_MILLISECOND, 2 * SKUA_SECOND);
    *seen = (struct seen_partition){.began = net_now(), .until = until};
    return true;
}

/* Says something in both directions, and reads what has come. */
static void talk(const struct net_pair *pair)
{
    char data[64];
    (void)net_write(pair->client, "x");
    (void)net_write(pair->server, "y");
    (void)net.transport->read(net.transport, pair->client, data, sizeof data);
    (void)net.transport->read(net.transport, pair->server, data, sizeof data);
}

/* All talk to all, all the time. */
TEST(drawn_partitions_of_busy_hosts_last_and_pass)
{
    static const uint32_t hosts[][2] = {{2, 1}, {3, 1}, {3, 2}};
    struct net_pair pairs[COUNT_OF(hosts)];
    struct seen_partition seen[COUNT_OF(hosts)] = {{0}};
    uint32_t count = 0;
    net_open(1, NO_FAULTS);
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        pairs[i] = net_make_pair(hosts[i][0], hosts[i][1]);
    }
    net_set_faults((skua_sim_network){.partition = SIM_ALWAYS / 10});
    for (uint64_t end = net_now() + 60 * SKUA_SECOND; net_now() < end;) {
        for (size_t i = 0; i < COUNT_OF(hosts); i++) {
            talk(&pairs[i]);
        }
        for (size_t i = 0; i < COUNT_OF(hosts); i++) {
            count += check_partition(&seen[i], hosts[i][0], hosts[i][1]);
        }
        net_run_for(10 * SKUA_MILLISECOND);
    }
    assert_true(count > 30);
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        net_close_pair(&pairs[i]);
    }
}

/* ---- everything at once ---- */

/* What one side has written is a sequence of numbers; the other side gets a beginning of it, and if
 * it gets less, then it hears of a reset or of nothing more at all. */
static void let_all_go_wrong(uint64_t seed)
{
    const uint32_t rate = SIM_ALWAYS / 20;
    uint64_t random = seed;
    net_open(seed, (skua_sim_network){.connect_refused = rate,
                                      .connect_delay = rate,
                                      .accept_delay = rate,
                                      .no_descriptors = rate,
                                      .short_read = rate,
                                      .short_write = rate,
                                      .reset = rate / 4,
                                      .silent_drop = rate / 8,
                                      .eof_late = rate,
                                      .clog = rate,
                                      .partition = rate,
                                      .window = 300});
    int listener;
    while ((listener = net_listen(1, "0.0.0.0:80")) < 0) {
    }
    for (int i = 0; i < 20; i++) {
        uint64_t sent = 0;
        uint64_t received = 0;
        bool is_silent = false;
        const uint32_t drops = net.faults[SKUA_SIM_SILENT_DROP];
        const int client = net_connect(2 + (uint32_t)(i % 2), "10.0.0.1:80");
        net_run();
        int server;
        while ((server = net_accept(listener)) == -EMFILE) {
        }
        if (client >= 0 && server >= 0) {
            ssize_t got = -EAGAIN;
            for (int turn = 0; turn < 30; turn++) {
                (void)net_write_many(client, 1 + random_below(&random, 200), &sent);
                net_run_for(random_below(&random, 200000));
                got = net_read_many(server, 1 + random_below(&random, 300), &received);
            }
            const bool is_open = net_connected(client) == 0;
            const bool is_shut = net.transport->shutdown(net.transport, client) == 0;
            for (net_run(); got > 0 || got == -EAGAIN; net_run()) {
                const uint64_t before = received;
                got = net_read_many(server, 100, &received);
                if (got == -EAGAIN && before == received && net.sim.agenda.count == 0) {
                    is_silent = true;
                    break;
                }
            }
            assert_true(received <= sent);
            if (got == 0) {
                assert_true(is_open && is_shut);
                assert_int_equal(received, sent);
            } else if (is_silent) {
                assert_true(net.faults[SKUA_SIM_SILENT_DROP] > drops);
            } else {
                assert_int_equal(got, -ECONNRESET);
            }
        }
        if (client >= 0) {
            net_close(client);
        }
        if (server >= 0) {
            net_close(server);
        }
    }
    net_close(listener);
    net_run();
    const struct network_accounts accounts = network_audit(net.network);
    assert_int_equal(accounts.opened, accounts.closed);
}

TEST(whatever_goes_wrong_no_byte_is_made_up_or_lost_without_a_word)
{
    FOR_ROUNDS (seed, 300) {
        let_all_go_wrong(seed);
    }
}
