/* The basis of the null space, the smallest |A y|/|y| off the null space, and the float64 products
 * that certify both, against dense matrices in float64. */
#include <lapacke.h>
#include <omp.h>

#include "lanczos/jacobi.h"
#include "null_critics.h"
#include "spectra.h"
#include "trials.h"

static const char *const TEXTS[] = {
    "batchnorm\ndense 6\nbatchnorm\nrelu\ndense 3\nloss ce min=0 max=1\n",
    "layernorm affine=no\ndense 6\nlayernorm\ntanh\ndense 3\nloss ce min=0 max=1\n",
    "dense 6\nlayernorm\nrelu\ndense 6\nlayernorm\nrelu\ndense 3\nloss ce min=0 max=1\n",
    "dense 6\nrelu\ndense 5\nrelu\ndense 1\nloss mse\n",
    "dense 5\nbatchnorm\nresidual {\ndense 5\n}\nresidual {\ndense 5\n}\nbatchnorm\ntanh\n"
    "dense 3\nloss ce min=0 max=1\n",
};
enum { N_TEXTS = sizeof TEXTS / sizeof *TEXTS };

/* The analyzed operator of a critic. */
struct variant {
    const char *operator;
    int critic, layer;
    double decay;
};
static const struct variant PLAIN = {"hessian", -1, -1, 0};
static const struct variant VARIANTS[] = {
    {"ggn", -1, -1, 0},      {"residual", -1, -1, 0},  {"preconditioned", -1, -1, 0},
    {"manifold", -1, -1, 0}, {"hessian", 1, -1, 0},    {"hessian", -1, 4, 0},
    {"ggn", 0, 1, 0},        {"hessian", -1, -1, 0.3}, {"preconditioned", 0, -1, 0.01},
};
static const char PROJECTED[] = "batchnorm\ndense 6 bias=no project=unit\nbatchnorm\nrelu\n"
                                "dense 3 project=unit-kernel\nloss ce min=0 max=1\n";

/* A problem, its dense matrix [n, n] in float64, and the basis of its null space. */
struct setting {
    struct ks_checkpoint *c;
    struct ks_problem q;
    const struct ks_operator_kind *kind;
    struct ks_null_space *space;
    struct ks_null_basis *basis;
    struct ks_operator *a;
    size_t n;
    double *matrix, abs_max;
};

static void block_of(const struct setting *s, bool single, struct ks_operator **a)
{
    struct ks_operator *all;

    assert_ok(ks_kind_new(s->kind, &s->q, single, &all));
    assert_ok(ks_block_new(all, s->space->selection, a));
    assert_ok(ks_operator_prepare(*a, 1 << 24));
    hold_operator(*a);
}

static ks_status certify(const struct setting *s, struct ks_certificates *c)
{
    struct ks_problem problem = s->q;

    problem.kind = s->kind;
    problem.selection = s->space->selection;
    return ks_certify(c, &problem, 1 << 24);
}

/* Memory for the certificates of `probes` probes of 20 iterations. */
static ks_status new_certificates(const struct setting *s, size_t probes, size_t prefix,
                                  struct ks_certificates *c)
{
    *c = (struct ks_certificates){.n = s->n, .probes = probes, .prefix = prefix, .basis = s->basis};
    return ks_certificates_new(20, c);
}

RELEASES(free_basis, ks_null_basis_free)
RELEASES(free_lanczos, ks_lanczos_free)

static void set_up_variant(const char *text, const struct variant *v, bool single,
                           struct setting *s)
{
    struct ks_operator *exact;
    bool *dead;

    *s = (struct setting){.c = null_critic(text, 2), .kind = ks_operator_kind_find(v->operator)};
    settle(s->c, 43);
    s->q = full_problem(s->c);
    s->q.critic = v->critic;
    s->q.layer = v->layer;
    s->q.weight_decay = v->decay;
    s->space = predict(&s->q, s->kind);
    s->n = s->space->selection->n;
    block_of(s, single, &s->a);
    block_of(s, false, &exact);
    s->matrix = dense_of(exact);
    s->abs_max = largest_eigenvalue(s->n, s->matrix);
    dead = hold(calloc(s->n, sizeof *dead));
    for (size_t i = 0; i < s->n; i++)
        dead[i] = cblas_dnrm2((int)s->n, s->matrix + i * s->n, 1) == 0;
    if (s->space->shift == 0)
        assert_ok(ks_null_basis_new(s->space, dead, &s->basis));
    hold_object(s->basis, free_basis);
}

static void set_up(const char *text, bool single, struct setting *s)
{
    set_up_variant(text, &PLAIN, single, s);
}

/* v -> (I - P_Z) v */
static void remove_null(const struct ks_null_basis *b, double *v)
{
    double *c;

    if (!b)
        return;
    c = hold(calloc(b->n_directions + 1, sizeof *c));
    ks_null_basis_multiply(b, v, c);
    ks_null_basis_solve(b, c);
    ks_null_basis_remove(b, c, v);
}

/* I - P_Z is symmetric and idempotent and has the rank that the basis implies; A vanishes on the
 * removed part. */
TEST(test_basis)
{
    for (size_t t = 0; t < N_TEXTS; t++) {
        struct setting s;
        double *p, *again, *product, trace = 0;
        int n;

        set_up(TEXTS[t], false, &s);
        n = (int)s.n;
        p = hold(calloc(s.n * s.n, sizeof *p));
        again = hold(calloc(s.n, sizeof *again));
        product = hold(calloc(s.n * s.n, sizeof *product));

        for (size_t j = 0; j < s.n; j++) {
            p[j * s.n + j] = 1;
            remove_null(s.basis, p + j * s.n);
            trace += p[j * s.n + j];
            memcpy(again, p + j * s.n, s.n * sizeof *again);
            remove_null(s.basis, again);
            for (size_t i = 0; i < s.n; i++)
                assert_close(again[i], p[j * s.n + i], 1e-13);
        }
        for (size_t j = 0; j < s.n; j++)
            for (size_t i = 0; i < s.n; i++)
                assert_close(p[j * s.n + i], p[i * s.n + j], 1e-13);
        assert_close(trace, (double)(s.n - s.basis->dimension), 1e-10);
        assert_true(s.basis->dimension >= s.space->dimension);
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, s.matrix, n, p, n, 0,
                    product, n);
        for (size_t i = 0; i < s.n * s.n; i++)
            assert_close(product[i], s.matrix[i], 1e-13 * s.abs_max);
    }
}

/* The least |A y|/|y| over y = (I - P_Z) Q_m s from the dense matrices, by its definition. */
static double brute_sigma(const struct setting *s, const struct ks_lanczos *l)
{
    size_t n = s->n, m = l->steps, rank = 0;
    double *y = hold(calloc(n * m, sizeof *y)), *image = hold(calloc(n * m, sizeof *image)), sigma;
    double *value = hold(calloc(n + m, sizeof *value));

    for (size_t j = 0; j < m; j++) {
        double *to = y + rank * n;

        memcpy(to, ks_lanczos_widened(l, j), n * sizeof *to);
        remove_null(s->basis, to);
        for (int twice = 0; twice < 2; twice++)
            for (size_t i = 0; i < rank; i++)
                cblas_daxpy((int)n, -cblas_ddot((int)n, y + i * n, 1, to, 1), y + i * n, 1, to, 1);
        if (cblas_dnrm2((int)n, to, 1) > 1e-4)
            cblas_dscal((int)n, 1 / cblas_dnrm2((int)n, to, 1), to, 1), rank++;
    }
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)rank, (int)n, 1, s->matrix,
                (int)n, y, (int)n, 0, image, (int)n);
    assert_int_equal(LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', (int)n, (int)rank, image, (int)n, value,
                                    NULL, 1, NULL, 1),
                     0);
    sigma = value[rank - 1];
    return sigma;
}

static void step(struct ks_lanczos *l)
{
    while (l->steps < l->order && !l->exhausted)
        assert_ok(ks_lanczos_step(l));
}

static struct ks_lanczos *run(const struct setting *s, size_t order, uint64_t probe, bool single)
{
    struct ks_lanczos *l = lanczos_of(s->a, order, single);

    ks_lanczos_start(l, 3, probe);
    step(l);
    return l;
}

static void check(const char *text, const struct variant *v, bool single, bool single_basis)
{
    double bound, *image, brute = INFINITY;
    struct ks_certificates c;
    struct setting s;

    set_up_variant(text, v, single, &s);
    bound = (single || single_basis ? 1e-5 : 1e-11) * s.abs_max;

    assert_ok(new_certificates(&s, 2, 10, &c));
    for (uint64_t probe = 0; probe < 2; probe++) {
        struct ks_lanczos *l = run(&s, 20, probe, single_basis);

        assert_ok(ks_certificates_take(&c, l));
        assert_close(c.sigma[2 * probe + 1], brute_sigma(&s, l), 1e-4 * s.abs_max);
        if (!single && !single_basis)
            assert_close(c.sigma[2 * probe + 1], brute_sigma(&s, l), 1e-9 * s.abs_max);
        assert_true(c.sigma[2 * probe] >= c.sigma[2 * probe + 1]);
        brute = fmin(brute, c.sigma[2 * probe + 1]);
    }
    assert_ok(certify(&s, &c));
    assert_false(c.refuted);
    image = hold(calloc(s.n, sizeof *image));
    for (size_t k = 0; k < KS_CERTIFICATES; k++) {
        const struct ks_certificate *y = &c.vector[k];
        double norm = cblas_dnrm2((int)s.n, y->y, 1);

        assert_true(y->formed);
        cblas_dgemv(CblasColMajor, CblasNoTrans, (int)s.n, (int)s.n, 1, s.matrix, (int)s.n, y->y, 1,
                    0, image, 1);
        assert_close(y->quotient, cblas_ddot((int)s.n, y->y, 1, image, 1) / norm / norm,
                     1e-13 * s.abs_max);
        assert_close(y->size, cblas_dnrm2((int)s.n, image, 1) / norm, 1e-13 * s.abs_max);
        assert_close(y->error, 0, bound);
        assert_close(y->run_size, y->size, bound);
        assert_close(y->run_quotient, y->quotient, bound);
    }
    assert_close(c.vector[KS_Y_FLAT].run_size, brute, bound);
    assert_true(c.vector[KS_Y_LARGEST].residual < 0.1 * s.abs_max);
    ks_certificates_clear(&c);
}

TEST(test_against_dense)
{
    for (size_t t = 0; t < N_TEXTS; t++) {
        check(TEXTS[t], &PLAIN, false, false);
        check(TEXTS[t], &PLAIN, true, false);
        check(TEXTS[t], &PLAIN, true, true);
    }
    for (size_t t = 0; t < sizeof VARIANTS / sizeof *VARIANTS; t++) {
        check(PROJECTED, &VARIANTS[t], false, false);
        check(PROJECTED, &VARIANTS[t], true, false);
    }
}

/* v [n] = P_Z q, with the vector q [n] of an iteration. */
static void take_null(const struct setting *s, const double *q, double *v)
{
    memcpy(v, q, s->n * sizeof *v);
    remove_null(s->basis, v);
    for (size_t i = 0; i < s->n; i++)
        v[i] = q[i] - v[i];
}

/* What is known of the null space beside the first probe, by a singular value decomposition. */
static void check_beside(const char *text, const struct variant *v, bool single)
{
    struct ks_certificates c;
    struct ks_lanczos *l;
    struct setting s;
    double *part, weight, last;
    size_t touched;

    set_up_variant(text, v, single, &s);
    assert_ok(ks_lanczos_new_for_two(s.a, 20, single, &l));
    hold_object(l, free_lanczos);
    ks_lanczos_start(l, 3, 0);
    step(l);
    assert_ok(new_certificates(&s, 1, 10, &c));
    assert_ok(ks_certificates_take(&c, l));
    ks_lanczos_start_beside(l, 3);
    part = hold(calloc((l->kept + 1) * s.n, sizeof *part));
    for (size_t j = 0; j <= l->kept; j++)
        take_null(&s, ks_lanczos_widened(l, j), part + j * s.n);
    step(l);
    assert_ok(ks_certificates_take(&c, l));
    weight = null_weight_beside(s.n, l->kept, s.n, part, part + l->kept * s.n, &touched, &last);
    assert_close(c.null_weight[1], weight, 1e-6);
    assert_int_equal(c.null_touched, touched);
    assert_true(c.null_last >= last && c.null_last <= 1e-5);
    ks_certificates_clear(&c);
}

TEST(test_beside)
{
    for (int single = 0; single < 2; single++) {
        for (size_t t = 0; t < N_TEXTS; t++)
            check_beside(TEXTS[t], &PLAIN, single);
        for (size_t t = 0; t < sizeof VARIANTS / sizeof *VARIANTS; t++)
            check_beside(PROJECTED, &VARIANTS[t], single);
    }
}

/* The standard error over minibatches, from the dense products of each minibatch. */
TEST(test_data_se)
{
    struct setting s;
    struct ks_lanczos *l;
    struct ks_certificates c;
    double *image, quotient[MINIBATCHES], mean = 0, square = 0;
    const double *y;

    set_up(TEXTS[0], false, &s);
    l = run(&s, 20, 0, false);
    image = hold(calloc(s.n, sizeof *image));
    assert_ok(new_certificates(&s, 1, 30, &c));
    assert_ok(ks_certificates_take(&c, l));
    s.q.weight_decay = 0.1; /* the same for all minibatches */
    assert_ok(certify(&s, &c));
    y = c.vector[KS_Y_LARGEST].y;
    for (size_t n = 0; n < MINIBATCHES; n++) {
        struct ks_checkpoint one = *s.c;
        struct ks_problem q;
        struct ks_operator *a;

        one.minibatches = 1;
        q = full_problem(&one);
        one.input += n * ROWS * IN;
        one.target += n * LOSS_ROWS * one.critic.arch->loss.targets;
        a = operator_of(ks_hessian_new_f64, &q);
        assert_ok(ks_operator_apply(a, y, image));
        quotient[n] = cblas_ddot((int)s.n, y, 1, image, 1) / cblas_ddot((int)s.n, y, 1, y, 1);
        mean += quotient[n] / MINIBATCHES;
    }
    for (size_t n = 0; n < MINIBATCHES; n++)
        square += (quotient[n] - mean) * (quotient[n] - mean);
    assert_close(c.vector[KS_Y_LARGEST].data_se, sqrt(square / (MINIBATCHES - 1) / MINIBATCHES),
                 1e-12 * s.abs_max);
    assert_close(c.vector[KS_Y_LARGEST].quotient, mean + 0.1, 1e-12 * s.abs_max);
    ks_certificates_clear(&c);
}

/* Fresh minibatches, here copies of the first one, which is the run's: the first two vectors are
 * multiplied by them and have the same quotients there; the flat one is not and has none. */
TEST(test_held_out)
{
    struct setting s;
    struct ks_lanczos *l;
    struct ks_certificates c;
    size_t inputs = ROWS * IN, targets, copies = 1 + KS_LEAST_HELD_OUT;

    set_up(TEXTS[0], false, &s);
    targets = LOSS_ROWS * s.c->critic.arch->loss.targets;
    l = run(&s, 20, 0, false);
    assert_ok(new_certificates(&s, 1, 30, &c));
    assert_ok(ks_certificates_take(&c, l));
    s.c->input = realloc(s.c->input, copies * inputs * sizeof *s.c->input);
    s.c->target = realloc(s.c->target, copies * targets * sizeof *s.c->target);
    for (size_t n = 1; n < copies; n++) {
        memcpy(s.c->input + n * inputs, s.c->input, inputs * sizeof *s.c->input);
        memcpy(s.c->target + n * targets, s.c->target, targets * sizeof *s.c->target);
    }
    s.c->minibatches = copies;
    s.q.minibatches = 1;
    c.held_out = KS_LEAST_HELD_OUT;
    assert_ok(certify(&s, &c));
    for (size_t k = 0; k < KS_CERTIFICATES; k++) {
        const struct ks_certificate *y = &c.vector[k];

        assert_true(y->formed);
        if (k == KS_Y_FLAT) {
            assert_true(isnan(y->held_out_quotient) && isnan(y->held_out_se));
            continue;
        }
        assert_close(y->held_out_quotient, y->quotient, 1e-12 * s.abs_max);
        assert_close(y->held_out_se, 0, 1e-7 * s.abs_max);
    }
    ks_certificates_clear(&c);
}

/* A coordinate that is falsely declared dead is detected. */
TEST(test_refuted)
{
    struct setting s;
    struct ks_lanczos *l;
    bool *dead;
    struct ks_certificates c;

    set_up(TEXTS[0], false, &s);
    l = run(&s, 20, 0, false);
    dead = hold(calloc(s.n, sizeof *dead));
    dead[s.n - 4] = true; /* an entry of the head's kernel */
    assert_ok(ks_null_basis_new(s.space, dead, &s.basis));
    hold_object(s.basis, free_basis);
    assert_ok(new_certificates(&s, 1, 30, &c));
    assert_ok(ks_certificates_take(&c, l));
    assert_ok(certify(&s, &c));
    assert_true(c.refuted);
    ks_certificates_clear(&c);
}

/* The number of threads changes no bit. */
TEST(test_threads)
{
    int threads = omp_get_max_threads();
    double quotient[2][KS_CERTIFICATES];

    for (int t = 0; t < 2; t++) {
        struct setting s;
        struct ks_lanczos *l;
        struct ks_certificates c;

        set_up(TEXTS[0], false, &s);
        l = run(&s, 20, 0, false);
        omp_set_num_threads(1);
        assert_ok(new_certificates(&s, 1, 30, &c));
        assert_ok(ks_certificates_take(&c, l));
        omp_set_num_threads(t == 0 ? 1 : 3);
        assert_ok(certify(&s, &c));
        omp_set_num_threads(threads);
        for (size_t k = 0; k < KS_CERTIFICATES; k++)
            quotient[t][k] = c.vector[k].quotient;
        ks_certificates_clear(&c);
    }
    assert_memory_equal(quotient[0], quotient[1], sizeof quotient[0]);
}
