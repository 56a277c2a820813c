/* The claim states only what is known: whether a number is a bound, with which confidence, and what
 * rounding or the order leaves unresolved. */
#include "statistics/claim_parts.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operators/null_space.h"
#include "statistics/certificate.h"

/* "H", "the ggn operator (critic 0, layer 3)" */
static void find_name(const struct ks_claim_terms *t, char *name, size_t size)
{
    const struct {
        const char *name;
        int value;
    } parts[] = {{"critic", t->critic}, {"layer", t->layer}};
    bool open = false;
    int used = strcmp(t->kind->name, "hessian") == 0
                   ? snprintf(name, size, "H")
                   : snprintf(name, size, "the %s operator", t->kind->name);

    for (size_t k = 0; k < 2; k++)
        if (parts[k].value >= 0) {
            used += snprintf(name + used, size - (size_t)used, "%s%s %d", open ? ", " : " (",
                             parts[k].name, parts[k].value);
            open = true;
        }
    if (open)
        snprintf(name + used, size - (size_t)used, ")");
}

static size_t most_steps(const struct ks_spectrum *s)
{
    size_t most = s->steps ? 0 : s->order;

    for (size_t i = 0; s->steps && i < ks_spectrum_random(s); i++)
        most = (size_t)s->steps[i] > most ? (size_t)s->steps[i] : most;
    return most;
}

static size_t less(size_t directions, size_t normals)
{
    return directions > normals ? directions - normals : 0;
}

static struct ks_claim_parts find_claim(const struct ks_spectrum *s,
                                        const struct ks_claim_terms *terms)
{
    const struct ks_statistics_terms *t = terms->statistics;
    struct ks_claim_parts c = {
        .s = s,
        .terms = terms,
        .exact = !s->alpha,
        .certified = !s->alpha || (t->certificates && t->certificates->certified),
        .abs_max = ks_statistic_abs_max(s),
        .steps = most_steps(s),
        .null = ks_nullity_find(t),
        .lifted = t->null && t->shift != 0 ? (double)t->null->dimension - (double)terms->normals
                                           : 0,
        .effective = ks_statistic_value(s, KS_STAT_KAPPA_EFFECTIVE_BOUND)};

    c.complete = ks_spectrum_is_complete(s, t, &c.upper);
    c.null.directions = less(c.null.directions, terms->normals);
    c.null.architecture = less(c.null.architecture, terms->normals);
    c.null.least_nullity = less(c.null.least_nullity, terms->normals);
    find_name(terms, c.name, sizeof c.name);
    return c;
}

/* The confidence of an interval. With all eigenvalues known, nothing is random. */
static const char *confidence(const struct ks_claim_parts *c)
{
    return c->exact       ? "rounding errors included"
           : c->certified ? "99% interval"
                          : "99% interval, uncertified";
}

/* "On this minibatch, "; ks_claim capitalizes the first letter. */
static void print_minibatches(FILE *out, const struct ks_claim_parts *c)
{
    if (c->terms->minibatches == 1)
        fprintf(out, "on this minibatch, ");
    else
        fprintf(out, "on these %zu minibatches, ", c->terms->minibatches);
}

static void print_directions(FILE *out, const struct ks_claim_parts *c)
{
    const struct ks_interval found = ks_statistic_interval(c->s, KS_STAT_DIRECTIONS_1E2);
    const double lower = found.lower, upper = found.upper;
    double n = (double)c->terms->statistics->n;
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
    ks_claim_print_number(out, lower, KS_LOWER);
    if (isnan(upper))
        return;
    fputs(" to ", out);
    ks_claim_print_number(out, upper, KS_UPPER);
}

/* lambda_abs_max over the 99% quantile of the |eigenvalues|. */
static void print_quantile(FILE *out, const struct ks_claim_parts *c)
{
    const struct ks_interval found = ks_statistic_interval(c->s, KS_STAT_KAPPA_Q99);
    const double lower = found.lower, upper = found.upper;
    const char *all = c->terms->normals > 0 ? ", including the zeros of the normals" : "";
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
static void print_gradient(FILE *out, const struct ks_claim_parts *c)
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

static void print_kappa(FILE *out, const struct ks_claim_parts *c, bool ritz)
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

/* The warning on standard error is lost once the claim is quoted, so the claim repeats it. */
static void print_error(FILE *out, const struct ks_claim_parts *c)
{
    double error = ks_statistic_value(c->s, KS_STAT_PRODUCT_ERROR);

    if (error > KS_WRONG_PRODUCT) {
        fprintf(out, " The %s products are wrong by up to ",
                c->terms->products_f32 ? "float32" : "run's");
        ks_claim_print_number(out, error, KS_UPPER);
        fprintf(out, " of the largest absolute eigenvalue: --precision f64 avoids this.");
    }
}

/* The published code's Lanczos vectors are not orthonormal, so its Ritz values bound nothing. */
static void print_published(FILE *out, const struct ks_claim_parts *c)
{
    print_minibatches(out, c);
    fprintf(
        out,
        "the Ritz values of %s come from the published code's recurrence, whose vectors are not "
        "orthonormal, so they prove no bounds.",
        c->name);
    if (c->abs_max > 0)
        print_kappa(out, c, true);
}

static void print_zero(FILE *out, const struct ks_claim_parts *c)
{
    bool null = c->null.directions + c->terms->normals >= c->terms->statistics->n;

    print_minibatches(out, c);
    if (c->certified && null)
        fprintf(out, "%s is zero, so it has no condition number.", c->name);
    else
        fprintf(
            out,
            "every product with %s that was computed in %s is zero; nothing more is known about "
            "its eigenvalues.",
            c->name,
            c->certified             ? "float64"
            : c->terms->products_f32 ? "float32"
                                     : "float64");
}

static void print_claim(FILE *out, const struct ks_claim_parts *c)
{
    if (c->terms->statistics->published && !c->exact) {
        print_published(out, c);
        return;
    }
    if (!(c->abs_max > 0)) {
        print_zero(out, c);
        return;
    }
    print_directions(out, c);
    ks_claim_print_conditions(out, c);
    print_quantile(out, c);
    print_gradient(out, c);
    print_kappa(out, c, !c->exact);
    print_error(out, c);
}

ks_status ks_claim(const struct ks_spectrum *s, const struct ks_claim_terms *terms, char **text)
{
    struct ks_claim_parts c = find_claim(s, terms);
    size_t size;
    FILE *out = open_memstream(text, &size);
    bool failed;

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    print_claim(out, &c);
    failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(*text);
        *text = NULL;
        return ks_fail(KS_MEMORY, "out of memory");
    }
    **text = (char)toupper((unsigned char)**text);
    return KS_OK;
}
