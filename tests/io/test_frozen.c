/* Layers with trainable=no: they are no coordinates, but gradients flow through them. */
#include "example.h"
#include "operators/operator.h"
#include "spectra.h"

typedef ks_status constructor(const struct ks_problem *, struct ks_operator **);

/* `*` stands for the option: frozen layers at the start, between others, at the end, in containers,
 * and such that are not folded. */
static const char *const TEXTS[] = {
    "batchnorm *\ndense 6\nbatchnorm\ntanh\ndense 3\nloss ce min=-5 max=5\n",
    "layernorm\ndense 6 *\nlayernorm\ntanh\ndense 3\nloss ce min=-5 max=5\n",
    "batchnorm\ndense 6\nbatchnorm *\ntanh\ndense 5 *\nrelu\ndense 3 *\nloss quantile\n",
    "scaler *\ndense 6\nlerp * init=0.3 {\ndense 6 *\nsilu\ndense 6\n}\nrmsnorm *\ndense 1\nloss "
    "mse\n",
    "dense 6 groups=1 *\nresidual {\nrelu\ndense 6\n}\nlayernorm bias=no *\ndense 1\nloss huber\n",
};
enum { TEXTS_COUNT = sizeof TEXTS / sizeof *TEXTS };

/* The text with or without the option. */
static char *with_option(const char *text, bool frozen)
{
    static const char option[] = "trainable=no";
    char *out = calloc(1, 2048);

    for (size_t n = 0; *text; text++)
        if (*text != '*')
            out[n++] = *text;
        else if (frozen) {
            memcpy(out + n, option, sizeof option - 1);
            n += sizeof option - 1;
        }
    return out;
}

static struct ks_problem problem_of(const struct ks_checkpoint *c)
{
    return (struct ks_problem){.checkpoint = c,
                               .minibatches = c->minibatches,
                               .weight_decay = 0.1,
                               .scale = 2,
                               .critic = -1,
                               .layer = -1};
}

/* Splits the numbers of a critic without frozen layers, layer by layer: `part` [E, P] or [E, F]
 * gets those whose layers are not frozen in `arch`, or those that are. */
static void take(const struct ks_checkpoint *full, const struct KS(arch) *arch, bool frozen,
                 const double *from, double *part)
{
    const struct KS(arch) *all = full->critic.arch;

    for (size_t e = 0; e < ENSEMBLE; e++)
        for (size_t i = 0; i < arch->n_layers; i++) {
            size_t n = all->layer[i].parameters;

            if ((arch->layer[i].frozen > 0) == frozen) {
                memcpy(part, from + e * all->parameters + all->layer[i].offset, n * sizeof *part);
                part += n;
            }
        }
}

/* The same numbers twice: with all layers trainable, and with frozen ones. */
static void make_pair(const char *text, struct ks_checkpoint **full, struct ks_checkpoint **frozen)
{
    char *plain = hold(with_option(text, false)), *option = hold(with_option(text, true));
    const struct KS(arch) *arch;

    *full = make_plain(plain), *frozen = make_plain(option);
    arch = (*frozen)->critic.arch;
    assert_true(arch->frozen > 0);
    assert_int_equal(ks_arch_extended(arch), (*full)->critic.arch->parameters);
    take(*full, arch, false, (*full)->critic.w, (*frozen)->critic.w);
    take(*full, arch, true, (*full)->critic.w, (*frozen)->critic.frozen);
    memcpy((*frozen)->input, (*full)->input, MINIBATCHES * ROWS * IN * sizeof(double));
    memcpy((*frozen)->target, (*full)->target,
           MINIBATCHES * LOSS_ROWS * arch->loss.targets * sizeof(double));
}

/* The gradient is that of all parameters without the frozen entries; a product is the product with
 * a vector that is zero in them. */
static void check_operators(const struct ks_checkpoint *full, const struct ks_checkpoint *frozen)
{
    static constructor *const kinds[] = {ks_hessian_new_f64, ks_ggn_new_f64, ks_residual_new_f64,
                                         ks_hessian_new_f32};
    struct ks_problem p = problem_of(full), q = problem_of(frozen);
    const struct KS(arch) *arch = frozen->critic.arch;
    size_t n = ks_networks_parameters(&full->critic), m = ks_networks_parameters(&frozen->critic);
    struct ks_rng rng = ks_rng_start(6, 0);
    double *g = hold(numbers(&rng, n)), *part = hold(numbers(&rng, m)), *h = hold(numbers(&rng, m)),
           loss[2];
    double *v = hold(numbers(&rng, n)), *v_part = hold(numbers(&rng, m)), squares;

    assert_ok(ks_gradient(&p, &loss[0], g));
    assert_ok(ks_gradient(&q, &loss[1], h));
    take(full, arch, false, g, part);
    assert_close(relative_error(m, h, part), 0, 1e-13);
    squares = dot(ENSEMBLE * arch->frozen, frozen->critic.frozen, frozen->critic.frozen);
    assert_close(loss[1], loss[0] - 2 * 0.1 / 2 * squares, 1e-12 * fabs(loss[0]));
    for (size_t e = 0; e < ENSEMBLE; e++)
        for (size_t i = 0; i < arch->n_layers; i++)
            if (arch->layer[i].frozen > 0)
                memset(v + e * full->critic.arch->parameters + full->critic.arch->layer[i].offset,
                       0, arch->layer[i].frozen * sizeof *v);
    take(full, arch, false, v, v_part);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double *expected = product_of(kinds[k], &p, v), *found = product_of(kinds[k], &q, v_part);

        take(full, arch, false, expected, part);
        assert_close(relative_error(m, found, part), 0, k < 3 ? 1e-12 : 1e-5);
    }
}

TEST(test_operators)
{
    for (size_t i = 0; i < TEXTS_COUNT; i++) {
        struct ks_checkpoint *full, *frozen;

        make_pair(TEXTS[i], &full, &frozen);
        check_operators(full, frozen);
    }
}

/* A frozen layer's arrays are in the file; Adam's moments of it are not. */
TEST(test_file)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *full, *frozen, *read;
    struct ks_rng rng = ks_rng_start(9, 0);
    struct ks_h5 *h5;
    bool found;

    make_pair(TEXTS[1], &full, &frozen);
    frozen->adam_step = 3;
    frozen->adam_v = squares(&rng, ks_networks_parameters(&frozen->critic));
    assert_ok(ks_checkpoint_write(path, frozen, false));
    read = read_checkpoint(path);
    same_checkpoint(read, frozen, false);
    same_numbers(ENSEMBLE * frozen->critic.arch->frozen, read->critic.frozen, frozen->critic.frozen,
                 false);
    assert_ok(ks_h5_open(path, "kappascope-checkpoint", &h5));
    assert_ok(ks_h5_has(h5, "/critic/01_dense/kernel", &found));
    assert_true(found);
    assert_ok(ks_h5_has(h5, "/optimizer/v/01_dense", &found));
    assert_false(found);
    ks_h5_close(h5);
    poke(path, "/critic/01_dense/bias", 1, NAN);
    assert_fails(try_checkpoint(path, &read), KS_FORMAT, "/critic/01_dense/bias");
    remove_object(path, "/critic/01_dense/bias");
    assert_fails(try_checkpoint(path, &read), KS_FORMAT, "/critic/01_dense/bias");
}

TEST(test_refusals)
{
    struct ks_checkpoint *full, *frozen;
    struct ks_problem q;
    struct ks_selection *selection;
    struct KS(arch) *arch;

    make_pair(TEXTS[1], &full, &frozen);
    q = problem_of(frozen);
    q.layer = 1;
    assert_fails(ks_selection_new(&q, false, &selection), KS_USAGE,
                 "layer 1, a dense with trainable=no");
    assert_fails(ks_arch_parse_f64("relu trainable=no\ndense 1\nloss mse\n", "a", IN, &arch),
                 KS_FORMAT, "a:1: trainable: this 'relu' has no parameters");
    assert_fails(ks_arch_parse_f64("dense 1 trainable=no\nloss mse\n", "a", IN, &arch), KS_FORMAT,
                 "expected a layer without trainable=no, found none");
    assert_fails(ks_arch_parse_f64("dense 1 trainable=maybe\nloss mse\n", "a", IN, &arch),
                 KS_FORMAT, "trainable");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
