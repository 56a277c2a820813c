/* The layers of an audit: diagonal blocks of the Hessian, and dead units. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "core/interval.h"

enum { CELL = 32 };

/* With four digits, rounded down so that a lower bound stays one; "-" if it is not finite. */
static const char *rounded(double value, char text[CELL])
{
    if (isfinite(value))
        snprintf(text, CELL, "%.4g", ks_round_down(value, 4));
    else
        snprintf(text, CELL, "-");
    return text;
}

/* A trace is divided among the layers only if no block's trace is negative. */
static bool has_shares(const struct ks_audit *a)
{
    for (size_t i = 0; i < a->n_layers; i++)
        if (!(a->layers[i].trace >= 0))
            return false;
    return true;
}

/* An estimate of the share; "-" if the layers have none. */
static const char *share(const struct ks_audit *a, size_t row, char text[CELL])
{
    const double value = a->layers[row].trace_share;

    if (has_shares(a) && isfinite(value))
        snprintf(text, CELL, "%.3g%%", 100 * value);
    else
        snprintf(text, CELL, "-");
    return text;
}

static void add_blocks(const struct ks_audit *a, struct ks_document *d)
{
    char largest[CELL], bound[CELL], part[CELL];

    ks_document_add(d, KS_BLOCK_TABLE,
                    "layer" KS_CELL "kind" KS_CELL "parameters" KS_CELL
                    "lambda_max (at least)" KS_CELL "kappa_effective_bound (at least)" KS_CELL
                    "trace (estimate)" KS_CELL "share of the trace");
    for (size_t i = 0; i < a->n_layers; i++) {
        const struct ks_layer_row *row = &a->layers[i];

        ks_document_add(d, KS_BLOCK_ROW,
                        "%02zu" KS_CELL "%s" KS_CELL "%zu" KS_CELL "%s" KS_CELL "%s" KS_CELL
                        "%.3g" KS_CELL "%s",
                        row->number, row->kind, row->dimension, rounded(row->lambda_max, largest),
                        rounded(row->kappa_effective_bound, bound), row->trace, share(a, i, part));
    }
    ks_document_add(d, KS_BLOCK_NOTE,
                    "Each row is the diagonal block of the Hessian that belongs to one layer, over "
                    "all critics. Its condition number is bounded off the block's known null "
                    "directions; a dash stands for a number that is not resolved or infinite. "
                    "Shares are estimates%s.",
                    has_shares(a) ? "" : ", and there are none if a layer's trace is negative");
}

static void add_units(const struct ks_audit *a, struct ks_document *d)
{
    if (a->facts.n_units == 0)
        return;
    ks_document_add(d, KS_BLOCK_TEXT,
                    "Dead units are outputs of activation functions that are zero in all rows of "
                    "the first %zu minibatch%s. They are counted over all critics.",
                    a->facts.tried, a->facts.tried == 1 ? "" : "es");
    ks_document_add(d, KS_BLOCK_TABLE, "layer" KS_CELL "kind" KS_CELL "units" KS_CELL "dead");
    for (size_t i = 0; i < a->facts.n_units; i++) {
        const struct ks_audit_units *u = &a->facts.units[i];

        ks_document_add(d, KS_BLOCK_ROW, "%02zu" KS_CELL "%s" KS_CELL "%zu" KS_CELL "%zu",
                        u->number, u->kind, u->units, u->dead);
    }
}

void ks_audit_layers(const struct ks_audit *a, struct ks_document *d)
{
    if (a->layers)
        add_blocks(a, d);
    else
        ks_document_add(d, KS_BLOCK_TEXT,
                        "The blocks of layers were not analyzed "
                        "(--layer-order 0).");
    add_units(a, d);
}

void ks_audit_find_layer(const struct ks_audit *a, struct ks_document *d)
{
    double largest = 0;
    size_t best = 0;
    char part[CELL];

    for (size_t i = 0; i < a->n_layers; i++)
        if (a->layers[i].trace > largest) {
            largest = a->layers[i].trace;
            best = i;
        }
    if (!(largest > 0) || a->n_layers < 2)
        return;
    if (has_shares(a))
        ks_document_add(d, KS_BLOCK_ITEM,
                        "Layer %02zu (%s) has the largest share of the trace of the Hessian: %s, "
                        "an estimate.",
                        a->layers[best].number, a->layers[best].kind, share(a, best, part));
    else
        ks_document_add(d, KS_BLOCK_ITEM,
                        "Layer %02zu (%s) has the block of the Hessian with the largest trace: "
                        "%.3g, an estimate. Some traces are negative, so the layers have no "
                        "shares.",
                        a->layers[best].number, a->layers[best].kind, largest);
}
