/* sharpness_ratio, and the probe that starts at the gradient, by running the program. */
#include "small_critics.h"

#include "pipeline/pipeline.h"

/* dense+mse.h5 has Adam's moments, its own Adam constants and a learning rate; bn+mse.h5 has none
 * of these. */
static int write_critics(void **state)
{
    struct ks_checkpoint *c;
    size_t n = dimension(archs[5].text);
    struct ks_rng rng = ks_rng_start(3, 0);

    if (scratch_make(state) != 0)
        return -1;
    c = make(archs[5].text);
    c->adam_step = 20;
    c->adam = (struct ks_adam_constants){0.5, 0.99, 1e-3};
    c->adam_m = numbers(&rng, n);
    c->adam_v = numbers(&rng, n);
    for (size_t i = 0; i < n; i++)
        c->adam_v[i] = 0.1 + fabs(c->adam_v[i]);
    ks_attribute_add_number(&c->attributes, "learning_rate", 0.004);
    save("dense+mse", c);
    c = make(archs[1].text);
    save("bn+mse", c);
    return 0;
}

static void check(const char *name, const char *arguments, double rate, double threshold)
{
    struct ks_spectrum *s = spectrum(name, arguments);

    assert_close(ks_attribute_number(&s->attributes, "sharpness_learning_rate"), rate, 0);
    assert_close(ks_statistic(s, "sharpness_ratio"), ks_statistic(s, "lambda_max") / threshold,
                 1e-12);
}

static void check_absent(const char *name, const char *arguments)
{
    struct ks_spectrum *s = spectrum(name, arguments);

    assert_true(isnan(ks_statistic(s, "sharpness_ratio")));
}

TEST(test_threshold)
{
    assert_close(ks_stability_threshold(false, 0.9, 0.01), 200, 1e-12);
    assert_close(ks_stability_threshold(true, 0.9, 0.01), 3800, 1e-9); /* 38 / eta */
    assert_close(ks_stability_threshold(true, 0, 0.01), 200, 1e-12);
}

/* --learning-rate takes precedence over the checkpoint's. */
TEST(test_ratio)
{
    check("dense+mse", "--order 20", 0.004, 500);
    check("dense+mse", "--exact", 0.004, 500);
    check("dense+mse", "--order 20 --learning-rate 0.1", 0.1, 20);
    check("bn+mse", "--order 20 --learning-rate 0.1", 0.1, 20);
    check("dense+mse", "--order 20 --operator preconditioned", 0.004, 1500);
    check_absent("bn+mse", "--order 20");
    check_absent("dense+mse", "--order 20 --operator residual");
    check_absent("dense+mse", "--order 20 --compat xqc");
}

TEST(test_constants)
{
    struct ks_spectrum *s = spectrum("dense+mse", "--order 20 --operator preconditioned");

    assert_close(ks_attribute_number(&s->attributes, "adam_beta1"), 0.5, 0);
    assert_close(ks_attribute_number(&s->attributes, "adam_beta2"), 0.99, 0);
    assert_close(ks_attribute_number(&s->attributes, "adam_eps"), 1e-3, 0);
}

/* --start gradient adds a probe, which the density leaves out. */
TEST(test_gradient_probe)
{
    struct ks_spectrum *without = spectrum("dense+mse", "--order 20 --probes 2"), *with;
    const struct ks_attribute *start;

    with = spectrum("dense+mse", "--order 20 --probes 2 --start gradient");
    start = ks_attribute_find(&with->lanczos, "start");
    assert_non_null(start);
    assert_string_equal(start->string, "random random gradient");
    assert_int_equal(with->probes, 3);
    assert_int_equal(ks_spectrum_random(with), 2);
    assert_true(ks_statistic(with, "kappa_gradient_90_lower") >= 1);
    assert_close(ks_statistic(with, "trace"), ks_statistic(without, "trace"), 0);
    assert_int_equal(with->n_grid, without->n_grid);
    assert_memory_equal(with->density, without->density, with->n_grid * sizeof(double));
    assert_memory_equal(with->symlog_density, without->symlog_density,
                        with->n_grid * sizeof(double));
}

/* --complement adds a probe before the gradient's, for the counts alone, and a file keeps it. */
TEST(test_complement)
{
    static const char *const same[] = {
        "trace",      "kappa_q90_upper",          "zero_mass_upper",
        "lambda_max", "directions_1e1_upper_m30", "kappa_gradient_90_lower"};
    static const char options[] = "--order 40 --start gradient";
    struct ks_spectrum *without = spectrum("bn+mse", options), *with, *read;
    const struct ks_attribute *start;
    double found, exact;

    with = spectrum("bn+mse", text_of("%s --complement", options));
    start = ks_attribute_find(&with->lanczos, "start");
    assert_non_null(start);
    assert_string_equal(start->string, "random complement gradient");
    assert_int_equal(with->probes, 3);
    assert_int_equal(ks_spectrum_random(with), 1);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_close(ks_statistic(with, same[i]), ks_statistic(without, same[i]), 0);
    exact = ks_statistic(spectrum("bn+mse", "--exact --precision f64"), "directions_1e1");
    assert_true(ks_statistic(with, "directions_1e1_lower") <= exact);
    assert_true(ks_statistic(with, "directions_1e1_upper") >= exact);
    found = ks_statistic(with, "directions_1e1_upper") / ks_statistic(with, "directions_1e1_lower");
    assert_true(found < ks_statistic(without, "directions_1e1_upper") /
                            ks_statistic(without, "directions_1e1_lower"));
    assert_ok(ks_spectrum_write(scratch("again.h5"), with));
    assert_ok(ks_spectrum_read(scratch("again.h5"), &read));
    assert_true(read->complement && read->gradient);
    assert_int_equal(ks_spectrum_random(read), 1);
    ks_spectrum_free(read);
}

/* The space may end before: then there is no complement, or a small one. */
TEST(test_complement_of_all)
{
    struct ks_spectrum *s = spectrum("dense+mse", "--layer 0 --order 400 --complement");
    const size_t n = (size_t)ks_attribute_number(&s->attributes, "dimension");

    assert_int_equal(ks_spectrum_random(s), 1);
    assert_int_equal(s->probes, 1 + s->complement);
    assert_int_equal(s->complement, (size_t)s->steps[0] < n);
    assert_true(s->steps[0] + (s->complement ? s->steps[1] : 0) <= (long long)n);
}

/* A critic that fits its targets has a zero gradient: no probe can start there. */
TEST(test_zero_gradient)
{
    struct ks_checkpoint *c = make("dense 1 bias=no\nloss mse\n");
    struct ks_spectrum *s;

    memset(c->critic.w, 0, ENSEMBLE * IN * sizeof *c->critic.w);
    memset(c->target, 0, MINIBATCHES * LOSS_ROWS * sizeof *c->target);
    save("fitted", c);
    s = spectrum("fitted", "--order 3 --start gradient");
    assert_int_equal(s->probes, 1);
    assert_close(ks_statistic(s, "gradient_norm"), 0, 0);
    assert_non_null(ks_attribute_find(&s->statistics, "kappa_gradient_90_lower"));
    assert_true(isnan(ks_statistic(s, "kappa_gradient_90_lower")));
}

CMFixtureFunction tests_setup = write_critics, tests_teardown = scratch_remove;
