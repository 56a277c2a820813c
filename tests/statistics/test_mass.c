/* Zero and negative mass, the distance of the other eigenvalues from zero, and the noise floor. */
#include "spectra.h"

#include "core/rng.h"

enum { N = 400, MOST = 2000 };
static double value[MOST];

/* The true value and the estimate lie in the interval, which is no wider than `width`. */
static void check_share(const struct ks_spectrum *s, const char *name, double truth, double width)
{
    double found = ks_statistic(s, name), lower = ks_statistic(s, text_of("%s_lower", name)),
           upper = ks_statistic(s, text_of("%s_upper", name));

    if (!(lower <= truth + 1e-12 && truth <= upper + 1e-12))
        fail_msg("%s: %g is not in [%g, %g]", name, truth, lower, upper);
    if (!(upper - lower <= width))
        fail_msg("m = %zu: %s: [%g, %g] is wider than %g", s->order, name, lower, upper, width);
    assert_true(lower <= found && found <= upper);
}

/* Three quarters of the eigenvalues are zero; the others are positive, or of both signs. Once zero
 * has converged, the only uncertainty is the scatter of the start vectors. */
TEST(test_rank_deficient)
{
    struct ks_operator a = DIAGONAL(N, value);

    for (int signs = 0; signs < 2; signs++) {
        memset(value, 0, sizeof value);
        for (size_t i = 0; i < 100; i++)
            value[i] = (signs == 1 && i % 2 == 0 ? -1 : 1) * (1 + (double)i / 99);
        for (size_t order = 40; order <= 120; order += 40) {
            struct ks_spectrum *s = estimate_with(&a, order, 2, 5, true);

            bool converged = !signs || order > 40;

            check_share(s, "zero_mass", 0.75, converged ? 0.13 : 1);
            check_share(s, "negative_mass", signs ? 0.125 : 0, !converged ? 1 : signs ? 0.1 : 0);
        }
    }
}

/* The share of known null directions has no uncertainty. */
TEST(test_known_zeros)
{
    const struct ks_null null = {.dimension = 290, .product = 1e-15, .dead = 10};
    struct diagonal d = {.n = N, .value = value};

    for (size_t i = 0; i < N; i++)
        value[i] = i < 300 ? 0 : 1 + (double)(i - 300) / 99;
    for (size_t order = 20; order <= 60; order += 20) {
        struct certified *e = estimate_certified(
            &d, &(struct certified_run){
                    .order = order, .probes = 2, .seed = 5, .null = &null, .certify = true});

        check_share(e->s, "zero_mass", 0.75, 1e-12);
        check_share(e->s, "negative_mass", 0, order < 40 ? 0.25 : 1e-12);
        certified_free(e);
    }
}

/* The operator has no zero eigenvalue, and no zero is claimed at any order. */
static void check_no_zeros(double negative)
{
    struct ks_operator a = DIAGONAL(N, value);

    for (size_t m = 1; m <= 60; m++) {
        struct ks_spectrum *s = estimate_with(&a, m, 1, 5, true);

        check_share(s, "zero_mass", 0, 1);
        check_share(s, "negative_mass", negative, 1);
    }
}

TEST(test_no_zeros)
{
    for (size_t i = 0; i < N; i++)
        value[i] = -7;
    check_no_zeros(1);
    for (size_t i = 0; i < N; i++)
        value[i] = 1e-3 + (double)i / N; /* positive definite */
    check_no_zeros(0);
    for (size_t i = 0; i < N; i++)
        value[i] = i < 3 ? 3 : i % 2 == 0 ? 1e-3 : -1e-4; /* three values, both signs */
    {
        struct ks_operator a = DIAGONAL(N, value);
        struct ks_spectrum *s = estimate_spectrum(&a, 30, 1);

        check_share(s, "zero_mass", 0, 1e-12);
        check_share(s, "negative_mass", 199. / 400, 0.25);
    }
}

/* +-[1, 2]: the gap around zero is as wide as each bulk, but its edges are not zeros. At odd m a
 * Ritz value lies in the gap, with almost no weight. */
TEST(test_two_bulks)
{
    struct ks_operator a = DIAGONAL(N, value);

    for (size_t i = 0; i < N; i++)
        value[i] = (i % 2 == 0 ? 1 : -1) * (1 + (double)(i / 2) / (N / 2 - 1));
    for (size_t m = 8; m <= 60; m++) {
        struct ks_spectrum *s = estimate_with(&a, m, 2, 5, true);

        check_share(s, "zero_mass", 0, m < 20 ? 0.2 : 0.02);
        check_share(s, "negative_mass", 0.5, m < 20 ? 0.5 : 0.25);
    }
}

/* A known null space with this dimension and largest product. */
static struct ks_null null_of(size_t dimension, double product, size_t dead)
{
    return (struct ks_null){.dimension = dimension, .product = product, .dead = dead};
}

static void check_floor(const struct ks_null *null, double shift, double floor, double residual)
{
    const double ritz[] = {0.001, 0.5, 4}, w[] = {1. / 3, 1. / 3, 1. / 3};
    struct ks_spectrum *s = exact_spectrum(3, ritz, w);
    struct ks_statistics_inputs inputs = {
        .n = 3, .epsilon = FLT_EPSILON, .basis_epsilon = DBL_EPSILON, .null = null, .shift = shift};

    assert_ok(ks_statistics(s, &inputs));
    assert_close(ks_statistic(s, "noise_floor"), floor, 1e-12 * floor);
    check_statistic(s, "zero_mass", floor < 0.001 ? 0 : 1. / 3);
    if (null)
        check_statistic(s, "null_dimension", (double)null->dimension);
    else
        assert_true(isnan(ks_statistic(s, "null_dimension")));
    if (null)
        check_statistic(s, "dead_dimension", (double)null->dead);
    else
        assert_true(isnan(ks_statistic(s, "dead_dimension")));
    if (isnan(residual))
        assert_true(isnan(ks_statistic(s, "null_residual")));
    else
        check_statistic(s, "null_residual", residual);
}

/* The floor is the largest of 16 eps lambda_abs_max and, with known null directions, four times
 * their product and four times the leakage of the largest eigenvalue into them. */
TEST(test_noise_floor)
{
    const struct ks_null measured = null_of(7, 0.002, 3), zero = null_of(7, 0, 3),
                         none = null_of(0, NAN, 3);
    const struct ks_null leaking = {.dimension = 7, .product = 0.002, .leak = 0.001, .dead = 3},
                         leak_alone = {.dimension = 7, .product = 0, .leak = 0.001, .dead = 3};
    const struct ks_null tiny = null_of(7, 1e-17, 3);
    const double by_epsilon = 16 * 4 * FLT_EPSILON;

    check_floor(NULL, 0, by_epsilon, NAN);
    check_floor(&measured, 0, 4 * 0.002, 0.0005);
    check_floor(&measured, 0.1, 4 * 0.002, 0.0005);
    check_floor(&leaking, 0, 4 * 0.001 * 4, 0.0005);
    check_floor(&leak_alone, 0, 4 * 0.001 * 4, 0);
    check_floor(&zero, 0, by_epsilon, 0);
    check_floor(&none, 0, by_epsilon, NAN);
    check_floor(&tiny, 0, by_epsilon, 0.25e-17); /* the rounding of other vectors remains */
}

/* A zero eigenvalue as Lanczos in float64 computes it, in units of eps lambda_abs_max: below the
 * noise floor, but not far below it. */
TEST(test_zeros_stay_below_the_noise_floor)
{
    double worst = 0;

    for (int kind = 0; kind < 3; kind++)
        for (size_t rank = 1; rank < 150; rank = 2 * rank + 1) {
            struct ks_operator a = DIAGONAL(200, value);
            struct ks_rng rng = ks_rng_start(3, rank);
            struct ks_spectrum *s;

            memset(value, 0, sizeof value);
            for (size_t i = 0; i < rank; i++)
                value[i] = kind == 0   ? ks_rng_uniform(&rng, 0, 1)
                           : kind == 1 ? ks_rng_normal(&rng)
                                       : 100 * pow(10, -4 * (double)i / (double)rank);
            s = estimate_with(&a, 150, 4, 5, true);
            for (size_t i = 0; i < s->order * s->probes; i++)
                if (s->weight[i] > 0.3 * (1 - (double)rank / 200) && fabs(s->ritz[i]) < 1e-9)
                    worst = fmax(worst, fabs(s->ritz[i]) / ks_statistic(s, "noise_floor"));
        }
    assert_true(worst < 1);
    assert_true(worst > 0.02);
}

/* Off a known null space the condition number is 2. kappa_lower_bound is not a bound for it;
 * kappa_effective_bound is one for every start vector, and is not trivial. */
TEST(test_effective_bound)
{
    struct diagonal d = {.n = MOST, .value = value};
    const size_t dimensions[] = {5, 300, 1500};

    for (int signs = 0; signs < 2; signs++)
        for (size_t k = 0; k < 3; k++) {
            const struct ks_null null = null_of(dimensions[k] - 2, 1e-15, 2);

            for (size_t i = 0; i < MOST; i++)
                value[i] = i < dimensions[k] ? 0
                                             : (signs == 1 && i % 2 == 0 ? -1 : 1) *
                                                   (1 + (double)(i - dimensions[k]) /
                                                            (double)(MOST - 1 - dimensions[k]));
            for (uint64_t seed = 0; seed < 6; seed++) {
                struct certified *e = estimate_certified(
                    &d, &(struct certified_run){.order = 50,
                                                .probes = 1 + seed % 2,
                                                .seed = seed,
                                                .null = &null,
                                                .certify = seed % 3 > 0});
                double bound = ks_statistic(e->s, "kappa_effective_bound");

                assert_true(bound <= 2 * (1 + 1e-12));
                if (!(bound > 1.95))
                    fail_msg("null space %zu: the bound is %g", dimensions[k], bound);
                assert_true(ks_statistic(e->s, "kappa_lower_bound") > 10);
                certified_free(e);
            }
        }
}

/* With a weight decay the directions are not null; with no known null space, the noise floor limits
 * the bound; in an exact spectrum, the null space has the smallest eigenvalues. */
TEST(test_effective_bound_otherwise)
{
    const double ritz[] = {-4, 1e-9, 2e-9, 0.5, 3}, w[] = {0.2, 0.2, 0.2, 0.2, 0.2};
    const struct ks_null null = null_of(2, 1e-8, 0), all = null_of(3, 1e-8, 2);
    struct ks_statistics_inputs inputs = {.n = 5, .epsilon = FLT_EPSILON, .null = &null};
    const double h = 16 * FLT_EPSILON * 4 / 2;
    struct ks_spectrum *s = exact_spectrum(5, ritz, w);

    assert_ok(ks_statistics(s, &inputs));
    check_statistic(s, "kappa_effective_bound", 4 / (0.5 + h));
    s = exact_spectrum(5, ritz, w);
    inputs.shift = 0.5;
    assert_ok(ks_statistics(s, &inputs));
    assert_close(ks_statistic(s, "kappa_effective_bound"), 4 / (1e-9 + h), 1e-3);
    s = exact_spectrum(5, ritz, w);
    inputs = (struct ks_statistics_inputs){.n = 5, .epsilon = DBL_EPSILON};
    assert_ok(ks_statistics(s, &inputs));
    assert_close(ks_statistic(s, "kappa_effective_bound"), 4 / 1e-9, 1e5);
    assert_true(ks_statistic(s, "kappa_effective_bound") < ks_statistic(s, "kappa"));
    s = exact_spectrum(5, ritz, w);
    inputs.null = &all;
    assert_ok(ks_statistics(s, &inputs));
    assert_true(isnan(ks_statistic(s, "kappa_effective_bound"))); /* no direction is left */
}
