/* The findings: sentences with the number behind each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "core/round.h"
#include "io/attribute.h"
#include "statistics/statistics.h"

/* Beyond these, a finding is added or worded as a warning. Judgements, not theorems. */
static const double WRONG_PRODUCTS = 1e-3; /* as the analyzer warns                        */
static const double LARGE_SHARE = 0.5;     /* of the trace, or of the Gauss-Newton matrix  */

static double of(const struct ks_audit *a, enum ks_audit_spectrum which, const char *name)
{
    return a->spectrum[which] ? ks_statistic(a->spectrum[which], name) : NAN;
}

static void find_proofs(const struct ks_audit *a, struct ks_document *d)
{
    if (a->facts.proofs == 0)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "The file has no proofs (/batch/output, /batch/loss, "
                        "/batch/gradient_norm): nothing was compared with the program that trained "
                        "the critic, so a wrong export would not be noticed.");
    else
        ks_document_add(d, KS_BLOCK_ITEM,
                        "The file has %zu of 3 proofs of the program that trained the critic, and "
                        "they agree with what is computed here.",
                        a->facts.proofs);
}

static void find_condition(const struct ks_audit *a, struct ks_document *d)
{
    double bound = of(a, KS_AUDIT_HESSIAN, "kappa_effective_bound");
    double null = of(a, KS_AUDIT_HESSIAN, "null_dimension");
    double dead = of(a, KS_AUDIT_HESSIAN, "dead_dimension");

    if (null + dead > 0)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "The loss does not change along at least %.0f directions (%.0f by the "
                        "architecture, %.0f dead coordinates), so the condition number is "
                        "infinite.",
                        null + dead, null, dead);
    if (isfinite(bound))
        ks_document_add(d, KS_BLOCK_ITEM,
                        "Off the known null directions the condition number is at least %.3g. "
                        "This is a lower bound: the true number may be larger.",
                        ks_round_down(bound, 3));
    else
        ks_document_add(d, KS_BLOCK_ITEM,
                        "The condition number off the known null directions is not resolved.");
}

static void find_gradient(const struct ks_audit *a, struct ks_document *d)
{
    char text[KS_INTERVAL_TEXT];
    struct ks_interval r = ks_audit_interval(a->spectrum[KS_AUDIT_HESSIAN], "kappa_gradient_90");

    ks_document_add(d, KS_BLOCK_ITEM,
                    "90%% of the gradient's energy lies on eigenvalues that are smaller than the "
                    "largest by at most a factor K; K: %s (99%% interval).",
                    ks_interval_text(r, text));
}

/* Negative curvature, as a share of the largest absolute eigenvalue. */
static void find_negative(const struct ks_audit *a, struct ks_document *d)
{
    double low = of(a, KS_AUDIT_HESSIAN, "lambda_min");
    struct ks_interval all = ks_audit_interval(a->spectrum[KS_AUDIT_HESSIAN], "lambda_abs_max");

    if (low < -of(a, KS_AUDIT_HESSIAN, "noise_floor") && isfinite(all.upper))
        ks_document_add(d, KS_BLOCK_ITEM,
                        "The loss is not convex here: the smallest eigenvalue is at most %.3g, "
                        "which is at least %.2g%% of the largest in absolute value.",
                        low, 100 * -low / all.upper);
}

/* |H - G| against |G|: how much of the curvature Gauss-Newton misses. */
static void find_residual(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_spectrum *g = a->spectrum[KS_AUDIT_GGN], *r = a->spectrum[KS_AUDIT_RESIDUAL];
    char text[KS_INTERVAL_TEXT];
    struct ks_interval ratio;

    if (!g || !r)
        return;
    ratio = ks_interval_ratio(ks_audit_interval(r, "lambda_abs_max"),
                              ks_audit_interval(g, "lambda_abs_max"));
    ks_document_add(d, KS_BLOCK_ITEM,
                    "The largest absolute eigenvalue of the residual H - G over that of the "
                    "Gauss-Newton matrix G: %s%s",
                    ks_interval_text(ratio, text),
                    ratio.lower > LARGE_SHARE
                        ? ". Gauss-Newton alone would be a poor model of this loss."
                        : ".");
}

/* The layer with the largest share of the trace. */
static void find_layer(const struct ks_audit *a, struct ks_document *d)
{
    size_t share, layer, kind, best = 0;
    double largest = -1;

    if (!a->layers || ks_csv_column(a->layers, "trace_share", &share) != KS_OK ||
        ks_csv_column(a->layers, "layer", &layer) != KS_OK ||
        ks_csv_column(a->layers, "kind", &kind) != KS_OK)
        return;
    for (size_t i = 0; i < a->layers->rows; i++) {
        double one = strtod(ks_csv_cell(a->layers, i, share), NULL);

        if (one > largest) {
            largest = one;
            best = i;
        }
    }
    if (largest >= 0)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "Layer %s %s has the largest share of the trace of the curvature: %.0f%% "
                        "(estimate).",
                        ks_csv_cell(a->layers, best, layer), ks_csv_cell(a->layers, best, kind),
                        100 * largest);
}

static void find_steps(const struct ks_audit *a, struct ks_document *d)
{
    static const struct {
        enum ks_audit_spectrum which;
        const char *words;
    } rules[] = {{KS_AUDIT_HESSIAN, "gradient descent"},
                 {KS_AUDIT_PRECONDITIONED, "Adam with its current preconditioner"}};

    for (size_t i = 0; i < 2; i++) {
        double ratio = of(a, rules[i].which, "sharpness_ratio");

        if (isfinite(ratio))
            ks_document_add(d, KS_BLOCK_ITEM,
                            "On a quadratic with this curvature, steps of %s with the stored "
                            "learning rate %s: the largest eigenvalue is at least %.3g times the "
                            "limit.",
                            rules[i].words,
                            ratio > 1 ? "would be unstable" : "are not shown to be unstable",
                            ratio);
    }
}

static void find_dead(const struct ks_audit *a, struct ks_document *d)
{
    size_t dead = 0, units = 0;

    for (size_t i = 0; i < a->facts.n_units; i++) {
        dead += a->facts.units[i].dead;
        units += a->facts.units[i].units;
    }
    if (units > 0)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "%zu of %zu units are dead: zero in all rows of %zu of the %zu "
                        "minibatches.",
                        dead, units, a->facts.tried, a->facts.minibatches);
}

static void find_products(const struct ks_audit *a, struct ks_document *d)
{
    double error = of(a, KS_AUDIT_HESSIAN, "product_error");

    if (error > WRONG_PRODUCTS)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "float32 products are wrong by %.2g of the largest eigenvalue: repeat the "
                        "analysis with `kappascope analyze --precision f64`.",
                        error);
}

void ks_audit_findings(const struct ks_audit *a, struct ks_document *d)
{
    find_proofs(a, d);
    find_condition(a, d);
    find_gradient(a, d);
    find_negative(a, d);
    find_residual(a, d);
    find_layer(a, d);
    find_steps(a, d);
    find_dead(a, d);
    find_products(a, d);
}
