#include "ks/measure.h"

#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ks/memory.h"

static const double RANK_SHARE = 0.99;

/* One network: where its quantities are, and the list they are added to. Networks of an ensemble
 * run through the same names; `weight` is 1 over their number. */
struct subject {
    const char *name;
    const struct ks_net *net;
    const struct ks_trained *t;
    bool updated; /* its block holds activations of a minibatch */
    double weight;
    bool first; /* of its ensemble: starts the sums        */
    struct ks_measure *list;
    size_t n;
};

enum { WHOLE = -1 };

static void add(struct subject *s, const char *quantity, int layer, double value)
{
    struct ks_measure *m = &s->list[s->n++];

    if (layer == WHOLE)
        snprintf(m->name, sizeof m->name, "%s_%s", s->name, quantity);
    else
        snprintf(m->name, sizeof m->name, "%s_%s_%02d", s->name, quantity, layer);
    m->value = (s->first ? 0 : m->value) + s->weight * value;
}

static double squares(size_t n, const real *x)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

struct norms {
    double w2, g2;       /* squared norms                                 */
    double rates, count; /* sum of n |g|/|w| over arrays, and of their n  */
};

static void add_norms(const struct norms *from, struct norms *to)
{
    to->w2 += from->w2;
    to->g2 += from->g2;
    to->rates += from->rates;
    to->count += from->count;
}

static struct norms layer_norms(const struct subject *s, const struct ks_layer *l)
{
    struct norms sum = {0};
    size_t at = l->offset;

    for (size_t k = 0; k < l->n_params; k++) {
        size_t n = KS(array_size)(&l->param[k]);
        struct norms one = {.w2 = squares(n, s->t->w + at), .g2 = squares(n, s->t->g + at)};

        if (one.w2 > 0) {
            one.rates = (double)n * sqrt(one.g2 / one.w2);
            one.count = (double)n;
        }
        add_norms(&one, &sum);
        at += n;
    }
    return sum;
}

static void report_norms(struct subject *s, int layer, const struct norms *n)
{
    add(s, "param_norm", layer, sqrt(n->w2));
    add(s, "grad_norm", layer, sqrt(n->g2));
    add(s, "effective_lr", layer, n->count > 0 ? n->rates / n->count : 0);
}

static void measure_norms(struct subject *s)
{
    struct norms all = {0};

    for (size_t i = 0; i < s->net->arch->n_layers; i++) {
        const struct ks_layer *l = &s->net->arch->layer[i];
        struct norms n;

        if (l->n_params == 0 || !l->param[0].orthogonal)
            continue;
        n = layer_norms(s, l);
        report_norms(s, (int)l->number, &n);
        add_norms(&n, &all);
    }
    report_norms(s, WHOLE, &all);
}

/* y [rows, d]: the mean norm of a row. */
static double row_norm(size_t rows, size_t d, const real *y)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        sum += sqrt(squares(d, y + i * d));
    return sum / (double)rows;
}

static size_t count_dormant(size_t rows, size_t d, const real *y)
{
    size_t dormant = 0;

    for (size_t j = 0; j < d; j++) {
        double sum = 0;

        for (size_t i = 0; i < rows; i++)
            sum += fabs((double)y[i * d + j]);
        dormant += sum <= 0;
    }
    return dormant;
}

static void measure_activations(struct subject *s)
{
    size_t dormant = 0, units = 0, rows = s->net->rows;

    for (size_t i = 0; i + 1 < s->net->arch->n_layers; i++) {
        const struct ks_layer *l = &s->net->arch->layer[i];
        const real *y = s->t->primal + s->net->at[i].y;
        size_t silent;

        if (l->kind->role != KS_ACTIVATION)
            continue;
        silent = count_dormant(rows, l->out, y);
        add(s, "feature_norm", (int)l->number, s->updated ? row_norm(rows, l->out, y) : NAN);
        add(s, "dormant", (int)l->number, s->updated ? (double)silent / (double)l->out : NAN);
        dormant += silent;
        units += l->out;
    }
    add(s, "dormant", WHOLE, s->updated && units > 0 ? (double)dormant / (double)units : NAN);
}

/* How many of the singular values [n], descending, make up RANK_SHARE of their sum. */
static double effective_rank(size_t n, const double *values)
{
    double sum = 0, partial = 0;
    size_t rank = 0;

    for (size_t i = 0; i < n; i++)
        sum += values[i];
    while (rank < n && partial < RANK_SHARE * sum)
        partial += values[rank++];
    return (double)rank;
}

/* y [rows, d], read as its transpose in column-major order, which has the same singular values. */
static ks_status feature_rank(size_t rows, size_t d, const real *y, double *rank)
{
    ks_status status = KS_OK;
    size_t n = rows < d ? rows : d;
    double *copy = NULL, *values = NULL;

    KS_GO(ks_alloc(rows * d, sizeof *copy, &copy));
    KS_GO(ks_alloc(n, sizeof *values, &values));
    for (size_t i = 0; i < rows * d; i++)
        copy[i] = (double)y[i];
    if (LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', (int)d, (int)rows, copy, (int)d, values, NULL, 1,
                       NULL, 1) == 0)
        *rank = effective_rank(n, values);
    else
        *rank = NAN; /* a NaN among the features: no rank, and no reason to stop here */
done:
    free(copy);
    free(values);
    return status;
}

static ks_status measure_features(struct subject *s)
{
    size_t d = s->net->arch->layer[s->net->arch->n_layers - 1].in;
    double rank = NAN, norm = NAN;

    if (s->updated && s->net->arch->n_layers > 1) {
        const real *y = KS(net_features)(s->net, s->t->primal);

        norm = row_norm(s->net->rows, d, y);
        KS_TRY(feature_rank(s->net->rows, d, y, &rank));
    }
    add(s, "feature_norm", WHOLE, norm);
    add(s, "feature_rank", WHOLE, rank);
    return KS_OK;
}

static ks_status measure(struct subject *s)
{
    measure_norms(s);
    measure_activations(s);
    return measure_features(s);
}

/* Input rows of the critics are those of (s, a). */
ks_status KS(agent_measure)(struct ks_agent *a, struct ks_measure *list, size_t *n)
{
    bool updated = a->updates > 0;
    struct subject s = {.n = 0};

    for (size_t e = 0; e < a->config.ensemble; e++) {
        struct ks_trained *c = &a->critic[e];

        if (updated)
            KS(net_forward)(a->critic_eval, c->w, c->state, a->input, c->primal);
        s = (struct subject){.name = "critic",
                             .net = a->critic_eval,
                             .t = c,
                             .updated = updated,
                             .list = list,
                             .weight = 1 / (double)a->config.ensemble,
                             .first = e == 0};
        KS_TRY(measure(&s));
    }
    if (updated)
        KS(net_forward)(a->actor_eval, a->actor.w, a->actor.state, a->s, a->actor.primal);
    s = (struct subject){.name = "actor",
                         .net = a->actor_eval,
                         .t = &a->actor,
                         .updated = updated,
                         .list = list,
                         .n = s.n,
                         .weight = 1,
                         .first = true};
    KS_TRY(measure(&s));
    *n = s.n;
    return KS_OK;
}

size_t KS(agent_measures)(const struct ks_agent *a)
{
    return 6 + 3 * a->critic_arch->n_layers + 6 + 3 * a->actor_arch->n_layers;
}
