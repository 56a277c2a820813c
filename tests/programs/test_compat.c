/* --compat xqc and --rewards: the published code's Lanczos recurrence against a transcription of
 * it, its other choices, and which targets are used. */
#include "small_critics.h"

#include <omp.h>

#include "lanczos/jacobi.h"
#include "spectra.h"

enum { LONG = 2 * 8192 + 517, MOST_STEPS = 60 };
static double value[LONG]; /* eigenvalues of the diagonal operators */

static float dot_f32(size_t n, const float *x, const float *y)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return (float)sum;
}

static void add_multiple(size_t n, float c, const float *x, float *w)
{
    for (size_t i = 0; i < n; i++)
        w[i] += c * x[i];
}

static void multiply(const struct ks_operator *a, const float *v, float *w)
{
    double *in = hold(calloc(2 * a->n, sizeof *in)), *out = in + a->n;

    for (size_t i = 0; i < a->n; i++)
        in[i] = (double)v[i];
    assert_ok(ks_operator_apply(a, in, out));
    for (size_t i = 0; i < a->n; i++)
        w[i] = (float)out[i];
}

struct coefficients {
    float *alpha, *beta; /* of the Lanczos recurrence */
};

/* Iteration i of the published code, line by line: computes alpha_i, beta_i and the next vector
 * from the vectors [i + 1, n] and beta_{i-1}. */
static void publish_step(const struct ks_operator *a, size_t i, const float *vectors,
                         struct coefficients to, float *next)
{
    const size_t n = a->n;
    const float *v = vectors + i * n;
    float *w = next;

    multiply(a, v, w);
    if (i > 0)
        add_multiple(n, -to.beta[i - 1], v - n, w);
    to.alpha[i] = dot_f32(n, w, v);
    add_multiple(n, -to.alpha[i], v, w);
    for (size_t j = 0; j < i; j++)
        add_multiple(n, -dot_f32(n, w, vectors + j * n), vectors + j * n, w);
    to.beta[i] = sqrtf(dot_f32(n, w, w));
    for (size_t k = 0; k < n; k++)
        next[k] = w[k] / to.beta[i];
}

static struct ks_lanczos *run(const struct ks_operator *a, size_t order)
{
    struct ks_lanczos *l = lanczos_of(a, order, true);

    l->published = true;
    ks_lanczos_start(l, 5, 0);
    while (l->steps < l->order && !l->exhausted)
        assert_ok(ks_lanczos_step(l));
    return l;
}

/* Compares each iteration, started from the recurrence's own vectors, so that earlier rounding does
 * not enter. The comparison stays strict after the end of the Krylov space, where w consists of
 * rounding errors: a different number of passes, or passes against other vectors, changes the first
 * digit. */
static void check_steps(const struct diagonal *d, size_t order)
{
    struct ks_operator a = diagonal_operator((struct diagonal *)d);
    struct ks_lanczos *l = run(&a, order);
    float alpha[MOST_STEPS], beta[MOST_STEPS], *next = hold(calloc(d->n, sizeof *next));
    double size = 0;

    assert_int_equal(l->steps, order); /* the published code has no breakdown test */
    for (size_t i = 0; i < order; i++) {
        double square = 0;

        if (i > 0)
            beta[i - 1] = (float)l->beta[i - 1];
        publish_step(&a, i, l->rounded, (struct coefficients){alpha, beta}, next);
        size = fmax(size, fmax(fabs(l->alpha[i]), l->beta[i]));
        assert_close(l->alpha[i], (double)alpha[i], FLT_EPSILON * size);
        assert_close(l->beta[i], (double)beta[i], FLT_EPSILON * size);
        for (size_t k = 0; k < d->n; k++)
            square += pow((double)l->rounded[(i + 1) * d->n + k] - (double)next[k], 2);
        assert_true(sqrt(square) < 1e-5);
    }
}

static void fill_uniform(size_t n, double low, double high)
{
    for (size_t i = 0; i < n; i++)
        value[i] = low + (high - low) * (double)i / (double)(n - 1);
}

TEST(test_steps)
{
    struct diagonal d = {.n = 1000, .value = value};
    int threads = omp_get_max_threads();

    fill_uniform(d.n, -0.5, 1);
    value[137] = 1000;
    check_steps(&d, 60);
    d.n = 40; /* two different eigenvalues: the Krylov space ends after two iterations */
    for (size_t i = 0; i < d.n; i++)
        value[i] = (double)(i % 2);
    check_steps(&d, 16);
    for (size_t i = 0; i < d.n; i++)
        value[i] = pow(0.5, (double)i);
    check_steps(&d, 20);
    d.n = LONG; /* several slices with a partial one at the end */
    fill_uniform(d.n, -1, 1);
    omp_set_num_threads(2);
    check_steps(&d, 12);
    omp_set_num_threads(threads);
}

/* A residual of exactly zero ends the recurrence; a product that overflows float32 fails. */
TEST(test_ends)
{
    struct diagonal d = {.n = 50, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct ks_lanczos *l;

    memset(value, 0, sizeof value);
    l = run(&a, 9);
    assert_int_equal(l->steps, 1);
    assert_true(l->exhausted && l->alpha[0] == 0 && l->beta[0] == 0);
    fill_uniform(d.n, 1e39, 2e39);
    l = lanczos_of(&a, 9, true);
    l->published = true;
    ks_lanczos_start(l, 5, 0);
    assert_fails(ks_lanczos_step(l), KS_NUMBER, "Lanczos step 1 of 9 (probe 0): overflow");
}

/* The analyzer's coefficients equal those of the transcription, started from the same vector, for
 * the float32 Hessian of the loss with raw targets, divided once more by N. */
TEST(test_program)
{
    enum { ORDER = 16 };
    struct ks_checkpoint *c = make(archs[1].text);
    const struct ks_problem problem = {.checkpoint = c,
                                       .minibatches = MINIBATCHES,
                                       .scale = 1. / MINIBATCHES,
                                       .critic = -1,
                                       .layer = -1};
    struct ks_spectrum *s = spectrum("raw+mse", "--order 16 --seed 4 --compat xqc");
    struct ks_rng rng = ks_rng_start(4, 0);
    const size_t n = dimension(archs[1].text);
    float *vectors = hold(calloc((ORDER + 1) * n, sizeof *vectors)), alpha[ORDER], beta[ORDER];
    double *start = hold(numbers(&rng, n)), norm = sqrt(dot(n, start, start)),
           size = fabs(s->ritz[ORDER - 1]);
    struct ks_operator *a;

    add_raw(c);
    memcpy(c->target, c->target_raw, MINIBATCHES * LOSS_ROWS * sizeof *c->target);
    a = operator_of(ks_hessian_new_f32, &problem);
    for (size_t k = 0; k < n; k++)
        vectors[k] = (float)(start[k] / norm);
    for (size_t i = 0; i < ORDER; i++) {
        publish_step(a, i, vectors, (struct coefficients){alpha, beta}, vectors + (i + 1) * n);
        assert_close(s->alpha[i], (double)alpha[i], 1e-5 * size);
        assert_close(s->beta[i], (double)beta[i], 1e-5 * size);
        assert_true(s->alpha[i] ==
                    /* float32 numbers, which only the float32 recurrence gives */
                    (double)(float)s->alpha[i]);
    }
}

/* Why --compat gives no bounds: after the end of the Krylov space the vectors are not orthogonal,
 * and for some n, depending on rounding, the lower bound would exceed kappa = 2. */
TEST(test_no_bounds)
{
    double worst = 0;

    for (size_t i = 0; i < LONG; i++)
        value[i] = 1 + (double)(i % 2);
    for (size_t n = 60; n < 260; n += 10) {
        struct ks_operator a = DIAGONAL(n, value);
        struct ks_lanczos *l = run(&a, 50);
        double sigma;

        assert_ok(ks_jacobi_smallest(&(struct ks_jacobi){50, l->alpha, l->beta}, &sigma));
        worst = fmax(worst, 2 / sigma);
    }
    assert_true(worst > 2.01);
}

/* How far rounding moves kappa is measured by the same recurrence in float64. The Hessian is
 * indefinite: its Ritz values pass zero in float64 as in float32, and the two kappas agree. The
 * rank of the Gauss-Newton matrix is below the order, so that the smallest Ritz values are rounding
 * errors: there the two differ by decades. */
TEST(test_rounding)
{
    static const char steps[] = "--order 60 --seed 2";

    for (size_t i = 0; i < ARCHS; i++) {
        const char *name = archs[i].name;
        struct ks_spectrum *s = spectrum(name, text_of("--compat xqc %s", steps));
        double kappa_f64 = ks_statistic(s, "kappa_f64");

        assert_close(ks_statistic(s, "kappa") / kappa_f64, 1, 0.01);
        assert_close(kappa_f64 / statistic_of(name, text_of("--precision f64 %s", steps), "kappa"),
                     1, 1e-6);
        if (!strstr(name, "mse"))
            continue;
        s = spectrum(name, text_of("--compat xqc --operator ggn %s", steps));
        assert_true(ks_statistic(s, "kappa_f64") > 100 * ks_statistic(s, "kappa"));
    }
    assert_null(ks_attribute_find(&spectrum("ln+mse", "--compat xqc --no-certificates")->statistics,
                                  "kappa_f64"));
    assert_null(ks_attribute_find(&spectrum("ln+mse", "--order 9")->statistics, "kappa_f64"));
}

/* Ritz values have equal weights; statistics that need weights or an orthonormal basis are absent.
 */
TEST(test_unweighted)
{
    static const char *const without[] = {"trace",
                                          "trace_square",
                                          "stable_rank",
                                          "stable_rank_m30",
                                          "kurtosis_spectral",
                                          "lambda_max_upper",
                                          "kappa_lower_bound",
                                          "kappa_lower_bound_m30",
                                          "kappa_effective_bound"};
    struct ks_spectrum *s = spectrum("bn+mse", "--order 31");
    struct ks_spectrum *e = spectrum("bn+mse", "--exact --compat xqc");
    struct ks_spectrum *t = spectrum("bn+mse", "--order 31 --compat xqc");

    for (size_t k = 0; k < 31; k++) {
        assert_close(t->ritz[k], s->ritz[k] / MINIBATCHES, 1e-6 * ks_statistic(s, "lambda_max"));
        assert_close(t->weight[k], 1. / 31, 1e-16);
    }
    assert_close(ks_statistic(t, "kurtosis"), ks_statistic(s, "kurtosis"), 1e-4);
    assert_close(ks_attribute_find(&t->attributes, "scale")->number, 1. / 3, 1e-16);
    assert_string_equal(ks_attribute_find(&t->attributes, "basis_precision")->string, "f32");
    assert_null(strstr(complained, "do not fit"));
    for (size_t k = 0; k < sizeof without / sizeof without[0]; k++) {
        assert_non_null(ks_attribute_find(&s->statistics, without[k]));
        assert_null(ks_attribute_find(&t->statistics, without[k]));
    }
    assert_non_null(ks_attribute_find(&e->statistics, "stable_rank")); /* from all eigenvalues */
    assert_non_null(ks_attribute_find(&e->statistics, "kappa_lower_bound"));
}

/* Products are divided once more by N; the gradient of the same run is not. */
TEST(test_vectors)
{
    size_t n = dimension(archs[0].text);
    struct ks_rng rng = ks_rng_start(23, 0);
    double *v = hold(numbers(&rng, n)), *x[4];

    assert_ok(ks_vectors_write(file("v"), &(struct ks_vectors){1, n, v, NULL, NULL}));
    for (int i = 0; i < 2; i++) {
        assert_runs("--apply v.h5 --output o.h5 --gradient g.h5 --scale 2 %s bn+ce.h5",
                    i == 0 ? "" : "--compat xqc");
        assert_close(read_root_number(file("o"), "scale"), i == 0 ? 2 : 2. / MINIBATCHES, 1e-15);
        assert_true(read_root_number(file("g"), "scale") == 2);
        x[2 * i] = read_vectors("o.h5", n, 1), x[2 * i + 1] = read_vectors("g.h5", n, 1);
    }
    for (size_t k = 0; k < n; k++)
        assert_close(x[2][k], x[0][k] / MINIBATCHES, 1e-14 * (1 + fabs(x[0][k])));
    assert_memory_equal(x[3], x[1], n * sizeof *v);
}

/* --rewards raw gives the same bytes as a checkpoint whose targets are the raw ones, and is
 * recorded. */
static void check_same(const char *options)
{
    struct ks_spectrum *raw = spectrum("raw+mse", options), *only;
    const char *plain = options + strlen("--rewards raw");

    only = spectrum("only+mse", plain);
    assert_int_equal(raw->order, only->order);
    assert_memory_equal(raw->ritz, only->ritz, raw->order * sizeof *raw->ritz);
    assert_string_equal(ks_attribute_find(&raw->attributes, "rewards")->string, "raw");
    assert_string_equal(ks_attribute_find(&only->attributes, "rewards")->string, "normalized");
    only = spectrum("raw+mse", plain);
    assert_memory_not_equal(raw->ritz, only->ritz, raw->order * sizeof *raw->ritz);
}

TEST(test_rewards)
{
    struct ks_checkpoint *c = make(archs[1].text);
    const size_t n = dimension(archs[1].text);
    double *found[2], loss[2];

    add_raw(c);
    memcpy(c->target, c->target_raw, MINIBATCHES * LOSS_ROWS * sizeof *c->target);
    save("only+mse", c);
    check_same("--rewards raw --order 20");
    check_same("--rewards raw --exact --precision f64");
    check_same("--rewards raw --batches 2 --operator residual --order 20");
    for (int i = 0; i < 2; i++) {
        assert_runs("--gradient g.h5 %s", i == 0 ? "only+mse.h5" : "--rewards raw raw+mse.h5");
        found[i] = read_vectors("g.h5", n, 1);
        loss[i] = read_root_number(file("g"), "loss");
    }
    assert_memory_equal(found[0], found[1], n * sizeof *found[0]);
    assert_true(loss[0] == loss[1]);
    check_word(scratch("g.h5"), "rewards", "raw");
    assert_ok(ks_vectors_write(file("v"), &(struct ks_vectors){1, n, found[0], NULL, NULL}));
    for (int i = 0; i < 2; i++) {
        assert_runs("--apply v.h5 --output o.h5 %s",
                    i == 0 ? "only+mse.h5" : "--rewards raw raw+mse.h5");
        check_word(scratch("o.h5"), "rewards", i == 0 ? "normalized" : "raw");
        found[i] = read_vectors("o.h5", n, 1);
    }
    assert_memory_equal(found[0], found[1], n * sizeof *found[0]);
}

/* --compat uses raw targets if they exist; otherwise it says so, unless --quiet is given. */
TEST(test_rewards_of_compat)
{
    static const char words[] = "no targets from raw rewards (/batch/target_raw)";
    static const struct {
        const char *arguments, *rewards;
        bool said;
    } cases[] = {
        {"--compat xqc raw+mse.h5", "raw", false},
        {"--compat xqc --rewards raw raw+mse.h5", "raw", false},
        {"--compat xqc bn+mse.h5", "normalized", true},
        {"--compat xqc -q bn+mse.h5", "normalized", false},
        {"raw+mse.h5", "normalized", false},
        {"--rewards normalized bn+mse.h5", "normalized", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at;

        assert_runs("--json --order 9 %s", cases[i].arguments);
        assert_string_equal(json_string_value(json_object_get(read_json("out.txt"), "rewards")),
                            cases[i].rewards);
        at = strstr(complained, words);
        assert_int_equal(at != NULL, cases[i].said);
        assert_true(!at || !strstr(at + 1, words));
    }
    assert_runs("--csv --order 9 --compat xqc raw+mse.h5");
    assert_shows(",basis_precision,rewards,compat,lambda_max,");
    assert_shows(",f32,raw,xqc,");
}

/* The six checkpoints, and one with raw targets. */
static int write_all(void **state)
{
    struct ks_checkpoint *c;

    if (write_checkpoints(state) != 0)
        return -1;
    c = make(archs[1].text);
    add_raw(c);
    save("raw+mse", c);
    return 0;
}

CMFixtureFunction tests_setup = write_all, tests_teardown = scratch_remove;
