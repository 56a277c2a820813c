/* How often the 99% intervals miss in many runs. Also prints their widths. */
#include "statistics/beta_distribution.h"
#include "trials.h"

enum { TRIALS = 40, CLAIMS = KS_DIRECTIONS + KS_QUANTILES + 3 };

static const char *const claims[CLAIMS] = {
    "directions_1e1", "directions_1e2", "directions_1e3", "directions_1e4", "kappa_q99",
    "kappa_q90",      "kappa_q50",      "zero_mass",      "negative_mass",  "directions_above"};

/* The most misses in `runs` runs that are consistent with a miss rate of 1%, at the 1% level. */
static size_t most_misses(size_t runs)
{
    size_t most = 0;

    /* P(more than `most` misses) = I_0.01(most + 1, runs - most) */
    while (ks_beta_lower_tail((double)most + 1, (double)(runs - most), 0.01) > 0.01)
        most++;
    return most;
}

struct interval {
    double lower, value, upper;
};

/* All intervals with the true values; `value` is the estimate for a share, else NaN. */
static void list(const struct ks_shares *shares, const struct ks_shares *truth,
                 struct interval claim[CLAIMS], double value[CLAIMS])
{
    size_t k = 0;

    for (size_t i = 0; i < KS_DIRECTIONS; i++, k++) {
        const struct ks_estimate *s = &shares->directions[i];

        claim[k] = (struct interval){s->in.lower, s->value, s->in.upper};
        value[k] = truth->directions[i].value;
    }
    for (size_t i = 0; i < KS_QUANTILES; i++, k++) {
        claim[k] = (struct interval){shares->kappa_q[i].lower, NAN, shares->kappa_q[i].upper};
        value[k] = truth->kappa_q[i].lower;
    }
    claim[k] = (struct interval){shares->zero_mass.in.lower, shares->zero_mass.value,
                                 shares->zero_mass.in.upper};
    value[k++] = truth->zero_mass.value;
    claim[k] = (struct interval){shares->negative_mass.in.lower, shares->negative_mass.value,
                                 shares->negative_mass.in.upper};
    value[k++] = truth->negative_mass.value;
    claim[k] = (struct interval){shares->above.in.lower, shares->above.value,
                                 shares->above.in.upper};
    value[k++] = truth->above.value;
}

static void print_widths(const char *name, size_t probes, bool complement, const double *width)
{
    printf("%-16s P = %zu%s, median upper/lower:", name, probes, complement ? " + 1" : "");
    for (size_t k = 0; k < KS_DIRECTIONS + KS_QUANTILES; k++)
        printf(" %s %.3g", strchr(claims[k], '_') + 1, width[k]);
    printf("\n");
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void cover(size_t kind, size_t probes, bool complement, size_t misses[CLAIMS])
{
    struct spectrum s = {.null = 0};
    double width[CLAIMS][TRIALS], median[CLAIMS];

    spectra[kind].fill(&s);
    for (size_t seed = 0; seed < TRIALS; seed++) {
        struct trial t;
        struct ks_shares shares, truth;
        struct interval claim[CLAIMS];
        double value[CLAIMS];

        (complement ? make_trial_with_complement : make_trial)(&s, probes, seed, 0, &t);
        t.in.count_above = 0.03 * t.in.abs_max_lower;
        truth = truth_of(&s, t.in.h, t.in.count_above);
        assert_ok(ks_shares(&t.in, &shares));
        list(&shares, &truth, claim, value);
        for (size_t k = 0; k < CLAIMS; k++) {
            misses[k] += !(claim[k].lower <= value[k] && value[k] <= claim[k].upper);
            assert_true(isnan(claim[k].value) ||
                        (claim[k].lower <= claim[k].value && claim[k].value <= claim[k].upper));
            width[k][seed] = isinf(claim[k].upper) ? INFINITY : claim[k].upper / claim[k].lower;
        }
    }
    for (size_t k = 0; k < CLAIMS; k++) {
        qsort(width[k], TRIALS, sizeof(double), ascending);
        median[k] = width[k][TRIALS / 2];
    }
    print_widths(spectra[kind].name, probes, complement, median);
}

static size_t check_misses(size_t runs, const size_t misses[CLAIMS])
{
    size_t all = 0;

    for (size_t k = 0; k < CLAIMS; k++) {
        printf("%s: %zu misses of %zu\n", claims[k], misses[k], runs);
        assert_true(misses[k] <= most_misses(runs));
        all += misses[k];
    }
    return all;
}

/* Each of the ten intervals in 480 runs of each kind of spectrum, and all of them together. */
TEST(test_coverage)
{
    size_t misses[CLAIMS] = {0}, runs = 0;

    for (size_t kind = 0; kind < SPECTRA; kind++)
        for (size_t probes = 1; probes <= 3; probes += 2, runs += TRIALS)
            cover(kind, probes, false, misses);
    /* intervals that never miss are too wide */
    assert_true(check_misses(runs, misses) > 0);
}

/* The same with a run in the complement. */
TEST(test_coverage_with_complement)
{
    size_t misses[CLAIMS] = {0}, runs = 0;

    for (size_t kind = 0; kind < SPECTRA; kind++, runs += TRIALS)
        cover(kind, 1, true, misses);
    check_misses(runs, misses);
}
