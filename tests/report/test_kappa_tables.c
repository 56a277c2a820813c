/* The tables with pooled kappas and the limits of their rounding errors. */
#include "studies.h"

/* Gives the spectra of all seeds and checkpoints of an analysis this kappa, in float64 too unless
 * `kappa_f64` is NULL, and a largest absolute eigenvalue of 4 with this noise floor. */
static void write_kappas(const char *analysis, const double kappa[SEEDS],
                         const double kappa_f64[SEEDS], double floor)
{
    for (size_t i = 0; i < SEEDS; i++)
        for (size_t j = 0; j <= CHECKPOINTS; j++) {
            struct place place = {"bn+wn+ce", i, STEP[j], analysis};
            struct known k;

            make_known(&k, &place);
            attribute_number(&k.summary[0], "kappa", kappa[i]);
            attribute_number(&k.summary[3], "lambda_max", 2);
            attribute_number(&k.summary[5], "lambda_min", -4);
            attribute_number(&k.summary[6], "noise_floor", floor);
            if (kappa_f64)
                attribute_number(&k.summary[7], "kappa_f64", kappa_f64[i]);
            write_known(&k, &place);
        }
}

static void write_kappa(const char *analysis, const double kappa[SEEDS], double floor)
{
    write_kappas(analysis, kappa, NULL, floor);
}

/* Of the published code's analysis: at a limit of 400, two of four kappas are beyond it; a third
 * one is at it. Two other start vectors change the IQM of 350 to 300 and 450. */
TEST_IN_STUDY(test_kappa_return)
{
    static const double kappa[][SEEDS] = {
        {200, 300, 400, 500}, {150, 250, 350, 450}, {300, 400, 500, 600}};
    const struct ks_csv *csv = make_table("kappa_return", 0);

    check_row(csv, 0,
              "analysis=standard kappa=266.6666667 first_return=10 noise_limit=- beyond_noise=- "
              "moved_by_rounding=- "
              "kappa_starts=1");
    set_study("[analyze xqc]\ncompat = xqc\n[analyze xqc1]\ncompat = xqc\nseed = 1\n"
              "[analyze xqc2]\nseed = 2\ncompat = xqc\n[analyze last]\ncompat = xqc\nseed = 3\n"
              "checkpoints = last\n");
    write_kappa("xqc", kappa[0], 0.01);
    write_kappa("xqc1", kappa[1], 0.01);
    write_kappa("xqc2", kappa[2], 0.01);
    write_kappa("last", kappa[2], 1e-9);
    csv = make_table("kappa_return", 0);
    assert_int_equal(csv->rows, 2);
    check_row(csv, 0,
              "analysis=xqc kappa=350 noise_limit=400 beyond_noise=0.25 moved_by_rounding=- "
              "kappa_starts=3 "
              "kappa_starts_least=300 kappa_starts_most=450");
    assert_string_equal(cell(csv, 1, "kappa"), "-"); /* the other architecture has none */
}

/* Of four spectra with kappa in float64, two are moved by more than a tenth: up and down. A
 * spectrum without it does not count. */
TEST_IN_STUDY(test_moved_by_rounding)
{
    static const double kappa[SEEDS] = {200, 300, 400, 500},
                        kappa_f64[SEEDS] = {219, 331, 380, 450};
    const struct ks_csv *csv;
    struct place place = {"bn+wn+ce", 1, STEP[1], "xqc"};
    struct known k;

    set_study("[analyze xqc]\ncompat = xqc\n");
    write_kappas("xqc", kappa, kappa_f64, 1e-9);
    csv = make_table("kappa_return", 0);
    check_row(csv, 0, "analysis=xqc kappa=350 beyond_noise=0 moved_by_rounding=0.5");
    make_known(&k, &place);
    write_known(&k, &place);
    csv = make_table("kappa", 0);
    check_row(csv, 2 * (CHECKPOINTS + 1) + 1, "analysis=xqc moved_by_rounding=0.3333333333");
}

/* Over training, the analysis as in the published code has rows beside the standard one, if it
 * is of all later checkpoints. */
TEST_IN_STUDY(test_paper_curves)
{
    static const double kappa[SEEDS] = {200, 300, 400, 500};
    const struct ks_csv *csv;

    set_study("[analyze xqc]\ncompat = xqc\ncheckpoints = trained\n");
    write_kappa("xqc", kappa, 0.01);
    csv = make_table("kappa", 0);
    assert_int_equal(csv->rows, 2 * (CHECKPOINTS + 1) + 2 * CHECKPOINTS);
    check_row(csv, 8, "analysis=xqc env_step=4 kappa=350 noise_limit=400 beyond_noise=0.25");
    csv = make_table("ritz", 0);
    assert_int_equal(csv->rows, 2 * (CHECKPOINTS + 1) * 4 + (CHECKPOINTS + 1) * 4);
    assert_string_equal(cell(csv, csv->rows - 1, "analysis"), "xqc");
    set_study("[analyze xqc]\ncompat = xqc\ncheckpoints = last\n");
    csv = make_table("kappa", 0);
    assert_int_equal(csv->rows, 2 * (CHECKPOINTS + 1));
    write_text("study.study", /* one later checkpoint is no curve */
               "[study]\nenv = toy\narchitectures = ln+mse bn+wn+ce\nseeds = 0..3\nsteps = 12\n"
               "[analyze xqc]\ncompat = xqc\ncheckpoints = last\n"
               "[train]\ncheckpoints = 1\nrandom_steps = 1\nevaluations = 2\n");
    csv = make_table("kappa", 0);
    assert_string_equal(cell(csv, csv->rows - 1, "analysis"), "standard");
}
