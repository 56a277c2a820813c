/* The sentence says no more than what holds: that a number is a bound, with which confidence, and
 * where rounding ends what can be told. */
#include "ks/claim.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ks/operator_kinds.h"
#include "ks/summary.h"

/* A smallest |eigenvalue| above so many noise floors is right to 10%. */
static const double CLEAR = 10;

struct claim {
    const struct ks_spectrum *s;
    char name[128]; /* of the operator, as a subject and as an object */
    const char *precision;
    double abs_max, noise_floor, kappa;
    double null, dead; /* dimensions, without normals; 0: none, or nobody looked */
    size_t normals;    /* of spheres */
    bool decay;        /* weight decay: null directions of the loss are none of the operator's */
    bool unweighted;
    size_t steps;  /* the most of a probe; of an exact spectrum n */
    bool complete; /* all distinct eigenvalues are there and can be trusted */
};

static double number(const struct ks_spectrum *s, const char *name)
{
    return ks_attribute_number(&s->attributes, name);
}

static const char *string(const struct ks_spectrum *s, const char *name)
{
    const struct ks_attribute *a = ks_attribute_find(&s->attributes, name);

    return a && a->type == KS_ATTRIBUTE_STRING ? a->string : "";
}

static double dimension(const struct ks_spectrum *s, const char *name)
{
    double found = ks_summary_get(s, name);

    return isnan(found) ? 0 : found;
}

/* Three digits, none of which says more than the bound x does. */
static double at_least(double x)
{
    static const double ROUNDING = 1e-6; /* 2 is at least 2 */
    double unit = pow(10, floor(log10(x)) - 2);

    return isfinite(x) && x > 0 ? floor(x / unit + ROUNDING) * unit : x;
}

/* "H", "the ggn operator (critic 0, layer 3)" */
static void find_name(const struct ks_spectrum *s, char *name, size_t size)
{
    static const char *const parts[] = {"critic", "layer"};
    const char *kind = string(s, "operator");
    bool open = false;
    int used = strcmp(kind, "hessian") == 0 ? snprintf(name, size, "H")
                                            : snprintf(name, size, "the %s operator", kind);

    for (size_t k = 0; k < 2 && used >= 0 && (size_t)used < size; k++) {
        double part = number(s, parts[k]);

        if (part >= 0) {
            used += snprintf(name + used, size - (size_t)used, "%s%s %.0f", open ? ", " : " (",
                             parts[k], part);
            open = true;
        }
    }
    if (open && used >= 0 && (size_t)used < size)
        snprintf(name + used, size - (size_t)used, ")");
}

/* Where each Krylov space ended before the order, or at the dimension, nothing is left to find. */
static void find_steps(struct claim *c)
{
    const struct ks_spectrum *s = c->s;

    c->steps = s->steps ? 0 : s->order;
    c->complete = true;
    for (size_t i = 0; s->steps && i < s->probes; i++) {
        size_t steps = (size_t)s->steps[i];

        c->steps = steps > c->steps ? steps : c->steps;
        c->complete &= steps < s->order || (double)steps == number(s, "dimension");
    }
}

static struct claim find_claim(const struct ks_spectrum *s, size_t normals)
{
    const struct ks_operator_kind *kind = ks_operator_kind_find(string(s, "operator"));
    struct claim c = {.s = s,
                      .precision = string(s, "precision"),
                      .abs_max = fmax(fabs(ks_summary_get(s, "lambda_max")),
                                      fabs(ks_summary_get(s, "lambda_min"))),
                      .noise_floor = ks_summary_get(s, "noise_floor"),
                      .kappa = ks_summary_get(s, "kappa"),
                      .null = dimension(s, "null_dimension") - (double)normals,
                      .dead = dimension(s, "dead_dimension"),
                      .normals = normals,
                      .decay = number(s, "weight_decay") > 0 && kind && kind->decays,
                      .unweighted = *string(s, "compat") != '\0'};

    find_name(s, c.name, sizeof c.name);
    find_steps(&c);
    return c;
}

/* What is left of such a bound is mostly the noise floor. */
static bool is_noise(const struct claim *c, double bound)
{
    return c->abs_max / bound <= 2 * c->noise_floor;
}

/* Off a null space that random start vectors share in. */
static const char *confidence(const struct claim *c)
{
    return c->s->steps ? " (with 99% confidence)" : "";
}

static void print_null_space(FILE *out, const struct claim *c)
{
    double residual = ks_summary_get(c->s, "null_residual");

    fprintf(out, "%s has an exact null space of dimension %.0f (", c->name, c->null + c->dead);
    if (c->null > 0)
        fprintf(out, "%.0f by its architecture", c->null);
    if (c->null > 0 && !isnan(residual))
        fprintf(out, ", where products are zero to %.2g of lambda_abs_max", residual);
    if (c->dead > 0)
        fprintf(out, "%s%.0f dead coordinates", c->null > 0 ? ", and " : "", c->dead);
    fprintf(out, "), so its condition number is infinite");
}

/* Where nothing but normals is null. */
static void print_manifold(FILE *out, const struct claim *c)
{
    double bound = ks_summary_get(c->s, "kappa_effective_bound");

    if (!(bound > 1))
        fprintf(out, "how %s is conditioned cannot be told from this spectrum", c->name);
    else if (is_noise(c, bound))
        fprintf(out, "%s cannot be told from a singular operator in %s", c->name, c->precision);
    else
        fprintf(out, "the condition number of %s is at least %.3g%s", c->name, at_least(bound),
                confidence(c));
}

/* Off the null space. */
static void print_rest(FILE *out, const struct claim *c)
{
    double bound = ks_summary_get(c->s, "kappa_effective_bound");

    if (!(bound > 1))
        fprintf(out, "; how the rest is conditioned cannot be told from this spectrum");
    else if (is_noise(c, bound))
        fprintf(out, "; the rest cannot be told from a singular operator in %s", c->precision);
    else
        fprintf(out, "; on the rest it is at least %.3g%s", at_least(bound), confidence(c));
}

static void print_bound(FILE *out, const struct claim *c)
{
    double bound = ks_summary_get(c->s, "kappa_effective_bound");
    double computed = ks_summary_get(c->s, "kappa_lower_bound");

    if (isnan(bound))
        fprintf(out, "how %s is conditioned cannot be told from this spectrum", c->name);
    else if (c->complete && c->abs_max / c->kappa > CLEAR * c->noise_floor)
        fprintf(out, "the condition number of %s is %.3g, as %s", c->name, c->kappa,
                c->s->steps ? "its Krylov spaces end and the Ritz values are all its eigenvalues"
                            : "all its eigenvalues are known");
    else if (c->abs_max / computed > c->noise_floor)
        fprintf(out, "the condition number of %s is at least %.3g", c->name, at_least(bound));
    else
        fprintf(out,
                "%s cannot be told from a singular operator in %s: its condition number is at "
                "least %.3g, what rounding leaves of kappa_lower_bound = %.3g",
                c->name, c->precision, at_least(bound), computed);
}

static void print_condition(FILE *out, const struct claim *c)
{
    if (c->normals > 0)
        fprintf(out, "off the %zu normals of its spheres, ", c->normals);
    if (c->null + c->dead > 0 && !c->decay) {
        print_null_space(out, c);
        print_rest(out, c);
        return;
    }
    if (c->normals > 0) {
        print_manifold(out, c);
        return;
    }
    if (c->null > 0)
        fprintf(out, "on %.0f directions that leave the loss as it is, %s is the weight decay; ",
                c->null, c->name);
    print_bound(out, c);
}

/* 90% of the spectrum. */
static void print_bulk(FILE *out, const struct claim *c)
{
    double ratio = ks_summary_get(c->s, "kappa_q90");
    const char *of = c->unweighted && c->s->steps ? "Ritz values" : "eigenvalues";
    const char *all = c->normals > 0 ? ", the normals' counted in," : "";

    if (c->abs_max / ratio <= c->noise_floor)
        fprintf(out, "; 90%% of its %s%s are zero to %s precision", of, all, c->precision);
    else
        fprintf(out,
                "; 90%% of its |%s|%s are smaller than the largest by a factor of %s%.3g or more",
                of, all, c->s->steps && !c->unweighted ? "about " : "", at_least(ratio));
}

static void print_kappa(FILE *out, const struct claim *c)
{
    double before = ks_summary_get(c->s, "kappa_m30"), ratio = c->kappa / before;

    if (!c->s->steps) {
        fprintf(out, "; kappa = %.3g is the ratio of the largest to the smallest |eigenvalue|",
                c->kappa);
        return;
    }
    fprintf(out, "; the paper's kappa = %.3g is a ratio of Ritz values at m = %zu", c->kappa,
            c->steps);
    if (c->steps <= 30 || isnan(before))
        return;
    if (isfinite(ratio) && ratio > 0)
        fprintf(out, ", and %s by a factor of %.3g from m = 30 to %zu",
                ratio >= 1 ? "grew" : "fell", ratio >= 1 ? ratio : 1 / ratio, c->steps);
    else
        fprintf(out, ", %.3g at m = 30", before);
}

static void print_claim(FILE *out, const struct claim *c)
{
    if (c->abs_max == 0) {
        fprintf(out, "%s is zero and has no condition number", c->name);
        return;
    }
    print_condition(out, c);
    print_bulk(out, c);
    print_kappa(out, c);
}

ks_status ks_claim(const struct ks_spectrum *s, size_t normals, char **text)
{
    struct claim c = find_claim(s, normals);
    size_t size;
    FILE *out = open_memstream(text, &size);
    bool failed;

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    print_claim(out, &c);
    putc('.', out);
    failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(*text);
        *text = NULL;
        return ks_fail(KS_MEMORY, "out of memory");
    }
    **text = (char)toupper((unsigned char)**text);
    return KS_OK;
}
