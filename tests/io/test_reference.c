/* Checkpoints with reference results: right ones are accepted. tests/io/test_reference_wrong.c has
 * the ways to export a critic wrongly. */
#include "analyzer.h"
#include "naive_critic.h"

#include "kappascope.h"

/* Outputs of the rows of the loss or of all rows, of all minibatches or of the first, in both
 * precisions, each reference result alone: all are accepted, in every kind of analysis. */
static void test_right(void **state)
{
    static const char *const runs[] = {"--order 5 a.h5", "--layers --order 5 a.h5",
                                       "--gradient g.h5 a.h5", "--batchnorm eval --order 5 a.h5",
                                       "--critic 1 --weight-decay 1 --scale 3 --order 5 a.h5"};
    struct kappascope_checkpoint *k;

    (void)state;
    for (size_t i = 0; i < 16; i++) {
        struct ks_checkpoint *c = naive_critic();
        const size_t minibatches = i & 2 ? 1 : BATCHES;

        if (i & 1)
            naive_references(c, BATCH_ROWS, RIGHT, RIGHT);
        c->references.output.minibatches = c->references.loss.minibatches = minibatches;
        c->references.gradient_norm.minibatches = minibatches;
        c->references.output.wide = c->references.loss.wide = !(i & 4);
        if (i & 8) {
            free(c->references.loss.value), c->references.loss.value = NULL;
            free(c->references.gradient_norm.value), c->references.gradient_norm.value = NULL;
        }
        write_file("a.h5", c);
        assert_runs("%s", runs[i % 5]);
        assert_null(strstr(complained, "nothing was compared"));
        assert_int_equal(kappascope_checkpoint_read(scratch("a.h5"), &k), KAPPASCOPE_OK);
        kappascope_checkpoint_free(k);
        ks_checkpoint_free(c);
    }
}

/* Without reference results a line says so, unless --quiet. */
static void test_none(void **state)
{
    struct ks_checkpoint *c = naive_critic();

    (void)state;
    ks_references_clear(&c->references);
    write_file("a.h5", c);
    assert_runs("--order 5 a.h5%s", "");
    assert_non_null(
        strstr(complained, "a.h5: nothing was compared: the file has no /batch/output"));
    assert_runs("-q --order 5 a.h5%s", "");
    assert_null(strstr(complained, "nothing was compared"));
    ks_checkpoint_free(c);
}

/* Only the minibatches that are analyzed are computed. */
static void test_batches(void **state)
{
    struct ks_checkpoint *c = naive_critic();

    (void)state;
    c->references.output.value[2 * BATCH_LOSS_ROWS * CRITICS + 7] += 1;
    write_file("a.h5", c);
    assert_runs("-q --order 5 --batches 2 a.h5%s", "");
    assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), 2);
    assert_non_null(strstr(complained, "minibatch 2, row 3, critic 1, output 0: expected"));
    assert_non_null(strstr(complained, "1 of 36 values differ by more than 1e-09 of their root"));
    ks_checkpoint_free(c);
}

/* Reference results in float64 must be results of float64. Errors of 1e-6 are accepted in a float32
 * dataset only, errors of 1e-3 in none. The message gives the likely reason. */
static void test_precision(void **state)
{
    const double errors[] = {1e-11, 1e-6, 1e-3};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct ks_checkpoint *c = naive_critic();
        const bool wide = i % 2, right = i / 2 == 0 || (i / 2 == 1 && !wide);

        c->references.output.wide = wide;
        for (size_t k = 0; k < BATCHES * BATCH_LOSS_ROWS * CRITICS; k++)
            c->references.output.value[k] *= 1 + errors[i / 2];
        write_file("a.h5", c);
        assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), right ? 0 : 2);
        assert_int_equal(!!strstr(complained, "results of float32 belong in a float32 dataset"),
                         i == 3);
        assert_int_equal(!!strstr(complained, "products in TF32 or bfloat16"), i >= 4);
        ks_checkpoint_free(c);
    }
}

/* Each critic has a tolerance of its own: an error of a critic with small outputs is not hidden by
 * the large outputs of another one. */
static void test_scales(void **state)
{
    struct ks_checkpoint *c = naive_critic();

    (void)state;
    for (size_t i = KERNEL7; i <= BIAS7; i++)
        c->critic.w[PARAMETERS + i] *= 1e-6;
    naive_references(c, BATCH_LOSS_ROWS, RIGHT, RIGHT);
    c->references.output.wide = false;
    write_file("a.h5", c);
    assert_runs("-q --order 5 a.h5%s", "");
    c->references.output.value[CRITICS + 1] *= 2;
    write_file("a.h5", c);
    assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), 2);
    assert_non_null(strstr(complained, "minibatch 0, row 1, critic 1, output 0: expected"));
    assert_non_null(strstr(complained, "of their root mean square in this critic"));
    ks_checkpoint_free(c);
}

/* What the comparison allocates counts against --memory, before it is allocated. */
static void test_memory(void **state)
{
    static const char WORDS[] = "--memory: expected at least ";
    struct ks_checkpoint *c = naive_critic();
    size_t least;

    (void)state;
    write_file("a.h5", c);
    assert_int_equal(analyzer("-q --order 5 --memory 1 a.h5%s", ""), 1);
    assert_non_null(strstr(complained, "the checkpoint's arrays alone take"));
    assert_int_equal(sscanf(strstr(complained, WORDS) + strlen(WORDS), "%zuK", &least), 1);
    assert_int_equal(analyzer("-q --order 5 --memory %zuK a.h5", least), 1);
    assert_non_null(strstr(complained, "a.h5: --memory: expected at least "));
    assert_non_null(strstr(complained, "checkpoint and the comparison of its outputs take"));
    ks_checkpoint_free(c);
}

/* A frozen layer is right if the description says so. */
static void test_frozen(void **state)
{
    static const char text[] =
        "batchnorm\ndense 5 trainable=no\nlayernorm eps=1e-5\nrelu\ndense 5\n"
        "batchnorm\ngelu\ndense 1\nloss mse\n";
    const size_t frozen = SCALE2 - KERNEL1, kept = PARAMETERS - frozen;
    struct ks_checkpoint *c = naive_critic();
    struct how how = RIGHT;

    (void)state;
    how.from = KERNEL1;
    how.behind = SCALE2;
    naive_references(c, BATCH_LOSS_ROWS, RIGHT, how);
    free(c->critic.frozen);
    assert_ok(ks_alloc(CRITICS * frozen, sizeof(double), &c->critic.frozen));
    for (size_t e = 0; e < CRITICS; e++) {
        const double *from = c->critic.w + e * PARAMETERS;

        memcpy(c->critic.frozen + e * frozen, from + KERNEL1, frozen * sizeof *from);
        memmove(c->critic.w + e * kept, from, KERNEL1 * sizeof *from);
        memmove(c->critic.w + e * kept + KERNEL1, from + SCALE2,
                (PARAMETERS - SCALE2) * sizeof *from);
    }
    describe(c, text);
    write_file("a.h5", c);
    assert_runs("-q --order 5 a.h5%s", "");
    ks_checkpoint_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_right, scratch_clean),
        cmocka_unit_test_teardown(test_none, scratch_clean),
        cmocka_unit_test_teardown(test_batches, scratch_clean),
        cmocka_unit_test_teardown(test_precision, scratch_clean),
        cmocka_unit_test_teardown(test_scales, scratch_clean),
        cmocka_unit_test_teardown(test_memory, scratch_clean),
        cmocka_unit_test_teardown(test_frozen, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
