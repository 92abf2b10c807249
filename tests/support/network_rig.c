/* SPDX-License-Identifier: MIT */
#include "network_rig.h"

#include <errno.h>
#include <stdio.h>

struct network_rig net;

static void note_report(struct sockets *sockets, struct worker *worker, uint64_t key,
                        uint32_t flags)
{
    (void)sockets;
    (void)worker;
    assert_true(key < NETWORK_RIG_KEYS);
    net.reports[key] |= flags;
    net.report_count++;
}

static void note_alarm(struct sockets *sockets, struct worker *worker, uint64_t now)
{
    (void)sockets;
    (void)worker;
    assert_int_equal(now, net_now());
    net.alarms++;
}

static void note_record(void *arg, const skua_sim_record *record)
{
    (void)arg;
    if (record->type == SKUA_SIM_FAULT) {
        net.faults[record->what]++;
    }
}

static void close_rig(void)
{
    struct agenda_item item;
    while (net.sim.agenda.count > 0) {
        agenda_take(&net.sim.agenda, &item);
        network_forget(net.network, item.as.network.what, item.as.network.matter);
    }
    sim_deinit(&net.sim);
}

void net_open(uint64_t seed, skua_sim_network faults)
{
    const skua_sim_config config = {.faults.network = faults, .on_record = note_record};
    memory_open();
    memset(&net, 0, sizeof net);
    assert_int_equal(sim_init(&net.sim, &config, seed, &net.sched, memory.allocator), 0);
    test_at_end(close_rig);
    net.sim.faults_are_on = true;
    net.network = &net.sim.network;
    net.network->report = note_report;
    net.network->alarm = note_alarm;
    net.transport = &net.network->transport;
    for (uint32_t host = 1; host <= NETWORK_RIG_HOSTS; host++) {
        assert_int_equal(hosts_set_any(&net.network->process_hosts, (skua_pid){host}, host), 0);
        assert_int_equal(paths_add_host(net.network, host), 0);
    }
}

void net_set_faults(skua_sim_network faults)
{
    sim_apply_faults(&net.sim, &(skua_sim_faults){.network = faults});
}

uint64_t net_now(void)
{
    return sim_now(&net.sim);
}

static void run_until(uint64_t until)
{
    struct agenda_item item;
    while (agenda_next(&net.sim.agenda) <= until && net.sim.agenda.count > 0) {
        agenda_take(&net.sim.agenda, &item);
        assert_true(item.when >= net_now());
        store_relaxed(&net.sim.now, item.when); /* one thread */
        network_act(net.network, item.as.network.what, item.as.network.matter);
        (void)network_audit(net.network);
    }
}

void net_run_for(uint64_t ns)
{
    const uint64_t until = net_now() + ns;
    run_until(until);
    store_relaxed(&net.sim.now, until); /* one thread */
}

void net_run(void)
{
    run_until(UINT64_MAX);
}

/* ---- the transport ---- */

static struct address parse(const char *text)
{
    struct address address;
    assert_int_equal(address_parse(text, &address), 0);
    return address;
}

static int watch(int fd)
{
    if (fd >= 0) {
        assert_int_equal(net.transport->watch(net.transport, fd, (uint64_t)fd), 0);
        net.reports[fd] = 0;
    }
    return fd;
}

int net_listen_with(uint32_t host, const char *address, skua_listen_options options)
{
    const struct address parsed = parse(address);
    return watch(net.transport->listen(net.transport, (skua_pid){host}, &parsed, &options));
}

int net_listen(uint32_t host, const char *address)
{
    return net_listen_with(host, address, (skua_listen_options){0});
}

int net_connect_from(uint32_t host, const char *address, const char *source)
{
    const struct address to = parse(address);
    const struct address from = source != NULL ? parse(source) : to;
    return watch(net.transport->connect(net.transport, (skua_pid){host}, &to,
                                        source != NULL ? &from : NULL));
}

int net_connect(uint32_t host, const char *address)
{
    return net_connect_from(host, address, NULL);
}

int net_connected(int fd)
{
    return net.transport->connected(net.transport, fd);
}

int net_accept(int listener)
{
    return watch(net.transport->accept(net.transport, listener));
}

/* In two pieces, one of them empty if there is but one byte. */
static ssize_t write_bytes(int fd, const char *bytes, size_t size)
{
    const struct iovec pieces[] = {
        {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size / 2},
        {.iov_base = (void *)(uintptr_t)(bytes + size / 2), .iov_len = size - size / 2},
    };
    return net.transport->write(net.transport, fd, pieces, 2);
}

ssize_t net_write(int fd, const char *text)
{
    return write_bytes(fd, text, strlen(text));
}

void net_shutdown(int fd)
{
    assert_int_equal(net.transport->shutdown(net.transport, fd), 0);
}

void net_close(int fd)
{
    net.transport->close(net.transport, fd, false);
}

void net_reset(int fd)
{
    net.transport->close(net.transport, fd, true);
}

/* The n-th byte of a stream. */
static char byte_at(uint64_t n)
{
    return (char)(n % 251);
}

ssize_t net_write_many(int fd, size_t size, uint64_t *from)
{
    char *bytes = malloc(size);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(*from + i);
    }
    const ssize_t written = write_bytes(fd, bytes, size);
    *from += written > 0 ? (uint64_t)written : 0;
    free(bytes);
    return written;
}

ssize_t net_read_many(int fd, size_t most, uint64_t *from)
{
    char bytes[1000];
    ssize_t sum = 0;
    while ((size_t)sum < most) {
        const size_t left = most - (size_t)sum;
        const ssize_t size = net.transport->read(net.transport, fd, bytes,
                                                 left < sizeof bytes ? left : sizeof bytes);
        if (size <= 0) {
            return sum > 0 ? sum : size;
        }
        for (ssize_t i = 0; i < size; i++) {
            assert_int_equal(bytes[i], byte_at((*from)++));
        }
        sum += size;
    }
    return sum;
}

/* ---- what it says ---- */

void assert_reads(int fd, const char *text)
{
    char got[256] = "";
    const ssize_t size = net.transport->read(net.transport, fd, got, sizeof got - 1);
    assert_int_equal(size, strlen(text));
    assert_string_equal(got, text);
}

void assert_read_fails(int fd, int error)
{
    char got[256];
    assert_int_equal(net.transport->read(net.transport, fd, got, sizeof got), -error);
}

void assert_at_end(int fd)
{
    assert_read_fails(fd, 0);
}

void assert_address(int fd, bool of_peer, const char *text)
{
    struct address address;
    char got[SKUA_ADDRESS_SIZE];
    assert_int_equal(net.transport->address(net.transport, fd, of_peer, &address), 0);
    address_format(&address, got);
    assert_string_equal(got, text);
}

uint32_t net_reports(int fd)
{
    const uint32_t flags = net.reports[fd];
    net.reports[fd] = 0;
    return flags;
}

/* ---- pairs ---- */

struct net_pair net_make_pair(uint32_t from, uint32_t to)
{
    char address[SKUA_ADDRESS_SIZE];
    struct net_pair pair = {.listener = -1};
    for (int port = 7000; pair.listener < 0; port++) {
        (void)snprintf(address, sizeof address, "10.0.0.%u:%d", to, port);
        pair.listener = net_listen(to, address);
    }
    pair.client = net_connect(from, address);
    net_run();
    assert_int_equal(net_connected(pair.client), 0);
    pair.server = net_accept(pair.listener);
    assert_true(pair.server >= 0);
    net_run();
    (void)net_reports(pair.client);
    (void)net_reports(pair.server);
    return pair;
}

void net_close_pair(const struct net_pair *pair)
{
    net_close(pair->client);
    net_close(pair->server);
    net_close(pair->listener);
}
