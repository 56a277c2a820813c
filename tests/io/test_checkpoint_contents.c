/* Which contents of a checkpoint are required, and which may vary: a good one with one edit at a
 * time. tests/io/test_checkpoint_batch.c has the shapes and targets of /batch. */
#include "io/checkpoint.h"

#include <stdbool.h>
#include <string.h>

#include <hdf5.h>

#include "edited_file.h"
#include "example_checkpoint.h"
#include "io/h5.h"
#include "scratch.h"
#include "test.h"

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
        cmocka_unit_test_teardown(test_missing, scratch_clean),
        cmocka_unit_test_teardown(test_headers, scratch_clean),
        cmocka_unit_test_teardown(test_headers_of_actor_and_optimizer, scratch_clean),
        cmocka_unit_test_teardown(test_bad_numbers, scratch_clean),
        cmocka_unit_test_teardown(test_containers, scratch_clean),
        cmocka_unit_test_teardown(test_foreign, scratch_clean),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
