/* Operators other than the Hessian, each against its definition, and their diagonal blocks. */
#include "critics.h"
#include "spectra.h"

enum { IN = 4, ENSEMBLE = 2, MINIBATCHES = 2, ROWS = 9, LOSS_ROWS = 6, ATOMS = 3 };
static const char PROJECTED[] =
    "batchnorm\ndense 5 project=unit\nbatchnorm\nrelu\ndense 4 bias=no project=unit-kernel\n"
    "layernorm\nrelu\ndense 3 project=unit-kernel\nloss ce min=-1 max=1\n";
static const char FREE[] = "dense 5\nrelu\ndense 3\nloss ce min=-1 max=1\n";

static size_t dimension(const struct ks_checkpoint *c)
{
    return ks_networks_parameters(&c->critic);
}

static struct ks_checkpoint *make(const char *text)
{
    struct critic_sizes sizes = {ENSEMBLE, IN, MINIBATCHES, ROWS, LOSS_ROWS};

    return keep_checkpoint(settle(random_critic(text, sizes, 41), 41));
}

static struct ks_problem pose(const struct ks_checkpoint *c)
{
    return (struct ks_problem){.checkpoint = c,
                               .minibatches = MINIBATCHES,
                               .scale = 1.5,
                               .weight_decay = 0.01,
                               .critic = -1,
                               .layer = -1};
}

static ks_status preconditioned_new(const struct ks_problem *problem, struct ks_operator **a)
{
    return ks_preconditioned_new(problem, false, a);
}

static ks_status manifold_new(const struct ks_problem *problem, struct ks_operator **a)
{
    return ks_manifold_new(problem, false, a);
}

static double *product(const struct ks_operator *a, const double *v)
{
    double *out = hold(calloc(a->n, sizeof *out));

    assert_ok(ks_operator_apply(a, v, out));
    return out;
}

/* The rows of the dense matrix; frees the operator. */
static double *dense(struct ks_operator *a)
{
    double *matrix = dense_of(a);

    ks_operator_free(a);
    return matrix;
}

static double largest(size_t n, const double *a)
{
    double size = 0;

    for (size_t i = 0; i < n; i++)
        size = fmax(size, fabs(a[i]));
    return size;
}

TEST(test_ggn_and_residual)
{
    static const char *const texts[] = {PROJECTED, FREE};

    for (size_t k = 0; k < 2; k++) {
        struct ks_checkpoint *c = make(texts[k]);
        struct ks_problem q = pose(c);
        struct ks_rng rng = ks_rng_start(42, k);
        size_t n = dimension(c);
        struct ks_operator *a[3];
        double *v = hold(numbers(&rng, n)), *out[3];

        a[0] = operator_of(ks_hessian_new_f64, &q);
        a[1] = operator_of(ks_ggn_new_f64, &q);
        a[2] = operator_of(ks_residual_new_f64, &q);
        for (size_t i = 0; i < 3; i++)
            out[i] = product(a[i], v);
        for (size_t i = 0; i < n; i++)
            assert_close(out[1][i] + out[2][i], out[0][i], 1e-14 * largest(n, out[0]));
        assert_true(largest(n, out[1]) > 0 && largest(n, out[2]) > 0);
    }
}

TEST(test_ggn_is_semidefinite)
{
    struct ks_checkpoint *c = make(PROJECTED);
    struct ks_problem q = pose(c);
    struct ks_spectrum *s = spectrum_new();
    struct ks_operator *a;

    q.weight_decay = 0;
    a = operator_of(ks_ggn_new_f64, &q);
    assert_ok(ks_exact(a, NULL, NULL, s));
    assert_true(s->ritz[0] >= -1e-15 * s->ritz[s->order - 1]);
    assert_true(s->ritz[s->order - 1] > 0);
}

TEST(test_preconditioned)
{
    struct ks_checkpoint *c = make(FREE);
    struct ks_problem q = pose(c);
    size_t n = dimension(c);
    struct ks_operator *a;
    double *h, *p, correction = 1 - pow(0.99, 20), size;

    c->adam = (struct ks_adam_constants){0.5, 0.99, 1e-3}; /* values that a checkpoint may hold */
    assert_ok(prepared(ks_hessian_new_f64, &q, &a));
    h = dense(a);
    assert_ok(prepared(preconditioned_new, &q, &a));
    p = dense(a);
    size = largest(n * n, p);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double di = sqrt(c->adam_v[i] / correction) + 1e-3;
            double dj = sqrt(c->adam_v[j] / correction) + 1e-3;
            bool in = c->adam_v[i] > 0 && c->adam_v[j] > 0;

            assert_close(p[i * n + j], in ? h[i * n + j] / sqrt(di * dj) : 0, 1e-14 * size);
        }
    c->adam_step = 0;
    assert_fails(preconditioned_new(&q, &a), KS_FORMAT, "/optimizer/v");
}

/* For every projected column: x <- x - w (w' x), with w from `w`. */
static void project(const struct KS(arch) *arch, const double *w, double *x)
{
    for (size_t e = 0; e < ENSEMBLE; e++)
        for (size_t k = 0; k < arch->n_layers; k++) {
            const struct KS(layer) *l = &arch->layer[k];
            size_t at = e * arch->parameters + l->offset;

            for (size_t j = 0; j < l->out && l->sphere_rows > 0; j++) {
                double along = cblas_ddot((int)l->sphere_rows, w + at + j, (int)l->out, x + at + j,
                                          (int)l->out);

                for (size_t i = 0; i < l->sphere_rows; i++)
                    x[at + i * l->out + j] -= along * w[at + i * l->out + j];
            }
        }
}

/* to = the geodesic from w with tangent v at time t: great circles for projected columns, straight
 * lines for other parameters. */
static void geodesic(const struct KS(arch) *arch, const double *w, const double *v, double t,
                     double *to)
{
    for (size_t i = 0; i < ENSEMBLE * arch->parameters; i++)
        to[i] = w[i] + t * v[i];
    for (size_t e = 0; e < ENSEMBLE; e++)
        for (size_t k = 0; k < arch->n_layers; k++) {
            const struct KS(layer) *l = &arch->layer[k];
            size_t at = e * arch->parameters + l->offset;

            for (size_t j = 0; j < l->out && l->sphere_rows > 0; j++) {
                double speed = cblas_dnrm2((int)l->sphere_rows, v + at + j, (int)l->out);

                for (size_t i = 0; i < l->sphere_rows; i++) {
                    size_t p = at + i * l->out + j;

                    to[p] = cos(t * speed) * w[p] + sin(t * speed) / speed * v[p];
                }
            }
        }
}

/* The covariant derivative of the Riemannian gradient along a geodesic is the Riemannian Hessian.
 */
TEST(test_manifold)
{
    const double h = 1e-5;
    struct ks_checkpoint *c = make(PROJECTED);
    struct ks_problem q = pose(c);
    struct ks_rng rng = ks_rng_start(43, 0);
    const struct KS(arch) *arch = c->critic.arch;
    size_t n = dimension(c);
    double *w = c->critic.w, *v = hold(numbers(&rng, n)), *found, *g[2],
           *moved = hold(numbers(&rng, n)), loss;
    struct ks_operator *a;

    project(arch, w, v);
    a = operator_of(manifold_new, &q);
    found = product(a, v);
    c->critic.w = moved;
    for (int side = 0; side < 2; side++) {
        geodesic(arch, w, v, side == 0 ? h : -h, moved);
        g[side] = hold(calloc(n, sizeof(double)));
        assert_ok(ks_gradient(&q, &loss, g[side]));
        project(arch, moved, g[side]);
    }
    c->critic.w = w;
    for (size_t i = 0; i < n; i++)
        g[0][i] = (g[0][i] - g[1][i]) / (2 * h);
    project(arch, w, g[0]);
    for (size_t i = 0; i < n; i++)
        assert_close(found[i], g[0][i], 1e-8 * largest(n, found));

    w[arch->layer[1].offset] *= 1.001;
    assert_fails(manifold_new(&q, &a), KS_FORMAT, "layer 1, critic 0");
    q.critic = 1; /* all columns of this critic are on their spheres */
    a = operator_of(manifold_new, &q);
    /* any vector: the product is zero outside this critic's parameters */
    found = product(a, c->adam_v);
    assert_close(largest(n / 2, found), 0, 0);
    assert_true(largest(n / 2, found + n / 2) > 0);
    q.critic = -1;
    c = make(FREE);
    q.checkpoint = c;
    assert_fails(manifold_new(&q, &a), KS_FORMAT, "the description has none");
}

/* The bytes that constructing an operator takes, by the count of memory.h. */
static size_t taken(ks_status (*new)(const struct ks_problem *, struct ks_operator **),
                    const struct ks_problem *problem)
{
    size_t before = ks_alloc_total();
    struct ks_operator *a;

    assert_ok(new (problem, &a));
    ks_operator_free(a);
    return ks_alloc_total() - before;
}

/* The manifold operator keeps little more than one vector beyond the Hessian: the gradient and its
 * work space are freed. */
TEST(test_manifold_memory)
{
    enum { LITTLE = 2048 };
    struct ks_checkpoint *c = make(PROJECTED);
    struct ks_problem q = pose(c);

    assert_true(taken(manifold_new, &q) <=
                taken(ks_hessian_new_f64, &q) + dimension(c) * sizeof(double) + LITTLE);
}

static void free_block(struct ks_selection *s, struct ks_operator *a)
{
    ks_operator_free(a);
    ks_selection_free(s);
}

/* `a` equals the selected part of the dense matrix. */
static void check_part(struct ks_operator *a, const struct ks_selection *s, const double *h)
{
    double *block = dense_of(a);
    size_t n = s->of;

    assert_int_equal(a->n, s->n);
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = 0; j < s->n; j++)
            assert_close(block[i * s->n + j],
                         h[(s->index ? s->index[i] : i) * n + (s->index ? s->index[j] : j)],
                         1e-14 * largest(n * n, h));
}

/* The block of a critic and a layer equals the corresponding part of the dense matrix. */
static void check_block(const struct ks_checkpoint *c, const double *h, int critic, int layer)
{
    struct ks_problem q = pose(c);
    const struct KS(arch) *arch = c->critic.arch;
    size_t n = dimension(c), k = 0;
    struct ks_selection *s;
    struct ks_operator *a;

    q.critic = critic, q.layer = layer;
    assert_ok(ks_selection_new(&q, false, &s));
    for (size_t i = 0; i < n; i++) {
        const struct KS(layer) *l = layer < 0 ? NULL : &arch->layer[layer];
        size_t at = i % arch->parameters;

        if ((critic < 0 || (int)(i / arch->parameters) == critic) &&
            (!l || (at >= l->offset && at < l->offset + l->parameters)))
            assert_true(!s->index || s->index[k++] == i);
    }
    assert_int_equal(s->n, s->index ? k : n);
    assert_ok(prepared(ks_hessian_new_f64, &q, &a));
    assert_ok(ks_block_new(a, s, &a));
    check_part(a, s, h);
    free_block(s, a);
}

/* The parameters of a critic of FREE: kernel [4, 5] at 0, bias at 20, kernel [5, 3] at 25, bias at
 * 40, 43 in all. */
TEST(test_arrays)
{
    static const struct {
        const char *arrays;
        int critic;
        size_t n, index[8]; /* the first ones and the last one */
    } blocks[] = {
        {"00_dense/kernel", 1, 20, {43, 44, 62}},
        {"0/bias", 0, 5, {20, 21, 24}},
        {"0/bias,02_dense/bias", 0, 8, {20, 21, 42}},
        {"02_dense/bias,00_dense/bias", 0, 8, {20, 21, 42}}, /* in any order */
        {"2/kernel", -1, 30, {25, 26, 43 + 39}},
    };
    struct ks_checkpoint *c = make(FREE);
    struct ks_problem q = pose(c);
    struct ks_selection *s;
    struct ks_operator *a;
    double *h;

    assert_ok(prepared(ks_hessian_new_f64, &q, &a));
    h = dense(a);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        q.arrays = blocks[i].arrays, q.critic = blocks[i].critic;
        assert_ok(ks_selection_new(&q, false, &s));
        assert_int_equal(s->n, blocks[i].n);
        assert_int_equal(s->index[0], blocks[i].index[0]);
        assert_int_equal(s->index[1], blocks[i].index[1]);
        assert_int_equal(s->index[s->n - 1], blocks[i].index[2]);
        assert_ok(prepared(ks_hessian_new_f64, &q, &a));
        assert_ok(ks_block_new(a, s, &a));
        check_part(a, s, h);
        free_block(s, a);
    }
}

TEST(test_unknown_arrays)
{
    static const struct {
        const char *arrays, *words;
    } wrong[] = {
        {"00_dense/scale", "expected some of 00_dense/kernel, 00_dense/bias, 02_dense/kernel, "
                           "02_dense/bias; found '00_dense/scale'"},
        {"0/bias,", "found ''"},
        {"00_relu/bias", "found '00_relu/bias'"},
        {"1/bias", "found '1/bias'"},
        {"/bias", "found '/bias'"},
        {"0_/bias", "found '0_/bias'"},
        {"0/bia", "found '0/bia'"},
        {"0/biass", "found '0/biass'"},
        {"99999999999999999999/bias", "found '99999999999999999999/bias'"},
    };
    struct ks_problem q = pose(make(FREE));
    struct ks_selection *s;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        q.arrays = wrong[i].arrays;
        assert_fails(ks_selection_new(&q, false, &s), KS_USAGE, wrong[i].words);
    }
    q = pose(make("dense 5 trainable=no\nrelu\ndense 3\nloss ce min=-1 max=1\n"));
    q.arrays = "0/bias";
    assert_fails(ks_selection_new(&q, false, &s), KS_USAGE, "0/bias of a layer with trainable=no");
}

TEST(test_blocks)
{
    struct ks_checkpoint *c = make(PROJECTED);
    struct ks_problem q = pose(c);
    struct ks_selection *s;
    struct ks_operator *a;
    double *h;

    assert_ok(prepared(ks_hessian_new_f64, &q, &a));
    h = dense(a);
    for (int critic = -1; critic < ENSEMBLE; critic++)
        for (int layer = -1; layer < (int)c->critic.arch->n_layers; layer++)
            if (layer < 0 || c->critic.arch->layer[layer].parameters > 0)
                check_block(c, h, critic, layer);
    q.layer = 3;
    assert_fails(ks_selection_new(&q, false, &s), KS_USAGE, "a relu without");
    q.layer = 99;
    assert_fails(ks_selection_new(&q, false, &s), KS_USAGE, "expected 0 to 7, found 99");
    q.layer = -1, q.critic = ENSEMBLE;
    assert_fails(ks_selection_new(&q, false, &s), KS_USAGE, "expected 0 to 1, found 2");
}

/* Coordinates that never had a gradient are excluded from the preconditioned operator. */
TEST(test_moving)
{
    struct ks_checkpoint *c = make(FREE);
    struct ks_problem q = pose(c);
    struct ks_selection *s;
    size_t moving = 0;

    for (size_t i = 0; i < dimension(c); i++)
        moving += c->adam_v[i] > 0;
    assert_ok(ks_selection_new(&q, true, &s));
    assert_int_equal(s->n, moving);
    assert_true(moving < dimension(c));
    ks_selection_free(s);
    memset(c->adam_v, 0, dimension(c) * sizeof *c->adam_v);
    assert_fails(ks_selection_new(&q, true, &s), KS_NUMBER, "no parameter is left");
}
