/* The null space of every operator, and the noise floor, which bounds the rounding errors on it. */
#include <lapacke.h>
#include <omp.h>

#include "null_critics.h"
#include "spectra.h"

/* Critics beyond the study's twelve: biases on spheres, groups, a kernel of one row, directions of
 * rows and of columns. */
static const char *const TEXTS[] = {
    "batchnorm\ndense 6 project=unit\nbatchnorm\nrelu\ndense 3 project=unit\nloss ce min=0 max=1\n",
    "dense 6\nlayernorm\nrelu\ndense 4 groups=2 project=unit-kernel\nlayernorm\nrelu\n"
    "dense 3 project=unit-kernel\nloss ce min=0 max=1\n",
    "dense 4\nbatchnorm\ndense 4 groups=4 project=unit-kernel\nbatchnorm\nrelu\ndense 3\n"
    "loss ce min=0 max=1\n",
    "layernorm affine=no\ndense 6\nlayernorm\ntanh\ndense 3\nloss ce min=0 max=1\n",
};
enum { N_TEXTS = sizeof TEXTS / sizeof *TEXTS };

static bool is_projected(const struct ks_checkpoint *c)
{
    return strstr(c->critic.text, "project=unit");
}

/* Sets second moments to zero where the gradient is zero. Otherwise they are, with `trained`, those
 * of the gradient with the small floor that training gives, else random within a factor of
 * 100. */
static void set_second_moments(const struct ks_problem *q, struct ks_checkpoint *c, bool trained)
{
    struct ks_rng rng = ks_rng_start(43, 0);
    size_t n = ks_networks_parameters(&c->critic);
    double *g, loss;

    g = hold(calloc(n, sizeof *g));
    assert_ok(ks_alloc(n, sizeof *c->adam_v, &c->adam_v));
    assert_ok(ks_gradient(q, &loss, g));
    for (size_t i = 0; i < n; i++)
        c->adam_v[i] = g[i] == 0 ? 0
                       : trained ? 1e-3 * (g[i] * g[i] + 1e-18)
                                 : pow(10, ks_rng_uniform(&rng, -4, -2));
    c->adam_step = 20;
    c->adam = KS_ADAM_DEFAULTS;
}

/* The number of zero eigenvalues equals that of known directions and dead coordinates; returns the
 * number of known directions. */
static size_t check_zeros(const struct ks_problem *q, const char *name)
{
    const struct ks_operator_kind *kind = ks_operator_kind_find(name);
    struct ks_null_space *space = predict(q, kind);
    struct ks_operator *a = build(q, kind, space->selection, false);
    struct ks_spectrum *s = spectrum_new();
    struct ks_null null;

    assert_ok(ks_null_measure(space, a, NULL, NULL, &null));
    ks_null_clear(&null);
    assert_ok(ks_exact(a, NULL, NULL, s));
    assert_int_equal(zeros(q->checkpoint->critic.text, a->n, s->ritz), null.dimension + null.dead);
    assert_int_equal(null.dimension, space->dimension);
    assert_false(null.product > 1e-13 * fmax(-s->ritz[0], s->ritz[a->n - 1]));
    return null.dimension;
}

/* Per critic: `normals` directions normal to the spheres, and `others` off the spheres. */
static void check_manifold(const char *text, size_t normals, size_t others)
{
    struct ks_checkpoint *c = null_critic(text, 2);
    struct ks_problem q = full_problem(c);
    struct ks_null_space *space;

    project_columns(&c->critic);
    space = predict(&q, ks_operator_kind_find("manifold"));
    assert_int_equal(space->normals, 2 * normals);
    assert_int_equal(check_zeros(&q, "manifold"), 2 * (normals + others));
    q.critic = 1;
    assert_int_equal(check_zeros(&q, "manifold"), normals + others);
    q.critic = -1, q.weight_decay = 0.3;
    /* without norms, units are dead and their columns zero up to rounding */
    if (strstr(text, "norm"))
        assert_int_equal(check_zeros(&q, "manifold"), 2 * normals);
}

TEST(test_manifold)
{
    check_manifold(TEXTS[0], 6 + 3, IN);
    /* others: also the bias of the second dense and the head */
    check_manifold(TEXTS[1], 4 + 3, IN + 1 + 1 + 1);
    /* normals: columns of a single entry, next to biases */
    check_manifold(TEXTS[2], 4, 4 + 4 + 4 + 4 + 1);
    for (const struct ks_architecture *a = ks_architectures; a->name; a++) {
        char *text = study_text(a->name, 6, 2);
        bool ce = strstr(a->name, "ce");

        if (strstr(a->name, "wn"))
            check_manifold(text, 6 + 6 + (ce ? 4 : 1),
                           (strncmp(a->name, "bn", 2) == 0 ? IN : 0) + (ce ? 1 : 0));
    }
}

/* For each layer: the normals of its columns and the direction of its bias. */
TEST(test_manifold_layers)
{
    static const size_t dimension[] = {IN, 6, 0, 0, 3 + 1};
    struct ks_checkpoint *c = null_critic("batchnorm\ndense 6 project=unit\nbatchnorm\nrelu\n"
                                          "dense 3 project=unit-kernel\nloss ce min=0 max=1\n",
                                          2);
    struct ks_problem q = full_problem(c);

    project_columns(&c->critic);
    for (q.layer = 0; q.layer < 5; q.layer++)
        if (q.layer != 3) /* layer 3 is the relu */
            assert_int_equal(check_zeros(&q, "manifold"), 2 * dimension[q.layer]);
}

/* The directions in which every part has had a gradient. Rounding decides whether the gradient of a
 * bias before a batchnorm is exactly zero. */
static size_t with_gradient(const struct ks_null_space *s, const double *adam_v)
{
    size_t count = 0, *at = hold(calloc(s->selection->of, sizeof *at));
    double *value = hold(calloc(s->selection->of, sizeof *value));

    for (struct ks_null_direction u = {NULL, 0, 0}; ks_null_space_next(s, &u);) {
        size_t n = ks_null_space_entries(s, &u, at, value), moving = 0;

        for (size_t i = 0; i < n; i++)
            moving += adam_v[at[i]] > 0;
        count += moving == n;
    }
    return count;
}

/* The null directions are those of the Hessian in which every coordinate has had a gradient; with a
 * weight decay there are none. */
TEST(test_preconditioned)
{
    for (size_t i = 0; i < N_TEXTS; i++) {
        struct ks_checkpoint *c = null_critic(TEXTS[i], 2);
        struct ks_problem q = full_problem(c);
        struct ks_null_space *hessian = predict(&q, HESSIAN);

        set_second_moments(&q, c, false);
        assert_int_equal(check_zeros(&q, "preconditioned"), with_gradient(hessian, c->adam_v));
        q.weight_decay = 0.3;
        assert_int_equal(check_zeros(&q, "preconditioned"), 0);
    }
}

TEST(test_left_out)
{
    struct ks_checkpoint *c = null_critic("dense 6\nrelu\ndense 3\nloss ce min=0 max=1\n", 2);
    struct ks_problem q = full_problem(c);
    size_t head = c->critic.arch->layer[2].offset;

    c->critic.w[c->critic.arch->layer[0].offset + 6 * IN + 5] = -1000; /* the last unit is dead */
    set_second_moments(&q, c, false);
    assert_int_equal(check_zeros(&q, "preconditioned"), 2 * 7 - 1);
    for (size_t i = 0; i < 3; i++) /* the unit's row of the head never had a gradient */
        assert_true(c->adam_v[head + 5 * 3 + i] == 0);
    c->adam_v[head + 1] = 0;
    assert_int_equal(check_zeros(&q, "preconditioned"), 2 * 7 - 2);
    for (size_t i = 0; i < 2 * c->critic.arch->parameters; i++)
        c->adam_v[i] = i == 0 ? 1 : 0;
    assert_int_equal(check_zeros(&q, "preconditioned"), 0);
}

/* An orthonormal basis [k, n] of the null space in the selection's coordinates. */
static double *null_basis(const struct ks_null_space *space)
{
    size_t n = space->selection->n, of = space->selection->of, k = space->dimension;
    double *whole_ones = hold(calloc(of * (k + 1), sizeof *whole_ones)),
           *z = malloc(k * n * sizeof *z);
    double *tau = hold(malloc(k * sizeof *tau));
    size_t at = 0;

    for (struct ks_null_direction d = {NULL, 0, 0}; ks_null_space_next(space, &d);) {
        double *u = whole_ones + at * of;

        ks_null_space_add(space, &d, 1, u);
        if (cblas_dnrm2((int)of, u, 1) > 0)
            ks_selection_gather(space->selection, u, z + at++ * n);
    }
    assert_int_equal(at, k);
    assert_int_equal(LAPACKE_dgeqrf(LAPACK_COL_MAJOR, (int)n, (int)k, z, (int)n, tau), 0);
    assert_int_equal(LAPACKE_dorgqr(LAPACK_COL_MAJOR, (int)n, (int)k, (int)k, z, (int)n, tau), 0);
    return z;
}

/* A bias is not a normal, although it follows normals of one entry each: it is zero when training
 * starts. */
TEST(test_biases_beside_normals)
{
    struct ks_checkpoint *c = null_critic(TEXTS[2], 2);
    struct ks_problem q = full_problem(c);
    struct ks_null_space *space;

    project_columns(&c->critic);
    memset(c->critic.w + c->critic.arch->layer[2].offset + 4, 0, 4 * sizeof *c->critic.w);
    space = predict(&q, ks_operator_kind_find("manifold"));
    assert_int_equal(space->dimension, 2 * (4 + 17));
    free(null_basis(space)); /* fails unless it has as many directions */
}

/* The null space's eigenvalues as --exact computes them: the largest |eigenvalue| of Z' A Z, where
 * A is the symmetric part of the matrix of all products. */
static double known_zeros(const struct ks_null_space *space, const struct ks_operator *a)
{
    size_t n = a->n, k = space->dimension;
    double *z = hold(null_basis(space)), *m = dense_of(a), largest;
    double *mz = hold(malloc(n * k * sizeof *mz)), *zmz = hold(malloc(k * k * sizeof *zmz));

    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)k, (int)n, 0.5, m, (int)n,
                z, (int)n, 0, mz, (int)n);
    cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, (int)n, (int)k, (int)n, 0.5, m, (int)n, z,
                (int)n, 1, mz, (int)n);
    cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, (int)k, (int)k, (int)n, 1, z, (int)n, mz,
                (int)n, 0, zmz, (int)k);
    largest = largest_eigenvalue(k, zmz);
    return largest;
}

/* The computed known zeros of the dense matrix, in units of the noise floor. */
static double zeros_of(const struct ks_problem *q, const struct ks_operator_kind *kind, bool single)
{
    struct ks_null_space *space = predict(q, kind);
    struct ks_operator *a = build(q, kind, space->selection, single);
    struct ks_spectrum *s = spectrum_new();
    struct ks_null null;
    struct ks_statistics_inputs inputs = {.n = a->n,
                                          .epsilon = single ? FLT_EPSILON : DBL_EPSILON,
                                          .basis_epsilon = DBL_EPSILON,
                                          .null = &null};
    double ratio = 0, floor, within = 0;

    assert_ok(ks_null_measure(space, a, NULL, NULL, &null));
    ks_null_clear(&null);
    assert_ok(ks_exact(a, NULL, NULL, s));
    assert_ok(ks_statistics(s, &inputs));
    floor = ks_statistic(s, "noise_floor");
    for (size_t i = 0; i < a->n; i++)
        within += fabs(s->ritz[i]) <= floor;
    if (space->dimension > 0)
        ratio = known_zeros(space, a) / floor;
    if (!(ratio < 1 && within >= (double)(null.dimension + null.dead)))
        fail_msg("%s, %s, %s: zeros of %g floors; %g below it, %zu known", kind->name,
                 single ? "f32" : "f64", q->checkpoint->critic.text, ratio, within,
                 null.dimension + null.dead);
    return ratio;
}

/* With theta rounded to float32, as in a checkpoint, so that columns have norm 1 to that
 * precision. */
static double largest_zeros(const char *text)
{
    struct ks_checkpoint *c = null_critic(text, 2);
    struct ks_problem q = full_problem(c);
    double worst = 0;

    project_columns(&c->critic);
    for (size_t i = 0; i < 2 * c->critic.arch->parameters; i++)
        c->critic.w[i] = (float)c->critic.w[i];
    set_second_moments(&q, c, true);
    for (const struct ks_operator_kind *kind = ks_operator_kinds; kind->name; kind++)
        for (int single = 0; single < 2; single++)
            if (!kind->spheres || is_projected(c))
                worst = fmax(worst, zeros_of(&q, kind, single));
    return worst;
}

/* All eigenvalues that are known to be zero lie below the noise floor, for all operators in both
 * precisions, and the floor is not excessively far above them. */
TEST(test_noise_floor)
{
    double worst = 0;

    for (size_t i = 0; i < N_TEXTS; i++)
        worst = fmax(worst, largest_zeros(TEXTS[i]));
    for (const struct ks_architecture *a = ks_architectures; a->name; a++) {
        char *text = study_text(a->name, 6, 2);

        worst = fmax(worst, largest_zeros(text));
    }
    assert_true(worst > 0.05);
}

CMFixtureFunction tests_setup = one_thread;
