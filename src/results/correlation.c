#include "results/correlation.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/number.h"
#include "results/comparison.h"
#include "statistics/statistics.h"

enum { LEAST_POINTS = 3 };       /* with fewer, a rank correlation says nothing */
static const double TIE = 1e-12; /* two statistics that differ by rounding alone are equal */

/* Ranks 1..n, the average rank for ties, centred by their mean (n + 1)/2. Returns the sum of their
 * squares, 0 if x is constant. */
static double centre_ranks(size_t n, const double *x, double *rank)
{
    double square = 0;

    for (size_t i = 0; i < n; i++) {
        double below = 0, equal = 0;

        for (size_t j = 0; j < n; j++) {
            below += x[j] < x[i];
            equal += x[j] == x[i];
        }
        rank[i] = below + 0.5 * (equal + 1) - 0.5 * (double)(n + 1);
        square += rank[i] * rank[i];
    }
    return square;
}

/* Scales the ranks to norm 1, so that the dot product of two lists is their correlation. False if x
 * is constant. */
static bool set_ranks(size_t n, const double *x, double *rank)
{
    double square = centre_ranks(n, x, rank);

    for (size_t i = 0; i < n && square > 0; i++)
        rank[i] /= sqrt(square);
    return square > 0;
}

static double dot(size_t n, const double *x, const double *y)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

ks_status ks_spearman(size_t n, const double *x, const double *y, double *correlation)
{
    KS_OWNED double *rank = NULL;
    double product;

    KS_TRY(ks_alloc(2 * n, sizeof *rank, &rank));
    product = centre_ranks(n, x, rank) * centre_ranks(n, y, rank + n);
    *correlation = product > 0 ? dot(n, rank, rank + n) / sqrt(product) : NAN;
    return KS_OK;
}

/* --- points and the interval of their correlation --- */

/* The points of a resample of the runs; index NULL: of the runs themselves. work [widest()]:
 * scratch for the values of one architecture. */
static void find_points(const struct ks_points *p, const size_t *index, double *work, double *x,
                        double *y)
{
    for (size_t m = 0, first = 0; m < p->architectures; first += p->runs[m++]) {
        const size_t n = p->runs[m];

        for (size_t i = 0; i < n; i++)
            memcpy(work + i * p->width, p->x + (index ? index[first + i] : first + i) * p->width,
                   p->width * sizeof *work);
        x[m] = ks_iqm_drop(n * p->width, work);
        for (size_t i = 0; i < n; i++)
            work[i] = p->y[index ? index[first + i] : first + i];
        y[m] = ks_iqm_drop(n, work);
    }
}

/* Copies the points that have both coordinates into at_x, at_y [n], which may be x
 * and y; returns their number. */
static size_t keep_points(size_t n, const double *x, const double *y, double *at_x, double *at_y)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(x[i]) && !isnan(y[i])) {
            at_x[kept] = x[i];
            at_y[kept++] = y[i];
        }
    return kept;
}

/* work: x, y and their ranks, [architectures] each, then the scratch of find_points. */
static void evaluate_points(const void *data, const size_t *index, double *work, double *out)
{
    const struct ks_points *p = data;
    double *x = work, *y = x + p->architectures, *rank_x = y + p->architectures,
           *rank_y = rank_x + p->architectures;
    size_t n;

    find_points(p, index, rank_y + p->architectures, x, y);
    n = keep_points(p->architectures, x, y, x, y);
    *out = n >= LEAST_POINTS && set_ranks(n, x, rank_x) && set_ranks(n, y, rank_y)
               ? dot(n, rank_x, rank_y)
               : NAN;
}

/* The largest number of values of an architecture. */
static size_t widest(const struct ks_points *p)
{
    size_t runs = 0;

    for (size_t m = 0; m < p->architectures; m++)
        runs = p->runs[m] > runs ? p->runs[m] : runs;
    return runs * (p->width > 1 ? p->width : 1);
}

ks_status ks_spearman_points(const struct ks_points *p, size_t resamples, uint64_t seed,
                             struct ks_estimate *correlation)
{
    const struct ks_bootstrap bootstrap = {resamples, seed, p->architectures, p->runs};
    const struct ks_estimator statistic = {1, 4 * p->architectures + widest(p), p, evaluate_points};

    return ks_bootstrap_run(&bootstrap, &statistic, correlation);
}

ks_status ks_points_find(const struct ks_points *p, double *x, double *y)
{
    KS_OWNED double *work = NULL;

    KS_TRY(ks_alloc(widest(p), sizeof *work, &work));
    find_points(p, NULL, work, x, y);
    return KS_OK;
}

/* --- the permutation test --- */

static void swap(double *a, double *b)
{
    double kept = *a;

    *a = *b;
    *b = kept;
}

/* Permutation `number` of the n!: digit i of `number` in the factorial number system is the index
 * in 0..i with which entry i is swapped. */
static void permute_by_number(size_t n, size_t number, double *value)
{
    for (size_t i = 1; i < n; i++) {
        swap(&value[i], &value[number % (i + 1)]);
        number /= i + 1;
    }
}

void ks_permute_at_random(size_t n, uint64_t seed, uint64_t draw, double *value)
{
    for (size_t i = n; i-- > 1;)
        swap(&value[i], &value[ks_splitmix_index(seed, draw++, i + 1)]);
}

static size_t factorial(size_t n)
{
    return n < 2 ? 1 : n * factorial(n - 1);
}

ks_status ks_spearman_test(size_t n, const double *x, const double *y, double *p)
{
    const bool exact = n <= KS_EXACT_PERMUTED;
    const size_t trials = exact ? factorial(n) : KS_PERMUTATIONS;
    KS_OWNED double *rank = NULL;
    size_t hits = 0;
    double least;

    *p = NAN;
    KS_TRY(ks_alloc(3 * n, sizeof *rank, &rank));
    if (n < LEAST_POINTS || !set_ranks(n, x, rank) || !set_ranks(n, y, rank + n))
        return KS_OK;
    least = fabs(dot(n, rank, rank + n)) - TIE;
    for (size_t b = 0; b < trials; b++) {
        memcpy(rank + 2 * n, rank + n, n * sizeof *rank);
        if (exact)
            permute_by_number(n, b, rank + 2 * n);
        else
            ks_permute_at_random(n, 0, (uint64_t)b * (n - 1), rank + 2 * n);
        hits += fabs(dot(n, rank, rank + 2 * n)) >= least;
    }
    *p = (double)(hits + !exact) / (double)(trials + !exact);
    return KS_OK;
}

/* --- the sign-flip test --- */

/* d with the signs of some bits, added up. */
static double flipped_sum(size_t n, const double *d, uint64_t bits)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += bits >> i & 1 ? -d[i] : d[i];
    return sum;
}

/* How many of all 2^n signs give at least `least`: the sums of one half of d, each with each of the
 * other's. */
static size_t count_flips(size_t n, const double *d, double least)
{
    double sums[1 << KS_EXACT_FLIPPED / 2];
    const size_t half = n / 2;
    size_t hits = 0;

    for (size_t b = 0; b < (size_t)1 << half; b++)
        sums[b] = flipped_sum(half, d, b);
    for (size_t c = 0; c < (size_t)1 << (n - half); c++) {
        const double rest = flipped_sum(n - half, d + half, c);

        for (size_t b = 0; b < (size_t)1 << half; b++)
            hits += rest + sums[b] >= least;
    }
    return hits;
}

double ks_sign_flip_test(size_t n, const double *d)
{
    double least = 0, size = 0;
    size_t hits = 0;

    for (size_t i = 0; i < n; i++) {
        least += d[i];
        size += fabs(d[i]);
    }
    if (n == 0 || !isfinite(size))
        return NAN;
    least -= TIE * size;
    if (n <= KS_EXACT_FLIPPED)
        return (double)count_flips(n, d, least) / (double)((size_t)1 << n);
    for (size_t b = 0; b < KS_PERMUTATIONS; b++) {
        double sum = 0;

        for (size_t i = 0; i < n; i++)
            sum += ks_splitmix(0, (uint64_t)b * n + i) & 1 ? -d[i] : d[i];
        hits += sum >= least;
    }
    return (double)(hits + 1) / (KS_PERMUTATIONS + 1);
}

/* --- correlation.csv --- */

static const struct ks_statistic_column statistics[] = {
    {KS_STAT_KAPPA, KS_ITSELF},
    {KS_STAT_KAPPA_EFFECTIVE_BOUND, KS_ITSELF},
    {KS_STAT_KAPPA_Q99, KS_LOWER_END},
    {KS_STAT_KAPPA_Q99, KS_UPPER_END},
    {KS_STAT_DIRECTIONS_1E2, KS_LOWER_END},
    {KS_STAT_DIRECTIONS_1E2, KS_UPPER_END},
    {KS_STAT_LAMBDA_MAX, KS_ITSELF},
    {KS_STAT_KURTOSIS, KS_ITSELF},
    {KS_STAT_NOISE_SCALE, KS_LOWER_END},
    {KS_STAT_NOISE_SCALE, KS_UPPER_END},
    {KS_STAT_STEP_CURVATURE, KS_ITSELF},
    {KS_STAT_CRITICAL_SHARPNESS, KS_ITSELF},
};
enum { STATISTICS = sizeof statistics / sizeof *statistics };

static double value_of(const struct ks_spectrum *s, struct ks_statistic_column statistic)
{
    double value;

    if (!s)
        return NAN;
    value = ks_statistic_column_value(s, statistic);
    if (statistic.part == KS_UPPER_END && isnan(value) &&
        !isnan(ks_statistic_interval(s, statistic.id).lower))
        value = INFINITY; /* not resolved */
    return ks_statistic_is_ratio(statistic.id) ? log10(value) : value;
}

/* Values of the statistic at the checkpoints after the first update, run by run, into x; returns
 * the number of values per run. */
static size_t fill_values(const struct ks_comparison *c, const struct ks_study_analyses *analyses,
                          struct ks_statistic_column statistic, double *x)
{
    size_t width = 0, runs = 0;

    for (size_t i = 0; i < c->n; i++)
        runs += c->runs[i];
    for (size_t k = 0; k < runs; k++) {
        width = 0;
        for (size_t t = 0; t < c->results->study->n_checkpoints; t++)
            if (ks_results_is_pooled(c->results, analyses->index[0], t)) {
                double sum = 0;

                for (size_t a = 0; a < analyses->n; a++)
                    sum += value_of(
                        ks_results_spectrum(c->results, c->run[k], analyses->index[a], t),
                        statistic);
                *x++ = sum / (double)analyses->n;
                width++;
            }
    }
    return width;
}

/* Whether all spectra of the comparison are comparable. */
static bool is_comparable(const struct ks_comparison *c)
{
    bool all = true;

    for (size_t i = 0, k = 0; i < c->n; k += c->runs[i++])
        for (size_t j = 0, other = 0; j < i; other += c->runs[j++])
            all = all && ks_results_comparable(c->results, c->run[other]->architecture,
                                               c->run[k]->architecture);
    return all;
}

ks_status ks_comparison_correlate(const struct ks_comparison *c,
                                  const struct ks_study_analyses *analyses,
                                  struct ks_statistic_column statistic, struct ks_correlation *out)
{
    size_t resamples = c->resamples < KS_PROFILE_RESAMPLES ? c->resamples : KS_PROFILE_RESAMPLES;
    struct ks_points points = {.architectures = c->n, .runs = c->runs, .y = c->last};
    KS_OWNED double *x = NULL;
    double at_x[KS_STUDY_ARCHITECTURES] = {0}, at_y[KS_STUDY_ARCHITECTURES] = {0};
    const struct ks_results *r = c->results;

    *out = (struct ks_correlation){.analysis = analyses->index[0],
                                   .statistic = statistic,
                                   .spearman = {NAN, {NAN, NAN}},
                                   .p = NAN};
    if (!is_comparable(c))
        return KS_OK;
    KS_TRY(ks_alloc(r->n_runs * r->study->n_checkpoints, sizeof *x, &x));
    points.width = fill_values(c, analyses, statistic, x);
    points.x = x;
    KS_TRY(ks_points_find(&points, out->x, out->y));
    out->n = keep_points(c->n, out->x, out->y, at_x, at_y);
    if (out->n == 0)
        return KS_OK;
    KS_TRY(ks_spearman_points(&points, resamples, 0, &out->spearman));
    return ks_spearman_test(out->n, at_x, at_y, &out->p);
}

ks_status ks_correlations_find(const struct ks_comparison *c, struct ks_correlations *found)
{
    for (size_t a = 0; a < c->results->study->n_analyses; a++)
        for (size_t k = 0; k < STATISTICS; k++) {
            const struct ks_study_analyses one = {.n = 1, .index = {a}};

            KS_TRY(ks_grow(found->n, sizeof *found->row, &found->room, &found->row));
            KS_TRY(ks_comparison_correlate(c, &one, statistics[k], &found->row[found->n]));
            found->n += found->row[found->n].n > 0;
        }
    return KS_OK;
}

/* --- p-values of rank sums, and their adjustment for the number of tests --- */

struct entry {
    double p; /* sorted by it: the first member */
    size_t index;
};

ks_status ks_holm(size_t n, const double *p, double *adjusted)
{
    KS_OWNED struct entry *sorted = NULL;
    size_t tests = 0;
    double largest = 0;

    KS_TRY(ks_alloc(n, sizeof *sorted, &sorted));
    for (size_t i = 0; i < n; i++) {
        sorted[i] = (struct entry){p[i], i};
        adjusted[i] = NAN;
        tests += !isnan(p[i]);
    }
    qsort(sorted, n, sizeof *sorted, ks_ascending); /* NaN last */
    for (size_t i = 0; i < tests; i++) {
        largest = fmax(largest, fmin(1, (double)(tests - i) * sorted[i].p));
        adjusted[sorted[i].index] = largest;
    }
    return KS_OK;
}

enum { MOST_RANKS = 12 };

/* share[s]: the probability that the ranks so far sum to s. */
double ks_rank_sum_p(size_t n, size_t ranks, size_t sum)
{
    double share[MOST_RANKS * KS_RANK_SUM_TERMS + 1] = {1}, total = 0;

    assert(n >= 1 && n <= KS_RANK_SUM_TERMS && ranks >= 1 && ranks <= MOST_RANKS);
    for (size_t i = 1; i <= n; i++)
        for (size_t s = i * ranks + 1; s-- > 0;) { /* downwards: smaller sums are still of i - 1 */
            double of_s = 0;

            for (size_t r = 1; r <= ranks && r <= s; r++)
                of_s += share[s - r] / (double)ranks;
            share[s] = of_s;
        }
    for (size_t s = 0; s <= sum && s <= n * ranks; s++)
        total += share[s];
    return fmin(total, 1);
}
