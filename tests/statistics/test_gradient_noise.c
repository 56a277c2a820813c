/* The noise of the gradient: its numbers against sums over all pairs, and how often its intervals
 * miss, for noise of known distributions and for the minibatches of trained critics. The manual has
 * the largest shares, of known distributions from 10,000 trials: KS_COVERAGE=full takes as many. */
#include "critics.h"

#include "operators/gradient.h"
#include "statistics/catalogue.h"
#include "statistics/gradient_noise.h"

enum { MOST = 50, SIDE = 100 };

static size_t trials_of(size_t few)
{
    const char *coverage = getenv("KS_COVERAGE");

    return coverage && strcmp(coverage, "full") == 0 ? 10000 : few;
}

/* gram [n, n] of the rows of x [n, d]. */
static void multiply(size_t n, size_t d, const double *x, double *gram)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)n, (int)d, 1, x, (int)d, x,
                (int)d, 0, gram, (int)n);
}

static struct ks_gradient_noise find(size_t n, double *gram)
{
    struct ks_gradient_noise noise;

    assert_ok(ks_gradient_noise_find(n, gram, &noise));
    return noise;
}

/* --- values --- */

TEST(test_values)
{
    struct ks_rng rng = ks_rng_start(3, 0);

    for (size_t n = 2; n < 12; n++) {
        enum { D = 7 };
        double x[12 * D], gram[12 * 12], pairs = 0, squares = 0;
        struct ks_gradient_noise noise;

        for (size_t i = 0; i < n * D; i++)
            x[i] = 2 + ks_rng_normal(&rng);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                const double product = cblas_ddot(D, x + i * D, 1, x + j * D, 1);

                *(i == j ? &squares : &pairs) += product;
            }
        multiply(n, D, x, gram);
        noise = find(n, gram);
        pairs /= (double)(n * (n - 1));
        squares /= (double)n;
        assert_close(noise.square.value, pairs, 1e-12 * pairs);
        assert_close(noise.variance.value, squares - pairs, 1e-11 * squares);
        assert_close(noise.scale.value, (squares - pairs) / pairs, 1e-11);
        assert_close(noise.share.value, pairs / (pairs + (squares - pairs) / (double)n), 1e-11);
        assert_int_equal(isnan(noise.square.in.lower), n < KS_GRADIENT_NOISE_LEAST);
        assert_int_equal(isnan(noise.share.in.lower), n < KS_GRADIENT_NOISE_LEAST);
    }
}

TEST(test_limits)
{
    double one = 4, gram[36], x[6];
    struct ks_gradient_noise noise = find(1, &one);

    assert_true(isnan(noise.square.value) && isnan(noise.variance.value) &&
                isnan(noise.scale.value) && isnan(noise.share.in.upper));
    for (size_t i = 0; i < 36; i++)
        gram[i] = INFINITY;
    assert_true(isnan(find(6, gram).square.value));
    for (size_t i = 0; i < 36; i++) /* no noise but rounding, of any size and sign */
        gram[i] = 3e-170 * (1 + (i % 7 == 0 ? -1e-15 : 0));
    noise = find(6, gram);
    assert_true(noise.square.in.lower < 3e-170 && 3e-170 < noise.square.in.upper);
    assert_close(noise.square.in.lower, 3e-170, 1e-182);
    assert_close(noise.square.in.upper, 3e-170, 1e-182);
    assert_true(noise.variance.value >= 0 && noise.variance.in.lower == 0);
    assert_true(noise.scale.in.lower == 0 && noise.scale.in.upper < 1e-12);
    assert_true(noise.share.in.lower > 1 - 1e-12 && noise.share.in.upper <= 1);
    memset(gram, 0, sizeof gram); /* no gradient */
    noise = find(6, gram);
    assert_close(noise.square.in.upper, 0, 0);
    assert_true(isnan(noise.scale.value) && isnan(noise.share.value));
    for (size_t i = 0; i < 6; i++) /* no signal */
        x[i] = i % 2 == 0 ? 1 : -1;
    multiply(6, 1, x, gram);
    noise = find(6, gram);
    assert_true(noise.square.value < 0 && isinf(noise.scale.value));
    assert_close(noise.square.in.lower, 0, 0);
    assert_true(isnan(noise.scale.in.upper) && noise.scale.in.lower > 0);
    assert_close(noise.share.value, 0, 0);
}

/* --- coverage --- */

enum { QUANTITIES = 3 };
static const char *const quantities[QUANTITIES] = {"|G|^2", "tr Sigma", "scale"};

struct misses {
    size_t trials, missed[QUANTITIES], resolved; /* scales with an upper end */
    double width;                                /* log(upper / lower) of tr Sigma, summed */
};

static bool is_outside(struct ks_interval in, double x)
{
    return x < in.lower * (1 - 1e-12) || x > in.upper * (1 + 1e-12);
}

static void judge(const struct ks_gradient_noise *found, double square, double variance,
                  struct misses *m)
{
    m->trials++;
    m->missed[0] += is_outside(found->square.in, square);
    m->missed[1] += is_outside(found->variance.in, variance);
    m->missed[2] += is_outside(found->scale.in, square > 0 ? variance / square : INFINITY);
    m->resolved += !isnan(found->scale.in.upper);
    m->width += log(found->variance.in.upper / found->variance.in.lower);
}

static void print_misses(const char *name, size_t n, const struct misses *m)
{
    print_message("%-30s %3zu", name, n);
    for (size_t k = 0; k < QUANTITIES; k++)
        print_message("  %6.2f%%", 100 * (double)m->missed[k] / (double)m->trials);
    print_message("  %5.0f%%  %6.3g\n", 100 * (double)m->resolved / (double)m->trials,
                  exp(m->width / (double)m->trials));
}

static void print_heading(void)
{
    print_message("%-30s %3s", "", "N");
    for (size_t k = 0; k < QUANTITIES; k++)
        print_message("  %7s", quantities[k]);
    print_message("  scale has an upper end; upper / lower of tr Sigma\n");
}

/* The standard deviations of the coordinates; the length of G in units of sqrt(tr Sigma / N), and
 * whether G lies along the first coordinate or in all; the distribution of one number; the shares
 * that the manual says are missed at most. */
static const struct law {
    const char *name;
    size_t dimension;
    double power, signal;
    bool along;
    enum { NORMAL, SIZES, EXPONENTIAL } kind;
    double most[QUANTITIES];
} laws[] = {
    {"normal, one direction", 1, 0, 3, true, NORMAL, {0.006, 0.005, 0.004}},
    {"normal, one direction, weak", 1, 0, 1, true, NORMAL, {0.006, 0.005, 0.004}},
    {"normal, 100 equal ones", SIDE, 0, 1, false, NORMAL, {0.006, 0.005, 0.004}},
    {"normal, power law", SIDE, 0.5, 3, true, NORMAL, {0.006, 0.005, 0.004}},
    {"normal, no signal", SIDE, 0.5, 0, true, NORMAL, {0.006, 0.005, 0.004}},
    {"normal, strong, one direction", 1, 0, 30, true, NORMAL, {0.006, 0.005, 0.004}},
    {"normal, strong, power law", SIDE, 0.5, 30, true, NORMAL, {0.006, 0.005, 0.004}},
    {"normal, strong, equal ones", SIDE, 0, 10, false, NORMAL, {0.006, 0.005, 0.004}},
    {"minibatches differ in size", SIDE, 0.5, 3, false, SIZES, {0.001, 0.03, 0.01}},
    {"exponential, power law", SIDE, 0.5, 3, false, EXPONENTIAL, {0.001, 0.001, 0.001}},
    {"exponential, one direction", 1, 0, 3, true, EXPONENTIAL, {0.05, 0.05, 0.002}},
};
enum { LAWS = sizeof laws / sizeof *laws };

/* Three standard deviations above the mean of a number of misses. */
static double most_missed(double rate, size_t trials)
{
    return rate * (double)trials + 3 * sqrt(rate * (double)trials);
}

/* x [n, dimension] of a law with mean `g` and the standard deviations `deviation`. */
static void draw(const struct law *l, size_t n, const double *g, const double *deviation,
                 struct ks_rng *rng, double *x)
{
    for (size_t i = 0; i < n; i++) {
        /* exp of half a normal number; its square has the mean exp(1/2) */
        const double size = l->kind == SIZES ? exp(0.5 * ks_rng_normal(rng) - 0.25) : 1;

        for (size_t k = 0; k < l->dimension; k++) {
            const double number = l->kind == EXPONENTIAL ? -1 - log(ks_rng_uniform(rng, 0, 1))
                                                         : ks_rng_normal(rng);

            x[i * l->dimension + k] = g[k] + size * deviation[k] * number;
        }
    }
}

static struct misses try_law(const struct law *l, size_t n, size_t trials)
{
    static double x[MOST * SIDE], gram[MOST * MOST];
    struct ks_rng rng = ks_rng_start(11, n);
    struct misses m = {0};
    double g[SIDE] = {0}, deviation[SIDE], variance = 0, square = 0;

    for (size_t k = 0; k < l->dimension; k++) {
        deviation[k] = pow((double)k + 1, -l->power);
        variance += deviation[k] * deviation[k];
    }
    for (size_t k = 0; k < (l->along ? 1 : l->dimension); k++)
        g[k] = l->signal * sqrt(variance / (double)n / (l->along ? 1 : (double)l->dimension));
    square = cblas_ddot(SIDE, g, 1, g, 1);
    for (size_t i = 0; i < trials; i++) {
        struct ks_gradient_noise found;

        draw(l, n, g, deviation, &rng, x);
        multiply(n, l->dimension, x, gram);
        found = find(n, gram);
        judge(&found, square, variance, &m);
    }
    return m;
}

static const size_t sizes[] = {4, 8, 16, MOST};

/* An interval that is too wide would miss nothing: a strong signal is resolved, and the variance of
 * many equal coordinates is known within a factor of two. */
TEST(test_known_laws)
{
    print_heading();
    for (size_t k = 0; k < LAWS; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const size_t trials = trials_of(laws[k].dimension == 1 ? 2000 : 400);
            const struct misses m = try_law(&laws[k], sizes[i], trials);

            print_misses(laws[k].name, sizes[i], &m);
            for (size_t q = 0; q < QUANTITIES; q++)
                assert_true((double)m.missed[q] <= most_missed(laws[k].most[q], m.trials));
            assert_true(laws[k].signal < 10 || (double)m.resolved >= 0.97 * (double)m.trials);
            assert_true(laws[k].dimension == 1 || laws[k].power > 0 || sizes[i] < MOST ||
                        m.width <= log(2) * (double)m.trials);
        }
}

/* Minibatches of the task of a trained critic: the truth is from all of them. */
TEST(test_trained_critics)
{
    enum { ALL = 2000 };
    double *gram = hold(calloc((size_t)ALL * ALL, sizeof *gram)), part[MOST * MOST];

    print_heading();
    for (size_t k = 0; k < TRAINED; k++) {
        struct ks_checkpoint *c = keep_checkpoint(
            draw_minibatches(keep_checkpoint(train_critic(k)), ALL, 5));
        struct ks_problem q = full_problem(c);
        struct ks_gradient_noise all;
        struct ks_selection *selection;
        double *copy = hold(calloc((size_t)ALL * ALL, sizeof *copy));

        q.kind = ks_operator_kind_find("hessian");
        assert_ok(ks_selection_new(&q, false, &selection));
        q.selection = selection;
        assert_ok(ks_gradient_gram(&q, ALL, gram));
        ks_selection_free(selection);
        memcpy(copy, gram, (size_t)ALL * ALL * sizeof *copy);
        all = find(ALL, copy);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const size_t n = sizes[i];
            struct misses m = {0};

            for (size_t at = 0; at + n <= ALL; at += n) {
                struct ks_gradient_noise found;

                for (size_t row = 0; row < n; row++)
                    memcpy(part + row * n, gram + (at + row) * ALL + at, n * sizeof *part);
                found = find(n, part);
                judge(&found, all.square.value, all.variance.value, &m);
            }
            print_misses(trained_critics[k].name, n, &m);
            for (size_t quantity = 0; quantity < QUANTITIES; quantity++)
                assert_true((double)m.missed[quantity] <= most_missed(0.005, m.trials));
        }
        print_message("  scale %.3g [%.3g, %.3g]\n", all.scale.value, all.scale.in.lower,
                      all.scale.in.upper);
    }
}
