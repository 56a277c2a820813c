#include "inspect/inspect.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_metrics.h"
#include "core/memory.h"
#include "net/net.h"

/* One critic's passes. */
struct passes {
    const struct ks_checkpoint *c;
    struct KS(net) *net;   /* owned */
    double *primal;        /* owned */
    double *w;             /* parameters and frozen numbers, as passes read them; owned */
    const double *running; /* running statistics, if passes read them; else NULL */
    double *state;         /* a copy, which a pass may change; owned */
    bool *alive;           /* [units of all layers]; owned */
};

static ks_status find_layers(const struct ks_checkpoint *c, struct ks_dead_units *u)
{
    const struct KS(arch) *arch = c->critic.arch;

    KS_TRY(ks_alloc(arch->n_layers, sizeof *u->layer, &u->layer));
    for (size_t i = 0; i + 1 < arch->n_layers; i++) {
        struct ks_dead_layer *l = &u->layer[u->n];

        if (arch->layer[i].kind->role != KS_ACTIVATION)
            continue;
        l->layer = &arch->layer[i];
        l->first = u->all;
        u->all += l->layer->out;
        KS_TRY(ks_alloc(c->critic.ensemble, sizeof *l->dead, &l->dead));
        u->n++;
    }
    return KS_OK;
}

static ks_status passes_new(const struct ks_checkpoint *c, const struct ks_dead_units *u,
                            struct passes *p)
{
    p->c = c;
    KS_TRY(KS(net_new)(c->critic.arch, c->rows, c->loss_rows, false, &p->net));
    KS_TRY(ks_alloc(p->net->primal, sizeof *p->primal, &p->primal));
    KS_TRY(ks_alloc(c->critic.arch->states, sizeof *p->state, &p->state));
    KS_TRY(ks_alloc(ks_arch_extended(c->critic.arch), sizeof *p->w, &p->w));
    return ks_alloc(u->all, sizeof *p->alive, &p->alive);
}

static void passes_clear(struct passes *p)
{
    KS(net_free)(p->net);
    free(p->primal);
    free(p->w);
    free(p->state);
    free(p->alive);
}

/* The extended vector (arch.h) of one critic. */
static void take_critic(struct passes *p, size_t critic)
{
    const struct ks_networks *c = &p->c->critic;
    const size_t n = c->arch->parameters, frozen = c->arch->frozen;

    memcpy(p->w, c->w + critic * n, n * sizeof *p->w);
    if (frozen > 0)
        memcpy(p->w + n, c->frozen + critic * frozen, frozen * sizeof *p->w);
    if (c->arch->reads_state && c->state)
        p->running = c->state + critic * c->arch->states;
}

/* Marks the units that are not zero in all rows of one minibatch. A NaN is not zero. */
static void mark_alive(const struct passes *p, size_t minibatch, const struct ks_dead_units *u)
{
    const struct KS(arch) *arch = p->c->critic.arch;
    const double *x = p->c->input + minibatch * p->c->rows * arch->in;

    if (p->running)
        memcpy(p->state, p->running, arch->states * sizeof *p->state);
    KS(net_forward)(p->net, p->w, p->running ? p->state : NULL, x, p->primal);
    for (size_t i = 0; i < u->n; i++) {
        const struct KS(layer) *l = u->layer[i].layer;
        const struct ks_layout *at = &p->net->at[l - arch->layer];
        bool *alive = p->alive + u->layer[i].first;

        for (size_t j = 0; j < l->out; j++)
            alive[j] |= KS(unit_activity)(at->rows, l->out, p->primal + at->y, j) != 0;
    }
}

ks_status ks_dead_units_count(const struct ks_checkpoint *c, struct ks_dead_units *u)
{
    KS_CLEARED_BY(passes_clear) struct passes p = {.net = NULL};

    *u = (struct ks_dead_units){.minibatches = KS_DEAD_UNITS_TRIED};
    if (c->minibatches < u->minibatches)
        u->minibatches = c->minibatches;
    if (c->critic.arch->reads_state && !c->critic.state)
        return KS_OK;
    KS_TRY(find_layers(c, u));
    KS_TRY(passes_new(c, u, &p));
    for (size_t e = 0; e < c->critic.ensemble; e++) {
        take_critic(&p, e);
        memset(p.alive, 0, u->all * sizeof *p.alive);
        for (size_t n = 0; n < u->minibatches; n++)
            mark_alive(&p, n, u);
        for (size_t i = 0; i < u->n; i++)
            for (size_t j = 0; j < u->layer[i].layer->out; j++)
                u->layer[i].dead[e] += !p.alive[u->layer[i].first + j];
    }
    return KS_OK;
}

void ks_dead_units_clear(struct ks_dead_units *u)
{
    for (size_t i = 0; u->layer && i < u->n; i++)
        free(u->layer[i].dead);
    free(u->layer);
    *u = (struct ks_dead_units){.n = 0};
}
