/* Checks every statement about a spectrum against all eigenvalues.
 *
 * There are two kinds of statements. Deterministic ones hold for every start vector: bounds from
 * certificates, and counts or projections that use known null directions. The others hold with a
 * probability of at least 99%. A statement that is absent, unresolved (NaN) or trivial (a lower end
 * of 0, an infinite upper end) does not count as false. */
#ifndef KS_TEST_STATEMENTS_H
#define KS_TEST_STATEMENTS_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "io/spectrum.h"
#include "statistics/beta_distribution.h"
#include "statistics/statistics.h"

struct truth {
    size_t n;
    double *value;    /* [n] all eigenvalues, ascending; owned */
    double *size;     /* [n] their absolute values, ascending; owned */
    double abs_max;   /* the largest absolute value */
    double tolerance; /* error bound of these eigenvalues; a deviation within it is not judged */
    double float32;   /* norm of the error of the products in float32 */
    double shift;     /* the eigenvalue on directions along which the loss is constant */
    /* The gradient's energy by eigenvalue, in the order of `value`, of sum 1. Owned; may be NULL */
    double *energy;
    double gradient_norm, gradient_curvature;
};

/* Takes ownership of `value`. `relative`: the tolerance as a fraction of the largest size. */
static inline struct truth truth_new(size_t n, double *value, double relative)
{
    struct truth t = {.n = n, .value = value, .size = calloc(n, sizeof(double))};

    qsort(value, n, sizeof *value, ks_ascending);
    for (size_t i = 0; i < n; i++)
        t.size[i] = fabs(value[i]);
    qsort(t.size, n, sizeof *t.size, ks_ascending);
    t.abs_max = t.size[n - 1];
    t.tolerance = relative * t.abs_max;
    return t;
}

static inline void truth_clear(struct truth *t)
{
    free(t->value);
    free(t->size);
    free(t->energy);
}

/* Every statement; each has a row in a tally. */
enum statement {
    LAMBDA_MAX,
    LAMBDA_MIN,
    LAMBDA_MAX_UPPER,
    LAMBDA_MIN_LOWER,
    KAPPA_LOWER_BOUND,
    KAPPA_EFFECTIVE,
    DIRECTIONS_1E1,
    DIRECTIONS_1E2,
    DIRECTIONS_1E3,
    DIRECTIONS_1E4,
    KAPPA_Q99,
    KAPPA_Q90,
    KAPPA_Q50,
    ZERO_MASS,
    NEGATIVE_MASS,
    NULL_DIMENSION,
    STABLE_RANK,
    OUTLIERS,
    GRADIENT_90,
    GRADIENT_50,
    GRADIENT_CURVATURE,
    TRACE,
    STATEMENTS
};

static const struct {
    const char *name;
    bool certain; /* deterministic */
} statements[STATEMENTS] = {
    {"lambda_max", true},         {"lambda_min", true},
    {"lambda_max_upper", false},  {"lambda_min_lower", false},
    {"kappa_lower_bound", true},  {"kappa_effective_bound", true},
    {"directions_1e1", false},    {"directions_1e2", false},
    {"directions_1e3", false},    {"directions_1e4", false},
    {"kappa_q99", false},         {"kappa_q90", false},
    {"kappa_q50", false},         {"zero_mass", false},
    {"negative_mass", false},     {"null_dimension", true},
    {"stable_rank", true},        {"outliers", true},
    {"kappa_gradient_90", false}, {"kappa_gradient_50", false},
    {"gradient_curvature", true}, {"trace", false},
};

struct tally {
    size_t made[STATEMENTS], missed[STATEMENTS];
    char miss[1024]; /* the false statements, as text */
    /* Tightness of each statement: upper over lower end, or bound over true value; at least 1.
     * [made], owned by the caller; NULL if not wanted */
    double *tightness[STATEMENTS];
};

/* The spectrum and the truth that its statements are judged by. */
struct judge {
    const struct ks_spectrum *s;
    const struct truth *t;
    const char *suffix; /* "" or _m30, ... */
    size_t null;        /* number of known directions that are projected out */
    bool exact;
    struct tally *tally;
};

static inline double said(const struct judge *j, const char *name, const char *end)
{
    char full_name[KS_ATTRIBUTE_NAME];

    snprintf(full_name, sizeof full_name, "%s%s%s", name, end, j->suffix);
    return ks_statistic(j->s, full_name);
}

static inline double tightness_of(double low, double x, double high)
{
    double ratio = isnan(low) ? high / x : isnan(high) ? x / low : high / low;

    return isnan(ratio) ? INFINITY : fabs(ratio);
}

struct interval {
    double low, high;
};

/* Judges the statement that a number is in `stated`, where an end that is NaN states nothing. The
 * number is known to be in `truth`: the statement is wrong if the two do not overlap. */
static inline void judge_between(const struct judge *j, enum statement k, struct interval stated,
                                 struct interval truth)
{
    struct tally *t = j->tally;
    size_t length;

    if (t->tightness[k])
        t->tightness[k][t->made[k]] = tightness_of(
            stated.low, isnan(stated.high) ? truth.high : truth.low, stated.high);
    t->made[k]++;
    if (!(stated.low > truth.high) && !(stated.high < truth.low))
        return;
    t->missed[k]++;
    length = strlen(t->miss);
    snprintf(t->miss + length, sizeof t->miss - length,
             " %s%s: [%.10g, %.10g] misses [%.10g, %.10g]", statements[k].name, j->suffix,
             stated.low, stated.high, truth.low, truth.high);
}

static inline double ratio_low(const struct truth *t, double size)
{
    return fmax((t->abs_max - t->tolerance) / (size + t->tolerance), 1);
}

static inline double ratio_high(const struct truth *t, double size)
{
    return size > t->tolerance ? (t->abs_max + t->tolerance) / (size - t->tolerance) : INFINITY;
}

static inline size_t count_sizes_above(const struct truth *t, double x)
{
    size_t k = t->n;

    while (k > 0 && t->size[k - 1] > x)
        k--;
    return t->n - k;
}

static inline size_t count_values_below(const struct truth *t, double x)
{
    size_t k = 0;

    while (k < t->n && t->value[k] < x)
        k++;
    return k;
}

static inline void judge_ends(const struct judge *j)
{
    const struct truth *t = j->t;
    double high = t->value[t->n - 1], low = t->value[0];
    /* Without a certificate, a Ritz value belongs to the operator with its rounding errors. */
    double slack = t->tolerance + (j->suffix[0] || j->exact ? said(j, "noise_floor", "") / 2 : 0);

    judge_between(j, LAMBDA_MAX, (struct interval){said(j, "lambda_max", ""), NAN},
                  (struct interval){high, high + slack});
    judge_between(j, LAMBDA_MIN, (struct interval){NAN, said(j, "lambda_min", "")},
                  (struct interval){low - slack, low});
    if (j->exact)
        slack = t->tolerance + said(j, "noise_floor", "") / 2;
    judge_between(j, LAMBDA_MAX_UPPER, (struct interval){NAN, said(j, "lambda_max_upper", "")},
                  (struct interval){high - slack, high});
    judge_between(j, LAMBDA_MIN_LOWER, (struct interval){said(j, "lambda_min_lower", ""), NAN},
                  (struct interval){low, low + slack});
}

/* It is that of the operator as computed, whose eigenvalues rounding may have moved by half the
 * noise floor each. Only the full run has it. */
static inline void judge_trace(const struct judge *j)
{
    const struct truth *t = j->t;
    double sum = 0, slack = (double)t->n * (t->tolerance + said(j, "noise_floor", "") / 2);
    struct interval stated = {said(j, "trace", "_lower"), said(j, "trace", "_upper")};

    for (size_t i = 0; i < t->n; i++)
        sum += t->value[i];
    if (!isnan(stated.low))
        judge_between(j, TRACE, stated, (struct interval){sum - slack, sum + slack});
}

static inline void judge_condition(const struct judge *j)
{
    const struct truth *t = j->t;

    judge_between(j, KAPPA_LOWER_BOUND, (struct interval){said(j, "kappa_lower_bound", ""), NAN},
                  (struct interval){0, ratio_high(t, t->size[0]) * (1 + 1e-9)});
    if (j->null < t->n)
        judge_between(j, KAPPA_EFFECTIVE,
                      (struct interval){said(j, "kappa_effective_bound", ""), NAN},
                      (struct interval){0, ratio_high(t, t->size[j->null]) * (1 + 1e-9)});
}

static inline void judge_directions(const struct judge *j)
{
    double factor = 10;

    for (size_t k = 0; k < 4; k++, factor *= 10) {
        const char *name = statements[DIRECTIONS_1E1 + k].name;
        double x = j->t->abs_max / factor, slack = 1e-9 * x + j->t->tolerance;

        if (j->t->abs_max == 0)
            slack = 0;
        judge_between(j, DIRECTIONS_1E1 + k,
                      (struct interval){said(j, name, "_lower"), said(j, name, "_upper")},
                      (struct interval){(double)count_sizes_above(j->t, x + slack),
                                        (double)count_sizes_above(j->t, x - slack)});
    }
}

static inline void judge_quantiles(const struct judge *j)
{
    static const size_t percent[] = {99, 90, 50};
    const struct truth *t = j->t;

    for (size_t k = 0; k < 3 && t->abs_max > 0; k++) {
        const char *name = statements[KAPPA_Q99 + k].name;
        double x = t->size[(t->n * percent[k] + 99) / 100 - 1];

        judge_between(j, KAPPA_Q99 + k,
                      (struct interval){said(j, name, "_lower") * (1 - 1e-9),
                                        said(j, name, "_upper") * (1 + 1e-9)},
                      (struct interval){ratio_low(t, x), ratio_high(t, x)});
    }
}

static inline void judge_masses(const struct judge *j)
{
    const struct truth *t = j->t;
    double n = (double)t->n, floor = said(j, "noise_floor", ""),
           slack = t->tolerance + 1e-9 * floor;

    judge_between(j, ZERO_MASS,
                  (struct interval){said(j, "zero_mass", "_lower") - 1e-9,
                                    said(j, "zero_mass", "_upper") + 1e-9},
                  (struct interval){1 - (double)count_sizes_above(t, floor - slack) / n,
                                    1 - (double)count_sizes_above(t, floor + slack) / n});
    judge_between(j, NEGATIVE_MASS,
                  (struct interval){said(j, "negative_mass", "_lower") - 1e-9,
                                    said(j, "negative_mass", "_upper") + 1e-9},
                  (struct interval){(double)count_values_below(t, -floor - slack) / n,
                                    (double)count_values_below(t, -floor + slack) / n});
}

/* The number of eigenvalues that differ by more than rounding. */
static inline size_t distinct(const struct judge *j)
{
    const struct truth *t = j->t;
    double close = fmin(t->tolerance, said(j, "noise_floor", "") / 4);
    size_t n = 1;

    for (size_t i = 1; i < t->n; i++)
        n += t->value[i] - t->value[i - 1] > close;
    return n;
}

/* Statements that are made only for the full run, not for leading parts. */
static inline void judge_full_run(const struct judge *j)
{
    const struct truth *t = j->t;
    double known = said(j, "null_dimension", ""), dead = said(j, "dead_dimension", "");
    size_t nullity = 0;

    for (size_t i = 0; i < t->n; i++)
        nullity += fabs(t->value[i] - t->shift) <= t->tolerance;
    judge_between(j, NULL_DIMENSION, (struct interval){known + (isnan(dead) ? 0 : dead), NAN},
                  (struct interval){0, (double)nullity});
    if (t->energy) {
        double slack = t->tolerance + said(j, "noise_floor", "") / 2;

        judge_between(
            j, GRADIENT_CURVATURE,
            (struct interval){said(j, "gradient_curvature", ""), said(j, "gradient_curvature", "")},
            (struct interval){t->gradient_curvature - slack, t->gradient_curvature + slack});
    }
}

/* The smallest x such that [-x, x] holds the energy `rest`; with `up`, the x at which the energy
 * first exceeds it. */
static inline double energy_size(const struct truth *t, double rest, bool up)
{
    double best = t->abs_max;

    for (size_t i = 0; i < t->n; i++) {
        double x = t->size[i], sum = 0;

        for (size_t k = 0; k < t->n; k++)
            sum += fabs(t->value[k]) <= x + t->tolerance * (up ? 0 : 1) ? t->energy[k] : 0;
        if (up ? sum > rest + 1e-9 : sum >= rest - 1e-9) {
            best = x;
            break;
        }
    }
    return best;
}

static inline void judge_energy(const struct judge *j)
{
    const struct truth *t = j->t;

    for (size_t k = 0; k < 2 && t->energy && t->abs_max > 0; k++) {
        const char *name = statements[GRADIENT_90 + k].name;
        double rest = k == 0 ? 0.1 : 0.5;

        judge_between(j, GRADIENT_90 + k,
                      (struct interval){said(j, name, "_lower") * (1 - 1e-9),
                                        said(j, name, "_upper") * (1 + 1e-9)},
                      (struct interval){ratio_low(t, energy_size(t, rest, true)),
                                        ratio_high(t, energy_size(t, rest, false))});
    }
}

/* Judges all statements about a spectrum, and with `parts` those about the leading parts of its
 * iterations. `null`: number of directions that are projected out. */
static inline void judge_spectrum(const struct ks_spectrum *s, const struct truth *t, size_t null,
                                  bool parts, struct tally *tally)
{
    struct judge j = {.s = s, .t = t, .null = null, .exact = !s->alpha, .tally = tally};
    char suffix[32] = "";

    j.suffix = suffix;
    judge_full_run(&j);
    judge_energy(&j);
    for (size_t m = 0; m == 0 || (parts && s->alpha && m < s->order); m += KS_STATISTICS_PART) {
        if (m > 0)
            snprintf(suffix, sizeof suffix, "_m%zu", m);
        judge_ends(&j);
        judge_trace(&j);
        judge_condition(&j);
        judge_directions(&j);
        judge_quantiles(&j);
        judge_masses(&j);
        if (t->abs_max > 0)
            judge_between(&j, STABLE_RANK, (struct interval){NAN, said(&j, "stable_rank", "")},
                          (struct interval){1, INFINITY});
        if (!j.exact)
            judge_between(&j, OUTLIERS, (struct interval){said(&j, "outliers", ""), NAN},
                          (struct interval){0, (double)distinct(&j)});
    }
}

/* The most misses in `runs` runs that are consistent with a miss rate of `rate`, at the 1%
 * level. */
static inline size_t most_misses(size_t runs, double rate)
{
    size_t most = 0;

    /* P(more than `most` misses) = I_rate(most + 1, runs - most) */
    while (most < runs && ks_beta_lower_tail((double)most + 1, (double)(runs - most), rate) > 0.01)
        most++;
    return most;
}

#endif
