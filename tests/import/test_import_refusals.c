/* What an import refuses before anything is written: arrays that are unused, missing, ambiguous or
 * of the wrong type or shape, maps, batches, pickles. */
#include "importing.h"

static void test_unused(void **state)
{
    struct ks_checkpoint *c = export_example(&torch64);

    (void)state;
    foreign_add(&critic, "actor.0.weight", "<f8", 2, (size_t[]){2, 3});
    foreign_add(&critic, "count", "<i8", 0, NULL);
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "2 arrays unused, 0 missing, 0 ambiguous");
    assert_non_null(strstr(ks_error_text(), "actor.0.weight float64 [2, 3]"));
    extend_map("ignore actor.**");
    assert_refused(import_one("w.npz"), KS_FORMAT, "1 arrays unused");
    extend_map("ignore c?u*");
    assert_ok(import_one("w.npz"));
    assert_imported(c, false);
    extend_map("ignore **.bias");
    assert_refused(import_one("w.npz"), KS_FORMAT, "4 ambiguous");
    clear_files(c);
}

static void test_missing(void **state)
{
    struct ks_checkpoint *c = export_example(&torch64);

    (void)state;
    strcpy(foreign_find(&critic, "q9.02_dense.bias")->name, "q9.bias");
    strcpy(foreign_find(&critic, "q10.02_dense.bias")->name, "q10.bias");
    write_files();
    extend_map("ignore q*.bias");
    assert_refused(import_one("w.npz"), KS_FORMAT, "0 arrays unused, 1 missing, 0 ambiguous");
    assert_non_null(strstr(ks_error_text(), "02_dense/bias [1]: no array matches"));
    write_text("m.map", "layout=flax\nignore **\n");
    assert_refused(import_one("w.npz"), KS_FORMAT, "4 missing");
    assert_non_null(strstr(ks_error_text(), "has no line for it"));
    clear_files(c);
}

static void test_ambiguous(void **state)
{
    struct ks_checkpoint *c = export_example(&torch64);

    (void)state;
    strcpy(foreign_find(&critic, "q9.02_dense.bias")->name, "q8.02_dense.bias");
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "is '8', but");
    strcpy(foreign_find(&critic, "q8.02_dense.bias")->name, "bias");
    write_files();
    extend_map("ignore bias");
    assert_refused(import_one("w.npz"), KS_FORMAT, "matches 1 arrays, but");
    clear_files(c);
}

static void test_map(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"00_dense/kernel = q*.k\n", "expected a line 'layout = torch'"},
        {"layout = keras\n", "m.map:1: layout: expected torch or flax, found 'keras'"},
        {"layout=torch\nlayout=flax\n", "m.map:2: layout is given twice"},
        {"layout=torch\n05_dense/kernel = a\n",
         "m.map:2: the description has no array 05_dense/kernel: expected one of 00_dense/kernel, "
         "00_dense/bias, 02_dense/kernel, 02_dense/bias"},
        {"layout=torch\n00_dense/bias = a\n00_dense/bias = b\n", "m.map:3: 00_dense/bias has a"},
        {"layout=torch\n00_dense/bias a\n", "m.map:2: expected 'NN_kind/ARRAY = NAME'"},
        {"layout=torch\n00_dense/bias =\n", "m.map:2: expected 'NN_kind/ARRAY = NAME'"},
        {"layout=torch\nignore\n", "m.map:2: expected 'NN_kind/ARRAY = NAME'"},
        {"layout=torch\nignore *a*b*c*d*e*f*g*h*i\n", "m.map:2: expected a name with at most 8"},
    };
    struct ks_checkpoint *c = export_example(&torch64);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("m.map", cases[i].text);
        assert_refused(import_one("w.npz"), KS_FORMAT, cases[i].words);
    }
    clear_files(c);
}

static void test_shapes(void **state)
{
    struct ks_checkpoint *c = export_example(&torch64);
    struct foreign *kernel = foreign_find(&critic, "q9.00_dense.kernel");
    const size_t dims[2] = {kernel->dims[0], kernel->dims[1]};

    (void)state;
    kernel->dims[0] = dims[1], kernel->dims[1] = dims[0];
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT,
                   "q9.00_dense.kernel: expected shape [4, 5] for 00_dense/kernel with layout = "
                   "torch, found [5, 4], as the other layout has it");
    kernel->n_dims = 1, kernel->dims[0] = 20;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "found [20]");
    assert_null(strstr(ks_error_text(), "other layout"));
    clear_files(c);
}

/* Integers where real numbers belong, and what else is not a real number. */
static void test_values(void **state)
{
    static const char *const types[] = {"<i8", "|b1", "|O8", "<c8"};
    struct ks_checkpoint *c = export_example(&torch64);
    struct foreign *bias = foreign_find(&critic, "q9.00_dense.bias");

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        bias->type = types[i];
        write_files();
        assert_refused(import_one("w.npz"), KS_FORMAT,
                       "q9.00_dense.bias: expected real numbers for 00_dense/bias, found");
    }
    bias->type = "<f8", bias->values[1] = NAN;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "expected finite numbers, found nan at element");
    bias->values[1] = 0;
    batch.list[1].type = "<i8";
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "b.npz: target: expected real numbers, found");
    clear_files(c);
}

static void test_statistics(void **state)
{
    const struct export e = {.text = CE, .type = "<f8"};
    struct ks_checkpoint *c = export_example(&e);

    (void)state;
    foreign_find(&critic, "q9.00_batchnorm.var")->values[2] = -1;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT,
                   "00_batchnorm.var: expected variances, found -1");
    foreign_find(&critic, "q9.00_batchnorm.var")->values[2] = 1;
    batch.list[1].values[0] += 1;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "b.npz: target: row 0 of minibatch 0: expected");
    clear_files(c);
}

/* batchrenorm reads its running statistics in training mode, so the map must have them. */
static void test_needed_statistics(void **state)
{
    const struct export e = {
        .text = "batchrenorm\ndense 1\nloss mse\n", .type = "<f8", .torch = true};
    struct ks_checkpoint *c = export_example(&e);

    (void)state;
    assert_ok(import_one("w.npz"));
    assert_imported(c, false);
    write_text("m.map", "layout=torch\n00_batchrenorm/scale = q*.00_batchrenorm.scale\n"
                        "00_batchrenorm/bias = q*.00_batchrenorm.bias\nignore **.mean\n"
                        "01_dense/kernel = q*.01_dense.kernel\n01_dense/bias = q*.01_dense.bias\n"
                        "ignore **.var\n");
    assert_refused(import_one("w.npz"), KS_FORMAT, "0 arrays unused, 2 missing, 0 ambiguous");
    assert_non_null(strstr(ks_error_text(), "00_batchrenorm/mean [5]: "));
    clear_files(c);
}

static void test_batch(void **state)
{
    struct ks_checkpoint *c = export_example(&torch64);

    (void)state;
    batch.list[1].dims[0]++;
    batch.list[1].values = realloc(batch.list[1].values, 1024);
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT,
                   "b.npz: target: expected [3, rows, 1] or without the last dimension");
    batch.list[1].dims[0]--;
    batch.list[0].n_dims = 2, batch.list[0].dims[1] *= IN;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "input: expected [minibatches, rows, inputs]");
    batch.list[0].n_dims = 3, batch.list[0].dims[1] /= IN;
    strcpy(batch.list[1].name, "targets");
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "targets: expected no arrays but");
    batch.n = 1;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "expected an array target, found none");
    batch.n = 2;
    clear_files(c);
}

static void test_torch_files(void **state)
{
    zip_t *zip;
    struct ks_checkpoint *c = export_example(&torch64);

    (void)state;
    write_text("a.pt", "anything");
    assert_refused(import_one("a.pt"), KS_FORMAT, "python3 -c 'import sys, torch, numpy");
    write_text("a.bin", "\x80\2}q");
    assert_refused(import_one("a.bin"), KS_FORMAT, "a pickle can run any code");
    zip = zip_open(scratch("b.pth"), ZIP_CREATE | ZIP_TRUNCATE, NULL);
    zip_put(zip, "critic/data.pkl", calloc(1, 8), 8, ZIP_CM_STORE);
    assert_int_equal(zip_close(zip), 0);
    assert_refused(import_one("b.pth"), KS_FORMAT,
                   "torch.load(sys.argv[1], map_location=\"cpu\", weights_only=True)");
    write_text("a.txt", "text");
    assert_refused(import_one("a.txt"), KS_FORMAT, "expected a file of safetensors");
    assert_refused(import_one("none.npz"), KS_IO, "cannot be opened");
    assert_refused(import_one(""), KS_IO, "found a folder");
    clear_files(c);
}

static void test_inputs_stay(void **state)
{
    struct ks_checkpoint *c = export_example(&torch64);
    char name[512];

    (void)state;
    snprintf(name, sizeof name, "%s", scratch("c.h5"));
    assert_int_equal(rename(scratch("w.npz"), name), 0);
    assert_fails(import_one("c.h5"), KS_USAGE, "the checkpoint would replace this input");
    assert_int_equal(access(name, F_OK), 0);
    clear_files(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_unused, scratch_clean),
        cmocka_unit_test_teardown(test_missing, scratch_clean),
        cmocka_unit_test_teardown(test_ambiguous, scratch_clean),
        cmocka_unit_test_teardown(test_map, scratch_clean),
        cmocka_unit_test_teardown(test_shapes, scratch_clean),
        cmocka_unit_test_teardown(test_values, scratch_clean),
        cmocka_unit_test_teardown(test_statistics, scratch_clean),
        cmocka_unit_test_teardown(test_needed_statistics, scratch_clean),
        cmocka_unit_test_teardown(test_batch, scratch_clean),
        cmocka_unit_test_teardown(test_torch_files, scratch_clean),
        cmocka_unit_test_teardown(test_inputs_stay, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
