#include "agent/measure.h"

#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/measured.h"
#include "core/memory.h"

static const double RANK_SHARE = 0.99;

void KS(measured_add)(struct KS(measured) *s, const char *quantity, int layer, double value)
{
    struct ks_measure *m = &s->list[s->n++];

    if (layer == KS_ALL_LAYERS)
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

void KS(norms_add)(const struct ks_norms *from, struct ks_norms *to)
{
    to->w2 += from->w2;
    to->g2 += from->g2;
    to->rates += from->rates;
    to->count += from->count;
}

/* The norms of the first `columns` columns of arrays [rows, width]. */
static struct ks_norms array_norms(size_t rows, size_t width, size_t columns, const real *w,
                                   const real *g)
{
    struct ks_norms n = {0};

    for (size_t i = 0; i < rows; i++) {
        n.w2 += squares(columns, w + i * width);
        n.g2 += squares(columns, g + i * width);
    }
    if (n.w2 > 0) {
        n.count = (double)(rows * columns);
        n.rates = n.count * sqrt(n.g2 / n.w2);
    }
    return n;
}

struct ks_norms KS(measured_norms)(const struct KS(measured) *s, const struct KS(layer) *l,
                                   size_t parts)
{
    struct ks_norms sum = {0};
    size_t at = l->offset;

    for (size_t k = 0; k < l->n_params; k++) {
        size_t n = KS(array_size)(&l->param[k]);
        size_t rows = parts > 1 ? n / l->param[k].columns : 1, width = n / rows;

        for (size_t part = 0; part < parts; part++) {
            size_t from = at + part * (width / parts);
            struct ks_norms one = array_norms(rows, width, width / parts, s->t->w + from,
                                              s->g + from);

            KS(norms_add)(&one, &sum);
        }
        at += n;
    }
    return sum;
}

bool KS(has_norms)(const struct KS(layer) *l)
{
    return l->n_params > 0 && l->param[0].orthogonal;
}

static void report_norms(struct KS(measured) *s, int layer, const struct ks_norms *n)
{
    KS(measured_add)(s, "param_norm", layer, sqrt(n->w2));
    KS(measured_add)(s, "grad_norm", layer, sqrt(n->g2));
    KS(measured_add)(s, "effective_lr", layer, n->count > 0 ? n->rates / n->count : 0);
}

static void measure_norms(struct KS(measured) *s)
{
    struct ks_norms all = {0};

    for (size_t i = 0; i < s->net->arch->n_layers; i++) {
        const struct KS(layer) *l = &s->net->arch->layer[i];
        struct ks_norms n;

        if (!KS(has_norms)(l))
            continue;
        n = KS(measured_norms)(s, l, 1);
        report_norms(s, (int)l->number, &n);
        KS(norms_add)(&n, &all);
    }
    report_norms(s, KS_ALL_LAYERS, &all);
    KS(measured_add)(s, "definition_1_lr", KS_ALL_LAYERS, s->rate / sqrt(all.w2));
}

double KS(row_norm)(size_t rows, size_t d, const real *y)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        sum += sqrt(squares(d, y + i * d));
    return sum / (double)rows;
}

double KS(unit_activity)(size_t rows, size_t d, const real *y, size_t unit)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        sum += fabs((double)y[i * d + unit]);
    return sum;
}

static size_t count_dormant(size_t rows, size_t d, const real *y)
{
    size_t dormant = 0;

    for (size_t j = 0; j < d; j++)
        dormant += KS(unit_activity)(rows, d, y, j) <= 0;
    return dormant;
}

static void measure_activations(struct KS(measured) *s)
{
    size_t dormant = 0, units = 0, rows = s->net->rows;

    for (size_t i = 0; i + 1 < s->net->arch->n_layers; i++) {
        const struct KS(layer) *l = &s->net->arch->layer[i];
        const real *y = s->t->primal + s->net->at[i].y;
        size_t silent;

        if (l->kind->role != KS_ACTIVATION)
            continue;
        silent = count_dormant(rows, l->out, y);
        KS(measured_add)
        (s, "feature_norm", (int)l->number, s->updated ? KS(row_norm)(rows, l->out, y) : NAN);
        KS(measured_add)
        (s, "dormant", (int)l->number, s->updated ? (double)silent / (double)l->out : NAN);
        dormant += silent;
        units += l->out;
    }
    KS(measured_add)
    (s, "dormant", KS_ALL_LAYERS, s->updated && units > 0 ? (double)dormant / (double)units : NAN);
}

/* How many of the singular values [n], in descending order, make up RANK_SHARE of their sum. */
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

/* LAPACK reads y as the column-major transpose, which has the same singular values. */
ks_status KS(feature_rank)(size_t rows, size_t d, const real *y, double *rank)
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
        *rank = NAN; /* the features contain NaN: no rank, but not an error here */
done:
    free(copy);
    free(values);
    return status;
}

static ks_status measure_features(struct KS(measured) *s)
{
    size_t d = s->net->arch->layer[s->net->arch->n_layers - 1].in;
    double rank = NAN, norm = NAN;

    if (s->updated && s->net->arch->n_layers > 1) {
        const real *y = KS(net_features)(s->net, s->t->primal);

        norm = KS(row_norm)(s->net->rows, d, y);
        KS_TRY(KS(feature_rank)(s->net->rows, d, y, &rank));
    }
    KS(measured_add)(s, "feature_norm", KS_ALL_LAYERS, norm);
    KS(measured_add)(s, "feature_rank", KS_ALL_LAYERS, rank);
    return KS_OK;
}

/* The learning rate of the last step. */
static double last_rate(const struct ks_adam *adam)
{
    return adam->step > 0 ? KS(rate_at)(&adam->rate, adam->step - 1) : NAN;
}

static ks_status measure(struct KS(measured) *s)
{
    measure_norms(s);
    measure_activations(s);
    return measure_features(s);
}

/* All quantities but those in _xqc. The critics' input rows are (s, a). */
static ks_status measure_agent(struct KS(agent) *a, struct ks_measure *list, size_t *n)
{
    bool updated = a->updates > 0;
    struct KS(measured) s = {.n = 0};

    for (size_t e = 0; e < a->config.ensemble; e++) {
        struct KS(trained) *c = &a->critic[e];

        if (updated)
            KS(net_forward)(a->critic_eval, c->w, c->state, a->input, c->primal);
        s = (struct KS(measured)){.name = "critic",
                                  .net = a->critic_eval,
                                  .t = c,
                                  .g = c->g,
                                  .rate = last_rate(&a->critic_adam),
                                  .updated = updated,
                                  .list = list,
                                  .weight = 1 / (double)a->config.ensemble,
                                  .first = e == 0};
        KS_TRY(measure(&s));
    }
    if (updated)
        KS(net_forward)(a->actor_eval, a->actor.w, a->actor.state, a->s, a->actor.primal);
    s = (struct KS(measured)){.name = "actor",
                              .net = a->actor_eval,
                              .t = &a->actor,
                              .g = a->actor.g,
                              .rate = last_rate(&a->actor_adam),
                              .updated = updated,
                              .list = list,
                              .n = s.n,
                              .weight = 1,
                              .first = true};
    KS_TRY(measure(&s));
    *n = s.n;
    return KS_OK;
}

ks_status KS(agent_measure)(struct KS(agent) *a, const struct ks_batch *batch,
                            struct ks_measure *list, size_t *n)
{
    size_t own, published;

    KS_TRY(measure_agent(a, list, &own));
    KS_TRY(KS(agent_measure_published)(a, batch, list + own, &published));
    *n = own + published;
    return KS_OK;
}

/* Per network: 7 quantities of all layers and 5 that end in _xqc; per layer 3 and 2. */
size_t KS(agent_measures)(const struct KS(agent) *a)
{
    return 24 + 5 * (a->critic_arch->n_layers + a->actor_arch->n_layers);
}
