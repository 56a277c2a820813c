/* The tables that the plots draw: values known by hand, identities, and what a study may lack. */
#include "studies.h"

/* Replaces an attribute by a number. */
static void set_other(struct ks_attribute *list, size_t n, const char *name, double value)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) {
            attribute_number(&list[i], name, value);
            return;
        }
    fail_msg("no attribute %s", name);
}

/* The first row of an architecture. */
static size_t row_of(const struct ks_csv *csv, const char *architecture)
{
    size_t row = 0;

    while (row < csv->rows && strcmp(cell(csv, row, "architecture"), architecture) != 0)
        row++;
    return row;
}

static const struct place LAST = {"bn+wn+ce", 0, 12, NULL};
static const double PI = 3.14159265358979323846;

/* Leading parts of the Laplacian: eigenvalues 2 - 2 cos(k pi / (m + 1)). The extended matrices T of
 * one and of two steps have T'T = 5 and T'T = [5 -4; -4 6]. */
TEST_IN_STUDY(test_orders)
{
    const struct ks_csv *csv;
    struct known k;
    size_t row;

    make_known(&k, &LAST);
    attribute_number(&k.summary[5], "noise_floor", 0.5);
    write_known(&k, &LAST);
    csv = make_table("orders", 0);
    row = row_of(csv, "bn+wn+ce");
    for (size_t m = 1; m <= 4; m++) {
        double angle = PI / ((double)m + 1), least = 2 - 2 * cos(angle);

        assert_close(cell_number(csv, row + m - 1, "order"), (double)m, 0);
        assert_close(cell_number(csv, row + m - 1, "kappa"), (4 - least) / least, 1e-8);
    }
    assert_close(cell_number(csv, row, "kappa_lower_bound"), 2 / (sqrt(5) + 0.25), 1e-8);
    assert_close(cell_number(csv, row + 1, "kappa_lower_bound"),
                 3 / (sqrt((11 - sqrt(65)) / 2) + 0.25), 1e-8);
    assert_string_equal(cell(csv, row, "kappa_effective_bound"), "-");
    assert_close(cell_number(csv, row + 3, "kappa_effective_bound"), 9, 0);
    assert_close(cell_number(csv, row + 3, "noise_limit"), 3.5 / 0.5, 1e-9);
}

/* Cells meet half-way between Ritz values on the axis asinh(x / x_0), x_0 a millionth of the
 * largest size; they hold all the weight beyond the noise floor. */
TEST_IN_STUDY(test_density)
{
    const double unit = 1e-4;
    const struct ks_csv *csv;
    struct known k;
    double sum = 0, half;
    size_t row;

    make_known(&k, &LAST);
    attribute_number(&k.summary[5], "noise_floor", 0.01);
    write_known(&k, &LAST);
    csv = make_table("density", 0);
    row = row_of(csv, "bn+wn+ce");
    for (size_t i = 0; i < 3; i++) {
        double low = asinh(cell_number(csv, row + i, "lower") / unit);
        double high = asinh(cell_number(csv, row + i, "upper") / unit);

        sum += cell_number(csv, row + i, "density_per_decade") * (high - low) / log(10);
        assert_string_equal(cell(csv, row + i, "density_per_decade_low"), "-");
    }
    assert_close(sum, 0.4, 1e-6);
    assert_string_equal(cell(csv, row + 2, "architecture"), "bn+wn+ce");
    assert_close(cell_number(csv, row, "upper"), -unit * sinh((asinh(4 / unit) + asinh(10.)) / 2),
                 1e-6);
    half = (asinh(100 / unit) + asinh(1 / unit)) / 2;
    assert_close(cell_number(csv, row + 1, "upper"), unit * sinh(half), 1e-6);
    assert_close(cell_number(csv, row + 1, "lower"), 0.01, 1e-9); /* not half-way to -0.001 */
    assert_close(cell_number(csv, row + 2, "upper"), unit * sinh(2 * asinh(100 / unit) - half),
                 1e-3);
}

/* Two probes with the same weights: no error; and the mean of two that do not overlap. */
TEST_IN_STUDY(test_density_of_probes)
{
    double ritz[] = {-4, -0.001, 1, 100, -4, -0.001, 1, 100};
    double weight[] = {0.1, 0.6, 0.2, 0.1, 0.1, 0.6, 0.2, 0.1}, none[8] = {0};
    int64_t steps[] = {4, 4};
    const struct ks_csv *csv;
    struct known k;
    size_t row;

    for (int differ = 0; differ < 2; differ++) {
        make_known(&k, &LAST);
        attribute_string(&k.start, "start", "random random");
        k.s.probes = 2;
        k.s.ritz = ritz;
        k.s.weight = weight;
        k.s.alpha = k.s.beta = k.s.residual = none;
        k.s.steps = steps;
        attribute_number(&k.summary[5], "noise_floor", 0.01);
        if (differ) { /* the weight of 100 is in the first probe only */
            weight[7] = 0;
            weight[4] = 0.2;
        }
        write_known(&k, &LAST);
        csv = make_table("density", 0);
        row = row_of(csv, "bn+wn+ce") + 2;
        if (!differ)
            assert_string_equal(cell(csv, row, "density_per_decade_low"),
                                cell(csv, row, "density_per_decade_high"));
        else {
            assert_close(cell_number(csv, row, "density_per_decade_low"), 0, 1e-9);
            assert_close(cell_number(csv, row, "density_per_decade_high"),
                         2 * cell_number(csv, row, "density_per_decade"), 1e-6);
        }
    }
}

/* The stored band as counts of n = 100 eigenvalues: up to x below zero, above x otherwise. */
TEST_IN_STUDY(test_distribution)
{
    double at[] = {-2, 3}, lower[] = {0.01, 0.9}, upper[] = {0.04, 0.95};
    const struct ks_csv *csv;
    struct known k;
    size_t row;

    make_known(&k, &LAST);
    k.s.n_band = 2;
    k.s.band_at = at;
    k.s.band_lower = lower;
    k.s.band_upper = upper;
    write_known(&k, &LAST);
    csv = make_table("distribution", 0);
    row = row_of(csv, "bn+wn+ce");
    check_row(csv, row, "beyond_lower=1 beyond_upper=4");
    check_row(csv, row + 1, "beyond_lower=5 beyond_upper=10 cumulative_lower=0.9");
}

/* Intervals of all checkpoints, in the columns of summary.csv. */
TEST_IN_STUDY(test_intervals)
{
    const struct ks_csv *csv = make_table("intervals", 0);

    assert_int_equal(csv->rows, 2 * (CHECKPOINTS + 1));
    check_row(csv, 1,
              "architecture=bn+wn+ce env_step=4 directions_1e2_lower=21.5 directions_1e2_upper=33 "
              "directions_1e2_least=20 kappa_q99_upper=- kappa_gradient_90_lower=inf");
}

/* Writes spectra of a further analysis for all seeds and checkpoints of bn+wn+ce: with this
 * operator, layer, and a statistic that grows with seed and step. */
static void write_analysis(const char *name, const char *operator, double layer,
                           const char *statistic)
{
    for (size_t i = 0; i < SEEDS; i++)
        for (size_t j = 0; j <= CHECKPOINTS; j++) {
            struct place place = {"bn+wn+ce", i, STEP[j], name};
            struct known k;

            make_known(&k, &place);
            attribute_string(&k.attribute[2], "operator", operator);
            set_other(k.attribute, 20, "layer", layer);
            attribute_number(&k.summary[5], statistic, (double)(STEP[j] * (i + 1)));
            write_known(&k, &place);
        }
}

TEST_IN_STUDY(test_operators)
{
    const struct ks_csv *csv = make_table("operators", 0);

    assert_int_equal(csv->rows, 0);
    set_study("[analyze gauss]\noperator = ggn\n");
    write_analysis("gauss", "ggn", -1, "none");
    csv = make_table("operators", 0);
    assert_int_equal(csv->rows, 4 + 4); /* the standard spectrum's random probe, and the ggn's */
    assert_string_equal(cell(csv, 0, "operator"), "hessian");
    assert_close(cell_number(csv, 3, "ritz"), 50, 0);
    assert_string_equal(cell(csv, 4, "operator"), "ggn");
    check_row(csv, 7, "ritz=100 weight=0.1");
}

/* A block of a layer is no spectrum of the whole operator. */
TEST_IN_STUDY(test_layers)
{
    const struct ks_csv *csv;

    set_study("[analyze head]\nlayer = 4\n");
    write_analysis("head", "hessian", 4, "trace");
    csv = make_table("layers", 40);
    assert_int_equal(csv->rows, 1);
    check_row(csv, 0, "layer=4 analysis=head env_step=12");
    assert_close(cell_number(csv, 0, "trace"), 30, 1e-9); /* 12 times the IQM of 1 2 3 4 */
    assert_true(cell_number(csv, 0, "trace_low") < 30 && cell_number(csv, 0, "trace_high") > 30);
    write_analysis("head", "hessian", 4, "sharpness_ratio");
    csv = make_table("sharpness", 0);
    assert_int_equal(csv->rows, 0);
}

TEST_IN_STUDY(test_sharpness)
{
    const struct ks_csv *csv;

    set_study("[analyze adam]\noperator = preconditioned\n");
    write_analysis("adam", "preconditioned", -1, "sharpness_ratio");
    csv = make_table("preconditioned_return", 0);
    assert_int_equal(csv->rows, 2);
    check_row(csv, 0, "analysis=adam lambda_max=3.5");
    csv = make_table("sharpness", 0);
    assert_int_equal(csv->rows, CHECKPOINTS + 1);
    check_row(csv, 1, "operator=preconditioned analysis=adam");
    assert_close(cell_number(csv, 1, "sharpness_ratio"), 10, 1e-9); /* 4 times 2.5 */
    check_row(csv, 1, "lambda_max=3.5 sharpness_ratio_low=-");
}

/* The IQM over seeds of each metric; later steps than the study's, and empty cells, do not count. A
 * step with two rows has the number of the first that has one. */
TEST_IN_STUDY(test_norms)
{
    const struct ks_csv *csv;

    for (size_t i = 0; i < SEEDS; i++) {
        double norm = (double)(i + 1);

        write_returns(
            "bn+wn+ce", i,
            text_of("env_step,critic_param_norm,critic_grad_norm,return_mean\n0,%g,nan,1\n6,,,2\n"
                    "6,%g,%g,nan\n12,%g,3,3\n12,,,\n14,99,99,99\n",
                    norm, 10 * norm, 5 * norm, i == 3 ? NAN : 7.));
    }
    csv = make_table("norms", 0);
    assert_int_equal(csv->rows, 3 + 6); /* ln+mse has six steps without these columns */
    assert_string_equal(cell(csv, 1, "env_step"), "6");
    check_row(csv, 0, "param_norm=2.5 grad_norm=-");
    check_row(csv, 1, "param_norm=25 grad_norm=12.5");
    assert_close(cell_number(csv, 2, "param_norm"), 7, 1e-12);
    assert_string_equal(cell(csv, 1, "effective_lr"), "-");
    assert_string_equal(cell(csv, 3, "param_norm"), "-");
}

/* A study of this task without spectra whose run is over. */
static void make_task_study(const char *architecture, const char *critic, const char *actor)
{
    const char *folder = text_of("runs/cartpole-swingup/%s/seed0", architecture);

    write_text("study.study",
               text_of("[study]\nenv = cartpole-swingup\narchitectures = %s\nseeds = 0\n"
                       "steps = 12\n[train]\ncheckpoints = 3\nrandom_steps = 1\n"
                       "evaluations = 2\n",
                       architecture));
    write_text(text_of("%s/run.json", folder),
               text_of("{\"state\": \"finished\", \"critic\": \"%s\", \"actor\": \"%s\"}\n", critic,
                       actor));
    write_text(text_of("%s/progress.csv", folder),
               "env_step,update,return_mean,updates_per_second\n0,0,5,nan\n6,10,7,5\n12,40,9,10\n");
}

/* By hand: 5 observations and 1 action; kernels 6 x 4 and 4 x 1, biases 4 and 1; two critics, 256
 * rows (512 with batch normalization). The actor: kernels 5 x 3 and 3 x 2, biases 3 and 2, and 256
 * rows with batch normalization, too. 10 updates at 5 per second and 30 at 10 take 5 seconds. */
TEST_IN_STUDY(test_efficiency)
{
    const char *actor = "dense 3\\nbatchnorm\\nrelu\\ndense 2\\npolicy tanh-gaussian\\n";
    const struct ks_csv *csv;

    make_task_study("ln+mse", "dense 4\\nrelu\\ndense 1\\nloss mse\\n", actor);
    csv = make_table("efficiency", 0);
    assert_int_equal(csv->rows, 1);
    assert_close(cell_number(csv, 0, "parameters"), 2 * (24 + 4 + 4 + 1), 0);
    assert_close(cell_number(csv, 0, "flops"), 2. * 256 * (4 * 24 + 6 * 4), 0);
    assert_close(cell_number(csv, 0, "actor_parameters"), 15 + 3 + 2 * 3 + 6 + 2, 0);
    assert_close(cell_number(csv, 0, "actor_flops"), 256. * (4 * 15 + 6 * 6), 0);
    check_row(csv, 0, "updates_per_second=8 return=9");
    make_task_study("ln+mse", "batchnorm\\ndense 4\\nrelu\\ndense 1\\nloss mse\\n", actor);
    csv = make_table("efficiency", 0);
    assert_close(cell_number(csv, 0, "flops"), 2. * 512 * (4 * 24 + 6 * 4), 0);
}

/* Of an unknown task, or without run.json, the cost is unknown. */
TEST_IN_STUDY(test_unknown_cost)
{
    const struct ks_csv *csv = make_table("efficiency", 0);

    assert_int_equal(csv->rows, 2);
    check_row(
        csv, 0,
        "parameters=- flops=- actor_parameters=- actor_flops=- updates_per_second=- return=250");
}

/* A system's file that is not where the study had it: its cost is unknown, the rest is not. */
TEST_IN_STUDY(test_system_without_its_file)
{
    const struct ks_csv *csv;

    make_task_study("own.system", "dense 4\\nrelu\\ndense 1\\nloss mse\\n", "");
    csv = make_table("efficiency", 0);
    assert_int_equal(csv->rows, 1);
    check_row(csv, 0, "parameters=- updates_per_second=8");
}

/* Every step multiplies the distance by (kappa - 1) / (kappa + 1). */
TEST_IN_STUDY(test_quadratics)
{
    const struct ks_csv *csv = make_table("quadratics", 0);

    assert_int_equal(csv->rows, 6 * 101);
    for (size_t i = 0; i < csv->rows; i++) {
        double kappa = cell_number(csv, i, "kappa"), step = cell_number(csv, i, "step");
        double factor = pow((kappa - 1) / (kappa + 1), step), x = cell_number(csv, i, "x1");

        assert_close(cell_number(csv, i, "distance"), factor, 1e-9 * factor + 1e-15);
        assert_close(x, factor, 1e-9 * factor + 1e-15);
        assert_close(cell_number(csv, i, "value"), x * x * (1 + 1 / kappa) / 2,
                     1e-8 * x * x + 1e-15);
    }
}
