/* The quantities that the published code of XQC records, with its definitions (measure.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/measured.h"
#include "agent/policy.h"
#include "core/memory.h"

static const double EPS = 1e-6;

/* The number of units j of y [rows, d] with mean_i y_ij / (mean_k y_ik + EPS) <= 0. score [d]: work
 * space. */
static size_t count_dormant(size_t rows, size_t d, const real *y, double *score)
{
    size_t dormant = 0;

    memset(score, 0, d * sizeof *score);
    for (size_t i = 0; i < rows; i++) {
        double mean = 0;

        for (size_t j = 0; j < d; j++)
            mean += (double)y[i * d + j] / (double)d;
        for (size_t j = 0; j < d; j++)
            score[j] += (double)y[i * d + j] / (mean + EPS);
    }
    for (size_t j = 0; j < d; j++)
        dormant += score[j] <= 0;
    return dormant;
}

static bool is_last(const struct KS(arch) *arch, size_t i)
{
    return i + 1 == arch->n_layers;
}

/* Layers: the activation functions, and the last layer. */
static void measure_units(struct KS(measured) *s, double *score)
{
    const struct KS(arch) *arch = s->net->arch;
    double norms = 0, dormant = 0, layers = 0;

    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        const real *y = s->t->primal + s->net->at[i].y;
        double norm = NAN, share = NAN;

        if (l->kind->role != KS_ACTIVATION && !is_last(arch, i))
            continue;
        if (s->updated) {
            norm = KS(row_norm)(s->net->rows, l->out, y);
            share = (double)count_dormant(s->net->rows, l->out, y, score) / (double)l->out;
        }
        KS(measured_add)(s, "feature_norm_xqc", (int)l->number, norm);
        KS(measured_add)(s, "dormant_xqc", (int)l->number, share);
        norms += norm, dormant += share, layers++;
    }
    KS(measured_add)(s, "feature_norm_xqc", KS_ALL_LAYERS, norms);
    KS(measured_add)(s, "dormant_xqc", KS_ALL_LAYERS, dormant / layers);
}

/* The rank of the last activation function, if any. The published count starts at 1. */
static ks_status measure_rank(struct KS(measured) *s)
{
    const struct KS(arch) *arch = s->net->arch;
    size_t i = arch->n_layers;
    double rank = NAN;

    while (i > 0 && arch->layer[i - 1].kind->role != KS_ACTIVATION)
        i--;
    if (s->updated && i > 0)
        KS_TRY(KS(feature_rank)(s->net->rows, arch->layer[i - 1].out,
                                s->t->primal + s->net->at[i - 1].y, &rank));
    KS(measured_add)(s, "feature_rank_xqc", KS_ALL_LAYERS, rank < 1 ? 1 : rank);
    return KS_OK;
}

/* The published actor has a layer for the means and one for the log-stds. */
static void measure_gradient(struct KS(measured) *s)
{
    const struct KS(arch) *arch = s->net->arch;
    struct ks_norms all = {0};

    for (size_t i = 0; i < arch->n_layers && s->updated; i++)
        if (KS(has_norms)(&arch->layer[i])) {
            struct ks_norms n = KS(measured_norms)(s, &arch->layer[i],
                                                   is_last(arch, i) && !arch->policy.fixed ? 2 : 1);

            KS(norms_add)(&n, &all);
        }
    KS(measured_add)(s, "grad_norm_xqc", KS_ALL_LAYERS, s->updated ? sqrt(all.g2) : NAN);
    KS(measured_add)
    (s, "effective_lr_xqc", KS_ALL_LAYERS, s->updated ? all.rates / all.count : NAN);
}

/* The published code records log-stds within their bounds. */
static void bound_log_stds(const struct KS(agent) *a)
{
    const struct ks_policy *policy = &a->actor_arch->policy;
    real *head = KS(net_output)(a->actor_train, a->actor.primal);
    size_t n = policy->actions;

    for (size_t i = 0; i < a->config.batch && !policy->fixed; i++)
        for (size_t j = n; j < 2 * n; j++)
            head[i * 2 * n + j] = KS(policy_log_std)(policy, head[i * 2 * n + j]);
}

static ks_status measure_critics(struct KS(agent) *a, struct KS(measured) *s, double *score)
{
    size_t start = s->n;

    for (size_t e = 0; e < a->config.ensemble; e++) {
        const struct KS(trained) *c = &a->critic[e];

        if (s->updated)
            KS(net_forward)(a->critic_both, c->w, NULL, a->input, c->primal);
        s->t = c;
        s->first = e == 0;
        s->n = start;
        measure_units(s, score);
        KS_TRY(measure_rank(s));
    }
    return KS_OK;
}

static ks_status measure_actor(struct KS(agent) *a, struct KS(measured) *s, double *score)
{
    if (s->updated)
        bound_log_stds(a);
    measure_units(s, score);
    KS_TRY(measure_rank(s));
    measure_gradient(s);
    return KS_OK;
}

ks_status KS(agent_measure_published)(struct KS(agent) *a, const struct ks_batch *batch,
                                      struct ks_measure *list, size_t *n)
{
    ks_status status = KS_OK;
    size_t critic = KS(widest)(a->critic_arch), actor = KS(widest)(a->actor_arch);
    struct KS(measured) s = {.updated = batch != NULL, .list = list};
    double *score = NULL;
    real *actor_g = NULL;

    KS_GO(ks_alloc(critic > actor ? critic : actor, sizeof *score, &score));
    KS_GO(ks_alloc(a->actor_arch->parameters, sizeof *actor_g, &actor_g));
    if (batch)
        KS(agent_review)(a, batch, actor_g);
    s.name = "critic", s.net = a->critic_both, s.weight = 1 / (double)a->config.ensemble;
    KS_GO(measure_critics(a, &s, score));
    s.name = "actor", s.net = a->actor_train, s.weight = 1, s.first = true;
    s.t = &a->actor, s.g = actor_g;
    KS_GO(measure_actor(a, &s, score));
    *n = s.n;
done:
    free(score);
    free(actor_g);
    return status;
}
