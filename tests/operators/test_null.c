/* Null directions of the operators: the Hessian has as many zero eigenvalues as there are known
 * null directions and dead coordinates. */
#include <omp.h>

#include "null_critics.h"
#include "spectra.h"

/* The number of zero eigenvalues of an operator; sets its largest absolute eigenvalue. */
static size_t zero_eigenvalues(const char *text, const struct ks_operator *a, double *largest)
{
    struct ks_spectrum *s = spectrum_new();
    size_t count;

    assert_ok(ks_exact(a, NULL, NULL, s));
    count = zeros(text, a->n, s->ritz);
    *largest = fmax(fabs(s->ritz[0]), fabs(s->ritz[a->n - 1]));
    return count;
}

/* Checks |A u - shift u| / |u| for each single direction. */
static void check_directions(const char *text, const struct ks_null_space *s,
                             const struct ks_operator *a, double bound)
{
    double *all = all_directions(s), *u = hold(malloc(a->n * sizeof *u));
    double *image = hold(malloc(a->n * sizeof *image)), size;

    for (size_t k = 0; k < s->dimension; k++) {
        ks_selection_gather(s->selection, all + k * s->selection->of, u);
        assert_close(cblas_dnrm2((int)a->n, u, 1), 1, 1e-12); /* u lies in the block */
        assert_ok(ks_operator_apply(a, u, image));
        cblas_daxpy((int)a->n, -s->shift, u, 1, image, 1);
        size = cblas_dnrm2((int)a->n, image, 1);
        if (!(size <= bound))
            fail_msg("%s: direction %zu: %g, bound %g", text, k, size, bound);
    }
}

/* The result of measuring the null space; also checks each single direction. `largest`: the
 * operator's largest absolute eigenvalue. */
static struct ks_null measure(const char *text, const struct ks_problem *q,
                              const struct ks_operator_kind *kind, bool single, double largest)
{
    struct ks_null_space *space = predict(q, kind);
    struct ks_operator *a = build(q, kind, space->selection, single);
    double bound = (single ? 1e-5 : 1e-13) * largest;
    struct ks_null null;

    check_directions(text, space, a, bound);
    assert_ok(ks_null_measure(space, a, NULL, NULL, &null));
    ks_null_clear(&null);
    assert_int_equal(null.dimension, space->dimension);
    if (null.dimension > 0)
        assert_true(null.product >= 0 && null.product <= bound); /* 0: a bias before a batchnorm */
    else
        assert_true(isnan(null.product));
    return null;
}

/* Every operator for which the directions are claimed, in both precisions, with and without weight
 * decay. */
static void check_operators(const char *text, struct ks_problem q, double largest,
                            struct ks_null expected)
{
    for (int decay = 0; decay < 2; decay++) {
        for (const struct ks_operator_kind *kind = ks_operator_kinds; kind->name; kind++)
            for (int single = 0; single < 2; single++) {
                struct ks_null null = {0};

                if (kind->moving || kind->spheres) /* covered by test_noise.c */
                    continue;
                null = measure(text, &q, kind, single, q.scale * largest);
                if (kind->outputs) /* without those of the softmax */
                    assert_true(null.dimension <= expected.dimension);
                else
                    assert_int_equal(null.dimension, expected.dimension);
                if (kind == HESSIAN)
                    assert_int_equal(null.dead, expected.dead);
            }
        q.weight_decay = 0.3 * largest, q.scale = 3;
    }
}

/* The Hessian's zero eigenvalues are exactly the known directions and dead coordinates. Then checks
 * the directions for all operators. */
static struct ks_null check_zeros(const char *text, const struct ks_problem *q)
{
    struct ks_null_space *space = predict(q, HESSIAN);
    struct ks_operator *a = build(q, HESSIAN, space->selection, false);
    struct ks_null null;
    double largest;
    size_t count = zero_eigenvalues(text, a, &largest);

    assert_ok(ks_null_measure(space, a, NULL, NULL, &null));
    ks_null_clear(&null);
    assert_int_equal(count, null.dimension + null.dead);
    check_operators(text, *q, largest, null);
    return null;
}

TEST(test_operators)
{
    for (const struct ks_architecture *a = ks_architectures; a->name; a++) {
        char *text = study_text(a->name, 6, 2);
        struct ks_checkpoint *c = null_critic(text, 2);
        struct ks_problem q = full_problem(c);
        struct ks_null null = check_zeros(text, &q);

        assert_int_equal(null.dimension, 2 * study_dimension(a->name, 6, 2));
        assert_true(null.dead == 0 || strncmp(a->name, "dense", 5) == 0);
    }
}

/* A dead relu unit in the second critic: all its incoming and outgoing weights are dead. */
TEST(test_dead_unit)
{
    static const char *const texts[] = {"dense 6\nrelu\ndense 1\nloss mse\n",
                                        "dense 6\nrelu\ndense 3\nloss ce min=0 max=1\n",
                                        "dense 6\nbatchnorm\nrelu\ndense 1\nloss mse\n"};
    /* The unit's row of the head and its bias in the dense already belong to the directions of the
     * softmax and the batchnorm. The batchnorm's scale and bias are dead too. */
    static const size_t dead[] = {IN + 1 + 1, IN + 1 + 3 - 1, IN + 2 + 1};

    for (size_t i = 0; i < 3; i++) {
        struct ks_checkpoint *c = null_critic(texts[i], 2);
        struct ks_problem q = full_problem(c);
        const struct KS(arch) *a = c->critic.arch;
        const struct KS(layer) *l = &a->layer[strstr(texts[i], "batchnorm") ? 1 : 0];

        /* the layer's last parameter is the last unit's bias */
        c->critic.w[a->parameters + l->offset + l->parameters - 1] = -1000;
        assert_int_equal(check_zeros(texts[i], &q).dead, dead[i]);
    }
}

/* An input that is zero in all rows: its row of the kernel is dead. One direction of it is
 * known. */
TEST(test_dead_input)
{
    const char *text = "dense 6\nlayernorm\nrelu\ndense 1\nloss mse\n";
    struct ks_checkpoint *c = null_critic(text, 2);
    struct ks_problem q = full_problem(c);

    for (size_t i = 0; i < MINIBATCHES * ROWS; i++)
        c->input[i * IN + 2] = 0;
    assert_int_equal(check_zeros(text, &q).dead, 2 * (6 - 1));
}

/* A direction counts for a block only if it lies entirely in the block. */
TEST(test_blocks)
{
    static const size_t dimension[] = {5, 0, 0, 0, 7};
    const char *text =
        "batchnorm\ndense 6 bias=no\nbatchnorm\nrelu\ndense 4\nloss ce min=0 max=1\n";
    struct ks_checkpoint *c = null_critic(text, 2);
    struct ks_problem q = full_problem(c);

    q.critic = 1;
    assert_int_equal(measure(text, &q, HESSIAN, false, 1e3).dimension, 5 + 7);
    for (q.layer = 0; q.layer < 5; q.layer++)
        for (q.critic = -1; q.critic < 2; q.critic++)
            if (q.layer != 3) /* layer 3 is the relu */
                assert_int_equal(measure(text, &q, HESSIAN, false, 1e3).dimension,
                                 dimension[q.layer] * (q.critic < 0 ? 2 : 1));
}

/* A kernel of one column: the sum over all its rows equals the sum over its column, so no row sum
 * remains to test. */
TEST(test_one_column)
{
    const char *text =
        "layernorm affine=no\ndense 1\nlayernorm\nrelu\ndense 3\nloss ce min=0 max=1\n";
    struct ks_checkpoint *c = null_critic(text, 2);
    struct ks_problem q = full_problem(c);
    struct ks_null_space *space = predict(&q, HESSIAN);
    struct ks_operator *a = build(&q, HESSIAN, space->selection, false);
    struct ks_null null;

    for (size_t i = 0; i < space->n_families; i++)
        assert_true(space->family[i].count > 0);
    assert_ok(ks_null_measure(space, a, NULL, NULL, &null));
    ks_null_clear(&null);
    assert_int_equal(null.dimension, 2 * (IN + 1 + 2));
}

static ks_status count(void *context, size_t products)
{
    size_t *last = context;

    assert_int_equal(products, *last + 1);
    *last = products;
    return KS_OK;
}

/* Products are counted, a failing product is passed on, and products that are not finite are
 * refused. */
TEST(test_products)
{
    struct ks_checkpoint *c = null_critic(
        "dense 4\nlayernorm\nrelu\ndense 3\nloss ce min=0 max=1\n", 1);
    struct ks_problem q = full_problem(c);
    struct ks_null_space *space = predict(&q, HESSIAN);
    double *value = hold(calloc(space->selection->n, sizeof *value));
    struct diagonal d = {.n = space->selection->n, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct ks_null null;
    size_t products = 0;

    assert_ok(ks_null_measure(space, &a, count, &products, &null));
    ks_null_clear(&null);
    assert_int_equal(products, 2 + 1); /* one product less: all images are zero */
    assert_int_equal(ks_null_products(space), 2 + 1 + 1);
    assert_int_equal(d.products, products);
    assert_int_equal(null.dimension, 6 + 5);
    assert_true(null.product == 0 && null.leak == 0);
    assert_int_equal(null.dead, d.n - null.dimension); /* the zero operator */
    /* families are found from the head backwards, so family[0] is the head's */
    for (size_t i = 0; i < d.n; i++)
        value[i] = i < space->family[0].offset ? 1 : -3;
    assert_ok(ks_null_measure(space, &a, NULL, NULL, &null));
    ks_null_clear(&null);
    assert_close(null.product, 3, 1e-14);
    assert_int_equal(null.dead, 0);
    /* products whose squares overflow or underflow */
    for (int turn = 0; turn < 2; turn++) {
        double size = turn == 0 ? 1e300 : 1e-300;

        for (size_t i = 0; i < d.n; i++)
            value[i] = size;
        assert_ok(ks_null_measure(space, &a, NULL, NULL, &null));
        ks_null_clear(&null);
        assert_close(null.product, size, 1e-14 * size);
    }
    d.fail_at = d.products + 2;
    assert_fails(ks_null_measure(space, &a, NULL, NULL, &null), KS_IO, "own words");
    ks_null_clear(&null);
    d.nan_at = d.products + 3;
    assert_fails(ks_null_measure(space, &a, NULL, NULL, &null), KS_NUMBER, "NaN");
    ks_null_clear(&null);
}

/* Without known directions one product looks for dead coordinates. */
TEST(test_products_without_directions)
{
    struct ks_checkpoint *c = null_critic("dense 4\nrelu\ndense 1\nloss mse\n", 1);
    struct ks_problem q = full_problem(c);
    struct ks_null_space *space = predict(&q, HESSIAN);
    double value[64];
    struct ks_operator a = DIAGONAL(space->selection->n, value);
    struct ks_null null;
    size_t products = 0;

    assert_true(a.n <= 64);
    for (size_t i = 0; i < a.n; i++)
        value[i] = 1e-300;
    assert_ok(ks_null_measure(space, &a, count, &products, &null));
    ks_null_clear(&null);
    assert_int_equal(products, 1);
    assert_int_equal(null.dimension, 0);
    assert_true(isnan(null.product) && isnan(null.leak));
}

/* Each allocation in turn fails: the call returns an error and leaks nothing. */
TEST(test_out_of_memory)
{
    struct ks_checkpoint *c = null_critic("dense 4\nlayernorm\nrelu\ndense 1\nloss mse\n", 1);
    struct ks_problem q = full_problem(c);
    struct ks_null_space *good = predict(&q, HESSIAN);
    const struct ks_selection *selection = good->selection;
    double *value = hold(calloc(selection->n, sizeof *value));
    struct diagonal d = {.n = selection->n, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct starved s = {.least = 8};

    while (starving(&s)) {
        struct ks_null_space *space;
        struct ks_null null = {.is_dead = NULL};

        s.status = ks_null_space_new(&q, HESSIAN, selection, &space);
        if (s.status == KS_OK)
            s.status = ks_null_measure(space, &a, NULL, NULL, &null);
        ks_null_clear(&null);
        ks_null_space_free(space);
    }
}

CMFixtureFunction tests_setup = one_thread;
