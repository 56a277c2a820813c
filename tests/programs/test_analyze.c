/* The numbers of the analyzer program on small checkpoints that the test writes. */
#include "small_critics.h"
#include "spectra.h"

/* All eigenvalues of a critic, which several tests need and the first one computes. */
static struct ks_spectrum *exact_of(const char *name, const char *precision)
{
    const char *kept = text_of("%s.%s", name, precision);

    if (!exists(kept)) {
        assert_runs("--exact --precision %s %s.h5", precision, name);
        assert_int_equal(rename(scratch(text_of("%s.spectrum.h5", name)), scratch(kept)), 0);
    }
    return read_spectrum(scratch(kept));
}

/* --exact finds the eigenvalues of the matrix whose columns --apply computes. */
TEST(test_apply_and_exact)
{
    for (size_t i = 0; i < ARCHS; i++) {
        size_t n = dimension(archs[i].text);
        const double *h = dense_hessian(archs[i].name, n), *eigenvalue = eigenvalues(n, h);
        const double size = fmax(-eigenvalue[0], eigenvalue[n - 1]);
        struct ks_spectrum *s;

        for (size_t k = 0; k < n * n; k++)
            assert_close(h[k], h[k % n * n + k / n], 1e-12);
        s = exact_of(archs[i].name, "f64");
        assert_null(s->alpha);
        assert_int_equal(s->order, n);
        assert_close(ks_statistic(s, "outliers"), (double)n, 0); /* all have converged */
        for (size_t k = 0; k < n; k++) {
            assert_close(s->ritz[k], eigenvalue[k], 1e-13 * size);
            assert_close(s->weight[k], 1 / (double)n, 1e-16);
        }
    }
}

/* The gradient agrees with central differences of the loss, of checkpoints moved along a direction.
 */
TEST(test_gradient)
{
    const double h = 1e-5;

    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_checkpoint *c = make(archs[i].text);
        struct ks_rng rng = ks_rng_start(22, i);
        size_t n = dimension(archs[i].text);
        double *v = hold(numbers(&rng, n)), *g, loss[2], slope = 0;

        assert_runs("--gradient g.h5 --weight-decay 0.3 --scale 2 %s.h5", archs[i].name);
        g = read_vectors("g.h5", n, 1);
        for (int side = 0; side < 2; side++) {
            for (size_t k = 0; k < n; k++)
                c->critic.w[k] += (side == 0 ? h : -2 * h) * v[k];
            save("moved", c);
            assert_runs("--gradient g.h5 --weight-decay 0.3 --scale 2 moved.h5");
            loss[side] = read_root_number(file("g"), "loss");
        }
        slope = dot(n, g, v);
        assert_close(slope, (loss[0] - loss[1]) / (2 * h), 1e-6 * fabs(slope));
    }
}

/* Estimates against all eigenvalues, and float32 against float64. */
TEST(test_estimates)
{
    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_spectrum *exact = exact_of(archs[i].name, "f64");
        struct ks_spectrum *f64 = spectrum(archs[i].name, "--precision f64 --order 60 --probes 10");
        struct ks_spectrum *f32 = spectrum(archs[i].name, "--precision f32 --order 60 --probes 4");
        double lambda_max = ks_statistic(exact, "lambda_max");

        assert_close(ks_statistic(f64, "lambda_max"), lambda_max, 1e-9 * lambda_max);
        assert_close(ks_statistic(f32, "lambda_max"), lambda_max, 1e-5 * lambda_max);
        assert_close(ks_statistic(f32, "lambda_min"), ks_statistic(exact, "lambda_min"),
                     1e-5 * lambda_max);
        assert_close(ks_statistic(f64, "trace"), ks_statistic(exact, "trace"),
                     5 * ks_statistic(f64, "trace_se"));
    }
}

/* The number of eigenvalues above an absolute size, by sizes from below the smallest to above the
 * largest eigenvalue, in turn by all ways; in all forms. */
TEST(test_count_above)
{
    static const char *const ways[] = {"--exact --precision f64", "--probes 3", "--order 20"};
    enum { WAYS = sizeof ways / sizeof *ways };

    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_spectrum *exact = exact_of(archs[i].name, "f64"), *s;
        double largest = fmax(ks_statistic(exact, "lambda_max"),
                              -ks_statistic(exact, "lambda_min"));
        size_t turn = i;

        for (double size = 2 * largest; size > 1e-3 * largest; size /= 4) {
            const char *way = ways[turn++ % WAYS];
            double count = 0;

            for (size_t k = 0; k < exact->order; k++)
                count += fabs(exact->ritz[k]) > size;
            s = spectrum(archs[i].name, text_of("%s --count-above %.17g", way, size));
            assert_true(ks_statistic(s, "directions_above_lower") <= count);
            assert_true(ks_statistic(s, "directions_above_upper") >= count);
            if (way == ways[0])
                assert_close(ks_statistic(s, "directions_above"), count, 0);
            assert_close(ks_attribute_number(&s->attributes, "count_above"), size, 0);
        }
        assert_null(ks_attribute_find(&exact->statistics, "directions_above"));
    }
    assert_runs("--json --count-above 1e-3 bn+ce.h5");
    assert_shows("\"count_above\":0.001,");
    assert_shows("\"directions_above\":");
    assert_shows("\"directions_above_lower\":");
    assert_runs("--csv --count-above 1e-3 bn+ce.h5");
    assert_shows(",directions_above_upper,");
}

/* Why the noise floor is 16 eps lambda_abs_max: no eigenvalue moves by more when products are
 * rounded to float32, and some move by more than a two-hundredth of it. */
TEST(test_noise_floor_of_float32)
{
    double worst = 0;

    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_spectrum *f64 = exact_of(archs[i].name, "f64");
        struct ks_spectrum *f32 = exact_of(archs[i].name, "f32");
        double size = fmax(ks_statistic(f64, "lambda_max"), -ks_statistic(f64, "lambda_min"));
        double unit = 16 * FLT_EPSILON * size;

        for (size_t k = 0; k < f64->order; k++)
            worst = fmax(worst, fabs(f32->ritz[k] - f64->ritz[k]) / unit);
        if (strcmp(archs[i].name, "dense+mse") == 0) { /* no null direction raises the floor */
            assert_close(ks_statistic(f32, "noise_floor"), unit, 1e-5 * unit);
            assert_close(ks_statistic(f64, "noise_floor"), unit * DBL_EPSILON / FLT_EPSILON,
                         1e-12 * unit);
        }
    }
    assert_true(worst < 1);
    assert_true(worst > 0.005);
}

/* The known null space of two critics. With bn: the biases of the input's norms. With ln: for each
 * dense layer, IN + 1 or 6 + 1 shifts of a layernorm's input. With ce: 6 + 1 shifts of the
 * softmax's input. A single critic has half of these, and its head the softmax's part. */
TEST(test_null_directions)
{
    static const size_t dimensions[ARCHS] = {5 + 7, 5, 6 + 7 + 7, 6, 7, 0};
    static const struct {
        const char *options;
        double dimension;
    } others[] = {{"--critic 1", 12},         {"--layer 7", 14},    {"--critic 0 --layer 0", 5},
                  {"--layer 1", 0},           {"--compat xqc", 24}, {"--operator ggn", 0},
                  {"--operator residual", 24}};

    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_spectrum *s = exact_of(archs[i].name, "f64");
        double residual;

        assert_close(ks_statistic(s, "null_dimension"), 2 * (double)dimensions[i], 0);
        residual = ks_statistic(s, "null_residual");
        assert_true(dimensions[i] > 0 ? residual > 0 && residual < 1e-14 : isnan(residual));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct ks_spectrum *s = spectrum("bn+ce", others[i].options);

        if (strstr(others[i].options, "ggn")) /* rank at most E N B (K - 1) */
            assert_close(ks_statistic(s, "null_dimension"),
                         (double)dimension(archs[0].text) - ENSEMBLE * MINIBATCHES * LOSS_ROWS * 3,
                         0);
        else
            assert_close(ks_statistic(s, "null_dimension"), others[i].dimension, 0);
    }
}

/* All eigenvalues that are known to be zero lie below the noise floor, so zero_mass counts at least
 * as many; in float32, at least as many as float64 finds. */
TEST(test_known_zeros)
{
    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_spectrum *f64 = exact_of(archs[i].name, "f64");
        struct ks_spectrum *f32 = exact_of(archs[i].name, "f32");
        double known = ks_statistic(f64, "null_dimension") + ks_statistic(f64, "dead_dimension"),
               n = (double)f64->order, within = 0;

        for (size_t k = 0; k < f64->order; k++)
            within += fabs(f64->ritz[k]) <= ks_statistic(f64, "noise_floor");
        assert_true(within >= known);
        assert_true(ks_statistic(f64, "zero_mass") * n >= known - 1e-9);
        assert_true(ks_statistic(f64, "zero_mass") * n <= known + 0.3 * n);
        assert_true(ks_statistic(f32, "zero_mass") * n >= known - 1e-9);
    }
}

/* A weight decay that makes the Hessian positive definite makes its condition number finite; the
 * lower bound holds for every start vector. */
TEST(test_lower_bound)
{
    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_spectrum *exact = exact_of(archs[i].name, "f64");
        double decay = 0.02 * ks_statistic(exact, "lambda_max") - ks_statistic(exact, "lambda_min");
        const char *name = archs[i].name, *decays = text_of("--weight-decay %.17g", decay);
        double kappa = statistic_of(name, text_of("--exact --precision f64 %s", decays), "kappa");

        assert_true(kappa < 1000);
        for (int seed = 0; seed < 3; seed++) {
            double bound = statistic_of(
                name, text_of("--precision f64 --order 40 --seed %d %s", seed, decays),
                "kappa_lower_bound");

            assert_true(bound > 0.5 * kappa && bound <= kappa * (1 + 1e-9));
        }
    }
}

/* A weight decay shifts all eigenvalues, and a scale multiplies them. Evaluation mode changes only
 * critics with batchnorm. Fewer minibatches, another seed and less memory change only what depends
 * on them. */
TEST(test_options)
{
    struct ks_spectrum *s = exact_of("bn+ce", "f64");
    struct ks_spectrum *t = spectrum("bn+ce",
                                     "--exact --precision f64 --weight-decay 0.25 --scale 3");
    double one;

    for (size_t k = 0; k < s->order; k++)
        assert_close(t->ritz[k], 3 * (s->ritz[k] + 0.25), 1e-12);
    one = statistic_of("bn+ce", "--precision f64", "lambda_max");
    assert_true(fabs(statistic_of("bn+ce", "--precision f64 --batchnorm eval", "lambda_max") / one -
                     1) > 1e-3);
    assert_true(fabs(statistic_of("bn+ce", "--precision f64 --batches 2", "lambda_max") / one - 1) >
                1e-3);
    assert_close(statistic_of("bn+ce",
                              text_of("--precision f64 --memory %zuK",
                                      least_memory("--precision f64 bn+ce.h5")),
                              "lambda_max"),
                 one, 1e-6 * one);
    assert_close(statistic_of("bn+ce", "--precision f64 --seed 9", "lambda_max"), one, 1e-6 * one);
    assert_true(statistic_of("bn+ce", "--order 20 --seed 9", "trace") !=
                statistic_of("bn+ce", "--order 20 --seed 8", "trace"));
    one = statistic_of("ln+ce", "--precision f64", "lambda_max");
    assert_true(statistic_of("ln+ce", "--precision f64 --batchnorm eval", "lambda_max") == one);
}

/* --batchnorm loss equals a checkpoint that has only the rows of the loss. */
TEST(test_rows_of_the_loss)
{
    struct ks_checkpoint *c = make(archs[0].text);
    double all, alone;

    assert_true(c->critic.arch->joint && c->loss_rows < c->rows);
    save("joint", c);
    for (size_t n = 0; n < c->minibatches; n++)
        memmove(c->input + n * c->loss_rows * c->critic.arch->in,
                c->input + n * c->rows * c->critic.arch->in,
                c->loss_rows * c->critic.arch->in * sizeof *c->input);
    c->rows = c->loss_rows;
    save("alone", c);
    alone = statistic_of("alone", "--precision f64", "lambda_max");
    all = statistic_of("joint", "--precision f64", "lambda_max");
    assert_true(statistic_of("joint", "--precision f64 --batchnorm loss", "lambda_max") == alone);
    assert_true(fabs(all / alone - 1) > 1e-3);
    assert_true(statistic_of("alone", "--precision f64 --batchnorm loss", "lambda_max") == alone);
}

/* Inputs far from zero pass a relu before a batchnorm subtracts their mean, so float32 retains only
 * rounding errors. A warning says so and names the layer. */
TEST(test_wrong_products)
{
    struct ks_checkpoint *c = make("dense 6\nrelu\nbatchnorm\nrelu\ndense 1\nloss mse\n");

    for (size_t i = 0; i < MINIBATCHES * ROWS * IN; i++)
        c->input[i] += 1e6;
    save("offset", c);
    assert_runs("--order 20 offset.h5");
    assert_complains("offset.h5: float32 products are wrong by ");
    assert_complains(" of the largest |eigenvalue|, most of all in layer "
                     "00_dense of critic ");
    assert_shows(" The float32 products are wrong by up to ");
    assert_runs("--order 20 -q offset.h5");
    assert_string_equal(complained, "");
    assert_runs("--order 20 --precision f64 offset.h5");
    assert_null(strstr(complained, "wrong"));
    assert_null(strstr(printed, "wrong"));
}

/* Gradients of single minibatches: their mean is the gradient of all, and the first is that of
 * --batches 1. The spectrum says which minibatch it is of. */
TEST(test_single_minibatches)
{
    const size_t n = dimension(archs[0].text);
    double *g[MINIBATCHES], *all, *first;

    for (size_t i = 0; i < MINIBATCHES; i++) {
        assert_runs("--gradient g.h5 --batch %zu bn+ce.h5", i);
        g[i] = read_vectors("g.h5", n, 1);
    }
    assert_runs("--gradient g.h5 bn+ce.h5%s", "");
    all = read_vectors("g.h5", n, 1);
    assert_runs("--gradient g.h5 --batches 1 bn+ce.h5%s", "");
    first = read_vectors("g.h5", n, 1);
    assert_memory_equal(g[0], first, n * sizeof *first);
    assert_memory_not_equal(g[1], first, n * sizeof *first);
    for (size_t j = 0; j < n; j++) {
        double mean = 0;

        for (size_t i = 0; i < MINIBATCHES; i++)
            mean += g[i][j] / MINIBATCHES;
        assert_close(mean, all[j], 1e-12);
    }
    assert_runs("--order 4 --batch 2 bn+ce.h5%s", "");
    assert_close(read_root_number(file("bn+ce.spectrum"), "batch"), 2, 0);
    assert_close(read_root_number(file("bn+ce.spectrum"), "batches"), 1, 0);
}

/* Statistics of a cross-entropy's gradient: on one minibatch, the part of --gradient that belongs
 * to one critic. There are none for a layer, and with --compat xqc; others for a squared error. */
TEST(test_gradient_bounds)
{
    const size_t n = dimension(archs[0].text) / ENSEMBLE;
    const char *largest = "minibatch_gradient_largest";
    double *g, square;
    struct ks_spectrum *s;

    assert_runs("--gradient g.h5 --batches 1 bn+ce.h5%s", "");
    g = read_vectors("g.h5", ENSEMBLE * n, 1);
    square = dot(n, g, g);
    s = spectrum("bn+ce", "--order 4 --batches 1 --critic 0");
    assert_close(ks_statistic(s, largest), sqrt(square), 1e-12);
    assert_close(ks_statistic(s, "minibatch_gradient_median"), sqrt(square), 1e-12);
    assert_close(ks_statistic(s, "logit_jacobian_rows"), 4, 0);
    assert_true(ks_statistic(s, "logit_gradient_largest") <= sqrt(2));
    assert_true(ks_statistic(s, "logit_gradient_median") <
                ks_statistic(s, "logit_gradient_largest"));
    assert_true(ks_statistic(s, "logit_jacobian_median") <
                ks_statistic(s, "logit_jacobian_largest"));
    assert_true(statistic_of("bn+ce", "--exact", largest) > 0);
    assert_true(isnan(statistic_of("bn+mse", "--order 4", largest)));
    assert_true(statistic_of("bn+mse", "--order 4", "prediction_error_largest") > 0);
    assert_true(isnan(statistic_of("bn+ce", "--order 4", "prediction_error_largest")));
    assert_true(isnan(statistic_of("bn+ce", "--order 4 --layer 1", largest)));
    assert_true(isnan(statistic_of("bn+ce", "--order 4 --compat xqc", largest)));
}

CMFixtureFunction tests_setup = write_checkpoints, tests_teardown = scratch_remove;
