/* Which contents of a checkpoint are required, and which may vary: a good one with one edit at a
 * time. */
#include "io/checkpoint.h"

#include <stdbool.h>
#include <string.h>

#include <hdf5.h>

#include "example_checkpoint.h"
#include "io/h5.h"
#include "scratch.h"
#include "test.h"

/* Restores the unedited file. */
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

/* The edited file is refused with this message; then restores the unedited file. */
static void refused(const struct original *o, const char *words)
{
    struct ks_checkpoint *c;

    assert_fails(ks_checkpoint_read(o->path, &c), KS_FORMAT, words);
    assert_null(c);
    assert_one_line(o->path);
    write_bytes(o->path, o->bytes, o->n);
}

/* Required and optional datasets. */
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
                                       "/actor/01_batchnorm/mean", "/batch/target_raw"};
enum {
    REQUIRED = sizeof required / sizeof *required,
    OPTIONAL = sizeof optional / sizeof *optional
};

static size_t dimensions_of(const char *path, const char *object)
{
    struct ks_h5_shape shape;
    struct ks_h5 *h5;

    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_ok(ks_h5_shape(h5, object, &shape));
    ks_h5_close(h5);
    return shape.n_dims;
}

static void off_by_one(const struct original *o, const char *object)
{
    const size_t n_dims = dimensions_of(o->path, object);

    for (size_t dim = 0; dim < n_dims; dim++)
        for (int by = -1; by <= 1; by += 2) {
            const bool rows = strncmp(object, "/batch/target", 13) == 0 && dim == 1;

            if (rows)
                continue; /* B: any number up to R, test_batch_shapes */
            resize(o->path, object, dim, by);
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
                  more[3] = {MINIBATCHES + 1, ROWS, IN}, huge[3] = {1, 1ULL << 33, IN},
                  deep[4] = {1, 1, 1, 1};
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c;
    struct original o;

    (void)state;
    write_one(path, make_plain(CE), false);
    o = keep(path);
    reshape(path, "/batch/target", 2, flat);
    refused(&o, "/batch/target: expected shape [3, 4, 3], found [3, 4]");
    reshape(path, "/batch/target", 1, row);
    refused(&o,
            "/batch/target: expected [N, B, T], or [N, B, E, T] with the targets of each critic, "
            "where N = 3 minibatches, B = 1 to 6 rows, E = 2 critics and T = 3 targets of a row, "
            "found [4]");
    reshape(path, "/batch/target", 3, many);
    refused(&o, "/batch/target: expected 1 to 6 rows");
    reshape(path, "/batch/target", 3, none);
    refused(&o, "/batch/target: expected 1 to 6 rows");
    reshape(path, "/batch/input", 3, empty);
    refused(&o, "/batch/input: expected at least one");
    reshape(path, "/batch/input", 3, huge);
    refused(&o, "/batch/input: expected at most 1073741824 rows");
    reshape(path, "/batch/input", 2, flat);
    refused(&o, "/batch/input: expected 3 dimensions [N, R, D], found [3, 4]");
    reshape(path, "/batch/input", 4, deep);
    refused(&o, "/batch/input: expected 3 dimensions [N, R, D], found [1, 1, 1, 1]");
    reshape(path, "/batch/input", 3, wide);
    refused(&o, "/critic/00_batchnorm/scale: expected shape [2, 6], found [2, 5]");
    reshape(path, "/batch/input", 3, more);
    refused(&o, "/batch/target: expected shape [4, 4, 3], found [3, 4, 3]");
    free(o.bytes);

    write_one(path, make_plain(MSE), false); /* [N, B] where K = 1 */
    reshape(path, "/batch/target", 2, flat);
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
    remove_attribute(path, "/optimizer", "beta1");
    remove_attribute(path, "/optimizer", "beta2");
    remove_attribute(path, "/optimizer", "eps");
    assert_ok(ks_checkpoint_read(path, &c));
    assert_close(c->adam.beta1, 0.9, 0);
    assert_close(c->adam.beta2, 0.999, 0);
    assert_close(c->adam.eps, 1e-8, 0);
    ks_checkpoint_free(c);
    write_bytes(path, o.bytes, o.n);
    for (size_t i = 0; i < OPTIONAL; i++) {
        remove_object(path, optional[i]);
        assert_ok(ks_checkpoint_read(path, &c));
        assert_int_equal(c->critic.state == NULL, i < 2);
        assert_int_equal(c->actor.state == NULL, i == 2);
        assert_int_equal(c->target_raw == NULL, i == 3);
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
    remove_attribute(path, "/", "format");
    refused(&o, "expected a kappascope-checkpoint, found an HDF5 file without the root attribute "
                "format: weights of another program become a checkpoint by 'kappascope import'");
    set_integer(path, "/", "version", 3);
    refused(&o, "version of a kappascope-checkpoint: expected 1 or 2, found 3");
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
    refused(&o, "expected a description that ends in a loss");
    set_string(path, "/critic", "arch", /* refused before memory is allocated */
               "batchnorm\nrepeat 200 {\n  dense 65536 bias=no\n}\ndense 3\nloss ce min=0 max=1\n");
    refused(&o, "/critic/01_dense/kernel: expected shape [2, 5, 65536], found [2, 5, 7]");
    free(o.bytes);
}

static void test_headers_of_actor_and_optimizer(void **state)
{
    const char *path = scratch("a.h5");
    struct original o;

    (void)state;
    write_one(path, make_full(), false);
    o = keep(path);
    set_string(path, "/actor", "arch", MSE);
    refused(&o, "/actor: arch: expected a description that ends in a policy");
    remove_attribute(path, "/actor", "in"); /* the width is 3: 5 inputs minus 2 actions */
    set_string(path, "/actor", "arch", "dense 6 groups=3\ndense 4\n\npolicy tanh-gaussian\n");
    refused(&o, "/actor/00_dense/kernel: expected shape [1, 1, 6], found [1, 3, 6]");
    remove_attribute(path, "/actor", "in");
    set_string(path, "/actor", "arch", "dense 6\ndense 12\npolicy tanh-gaussian\n");
    refused(&o, "expected fewer actions than the critic has inputs (5), found 6");
    remove_attribute(path, "/actor", "in");
    set_string(path, "/actor", "arch", "dense 6\nnonsense 1\npolicy tanh-gaussian\n");
    refused(&o, "/actor: arch:2: unknown layer 'nonsense'");
    set_integer(path, "/actor", "in", 4);
    refused(&o, "/actor/00_dense/kernel: expected shape [1, 4, 6], found [1, 3, 6]");
    set_number(path, "/actor", "in",
               0x1p52); /* sizes that are computed from it could wrap around */
    refused(&o, "/actor: attribute in: expected at most 1073741824, found 4503599627370496");
    set_integer(path, "/", "env", 4);
    refused(&o, "attribute env: expected a string");
    set_integer(path, "/optimizer", "step", -1);
    refused(&o, "step: expected at least 0");
    set_number(path, "/optimizer", "beta1", 1);
    refused(&o, "/optimizer: attribute beta1: expected at least 0 and below 1, found 1");
    set_number(path, "/optimizer", "beta2", -0.5);
    refused(&o, "/optimizer: attribute beta2: expected at least 0 and below 1, found -0.5");
    set_number(path, "/optimizer", "eps", INFINITY);
    refused(&o, "/optimizer: attribute eps: expected at least 0 and below inf, found inf");
    set_string(path, "/optimizer", "eps", "small");
    refused(&o, "/optimizer: attribute eps: expected a number");
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
    poke(path, "/batch/target_raw", 14, NAN);
    refused(&o, "/batch/target_raw: expected finite numbers, found nan at element 14");
    poke(path, "/batch/target_raw", 14, -1e-9);
    refused(&o, "/batch/target_raw: row 0 of minibatch 1: expected probabilities, found -1e-09");
    poke(path, "/batch/target_raw", 35, 2);
    refused(&o, "/batch/target_raw: row 3 of minibatch 2: expected the sum 1 within 0.001");
    free(o.bytes);
}

/* Targets from raw rewards need the rows of /batch/target; both may omit the dimension K = 1. */
static void test_raw_target_shapes(void **state)
{
    const hsize_t flat[2] = {MINIBATCHES, LOSS_ROWS}, row[1] = {LOSS_ROWS},
                  fewer[3] = {MINIBATCHES, LOSS_ROWS - 1, 3}, many[3] = {MINIBATCHES, ROWS + 1, 3},
                  none[3] = {MINIBATCHES, 0, 3};
    static const char raw[] = "/batch/target_raw";
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_plain(MSE), *read;
    struct ks_rng rng = ks_rng_start(7, 2);
    struct original o;

    (void)state;
    c->target_raw = make_targets(&rng, 1);
    assert_ok(ks_checkpoint_write(path, c, false));
    assert_ok(ks_checkpoint_read(path, &read));
    same_checkpoint(read, c, false);
    ks_checkpoint_free(read);
    reshape(path, raw, 2, flat);
    assert_ok(ks_checkpoint_read(path, &read));
    assert_true(read->target_raw[MINIBATCHES * LOSS_ROWS - 1] == 0);
    ks_checkpoint_free(read);
    ks_checkpoint_free(c);

    write_one(path, make_full(), false);
    o = keep(path);
    reshape(path, raw, 2, flat);
    refused(&o, "/batch/target_raw: expected shape [3, 4, 3], found [3, 4]");
    reshape(path, raw, 1, row);
    refused(&o, "/batch/target_raw: expected [N, B, T], or [N, B, E, T]");
    reshape(path, raw, 3, many);
    refused(&o, "/batch/target_raw: expected 1 to 6 rows");
    reshape(path, raw, 3, none);
    refused(&o, "/batch/target_raw: expected 1 to 6 rows");
    reshape(path, raw, 3, fewer);
    refused(&o, "/batch/target_raw: expected 4 rows per minibatch, as many as /batch/target has");
    free(o.bytes);
}

/* A sum that deviates from 1 by less than 1e-3 counts as rounding and is not corrected. */
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

/* Targets of the squared error need not be distributions; the shape may omit K = 1. */
static void test_other_targets(void **state)
{
    const hsize_t flat[2] = {MINIBATCHES, LOSS_ROWS};
    static const struct {
        const char *text;
        size_t targets;
    } critics[] = {{"dense 3\nloss quantile\n", 3},
                   {"dense 1\nloss quantile kappa=0.5\n", 1},
                   {"dense 1\nloss huber\n", 1}};

    (void)state;
    for (size_t i = 0; i < sizeof critics / sizeof *critics; i++) {
        const char *path = scratch("a.h5");
        struct ks_checkpoint *c = make_plain(critics[i].text), *read;

        assert_int_equal(c->critic.arch->loss.targets, critics[i].targets);
        c->target[0] = -7, c->target[5] = 9;
        write_one(path, c, false);
        assert_ok(ks_checkpoint_read(path, &read));
        assert_true(read->target[0] == -7 && read->target[5] == 9);
        ks_checkpoint_free(read);
        reshape(path, "/batch/target", 2, flat);
        if (critics[i].targets > 1) {
            assert_fails(ks_checkpoint_read(path, &read), KS_FORMAT,
                         "/batch/target: expected shape [3, 4, 3], found [3, 4]");
        } else {
            assert_ok(ks_checkpoint_read(path, &read));
            ks_checkpoint_free(read);
        }
    }
}

/* A lerp has a group for its alpha, named by its number; a residual has none. */
static void test_containers(void **state)
{
    const char *path = scratch("a.h5");
    struct original o;

    (void)state;
    write_one(path,
              make_plain("residual {\nrelu\nlerp {\ndense 5\n}\n}\nrmsnorm\nscaler\ndense 1\n"
                         "loss mse\n"),
              false);
    o = keep(path);
    remove_object(path, "/critic/02_lerp/alpha");
    refused(&o, "/critic/02_lerp/alpha: missing");
    off_by_one(&o, "/critic/02_lerp/alpha");
    off_by_one(&o, "/critic/03_rmsnorm/scale");
    off_by_one(&o, "/critic/04_scaler/scaler");
    off_by_one(&o, "/critic/05_dense/kernel");
    free(o.bytes);
}

/* Unknown objects and attributes elsewhere than under /critic and /batch are ignored; the actor's
 * width follows from the actions. */
static void test_foreign(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *written = make_full(), *read;
    hid_t file;

    (void)state;
    assert_ok(ks_checkpoint_write(path, written, false));
    file = edit(path);
    H5Gclose(H5Gcreate2(file, "/target/00_unknown", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "/unknown", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    set_integer(path, "/", "unknown", 5);
    set_string(path, "/critic", "arch", CE);
    set_integer(path, "/", "env_step", 50);
    written->attributes.list[2].integer = 50;
    remove_attribute(path, "/actor", "in");
    remove_attribute(path, "/target", "arch");
    assert_ok(ks_checkpoint_read(path, &read));
    same_checkpoint(read, written, false);
    ks_checkpoint_free(read);
    ks_checkpoint_free(written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_shapes_off_by_one, scratch_clean),
        cmocka_unit_test_teardown(test_batch_shapes, scratch_clean),
        cmocka_unit_test_teardown(test_missing, scratch_clean),
        cmocka_unit_test_teardown(test_headers, scratch_clean),
        cmocka_unit_test_teardown(test_headers_of_actor_and_optimizer, scratch_clean),
        cmocka_unit_test_teardown(test_bad_numbers, scratch_clean),
        cmocka_unit_test_teardown(test_raw_target_shapes, scratch_clean),
        cmocka_unit_test_teardown(test_target_sums, scratch_clean),
        cmocka_unit_test_teardown(test_other_targets, scratch_clean),
        cmocka_unit_test_teardown(test_containers, scratch_clean),
        cmocka_unit_test_teardown(test_foreign, scratch_clean),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
