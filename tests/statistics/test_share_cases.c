/* Intervals for shares: cases worked by hand; the effects of rounding, known zeros and the end of a
 * Krylov space; and shares along a given vector. */
#include "core/memory.h"
#include "trials.h"

/* A probe with a Jacobi matrix made by hand. */
static struct ks_share_probe probe_of(size_t m, const double *alpha, const double *beta, bool ended)
{
    return (struct ks_share_probe){
        .steps = m, .alpha = alpha, .beta = beta, .ended = ended, .start_norm2 = 10};
}

/* Of ten eigenvalues, four are zero by known vectors and two more by a bound on the rank. The
 * Krylov space ends with 0, 2 and 2.5; its zero adds no information. Of the other four, two are
 * beyond 1.9 and two can be anywhere, as far as counting goes. */
TEST(test_certain_counts)
{
    const double value[] = {0, 2, 2.5}, start[] = {3, 1, 1};
    double alpha[3], beta[3];
    bool ended;
    struct lanczos_run run = {
        .n = 3, .most = 3, .value = value, .start = start, .breakdown = 1e-12};
    struct ks_share_probe probe;
    struct ks_shares_input in = {.n = 10,
                                 .n_null = 4,
                                 .least_nullity = 6,
                                 .probes = 1,
                                 .probe = &probe,
                                 .h = 1e-12,
                                 .abs_max_lower = 2.5,
                                 .abs_max_upper = 2.5};
    struct ks_shares shares;

    assert_int_equal(run_lanczos(&run, alpha, beta, &ended), 3);
    assert_true(ended);
    probe = probe_of(3, alpha, beta, true);
    probe.null_weight = 0.5;
    assert_ok(ks_shares(&in, &shares));
    for (size_t i = 0; i < KS_DIRECTIONS; i++) { /* at least two, at most four */
        assert_close(shares.directions[i].in.lower, 2, 0);
        assert_close(shares.directions[i].in.upper, 4, 0);
    }
    /* the share beyond 0.25, of the weight off the four null vectors */
    assert_close(shares.directions[0].value, 6 * (1 - (9.0 / 11 - 0.5) / 0.5), 1e-12);
    assert_close(shares.zero_mass.in.lower, 0.6, 1e-15);
    assert_close(shares.zero_mass.in.upper, 0.8, 1e-15);
    assert_close(shares.negative_mass.in.lower, 0, 0);
    assert_close(shares.negative_mass.in.upper, 0, 0); /* no weight is negative */
    assert_close(shares.kappa_q[0].lower, 1, 0);       /* the tenth size: certainly 2.5 */
    assert_close(shares.kappa_q[0].upper, 1, 1e-11);
    assert_close(shares.kappa_q[1].upper, 2.5 / 2, 1e-11); /* the ninth size: at least 2 */
    assert_true(isinf(shares.kappa_q[2].lower));           /* the fifth size: zero */
    assert_true(isinf(shares.kappa_q[2].upper));
}

/* Of the operator with the eigenvalues 0, 2 and 2.5, whose Krylov space has ended: what is above an
 * absolute size. Beyond the largest eigenvalue there is none, just below it one; nothing says how
 * many of the others are above 1e-13, which is less than h. */
TEST(test_absolute_counts)
{
    const double value[] = {0, 2, 2.5}, start[] = {1, 1, 1};
    static const struct {
        double size, lower, upper;
    } counts[] = {{3, 0, 0}, {2.5, 0, 0}, {2.4, 1, 1}, {2.1, 1, 1}, {1.9, 2, 2}, {1e-13, 2, 3}};
    double alpha[3], beta[3];
    bool ended;
    struct lanczos_run run = {
        .n = 3, .most = 3, .value = value, .start = start, .breakdown = 1e-12};
    struct ks_share_probe probe;
    struct ks_shares_input in = {.n = 3,
                                 .probes = 1,
                                 .probe = &probe,
                                 .h = 1e-12,
                                 .abs_max_lower = 2.5,
                                 .abs_max_upper = 2.5};
    struct ks_shares shares;

    assert_int_equal(run_lanczos(&run, alpha, beta, &ended), 3);
    probe = probe_of(3, alpha, beta, true);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        in.count_above = counts[i].size;
        assert_ok(ks_shares(&in, &shares));
        assert_close(shares.above.in.lower, counts[i].lower, 0);
        assert_close(shares.above.in.upper, counts[i].upper, 0);
        assert_true(shares.above.value >= counts[i].lower && shares.above.value <= counts[i].upper);
    }
}

/* Two eigenvalues, and a start vector with a tiny component along one of them. The weights alone
 * would suggest that both are 2 or both 1, but both have been found. */
TEST(test_certain_overrides_likely)
{
    const double value[] = {1, 2}, small[] = {1e-3, 2}, start[] = {3e-5, 1, 3e-5};
    double alpha[2], beta[2];
    bool ended;
    struct lanczos_run run = {.n = 2, .most = 2, .value = value, .breakdown = 1e-9};
    struct ks_share_probe probe;
    struct ks_shares_input in = {
        .n = 2, .probes = 1, .probe = &probe, .h = 1e-9, .abs_max_lower = 2, .abs_max_upper = 2};
    struct ks_shares shares;

    for (size_t k = 0; k < 2; k++) {
        run.start = start + k;
        assert_int_equal(run_lanczos(&run, alpha, beta, &ended), 2);
        probe = probe_of(2, alpha, beta, true);
        assert_ok(ks_shares(&in, &shares));
        assert_close(shares.kappa_q[2].lower, 2, 1e-8);
        assert_close(shares.kappa_q[2].upper, 2, 1e-8);
        assert_close(shares.kappa_q[1].lower, 1, 0);
        assert_close(shares.kappa_q[1].upper, 1, 1e-8);
        assert_close(shares.directions[0].in.lower, 2, 0);
        run.value = small;
        assert_int_equal(run_lanczos(&run, alpha, beta, &ended), 2);
        assert_ok(ks_shares(&in, &shares));
        assert_close(shares.directions[1].in.lower, 1, 0);
        assert_close(shares.directions[1].in.upper, 1, 0);
        run.value = value;
    }
}

/* All Ritz values of a probe in float32 may be copies of one eigenvalue. */
TEST(test_copies_count_once)
{
    const double alpha[] = {3, 3, 3}, beta[] = {1e-8, 1e-8, 0};
    const struct ks_share_probe probe = probe_of(3, alpha, beta, true);
    struct ks_shares_input in = {
        .n = 10, .probes = 1, .probe = &probe, .h = 1e-7, .abs_max_lower = 3, .abs_max_upper = 3};
    struct ks_shares shares;
    double x = 3, lower, upper;

    assert_ok(ks_shares(&in, &shares));
    /* by the weight: the operator is 3 times the identity */
    assert_close(shares.directions[0].in.lower, 10, 0);
    assert_close(shares.kappa_q[2].upper, 1, 1e-6);
    in.n_null = 9; /* one eigenvalue is left, and it was found */
    assert_ok(ks_shares(&in, &shares));
    assert_close(shares.directions[0].in.lower, 1, 0);
    assert_ok(ks_shares_band(&in, 1, &x, &lower, &upper));
    assert_close(lower, 0.9, 0); /* at x = 3 +- h, one of ten may be above */
    assert_close(upper, 1, 0);
}

/* A zero operator, for which every statement is exact; and an operator with known zeros only. */
TEST(test_zero_operator)
{
    const double alpha[] = {0}, beta[] = {0};
    struct ks_share_probe probe = probe_of(1, alpha, beta, true);
    struct ks_shares_input in = {.n = 7, .n_null = 7, .probes = 1, .probe = &probe};
    struct ks_shares shares;

    probe.null_weight = 1;
    for (size_t null = 0; null <= 7; null += 7) {
        in.n_null = null;
        probe.null_weight = null == 7 ? 1 : 0;
        assert_ok(ks_shares(&in, &shares));
        for (size_t i = 0; i < KS_DIRECTIONS; i++)
            assert_close(shares.directions[i].in.upper, 0, 0);
        assert_true(isnan(shares.kappa_q[0].lower) && isnan(shares.kappa_q[0].upper));
        assert_close(shares.zero_mass.in.lower, 1, 0);
        assert_close(shares.zero_mass.value, 1, 0);
        assert_close(shares.zero_mass.in.upper, 1, 0);
        assert_close(shares.negative_mass.in.upper, 0, 0);
    }
}

/* Rounding rotates 700 known zero directions by about 1e-5 and mixes weight into them. All other
 * eigenvalues are in [1, 2]; none may appear to be small. */
TEST(test_rotated_zeros)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct spectrum s = {.null = 700};
        struct ks_shares shares;
        struct trial t;
        double x = 0.5, lower, upper;

        for (size_t i = 0; i < N; i++)
            s.value[i] = i < 700 ? 0 : 1 + (double)(i - 700) / 499;
        make_trial(&s, 1 + seed % 3, seed, 1e-7, &t);
        assert_ok(ks_shares(&t.in, &shares));
        assert_close(shares.directions[1].in.upper, 500, 0);
        assert_true(shares.directions[1].in.lower >= 499);
        assert_close(shares.zero_mass.in.lower, 700.0 / N, 1e-12);
        assert_ok(ks_shares_band(&t.in, 1, &x, &lower, &upper));
        assert_true(lower <= 700.0 / N);
        /* the smallest of the others is not reported as zero either */
        for (size_t i = 599; i < 700; i++)
            s.value[i] = 1;
        s.null = 599;
        make_trial(&s, 1 + seed % 3, seed, 1e-7, &t);
        assert_ok(ks_shares(&t.in, &shares));
        assert_true(shares.kappa_q[2].lower <= 2);
    }
}

/* 250 eigenvalues lie just outside lambda_abs_max / 1e4, which is where rounding mixes with the
 * known zeros most. They must not be counted as inside. */
TEST(test_rotated_near_the_limit)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct spectrum s = {.null = 700};
        struct ks_shares shares;
        struct trial t;

        for (size_t i = 0; i < N; i++)
            s.value[i] = i < 700 ? 0 : i < 950 ? 2.5e-4 : 2;
        make_trial(&s, 1, seed, 1e-7, &t);
        assert_ok(ks_shares(&t.in, &shares));
        assert_close(shares.directions[3].in.upper, 500, 0);
    }
}

/* One zero more than is known, in a resolved spectrum: exactly that one is found. */
TEST(test_one_more_zero)
{
    size_t seen = 0;

    for (uint64_t seed = 0; seed < 20; seed++) {
        struct spectrum s = {.null = 700};
        struct ks_shares shares;
        struct trial t;

        for (size_t i = 0; i < N; i++)
            s.value[i] = i < 701 ? 0 : 1 + (double)(i % 3);
        make_trial(&s, 1, seed, 0, &t);
        assert_ok(ks_shares(&t.in, &shares));
        seen += fabs(shares.zero_mass.in.lower - 701.0 / N) < 1e-12;
        assert_true(shares.zero_mass.in.lower < 701.5 / N);
    }
    assert_true(seen >= 18);
}

/* After one iteration, only the fact that lambda_abs_max belongs to an eigenvalue is known. */
TEST(test_one_step)
{
    const double alpha[] = {1}, beta[] = {1, 0};
    const struct ks_share_probe probe = probe_of(1, alpha, beta, false);
    struct ks_share_probe zero;
    struct ks_shares_input in = {
        .n = 50, .probes = 1, .probe = &probe, .h = 1e-7, .abs_max_lower = 1, .abs_max_upper = 300};
    struct ks_shares shares;

    assert_ok(ks_shares(&in, &shares));
    assert_close(shares.directions[0].in.lower, 1, 0);
    assert_close(shares.directions[0].in.upper, 50, 0);
    assert_close(shares.kappa_q[0].lower, 1, 0);
    assert_true(isinf(shares.kappa_q[2].upper));
    /* Weights that contradict it, as can happen in one of 400 runs, do not override it. */
    zero = probe_of(1, beta + 1, beta + 1, true);
    in.probe = &zero;
    assert_ok(ks_shares(&in, &shares));
    assert_close(shares.directions[0].in.lower, 1, 0);
    assert_close(shares.directions[0].in.upper, 1, 0);
}

/* Along one given vector the bounds are deterministic. The interval holds lambda_abs_max over the
 * size below which 10% and 50% of the energy lie, and a scan of sizes does not narrow it. */
TEST(test_energy)
{
    for (size_t kind = 0; kind < SPECTRA; kind++)
        for (size_t decay = 0; decay < 3; decay++) {
            struct spectrum s = {.null = 0};
            double start[N], size[N], alpha[ORDER], beta[ORDER], all = 0, top = 0;
            struct lanczos_run run = {
                .n = N, .most = ORDER, .value = s.value, .start = start, .breakdown = 1e-13};
            struct ks_share_probe probe = probe_of(0, alpha, beta, false);
            struct ks_rng rng = ks_rng_start(3, kind);
            struct ks_energy energy;
            struct ks_radau *r;

            spectra[kind].fill(&s);
            qsort(s.value, N, sizeof(double), by_size);
            for (size_t i = 0; i < N; i++) {
                size[i] = fabs(s.value[i]);
                start[i] = ks_rng_normal(&rng) * pow(size[i], (double)decay / 2);
                all += start[i] * start[i];
            }
            probe.steps = run_lanczos(&run, alpha, beta, &probe.ended);
            top = size[N - 1];
            assert_ok(ks_energy(&probe, 1e-13 * top, top, top * 1.01, &energy));
            assert_ok(ks_radau_new(probe.steps, alpha, beta, probe.ended, &r));
            for (size_t half = 0; half < 2; half++) {
                struct ks_interval kappa = half ? energy.kappa_50 : energy.kappa_90;
                double rest = half ? 0.5 : 0.1, sum = 0, lower = 1, upper = INFINITY;
                size_t k = 0;

                while (sum + start[k] * start[k] < rest * all)
                    sum += start[k] * start[k], k++;
                assert_true(kappa.lower <= top / size[k] * (1 + 1e-9));
                assert_true(kappa.upper >= top / size[k] * (1 - 1e-9));
                for (double x = 1e-13 * top; x < 1.1 * top; x *= 1.03) {
                    struct ks_interval mu;

                    assert_ok(ks_radau_within(r, x, &mu));
                    if (mu.lower > rest)
                        lower = fmax(lower, top / (x + 1e-13 * top));
                    if (mu.upper < rest)
                        upper = fmin(upper, fmax(1, 1.01 * top / (x - 1e-13 * top)));
                }
                assert_true(kappa.lower >= lower * (1 - 1e-9) && kappa.lower <= lower * 1.04);
                assert_true(kappa.upper <= upper * (1 + 1e-9));
                assert_true(isinf(upper) || upper > 1e12 || kappa.upper >= upper / 1.04);
            }
            ks_radau_free(r);
        }
}

/* Two outliers have converged, one of them at the lower end. */
TEST(test_top_share)
{
    double value[N], start[N], alpha[ORDER], beta[ORDER], share = 0, all = 0;
    struct lanczos_run run = {
        .n = N, .most = ORDER, .value = value, .start = start, .breakdown = 1e-13};
    struct ks_share_probe probe = probe_of(0, alpha, beta, false);
    struct ks_energy energy;

    for (size_t i = 0; i < N; i++) {
        value[i] = i == 0 ? 9 : i == 1 ? -7 : sin((double)i);
        start[i] = i < 2 ? 3 : 1.0 / (1 + (double)(i % 7));
        all += start[i] * start[i];
        share += i < 2 ? start[i] * start[i] : 0;
    }
    probe.steps = run_lanczos(&run, alpha, beta, &probe.ended);
    assert_ok(ks_energy(&probe, 1e-12, 9, 9.0001, &energy));
    assert_close(energy.top_share, share / all, 1e-12);
    assert_ok(ks_energy(&probe, 0, 0, 0, &energy));
    assert_true(isnan(energy.kappa_90.lower) && isnan(energy.kappa_50.upper));
}

TEST(test_memory)
{
    const double alpha[] = {1, 2}, beta[] = {0.5, 0.25};
    const struct ks_share_probe probe = probe_of(2, alpha, beta, false);
    const struct ks_shares_input in = {
        .n = 9, .probes = 1, .probe = &probe, .h = 1e-12, .abs_max_lower = 2, .abs_max_upper = 3};
    struct starved s = {.least = 9};
    struct ks_shares shares;
    double x = 1, lower, upper;

    while (starving(&s))
        s.status = ks_shares(&in, &shares);
    ks_alloc_fail_at(2);
    assert_int_equal(ks_shares_band(&in, 1, &x, &lower, &upper), KS_MEMORY);
    ks_alloc_fail_at(0);
}
