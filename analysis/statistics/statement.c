/* The statement contains only what is known: whether a number is a bound, with which confidence,
 * and what rounding or the order leaves unresolved. */
#include "statistics/statistics.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/interval.h"
#include "core/memory.h"
#include "statistics/certificate.h"

struct statement {
    const struct ks_spectrum *s;
    const struct ks_statement_inputs *inputs;
    char name[512];         /* the operator's name in a sentence, such as "H"          */
    bool exact;             /* all eigenvalues were computed                           */
    bool certified;         /* the bounds are certified by float64 products            */
    double abs_max;         /* the largest |eigenvalue| that was found                 */
    size_t steps;           /* the most Lanczos steps of a probe; n for an exact spectrum */
    struct ks_nullity null; /* the known null space without the normals                */
    double lifted;          /* directions whose only curvature is the weight decay     */
    double effective;       /* lower bound of the condition number off the null space  */
    double upper;           /* upper bound of the same number, if `complete`           */
    bool complete;          /* the condition number is known from both sides           */
};

/* "H", "the ggn operator (critic 0, layer 3)", "H (00_dense/kernel)" */
static void find_name(const struct ks_statement_inputs *t, char *name, size_t size)
{
    char block[400] = "";
    size_t used = 0;

    if (t->critic >= 0)
        used = (size_t)snprintf(block, sizeof block, ", critic %d", t->critic);
    if (t->layer >= 0)
        used += (size_t)snprintf(block + used, sizeof block - used, ", layer %d", t->layer);
    if (t->arrays)
        snprintf(block + used, sizeof block - used, ", %s", t->arrays);
    snprintf(name, size, "%s%s%s%s", t->kind ? t->kind->in_words : "the operator",
             *block ? " (" : "", *block ? block + strlen(", ") : "", *block ? ")" : "");
}

static size_t most_steps(const struct ks_spectrum *s)
{
    size_t most = 0;

    for (size_t i = 0; i < ks_spectrum_random(s); i++)
        most = ks_spectrum_steps(s, i) > most ? ks_spectrum_steps(s, i) : most;
    return most;
}

static size_t less(size_t directions, size_t normals)
{
    return directions > normals ? directions - normals : 0;
}

static struct statement find_statement(const struct ks_spectrum *s,
                                       const struct ks_statement_inputs *inputs)
{
    const struct ks_statistics_inputs *t = inputs->statistics;
    struct statement c = {.s = s,
                          .inputs = inputs,
                          .exact = !s->alpha,
                          .certified = !s->alpha || (t->certificates && t->certificates->certified),
                          .abs_max = ks_statistic_abs_max(s),
                          .steps = most_steps(s),
                          .null = ks_nullity_find(t),
                          .lifted = t->null && t->shift != 0
                                        ? (double)t->null->dimension - (double)inputs->normals
                                        : 0,
                          .effective = ks_statistic_value(s, KS_STAT_KAPPA_EFFECTIVE_BOUND)};

    c.complete = ks_spectrum_is_complete(s, t, &c.upper);
    c.null.directions = less(c.null.directions, inputs->normals);
    c.null.architecture = less(c.null.architecture, inputs->normals);
    c.null.least_nullity = less(c.null.least_nullity, inputs->normals);
    find_name(inputs, c.name, sizeof c.name);
    return c;
}

/* Prints a bound with three digits, rounded to the side on which it stays a bound, or in words. */
static void print_number(FILE *out, double x, enum ks_side side)
{
    char text[KS_END_TEXT];

    if (isfinite(x))
        fputs(ks_end_text(x, side, false, text), out);
    else
        fputs(isinf(x) ? "infinite" : "not known", out);
}

/* How a bound is certified: " (certified in float64)". */
static const char *certificate(const struct statement *c)
{
    return !c->certified ? " (uncertified)" : c->exact ? "" : " (certified in float64)";
}

/* A sentence about the condition number, whose subject is `what`: "Its condition number". */
static void print_condition(FILE *out, const struct statement *c, const char *what)
{
    char low[32], high[32];

    snprintf(low, sizeof low, "%.3g", c->effective);
    snprintf(high, sizeof high, "%.3g", c->upper);
    if (!(c->effective > 1) && !c->complete) {
        fprintf(out, "%s is not resolved at m = %zu", what, c->steps);
    } else if (!c->complete) {
        fprintf(out, "%s is at least ", what);
        print_number(out, c->effective, KS_LOWER);
        fputs(certificate(c), out);
    } else if (strcmp(low, high) == 0) {
        fprintf(out, "%s is %s", what, low);
    } else {
        fprintf(out, "%s is between ", what);
        print_number(out, c->effective, KS_LOWER);
        fprintf(out, " and ");
        print_number(out, c->upper, KS_UPPER);
    }
    if (c->complete && c->exact)
        fprintf(out, ", because all its eigenvalues are known");
    else if (c->complete)
        fprintf(out, ", because every Krylov space ended and the Ritz values include all its "
                     "eigenvalues");
}

static void print_null_space(FILE *out, const struct statement *c)
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
static void print_computed(FILE *out, const struct statement *c)
{
    double bound = ks_statistic_value(c->s, KS_STAT_KAPPA_LOWER_BOUND);

    if (!(bound > 1) || !isfinite(bound) || c->exact)
        return;
    fprintf(out,
            " With rounding errors, the computed operator has a condition number of at least ");
    print_number(out, bound, KS_LOWER);
    fprintf(out, ", whatever the order and the start vector%s.",
            c->certified ? "" : " (uncertified)");
}

static void print_conditions(FILE *out, const struct statement *c)
{
    char what[96];

    putc(' ', out);
    if (c->lifted > 0)
        fprintf(out,
                "Along %.0f directions the loss is constant, and its only curvature is that of the "
                "weight decay. ",
                c->lifted);
    if (c->inputs->normals > 0)
        fprintf(
            out,
            "The %zu normals of the spheres are not directions of the manifold and are left out "
            "of the condition number. ",
            c->inputs->normals);
    snprintf(what, sizeof what, "%s condition number",
             c->inputs->normals > 0 ? "Without them, its" : "Its");
    if (c->null.directions > 0 || c->null.least_nullity > 0) {
        print_null_space(out, c);
    } else {
        print_condition(out, c, what);
        putc('.', out);
    }
    print_computed(out, c);
}

/* The confidence of an interval. With all eigenvalues known, nothing is random. */
static const char *confidence(const struct statement *c)
{
    return c->exact       ? "rounding errors included"
           : c->certified ? "99% interval"
                          : "99% interval, uncertified";
}

/* "On this minibatch, "; ks_statement capitalizes the first letter. */
static void print_minibatches(FILE *out, const struct statement *c)
{
    if (c->inputs->minibatches == 1)
        fprintf(out, "on this minibatch, ");
    else if (c->inputs->minibatches > 1)
        fprintf(out, "on these %zu minibatches, ", c->inputs->minibatches);
}

static void print_directions(FILE *out, const struct statement *c)
{
    const struct ks_interval found = ks_statistic_interval(c->s, KS_STAT_DIRECTIONS_1E2);
    const double lower = found.lower, upper = found.upper;
    double n = (double)c->inputs->statistics->n;
    static const char *const within = "an absolute value within a factor of 100 of the largest one";

    print_minibatches(out, c);
    if (lower <= 1 && upper >= n && n > 1)
        fprintf(out,
                "how many of the %.0f eigenvalues of %s have %s is not resolved at m = %zu (%.0f "
                "to %.0f, %s).",
                n, c->name, within, c->steps, lower, upper, confidence(c));
    else if (lower == upper)
        fprintf(out, "%.0f of the %.0f eigenvalues of %s %s %s (%s).", lower, n, c->name,
                lower == 1 ? "has" : "have", within, confidence(c));
    else
        fprintf(out, "%.0f to %.0f of the %.0f eigenvalues of %s have %s (%s; estimate %.0f).",
                lower, upper, n, c->name, within, confidence(c),
                ks_statistic_value(c->s, KS_STAT_DIRECTIONS_1E2));
}

/* "51.9 to 52", or "at least 51.9" if the upper end is not known. */
static void print_factor(FILE *out, double lower, double upper)
{
    if (isnan(upper))
        fputs("at least ", out);
    print_number(out, lower, KS_LOWER);
    if (isnan(upper))
        return;
    fputs(" to ", out);
    print_number(out, upper, KS_UPPER);
}

/* lambda_abs_max over the 99% quantile of the |eigenvalues|. */
static void print_quantile(FILE *out, const struct statement *c)
{
    const struct ks_interval found = ks_statistic_interval(c->s, KS_STAT_KAPPA_Q99);
    const double lower = found.lower, upper = found.upper;
    const char *all = c->inputs->normals > 0 ? ", including the zeros of the normals" : "";
    const char *comma = *all ? "," : "";

    if (isinf(lower)) {
        fprintf(out, " At least 99%% of its eigenvalues%s%s are zero.", all, comma);
    } else if (isnan(upper) && !(lower > 1)) {
        fprintf(out,
                " By which factor the largest absolute eigenvalue exceeds the 99%% quantile of all "
                "absolute eigenvalues%s%s is not resolved at m = %zu.",
                all, comma, c->steps);
    } else {
        fprintf(out, " The largest absolute eigenvalue is ");
        print_factor(out, lower, upper);
        fprintf(out, " times as large as the 99%% quantile of all absolute eigenvalues%s (%s", all,
                confidence(c));
        if (isnan(upper))
            fprintf(out, "; its upper end is not resolved at m = %zu", c->steps);
        fprintf(out, ").");
    }
}

/* With a probe at the gradient: lambda_abs_max over the |eigenvalue| above which 90% of the
 * gradient's energy lies. */
static void print_gradient(FILE *out, const struct statement *c)
{
    const struct ks_interval found = ks_statistic_interval(c->s, KS_STAT_KAPPA_GRADIENT_90);
    const double lower = found.lower, upper = found.upper;

    if (!c->s->gradient || isnan(lower))
        return;
    if (isnan(upper) && !(lower > 1)) {
        fprintf(
            out,
            " Within which factor of the largest absolute eigenvalue 90%% of the gradient's energy "
            "(its squared norm) lies is not resolved at m = %zu.",
            c->steps);
        return;
    }
    fprintf(out,
            " 90%% of the gradient's energy (its squared norm) lies on eigenvectors whose absolute "
            "eigenvalues are within a factor K of the largest one; K is ");
    print_factor(out, lower, upper);
    fprintf(out, " (%s).", confidence(c));
}

static void print_kappa(FILE *out, const struct statement *c, bool ritz)
{
    double kappa = ks_statistic_value(c->s, KS_STAT_KAPPA),
           before = ks_statistic(c->s, "kappa_m30");
    double ratio = kappa / before;

    if (ritz)
        fprintf(out,
                " The paper's kappa, the ratio of the largest to the smallest absolute Ritz value "
                "at m = %zu, is ",
                c->steps);
    else
        fprintf(out, " The ratio of the largest to the smallest absolute eigenvalue, as computed, "
                     "is ");
    if (isfinite(kappa))
        fprintf(out, "%.3g", kappa);
    else
        fputs("infinite", out);
    if (ritz && c->steps > 30 && isfinite(ratio) && ratio > 0)
        fprintf(out, "; it %s by a factor of %.3g from m = 30 to %zu", ratio >= 1 ? "grew" : "fell",
                ratio >= 1 ? ratio : 1 / ratio, c->steps);
    putc('.', out);
}

/* The warning on standard error is lost once the statement is quoted, so the statement repeats it.
 */
static void print_error(FILE *out, const struct statement *c)
{
    double error = ks_statistic_value(c->s, KS_STAT_PRODUCT_ERROR);

    if (error > KS_WRONG_PRODUCT) {
        fprintf(out, " The %s products are wrong by up to ",
                c->inputs->products_f32 ? "float32" : "run's");
        print_number(out, error, KS_UPPER);
        fprintf(out, " of the largest absolute eigenvalue%s.",
                c->inputs->kind ? ": --precision f64 avoids this" : "");
    }
}

/* The published code's Lanczos vectors are not orthonormal, so its Ritz values bound nothing. */
static void print_published(FILE *out, const struct statement *c)
{
    print_minibatches(out, c);
    fprintf(
        out,
        "the Ritz values of %s come from the published code's recurrence, whose vectors are not "
        "orthonormal, so they prove no bounds.",
        c->name);
}

static void print_zero(FILE *out, const struct statement *c)
{
    bool null = c->null.directions + c->inputs->normals >= c->inputs->statistics->n;

    print_minibatches(out, c);
    if (c->certified && null)
        fprintf(out, "%s is zero, so it has no condition number.", c->name);
    else
        fprintf(
            out,
            "every product with %s that was computed in %s is zero; nothing more is known about "
            "its eigenvalues.",
            c->name,
            c->certified              ? "float64"
            : c->inputs->products_f32 ? "float32"
                                      : "float64");
}

/* The statement. Returns the length of its first sentence. */
static long print_statement(FILE *out, const struct statement *c)
{
    const bool published = c->inputs->statistics->published && !c->exact;
    long first;

    if (published)
        print_published(out, c);
    else if (c->abs_max > 0)
        print_directions(out, c);
    else
        print_zero(out, c);
    first = ftell(out);
    if (!(c->abs_max > 0))
        return first;
    if (!published) {
        print_conditions(out, c);
        print_quantile(out, c);
        print_gradient(out, c);
    }
    print_kappa(out, c, !c->exact);
    if (!published)
        print_error(out, c);
    return first;
}

ks_status ks_statement(const struct ks_spectrum *s, const struct ks_statement_inputs *inputs,
                       char **text, size_t *first)
{
    const struct statement c = find_statement(s, inputs);
    size_t size;
    FILE *out;
    ks_status status;

    *text = NULL;
    out = open_memstream(text, &size);
    if (out)
        *first = (size_t)print_statement(out, &c);
    status = ks_stream_close(out);
    if (status != KS_OK) {
        free(*text);
        *text = NULL;
        return status;
    }
    **text = (char)toupper((unsigned char)**text);
    return KS_OK;
}
