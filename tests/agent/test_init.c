/* Initial parameters: orthogonality, uniform distribution, the two heads of an actor. Compiled in
 * both precisions. */
#include "test.h"

#include "agent/optim.h"
#include "agent/stream.h"

enum { LARGEST = 40 };

static const struct ks_starts standard = {.kernels = KS_ORTHOGONAL, .blocks = KS_ORTHOGONAL};

/* The largest deviation of gain^-2 W'W (tall) or W W' (wide) from the identity. */
static double deviation(size_t rows, size_t columns, size_t stride, double gain, const real *w)
{
    size_t n = rows < columns ? rows : columns, m = rows < columns ? columns : rows;
    double worst = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;

            for (size_t k = 0; k < m; k++)
                sum += rows < columns ? (double)w[i * stride + k] * (double)w[j * stride + k]
                                      : (double)w[k * stride + i] * (double)w[k * stride + j];
            worst = fmax(worst, fabs(sum / gain / gain - (i == j)));
        }
    return worst;
}

TEST(test_orthogonal)
{
    static const size_t shapes[][2] = {{40, 7}, {7, 40}, {20, 20}, {30, 1}, {1, 30}, {1, 1}};
    struct ks_rng rng = ks_rng_start(1, 1);
    real w[LARGEST * LARGEST];

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t rows = shapes[i][0], columns = shapes[i][1];
        uint64_t before = rng.drawn;

        assert_ok(KS(orthogonal)(&(struct KS(block)){rows, columns, LARGEST, w}, 1.5, &rng));
        assert_close(deviation(rows, columns, LARGEST, 1.5, w), 0, 20 * (double)KS_EPSILON);
        assert_int_equal(rng.drawn - before, rows * columns);
    }
}

/* For a uniformly distributed orthogonal matrix, E w_11 = 0 and E w_11^2 = 1/n. Without the signs
 * of R's diagonal, LAPACK's reflections would make w_11 negative every time. */
TEST(test_no_preferred_sign)
{
    enum { N = 4, TIMES = 2000 };
    struct ks_rng rng = ks_rng_start(2, 1);
    double sum = 0, squares = 0;
    real w[N * N];

    for (size_t t = 0; t < TIMES; t++) {
        assert_ok(KS(orthogonal)(&(struct KS(block)){N, N, N, w}, 1, &rng));
        sum += (double)w[0];
        squares += (double)(w[0] * w[0]);
    }
    assert_close(sum / TIMES, 0, 5 * 0.5 / sqrt(TIMES));
    assert_close(squares / TIMES, 1.0 / N, 5 * 0.25 / sqrt(TIMES));
}

RELEASES(free_arch, KS(arch_free))

/* A network, and its parameters as they are drawn; both are held until the test ends. `state` may
 * be NULL. */
static real *draw(struct KS(arch) **arch, const char *text, size_t in, uint64_t stream, real *state)
{
    struct ks_rng rng = ks_stream(3, stream, 0);
    real *w;

    assert_ok(KS(arch_parse)(text, "test", in, arch));
    hold_object(*arch, free_arch);
    w = hold(calloc((*arch)->parameters, sizeof *w));
    assert_ok(KS(init_network)(*arch, &standard, &rng, w, state));
    return w;
}

TEST(test_critic)
{
    static const char text[] = "batchnorm\ndense 6\nrelu\ndense 2\nloss ce min=0 max=1\n";
    struct KS(arch) *arch;
    const struct KS(layer) *l;
    real s[2 * 9], *w = draw(&arch, text, 9, KS_INIT_CRITIC, s);

    for (size_t j = 0; j < 9; j++) {
        assert_true(w[j] == 1 && w[9 + j] == 0); /* scale, bias */
        assert_true(s[j] == 0 && s[9 + j] == 1); /* mean, var   */
    }
    l = &arch->layer[1];
    assert_close(deviation(9, 6, 6, sqrt(2), w + l->offset), 0, 20 * (double)KS_EPSILON);
    for (size_t j = 0; j < 6; j++)
        assert_true(w[l->offset + 54 + j] == 0);
    l = &arch->layer[3];
    assert_close(deviation(6, 2, 2, sqrt(2), w + l->offset), 0, 20 * (double)KS_EPSILON);
}

/* The g of a weight normalization are the norms of the columns of v, which differ here: then W = v.
 */
TEST(test_weight_norm)
{
    enum { IN = 4, OUT = 6 };
    struct KS(arch) *arch;
    const real *w = draw(&arch, "dense 6 norm=weight\ndense 1\nloss mse\n", IN, KS_INIT_CRITIC,
                         NULL);

    assert_int_equal(arch->parameters, (IN + 2) * OUT + OUT + 1);
    for (size_t j = 0; j < OUT; j++) {
        double sum = 0;

        for (size_t i = 0; i < IN; i++)
            sum += pow((double)w[i * OUT + j], 2);
        assert_true(sum > 0 && w[(IN + 1) * OUT + j] == 0);
        assert_close(w[IN * OUT + j], sqrt(sum), 4 * (double)KS_EPSILON);
    }
}

/* Means with gain sqrt(2), log-stds with gain 1, each orthogonal by itself. */
TEST(test_actor_heads)
{
    static const char text[] = "dense 8\nrelu\ndense 6\npolicy tanh-gaussian log-std=clip\n";
    struct KS(arch) *arch;
    const real *w = draw(&arch, text, 5, KS_INIT_ACTOR, NULL), *head;

    head = w + arch->layer[2].offset;
    assert_close(deviation(8, 3, 6, sqrt(2), head), 0, 20 * (double)KS_EPSILON);
    assert_close(deviation(8, 3, 6, 1, head + 3), 0, 20 * (double)KS_EPSILON);
    assert_true(deviation(8, 6, 6, 1, head) > 0.1);
}

/* A layer before groups is two layers, also behind another kind; one before that is one. */
TEST(test_side_by_side)
{
    static const char text[] = "dense 8\nrelu\ndense 16 bias=no\nscaler\n"
                               "dense 6 groups=2\npolicy tanh-gaussian log-std=clip\n";
    struct KS(arch) *arch;
    const real *w = draw(&arch, text, 8, KS_INIT_ACTOR, NULL), *two;

    two = w + arch->layer[2].offset;
    assert_close(deviation(8, 8, 8, sqrt(2), w), 0, 20 * (double)KS_EPSILON);
    assert_close(deviation(8, 8, 16, sqrt(2), two), 0, 20 * (double)KS_EPSILON);
    assert_close(deviation(8, 8, 16, sqrt(2), two + 8), 0, 20 * (double)KS_EPSILON);
    assert_true(fabs((double)(two[0] - two[8])) > 0.01); /* independent of each other */
}

/* A convolution is one layer, whatever reads its features. */
TEST(test_filters)
{
    static const char text[] = "conv2d 3 size=3 channels=1 height=5 width=4\nrelu\n"
                               "dense 6 groups=2\npolicy tanh-gaussian log-std=clip\n";
    struct KS(arch) *arch;
    const real *w = draw(&arch, text, 20, KS_INIT_ACTOR, NULL);

    assert_close(deviation(9, 3, 3, sqrt(2), w), 0, 20 * (double)KS_EPSILON);
}

TEST(test_shift)
{
    static const char text[] = "dense 8\nrelu\ndense 3 bias=no\npolicy shift gain=0.25\n";
    struct KS(arch) *arch;
    const real *w = draw(&arch, text, 5, KS_INIT_OPTIMIST, NULL);

    assert_close(deviation(5, 8, 8, sqrt(2), w), 0, 20 * (double)KS_EPSILON);
    assert_close(deviation(8, 3, 3, 0.25, w + arch->layer[2].offset), 0, 20 * (double)KS_EPSILON);
}

/* The mean, the mean square and the largest of independent entries. 0.8796 is the deviation of a
 * standard normal cut off at 2. */
static void check_normal(size_t in, size_t out, const real *w, double variance)
{
    const double largest = 2 * sqrt(variance) / 0.8796, n = (double)(in * out);
    double sum = 0, squares = 0, far = 0;

    for (size_t i = 0; i < in * out; i++) {
        assert_true(fabs((double)w[i]) <= largest);
        far = fmax(far, fabs((double)w[i]));
        sum += (double)w[i] / n;
        squares += pow((double)w[i], 2) / n;
    }
    assert_true(far > 0.95 * largest);
    assert_close(sum, 0, 5 * sqrt(variance / n));
    assert_close(squares, variance, 5 * sqrt(2 / n) * variance); /* kurtosis below 3 */
}

/* A normal distribution cut off at two deviations, with variance 2/n in the body of a residual and
 * 1/n outside; orthogonal kernels with another gain than sqrt(2). */
TEST(test_normal)
{
    enum { IN = 50, WIDE = 80, OUT = 60 };
    const struct ks_starts mixed = {.kernels = KS_LECUN_NORMAL, .blocks = KS_HE_NORMAL},
                           blocks = {.kernels = KS_ORTHOGONAL, .blocks = KS_HE_NORMAL, .gain = 1};
    struct ks_rng rng = ks_stream(3, KS_INIT_CRITIC, 0);
    static const char text[] = "dense 80\nresidual {\ndense 60\nrelu\ndense 80\n}\ndense 60\n"
                               "loss quantile\n";
    struct KS(arch) *arch;
    real *w = draw(&arch, text, IN, KS_INIT_CRITIC, NULL);

    assert_ok(KS(init_network)(arch, &mixed, &rng, w, NULL));
    check_normal(IN, WIDE, w + arch->layer[0].offset, 1.0 / IN);
    check_normal(WIDE, OUT, w + arch->layer[1].offset, 2.0 / WIDE);
    check_normal(OUT, WIDE, w + arch->layer[3].offset, 2.0 / OUT);
    check_normal(WIDE, OUT, w + arch->layer[arch->n_layers - 1].offset, 1.0 / WIDE);
    assert_ok(KS(init_network)(arch, &blocks, &rng, w, NULL));
    assert_close(deviation(IN, WIDE, WIDE, 1, w + arch->layer[0].offset), 0,
                 100 * (double)KS_EPSILON);
    check_normal(WIDE, OUT, w + arch->layer[1].offset, 2.0 / WIDE);
}
