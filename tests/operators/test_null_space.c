/* A direction that an architecture implies is orthogonal to the gradients at every theta and batch.
 * Therefore the rank of many random gradients gives the exact dimension, which the predictions must
 * equal. */
#include <lapacke.h>
#include <omp.h>

#include "null_critics.h"

static size_t rank(const char *text, size_t rows, size_t columns, const double *matrix)
{
    size_t least = rows < columns ? rows : columns, count;
    double *copy = hold(malloc(rows * columns * sizeof *copy)),
           *size = hold(malloc(least * sizeof *size));

    memcpy(copy, matrix, rows * columns * sizeof *copy);
    assert_int_equal(LAPACKE_dgesdd(LAPACK_ROW_MAJOR, 'N', (lapack_int)rows, (lapack_int)columns,
                                    copy, (lapack_int)columns, size, NULL, (lapack_int)rows, NULL,
                                    (lapack_int)columns),
                     0);
    count = least - zeros(text, least, size);
    return count;
}

/* Gradients [samples, P] of norm 1 at random theta and batches. */
static double *random_gradients(const struct ks_problem *q, struct ks_checkpoint *c, size_t samples)
{
    struct ks_rng rng = ks_rng_start(42, 0);
    size_t n = c->critic.arch->parameters;
    double *gradients = malloc(samples * n * sizeof *gradients), loss;

    for (size_t i = 0; i < samples; i++) {
        double *g = gradients + i * n;

        draw(&rng, c);
        assert_ok(ks_gradient(q, &loss, g));
        cblas_dscal((int)n, 1 / cblas_dnrm2((int)n, g, 1), g, 1);
    }
    return gradients;
}

/* L is constant along each predicted direction, and the directions are independent. Returns how
 * many further directions along which L is constant were not predicted, if they are to be
 * `counted`: for that singular values must be zero or not. */
static size_t check_directions(const char *text, bool evaluation, bool counted, size_t *dimension)
{
    struct ks_checkpoint *c = null_critic(text, 1);
    struct ks_problem q = full_problem(c);
    size_t n = c->critic.arch->parameters, samples = n + 20, missed;
    struct ks_null_space *space;
    double *gradients, *u;

    q.evaluation = evaluation;
    space = predict(&q, HESSIAN);
    *dimension = space->dimension;
    gradients = hold(random_gradients(&q, c, samples));
    u = all_directions(space);
    for (size_t i = 0; i < samples; i++)
        for (size_t k = 0; k < space->dimension; k++) {
            double slope = cblas_ddot((int)n, gradients + i * n, 1, u + k * n, 1);

            if (!(fabs(slope) <= 1e-13))
                fail_msg("%s: L changes along direction %zu: %g", text, k, slope);
        }
    if (space->dimension > 0)
        assert_int_equal(rank(text, space->dimension, n, u), space->dimension);
    missed = counted ? n - rank(text, samples, n, gradients) - space->dimension : 0;
    return missed;
}

static size_t check(const char *text, bool evaluation, size_t *dimension)
{
    return check_directions(text, evaluation, true, dimension);
}

/* The predicted dimension of each architecture, with the reason. With two dense layers the head has
 * 4 inputs. */
static const struct {
    const char *text;
    bool evaluation;
    size_t dimension;
} cases[] = {
    /* softmax: each input of the head and its bias have one direction; not for other losses or
     * groups */
    {"dense 3\nloss ce min=0 max=1\n", false, 6},
    {"dense 3 bias=no\nloss ce min=0 max=1 weight=2\n", false, 5},
    {"dense 4\nrelu\ndense 3\nloss ce min=0 max=1\n", false, 5},
    {"dense 4\nrelu\ndense 1\nloss mse\n", false, 0},
    {"dense 4\nrelu\ndense 6 groups=2 bias=no\nloss ce min=0 max=1\n", false, 0},
    {"dense 4\nrelu\ndense 6 groups=2\nloss ce min=0 max=1\n", false, 1},
    /* batchnorm: biases in front of it that shift all its rows by the same amount */
    {"dense 4\nbatchnorm\nrelu\ndense 1\nloss mse\n", false, 4},
    {"dense 4\nbatchnorm\nrelu\ndense 1\nloss mse\n", true, 0},
    {"dense 4\nrelu\nbatchnorm\ndense 1\nloss mse\n", false, 0},
    {"dense 4 groups=1 bias=no\nbatchnorm\nrelu\ndense 1\nloss mse\n", false, 0},
    {"batchnorm\ndense 4\nbatchnorm\nrelu\ndense 1\nloss mse\n", false, 5 + 4},
    {"batchnorm\ndense 4\nbatchnorm\nrelu\ndense 1\nloss mse\n", true, 0},
    {"layernorm\ndense 4 bias=no\nbatchnorm\nrelu\ndense 1\nloss mse\n", false, 5},
    {"layernorm affine=no\ndense 4 bias=no\nbatchnorm\nrelu\ndense 1\nloss mse\n", false, 4},
    {"batchnorm\ndense 4\ndense 6 groups=2\nbatchnorm\nrelu\ndense 1\nloss mse\n", false,
     5 + 4 + 6},
    {"dense 4\nbatchnorm\nbatchnorm\nrelu\ndense 1\nloss mse\n", false, 4 + 4},
    /* layernorm: the same vector added to all columns of the kernel, or a constant to the bias */
    {"dense 4\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 6},
    {"dense 4\nlayernorm affine=no\nrelu\ndense 1\nloss mse\n", true, 6},
    {"dense 4 bias=no\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 5},
    {"dense 4\nrelu\nlayernorm\ndense 1\nloss mse\n", false, 0},
    {"dense 4\ndense 3\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 5},
    {"dense 6\nrelu\ndense 4 groups=2\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 1},
    {"dense 6\nrelu\ndense 4 groups=2 bias=no\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 0},
    {"layernorm\ndense 4\nlayernorm\nrelu\ndense 3\nloss ce min=0 max=1\n", false, 6 + 5},
    /* The kernel of a norm has none that are the same for every theta, its bias has. */
    {"dense 4 norm=weight\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 1},
    {"dense 4 norm=spectral\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 1},
    {"batchnorm affine=no\ndense 4 norm=weight\nbatchnorm\nrelu\ndense 3 norm=weight\n"
     "loss ce min=0 max=1\n",
     false, 4 + 1},
    /* The bias of a convolution has one number for all places of a channel. */
    {"dense 12\nconv2d 4 channels=3 height=2 width=2 size=2 padding=1\nbatchnorm\nrelu\n"
     "dense 1\nloss mse\n",
     false, 12 + 4},
    {"dense 12\nrelu\nconv2d 4 channels=3 height=2 width=2 size=2 padding=1\n"
     "groupnorm groups=2\nrelu\ndense 1\nloss mse\n",
     false, 2},
    {"dense 9\nrelu\nconv2d 2 channels=1 height=3 width=3 size=3 padding=1\nlayernorm\nrelu\n"
     "dense 1\nloss mse\n",
     false, 1},
    /* groupnorm: the same for the columns of each group. Groups of 6 and of 4 of 12 features have
     * only the sum of all in common. */
    {"dense 6\ngroupnorm groups=2\nrelu\ndense 1\nloss mse\n", false, 6 * 2},
    {"dense 9 bias=no\ngroupnorm groups=3 bias=no\nrelu\ndense 1\nloss mse\n", false, 5 * 3},
    {"dense 6\ngroupnorm groups=2\ngroupnorm groups=2\nrelu\ndense 1\nloss mse\n", false,
     6 * 2 + 2},
    {"dense 12 bias=no\nresidual {\ngroupnorm groups=2\nrelu\ndense 12\n}\n"
     "groupnorm groups=3\nrelu\ndense 1\nloss mse\n",
     false, 5 + 13 * 3},
    {"dense 6\nresidual {\ngroupnorm groups=2\nrelu\ndense 6\n}\nrelu\ndense 1\nloss mse\n", false,
     2},
    {"dense 4\nlayernorm affine=no\ndense 9\ngroupnorm groups=3\nrelu\ndense 1\nloss mse\n", false,
     6 + 5 * 3 + 9 - 3},
    /* A layernorm without parameters before a dense: the same row added to all rows of the kernel.
     * The sum of all entries belongs to both the row and the column directions, and counts once. */
    {"dense 4\nlayernorm affine=no\ndense 3\nrelu\ndense 1\nloss mse\n", false, 6 + 3},
    {"dense 4\nlayernorm affine=no\ndense 3\nlayernorm\nrelu\ndense 1\nloss mse\n", false,
     6 + 5 + 3 - 1},
    {"dense 4\nlayernorm affine=no\ndense 3\nloss ce min=0 max=1\n", false, 6 + 5 + 3 - 1},
    {"dense 6\nlayernorm affine=no\ndense 4 groups=2\nrelu\ndense 1\nloss mse\n", false, 6},
    {"dense 4\nlayernorm\ndense 3\nrelu\ndense 1\nloss mse\n", false, 6},
    {"dense 4\nlayernorm bias=no\ndense 3\nrelu\ndense 1\nloss mse\n", false, 6},
    {"dense 4\nbatchnorm affine=no\ndense 3 bias=no\nbatchnorm\nrelu\ndense 1\nloss mse\n", false,
     4},
    {"batchnorm affine=no\ndense 4\nbatchnorm affine=no\nrelu\ndense 1\nloss mse\n", false, 4},
    /* constant columns hide the sums of rows, but not those of columns; a slice of the input leaves
     * fewer rows of the kernel */
    {"dense 4\nconcat input[1:3]\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 0},
    {"dense 4\nconcat input[1:3]\nbatchnorm\nrelu\ndense 1\nloss mse\n", false, 4},
    {"dense 4\nrelu\nconcat input[1:3]\ndense 3\nloss ce min=0 max=1\n", false, 7},
    {"batchnorm\ndense 4\nbatchnorm\nrelu\nconcat input[0:2]\ndense 4\nbatchnorm\ndense 1\nloss "
     "mse\n",
     false, 5 + 4 + 4},
    {"input [1:4]\ndense 4\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 4},
    /* the softmax of a head; directions in front of the branches are not followed through them */
    {"dense 4\nrelu\nbranch {\ndense 1\nloss mse\n}\nbranch {\ndense 3\nloss ce min=0 max=1\n}\n",
     false, 5},
    {"dense 4\nrelu\nbranch {\ndense 6\nlayernorm\nrelu\ndense 2\nloss ce min=0 max=1\n}\n"
     "branch {\ndense 3\nloss ce min=0 max=1\n}\n",
     false, 5 + 7 + 5},
    /* a frozen layer has no directions, and hides none of the others */
    {"dense 4 trainable=no\nbatchnorm\nrelu\ndense 3\nloss ce min=0 max=1\n", false, 5},
    {"dense 4\nbatchnorm\nrelu\ndense 3 trainable=no\nloss ce min=0 max=1\n", false, 4},
    {"dense 4\nlayernorm trainable=no\nrelu\ndense 1\nloss mse\n", false, 6},
    {"batchnorm trainable=no\ndense 4\nbatchnorm trainable=no\nrelu\ndense 1\nloss mse\n", false,
     4},
    {"dense 4 trainable=no\nresidual {\nbatchnorm\nrelu\ndense 4\n}\nrelu\ndense 1\nloss mse\n",
     false, 0},
    /* one norm after another */
    {"dense 4\nlayernorm\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 6 + 1},
    {"dense 4\nbatchnorm\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 4 + 1},
    {"dense 4\nbatchnorm\nlayernorm\nrelu\ndense 1\nloss mse\n", true, 1},
    {"dense 4\nlayernorm\nbatchnorm\nrelu\ndense 1\nloss mse\n", false, 6 + 4},
    {"dense 4\nlayernorm\nbatchnorm\nrelu\ndense 1\nloss mse\n", true, 6},
    /* a residual sum: the directions in front of it are common to its readers and its body */
    {"dense 4\nresidual {\nrelu\ndense 4\n}\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 5},
    {"dense 4\nresidual {\nlayernorm\nrelu\ndense 4\n}\nlayernorm\nrelu\ndense 1\nloss mse\n",
     false, 6 + 5},
    {"dense 4\nresidual {\nbatchnorm\nrelu\ndense 4\n}\nbatchnorm\nrelu\ndense 1\nloss mse\n",
     false, 4 + 4},
    {"dense 4\nresidual {\nlayernorm\nrelu\ndense 4\n}\nbatchnorm\nrelu\ndense 1\nloss mse\n",
     false, 4 + 1},
    {"residual {\nlayernorm\ndense 5\n}\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 6},
    {"dense 6\nrelu\nresidual {\ndense 6\nlayernorm\n}\nlayernorm\ndense 1\nloss mse\n", false,
     7 + 1},
    /* no bias alone is a null direction, but the biases before and after a norm have the same
     * gradient */
    {"dense 4\nresidual {\nbatchnorm\nrelu\ndense 4\n}\nrelu\ndense 1\nloss mse\n", false, 4},
    {"dense 4\nresidual {\nlayernorm\nrelu\ndense 4\n}\nrelu\ndense 1\nloss mse\n", false, 1},
    {"dense 4\nresidual {\nresidual {\nbatchnorm\nrelu\ndense 4\n}\nbatchnorm\nrelu\ndense 4\n}\n"
     "relu\ndense 1\nloss mse\n",
     false, 4 + 4},
    {"dense 4\nresidual {\nbatchnorm\nrelu\ndense 4\n}\nrelu\ndense 1\nloss mse\n", true, 0},
    {"dense 4\nrepeat 2 {\nresidual {\nlayernorm\nrelu\ndense 4\n}\n}\nrelu\ndense 1\nloss mse\n",
     true, 2},
    {"dense 4\nresidual {\nbatchnorm\nrelu\ndense 4\n}\nresidual {\nlayernorm\nrelu\ndense 4\n}\n"
     "relu\ndense 1\nloss mse\n",
     false, 4 + 1},
    /* the rows of a residual sum to zero if the rows of both summands do */
    {"dense 4\nlayernorm affine=no\nresidual {\ndense 4\nlayernorm affine=no\n}\ndense 3\n"
     "loss ce min=0 max=1\n",
     false, 6 + (5 + 4 - 1) + (5 + 3 - 1)},
    {"dense 4\nrelu\nresidual {\ndense 4\nlayernorm affine=no\n}\ndense 1\nloss mse\n", false, 5},
    {"dense 4\nlayernorm affine=no\nresidual {\nrelu\ndense 4\n}\ndense 1\nloss mse\n", false, 6},
    {"residual {\ndense 5\nlayernorm affine=no\n}\ndense 1\nloss mse\n", false, 6},
    /* A lerp hides the directions of the layers after it; inside its body directions are found as
     * in a plain sequence. */
    {"dense 4\nlerp init=0.3 {\nbatchnorm\nrelu\ndense 4\nbatchnorm\n}\nrelu\ndense 1\nloss mse\n",
     false, 4},
    {"dense 4\nlerp init=0.3 {\nlayernorm\nrelu\ndense 4\nlayernorm\n}\nrelu\ndense 1\nloss mse\n",
     false, 5},
    {"dense 4\nscaler\nbatchnorm\nrelu\ndense 1\nloss mse\n", false, 4},
    {"dense 4\nscaler\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 0},
    {"dense 4\nrmsnorm\ntanh\ndense 1\nloss mse\n", false, 0},
    {"dense 4\nmish\ndense 3\nloss quantile\n", false, 0},
    {"dense 4\nlerp {\nlayernorm\ndense 4\n}\nlayernorm\ndense 1\nloss mse\n", false, 0},
    {"dense 4\nappend 3\ndense 4 bias=no\nlayernorm\nrelu\ndense 1\nloss mse\n", false, 5},
    {"dense 4\nl2norm\ntanh\ndense 1\nloss huber\n", false, 0},
};

TEST(test_cases)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t dimension, missed = check(cases[i].text, cases[i].evaluation, &dimension);

        if (dimension != cases[i].dimension || missed != 0)
            fail_msg("%s%s: found %zu, expected %zu, missed %zu", cases[i].text,
                     cases[i].evaluation ? "in evaluation mode" : "", dimension, cases[i].dimension,
                     missed);
    }
}

/* The columns of the parameters that a selection has, of gradients [samples, P]. */
static double *select_columns(const struct ks_selection *s, size_t samples, const double *gradients)
{
    double *block = malloc(samples * s->n * sizeof *block);

    for (size_t i = 0; i < samples; i++)
        ks_selection_gather(s, gradients + i * s->of, block + i * s->n);
    return block;
}

/* A null direction of the critic is one of single arrays if all its entries are in these arrays:
 * along no other direction of the block L is constant. A merged family, and the difference of two
 * biases, are cut or found. */
TEST(test_arrays)
{
    static const struct {
        const char *text, *arrays;
        size_t dimension;
    } blocks[] = {
        {"dense 4\nlayernorm\nrelu\ndense 3\nloss ce min=0 max=1\n", "0/kernel", 5},
        {"dense 4\nlayernorm\nrelu\ndense 3\nloss ce min=0 max=1\n", "0/bias", 1},
        {"dense 4\nlayernorm\nrelu\ndense 3\nloss ce min=0 max=1\n", "0/kernel,3/bias", 5 + 1},
        {"dense 4\nlayernorm\nrelu\ndense 3\nloss ce min=0 max=1\n", "1/scale,1/bias", 0},
        {"dense 4\nresidual {\nbatchnorm\nrelu\ndense 4\n}\nrelu\ndense 1\nloss mse\n", "0/bias",
         0},
        {"dense 4\nresidual {\nbatchnorm\nrelu\ndense 4\n}\nrelu\ndense 1\nloss mse\n", "3/bias",
         0},
        {"dense 4\nresidual {\nbatchnorm\nrelu\ndense 4\n}\nrelu\ndense 1\nloss mse\n",
         "0/bias,3/bias", 4},
        {"dense 4\nlayernorm affine=no\ndense 3\nlayernorm\nrelu\ndense 1\nloss mse\n", "2/kernel",
         4 + 3 - 1},
    };

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        struct ks_checkpoint *c = null_critic(blocks[i].text, 1);
        struct ks_problem q = full_problem(c);
        size_t samples = c->critic.arch->parameters + 20;
        double *gradients = hold(random_gradients(&q, c, samples)), *block;
        struct ks_null_space *space;

        q.arrays = blocks[i].arrays;
        space = predict(&q, HESSIAN);
        assert_int_equal(space->dimension, blocks[i].dimension);
        block = hold(select_columns(space->selection, samples, gradients));
        assert_int_equal(space->selection->n -
                             rank(blocks[i].text, samples, space->selection->n, block),
                         blocks[i].dimension);
    }
}

/* Directions that are not searched for: three biases with b - b' - b'' = 0, single groups of a
 * groupnorm affine=no in front of a kernel or that two norms differ in, the constant sums of a
 * simnorm's groups, a bias next to an appended constant, the scale of an appended constant that a
 * batchnorm makes zero, and the rows of a filter that see only padding. */
TEST(test_limits)
{
    static const struct {
        const char *text;
        size_t dimension, missed;
    } limits[] = {
        {"dense 4\nresidual {\nresidual {\nbatchnorm\ndense 4\n}\nrelu\ndense 4\n}\nrelu\ndense 1\n"
         "loss mse\n",
         0, 4},
        {"dense 6\ngroupnorm groups=2 affine=no\ndense 3\nrelu\ndense 1\nloss mse\n", 6 * 2 + 3, 3},
        {"dense 12\nresidual {\ngroupnorm groups=4\nrelu\ndense 12\n}\n"
         "residual {\ngroupnorm groups=2\nrelu\ndense 12\n}\nrelu\ndense 1\nloss mse\n",
         2 + 2, 2},
        {"dense 6\nsimnorm dim=3\ndense 1\nloss mse\n", 6 * 2, 2},
        {"append 3\ndense 4\nrelu\ndense 1\nloss mse\n", 0, 4},
        {"dense 4\nappend 3\nbatchnorm\nrelu\ndense 1\nloss mse\n", 4, 1},
        /* a kernel of the shape of a dense layer's, but three of its rows see only the padding */
        {"dense 4\nlayernorm affine=no\nconv2d 8 channels=1 height=2 width=2 size=2 padding=1 "
         "stride=3\nrelu\ndense 1\nloss mse\n",
         6, 3 * 8},
    };

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        size_t dimension;

        assert_int_equal(check(limits[i].text, false, &dimension), limits[i].missed);
        assert_int_equal(dimension, limits[i].dimension);
    }
}

/* Every layer kind, between layers with sum directions: the kind's claims about sums are true. */
TEST(test_every_kind)
{
    static const char *const ends[] = {"layernorm\ndense 3\nloss ce min=0 max=1\n",
                                       "batchnorm\ndense 1\nloss mse\n"};

    critic_inputs = 6; /* as many as features: a mask has as many columns */
    for (size_t k = 0; KS(layer_kinds)[k]; k++)
        for (const char *const *line = KS(layer_kinds)[k]->examples; *line; line++)
            for (int i = 0; i < 4; i++) {
                bool first = KS(layer_kinds)[k]->first;
                size_t dimension;

                check_directions(text_of("%s\ndense 4\nbatchnorm\ndense 6\n%s\n%s%s",
                                         first ? *line : "", first ? "" : *line,
                                         KS(layer_kinds)[k]->container ? "dense 6\nrelu\n}\n" : "",
                                         ends[i / 2]),
                                 i % 2, false, &dimension);
            }
    critic_inputs = IN;
}

TEST(test_study)
{
    for (const struct ks_architecture *a = ks_architectures; a->name; a++)
        for (size_t depth = 1; depth <= 3; depth++) {
            char *text = study_text(a->name, 4, depth);
            size_t dimension, missed = check(text, false, &dimension);

            assert_int_equal(dimension, study_dimension(a->name, 4, depth));
            assert_int_equal(missed, 0);
        }
}

/* The example in analysis/README.md: 261 biases of the input's norm and 513 shifts of the softmax
 * per critic. */
TEST(test_full_size)
{
    char *text = study_text("bn+wn+ce", 512, 4);
    struct ks_checkpoint c = {.critic.ensemble = 2};
    struct ks_problem q = full_problem(&c);
    struct ks_null_space *space;

    assert_ok(KS(arch_parse)(text, "test", 223 + 38, &c.critic.arch));
    space = predict(&q, HESSIAN);
    assert_int_equal(space->dimension, 2 * (261 + 513));
    assert_int_equal(ks_null_products(space), 2 + 1 + 1);
    KS(arch_free)(c.critic.arch);
}

CMFixtureFunction tests_setup = one_thread;
