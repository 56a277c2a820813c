/* Files of a few kilobytes that declare datasets of any size: chunked storage without any chunk
 * written. Their shapes tell how much memory they need, so they are refused before it is
 * allocated. */
#include "small_critics.h"

#include <sys/resource.h>
#include <sys/time.h>

/* A float32 dataset without any chunk, which is read as zeros. */
static void declare(hid_t file, const char *name, hsize_t a, hsize_t b, hsize_t c)
{
    const hsize_t dims[] = {a, b, c}, chunk[] = {a < 1000 ? a : 1000, b < 100 ? b : 100, 1};
    int rank = c > 0 ? 3 : 2;
    hid_t space = H5Screate_simple(rank, dims, NULL), list = H5Pcreate(H5P_DATASET_CREATE), set;

    assert_true(H5Pset_chunk(list, rank, chunk) >= 0);
    set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
}

struct sizes {
    size_t ensemble, minibatches, rows, in, width;
};

/* A critic of two layers with `width` units, in NAME.h5. */
static void write_declared(const char *name, const struct sizes *s)
{
    struct ks_h5 *h5;

    assert_ok(ks_h5_create(file(name), "kappascope-checkpoint", KS_H5_VERSION, &h5));
    ks_h5_group(h5, "/critic");
    ks_h5_group(h5, "/critic/00_dense");
    ks_h5_group(h5, "/critic/02_dense");
    ks_h5_group(h5, "/batch");
    ks_h5_write_string(h5, "/critic", "arch",
                       text_of("dense %zu\nrelu\ndense 1\nloss mse\n", s->width));
    ks_h5_write_integer(h5, "/critic", "ensemble", (int64_t)s->ensemble);
    declare(h5->id, "/critic/00_dense/kernel", s->ensemble, s->in, s->width);
    declare(h5->id, "/critic/00_dense/bias", s->ensemble, s->width, 0);
    declare(h5->id, "/critic/02_dense/kernel", s->ensemble, s->width, 1);
    declare(h5->id, "/critic/02_dense/bias", s->ensemble, 1, 0);
    declare(h5->id, "/batch/input", s->minibatches, s->rows, s->in);
    declare(h5->id, "/batch/target", s->minibatches, s->rows, 1);
    assert_ok(ks_h5_commit(h5));
    ks_h5_close(h5);
}

/* Peak resident memory, in megabytes, of the largest child process. */
static double largest_child(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
    return (double)usage.ru_maxrss / 1024;
}

static const char *const options[] = {"", "--exact", "--gradient g.h5",
                                      "--apply v.h5 --output o.h5", "--operator ggn"};

static void assert_refused(const char *name, const char *option)
{
    if (analyzer("-q --memory 500M %s %s.h5", option, name) != 1 ||
        !strstr(complained, ": --memory: expected at least ") || !strstr(complained, name))
        fail_msg("%s %s: '%s'", option, name, complained);
    if (largest_child() > 400)
        fail_msg("%s %s: took %.0f MB", option, name, largest_child());
}

TEST(test_declared)
{
    static const struct {
        const char *name;
        struct sizes declared;
    } cases[] = {
        {"ensemble", {100000000, 1, 4, 5, 6}},
        {"huge-ensemble", {1000000000000000000, 1, 1, 1, 1}},
        {"minibatches", {1, 1000000000, 4, 5, 6}},
        {"huge-minibatches", {1, 1000000000000000000, 1, 1, 1}},
        {"rows", {1, 1, 100000000, 1, 1000}},
        {"wide", {1, 1, 1, 50000, 50000}},
        {"both", {2000000000, 2000000000, 1000000000, 1, 1}},
    };
    enum { PARAMETERS = 3001 }; /* of the case "rows" */
    static const double v[PARAMETERS];

    assert_ok(ks_vectors_write(file("v"), &(struct ks_vectors){1, PARAMETERS, v, NULL, NULL}));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_declared(cases[i].name, &cases[i].declared);
        for (size_t o = 0; o < sizeof options / sizeof *options; o++)
            assert_refused(cases[i].name, options[o]);
    }
}

/* Only what does not fit is refused: a small file of zeros is analyzed. */
TEST(test_small)
{
    write_declared("small", &(struct sizes){2, 3, 4, 5, 6});
    assert_runs("-q --order 5 --memory 500M small.h5");
}

/* If a file of vectors does not fit, the message names it and not the checkpoint. */
TEST(test_vectors)
{
    struct ks_h5 h5;
    hid_t id;

    write_declared("small", &(struct sizes){1, 3, 4, 5, 6});
    id = H5Fcreate(file("many"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    declare(id, "/vector", 1000000000000000, 43, 0);
    h5 = (struct ks_h5){.path = (char *)(uintptr_t)scratch("many.h5"), .id = id};
    ks_h5_write_string(&h5, "/", "format", "kappascope-vector");
    ks_h5_write_integer(&h5, "/", "version", 1);
    assert_ok(h5.status);
    H5Fclose(id);
    assert_int_equal(analyzer("-q --memory 500M --apply many.h5 --output o.h5 small.h5"), 1);
    assert_complains("analyze: many.h5: --memory: expected at least ");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
