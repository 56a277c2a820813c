/* Agents that are updated and measured, for the tests of measure.h. */
#ifndef KS_TEST_MEASURED_AGENTS_H
#define KS_TEST_MEASURED_AGENTS_H

#include <stdio.h>

#include "agents.h"

#include "agent/measure.h"
#include "agent/stream.h"

static struct transitions transitions; /* of the last update */
static struct ks_batch last;

static inline void update_with(struct KS(agent) *a, uint64_t seed)
{
    struct ks_update u;

    last = draw_transitions(&transitions, seed);
    assert_ok(KS(agent_update)(a, &last, &u));
}

static inline void update(struct KS(agent) *a)
{
    update_with(a, 1);
}

static inline struct ks_measure *measure(struct KS(agent) *a, size_t *n)
{
    struct ks_measure *list = calloc(KS(agent_measures)(a), sizeof *list);

    assert_ok(KS(agent_measure)(a, a->updates > 0 ? &last : NULL, list, n));
    assert_true(*n <= KS(agent_measures)(a));
    return list;
}

static inline double value(const struct ks_measure *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].value;
    fail_msg("no '%s'", name);
    return 0;
}

#endif
