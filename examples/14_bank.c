/* SPDX-License-Identifier: MIT */
/* A bank on one host, a customer on another, and a network between them that breaks. The customer
 * pays in ten times; if no answer comes, it connects again and sends the same once more. Did the
 * bank not get it, or did only the answer get lost? Some seeds end with too much in the account,
 * until the bank looks at the numbers of deposits.
 *
 *   14_bank          tries 200 seeds
 *   14_bank SEED     one of them, with its trace */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPOSITS 10
#define AMOUNT   UINT64_C(100)
#define TIMEOUT  SKUA_SECOND

/* What the customer writes. The answer is the balance, 8 bytes. */
SKUA_MESSAGE(deposit, 1, uint64_t number; uint64_t amount;);

/* Reads exactly so many bytes. */
static int read_all(skua_context *ctx, skua_socket socket, void *to, size_t size)
{
    skua_payload data;
    int error = skua_task_read_exactly(ctx, socket, size, TIMEOUT, &data);
    if (error == 0 && skua_payload_size(&data) < size) {
        error = SKUA_E_CLOSED; /* by the other side */
    } else if (error == 0) {
        memcpy(to, skua_payload_data(&data), size);
    }
    skua_payload_drop(&data);
    return error;
}

/* ---- the bank ---- */

static bool careful; /* takes no deposit twice */

/* One customer at a time, until there is no more to hear. */
static int bank_main(void *self, skua_context *ctx)
{
    uint64_t balance = 0, last = 0; /* the number of the last deposit */
    struct deposit deposit;
    skua_socket listener, customer;
    (void)self;
    int error = skua_listen(ctx, "0.0.0.0:7000", NULL, &listener);
    while (error == 0) {
        error = skua_task_accept(ctx, listener, SKUA_FOREVER, &customer);
        while (error == 0 && read_all(ctx, customer, &deposit, sizeof deposit) == 0) {
            if (!careful || deposit.number > last) {
                balance += deposit.amount;
                last = deposit.number;
            }
            if (skua_task_write(ctx, customer, skua_payload_u64(0, balance), TIMEOUT) != 0) {
                break;
            }
        }
        skua_socket_close(ctx, customer);
    }
    return error;
}

/* ---- the customer ---- */

/* Pays in once: on the connection that there is, or else on a new one. */
static int pay(skua_context *ctx, skua_socket *bank, uint64_t number, uint64_t *balance)
{
    const struct deposit deposit = {number, AMOUNT};
    skua_payload data;
    int error = skua_payload_of_bytes(ctx, deposit_number, &deposit, sizeof deposit, &data);
    if (error == 0 && bank->bits == 0) {
        error = skua_task_connect(ctx, "10.0.0.1:7000", NULL, TIMEOUT, bank);
    }
    error = error != 0 ? error : skua_task_write(ctx, *bank, data, TIMEOUT);
    return error != 0 ? error : read_all(ctx, *bank, balance, sizeof *balance);
}

static int customer_main(void *self, skua_context *ctx)
{
    skua_socket bank = {0};
    uint64_t balance = 0;
    (void)self;
    for (uint64_t number = 1; number <= DEPOSITS; number++) {
        while (pay(ctx, &bank, number, &balance) != 0) {
            skua_socket_close(ctx, bank);
            bank = (skua_socket){0};
            if (skua_task_sleep(ctx, TIMEOUT / 10) != 0) {
                return SKUA_E_CANCELLED;
            }
        }
    }
    return skua_done(ctx, skua_payload_u64(0, balance));
}

static const skua_process_type bank_type = {"bank", .main = bank_main};
static const skua_process_type customer_type = {"customer", .main = customer_main};

/* ---- the simulation ---- */

static void print(void *arg, const skua_sim_record *record)
{
    char line[160];
    (void)arg;
    skua_sim_record_format(record, line, sizeof line);
    puts(line);
}

/* What the account has in the end. */
static uint64_t simulate(unsigned long seed, bool trace)
{
    const skua_sim_config sim = {.faults.network = {.reset = 10000, .partition = 10000},
                                 .on_record = trace ? print : NULL};
    skua_runtime *runtime;
    skua_pid customer;
    skua_exit exit;
    if (skua_runtime_create(&runtime, &(skua_runtime_config){.seed = seed, .sim = &sim}) != 0 ||
        skua_runtime_start(runtime) != 0 ||
        skua_sim_host_submit(runtime, 1, &bank_type, skua_nothing(), NULL) != 0 ||
        skua_sim_host_submit(runtime, 2, &customer_type, skua_nothing(), &customer) != 0 ||
        skua_process_wait(runtime, customer, SKUA_FOREVER, &exit) != 0 || exit.error != 0) {
        abort();
    }
    skua_runtime_stop(runtime, TIMEOUT);
    skua_runtime_destroy(runtime);
    return skua_payload_to_u64(&exit.result);
}

int main(int argc, char **argv)
{
    const unsigned long only = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    const unsigned long first = only != 0 ? only : 1, last = only != 0 ? only : 200;
    unsigned long wrong[] = {0, 0};
    for (int round = 0; round < 2; round++, careful = true) {
        for (unsigned long seed = first; seed <= last; seed++) {
            const uint64_t balance = simulate(seed, only != 0);
            if (balance != DEPOSITS * AMOUNT && wrong[round]++ == 0) {
                printf("seed %lu: %" PRIu64 " paid in, %" PRIu64 " in the account\n", seed,
                       DEPOSITS * AMOUNT, balance);
            }
        }
        printf("%s bank: %lu of %lu seeds end with a wrong balance\n",
               careful ? "careful" : "careless", wrong[round], last - first + 1);
    }
    return wrong[1] == 0 ? 0 : 1;
}
