/* Intervals of analyses that stop when the interval is narrow, on critics made to deceive: with
 * eigenvalues that one start vector cannot tell apart, and with few large ones. At most 1% may
 * miss.
 *
 *   KS_COVERAGE=full  uses 400 start vectors for each critic and statistic instead of 10, or of 100
 *                     for the trace of equal critics, the pair that misses most often without the
 *                     allowance for skewness in pipeline/minibatch_samples.c */
#include "small_critics.h"

enum { N = 40, SEEDS = 10, MORE = 100, FULL = 400, CRITICS = 6, STATISTICS = 5 };

/* The input of a linear critic with a squared error is X = D Q, Q being a product of reflections:
 * the Hessian is Q' D^2 Q up to a factor. */
static void fill_input(const double *eigenvalue, struct ks_rng *rng, double *x)
{
    memset(x, 0, N * N * sizeof *x);
    for (size_t i = 0; i < N; i++)
        x[i * N + i] = sqrt(eigenvalue[i]);
    for (size_t k = 0; k < N; k++) {
        const double *v = hold(numbers(rng, N));
        const double square = dot(N, v, v);

        for (size_t i = 0; i < N; i++) {
            const double c = 2 * dot(N, x + i * N, v) / square;

            cblas_daxpy(N, -c, v, 1, x + i * N, 1);
        }
    }
}

/* `equal`: the second critic is the first one again. */
static void save_linear(const char *name, const double *eigenvalue, size_t minibatches, bool equal)
{
    const struct critic_sizes sizes = {equal ? 2 : 1, N, minibatches, N, N};
    struct ks_checkpoint *c = keep_checkpoint(
        random_critic("dense 1 bias=no\nloss mse\n", sizes, 7));
    struct ks_rng rng = ks_rng_start(11, 0);

    for (size_t i = 0; i < minibatches; i++)
        fill_input(eigenvalue, &rng, c->input + i * N * N);
    if (equal)
        memcpy(c->critic.w + N, c->critic.w, N * sizeof *c->critic.w);
    save(name, c);
}

static const struct {
    const char *name;
    double top[4]; /* the largest eigenvalues; the others are `rest` times the first */
    double rest;
    size_t minibatches;
    bool equal;
} critics[CRITICS] = {
    {"equal-top", {1, 1, 0, 0}, 1e-3, 1, false},
    {"nearly-equal-top", {1, 1 - 1e-9, 0, 0}, 1e-3, 1, false},
    {"doubled-tops", {1, 1, 0.5, 0.5}, 1e-4, 1, false},
    {"equal-critics", {1, 0.3, 0.1, 0.03}, 1e-3, 1, true},
    {"one-large", {1, 1e-3, 1e-3, 1e-3}, 1e-3, 2, false},
    {"flat", {1, 1, 1, 1}, 1, 2, false},
};

static const struct {
    const char *tolerance;
    enum ks_statistic_id id;
} asked[STATISTICS] = {{"trace=0.2", KS_STAT_TRACE},
                       {"lambda_max=0.05", KS_STAT_LAMBDA_MAX},
                       {"directions_1e2=1", KS_STAT_DIRECTIONS_1E2},
                       {"directions_1e2=0.2 --complement", KS_STAT_DIRECTIONS_1E2},
                       {"zero_mass=0.2", KS_STAT_ZERO_MASS}};

static void save_critics(void)
{
    for (size_t k = 0; k < CRITICS; k++) {
        double eigenvalue[N];

        for (size_t i = 0; i < N; i++)
            eigenvalue[i] = i < 4 && critics[k].top[i] > 0 ? critics[k].top[i] : critics[k].rest;
        save_linear(critics[k].name, eigenvalue, critics[k].minibatches, critics[k].equal);
    }
}

static bool holds(const struct ks_spectrum *s, enum ks_statistic_id id, double truth)
{
    const struct ks_interval in = ks_statistic_interval(s, id);
    const double slack = 1e-6 * fabs(truth); /* of products in float32 */

    return !(truth < in.lower - slack) && !(truth > in.upper + slack);
}

TEST(test_stopping)
{
    const char *full = getenv("KS_COVERAGE");
    const bool all = full && strcmp(full, "full") == 0;

    save_critics();
    for (size_t k = 0; k < CRITICS; k++) {
        for (size_t a = 0; a < STATISTICS; a++) {
            const double truth = statistic_of(critics[k].name, "-q --exact --precision f64",
                                              ks_catalogue[asked[a].id].name);
            const bool skew = critics[k].equal && asked[a].id == KS_STAT_TRACE;
            const size_t seeds = all ? FULL : skew ? MORE : SEEDS;
            size_t missed = 0;

            for (size_t seed = 0; seed < seeds; seed++)
                missed += !holds(
                    spectrum(critics[k].name, text_of("-q --order 30 --seed %zu --tolerance %s",
                                                      seed, asked[a].tolerance)),
                    asked[a].id, truth);
            print_message("%-16s %-31s %zu of %zu missed\n", critics[k].name, asked[a].tolerance,
                          missed, seeds);
            assert_true(missed <= (seeds < 100 ? 1 : seeds / 100));
        }
    }
}

/* A critic from elsewhere with two nearly equal eigenvalues, of which 17 of 60 intervals once
 * missed. */
TEST(test_trace_of_a_twin)
{
    static const char PATH[] = "../shared/cases/files/trace75.h5";
    double truth;
    size_t missed = 0;

    if (access(PATH, R_OK) != 0)
        skip();
    copy_file(PATH, scratch("trace75.h5"));
    truth = statistic_of("trace75", "-q --exact --precision f64", "trace");
    for (size_t seed = 0; seed < 60; seed++)
        missed += !holds(spectrum("trace75", text_of("-q --tolerance trace=0.2 --seed %zu", seed)),
                         KS_STAT_TRACE, truth);
    print_message("trace75: %zu of 60 missed\n", missed);
    assert_true(missed == 0);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
