/* The tables of a study, as files and in print. */
#include "studies.h"

#include "core/memory.h"

/* The tables of Ritz values, weights and densities: the probe that starts at the gradient only
 * affects checkpoints.csv. */
static void check_spectra_tables(void)
{
    const struct ks_csv *csv;

    csv = read_csv("tables/staircase.csv");
    assert_int_equal(csv->rows, 2 * 4);
    assert_string_equal(ks_csv_cell(csv, 3, 1), "50");
    assert_string_equal(ks_csv_cell(csv, 3, 2), "1");
    csv = read_csv("tables/ritz.csv");
    assert_int_equal(csv->rows, 2 * (CHECKPOINTS + 1) * 4);
    csv = read_csv("tables/density.csv");
    assert_string_equal(ks_csv_cell(csv, 0, 4), "-"); /* no standard error of one probe */
    csv = read_csv("tables/mass.csv");
    assert_string_equal(ks_csv_cell(csv, 0, 1), "0.5");
    check_row(csv, 0, "zero_mass_lower=0.25 zero_mass_upper=0.75");
}

TEST_IN_STUDY(test_tables)
{
    struct outcome *o = outcome_new(0);
    const struct ks_csv *csv;

    assert_ok(ks_tables_write(o->results, &o->table, 0));
    csv = read_csv("tables/checkpoints.csv");
    assert_int_equal(csv->rows, 2 * SEEDS * (CHECKPOINTS + 1));
    assert_close(cell_number(csv, 1, "kappa"), 1000,
                 0); /* ln+mse, seed 0, the first pooled checkpoint */
    check_row(csv, 0, "loss=mse");
    assert_string_equal(cell(csv, 0, "blas_kernel"), "");
    csv = read_csv("tables/returns.csv");
    assert_int_equal(csv->rows, 2 * SEEDS * 3);
    csv = read_csv("tables/kappa.csv");
    assert_int_equal(csv->rows, 2 * (CHECKPOINTS + 1));
    for (size_t k = 0; k < CHECKPOINTS; k++) { /* the IQM over seeds at each checkpoint */
        static const double expected[] = {75, 250, 600};

        assert_close(cell_number(csv, 1 + k, "kappa"), expected[k], 1e-9);
    }
    csv = read_csv("tables/summary.csv");
    assert_int_equal(csv->rows, 2);
    assert_string_equal(cell(csv, 0, "kappa_low"), "-"); /* undefined */
    check_row(csv, 0, "directions_1e2_lower=21.5 directions_1e2_most=36");
    assert_string_equal(cell(csv, 0, "kappa_q99_upper"), "-"); /* not resolved */
    assert_string_equal(cell(csv, 0, "kappa_gradient_90_upper"), "inf");
    check_spectra_tables();
}

/* A row for each variant of an architecture of the study; variants follow what they change, also if
 * the file has them first. */
TEST_IN_STUDY(test_variants)
{
    const struct ks_csv *csv;
    struct outcome *o;

    write_text("study.study",
               text_of("[variant alone]\narchitecture = bn+ce\nutd = 3\n"
                       "[variant changed]\narchitecture = bn+wn+ce\nbatch = 32\nutd = 4\n%s",
                       text_of(STUDY, "")));
    write_variant("alone", "bn+ce");
    write_variant("changed", "bn+wn+ce");
    o = outcome_new(0);
    assert_ok(ks_tables_write(o->results, &o->table, 0));
    csv = read_csv("tables/variants.csv");
    assert_int_equal(csv->rows, 1);
    check_row(csv, 0, "architecture=changed base=bn+wn+ce");
    assert_string_equal(cell(csv, 0, "changes"), "batch = 32; utd = 4");
    check_row(csv, 0, "return=8 base_return=250 kappa=5 lambda_max=2.5");
    csv = read_csv("tables/summary.csv");
    assert_int_equal(csv->rows, 4);
    for (size_t i = 0; i < 4; i++) {
        static const char *const order[] = {"alone", "bn+wn+ce", "changed", "ln+mse"};

        assert_string_equal(ks_csv_cell(csv, i, 0), order[i]);
    }
}

/* A further analysis has its own rows; its failed analyses are dropped there and do not affect the
 * rows of the standard analysis. */
TEST_IN_STUDY(test_further_analyses)
{
    const struct ks_csv *csv;
    struct outcome *o;

    set_study("[analyze xqc]\ncompat = xqc\n");
    for (size_t i = 0; i < SEEDS; i++)
        for (size_t k = 0; k <= CHECKPOINTS; k++) {
            write_spectrum(&(struct place){"ln+mse", i, STEP[k], "xqc"}, 5, false);
            if (i > 0 || k > 1)
                write_spectrum(&(struct place){"bn+wn+ce", i, STEP[k], "xqc"}, 3, false);
        }
    o = outcome_new(0);
    assert_warned(o->results, "bn+wn+ce, seed 0: 2 of 4 spectra of [analyze xqc] are missing");
    assert_int_equal(o->table.n_rows, 2);
    assert_int_equal(o->table.n_analyses, 2);
    assert_close(o->table.row[0].value[KS_KAPPA].value, 266.6667, 5e-5);
    assert_int_equal(o->table.row[0].dropped, 0);
    assert_close(o->table.row[2].value[KS_KAPPA].value, 3, 1e-12);
    assert_int_equal(o->table.row[2].dropped, 1); /* the other one is before the first update */
    assert_close(o->table.row[3].value[KS_KAPPA].value, 5, 1e-12);
    assert_ok(ks_tables_write(o->results, &o->table, 0));
    csv = read_csv("tables/summary.csv");
    assert_int_equal(csv->rows, 4);
    assert_string_equal(cell(csv, 1, "analysis"), "standard");
    assert_string_equal(cell(csv, 2, "analysis"), "xqc");
    csv = read_csv("tables/checkpoints.csv");
    assert_int_equal(csv->rows, 2 * 2 * SEEDS * (CHECKPOINTS + 1) - 2);
    assert_string_equal(cell(csv, 2, "analysis"), "standard");
    check_row(csv, 3, "analysis=xqc kappa=5");
    csv = read_csv("tables/kappa.csv"); /* a table for the plots */
    assert_int_equal(csv->rows, 2 * 2 * (CHECKPOINTS + 1));
}

/* A spectrum outside of the scope of its analysis is not missing and has no row. */
TEST_IN_STUDY(test_scopes)
{
    const struct ks_csv *csv;
    struct outcome *o;

    set_study("[analyze end]\ncheckpoints = last\narchitectures = ln+mse\n");
    for (size_t i = 1; i < SEEDS; i++)
        write_spectrum(&(struct place){"ln+mse", i, STEP[CHECKPOINTS], "end"}, 5, false);
    o = outcome_new(0);
    assert_warned(o->results, "ln+mse, seed 0: 1 of 1 spectra of [analyze end] are missing");
    assert_false(o->table.row[2].asked);
    assert_close(o->table.row[3].value[KS_KAPPA].value, 5, 1e-12);
    assert_int_equal(o->table.row[3].dropped, 1);
    assert_ok(ks_tables_write(o->results, &o->table, 0));
    csv = read_csv("tables/summary.csv");
    assert_int_equal(csv->rows, 3);
}

/* With `stop` the tables contain the steps up to it, and later ones do not count as missing. */
TEST_IN_STUDY(test_stopped_study)
{
    const struct ks_csv *csv;
    struct outcome *o;

    set_study("stop = 9\n");
    for (size_t i = 0; i < SEEDS; i++) {
        remove_spectrum(&(struct place){"ln+mse", i, 12, NULL});
        write_returns("ln+mse", i, "env_step,return_mean\n0,1\n6,2\n");
    }
    o = outcome_new(0);
    assert_int_equal(o->results->warnings.n, 0);
    assert_int_equal(o->table.n_rows, 2);
    assert_close(o->table.row[1].value[KS_RETURN].value, 2, 1e-12);
    assert_close(o->table.row[0].value[KS_RETURN].value, 20, 1e-12); /* not the later ones */
    assert_ok(ks_tables_write(o->results, &o->table, 0));
    csv = read_csv("tables/checkpoints.csv");
    assert_int_equal(csv->rows, 2 * SEEDS * CHECKPOINTS);
}

/* The area under a curve of normalized returns, for a task with these scores of random and of good
 * policies: (return - random) / (target - random); NaN where no scores are published. */
TEST_IN_STUDY(test_areas)
{
    static const struct {
        const char *task;
        double random, target;
    } cases[] = {{"toy", NAN, NAN},
                 {"dog-trot", 0, 1000},
                 {"Hopper-v4", 18.791, 3226},
                 {"HumanoidStandup-v4", NAN, NAN}};
    struct outcome *o;

    set_study("stop = 9\n");
    for (size_t i = 0; i < SEEDS; i++)
        write_returns("ln+mse", i, "env_step,return_mean\n0,100\n6,200\n");
    o = outcome_new(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double height = (150 - cases[i].random) / (cases[i].target - cases[i].random), area;
        ks_summary_clear(&o->table);
        free(o->results->own_study->env);
        assert_ok(ks_copy_string(cases[i].task, &o->results->own_study->env));
        assert_ok(ks_summary_table(o->results, 0, &o->table));
        area = o->table.row[1].value[KS_AREA].value;
        assert_true(isnan(height) ? isnan(area) : fabs(area - height) < 1e-15);
    }
}

TEST_IN_STUDY(test_printed_table)
{
    struct outcome *o = outcome_new(0);
    FILE *out = fopen(scratch("table"), "w");
    const char *text;
    size_t width;

    assert_non_null(out);
    assert_ok(ks_summary_print(o->results, &o->table, out));
    assert_int_equal(fclose(out), 0);
    text = file_text("table");
    width = strcspn(text, "\n");
    assert_contains(text, "266.7");
    assert_contains(text, "  21.5 to 33  123 or more           infinite  ");
    for (; *text; text += width + 1) /* all lines have the same width */
        assert_int_equal(strcspn(text, "\n"), width);
}

static ks_status make_tables(void)
{
    struct ks_summary_table table = {0};
    struct ks_results *results = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_results_read(scratch_folder, NULL, &results));
    KS_GO(ks_summary_table(results, 0, &table));
    KS_GO(ks_tables_write(results, &table, 0));
done:
    ks_summary_clear(&table);
    ks_results_free(results);
    return status;
}

/* Fails every one of the first allocations, then fewer and fewer of the later ones. */
TEST_IN_STUDY(test_tables_without_memory)
{
    for (struct starved s = {0}; starving(&s); s.n += s.n / 20)
        s.status = make_tables();
}
