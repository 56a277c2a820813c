/* Branches, and heads with losses of their own: descriptions, the sum of the losses, files. */
#include "example.h"

static const char HEADS[] = "dense 4\nrelu\n"
                            "branch {\n  dense 1\n  loss mse weight=0.5\n}\n"
                            "branch {\n  dense 3\n  loss ce min=0 max=1\n}\n";
static const char FIRST[] = "dense 4\nrelu\ndense 1\nloss mse weight=0.5\n";
static const char SECOND[] = "dense 4\nrelu\ndense 3\nloss ce min=0 max=1\n";
enum { TRUNK = IN * 4 + 4, HEAD_1 = 4 + 1, HEAD_2 = 3 * 4 + 3 };

/* Layers are numbered as they are read; slices and branches do not count. */
TEST(test_description)
{
    struct KS(arch) *a;
    size_t numbers[8], n = 0;
    char name[16], start[6];

    assert_ok(ks_arch_parse_f64(HEADS, "a", IN, &a));
    for (size_t i = 0; i < a->n_layers; i++)
        if (!a->layer[i].kind->uncounted)
            numbers[n++] = a->layer[i].number;
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(numbers[i], i);
    assert_int_equal(a->parameters, TRUNK + HEAD_1 + HEAD_2);
    assert_int_equal(a->out, 1 + 3);
    assert_int_equal(a->loss.n_heads, 2);
    assert_int_equal(a->loss.outputs, 4);
    assert_int_equal(a->loss.targets, 4);
    assert_close(a->loss.head[0].weight, 0.5, 0);
    assert_string_equal(a->loss.head[1].kind->name, "ce");
    ks_loss_name_f64(&a->loss, sizeof name, name);
    assert_string_equal(name, "mse+ce");
    ks_loss_name_f64(&a->loss, sizeof start, start);
    assert_string_equal(start, "mse+c");
    ks_loss_name_f64(&a->loss.head[1], sizeof name, name);
    assert_string_equal(name, "ce");
    ks_arch_free_f64(a);
    /* branches without losses, at the input and inside a residual */
    assert_ok(
        ks_arch_parse_f64("branch {\nslice [0:2]\ndense 3\n}\nbranch {\nslice [2:5]\ndense 2\n}\n"
                          "residual {\nbranch {\ndense 4\n}\nbranch {\ndense 1\n}\n}\n"
                          "dense 1\nloss mse\n",
                          "a", IN, &a));
    assert_int_equal(a->parameters, (2 * 3 + 3) + (3 * 2 + 2) + (5 * 4 + 4) + (5 + 1) + (5 + 1));
    ks_arch_free_f64(a);
}

TEST(test_mistakes)
{
    static const struct {
        const char *text, *words;
    } mistakes[] = {
        {"branch {\ndense 1\nloss mse\n}\nbranch {\ndense 1\n}\n",
         "a:7: expected a loss in each of the 2 branches, found 1"},
        {"branch {\ndense 1\nloss mse\n}\nloss mse\n",
         "a:5: 'loss' follows the last branch with a loss"},
        {"branch {\ndense 1\nloss mse\nrelu\n}\n",
         "a:4: expected the '}' of a branch after its loss"},
        {"branch {\ndense 1\nloss mse\n", "a:3: expected the '}' of a branch after its loss"},
        {"branch {\nloss mse\n}\n", "a:2: the last layer of a head must be a dense"},
        {"dense 1\nbranch {\nloss mse\n}\n", "a:4: the 'branch' opened in line 2 is empty"},
        {"branch {\ndense 1\nrelu\nloss mse\n}\n", "a:4: the last layer of a head must be a dense"},
        {"repeat 2 {\nbranch {\ndense 1\nloss mse\n}\n}\n",
         "a:4: 'loss' is not allowed inside a container"},
        {"branch {\nresidual {\ndense 5\nloss mse\n}\n}\n",
         "a:4: 'loss' is not allowed inside a container"},
        {"branch\ndense 1\n}\n", "a:1: 'branch' needs '{'"},
        {"branch {\ndense 1\n}\n", "a:3: the line 'loss ...' or 'policy ...' is missing"},
        {"dense 3\ndropout input[0:2]\n", "a:2: dropout: expected a mask of 3 columns, found 2"},
        {"dense 6\nsimnorm dim=4\n", "a:2: simnorm: expected a dim that divides 6, found 4"},
        {"dense 4\ndueling atoms=3\n", "a:2: dueling: expected a value and at least one advantage"},
        {"dense 4\nselect input[0:3]\n", "a:2: select: expected a divisor of 4 columns, found 3"},
    };

    struct KS(arch) *nested = NULL;

    assert_ok(ks_arch_parse_f64("branch {\ndense 1\nloss mse\n}\nbranch {\nbranch {\ndense 2\n}\n"
                                "branch {\ndense 3\n}\ndense 2\nloss mse\n}\n",
                                "a", IN, &nested));
    assert_int_equal(nested->loss.n_heads, 2);
    assert_int_equal(nested->loss.outputs, 3);
    ks_arch_free_f64(nested);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct KS(arch) *a = NULL;

        assert_fails(ks_arch_parse_f64(mistakes[i].text, "a", IN, &a), KS_FORMAT,
                     mistakes[i].words);
        assert_null(a);
    }
}

static double gradient_of(const struct ks_checkpoint *c, double *g)
{
    struct ks_problem q = full_problem(c);
    double loss;

    assert_ok(ks_gradient(&q, &loss, g));
    return loss;
}

/* A critic with one head, with the numbers of a critic with two: those of the trunk, and `n` from
 * `at`; of the targets, `columns` from `column`. */
static struct ks_checkpoint *one_head(const struct ks_checkpoint *two, const char *text, size_t at,
                                      size_t column)
{
    struct ks_checkpoint *c = make_plain(text);
    size_t p = c->critic.arch->parameters, all = two->critic.arch->parameters;
    size_t columns = c->critic.arch->loss.targets;

    for (size_t e = 0; e < ENSEMBLE; e++) {
        memcpy(c->critic.w + e * p, two->critic.w + e * all, TRUNK * sizeof(double));
        memcpy(c->critic.w + e * p + TRUNK, two->critic.w + e * all + at,
               (p - TRUNK) * sizeof(double));
    }
    memcpy(c->input, two->input, MINIBATCHES * ROWS * IN * sizeof(double));
    for (size_t row = 0; row < MINIBATCHES * LOSS_ROWS; row++)
        memcpy(c->target + row * columns, two->target + row * 4 + column, columns * sizeof(double));
    return c;
}

/* The targets of the second head become distributions. */
static void normalize(struct ks_checkpoint *c)
{
    for (size_t row = 0; row < MINIBATCHES * LOSS_ROWS; row++) {
        double *t = c->target + row * 4 + 1, sum = t[0] + t[1] + t[2];

        for (size_t k = 0; k < 3; k++)
            t[k] /= sum;
    }
}

/* The loss and the trunk's gradient are the sums of those of two critics with one head each. */
TEST(test_sum)
{
    struct ks_checkpoint *two = make_plain(HEADS), *one[2];
    size_t p = TRUNK + HEAD_1 + HEAD_2, n[2] = {TRUNK + HEAD_1, TRUNK + HEAD_2};
    struct ks_rng rng = ks_rng_start(1, 1);
    double *g = hold(numbers(&rng, ENSEMBLE * p)), *part[2], loss;

    normalize(two);
    one[0] = one_head(two, FIRST, TRUNK, 0);
    one[1] = one_head(two, SECOND, TRUNK + HEAD_1, 1);
    loss = gradient_of(two, g);
    for (int k = 0; k < 2; k++) {
        part[k] = hold(numbers(&rng, ENSEMBLE * n[k]));
        loss -= gradient_of(one[k], part[k]);
    }
    assert_close(loss, 0, 1e-13);
    for (size_t e = 0; e < ENSEMBLE; e++)
        for (size_t i = 0; i < p; i++) {
            double first = i < n[0] ? part[0][e * n[0] + i] : 0;
            double second = i < TRUNK  ? part[1][e * n[1] + i]
                            : i < n[0] ? 0
                                       : part[1][e * n[1] + i - HEAD_1];

            assert_close(g[e * p + i], first + second, 1e-13 * (1 + fabs(first) + fabs(second)));
        }
}

/* Only the columns of a ce head must be distributions. */
TEST(test_file)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_plain(HEADS), *read;

    normalize(c);
    c->target[0] = -7;
    assert_ok(ks_checkpoint_write(path, c, false));
    read = read_checkpoint(path);
    same_checkpoint(read, c, false);
    poke(path, "/batch/target", 4 * (LOSS_ROWS + 1) + 2, -0.5);
    assert_fails(try_checkpoint(path, &read), KS_FORMAT,
                 "/batch/target: row 1 of minibatch 1: expected probabilities, found -0.5");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
