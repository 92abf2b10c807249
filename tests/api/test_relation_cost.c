/* SPDX-License-Identifier: MIT */
/* What relations cost: nothing where there are none, and otherwise the nodes of 64 bytes that
 * docs/architecture.md counts. */
#include "names.h"
#include "timers.h"

#define CROWD 100

/* Whoever could be called, watched, linked or named, but is not, has 128 bytes and nothing else. */
TEST(process_without_relations_needs_no_nodes)
{
    world_open_virtual();
    const uint64_t nodes = nodes_in_use();
    for (size_t i = 0; i < CROWD; i++) {
        (void)(i % 2 == 0 ? server_start(NO_ACTS) : careful_server_start(NO_ACTS));
    }
    assert_int_equal(nodes_in_use(), nodes);
}

/* The annex of each process that has no other relation yet, and two nodes for each relation. */
TEST(relation_needs_two_nodes_and_an_annex_where_there_is_none)
{
    world_open_virtual();
    struct actor *server = server_start(NO_ACTS);
    struct actor *other = actor_start(NO_ACTS);
    const uint64_t nodes = nodes_in_use();
    const struct {
        struct act act;
        uint64_t annexes;
    } rows[] = {
        {asks(1, server, 1), 1},
        {asks(2, server, 1), 0},
        {monitors(3, server), 0},
        {joins(4, server), 0},
        {links(server, SKUA_LINK_TELL, 5, NULL), 1}, /* its maker has one, too */
        {links(server, SKUA_LINK_TELL, 6, NULL), 0},
    };
    uint64_t expected = nodes;
    FOR_ROWS (row, rows) {
        actor_perform(other, ACTS(row->act));
        expected += 2 + row->annexes;
        assert_int_equal(nodes_in_use(), expected);
    }
    actor_perform(server, ACTS(finishes(0)));
    assert_int_equal(nodes_in_use(), nodes + 1); /* the annex of the one that lives */
    actor_perform(other, ACTS(finishes(0)));
    assert_int_equal(nodes_in_use(), nodes);
}

TEST(name_and_label_need_one_annex)
{
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    const uint64_t nodes = nodes_in_use();
    actor_perform(actor, ACTS(takes_name("one"), takes_name("two"), takes_label("three")));
    assert_int_equal(nodes_in_use(), nodes + 1);
    actor_perform(actor, ACTS(gives_up_name("one"), finishes(0)));
    assert_int_equal(nodes_in_use(), nodes);
}
