/* How often statements about trained critics are true: every interval and bound against all
 * eigenvalues in float64, over hundreds of runs with different start vectors. Deterministic
 * statements may never be false; those with a probability of 99% may miss as often as a binomial
 * test at 1% allows; "+-" is a 95% t-interval. Prints how often each missed and how tight it is.
 *
 *   KS_COVERAGE=full  uses a hundred start vectors for each critic instead of twenty
 */
#include <omp.h>

#include "critics.h"
#include "statements.h"

enum { SEEDS = 20, FULL = 100, MEANS = 3, CONFIGURATIONS = 6 };

static const struct {
    bool single, full; /* full: only with KS_COVERAGE=full */
    size_t order, probes;
    bool complement;
} configurations[CONFIGURATIONS] = {{true, false, 36, 1, false}, {false, false, 34, 3, false},
                                    {true, false, 18, 1, true},  {true, true, 40, 3, false},
                                    {false, true, 30, 1, false}, {false, true, 36, 1, true}};

/* Means over probes that have a standard error. */
static const char *const means[MEANS] = {"trace", "trace_square", "kurtosis_spectral"};
static size_t means_made[MEANS], means_missed[MEANS];

static double true_mean(const struct truth *t, size_t k)
{
    double trace = 0, square = 0, m2 = 0, m4 = 0, n = (double)t->n;

    for (size_t i = 0; i < t->n; i++) {
        trace += t->value[i];
        square += t->value[i] * t->value[i];
    }
    for (size_t i = 0; i < t->n; i++) {
        m2 += pow(t->value[i] - trace / n, 2) / n;
        m4 += pow(t->value[i] - trace / n, 4) / n;
    }
    return k == 0 ? trace : k == 1 ? square : m4 / (m2 * m2);
}

/* For three probes: the 97.5% quantile of Student's t with two degrees of freedom. */
static void judge_means(const struct ks_spectrum *s, const struct truth *t)
{
    static const double T2 = 4.302653;

    for (size_t k = 0; k < MEANS && ks_spectrum_random(s) == 3; k++) {
        double value = ks_statistic(s, means[k]), error;

        error = ks_statistic(s, text_of("%s_se", means[k]));
        if (isnan(value) || isnan(error))
            continue;
        means_made[k]++;
        means_missed[k] += !(fabs(value - true_mean(t, k)) <= T2 * error);
    }
}

static size_t seeds(void)
{
    const char *size = getenv("KS_COVERAGE");

    return size && strcmp(size, "full") == 0 ? FULL : SEEDS;
}

static void cover(size_t k, struct tally *tally)
{
    struct ks_checkpoint *c = train_critic(k);
    struct truth t = {0};

    for (size_t i = 0; i < CONFIGURATIONS; i++)
        for (size_t seed = 0; seed < seeds() && (seeds() == FULL || !configurations[i].full);
             seed++) {
            struct analysis o = {.kind = &ks_operator_kinds[0],
                                 .problem = full_problem(c),
                                 .single = configurations[i].single,
                                 .gradient = true,
                                 .complement = configurations[i].complement,
                                 .order = configurations[i].order,
                                 .probes = configurations[i].probes,
                                 .seed = seed};

            assert_ok(analysis_run(&o));
            if (!t.value)
                assert_ok(truth_find(&o, &t));
            judge_spectrum(o.spectrum, &t, analysis_null(&o), false, tally);
            judge_means(o.spectrum, &t);
            if (tally->miss[0] && seeds() == FULL)
                printf("%s seed %zu m %zu probes %zu %s:%s\n", trained_critics[k].name, seed,
                       o.order, o.probes, o.single ? "f32" : "f64", tally->miss);
            tally->miss[0] = '\0';
            analysis_clear(&o);
        }
    printf("%s: %zu parameters, lambda_max %.3g, lambda_min %.3g\n", trained_critics[k].name, t.n,
           t.value[t.n - 1], t.value[0]);
    truth_clear(&t);
    ks_checkpoint_free(c);
}

static double median(size_t n, double *value)
{
    qsort(value, n, sizeof *value, ks_ascending);
    return value[n / 2];
}

TEST(test_coverage)
{
    struct tally tally = {{0}, {0}, "", {NULL}};
    size_t too_often = 0;

    for (size_t k = 0; k < STATEMENTS; k++)
        tally.tightness[k] = malloc(TRAINED * CONFIGURATIONS * FULL * sizeof(double));
    for (size_t k = 0; k < TRAINED; k++)
        cover(k, &tally);
    printf("%-22s %6s %7s %7s  %s\n", "statement", "runs", "missed", "at most", "median tightness");
    for (size_t k = 0; k < STATEMENTS; k++) {
        size_t most = statements[k].certain ? 0 : most_misses(tally.made[k], 0.01);

        printf("%-22s %6zu %7zu %7zu  %.4g\n", statements[k].name, tally.made[k], tally.missed[k],
               most, tally.made[k] > 0 ? median(tally.made[k], tally.tightness[k]) : NAN);
        too_often += tally.missed[k] > most;
        free(tally.tightness[k]);
    }
    for (size_t k = 0; k < MEANS; k++) {
        size_t made = means_made[k], most = most_misses(made, 0.05) + 1;

        printf("%-22s %6zu %7zu %7zu  +- of 95%%\n", means[k], made, means_missed[k], most);
        too_often += means_missed[k] > most;
    }
    assert_int_equal(too_often, 0);
}

/* The Krylov space ends, and its Ritz value at zero is many eigenvalues: the trace's interval is
 * narrow then, but the trace is in it. One step alone gives no interval. */
TEST(test_trace_of_an_ended_krylov_space)
{
    enum { N = 76, ZEROS = 6 };
    double value[N] = {0}, trace = 0;
    struct ks_operator a = DIAGONAL(N, value);

    for (size_t i = ZEROS; i < N; i++)
        trace += value[i] = (i % 2 ? 1 : -0.5) * pow(0.9, (double)i);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct ks_spectrum *s = estimate_with(&a, N, 1, seed, true);

        assert_true(s->steps[0] < N);
        assert_close(ks_statistic(s, "trace_lower"), trace, 1e-9);
        assert_close(ks_statistic(s, "trace_upper"), trace, 1e-9);
        assert_true(ks_statistic(s, "trace_lower") <= trace);
        assert_true(ks_statistic(s, "trace_upper") >= trace);
        assert_true(isnan(ks_statistic(estimate_with(&a, 1, 1, seed, true), "trace_lower")));
    }
}

CMFixtureFunction tests_setup = one_thread;
