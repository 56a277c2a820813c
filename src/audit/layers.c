/* The layers of an audit: diagonal blocks of the Hessian, and dead units. */
#include <math.h>
#include <stdio.h>

#include "audit/audit.h"
#include "statistics/catalogue.h"

bool ks_audit_has_shares(const struct ks_audit *a)
{
    for (size_t i = 0; i < a->n_layers; i++)
        if (!(a->layers[i].trace >= 0))
            return false;
    return a->n_layers > 0;
}

/* An estimate of a layer's share of the trace, in percent; NaN if the layers have none. */
static double share(const struct ks_audit *a, size_t row)
{
    return ks_audit_has_shares(a) ? 100 * a->layers[row].trace_share : NAN;
}

/* The number of a layer, as in the names of its arrays. */
static struct ks_cell layer_cell(size_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%02zu", number);
    return ks_cell_printed(text, (double)number);
}

static void add_blocks(const struct ks_audit *a, struct ks_document *d)
{
    ks_document_columns(
        d, "",
        "layer<, kind<, parameters, %s (at least), %s (at least), trace (estimate), "
        "share of the trace (%%)",
        ks_catalogue[KS_STAT_LAMBDA_MAX].name, ks_catalogue[KS_STAT_KAPPA_EFFECTIVE_BOUND].name);
    for (size_t i = 0; i < a->n_layers; i++) {
        const struct ks_layer_row *row = &a->layers[i];

        ks_document_cells(d, layer_cell(row->number), ks_cell_text(row->kind),
                          ks_cell_count(row->dimension), ks_cell_at_least(4, row->lambda_max),
                          ks_cell_at_least(4, row->kappa_effective_bound),
                          ks_cell_digits(3, row->trace), ks_cell_digits(3, share(a, i)));
    }
    ks_document_add(d, KS_BLOCK_NOTE,
                    "Each row is the diagonal block of the Hessian that belongs to one layer, over "
                    "all critics. Its condition number is bounded off the block's known null "
                    "directions; a dash stands for a number that is not resolved. "
                    "Shares are estimates%s.",
                    ks_audit_has_shares(a) ? ""
                                           : ", and there are none if a layer's trace is negative");
}

/* The shares of the trace beside those of the parameters. */
static void add_shares(const struct ks_audit *a, struct ks_document *d)
{
    const double all = (double)(a->summary.critics * a->summary.parameters);
    struct ks_table table = {0};

    if (!ks_audit_has_shares(a))
        return;
    ks_table_columns(&table, "layer,trace,parameters");
    for (size_t i = 0; i < a->n_layers; i++) {
        char name[64];

        snprintf(name, sizeof name, "%02zu %s", a->layers[i].number, a->layers[i].kind);
        ks_table_cells(&table, KS_TEXT(name), KS_NUMBER(share(a, i)),
                       KS_NUMBER(100 * (double)a->layers[i].dimension / all));
    }
    ks_audit_figure(a, "shares", &table,
                    "The share of the trace of the Hessian that each layer has, an estimate, "
                    "beside its share of the parameters.",
                    d);
}

static void add_units(const struct ks_audit *a, struct ks_document *d)
{
    if (a->summary.n_units == 0)
        return;
    ks_document_add(d, KS_BLOCK_TEXT,
                    "Dead units are outputs of activation functions that are zero in all rows of "
                    "the first %zu minibatch%s. They are counted over all critics.",
                    a->summary.tried, a->summary.tried == 1 ? "" : "es");
    ks_document_columns(d, "", "layer<, kind<, units, dead");
    for (size_t i = 0; i < a->summary.n_units; i++) {
        const struct ks_audit_units *u = &a->summary.units[i];

        ks_document_cells(d, layer_cell(u->number), ks_cell_text(u->kind), ks_cell_count(u->units),
                          ks_cell_count(u->dead));
    }
}

void ks_audit_layers(const struct ks_audit *a, struct ks_document *d)
{
    if (a->layers) {
        add_shares(a, d);
        add_blocks(a, d);
    } else {
        ks_document_add(d, KS_BLOCK_TEXT,
                        "The blocks of layers were not analyzed "
                        "(--layer-order 0).");
    }
    add_units(a, d);
}

void ks_audit_find_layer(const struct ks_audit *a, struct ks_document *d)
{
    double largest = 0;
    size_t best = 0;

    for (size_t i = 0; i < a->n_layers; i++)
        if (a->layers[i].trace > largest) {
            largest = a->layers[i].trace;
            best = i;
        }
    if (!(largest > 0) || a->n_layers < 2)
        return;
    if (ks_audit_has_shares(a))
        ks_document_add(
            d, KS_BLOCK_TEXT,
            "Layer %02zu (%s) has the largest share of the curvature: %.3g%% of the trace of "
            "the Hessian, an estimate, with %.3g%% of the parameters.",
            a->layers[best].number, a->layers[best].kind, share(a, best),
            100. * (double)a->layers[best].dimension /
                (double)(a->summary.critics * a->summary.parameters));
    else
        ks_document_add(
            d, KS_BLOCK_TEXT,
            "Layer %02zu (%s) has the block of the Hessian with the largest trace: %.3g, an "
            "estimate. Some traces are negative, so the layers have no shares.",
            a->layers[best].number, a->layers[best].kind, largest);
}
