/* --layers: the table of all layers' blocks, by running the program. */
#include "small_critics.h"
#include "spectra.h"

#include "io/csv.h"

static int write_critics(void **state)
{
    struct ks_rng rng = ks_rng_start(3, 0);

    if (scratch_make(state) != 0)
        return -1;
    for (size_t i = 0; i < ARCHS; i += 5) {
        struct ks_checkpoint *c = make(archs[i].text);
        size_t n = dimension(archs[i].text);

        c->adam_step = 20;
        c->adam = KS_ADAM_DEFAULTS;
        c->adam_m = numbers(&rng, n);
        c->adam_v = numbers(&rng, n);
        for (size_t k = 0; k < n; k++)
            c->adam_v[k] = k < n / 2 && k < 36 ? 0 : 0.1 + fabs(c->adam_v[k]);
        save(archs[i].name, c);
    }
    return 0;
}

static const struct ks_csv *table(const char *arguments)
{
    assert_runs("-q --layers --csv %s", arguments);
    return read_csv("out.txt");
}

static void same(const struct ks_csv *csv, size_t row, const struct ks_spectrum *s,
                 const char *name)
{
    double expected = ks_statistic(s, name), found = cell_number(csv, row, name);

    if (found != expected && !(isnan(found) && !isfinite(expected)))
        fail_msg("row %zu: %s is %.17g, expected %.17g", row, name, found, expected);
}

/* Each row equals an analysis of its layer alone; together the rows have all parameters. */
static void check_rows(const char *name, const char *options, size_t rows, size_t n)
{
    static const char *const statistics[] = {
        "lambda_max", "lambda_max_data_se", "kappa_effective_bound", "kurtosis", "trace",
        "trace_se"};
    const struct ks_csv *csv = table(text_of("%s %s.h5", options, name));
    double all = 0, share = 0;

    assert_int_equal(csv->rows, rows);
    for (size_t i = 0; i < rows; i++) {
        struct ks_spectrum *s = spectrum(
            name, text_of("%s --layer %.0f", options, cell_number(csv, i, "layer")));

        for (size_t k = 0; k < sizeof statistics / sizeof *statistics; k++)
            same(csv, i, s, statistics[k]);
        assert_close(cell_number(csv, i, "dimension"),
                     ks_attribute_number(&s->attributes, "dimension"), 0);
        all += cell_number(csv, i, "dimension");
        share += cell_number(csv, i, "trace_share");
    }
    assert_close(all, (double)n, 0);
    assert_close(share, 1, 1e-12);
}

/* A layer's name, as in a checkpoint, is as good as its number. */
TEST(test_layer_name)
{
    struct ks_spectrum *number = spectrum("bn+ce", "--order 12 --layer 2"),
                       *name = spectrum("bn+ce", "--order 12 --layer 02_batchnorm");

    assert_close(ks_statistic(name, "lambda_max"), ks_statistic(number, "lambda_max"), 0);
    assert_close(ks_attribute_number(&name->attributes, "layer"), 2, 0);
}

/* The eigenvalues of single arrays equal the eigenvalues of their block of the dense Hessian, here
 * of the kernel [5, 6] at 0 and the head's bias at 84 of each critic, of 85 parameters. */
TEST(test_arrays)
{
    const size_t n = dimension(archs[5].text), p = n / ENSEMBLE, block = ENSEMBLE * 31;
    double *h = dense_hessian("dense+mse", n), *part = hold(calloc(block * block, sizeof *part));
    const double *eigenvalue;
    struct ks_spectrum *s = spectrum("dense+mse",
                                     "--exact --precision f64 --array 4/bias,00_dense/kernel");
    size_t index[ENSEMBLE * 31];

    assert_int_equal(p, 85);
    for (size_t k = 0; k < block; k++)
        index[k] = k / 31 * p + (k % 31 < 30 ? k % 31 : 84);
    for (size_t k = 0; k < block * block; k++)
        part[k] = h[index[k / block] * n + index[k % block]];
    eigenvalue = eigenvalues(block, part);
    assert_int_equal(s->order, block);
    for (size_t k = 0; k < block; k++)
        assert_close(s->ritz[k], eigenvalue[k], 1e-13 * eigenvalue[block - 1]);
    assert_string_equal(ks_attribute_text(&s->attributes, "array"), "4/bias,00_dense/kernel");
    assert_close(ks_attribute_number(&s->attributes, "layer"), -1, 0);
    assert_non_null(
        strstr(ks_attribute_text(&s->attributes, "claim"), "H (4/bias,00_dense/kernel)"));
}

/* All arrays of a layer are the layer, whatever the operator; of the projected kernel the manifold
 * has its normals. */
TEST(test_arrays_of_layer)
{
    static const struct {
        const char *critic, *options, *arrays;
        int layer;
    } same_blocks[] = {
        {"bn+ce", "--order 12", "2/bias,2/scale", 2},
        {"bn+ce", "--order 12 --operator ggn --critic 1", "07_dense/kernel,07_dense/bias", 7},
        {"bn+ce", "--compat xqc --order 12", "7/kernel,7/bias", 7},
        {"dense+mse", "--operator preconditioned", "2/kernel,2/bias", 2},
        {"dense+mse", "--operator residual --weight-decay 0.1 --start gradient", "4/kernel,4/bias",
         4},
        {"sphere", "--operator manifold --precision f64", "0/kernel", 0},
    };

    save("sphere", settle(make("dense 6 bias=no project=unit\nrelu\ndense 1\nloss mse\n"), 1));
    for (size_t i = 0; i < sizeof same_blocks / sizeof *same_blocks; i++) {
        struct ks_spectrum *layer = spectrum(
            same_blocks[i].critic,
            text_of("%s --layer %d", same_blocks[i].options, same_blocks[i].layer));
        struct ks_spectrum *arrays = spectrum(
            same_blocks[i].critic,
            text_of("%s --array %s", same_blocks[i].options, same_blocks[i].arrays));

        assert_int_equal(arrays->statistics.n, layer->statistics.n);
        for (size_t k = 0; k < layer->statistics.n; k++)
            assert_memory_equal(&arrays->statistics.list[k].number,
                                &layer->statistics.list[k].number, sizeof(double));
        assert_string_equal(ks_attribute_text(&arrays->attributes, "array"), same_blocks[i].arrays);
        assert_close(ks_attribute_number(&arrays->attributes, "layer"), -1, 0);
        assert_contains(ks_attribute_text(&arrays->attributes, "claim"),
                        text_of("%s)", same_blocks[i].arrays));
        if (same_blocks[i].layer == 0)
            assert_close(ks_statistic(arrays, "null_dimension"), ENSEMBLE * 6, 0);
    }
}

TEST(test_rows)
{
    check_rows("bn+ce", "--order 12 --probes 2", 6, dimension(archs[0].text));
    check_rows("bn+ce", "--order 12 --critic 1 --operator ggn", 6,
               dimension(archs[0].text) / ENSEMBLE);
    check_rows("dense+mse", "--precision f64 --weight-decay 0.1", 3, dimension(archs[5].text));
}

/* The first layer of the first critic never had a gradient, so its dimension is smaller. */
TEST(test_moving)
{
    check_rows("dense+mse", "--operator preconditioned", 3, dimension(archs[5].text) - 36);
    check_rows("dense+mse", "--operator preconditioned --critic 0", 2,
               dimension(archs[5].text) / ENSEMBLE - 36);
}

/* The least --memory suffices and changes no bit. */
TEST(test_memory)
{
    static char before[sizeof printed];

    assert_runs("-q --layers --csv bn+ce.h5");
    memcpy(before, printed, sizeof before);
    assert_runs("-q --memory %zuK --layers --csv bn+ce.h5",
                least_memory("-q --layers --csv bn+ce.h5"));
    assert_string_equal(printed, before);
}

TEST(test_forms)
{
    json_t *object;
    size_t files = scratch_files(false);

    assert_runs("-q --layers dense+mse.h5 bn+ce.h5");
    assert_shows("  dense+mse.h5  04 dense");
    assert_shows("\n  bn+ce.h5      00 batchnorm");
    assert_runs("-q --layers --json bn+ce.h5");
    object = read_json("out.txt");
    assert_int_equal(json_array_size(json_object_get(object, "layers")), 6);
    assert_string_equal(json_string_value(json_object_get(object, "checkpoint")), "bn+ce.h5");
    assert_int_equal(scratch_files(false), files); /* no spectrum files */
}

TEST(test_refusals)
{
    static const char *const options[] = {"--layer 1", "--exact", "--compat xqc",
                                          "--name x",  "--out d", "--start gradient"};

    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        assert_int_equal(analyzer("--layers %s bn+ce.h5", options[i]), 2);
        assert_complains("--layers: expected no --");
    }
    analyzer_refuses("--layers --apply a.h5 --output b.h5 bn+ce.h5", "expected no --layers");
    analyzer_refuses("--layers --critic 2 bn+ce.h5", "--critic: expected 0 to 1, found 2");
}

CMFixtureFunction tests_setup = write_critics, tests_teardown = scratch_remove;
