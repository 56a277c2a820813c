/* The sentences of a claim about the null space and the condition number. */
#include "statistics/claim_parts.h"

#include <math.h>
#include <string.h>

#include "core/interval.h"

void ks_claim_print_number(FILE *out, double x, enum ks_side side)
{
    char text[KS_END_TEXT];

    if (isfinite(x))
        fputs(ks_end_text(x, side, false, text), out);
    else
        fputs(isinf(x) ? "infinite" : "not known", out);
}

/* How a bound is certified: " (certified in float64)". */
static const char *certificate(const struct ks_claim_parts *c)
{
    return !c->certified ? " (uncertified)" : c->exact ? "" : " (certified in float64)";
}

/* A statement about the condition number, whose subject is `what`: "Its condition number". */
static void print_condition(FILE *out, const struct ks_claim_parts *c, const char *what)
{
    char low[32], high[32];

    snprintf(low, sizeof low, "%.3g", c->effective);
    snprintf(high, sizeof high, "%.3g", c->upper);
    if (!(c->effective > 1) && !c->complete) {
        fprintf(out, "%s is not resolved at m = %zu", what, c->steps);
    } else if (!c->complete) {
        fprintf(out, "%s is at least ", what);
        ks_claim_print_number(out, c->effective, KS_LOWER);
        fputs(certificate(c), out);
    } else if (strcmp(low, high) == 0) {
        fprintf(out, "%s is %s", what, low);
    } else {
        fprintf(out, "%s is between ", what);
        ks_claim_print_number(out, c->effective, KS_LOWER);
        fprintf(out, " and ");
        ks_claim_print_number(out, c->upper, KS_UPPER);
    }
    if (c->complete && c->exact)
        fprintf(out, ", because all its eigenvalues are known");
    else if (c->complete)
        fprintf(out, ", because every Krylov space ended and the Ritz values include all its "
                     "eigenvalues");
}

static void print_null_space(FILE *out, const struct ks_claim_parts *c)
{
    const struct ks_nullity *k = &c->null;
    double residual = ks_statistic_value(c->s, KS_STAT_NULL_RESIDUAL);
    size_t dead = k->directions - k->architecture;

    if (k->least_nullity > k->directions) {
        fprintf(out, "Its rank is so low that its null space has at least %zu dimensions, ",
                k->least_nullity);
        if (k->directions > 0)
            fprintf(out,
                    "of which %zu direction%s known; its condition number is infinite, also "
                    "off the known directions.",
                    k->directions, k->directions == 1 ? " is" : "s are");
        else
            fprintf(out, "so its condition number is infinite.");
        return;
    }
    fprintf(out, "It has an exact null space of at least %zu dimension%s (", k->directions,
            k->directions == 1 ? "" : "s");
    if (k->architecture > 0)
        fprintf(out, "%zu from the architecture", k->architecture);
    if (k->architecture > 0 && isfinite(residual))
        fprintf(out, ", where products are zero up to %.2g of the largest absolute eigenvalue",
                residual);
    if (dead > 0)
        fprintf(out, "%s%zu dead coordinate%s", k->architecture > 0 ? "; " : "", dead,
                dead == 1 ? "" : "s");
    fprintf(out, "), so its condition number is infinite; ");
    print_condition(out, c, "off that space, the condition number");
    putc('.', out);
}

/* kappa_lower_bound holds for the matrix that the rounded products represent. Rounding errors make
 * its null space nonzero, so its condition number is finite. */
static void print_computed(FILE *out, const struct ks_claim_parts *c)
{
    double bound = ks_statistic_value(c->s, KS_STAT_KAPPA_LOWER_BOUND);

    if (!(bound > 1) || !isfinite(bound) || c->exact)
        return;
    fprintf(out,
            " With rounding errors, the computed operator has a condition number of at least ");
    ks_claim_print_number(out, bound, KS_LOWER);
    fprintf(out, ", whatever the order and the start vector%s.",
            c->certified ? "" : " (uncertified)");
}

void ks_claim_print_conditions(FILE *out, const struct ks_claim_parts *c)
{
    char what[96];

    putc(' ', out);
    if (c->lifted > 0)
        fprintf(out,
                "Along %.0f directions the loss is constant, and its only curvature is that of the "
                "weight decay. ",
                c->lifted);
    if (c->terms->normals > 0)
        fprintf(
            out,
            "The %zu normals of the spheres are not directions of the manifold and are left out "
            "of the condition number. ",
            c->terms->normals);
    snprintf(what, sizeof what, "%s condition number",
             c->terms->normals > 0 ? "Without them, its" : "Its");
    if (c->null.directions > 0 || c->null.least_nullity > 0) {
        print_null_space(out, c);
    } else {
        print_condition(out, c, what);
        putc('.', out);
    }
    print_computed(out, c);
}
