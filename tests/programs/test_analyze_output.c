/* The files and the printed output of the analyzer program, on small checkpoints that the test
 * writes. */
#include "small_critics.h"

#include "io/file.h"

/* The attributes of vector files. */
TEST(test_attributes_of_vectors)
{
    const char *name = archs[0].name;
    size_t n = dimension(archs[0].text);
    double *v = hold(calloc(n, sizeof *v));

    assert_ok(ks_vectors_write(file("v"), &(struct ks_vectors){1, n, v, NULL, NULL}));
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

/* JSON has NAME_state next to a ratio and next to any null. */
static void check_state(const json_t *object, const char *name, double value)
{
    const char *expected = isnan(value) ? "unresolved" : isinf(value) ? "infinite" : "finite";
    const char *found;

    found = json_string_value(json_object_get(object, text_of("%s_state", name)));
    if (isfinite(value) && strncmp(name, "kappa", 5) != 0)
        assert_null(found);
    else
        assert_string_equal(found, expected);
}

/* Where a cell of CSV ends: at the comma or the end of the line behind it. */
static const char *cell_end(const char *at)
{
    for (bool quoted = false; *at && (quoted || !strchr(",\n", *at)); at++)
        quoted ^= *at == '"';
    return at;
}

/* CSV has an empty cell where JSON has null, and as many cells in every line. */
static void check_csv(void)
{
    size_t cells = 0, n = 0;

    assert_null(strstr(printed, "nan"));
    assert_null(strstr(printed, "inf"));
    assert_shows(",,");
    for (const char *c = printed; *c; c++) {
        c = cell_end(c);
        n++;
        if (*c != '\n')
            continue;
        assert_true(cells == 0 || n == cells);
        cells = n, n = 0;
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
TEST(test_spectrum_file)
{
    struct ks_spectrum *s = spectrum("bn+ce", "--probes 2 --order 40 --seed 5 --json -q");
    char digest[KS_SHA256_TEXT];
    json_t *object = read_json("out.txt");
    const char *first;

    assert_string_equal(complained, "");
    check_string(s, "checkpoint", "bn+ce.h5");
    assert_ok(ks_sha256_file(file("bn+ce"), digest));
    check_string(s, "checkpoint_sha256", digest);
    check_string(s, "operator", "hessian");
    check_string(s, "rewards", "normalized");
    check_string(s, "batchnorm", "train");
    check_string(s, "loss_kind", "ce");
    check_string(s, "precision", "f32");
    check_integer(s, "order", 40);
    check_integer(s, "probes", 2);
    check_integer(s, "probe_seed", 5);
    check_integer(s, "dimension", (int64_t)dimension(archs[0].text));
    check_integer(s, "batches", MINIBATCHES);
    check_integer(s, "critic", -1);
    check_integer(s, "layer", -1);
    check_string(s, "env", "dog-trot"); /* copied from the checkpoint */
    check_integer(s, "env_step", 50000);
    assert_int_equal(attribute(s, "returns")->n, 2);
    assert_non_null(attribute(s, "blas_kernel"));
    check_string(s, "products", ks_products_names[ks_products_choose(KS_PRODUCTS_AUTO)]);
    check_weights(s);
    assert_true(s->n_grid > 100);
    first = json_object_iter_key(json_object_iter(object));
    assert_string_equal(first, "checkpoint");
    assert_int_equal(json_integer_value(json_object_get(object, "order")), 40);
    assert_string_equal(json_string_value(json_object_get(object, "basis_precision")), "f64");
    assert_int_equal(json_integer_value(json_object_get(object, "threads")),
                     attribute(s, "threads")->integer);
    assert_null(json_object_get(object, "compat"));
    for (size_t i = 0; i < s->statistics.n; i++) {
        double value = s->statistics.list[i].number;
        json_t *shown = json_object_get(object, s->statistics.list[i].name);

        assert_non_null(shown);
        assert_true(isfinite(value) ? json_number_value(shown) == value : json_is_null(shown));
        check_state(object, s->statistics.list[i].name, value);
    }
    assert_true(isfinite(ks_statistic(s, "kappa_m30")) && isfinite(ks_statistic(s, "trace_se")));
    check_string(s, "claim", json_string_value(json_object_get(object, "claim")));
}

/* What layers multiplied by is recorded, in JSON and in the file. */
TEST(test_products)
{
    static const struct {
        const char *options, *products;
    } runs[] = {{"--products blas", "blas"},
                {"--products split3", "split3"},
                {"--products auto --precision f64", "blas"},
                {"--compat xqc", "blas"}};

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct ks_spectrum *s = spectrum("bn+ce", text_of("--order 5 --json %s", runs[i].options));

        check_string(s, "products", runs[i].products);
        assert_shows(text_of("\"products\":\"%s\"", runs[i].products));
        assert_int_equal(strstr(complained, "has no AMX") != NULL,
                         i == 1 && ks_products_warning(KS_PRODUCTS_SPLIT3));
    }
}

TEST(test_csv)
{
    assert_runs("--csv --order 20 bn+ce.h5 ln+ce.h5");
    assert_string_equal(text_of("%.10s", printed), "checkpoint");
    assert_shows("\nln+ce.h5,hessian,train,f32,20,");
    check_csv();
    assert_runs("--csv --order 20 --compat xqc ln+ce.h5");
    assert_shows(",basis_precision,rewards,compat,lambda_max,");
    assert_shows(",f32,normalized,xqc,");
}

/* The text with its paragraphs on one line each. */
static const char *joined(const char *text)
{
    static char line[8192];

    snprintf(line, sizeof line, "%s", text);
    for (char *at; (at = strstr(line, "\n  "));)
        memmove(at, at + 2, strlen(at + 2) + 1);
    return line;
}

/* One line per checkpoint, all of the same width, and below them the claims. */
TEST(test_table)
{
    const char *at = printed;
    size_t width;

    assert_runs("--order 40 bn+ce.h5 dense+mse.h5");
    width = strcspn(at, "\n");
    for (size_t i = 0; i < 3; i++, at += width + 1)
        assert_int_equal(strcspn(at, "\n"), width);
    assert_int_equal(strncmp(at, "\nbn+ce.h5\n", 10), 0);
    at = strstr(at, "\n\ndense+mse.h5\n");
    assert_non_null(at);
    at = joined(at);
    assert_contains(at, "absolute Ritz value at m = 40, is ");
    assert_contains(at, " from m = 30 to 40.\n");
    assert_runs("--order 1 bn+ce.h5"); /* one Ritz value has no kurtosis */
    assert_shows(" - ");
    assert_null(strstr(printed, "nan"));
    assert_runs("--order 40 --no-certificates bn+ce.h5");
    assert_shows("uncertified");
}

/* A statistic that is NaN is null in JSON; the end of the Krylov space is reported. */
TEST(test_breakdown)
{
    struct ks_checkpoint *c = make("dense 1 bias=no\nloss mse\n");
    struct ks_spectrum *s;

    memset(c->input, 0, MINIBATCHES * ROWS * IN * sizeof *c->input); /* the zero Hessian */
    save("zero", c);
    s = spectrum("zero", "--json");
    assert_shows("\"kappa\":null");
    assert_shows(" H is zero, so it has no condition number.\"");
    assert_complains("ends after 1 of 90 steps");
    assert_int_equal(s->steps[0], 1);
    assert_int_equal(s->order, 90);
    assert_runs("--tolerance 0.05 zero.h5");
    assert_shows("lambda_max: 0, tolerance 0.05 reached; lambda_min: 0, tolerance 0.05 reached.");
}

/* If an outlier is a multiple eigenvalue, kurtosis_spectral is absent, but CSV keeps its column. */
TEST(test_absent_statistic)
{
    struct ks_checkpoint *c = make("dense 1 bias=no\nloss mse\n");
    struct ks_spectrum *s;

    for (size_t i = 0; i < MINIBATCHES * ROWS * IN; i++)
        c->input[i] = i % IN == 0;
    /* with the weight decay: two different eigenvalues */
    save("two", c);
    s = spectrum("two", "--probes 8 --weight-decay 1");
    assert_null(ks_attribute_find(&s->statistics, "kurtosis_spectral"));
    assert_runs("--csv --probes 8 --weight-decay 1 two.h5 bn+ce.h5");
    check_csv();
}

/* The value in row `row` of the printed CSV's column of that name, without commas in cells. */
static const char *csv_cell(size_t row, const char *name, char cell[64])
{
    const char *header = printed, *at = printed;

    for (size_t i = 0; i < row; i++)
        at = strchr(at, '\n') + 1;
    while (strncmp(header, name, strlen(name)) != 0 || !strchr(",\n", header[strlen(name)])) {
        if (*cell_end(header) == '\n')
            fail_msg("no column %s in '%s'", name, printed);
        header = cell_end(header) + 1;
        at = cell_end(at) + 1;
    }
    snprintf(cell, 64, "%.*s", (int)(cell_end(at) - at), at);
    return cell;
}

/* With a tolerance, spectra have different statistics: for the identity, which is the weight decay
 * of a loss without curvature, one step is enough, so there is no statistic after 30. Numbers stand
 * under their names whichever checkpoint is first. */
TEST(test_csv_of_different_spectra)
{
    static const char OPTIONS[] = "--csv --weight-decay 1 --order 40 --tolerance lambda_max=1e-14 ";
    struct ks_checkpoint *c = make("dense 1 bias=no\nloss mse\n");
    char alone[64], beside[64];

    memset(c->input, 0, MINIBATCHES * ROWS * IN * sizeof *c->input);
    save("one", c);
    for (size_t first = 0; first < 2; first++) {
        static const char *const files[] = {"bn+ce.h5", "one.h5"};

        for (size_t row = 1; row <= 2; row++) {
            const char *of = files[row == 1 ? first : 1 - first];

            assert_runs("%s%s", OPTIONS, of);
            csv_cell(1, "kappa", alone);
            assert_runs("%s%s %s", OPTIONS, files[first], files[1 - first]);
            check_csv();
            assert_string_equal(csv_cell(row, "checkpoint", beside), of);
            assert_string_equal(csv_cell(row, "kappa", beside), alone);
        }
        if (first == 0)
            assert_null(strstr(complained, "--csv leaves out"));
        else
            assert_complains("bn+ce.h5: --csv leaves out ");
    }
}

CMFixtureFunction tests_setup = write_checkpoints, tests_teardown = scratch_remove;
