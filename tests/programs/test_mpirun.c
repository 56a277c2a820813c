/* The analyzer under mpirun: any number of ranks gives the statistics, files and messages of one
 * process. If one rank fails, all ranks end. */
#include "small_critics.h"

#include <jansson.h>

static const char PROJECTED[] =
    "dense 6 project=unit\nlayernorm\nrelu\ndense 4\nloss ce min=-5 max=5\n";
static const char OWN[] = "dense 6 trainable=no\nlayernorm\nrelu\ndense 4\nloss ce min=-5 max=5\n";
static const char MEDIUM[] =
    "repeat 2 {\ndense 30\nlayernorm\nrelu\n}\ndense 4\nloss ce min=-5 max=5\n";

/* Scales the columns of [kernel; bias] of layer 0, which come first, to norm 1. */
static void project(struct ks_checkpoint *c)
{
    const struct KS(arch) *a = c->critic.arch;

    for (size_t column = 0; column < ENSEMBLE * 6; column++) {
        double *w = c->critic.w + column / 6 * a->parameters + column % 6, square = 0;

        for (size_t i = 0; i <= IN; i++)
            square += w[6 * i] * w[6 * i];
        for (size_t i = 0; i <= IN; i++)
            w[6 * i] /= sqrt(square);
    }
}

/* Gives each critic targets of its own: those of the checkpoint, from other minibatches. */
static void make_own_targets(struct ks_checkpoint *c)
{
    size_t size = ks_checkpoint_target_size(c), critics = c->critic.ensemble;
    double *own;

    assert_ok(ks_alloc(c->minibatches * critics * size, sizeof *own, &own));
    for (size_t n = 0; n < c->minibatches; n++)
        for (size_t e = 0; e < critics; e++)
            memcpy(own + (n * critics + e) * size, c->target + (n + e) % c->minibatches * size,
                   size * sizeof *own);
    free(c->target);
    c->target = own;
    c->targets_differ = true;
}

static int write_critics(void **state)
{
    struct ks_checkpoint *c;
    struct ks_rng rng = ks_rng_start(61, 0);

    if (write_checkpoints(state) != 0)
        return -1;
    c = make(PROJECTED);
    project(c);
    c->adam_step = 20;
    c->adam = (struct ks_adam_constants){0.5, 0.99, 1e-3};
    c->adam_v = numbers(&rng, ENSEMBLE * c->critic.arch->parameters);
    c->adam_m = numbers(&rng, ENSEMBLE * c->critic.arch->parameters);
    for (size_t i = 0; i < ENSEMBLE * c->critic.arch->parameters; i++)
        c->adam_v[i] = i % 7 == 0 ? 0 : fabs(c->adam_v[i]);
    save("projected", c);
    c = make(archs[5].text);
    for (size_t i = 0; i < dimension(archs[5].text); i++)
        c->critic.w[i] *= 1e120; /* finite, its cube is not */
    save("huge", c);
    c = make(MEDIUM);
    save("medium", c);
    c = make(OWN);
    make_own_targets(c);
    save("own", c);
    c = make(archs[1].text);
    add_raw(c);
    assert_ok(ks_alloc(c->minibatches * c->loss_rows, sizeof *c->weight, &c->weight));
    for (size_t i = 0; i < c->minibatches * c->loss_rows; i++)
        c->weight[i] = (double)(i % 5) / 2;
    save("raw+mse", c);
    return 0;
}

/* Sets the number of ranks of the runs that follow; 0: without mpirun. */
static void launch(int ranks)
{
    if (ranks == 0)
        launcher[0] = '\0';
    else
        snprintf(launcher, sizeof launcher, "timeout -k 10 120 mpirun -n %d", ranks);
}

/* The number of lines printed by the analyzer rather than by mpirun. */
static size_t own_lines(void)
{
    static const char NAME[] = "kappascope-analyze: ";
    size_t n = 0;

    for (const char *at = complained; (at = strstr(at, NAME)); at += sizeof NAME - 1)
        n++;
    return n;
}

/* --- statistics ----------------------------------------------------------------------------- */

/* Statistics that measure rounding: residuals of converged Ritz values, standard errors of equal
 * values, products with null directions. */
static bool is_rounding(const char *name)
{
    static const char *const parts[] = {"residual", "_se", "noise_floor", "product_error"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

static double statistic(const json_t *summary, const char *name)
{
    return json_number_value(json_object_get(summary, name));
}

/* The statistics of --json agree within 1e-12. Those that measure rounding agree within 1e-11 of
 * the largest eigenvalue, because Lanczos amplifies rounding by a factor that depends on the BLAS
 * kernel. */
static void check_statistics(const char *options, const char *name, int ranks)
{
    json_t *summary[2], *value;
    const char *key;
    double size;

    for (int together = 0; together < 2; together++) {
        launch(together ? ranks : 0);
        assert_runs("-q --json --precision f64 %s %s.h5", options, name);
        summary[together] = json_loads(printed, 0, NULL);
        assert_non_null(summary[together]);
        assert_string_equal(complained, "");
    }
    size = fmax(statistic(summary[0], "lambda_max"), -statistic(summary[0], "lambda_min"));
    assert_int_equal(json_object_size(summary[0]), json_object_size(summary[1]));
    json_object_foreach(summary[0], key, value)
    {
        const json_t *other = json_object_get(summary[1], key);
        double expected = json_number_value(value);

        if (!json_is_real(value)) {
            if (!is_rounding(key) && strcmp(key, "claim") != 0)
                assert_true(json_equal(value, other));
            continue;
        }
        if (fabs(json_number_value(other) - expected) >
            (is_rounding(key) ? 1e-11 * size : 1e-12 * fabs(expected)))
            fail_msg("%d ranks, %s %s: %s is %.17g, expected %.17g", ranks, options, name, key,
                     json_number_value(other), expected);
    }
    json_decref(summary[0]), json_decref(summary[1]);
}

TEST(test_statistics)
{
    need_mpirun();
    check_statistics("--order 20", "bn+ce", 1);
    check_statistics("--order 20 --weight-decay 0.1 --scale 3", "ln+ce", 3);
    check_statistics("--order 20", "bn+mse", 4); /* the last rank has no minibatch */
    check_statistics("--order 20 --batches 1 --batchnorm eval", "bn+ce", 2);
    check_statistics("--order 15 --probes 3", "dense+ce", 2);
    check_statistics("--order 15 --probes 2", "ln+mse", 4);
    check_statistics("--order 9 --probes 8 --tolerance directions_1e1=6,negative_mass=0.9",
                     "dense+ce", 2);
    check_statistics("--order 15 --rewards raw", "raw+mse", 2);
    check_statistics("--order 15", "own", 2);
    check_statistics("--order 15 --operator manifold", "projected", 3);
    check_statistics("--order 15 --operator preconditioned", "projected", 2);
    check_statistics("--order 15 --operator residual --layer 0 --weight-decay 1", "dense+mse", 2);
}

/* All eigenvalues, products and the gradient. */
TEST(test_exact_and_vectors)
{
    size_t n = dimension(archs[0].text);
    struct ks_rng rng = ks_rng_start(62, 0);
    double *v = hold(numbers(&rng, 3 * n)), *expected, *found, loss;
    struct ks_spectrum *alone, *together;

    need_mpirun();
    launch(0);
    assert_runs("--exact --precision f64 bn+ce.h5");
    alone = read_spectrum(file("bn+ce.spectrum"));
    launch(3);
    assert_runs("--exact --precision f64 bn+ce.h5");
    together = read_spectrum(file("bn+ce.spectrum"));
    for (size_t i = 0; i < n; i++)
        assert_close(together->ritz[i], alone->ritz[i], 1e-14 * alone->ritz[n - 1]);
    assert_ok(ks_vectors_write(file("v"), &(struct ks_vectors){3, n, v, NULL, NULL}));
    launch(0);
    assert_runs("--apply v.h5 --output hv.h5 --gradient g.h5 --weight-decay 2 --precision f64 "
                "bn+ce.h5");
    expected = read_vectors("hv.h5", n, 3);
    launch(3);
    assert_runs("--apply v.h5 --output hv.h5 --precision f64 --weight-decay 2 bn+ce.h5");
    found = read_vectors("hv.h5", n, 3);
    assert_true(relative_error(3 * n, found, expected) < 1e-14);
    expected = read_vectors("g.h5", n, 1);
    loss = read_root_number(file("g"), "loss");
    assert_runs("--gradient g.h5 --weight-decay 2 bn+ce.h5");
    found = read_vectors("g.h5", n, 1);
    assert_true(relative_error(n, found, expected) < 1e-14);
    assert_close(read_root_number(file("g"), "loss"), loss, 1e-14 * fabs(loss));
}

/* Eigenvectors, up to their signs. */
TEST(test_eigenvectors)
{
    enum { COUNT = 3 };
    size_t n = dimension(archs[0].text);
    double *found[2];

    need_mpirun();
    for (int together = 0; together < 2; together++) {
        launch(together ? 3 : 0);
        assert_runs("--eigenvectors %d --tolerance 1e-9 --precision f64 --output e.h5 bn+ce.h5",
                    COUNT);
        found[together] = read_vectors("e.h5", n, COUNT);
    }
    for (size_t k = 0; k < COUNT; k++) {
        double product = 0;

        for (size_t j = 0; j < n; j++)
            product += found[0][k * n + j] * found[1][k * n + j];
        assert_close(fabs(product), 1, 1e-10);
    }
}

/* The basis is in float32 if one rank lacks the memory for float64; less is refused. */
TEST(test_memory)
{
    struct ks_spectrum *s;
    size_t least;

    need_mpirun();
    launch(2);
    least = least_memory("--precision f64 medium.h5");
    assert_int_equal(own_lines(), 1);
    assert_runs("--precision f64 --memory %zuK medium.h5", least + 64);
    s = read_spectrum(file("medium.spectrum"));
    assert_string_equal(ks_attribute_find(&s->attributes, "basis_precision")->string, "f32");
}

/* The published code's Lanczos recurrence on slices: the same numbers to float32 rounding. */
TEST(test_compat)
{
    struct ks_spectrum *s[2];
    double size = 0;

    need_mpirun();
    for (int together = 0; together < 2; together++) {
        launch(together ? 3 : 0);
        s[together] = spectrum("raw+mse", "-q --compat xqc --order 20");
        assert_string_equal(ks_attribute_find(&s[together]->attributes, "rewards")->string, "raw");
    }
    for (size_t i = 0; i < 20; i++)
        size = fmax(size, fabs(s[0]->ritz[i]));
    for (size_t i = 0; i < 20; i++) {
        assert_close(s[1]->alpha[i], s[0]->alpha[i], 1e-5 * size);
        assert_close(s[1]->beta[i], s[0]->beta[i], 1e-5 * size);
    }
}

/* --- failures ------------------------------------------------------------------------------- */

TEST(test_failures)
{
    static const struct {
        const char *arguments, *words;
        int status;
    } cases[] = {
        {"missing.h5", "missing.h5: cannot be opened", 2},
        {"huge.h5", "huge.h5: before Lanczos step 1 of 90", 1},
        {"--order 0 ln+ce.h5", "--order", 2},
        {"--operator manifold ln+ce.h5", "needs a projected layer", 2},
        {"-o nowhere/deeper ln+ce.h5", "nowhere/deeper", 2},
        {"--gradient g.h5 huge.h5", "the loss holds a NaN", 1},
    };

    need_mpirun();
    launch(3);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(analyzer("-q --precision f64 %s", cases[i].arguments), cases[i].status);
        if (own_lines() != 1 || !strstr(complained, cases[i].words))
            fail_msg("'%s' printed '%s', expected one line with '%s'", cases[i].arguments,
                     complained, cases[i].words);
    }
    /* The other checkpoints are analyzed. */
    assert_int_equal(analyzer("--precision f64 --csv huge.h5 missing.h5 ln+ce.h5"), 2);
    assert_int_equal(own_lines(), 2);
    assert_shows("\nln+ce.h5,");
}

TEST(test_help)
{
    const char *first;

    need_mpirun();
    launch(2);
    assert_runs("--help");
    first = strstr(printed, "NAME\n");
    assert_non_null(first);
    assert_null(strstr(first + 1, "NAME\n"));
}

CMFixtureFunction tests_setup = write_critics, tests_teardown = scratch_remove;
