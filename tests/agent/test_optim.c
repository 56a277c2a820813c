/* The optimizer: Adam's algorithm followed by hand, decay and its masks, projection, averages.
 * Compiled in both precisions. */
#include "test.h"

#include "agent/optim.h"
#include "core/rng.h"
#include "layers/layer.h"

enum { IN = 3, STEPS = 5 };

/* dense (projected with its bias), norm, dense head (projected without). */
static const char text[] = "dense 4 project=unit\nlayernorm\nrelu\ndense 2 project=unit-kernel\n"
                           "loss ce min=0 max=1\n";
static const char free_text[] = "dense 4\nlayernorm\nrelu\ndense 2\nloss ce min=0 max=1\n";

struct trainee {
    struct KS(arch) *arch;
    struct KS(trained) t;
    real *block, *g;
    struct ks_adam adam;
};

RELEASES(free_arch, KS(arch_free))

static void setup(struct trainee *s, const char *description)
{
    struct ks_rng rng = ks_rng_start(6, 0);
    size_t n;

    memset(s, 0, sizeof *s);
    assert_ok(KS(arch_parse)(description, "test", IN, &s->arch));
    hold_object(s->arch, free_arch);
    n = s->arch->parameters;
    s->block = hold(calloc(5 * n + KS(widest)(s->arch), sizeof *s->block));
    s->g = s->block + 3 * n;
    s->t = (struct KS(trained)){.w = s->block,
                                .m = s->block + n,
                                .v = s->block + 2 * n,
                                .g = s->g,
                                .columns = s->block + 5 * n};
    for (size_t i = 0; i < n; i++) {
        s->t.w[i] = (real)ks_rng_normal(&rng);
        s->g[i] = (real)ks_rng_normal(&rng);
    }
    s->adam = (struct ks_adam){.rate = {0.01, 0.001, 10}, .beta1 = KS_ADAM_BETA1};
}

TEST(test_schedule)
{
    const struct ks_rate schedule = {3e-4, 3e-5, 1000};

    assert_close(KS(rate_at)(&schedule, 0), 3e-4, 0);
    assert_close(KS(rate_at)(&schedule, 500), 1.65e-4, 1e-18);
    assert_close(KS(rate_at)(&schedule, 1000), 3e-5, 1e-18);
    assert_close(KS(rate_at)(&schedule, 5000), 3e-5, 1e-18);
}

/* Kingma & Ba, algorithm 1, line by line. */
static double algorithm_1(double theta, double g, size_t steps)
{
    double m = 0, v = 0;

    for (size_t t = 1; t <= steps; t++) {
        double alpha = 0.01 - 0.009 * (double)(t - 1) / 10, m_hat, v_hat;

        m = 0.9 * m + (1 - 0.9) * g;
        v = 0.999 * v + (1 - 0.999) * g * g;
        m_hat = m / (1 - pow(0.9, (double)t));
        v_hat = v / (1 - pow(0.999, (double)t));
        theta = theta - alpha * m_hat / (sqrt(v_hat) + 1e-8);
        g = g * 1.5 - 0.1; /* another gradient each time */
    }
    return theta;
}

static void next_gradient(struct trainee *s)
{
    for (size_t i = 0; i < s->arch->parameters; i++)
        s->g[i] = s->g[i] * (real)1.5 - (real)0.1;
}

TEST(test_adam)
{
    struct trainee s;
    double expected[64];

    setup(&s, free_text);
    for (size_t i = 0; i < s.arch->parameters; i++)
        expected[i] = algorithm_1((double)s.t.w[i], (double)s.g[i], STEPS);
    for (; s.adam.step < STEPS; s.adam.step++) {
        assert_true(KS(adam_step)(s.arch, &s.adam, &s.t));
        next_gradient(&s);
    }
    for (size_t i = 0; i < s.arch->parameters; i++)
        assert_close((double)s.t.w[i], expected[i], 50 * (double)KS_EPSILON);
}

/* From zero moments, the first step is rate * sign(g), for any size of g. */
TEST(test_first_step)
{
    struct ks_adam adam = {.rate = {0.01, 0.01, 1}, .beta1 = KS_ADAM_BETA1};
    double m = 0, v = 0;

    assert_close(KS(adam_scalar)(&adam, 1e-3, &m, &v, 2), 1.99, 1e-6);
    m = v = 0;
    assert_close(KS(adam_scalar)(&adam, -1e5, &m, &v, 2), 2.01, 1e-6);
}

TEST(test_scalar)
{
    struct ks_adam adam = {.rate = {0.01, 0.001, 10}, .beta1 = KS_ADAM_BETA1};
    double m = 0, v = 0, w = 0.4, g = -0.3;

    for (; adam.step < STEPS; adam.step++, g = g * 1.5 - 0.1)
        w = KS(adam_scalar)(&adam, g, &m, &v, w);
    assert_close(w, algorithm_1(0.4, -0.3, STEPS), 1e-15);
}

/* Another beta1, and decoupled decay (Loshchilov & Hutter, ICLR 2019): line by line. */
TEST(test_scalar_options)
{
    struct ks_adam adam = {.rate = {0.01, 0.01, 1}, .beta1 = 0.5, .weight_decay = 0.1};
    double m = 0, v = 0, w = 0.4, first = 0, second = 0, theta = 0.4, g = -0.3;

    for (; adam.step < STEPS; adam.step++, g = g * 1.5 - 0.1) {
        const double t = (double)adam.step + 1;

        first = 0.5 * first + 0.5 * g;
        second = 0.999 * second + (1 - 0.999) * g * g;
        theta -= 0.01 * (first / (1 - pow(0.5, t)) / (sqrt(second / (1 - pow(0.999, t))) + 1e-8) +
                         0.1 * theta);
        w = KS(adam_scalar)(&adam, g, &m, &v, w);
        assert_close(w, theta, 1e-15);
    }
}

/* The values of f(x) = sum x^2 that Optax's documentation prints for optax.adam with rate 0.003
 * from (1, 2, 3), in three digits (DeepMind, Optax 0.2 API, "Optimizers", adam). */
TEST(test_published_values)
{
    static const char *const published[] = {"1.40E+01", "1.39E+01", "1.39E+01", "1.39E+01",
                                            "1.38E+01"};
    struct ks_adam adam = {.rate = {0.003, 0.003, 1}, .beta1 = KS_ADAM_BETA1};
    double x[] = {1, 2, 3}, m[3] = {0}, v[3] = {0};

    for (; adam.step < 5; adam.step++) {
        double f = 0;

        for (size_t i = 0; i < 3; i++) {
            x[i] = KS(adam_scalar)(&adam, 2 * x[i], &m[i], &v[i], x[i]);
            f += x[i] * x[i];
        }
        assert_string_equal(text_of("%.2E", f), published[adam.step]);
    }
}

/* The network of the trajectories below: y = sigmoid(W2 sigmoid(W1 x + b1) + b2) of two inputs, its
 * parameters W1 [3, 2], b1 [3], W2 [3], b2; g = the gradient of the sum of y over the rows. */
enum { TINY = 13 };

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void tiny_gradient(const double *w, double *g)
{
    static const double x[3][2] = {{0.1, 0.2}, {0.3, 0.4}, {0.5, 0.6}};

    memset(g, 0, TINY * sizeof *g);
    for (size_t r = 0; r < 3; r++) {
        double h[3], sum = w[12], y, y_bar;

        for (size_t j = 0; j < 3; j++) {
            h[j] = sigmoid(w[2 * j] * x[r][0] + w[2 * j + 1] * x[r][1] + w[6 + j]);
            sum += w[9 + j] * h[j];
        }
        y = sigmoid(sum);
        y_bar = y * (1 - y);
        g[12] += y_bar;
        for (size_t j = 0; j < 3; j++) {
            double h_bar = y_bar * w[9 + j] * h[j] * (1 - h[j]);

            g[9 + j] += y_bar * h[j];
            g[6 + j] += h_bar;
            g[2 * j] += h_bar * x[r][0];
            g[2 * j + 1] += h_bar * x[r][1];
        }
    }
}

/* What PyTorch's tests expect of Adam with rate 1 after some number of steps from given parameters,
 * with their tolerances; `l2` times the parameters is added to the gradient (PyTorch, test/cpp/api,
 * optim.cpp and optim_baseline.h). */
TEST(test_published_trajectories)
{
    static const struct {
        double l2;
        int64_t steps;
        double w[TINY];
    } published[] = {
        {0,
         1,
         {0.7889791973, 0.5023527441, 0.8586918159, 0.6579591154, 0.7476108838, 1.6975378974,
          0.8914325948, 0.7020467393, 1.6891939505, -1.0508020464, -1.3941340316, -1.2843369731,
          -1.0711376815}},
        {0,
         1001,
         {8.2327286445, 7.9710299113, 6.6438456570, 6.4712280289, 6.1702733107, 7.1509265200,
          8.4179034295, 6.5974869789, 7.2320179771, -6.7299143946, -7.0977371069, -6.7535913164,
          -6.4359224178}},
        {0.01,
         101,
         {0.1783589729, 0.2542141736, 0.1968201108, 0.2352275872, 0.1780601344, 0.2294364029,
          0.6227661366, 0.6058596073, 0.6077177005, -1.4259754715, -1.4333347967, -1.4085456423,
          -2.0710783910}},
        {0.01,
         201,
         {0.1796569529, 0.2425434800, 0.1796466384, 0.2425083616, 0.1796289599, 0.2424992072,
          0.6287145246, 0.6286955878, 0.6286563326, -1.4123887231, -1.4124007118, -1.4122701548,
          -2.0633570398}},
    };
    static const double start[TINY] = {-0.2109, -0.4976, -0.1413, -0.3420, -0.2524, 0.6976, -0.1085,
                                       -0.2979, 0.6892,  -0.0508, -0.3941, -0.2843, -0.0711};

    for (size_t k = 0; k < sizeof published / sizeof *published; k++) {
        struct ks_adam adam = {.rate = {1, 1, 1}, .beta1 = KS_ADAM_BETA1};
        double w[TINY], g[TINY], m[TINY] = {0}, v[TINY] = {0};

        memcpy(w, start, sizeof w);
        for (; adam.step < published[k].steps; adam.step++) {
            tiny_gradient(w, g);
            for (size_t i = 0; i < TINY; i++)
                w[i] = KS(adam_scalar)(&adam, g[i] + published[k].l2 * w[i], &m[i], &v[i], w[i]);
        }
        for (size_t i = 0; i < TINY; i++)
            assert_close(w[i], published[k].w[i], 5e-4 + 1e-3 * fabs(published[k].w[i]));
    }
}

/* The moments after one step are (1 - beta) g and (1 - beta) g^2 to the last digits: 1 - beta is
 * not the difference of rounded numbers, which is off by 1.3e-5 in float32. */
TEST(test_first_moments)
{
    const double few = 2 * (double)KS_EPSILON;
    struct trainee s;

    setup(&s, free_text);
    KS(adam_step)(s.arch, &s.adam, &s.t);
    for (size_t i = 0; i < s.arch->parameters; i++) {
        double g = (double)s.g[i];

        assert_close((double)s.t.m[i], (1 - 0.9) * g, few * fabs(0.1 * g));
        assert_close((double)s.t.v[i], (1 - 0.999) * g * g, few * 0.001 * g * g);
    }
}

/* Every kind with parameters, and a head. */
static const char all_kinds[] = "batchnorm\nrmsnorm\nlerp {\ndense 3\nscaler\n}\nlayernorm\n"
                                "dense 2\nloss ce min=0 max=1\n";

/* p <- p - rate (adam + decay p): the difference to a step without decay is rate decay p for the
 * parameters that decay, and 0 for all others. `norms`: batch normalization only. */
static void check_decay(enum ks_decay decayed, bool norms, bool heads, bool others)
{
    struct trainee start, with, without;
    size_t decaying = 0;

    setup(&start, all_kinds);
    setup(&with, all_kinds);
    setup(&without, all_kinds);
    with.adam.weight_decay = 0.5;
    with.adam.decayed = decayed;
    KS(adam_step)(with.arch, &with.adam, &with.t);
    KS(adam_step)(without.arch, &without.adam, &without.t);
    for (size_t l = 0; l < start.arch->n_layers; l++) {
        const struct KS(layer) *layer = &start.arch->layer[l];
        bool head = l + 1 == start.arch->n_layers, norm = layer->kind == &KS(batchnorm);
        bool decays = norm ? norms : head ? heads : others;

        for (size_t i = layer->offset; i < layer->offset + layer->parameters; i++)
            assert_close((double)(without.t.w[i] - with.t.w[i]),
                         decays ? 0.01 * 0.5 * (double)start.t.w[i] : 0, 8 * (double)KS_EPSILON);
        decaying += decays && layer->parameters > 0;
    }
    assert_int_equal(decaying, (size_t)norms + (size_t)heads + (others ? 5 : 0));
}

TEST(test_decay)
{
    check_decay(KS_DECAY_NONE, false, false, false);
    check_decay(KS_DECAY_NORMS, true, false, false);
    check_decay(KS_DECAY_HEADS, false, true, false);
    check_decay(KS_DECAY_NORMS_AND_HEADS, true, true, false);
    check_decay(KS_DECAY_ALL, true, true, true);
}

static double column_norm(size_t rows, size_t columns, const real *w, size_t j)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        sum += (double)w[i * columns + j] * (double)w[i * columns + j];
    return sqrt(sum);
}

/* Norm 1: [kernel; bias] of the hidden layer, the kernel of the head. */
static void assert_projected(const struct trainee *s)
{
    const struct KS(layer) *head = &s->arch->layer[3];

    for (size_t j = 0; j < 4; j++)
        assert_close(column_norm(IN + 1, 4, s->t.w, j), 1, 4 * (double)KS_EPSILON);
    for (size_t j = 0; j < 2; j++)
        assert_close(column_norm(4, 2, s->t.w + head->offset, j), 1, 4 * (double)KS_EPSILON);
}

TEST(test_projection)
{
    struct trainee s, free_one;
    size_t norms, bias, n;

    setup(&s, text);
    setup(&free_one, text);
    norms = s.arch->layer[1].offset;
    bias = s.arch->layer[3].offset + 8;
    n = s.arch->parameters;
    KS(project)(s.arch, s.t.w, s.t.columns);
    assert_projected(&s);
    for (size_t i = 0; i < n; i++) { /* norms and the head's bias are as they were */
        if ((i >= norms && i < norms + 8) || i >= bias)
            assert_true(s.t.w[i] == free_one.t.w[i]);
        free_one.t.w[i] = s.t.w[i];
    }
    KS(project)(s.arch, s.t.w, s.t.columns); /* once more changes nothing */
    for (size_t i = 0; i < n; i++)
        assert_close((double)s.t.w[i], (double)free_one.t.w[i], 2 * (double)KS_EPSILON);
}

/* A column of zeros has no direction: it stays zero, and nothing becomes infinite. */
TEST(test_zero_column)
{
    struct trainee s;

    setup(&s, text);
    for (size_t i = 0; i <= IN; i++)
        s.t.w[i * 4 + 1] = 0;
    KS(project)(s.arch, s.t.w, s.t.columns);
    for (size_t i = 0; i <= IN; i++)
        assert_true(s.t.w[i * 4 + 1] == 0);
}

/* The fused step is a step without projection, then the projection, then the average. */
TEST(test_fused_step)
{
    struct trainee fused, plain;
    real *target;
    size_t n;

    setup(&fused, text);
    setup(&plain, free_text);
    n = plain.arch->parameters;
    target = hold(calloc(n, sizeof *target));
    for (size_t i = 0; i < n; i++)
        target[i] = (real)i / 10;
    fused.t.target = target;
    fused.adam.tau = 0.25;
    KS(adam_step)(fused.arch, &fused.adam, &fused.t);
    KS(adam_step)(plain.arch, &plain.adam, &plain.t);
    KS(project)(fused.arch, plain.t.w, plain.t.columns);
    assert_projected(&fused);
    for (size_t i = 0; i < n; i++) {
        assert_close((double)fused.t.w[i], (double)plain.t.w[i], 4 * (double)KS_EPSILON);
        assert_close((double)target[i], 0.75 * ((double)i / 10) + 0.25 * (double)plain.t.w[i],
                     8 * (double)KS_EPSILON);
    }
}

TEST(test_not_finite)
{
    static const double bad[] = {NAN, INFINITY};

    for (size_t k = 0; k < 2; k++) {
        struct trainee s;
        size_t last;

        setup(&s, text);
        last = s.arch->parameters - 1;
        assert_true(KS(adam_step)(s.arch, &s.adam, &s.t));
        s.g[k == 0 ? last : 5] = (real)bad[k];
        assert_false(KS(adam_step)(s.arch, &s.adam, &s.t));
    }
}
