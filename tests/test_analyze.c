/* The analyzer program on small checkpoints that the test writes: its numbers, its files, its
 * output. */
#include "small_critics.h"

#include <float.h>

#include <jansson.h>
#include <lapacke.h>

#include "io/sha256.h"
#include "statistics/statistics.h"

static double statistic(const char *name, const char *arguments, const char *statistic_name)
{
    struct ks_spectrum *s = spectrum(name, arguments);
    double value = ks_statistic(s, statistic_name);

    ks_spectrum_free(s);
    return value;
}

/* --exact finds the eigenvalues of the matrix whose columns --apply computes. */
static void test_apply_and_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARCHS; i++) {
        size_t n = dimension(archs[i].text);
        double *h, *eigenvalue = calloc(n, sizeof *eigenvalue), size;
        struct ks_spectrum *s;

        assert_ok(ks_alloc(n * n, sizeof *h, &h));
        for (size_t k = 0; k < n; k++)
            h[k * n + k] = 1;
        assert_ok(ks_vectors_write(file("units"), n, n, h, NULL));
        free(h);
        assert_runs("--apply units.h5 --output columns.h5 --precision f64 %s.h5", archs[i].name);
        h = read_vectors("columns.h5", n, n);
        for (size_t k = 0; k < n * n; k++)
            assert_close(h[k], h[k % n * n + k / n], 1e-12);
        assert_int_equal(LAPACKE_dsyev(LAPACK_COL_MAJOR, 'N', 'U', (int)n, h, (int)n, eigenvalue),
                         0);
        size = fmax(-eigenvalue[0], eigenvalue[n - 1]);
        s = spectrum(archs[i].name, "--exact --precision f64");
        assert_null(s->alpha);
        assert_int_equal(s->order, n);
        assert_close(ks_statistic(s, "outliers"), (double)n, 0); /* all have converged */
        for (size_t k = 0; k < n; k++) {
            assert_close(s->ritz[k], eigenvalue[k], 1e-13 * size);
            assert_close(s->weight[k], 1 / (double)n, 1e-16);
        }
        ks_spectrum_free(s);
        free(h), free(eigenvalue);
    }
}

/* The gradient agrees with central differences of the loss, of checkpoints moved along a direction.
 */
static void test_gradient(void **state)
{
    const double h = 1e-5;

    (void)state;
    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_checkpoint *c = make(archs[i].text);
        struct ks_rng rng = ks_rng_start(22, i);
        size_t n = dimension(archs[i].text);
        double *v = numbers(&rng, n), *g, loss[2], slope = 0;

        assert_runs("--gradient g.h5 --weight-decay 0.3 --scale 2 %s.h5", archs[i].name);
        g = read_vectors("g.h5", n, 1);
        for (int side = 0; side < 2; side++) {
            for (size_t k = 0; k < n; k++)
                c->critic.w[k] += (side == 0 ? h : -2 * h) * v[k];
            assert_ok(ks_checkpoint_write(file("moved"), c, false));
            assert_runs("--gradient g.h5 --weight-decay 0.3 --scale 2 moved.h5");
            loss[side] = read_root_number(file("g"), "loss");
        }
        for (size_t k = 0; k < n; k++)
            slope += g[k] * v[k];
        assert_close(slope, (loss[0] - loss[1]) / (2 * h), 1e-6 * fabs(slope));
        free(v), free(g);
        ks_checkpoint_free(c);
    }
}

static void check_word(const char *path, const char *name, const char *word)
{
    struct ks_attribute a;
    struct ks_h5 *h5;

    assert_ok(ks_h5_open(path, "kappascope-vector", &h5));
    assert_ok(ks_h5_read_attribute(h5, "/", name, KS_ATTRIBUTE_STRING, &a));
    assert_string_equal(a.string, word);
    free(a.string);
    ks_h5_close(h5);
}

/* The attributes of vector files. */
static void test_attributes_of_vectors(void **state)
{
    const char *name = archs[0].name;
    size_t n = dimension(archs[0].text);
    double *v = calloc(n, sizeof *v);

    (void)state;
    assert_ok(ks_vectors_write(file("v"), 1, n, v, NULL));
    assert_runs("--apply v.h5 --output o.h5 --gradient g.h5 --operator ggn --precision f64 "
                "--weight-decay 0.3 --critic 0 %s.h5",
                name);
    check_word(file("o"), "operator", "ggn");
    check_word(file("o"), "precision", "f64");
    for (int i = 0; i < 2; i++) {
        const char *path = file(i == 0 ? "o" : "g");

        check_word(path, "batchnorm", "train");
        assert_true(read_root_number(path, "weight_decay") == 0.3);
        assert_true(read_root_number(path, "scale") == 1);
    }
    free(v);
}

/* Estimates against all eigenvalues, and float32 against float64. */
static void test_estimates(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_spectrum *exact = spectrum(archs[i].name, "--exact --precision f64");
        struct ks_spectrum *f64 = spectrum(archs[i].name, "--precision f64 --order 60 --probes 20");
        struct ks_spectrum *f32 = spectrum(archs[i].name, "--precision f32 --order 60 --probes 4");
        double lambda_max = ks_statistic(exact, "lambda_max");

        assert_close(ks_statistic(f64, "lambda_max"), lambda_max, 1e-9 * lambda_max);
        assert_close(ks_statistic(f32, "lambda_max"), lambda_max, 1e-5 * lambda_max);
        assert_close(ks_statistic(f32, "lambda_min"), ks_statistic(exact, "lambda_min"),
                     1e-5 * lambda_max);
        assert_close(ks_statistic(f64, "trace"), ks_statistic(exact, "trace"),
                     5 * ks_statistic(f64, "trace_se"));
        ks_spectrum_free(exact);
        ks_spectrum_free(f64);
        ks_spectrum_free(f32);
    }
}

/* Why the noise floor is 16 eps lambda_abs_max: no eigenvalue moves by more when products are
 * rounded to float32, and some move by more than a two-hundredth of it. */
static void test_noise_floor_of_float32(void **state)
{
    double worst = 0;

    (void)state;
    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_spectrum *f64 = spectrum(archs[i].name, "--exact --precision f64");
        struct ks_spectrum *f32 = spectrum(archs[i].name, "--exact --precision f32");
        double size = fmax(ks_statistic(f64, "lambda_max"), -ks_statistic(f64, "lambda_min"));
        double unit = 16 * FLT_EPSILON * size;

        for (size_t k = 0; k < f64->order; k++)
            worst = fmax(worst, fabs(f32->ritz[k] - f64->ritz[k]) / unit);
        if (strcmp(archs[i].name, "dense+mse") == 0) { /* no null direction raises it */
            assert_close(ks_statistic(f32, "noise_floor"), unit, 1e-5 * unit);
            assert_close(ks_statistic(f64, "noise_floor"), unit * DBL_EPSILON / FLT_EPSILON,
                         1e-12 * unit);
        }
        ks_spectrum_free(f64);
        ks_spectrum_free(f32);
    }
    assert_true(worst < 1);
    assert_true(worst > 0.005);
}

/* The known null space of two critics: with bn the biases of the input's norms; with ln, for each
 * dense, IN + 1 or 6 + 1 shifts of a layernorm's input; with ce 6 + 1 shifts of the softmax's
 * input. One critic has half of it, its head the softmax's part. */
static void test_null_directions(void **state)
{
    static const size_t dimensions[ARCHS] = {5 + 7, 5, 6 + 7 + 7, 6, 7, 0};
    static const struct {
        const char *options;
        double dimension;
    } others[] = {{"--critic 1", 12},         {"--layer 7", 14},    {"--critic 0 --layer 0", 5},
                  {"--layer 1", 0},           {"--compat xqc", 24}, {"--operator ggn", 0},
                  {"--operator residual", 24}};

    (void)state;
    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_spectrum *s = spectrum(archs[i].name, "--exact --precision f64");
        double floor = ks_statistic(s, "noise_floor"), residual, within = 0;

        assert_close(ks_statistic(s, "null_dimension"), 2 * (double)dimensions[i], 0);
        residual = ks_statistic(s, "null_residual");
        assert_true(dimensions[i] > 0 ? residual > 0 && residual < 1e-14 : isnan(residual));
        for (size_t k = 0; k < s->order; k++)
            within += fabs(s->ritz[k]) <= floor;
        assert_true(within >=
                    ks_statistic(s, "null_dimension") + ks_statistic(s, "dead_dimension"));
        ks_spectrum_free(s);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct ks_spectrum *s = spectrum("bn+ce", others[i].options);

        if (strstr(others[i].options, "ggn")) /* rank at most E N B (K - 1) */
            assert_close(ks_statistic(s, "null_dimension"),
                         (double)dimension(archs[0].text) - ENSEMBLE * MINIBATCHES * LOSS_ROWS * 3,
                         0);
        else
            assert_close(ks_statistic(s, "null_dimension"), others[i].dimension, 0);
        ks_spectrum_free(s);
    }
}

/* All eigenvalues that are known to be zero lie within the noise floor, so zero_mass counts at
 * least as many; in float32, at least those that float64 finds. */
static void test_known_zeros(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_spectrum *f64 = spectrum(archs[i].name, "--exact --precision f64");
        struct ks_spectrum *f32 = spectrum(archs[i].name, "--exact --precision f32");
        double known = ks_statistic(f64, "null_dimension") + ks_statistic(f64, "dead_dimension"),
               n = (double)f64->order;

        assert_true(ks_statistic(f64, "zero_mass") * n >= known - 1e-9);
        assert_true(ks_statistic(f64, "zero_mass") * n <= known + 0.3 * n);
        assert_true(ks_statistic(f32, "zero_mass") * n >= known - 1e-9);
        ks_spectrum_free(f64);
        ks_spectrum_free(f32);
    }
}

/* A weight decay that makes the Hessian positive definite makes its condition number finite; the
 * lower bound holds for every start vector. */
static void test_lower_bound(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARCHS; i++) {
        double decay = 0.02 * statistic(archs[i].name, "--exact --precision f64", "lambda_max") -
                       statistic(archs[i].name, "--exact --precision f64", "lambda_min");
        char options[128];
        double kappa;

        snprintf(options, sizeof options, "--exact --precision f64 --weight-decay %.17g", decay);
        kappa = statistic(archs[i].name, options, "kappa");
        assert_true(kappa < 1000);
        for (int seed = 0; seed < 3; seed++) {
            double bound;

            snprintf(options, sizeof options,
                     "--precision f64 --order 40 --seed %d --weight-decay %.17g", seed, decay);
            bound = statistic(archs[i].name, options, "kappa_lower_bound");
            assert_true(bound > 0.5 * kappa && bound <= kappa * (1 + 1e-9));
        }
    }
}

/* A weight decay shifts all eigenvalues, a scale multiplies them. Evaluation mode changes critics
 * with batchnorm only; fewer minibatches, another seed and less memory change what they should. */
static void test_options(void **state)
{
    struct ks_spectrum *s = spectrum("bn+ce", "--exact --precision f64");
    struct ks_spectrum *t = spectrum("bn+ce",
                                     "--exact --precision f64 --weight-decay 0.25 --scale 3");
    double one;
    char options[64];

    (void)state;
    for (size_t k = 0; k < s->order; k++)
        assert_close(t->ritz[k], 3 * (s->ritz[k] + 0.25), 1e-12);
    ks_spectrum_free(s);
    ks_spectrum_free(t);
    one = statistic("bn+ce", "--precision f64", "lambda_max");
    assert_true(fabs(statistic("bn+ce", "--precision f64 --batchnorm eval", "lambda_max") / one -
                     1) > 1e-3);
    assert_true(fabs(statistic("bn+ce", "--precision f64 --batches 2", "lambda_max") / one - 1) >
                1e-3);
    snprintf(options, sizeof options, "--precision f64 --memory %zuK",
             least_memory("--precision f64 bn+ce.h5"));
    assert_close(statistic("bn+ce", options, "lambda_max"), one, 1e-6 * one);
    assert_close(statistic("bn+ce", "--precision f64 --seed 9", "lambda_max"), one, 1e-6 * one);
    assert_true(statistic("bn+ce", "--order 20 --seed 9", "trace") !=
                statistic("bn+ce", "--order 20 --seed 8", "trace"));
    one = statistic("ln+ce", "--precision f64", "lambda_max");
    assert_true(statistic("ln+ce", "--precision f64 --batchnorm eval", "lambda_max") == one);
}

static const struct ks_attribute *attribute(const struct ks_spectrum *s, const char *name)
{
    const struct ks_attribute *a = ks_attribute_find(&s->attributes, name);

    if (!a)
        fail_msg("the spectrum has no attribute '%s'", name);
    return a;
}

static void check_string(const struct ks_spectrum *s, const char *name, const char *expected)
{
    assert_string_equal(attribute(s, name)->string, expected);
}

static void check_integer(const struct ks_spectrum *s, const char *name, int64_t expected)
{
    assert_int_equal(attribute(s, name)->integer, expected);
}

/* JSON has NAME_state beside a ratio, and beside any null. */
static void check_state(const json_t *object, const char *name, double value)
{
    const char *expected = isnan(value) ? "unresolved" : isinf(value) ? "infinite" : "finite";
    const char *found;
    char state[96];

    snprintf(state, sizeof state, "%s_state", name);
    found = json_string_value(json_object_get(object, state));
    if (isfinite(value) && strncmp(name, "kappa", 5) != 0)
        assert_null(found);
    else
        assert_string_equal(found, expected);
}

/* CSV has an empty cell where JSON has null, and as many cells in every line. */
static void check_csv(void)
{
    size_t cells = 0, n = 1;

    assert_null(strstr(printed, "nan"));
    assert_null(strstr(printed, "inf"));
    assert_non_null(strstr(printed, ",,"));
    for (const char *c = printed; *c; c++) {
        n += *c == ',';
        if (*c != '\n')
            continue;
        assert_true(cells == 0 || n == cells);
        cells = n, n = 1;
    }
}

/* A probe's weights sum to 1. */
static void check_weights(const struct ks_spectrum *s)
{
    for (size_t probe = 0; probe < s->probes; probe++) {
        double sum = 0;

        for (int64_t k = 0; k < s->steps[probe]; k++)
            sum += s->weight[probe * s->order + (size_t)k];
        assert_close(sum, 1, 1e-12);
    }
}

/* The attributes of a spectrum file, and the same statistics as JSON. */
static void test_spectrum_file(void **state)
{
    struct ks_spectrum *s = spectrum("bn+ce", "--probes 2 --order 40 --seed 5 --json -q");
    char digest[KS_SHA256_TEXT];
    json_t *object = json_loads(printed, 0, NULL);
    const char *first;

    (void)state;
    assert_string_equal(complained, "");
    check_string(s, "checkpoint", "bn+ce.h5");
    assert_ok(ks_sha256_file(file("bn+ce"), digest));
    check_string(s, "checkpoint_sha256", digest);
    check_string(s, "operator", "hessian");
    check_string(s, "rewards", "normalized");
    check_string(s, "batchnorm", "train");
    check_string(s, "precision", "f32");
    check_integer(s, "order", 40);
    check_integer(s, "probes", 2);
    check_integer(s, "probe_seed", 5);
    check_integer(s, "dimension", (int64_t)dimension(archs[0].text));
    check_integer(s, "batches", MINIBATCHES);
    check_integer(s, "critic", -1);
    check_integer(s, "layer", -1);
    check_string(s, "env", "dog-trot"); /* of the checkpoint */
    check_integer(s, "env_step", 50000);
    assert_int_equal(attribute(s, "returns")->n, 2);
    assert_non_null(attribute(s, "blas_kernel"));
    check_weights(s);
    assert_true(s->n_grid > 100);
    assert_non_null(object);
    first = json_object_iter_key(json_object_iter(object));
    assert_string_equal(first, "checkpoint");
    assert_int_equal(json_integer_value(json_object_get(object, "order")), 40);
    assert_string_equal(json_string_value(json_object_get(object, "basis_precision")), "f64");
    assert_int_equal(json_integer_value(json_object_get(object, "threads")),
                     attribute(s, "threads")->integer);
    assert_null(json_object_get(object, "compat"));
    for (size_t i = 0; i < s->summary.n; i++) {
        double value = s->summary.list[i].number;
        json_t *shown = json_object_get(object, s->summary.list[i].name);

        assert_non_null(shown);
        assert_true(isfinite(value) ? json_number_value(shown) == value : json_is_null(shown));
        check_state(object, s->summary.list[i].name, value);
    }
    assert_true(isfinite(ks_statistic(s, "kappa_m30")) && isfinite(ks_statistic(s, "trace_se")));
    check_string(s, "claim", json_string_value(json_object_get(object, "claim")));
    json_decref(object);
    ks_spectrum_free(s);
}

static void test_csv(void **state)
{
    char name[64];

    (void)state;
    assert_runs("--csv --order 20 bn+ce.h5 ln+ce.h5");
    snprintf(name, sizeof name, "%.10s", printed);
    assert_string_equal(name, "checkpoint");
    assert_non_null(strstr(printed, "\nln+ce.h5,hessian,train,f32,20,"));
    check_csv();
    assert_runs("--csv --order 20 --compat xqc ln+ce.h5");
    assert_non_null(strstr(printed, ",basis_precision,rewards,compat,lambda_max,"));
    assert_non_null(strstr(printed, ",f32,normalized,xqc,"));
}

/* One line per checkpoint, all of the same width, and below them the claims. */
static void test_table(void **state)
{
    const char *at = printed;
    size_t width;

    (void)state;
    assert_runs("--order 40 bn+ce.h5 dense+mse.h5");
    width = strcspn(at, "\n");
    for (size_t i = 0; i < 3; i++, at += width + 1)
        assert_int_equal(strcspn(at, "\n"), width);
    assert_int_equal(strncmp(at, "\nbn+ce.h5: ", 11), 0);
    at = strstr(at, "\n\ndense+mse.h5: ");
    assert_non_null(at);
    assert_non_null(strstr(at, "Ritz value| at m = 40, here "));
    assert_non_null(strstr(at, " from m = 30 to 40.\n"));
    assert_runs("--order 1 bn+ce.h5"); /* one Ritz value has no kurtosis */
    assert_non_null(strstr(printed, " - "));
    assert_null(strstr(printed, "nan"));
    assert_runs("--order 40 --no-certificates bn+ce.h5");
    assert_non_null(strstr(printed, "(99% interval, uncertified"));
}

/* A statistic that is NaN is null in JSON; the end of the Krylov space is reported. */
static void test_breakdown(void **state)
{
    struct ks_checkpoint *c = make("dense 1 bias=no\nloss mse\n");
    struct ks_spectrum *s;

    (void)state;
    memset(c->input, 0, MINIBATCHES * ROWS * IN * sizeof *c->input); /* the zero Hessian */
    assert_ok(ks_checkpoint_write(file("zero"), c, false));
    s = spectrum("zero", "--json");
    assert_non_null(strstr(printed, "\"kappa\":null"));
    assert_non_null(strstr(printed, " H is zero and has no condition number.\""));
    assert_non_null(strstr(complained, "ends after 1 of 90 steps"));
    assert_int_equal(s->steps[0], 1);
    assert_int_equal(s->order, 90);
    ks_spectrum_free(s);
    ks_checkpoint_free(c);
}

/* Where an outlier is a multiple eigenvalue, kurtosis_spectral is absent, but CSV has its column.
 */
static void test_absent_statistic(void **state)
{
    struct ks_checkpoint *c = make("dense 1 bias=no\nloss mse\n");
    struct ks_spectrum *s;

    (void)state;
    for (size_t i = 0; i < MINIBATCHES * ROWS * IN; i++)
        c->input[i] = i % IN == 0;
    assert_ok(ks_checkpoint_write(file("two"), c, false)); /* with the decay: two eigenvalues */
    s = spectrum("two", "--probes 8 --weight-decay 1");
    assert_null(ks_attribute_find(&s->summary, "kurtosis_spectral"));
    assert_runs("--csv --probes 8 --weight-decay 1 two.h5 bn+ce.h5");
    check_csv();
    ks_spectrum_free(s);
    ks_checkpoint_free(c);
}

/* Inputs far from zero pass a relu before a batchnorm subtracts their mean: in float32 only
 * rounding is left. A warning says so and names the layer. */
static void test_wrong_products(void **state)
{
    struct ks_checkpoint *c = make("dense 6\nrelu\nbatchnorm\nrelu\ndense 1\nloss mse\n");

    (void)state;
    for (size_t i = 0; i < MINIBATCHES * ROWS * IN; i++)
        c->input[i] += 1e6;
    assert_ok(ks_checkpoint_write(file("offset"), c, false));
    assert_runs("--order 20 offset.h5");
    assert_non_null(strstr(complained, "offset.h5: float32 products are wrong by "));
    assert_non_null(strstr(complained, " of the largest |eigenvalue|, most of all in layer "
                                       "00_dense of critic "));
    assert_non_null(strstr(printed, " The float32 products are wrong by up to "));
    assert_runs("--order 20 -q offset.h5");
    assert_string_equal(complained, "");
    assert_runs("--order 20 --precision f64 offset.h5");
    assert_null(strstr(complained, "wrong"));
    assert_null(strstr(printed, "wrong"));
    ks_checkpoint_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apply_and_exact),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_attributes_of_vectors),
        cmocka_unit_test(test_estimates),
        cmocka_unit_test(test_noise_floor_of_float32),
        cmocka_unit_test(test_null_directions),
        cmocka_unit_test(test_known_zeros),
        cmocka_unit_test(test_lower_bound),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_spectrum_file),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_breakdown),
        cmocka_unit_test(test_absent_statistic),
        cmocka_unit_test(test_wrong_products),
    };

    return cmocka_run_group_tests(tests, write_checkpoints, scratch_remove);
}
