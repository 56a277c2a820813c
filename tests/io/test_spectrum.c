/* Spectrum files: round trips of Lanczos and exact spectra, and malformed files. */
#include "io/spectrum.h"

#include "example.h"

enum {
    PROBES = 2,
    ORDER = 7,
    BROKEN = 4,
    GRID = 50,
    BAND = 30
}; /* probe 1 broke down after BROKEN steps */

static double *normal(size_t n)
{
    struct ks_rng rng = ks_rng_start(3, n);

    return numbers(&rng, n);
}

static double *padded(bool lanczos)
{
    double *values = normal(PROBES * ORDER);

    for (size_t i = BROKEN; lanczos && i < ORDER; i++)
        values[ORDER + i] = NAN;
    return values;
}

static struct ks_spectrum *make_spectrum(bool lanczos)
{
    static const char SUM[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    struct ks_spectrum *s;

    assert_ok(ks_alloc(1, sizeof *s, &s));
    ks_attribute_add_string(&s->attributes, "checkpoint_sha256", SUM);
    ks_attribute_add_integer(&s->attributes, "order", ORDER);
    ks_attribute_add_number(&s->statistics, "lambda_max", 1 / 3.0);
    s->probes = PROBES;
    s->order = ORDER;
    s->ritz = padded(lanczos);
    s->weight = padded(lanczos);
    s->residual = padded(lanczos);
    if (lanczos) {
        s->alpha = padded(true);
        s->beta = padded(true);
        assert_ok(ks_alloc(PROBES, sizeof *s->steps, &s->steps));
        s->steps[0] = ORDER;
        s->steps[1] = BROKEN;
        s->n_grid = GRID;
        s->grid = normal(GRID);
        s->density = normal(GRID);
        s->symlog_grid = normal(GRID);
        s->symlog_density = normal(GRID);
        s->n_band = BAND;
        s->band_at = normal(BAND);
        s->band_lower = normal(BAND);
        s->band_upper = normal(BAND);
    }
    return s;
}

static void same_spectrum(const struct ks_spectrum *a, const struct ks_spectrum *b)
{
    const size_t n = PROBES * ORDER;

    assert_int_equal(a->attributes.n, b->attributes.n); /* except format and version */
    assert_string_equal(ks_attribute_find(&a->attributes, "checkpoint_sha256")->string,
                        b->attributes.list[0].string);
    assert_int_equal(ks_attribute_find(&a->attributes, "order")->integer, ORDER);
    assert_int_equal(a->statistics.n, b->statistics.n);
    assert_true(a->statistics.list[0].number == b->statistics.list[0].number);
    assert_int_equal(a->probes, b->probes);
    assert_int_equal(a->order, b->order);
    assert_int_equal(a->n_grid, b->n_grid);
    same_numbers(n, a->ritz, b->ritz, false);
    same_numbers(n, a->weight, b->weight, false);
    same_numbers(n, a->residual, b->residual, false);
    same_numbers(n, a->alpha, b->alpha, false);
    same_numbers(n, a->beta, b->beta, false);
    assert_int_equal(!a->steps, !b->steps);
    for (size_t i = 0; a->steps && i < PROBES; i++)
        assert_int_equal(a->steps[i], b->steps[i]);
    same_numbers(GRID, a->grid, b->grid, false);
    same_numbers(GRID, a->density, b->density, false);
    same_numbers(GRID, a->symlog_grid, b->symlog_grid, false);
    same_numbers(GRID, a->symlog_density, b->symlog_density, false);
    assert_int_equal(a->n_band, b->n_band);
    same_numbers(BAND, a->band_at, b->band_at, false);
    same_numbers(BAND, a->band_lower, b->band_lower, false);
    same_numbers(BAND, a->band_upper, b->band_upper, false);
}

TEST_CLEAN(test_round_trip)
{
    const char *path = scratch("a.spectrum.h5");

    for (int lanczos = 0; lanczos < 2; lanczos++) {
        KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *written = make_spectrum(lanczos);
        KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *read = NULL;

        assert_ok(ks_spectrum_write(path, written));
        assert_ok(ks_spectrum_read(path, &read));
        same_spectrum(read, written);
    }
    assert_int_equal(scratch_files(false), 1);
}

static void refused(const char *path, const char *words)
{
    struct ks_spectrum *s;

    assert_fails(ks_spectrum_read(path, &s), KS_FORMAT, words);
    assert_null(s);
    assert_one_line(path);
}

TEST_CLEAN(test_shapes)
{
    static const struct {
        const char *object;
        int rank; /* 0: the object is removed */
        hsize_t rows, columns;
        const char *words;
    } changes[] = {
        {"/lanczos/alpha", 2, PROBES, ORDER + 1, "expected shape [2, 7], found [2, 8]"},
        {"/lanczos/beta", 2, PROBES, ORDER + 1, "expected shape [2, 7], found [2, 8]"},
        {"/ritz/weight", 2, PROBES, ORDER + 1, "expected shape [2, 7], found [2, 8]"},
        {"/ritz/residual", 2, PROBES, ORDER + 1, "expected shape [2, 7], found [2, 8]"},
        {"/lanczos/alpha", 0, 0, 0, "/lanczos/alpha: missing"},
        {"/lanczos/beta", 0, 0, 0, "/lanczos/beta: missing"},
        {"/ritz/weight", 0, 0, 0, "/ritz/weight: missing"},
        {"/ritz/residual", 0, 0, 0, "/ritz/residual: missing"},
        {"/density/value", 1, GRID - 1, 0, "expected shape [50], found [49]"},
        {"/density/symlog_grid", 1, GRID - 1, 0, "expected shape [50], found [49]"},
        {"/density/symlog_value", 1, GRID - 1, 0, "expected shape [50], found [49]"},
        {"/density/grid", 2, GRID, 1, "/density/grid: expected 1 dimension"},
        {"/distribution/lower", 1, BAND + 1, 0, "expected shape [30], found [31]"},
        {"/distribution/upper", 1, BAND + 1, 0, "expected shape [30], found [31]"},
        {"/distribution/eigenvalue", 2, BAND, 1,
         "/distribution/eigenvalue: expected 1 dimension, found 2"},
        {"/ritz/value", 1, ORDER, 0, "/ritz/value: expected at least one number, in 2 dimensions"},
        {"/summary", 0, 0, 0, "/summary: missing"},
        {"/lanczos/steps", 1, PROBES + 1, 0, "/lanczos/steps: expected shape [2], found [3]"},
    };
    const char *path = scratch("a.spectrum.h5");

    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct ks_spectrum *s = make_spectrum(true);

        assert_ok(ks_spectrum_write(path, s));
        ks_spectrum_free(s);
        if (changes[i].rank > 0)
            replace(
                path, changes[i].object, H5T_IEEE_F64LE,
                &(struct stored){changes[i].rank, {changes[i].rows, changes[i].columns}, NULL, 0});
        else
            remove_object(path, changes[i].object);
        refused(path, changes[i].words);
    }
}

/* NaN is allowed only after the last step of a probe. */
TEST_CLEAN(test_padding)
{
    const char *path = scratch("a.spectrum.h5");
    KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *s = make_spectrum(true);

    s->steps[1] = BROKEN + 1;
    assert_ok(ks_spectrum_write(path, s));
    refused(path, "/lanczos/alpha: expected finite numbers, found nan at element 4");
    s->steps[1] = ORDER + 1;
    assert_ok(ks_spectrum_write(path, s));
    refused(path, "/lanczos/steps: expected 0 to 7, found 8");
}

TEST_CLEAN(test_other_files)
{
    const char *path = scratch("v.h5");
    const double vector[3] = {1, 2, 3};
    struct ks_spectrum *s;

    assert_ok(ks_vectors_write(path, &(struct ks_vectors){1, 3, vector, NULL, NULL}));
    refused(path, "expected \"kappascope-spectrum\", found \"kappascope-vector\"");
    assert_fails(ks_spectrum_read(scratch("none.h5"), &s), KS_IO, "No such file");
}

TEST_CLEAN(test_allocation_failures)
{
    const char *path = scratch("a.spectrum.h5");
    KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *written = make_spectrum(true), *read = NULL;
    struct starved writing = {.least = 3}, reading = {.least = 5};

    while (starving(&writing)) {
        writing.status = ks_spectrum_write(path, written);
        assert_int_equal(scratch_files(false), writing.status == KS_OK);
    }
    while (starving(&reading))
        reading.status = ks_spectrum_read(path, &read);
    same_spectrum(read, written);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
