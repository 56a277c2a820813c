/* Checkpoints and vectors: round trips, what other programs write, and everything that can be
 * wrong. */
#include "ks/checkpoint.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <hdf5.h>

#include "ks/h5.h"
#include "ks/memory.h"
#include "ks/rng.h"
#include "scratch.h"
#include "test.h"

static const char CE[] = "batchnorm\nrepeat 2 {\n  dense 7 bias=no project=unit\n  layernorm\n"
                         "  relu\n}\ndense 3 project=unit-kernel\nloss ce min=-5 max=5\n";
static const char MSE[] = "dense 4\nrelu\ndense 1\nloss mse\n";
static const char ACTOR[] = "dense 6\nbatchnorm\nrelu\ndense 4\n"
                            "policy tanh-gaussian log-std=clip min=-10 max=2\n";

enum { IN = 5, ACTIONS = 2, ENSEMBLE = 2, MINIBATCHES = 3, ROWS = 6, LOSS_ROWS = 4 };

static double *numbers(struct ks_rng *rng, size_t n)
{
    double *values;

    assert_ok(ks_alloc(n, sizeof *values, &values));
    for (size_t i = 0; i < n; i++)
        values[i] = ks_rng_normal(rng);
    return values;
}

static double *squares(struct ks_rng *rng, size_t n)
{
    double *values = numbers(rng, n);

    for (size_t i = 0; i < n; i++)
        values[i] *= values[i];
    return values;
}

static void make_networks(struct ks_rng *rng, const char *text, size_t in, size_t ensemble,
                          struct ks_networks *n)
{
    assert_ok(ks_copy_string(text, &n->text));
    assert_ok(KS(arch_parse)(text, "test", in, &n->arch));
    n->ensemble = ensemble;
    n->w = numbers(rng, ensemble * n->arch->parameters);
    if (n->arch->states > 0)
        n->state = squares(rng, ensemble * n->arch->states);
}

static void make_batch(struct ks_rng *rng, struct ks_checkpoint *c)
{
    const size_t k = c->critic.arch->loss.targets;

    c->minibatches = MINIBATCHES;
    c->rows = ROWS;
    c->loss_rows = LOSS_ROWS;
    c->input = numbers(rng, MINIBATCHES * ROWS * IN);
    c->target = squares(rng, MINIBATCHES * LOSS_ROWS * k);
    for (size_t row = 0; k > 1 && row < MINIBATCHES * LOSS_ROWS; row++) {
        double sum = 0;

        for (size_t i = 0; i < k; i++)
            sum += c->target[row * k + i];
        for (size_t i = 0; i < k; i++)
            c->target[row * k + i] /= sum;
    }
}

static struct ks_checkpoint *make_plain(const char *text)
{
    struct ks_rng rng = ks_rng_start(7, 0);
    struct ks_checkpoint *c;

    assert_ok(ks_alloc(1, sizeof *c, &c));
    make_networks(&rng, text, IN, ENSEMBLE, &c->critic);
    make_batch(&rng, c);
    return c;
}

static struct ks_attribute *attributes(size_t n, const struct ks_attribute *from)
{
    struct ks_attribute *list;

    assert_ok(ks_alloc(n, sizeof *list, &list));
    for (size_t i = 0; i < n; i++)
        assert_ok(ks_attribute_copy(&from[i], &list[i]));
    return list;
}

/* With everything that the training engine adds. */
static struct ks_checkpoint *make_full(void)
{
    char env[] = "dog-trot", versions[] = "mujoco 3.1.6";
    double returns[3] = {1, 2.5, -3};
    const struct ks_attribute root[] = {
        {.name = "env", .type = KS_ATTRIBUTE_STRING, .string = env},
        {.name = "seed", .type = KS_ATTRIBUTE_INTEGER, .integer = INT64_MAX},
        {.name = "env_step", .type = KS_ATTRIBUTE_INTEGER, .integer = 50000},
        {.name = "returns", .type = KS_ATTRIBUTE_LIST, .list = returns, .n = 3},
        {.name = "gamma", .type = KS_ATTRIBUTE_NUMBER, .number = 0.99},
        {.name = "library_versions", .type = KS_ATTRIBUTE_STRING, .string = versions},
    };
    const struct ks_attribute metrics[] = {
        {.name = "critic_effective_lr_03", .type = KS_ATTRIBUTE_NUMBER, .number = 1e-7},
        {.name = "critic_loss", .type = KS_ATTRIBUTE_NUMBER, .number = NAN},
        {.name = "update", .type = KS_ATTRIBUTE_INTEGER, .integer = 3},
    };
    struct ks_checkpoint *c = make_plain(CE);
    struct ks_rng rng = ks_rng_start(7, 1);
    const size_t n = ENSEMBLE * c->critic.arch->parameters;

    make_networks(&rng, CE, IN, ENSEMBLE, &c->target_critic);
    make_networks(&rng, ACTOR, IN - ACTIONS, 1, &c->actor);
    c->adam_m = numbers(&rng, n);
    c->adam_v = squares(&rng, n);
    c->adam_step = 12345678901;
    c->n_attributes = sizeof root / sizeof *root;
    c->attribute = attributes(c->n_attributes, root);
    c->n_metrics = sizeof metrics / sizeof *metrics;
    c->metric = attributes(c->n_metrics, metrics);
    return c;
}

static void write_one(const char *path, struct ks_checkpoint *c, bool single)
{
    assert_ok(ks_checkpoint_write(path, c, single));
    ks_checkpoint_free(c);
}

static void same_numbers(size_t n, const double *a, const double *b, bool single)
{
    assert_int_equal(!a, !b);
    for (size_t i = 0; a && i < n; i++)
        if (a[i] != (single ? (double)(float)b[i] : b[i]))
            fail_msg("element %zu: %.17g, expected %.17g", i, a[i], b[i]);
}

static void same_networks(const struct ks_networks *a, const struct ks_networks *b, bool single)
{
    assert_int_equal(!a->text, !b->text);
    if (!a->text)
        return;
    assert_string_equal(a->text, b->text);
    assert_int_equal(a->ensemble, b->ensemble);
    assert_int_equal(a->arch->in, b->arch->in);
    same_numbers(a->ensemble * a->arch->parameters, a->w, b->w, single);
    same_numbers(a->ensemble * a->arch->states, a->state, b->state, single);
}

static void same_attributes(size_t n, const struct ks_attribute *a, size_t m,
                            const struct ks_attribute *b)
{
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) {
        const struct ks_attribute *x = ks_attribute_find(a, n, b[i].name);

        assert_non_null(x);
        assert_int_equal(x->type, b[i].type);
        assert_int_equal(x->integer, b[i].integer);
        assert_memory_equal(&x->number, &b[i].number, sizeof x->number);
        same_numbers(x->n, x->list, b[i].list, false);
        if (x->type == KS_ATTRIBUTE_STRING)
            assert_string_equal(x->string, b[i].string);
    }
    assert_null(ks_attribute_find(a, n, "no such name"));
}

static void same_checkpoint(const struct ks_checkpoint *a, const struct ks_checkpoint *b,
                            bool single)
{
    const size_t n = a->critic.ensemble * a->critic.arch->parameters;

    same_networks(&a->critic, &b->critic, single);
    same_networks(&a->target_critic, &b->target_critic, single);
    same_networks(&a->actor, &b->actor, single);
    assert_int_equal(a->minibatches, b->minibatches);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->loss_rows, b->loss_rows);
    same_numbers(a->minibatches * a->rows * a->critic.arch->in, a->input, b->input, single);
    same_numbers(a->minibatches * a->loss_rows * a->critic.arch->loss.targets, a->target, b->target,
                 single);
    same_numbers(n, a->adam_m, b->adam_m, single);
    same_numbers(n, a->adam_v, b->adam_v, single);
    assert_int_equal(a->adam_step, b->adam_step);
    same_attributes(a->n_attributes, a->attribute, b->n_attributes, b->attribute);
    same_attributes(a->n_metrics, a->metric, b->n_metrics, b->metric);
}

static void test_round_trip(void **state)
{
    const char *path = scratch("a.h5");

    (void)state;
    for (int variant = 0; variant < 6; variant++) {
        const bool single = variant % 2;
        struct ks_checkpoint *written = variant < 2 ? make_full()
                                                    : make_plain(variant < 4 ? CE : MSE);
        struct ks_checkpoint *read;

        if (variant == 2) { /* running statistics may be absent */
            free(written->critic.state);
            written->critic.state = NULL;
        }
        assert_ok(ks_checkpoint_write(path, written, single));
        assert_ok(ks_checkpoint_read(path, &read));
        same_checkpoint(read, written, single);
        ks_checkpoint_free(read);
        ks_checkpoint_free(written);
        assert_int_equal(scratch_files(false), 1);
    }
}

/* No time is stored: a second later the same bytes come out. */
static void test_deterministic(void **state)
{
    const struct timespec second = {.tv_sec = 1, .tv_nsec = 50000000};
    struct ks_checkpoint *c = make_full();
    unsigned char *a, *b;
    size_t n, m;

    (void)state;
    assert_ok(ks_checkpoint_write(scratch("a.h5"), c, true));
    nanosleep(&second, NULL);
    assert_ok(ks_checkpoint_write(scratch("b.h5"), c, true));
    ks_checkpoint_free(c);
    a = read_bytes(scratch("a.h5"), &n);
    b = read_bytes(scratch("b.h5"), &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

static void test_truncated(void **state)
{
    const char *path = scratch("a.h5"), *part = scratch("part.h5");
    struct ks_checkpoint *c;
    unsigned char *bytes;
    size_t n;

    (void)state;
    write_one(path, make_full(), true);
    bytes = read_bytes(path, &n);
    for (size_t i = 0; i <= 200; i++) {
        ks_status status;

        write_bytes(part, bytes, i < 200 ? i * n / 200 : n - 1);
        status = ks_checkpoint_read(part, &c);
        assert_null(c);
        assert_true(status == KS_FORMAT || status == KS_IO);
        assert_one_line(part);
    }
    free(bytes);
}

#ifdef __SANITIZE_ADDRESS__
/* HDF5 1.10.8 itself leaks an object header whose checksum is wrong (H5O_protect). LeakSanitizer
 * asks for this function by name. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}
#endif

/* A flipped byte is either found or in a place that holds nothing. */
static void test_flipped_bytes(void **state)
{
    enum { FLIPS = 1500 };
    const char *path = scratch("a.h5"), *bad = scratch("bad.h5");
    struct ks_checkpoint *good, *c;
    unsigned char *bytes;
    size_t n, found = 0;

    (void)state;
    write_one(path, make_full(), false);
    assert_ok(ks_checkpoint_read(path, &good));
    bytes = read_bytes(path, &n);
    for (size_t i = 0; i < FLIPS; i++) {
        const size_t at = i * n / FLIPS;

        bytes[at] ^= (unsigned char)(1u << i % 8);
        write_bytes(bad, bytes, n);
        bytes[at] ^= (unsigned char)(1u << i % 8);
        if (ks_checkpoint_read(bad, &c) == KS_OK) {
            same_checkpoint(c, good, false);
            ks_checkpoint_free(c);
        } else {
            assert_one_line(bad);
            found++;
        }
    }
    assert_true(found > FLIPS / 4);
    ks_checkpoint_free(good);
    free(bytes);
}

/* Edits of a file, as a foreign program might have left it. */
static hid_t edit(const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);

    assert_true(file >= 0);
    return file;
}

static void remove_object(const char *path, const char *object)
{
    hid_t file = edit(path);

    assert_true(H5Ldelete(file, object, H5P_DEFAULT) >= 0);
    H5Fclose(file);
}

static void remove_attribute(const char *path, const char *object, const char *name)
{
    hid_t file = edit(path);

    assert_true(H5Adelete_by_name(file, object, name, H5P_DEFAULT) >= 0);
    H5Fclose(file);
}

static void set_integer(const char *path, const char *object, const char *name, int64_t value)
{
    hid_t file = edit(path), space = H5Screate(H5S_SCALAR), id;

    H5Adelete_by_name(file, object, name, H5P_DEFAULT);
    id = H5Acreate_by_name(file, object, name, H5T_STD_I16BE, space, H5P_DEFAULT, H5P_DEFAULT,
                           H5P_DEFAULT);
    assert_true(id >= 0 && H5Awrite(id, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(id);
    H5Sclose(space);
    H5Fclose(file);
}

static void set_string(const char *path, const char *object, const char *name, const char *value)
{
    hid_t file = edit(path), space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_C_S1), id;

    H5Adelete_by_name(file, object, name, H5P_DEFAULT);
    H5Tset_size(type, H5T_VARIABLE);
    id = H5Acreate_by_name(file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(id >= 0 && H5Awrite(id, type, &value) >= 0);
    H5Aclose(id);
    H5Tclose(type);
    H5Sclose(space);
    H5Fclose(file);
}

/* One number of a dataset becomes `value`. */
static void poke(const char *path, const char *object, size_t at, double value)
{
    hid_t file = edit(path), set = H5Dopen2(file, object, H5P_DEFAULT), space = H5Dget_space(set);
    const size_t n = (size_t)H5Sget_simple_extent_npoints(space);
    double *values = calloc(n, sizeof *values);

    assert_true(values && at < n);
    assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    values[at] = value;
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    free(values);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
}

/* A dataset becomes one of zeros in another shape; with dims NULL, dimension `dim` changes by `by`.
 */
static void reshape(const char *path, const char *object, int rank, const hsize_t *dims, int dim,
                    int by)
{
    hid_t file = edit(path), set = H5Dopen2(file, object, H5P_DEFAULT), space = H5Dget_space(set);
    hsize_t own[8];

    if (!dims) {
        rank = H5Sget_simple_extent_dims(space, own, NULL);
        own[dim] = (hsize_t)((int64_t)own[dim] + by);
        dims = own;
    }
    H5Sclose(space);
    H5Dclose(set);
    assert_true(H5Ldelete(file, object, H5P_DEFAULT) >= 0);
    space = H5Screate_simple(rank, dims, NULL);
    set = H5Dcreate2(file, object, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
}

/* Puts back the file as it was. */
struct original {
    const char *path;
    unsigned char *bytes;
    size_t n;
};

static struct original keep(const char *path)
{
    struct original o = {.path = path};

    o.bytes = read_bytes(path, &o.n);
    return o;
}

/* The file as edited is refused in these words; then it is as before. */
static void refused(const struct original *o, const char *words)
{
    struct ks_checkpoint *c;

    assert_fails(ks_checkpoint_read(o->path, &c), KS_FORMAT, words);
    assert_null(c);
    assert_one_line(o->path);
    write_bytes(o->path, o->bytes, o->n);
}

/* The datasets that must be there, and those that may be absent. */
static const char *const required[] = {
    "/critic/00_batchnorm/scale",   "/critic/00_batchnorm/bias",
    "/critic/01_dense/kernel",      "/critic/02_layernorm/scale",
    "/critic/02_layernorm/bias",    "/critic/04_dense/kernel",
    "/critic/05_layernorm/scale",   "/critic/05_layernorm/bias",
    "/critic/07_dense/kernel",      "/critic/07_dense/bias",
    "/target/07_dense/bias",        "/actor/00_dense/kernel",
    "/actor/03_dense/bias",         "/optimizer/m/07_dense/bias",
    "/optimizer/v/01_dense/kernel", "/batch/target",
};
static const char *const optional[] = {"/critic/00_batchnorm/mean", "/critic/00_batchnorm/var",
                                       "/actor/01_batchnorm/mean"};
enum {
    REQUIRED = sizeof required / sizeof *required,
    OPTIONAL = sizeof optional / sizeof *optional
};

static size_t rank_of(const char *path, const char *object)
{
    struct ks_h5_shape shape;
    struct ks_h5 *h5;

    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_ok(ks_h5_shape(h5, object, &shape));
    ks_h5_close(h5);
    return shape.rank;
}

static void off_by_one(const struct original *o, const char *object)
{
    const size_t rank = rank_of(o->path, object);

    for (size_t dim = 0; dim < rank; dim++)
        for (int by = -1; by <= 1; by += 2) {
            const bool rows = strcmp(object, "/batch/target") == 0 && dim == 1;

            if (rows)
                continue; /* B: any number up to R, test_batch_shapes */
            reshape(o->path, object, 0, NULL, (int)dim, by);
            refused(o, "expected shape [");
        }
}

static void test_shapes_off_by_one(void **state)
{
    const char *path = scratch("a.h5");
    struct original o;

    (void)state;
    write_one(path, make_full(), false);
    o = keep(path);
    for (size_t i = 0; i < REQUIRED; i++)
        off_by_one(&o, required[i]);
    for (size_t i = 0; i < OPTIONAL; i++)
        off_by_one(&o, optional[i]);
    free(o.bytes);
}

static void test_batch_shapes(void **state)
{
    const hsize_t flat[2] = {MINIBATCHES, LOSS_ROWS}, row[1] = {LOSS_ROWS},
                  many[3] = {MINIBATCHES, ROWS + 1, 3}, none[3] = {MINIBATCHES, 0, 3},
                  empty[3] = {MINIBATCHES, 0, IN}, wide[3] = {MINIBATCHES, ROWS, IN + 1},
                  more[3] = {MINIBATCHES + 1, ROWS, IN}, deep[4] = {1, 1, 1, 1};
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c;
    struct original o;

    (void)state;
    write_one(path, make_plain(CE), false);
    o = keep(path);
    reshape(path, "/batch/target", 2, flat, 0, 0);
    refused(&o, "/batch/target: expected shape [3, 4, 3], found [3, 4]");
    reshape(path, "/batch/target", 1, row, 0, 0);
    refused(&o, "/batch/target: expected 3 dimensions");
    reshape(path, "/batch/target", 3, many, 0, 0);
    refused(&o, "/batch/target: expected 1 to 6 rows");
    reshape(path, "/batch/target", 3, none, 0, 0);
    refused(&o, "/batch/target: expected 1 to 6 rows");
    reshape(path, "/batch/input", 3, empty, 0, 0);
    refused(&o, "/batch/input: expected at least one");
    reshape(path, "/batch/input", 2, flat, 0, 0);
    refused(&o, "/batch/input: expected 3 dimensions [N, R, D], found 2");
    reshape(path, "/batch/input", 4, deep, 0, 0);
    refused(&o, "/batch/input: expected 3 dimensions [N, R, D], found 4");
    reshape(path, "/batch/input", 3, wide, 0, 0);
    refused(&o, "/critic/00_batchnorm/scale: expected shape [2, 6], found [2, 5]");
    reshape(path, "/batch/input", 3, more, 0, 0);
    refused(&o, "/batch/target: expected shape [4, 4, 3], found [3, 4, 3]");
    free(o.bytes);

    write_one(path, make_plain(MSE), false); /* [N, B] where K = 1 */
    reshape(path, "/batch/target", 2, flat, 0, 0);
    assert_ok(ks_checkpoint_read(path, &c));
    assert_int_equal(c->loss_rows, LOSS_ROWS);
    ks_checkpoint_free(c);
}

static void test_missing(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c;
    struct original o;

    (void)state;
    write_one(path, make_full(), false);
    o = keep(path);
    for (size_t i = 0; i < REQUIRED; i++) {
        remove_object(path, required[i]);
        refused(&o, "missing");
    }
    remove_object(path, "/batch/input");
    refused(&o, "/batch/input: missing");
    remove_object(path, "/critic");
    refused(&o, "/critic: attribute arch: missing");
    remove_attribute(path, "/critic", "ensemble");
    refused(&o, "/critic: attribute ensemble: missing");
    remove_attribute(path, "/optimizer", "step");
    refused(&o, "/optimizer: attribute step: missing");
    for (size_t i = 0; i < OPTIONAL; i++) {
        remove_object(path, optional[i]);
        assert_ok(ks_checkpoint_read(path, &c));
        assert_null(i < 2 ? c->critic.state : c->actor.state);
        assert_non_null(i < 2 ? c->actor.state : c->critic.state);
        ks_checkpoint_free(c);
        write_bytes(path, o.bytes, o.n);
    }
    free(o.bytes);
}

static void test_headers(void **state)
{
    const char *path = scratch("a.h5");
    struct original o;

    (void)state;
    write_one(path, make_full(), false);
    o = keep(path);
    set_integer(path, "/", "version", 2);
    refused(&o, "version of a kappascope-checkpoint: expected 1, found 2");
    set_string(path, "/", "version", "1");
    refused(&o, "attribute version: expected an integer");
    set_string(path, "/", "format", "kappascope-spectrum");
    refused(&o, "expected \"kappascope-checkpoint\", found \"kappascope-spectrum\"");
    set_integer(path, "/", "format", 1);
    refused(&o, "attribute format: expected a string");
    set_integer(path, "/critic", "ensemble", 0);
    refused(&o, "ensemble: expected at least 1, found 0");
    set_integer(path, "/critic", "ensemble", 3);
    refused(&o, "/critic/00_batchnorm/scale: expected shape [3, 5], found [2, 5]");
    set_string(path, "/critic", "arch", "dense 3\nloss nonsense\n");
    refused(&o, "/critic: arch:2: ");
    set_string(path, "/critic", "arch", ACTOR);
    refused(&o, "expected a loss at its end");
    set_string(path, "/actor", "arch", MSE);
    refused(&o, "/actor: arch: expected a policy at its end");
    set_integer(path, "/actor", "in", 4);
    refused(&o, "/actor/00_dense/kernel: expected shape [1, 4, 6], found [1, 3, 6]");
    set_integer(path, "/", "env", 4);
    refused(&o, "attribute env: expected a string");
    set_integer(path, "/optimizer", "step", -1);
    refused(&o, "step: expected at least 0");
    free(o.bytes);
}

static void test_bad_numbers(void **state)
{
    const char *path = scratch("a.h5");
    struct original o;

    (void)state;
    write_one(path, make_full(), false);
    o = keep(path);
    poke(path, "/critic/04_dense/kernel", 90, NAN);
    refused(&o, "/critic/04_dense/kernel: expected finite numbers, found nan at element 90");
    poke(path, "/batch/input", 1, INFINITY);
    refused(&o, "/batch/input: expected finite");
    poke(path, "/batch/target", 0, -INFINITY);
    refused(&o, "/batch/target: expected finite");
    poke(path, "/critic/00_batchnorm/mean", 2, NAN);
    refused(&o, "/critic/00_batchnorm/mean: expected finite");
    poke(path, "/critic/00_batchnorm/var", 2, -1);
    refused(&o, "/critic/00_batchnorm/var: expected variances");
    poke(path, "/optimizer/v/01_dense/kernel", 2, -1e-9);
    refused(&o, "/optimizer/v: expected means of squares");
    poke(path, "/batch/target", 13, -1e-9); /* row 13 / 3 = 4 is row 0 of minibatch 1 */
    refused(&o, "row 0 of minibatch 1: expected probabilities");
    poke(path, "/batch/target", 35, 2);
    refused(&o, "row 3 of minibatch 2: expected the sum 1 within 0.001");
    free(o.bytes);
}

/* A sum that is off by less than 1e-3 is rounding; it is taken literally. */
static void test_target_sums(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_plain(CE), *read;
    const double t = c->target[4];

    (void)state;
    c->target[4] = t + 0.9e-3;
    assert_ok(ks_checkpoint_write(path, c, false));
    assert_ok(ks_checkpoint_read(path, &read));
    assert_true(read->target[4] == t + 0.9e-3);
    ks_checkpoint_free(read);
    c->target[4] = t + 1.1e-3;
    assert_ok(ks_checkpoint_write(path, c, false));
    assert_fails(ks_checkpoint_read(path, &read), KS_FORMAT, "expected the sum 1");
    ks_checkpoint_free(c);
}

/* Unknown objects and attributes are ignored; the actor's width follows from the actions. */
static void test_foreign(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *written = make_full(), *read;
    hid_t file;

    (void)state;
    assert_ok(ks_checkpoint_write(path, written, false));
    file = edit(path);
    H5Gclose(H5Gcreate2(file, "/critic/00_unknown", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "/unknown", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    set_integer(path, "/", "unknown", 5);
    set_string(path, "/critic", "arch", CE);
    set_integer(path, "/", "env_step", 50);
    written->attribute[2].integer = 50;
    remove_attribute(path, "/actor", "in");
    remove_attribute(path, "/target", "arch");
    assert_ok(ks_checkpoint_read(path, &read));
    same_checkpoint(read, written, false);
    ks_checkpoint_free(read);
    ks_checkpoint_free(written);
}

static void test_not_written(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_full();
    struct original o;
    size_t n;
    unsigned char *bytes;

    (void)state;
    assert_ok(ks_checkpoint_write(path, c, true));
    o = keep(path);
    c->critic.w[3] = NAN;
    assert_fails(ks_checkpoint_write(path, c, true), KS_NUMBER, "not written: /critic/");
    c->critic.w[3] = 1e39; /* no float32 */
    assert_fails(ks_checkpoint_write(path, c, true), KS_NUMBER, "not written: /critic/");
    assert_fails(ks_checkpoint_write(scratch("no/such.h5"), c, false), KS_IO, "No such file");
    ks_checkpoint_free(c);
    bytes = read_bytes(path, &n);
    assert_int_equal(n, o.n);
    assert_memory_equal(bytes, o.bytes, n);
    assert_int_equal(scratch_files(false), 1);
    free(bytes);
    free(o.bytes);
}

/* A limit on file sizes stops the write half-way, as a full disk does. */
static void test_full_disk(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_full(), *read;
    struct rlimit old, small;
    ks_status status;

    (void)state;
    assert_ok(ks_checkpoint_write(path, c, false));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = ks_checkpoint_write(path, c, true);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_fails(status, KS_FULL, "cannot be written: File too large");
    assert_one_line(path);
    assert_int_equal(scratch_files(false), 1);
    assert_ok(ks_checkpoint_read(path, &read));
    same_checkpoint(read, c, false);
    ks_checkpoint_free(read);
    ks_checkpoint_free(c);
}

static void test_allocation_failures(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *written = make_full(), *read = NULL;
    ks_status status = KS_MEMORY;
    size_t n = 0;

    (void)state;
    while (status != KS_OK) {
        ks_alloc_fail_at(++n);
        status = ks_checkpoint_write(path, written, false);
        ks_alloc_fail_at(0);
        assert_true(status == KS_OK || status == KS_MEMORY);
        assert_int_equal(scratch_files(false), status == KS_OK);
    }
    assert_true(n > 10);
    status = KS_MEMORY;
    n = 0;
    while (status != KS_OK) {
        ks_alloc_fail_at(++n);
        status = ks_checkpoint_read(path, &read);
        ks_alloc_fail_at(0);
        assert_true(status == KS_OK || status == KS_MEMORY);
    }
    assert_true(n > 10);
    same_checkpoint(read, written, false);
    ks_checkpoint_free(read);
    ks_checkpoint_free(written);
}

static void test_vectors(void **state)
{
    enum { K = 2, N = 1000 };
    const char *path = scratch("v.h5");
    struct ks_rng rng = ks_rng_start(1, 2);
    double *vectors = numbers(&rng, K * N), *read, loss = 0.25;
    struct ks_attribute a;
    struct ks_h5 *h5;
    size_t k;

    (void)state;
    assert_ok(ks_vectors_write(path, K, N, vectors, NULL));
    assert_ok(ks_vectors_read(path, N, &k, &read));
    assert_int_equal(k, K);
    same_numbers(K * N, read, vectors, false);
    free(read);
    assert_fails(ks_vectors_read(path, N + 1, &k, &read), KS_FORMAT,
                 "/vector: expected shape [2, 1001], found [2, 1000]");
    assert_null(read);
    poke(path, "/vector", N, NAN);
    assert_fails(ks_vectors_read(path, N, &k, &read), KS_FORMAT, "found nan at element 1000");
    assert_ok(ks_vectors_write(path, 1, N, vectors, &loss));
    assert_ok(ks_h5_open(path, "kappascope-vector", &h5));
    assert_ok(ks_h5_read_attribute(h5, "/", "loss", KS_ATTRIBUTE_NUMBER, &a));
    assert_true(a.number == loss);
    ks_h5_close(h5);
    vectors[5] = INFINITY;
    assert_fails(ks_vectors_write(path, 1, N, vectors, NULL), KS_NUMBER,
                 "/vector: inf at element 5");
    set_integer(path, "/", "version", 3);
    assert_fails(ks_vectors_read(path, N, &k, &read), KS_FORMAT, "expected 1, found 3");
    free(vectors);
}

/* Eleven checkpoints of another program, with their vectors: names, critics, N, R, B and dimension
 * as its README lists them. A kind that the table of layers does not hold is skipped. */
static const struct golden {
    const char *name;
    size_t ensemble, minibatches, rows, loss_rows, dimension;
} golden[] = {
    {"xqc", 2, 3, 32, 16, 922},          {"crossq", 2, 1, 24, 12, 814},
    {"plain", 1, 1, 20, 20, 401},        {"layernorm", 1, 3, 16, 16, 853},
    {"smooth", 2, 3, 12, 12, 848},       {"residual", 2, 1, 16, 16, 1482},
    {"hypersphere", 1, 3, 16, 16, 1149}, {"mixed", 1, 3, 24, 12, 747},
    {"quantile", 2, 1, 12, 12, 1396},    {"huber", 2, 2, 16, 14, 566},
    {"projected", 2, 2, 24, 12, 534},
};

static bool unknown_kind(ks_status status)
{
    return status == KS_FORMAT && strstr(ks_error_text(), "' is not a ");
}

static void check_golden(const struct golden *g)
{
    struct ks_h5_shape row = {1, {g->dimension}};
    double *vectors, *numbers_read;
    struct ks_checkpoint *c;
    struct ks_h5 *h5;
    char path[256];
    ks_status status;
    size_t k;

    snprintf(path, sizeof path, "../shared/golden/%s.ckpt.h5", g->name);
    status = ks_checkpoint_read(path, &c);
    if (unknown_kind(status)) {
        print_message("%s: skipped: %s\n", g->name, ks_error_text());
    } else {
        assert_ok(status);
        assert_int_equal(c->critic.ensemble, g->ensemble);
        assert_int_equal(c->minibatches, g->minibatches);
        assert_int_equal(c->rows, g->rows);
        assert_int_equal(c->loss_rows, g->loss_rows);
        assert_int_equal(g->ensemble * c->critic.arch->parameters, g->dimension);
        assert_int_equal(!c->critic.state, c->critic.arch->states == 0);
        assert_int_equal(!!c->adam_v, strcmp(g->name, "projected") == 0);
        ks_checkpoint_free(c);
    }
    snprintf(path, sizeof path, "../shared/golden/%s.in.h5", g->name);
    assert_ok(ks_vectors_read(path, g->dimension, &k, &vectors));
    assert_int_equal(k, 3);
    free(vectors);
    snprintf(path, sizeof path, "../shared/golden/%s.eig.h5", g->name);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_ok(ks_h5_read_new(h5, "/eigenvalues", &row, &numbers_read));
    assert_true(numbers_read[0] < numbers_read[g->dimension - 1]);
    free(numbers_read);
    ks_h5_close(h5);
}

static void test_golden(void **state)
{
    (void)state;
    if (access("../shared/golden", R_OK) != 0)
        skip();
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
        check_golden(&golden[i]);
}

/* For tests/peer/h5py_checkpoint.py: `test_checkpoint write FILE` leaves a full checkpoint there,
 * `test_checkpoint read FILE` reads one and prints what is in it. */
static int serve_peer(const char *command, const char *path)
{
    struct ks_checkpoint *c = NULL;
    ks_status status;

    if (strcmp(command, "write") == 0) {
        c = make_full();
        status = ks_checkpoint_write(path, c, true);
    } else {
        status = ks_checkpoint_read(path, &c);
    }
    if (status != KS_OK)
        fprintf(stderr, "%s\n", ks_error_text());
    else
        printf("%zu %zu %zu %zu %zu %.17g %.17g %.17g\n", c->critic.ensemble,
               c->critic.arch->parameters, c->minibatches, c->rows, c->loss_rows, c->critic.w[1],
               c->input[2], c->target[3]);
    ks_checkpoint_free(c);
    return ks_exit_status(status);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_round_trip, scratch_clean),
        cmocka_unit_test_teardown(test_deterministic, scratch_clean),
        cmocka_unit_test_teardown(test_truncated, scratch_clean),
        cmocka_unit_test_teardown(test_flipped_bytes, scratch_clean),
        cmocka_unit_test_teardown(test_shapes_off_by_one, scratch_clean),
        cmocka_unit_test_teardown(test_batch_shapes, scratch_clean),
        cmocka_unit_test_teardown(test_missing, scratch_clean),
        cmocka_unit_test_teardown(test_headers, scratch_clean),
        cmocka_unit_test_teardown(test_bad_numbers, scratch_clean),
        cmocka_unit_test_teardown(test_target_sums, scratch_clean),
        cmocka_unit_test_teardown(test_foreign, scratch_clean),
        cmocka_unit_test_teardown(test_not_written, scratch_clean),
        cmocka_unit_test_teardown(test_full_disk, scratch_clean),
        cmocka_unit_test_teardown(test_allocation_failures, scratch_clean),
        cmocka_unit_test_teardown(test_vectors, scratch_clean),
        cmocka_unit_test(test_golden),
    };

    if (argc == 3)
        return serve_peer(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
