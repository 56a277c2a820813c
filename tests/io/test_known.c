/* What a checkpoint and a vector file may not hold: objects and attributes that nothing reads,
 * integers in place of real numbers, reference results and targets of other shapes. */
#include "analyzer.h"
#include "naive_critic.h"

static hid_t edit_file(const char *name)
{
    hid_t file = H5Fopen(scratch(name), H5F_ACC_RDWR, H5P_DEFAULT);

    assert_true(file >= 0);
    return file;
}

/* Replaces (or adds) a dataset of zeros. */
static void put(const char *object, hid_t type, int rank, const hsize_t *dims)
{
    hid_t file = edit_file("a.h5"), space = H5Screate_simple(rank, dims, NULL), set;

    if (H5Lexists(file, object, H5P_DEFAULT) > 0)
        assert_true(H5Ldelete(file, object, H5P_DEFAULT) >= 0);
    set = H5Dcreate2(file, object, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
}

static void put_attribute(const char *object, const char *name)
{
    hid_t file = edit_file("a.h5"), space = H5Screate(H5S_SCALAR), id;

    id = H5Acreate_by_name(file, object, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT,
                           H5P_DEFAULT);
    assert_true(id >= 0);
    H5Aclose(id);
    H5Sclose(space);
    H5Fclose(file);
}

static void put_group(const char *object)
{
    hid_t file = edit_file("a.h5");

    H5Gclose(H5Gcreate2(file, object, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
}

/* The edited file is refused with these words; the unedited one is there again afterwards. */
static void refuses(const struct ks_checkpoint *c, const char *words)
{
    assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), 2);
    if (!strstr(complained, words))
        fail_msg("'%s' does not contain '%s'", complained, words);
    write_file("a.h5", c);
}

static void test_unknown_objects(void **state)
{
    const hsize_t vector[] = {CRITICS, SIDE}, scalar[] = {1};
    struct ks_checkpoint *c = linear_critic("dense 4 bias=no\nrelu\ndense 1\nloss mse\n");

    (void)state;
    write_file("a.h5", c);
    put("/critic/00_dense/bias", H5T_IEEE_F64LE, 2, vector);
    refuses(c, "a.h5: /critic/00_dense/bias: unknown object: expected only kernel, by the desc");
    put_group("/critic/01_layernorm");
    refuses(c, "a.h5: /critic/01_layernorm: unknown object: expected groups of the description's");
    put_group("/critic/01_relu");
    refuses(c, "a.h5: /critic/01_relu: unknown object");
    put_group("/critic/2_dense");
    refuses(c, "a.h5: /critic/2_dense: unknown object");
    put("/batch/targets", H5T_IEEE_F64LE, 1, scalar);
    refuses(c, "a.h5: /batch/targets: unknown object: expected only input, target, target_raw");
    put_attribute("/critic", "eps");
    refuses(c, "a.h5: /critic: unknown attribute eps: expected only arch, ensemble");
    put_attribute("/critic/00_dense", "bias");
    refuses(c, "a.h5: /critic/00_dense: unknown attribute bias");
    put_attribute("/batch", "gamma");
    refuses(c, "a.h5: /batch: unknown attribute gamma");
    put_group("/optimizer");
    put_attribute("/optimizer", "betas");
    refuses(c, "a.h5: /optimizer: unknown attribute betas: expected only step, beta1, beta2, eps");
    put_group("/elsewhere");
    put_attribute("/", "note");
    assert_runs("-q --order 5 a.h5%s", "");
    ks_checkpoint_free(c);
}

static void test_integers(void **state)
{
    static const struct {
        const char *object;
        int rank;
        hsize_t dims[4];
    } arrays[] = {
        {"/critic/00_dense/kernel", 3, {1, SIDE, 4}},
        {"/critic/00_dense/bias", 2, {1, 4}},
        {"/batch/input", 3, {BATCHES, BATCH_ROWS, SIDE}},
        {"/batch/target", 3, {BATCHES, BATCH_LOSS_ROWS, 1}},
        {"/batch/target_raw", 3, {BATCHES, BATCH_LOSS_ROWS, 1}},
        {"/batch/output", 4, {BATCHES, BATCH_LOSS_ROWS, 1, 1}},
        {"/batch/loss", 1, {BATCHES}},
        {"/batch/gradient_norm", 1, {1}},
    };
    struct ks_checkpoint *c = linear_critic("dense 4\nrelu\ndense 1\nloss mse\n");

    (void)state;
    write_file("a.h5", c);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        char words[128];

        put(arrays[i].object, H5T_STD_I64LE, arrays[i].rank, arrays[i].dims);
        snprintf(words, sizeof words, "a.h5: %s: expected real numbers (float32 or float64), found",
                 arrays[i].object);
        refuses(c, words);
    }
    ks_checkpoint_free(c);
}

static void test_shapes(void **state)
{
    static const struct {
        int rank;
        hsize_t dims[4];
    } outputs[] = {{3, {BATCHES, BATCH_LOSS_ROWS, CRITICS}},
                   {4, {2, BATCH_LOSS_ROWS, CRITICS, 1}},
                   {4, {BATCHES, BATCH_LOSS_ROWS + 1, CRITICS, 1}},
                   {4, {BATCHES, BATCH_LOSS_ROWS, CRITICS + 1, 1}},
                   {4, {BATCHES, BATCH_LOSS_ROWS, CRITICS, 2}}};
    const hsize_t two[] = {2}, matrix[] = {BATCHES, CRITICS},
                  targets[] = {BATCHES, BATCH_LOSS_ROWS, CRITICS + 1, 1};
    struct ks_checkpoint *c = naive_critic();

    (void)state;
    write_file("a.h5", c);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        put("/batch/output", H5T_IEEE_F64LE, outputs[i].rank, outputs[i].dims);
        refuses(c, "a.h5: /batch/output: expected [N, B, E, K] or [N, R, E, K] with N = 3 "
                   "minibatches (or 1: the first), B = 6, R = 9 rows, E = 2 critics and K = 1 "
                   "outputs, found [");
    }
    put("/batch/loss", H5T_IEEE_F64LE, 1, two);
    refuses(c, "/batch/loss: expected [N] with N = 3 minibatches (or 1: the first), found [2]");
    put("/batch/gradient_norm", H5T_IEEE_F64LE, 2, matrix);
    refuses(c, "/batch/gradient_norm: expected [N] with N = 3 minibatches (or 1: the first), found "
               "[3, 2]");
    put("/batch/target", H5T_IEEE_F64LE, 4, targets);
    refuses(c, "/batch/target: expected [N, B, T] or [N, B], or [N, B, E, T] with the targets of "
               "each critic, where N = 3 minibatches, B = 1 to 9 rows, E = 2 critics and T = 1 "
               "targets of a row, found [3, 6, 3, 1]");
    ks_checkpoint_free(c);
}

/* A vector file with an attribute that nothing reads. */
static void test_vector_attributes(void **state)
{
    struct ks_checkpoint *c = naive_critic();
    struct ks_attributes attributes = {.n = 0};
    double *v;

    (void)state;
    assert_ok(ks_alloc(CRITICS * PARAMETERS, sizeof *v, &v));
    v[3] = 1;
    write_file("a.h5", c);
    assert_ok(ks_vectors_write(scratch("v.h5"), 1, CRITICS * PARAMETERS, v, NULL));
    assert_runs("-q --apply v.h5 --output hv.h5 a.h5%s", "");
    assert_runs("-q --apply hv.h5 --output hhv.h5 a.h5%s", ""); /* what the analyzer writes */
    assert_runs("-q --gradient g.h5 a.h5%s", "");
    assert_runs("-q --apply g.h5 --output hg.h5 a.h5%s", "");
    assert_ok(ks_attribute_add_string(&attributes, "order", "pytorch"));
    assert_ok(ks_vectors_write(scratch("v.h5"), 1, CRITICS * PARAMETERS, v, &attributes));
    assert_int_equal(analyzer("-q --apply v.h5 --output hv.h5 a.h5%s", ""), 2);
    assert_non_null(strstr(complained, "v.h5: /: unknown attribute order: expected only format"));
    ks_attributes_clear(&attributes);
    free(v);
    ks_checkpoint_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_unknown_objects, scratch_clean),
        cmocka_unit_test_teardown(test_integers, scratch_clean),
        cmocka_unit_test_teardown(test_shapes, scratch_clean),
        cmocka_unit_test_teardown(test_vector_attributes, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
