/* Importing a critic: files written here byte by byte give the same checkpoint as writing it
 * directly, byte for byte. */
#include "importing.h"

/* --- critics --- */

/* Both descriptions, layouts and precisions; critics by a wildcard, with the last one first in the
 * file. */
static void test_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const struct export e = {
            .text = i & 1 ? CE : MSE, .type = i & 2 ? "<f8" : "<f4", .torch = (i & 4) != 0};
        struct ks_checkpoint *c = export_example(&e);

        assert_ok(import_one("w.npz"));
        assert_imported(c, e.type[2] == '4');
        clear_files(c);
    }
}

/* A layer with trainable=no has its own place in the checkpoint. */
static void test_frozen(void **state)
{
    static const char text[] = "dense 4 trainable=no\nbatchnorm\nrelu\ndense 5\nrelu\n"
                               "dense 1 trainable=no\nloss mse\n";
    const struct export e = {.text = text, .type = "<f8", .torch = true};
    struct ks_checkpoint *c = export_example(&e);

    (void)state;
    assert_ok(import_one("w.npz"));
    assert_imported(c, false);
    clear_files(c);
}

/* Inserts an axis into an array: it has the old values at one index and zeros elsewhere. */
static void insert_axis(struct foreign *a, size_t at, size_t length, size_t index)
{
    const size_t n = foreign_count(a);
    double *values = calloc(n * length, sizeof *values);
    size_t inner = 1;

    assert_non_null(values);
    for (size_t k = at; k < a->n_dims; k++)
        inner *= a->dims[k];
    for (size_t i = 0; i < n; i++)
        values[(i / inner * length + index) * inner + i % inner] = a->values[i];
    free(a->values);
    a->values = values;
    memmove(a->dims + at + 1, a->dims + at, (a->n_dims - at) * sizeof *a->dims);
    a->dims[at] = length;
    a->n_dims++;
}

/* Critics in an axis, and several seeds in an axis in front of it or behind it. */
static void test_axes(void **state)
{
    const struct export e = {.text = CE, .type = "<f8", .torch = true, .stacked = true};
    static const char *const name = "w.npz";
    enum { SEEDS = 3, SEED = 2 };

    (void)state;
    for (size_t at = 0; at < 2; at++) { /* [S, E, ...], [E, S, ...] */
        const struct ks_axes axes = {.has_ensemble = true,
                                     .has_slice = true,
                                     .ensemble = 1 - at,
                                     .slice = at,
                                     .index = SEED};
        struct ks_checkpoint *c = export_example(&e);

        for (size_t k = 0; k < critic.n; k++)
            insert_axis(&critic.list[k], at, SEEDS, SEED);
        write_files();
        assert_ok(import_files(1, &name, &axes));
        assert_imported(c, false);
        clear_files(c);
    }
}

/* The last axis is another one in vectors [E, d, S] than in matrices [E, rows, columns, S]. */
static void test_last_axis(void **state)
{
    const struct export e = {.text = CE, .type = "<f8", .torch = true, .stacked = true};
    const struct ks_axes axes = {.has_ensemble = true, .has_slice = true, .slice = 2, .index = 2};
    static const char *const name = "w.npz";
    struct ks_checkpoint *c = export_example(&e);

    (void)state;
    for (size_t k = 0; k < critic.n; k++)
        insert_axis(&critic.list[k], critic.list[k].n_dims, 3, 2);
    write_files();
    assert_refused(import_files(1, &name, &axes), KS_FORMAT,
                   "q.01_dense.kernel: expected shape [7, 5] for 01_dense/kernel with layout = "
                   "torch, found [7, 3]");
    clear_files(c);
}

/* Biases [E, 1, out] beside kernels [E, out, in], and arrays with more axes of length 1. */
static void test_squeezed(void **state)
{
    const struct export e = {.text = MSE, .type = "<f8", .torch = true, .stacked = true};
    const struct ks_axes axes = {.has_ensemble = true};
    static const char *const name = "w.npz";
    struct ks_checkpoint *c = export_example(&e);

    (void)state;
    insert_axis(foreign_find(&critic, "q.00_dense.bias"), 1, 1, 0);
    insert_axis(foreign_find(&critic, "q.02_dense.bias"), 1, 1, 0);
    insert_axis(foreign_find(&critic, "q.00_dense.kernel"), 3, 1, 0);
    insert_axis(foreign_find(&critic, "q.02_dense.kernel"), 2, 1, 0); /* [E, 1, 1, 4] */
    write_files();
    assert_ok(import_files(1, &name, &axes));
    assert_imported(c, false);
    foreign_find(&critic, "q.00_dense.bias")->dims[1] = 2;
    foreign_find(&critic, "q.00_dense.bias")->dims[2] = 2;
    write_files();
    assert_refused(import_files(1, &name, &axes), KS_FORMAT,
                   "q.00_dense.bias: expected shape [4] for 00_dense/bias with layout = torch, "
                   "found [2, 2]");
    clear_files(c);
}

/* One file per critic. */
static void test_files(void **state)
{
    const char *const names[] = {"w0.npz", "w1.npz"};
    struct foreign_list halves[2] = {{.n = 0}};
    struct ks_checkpoint *c;

    (void)state;
    c = export_example(&torch64);
    for (size_t i = 0; i < critic.n; i++) {
        const bool second = strncmp(critic.list[i].name, "q10.", 4) == 0;

        halves[second].list[halves[second].n++] = critic.list[i];
    }
    for (int i = 0; i < 2; i++)
        write_npz(scratch(names[i]), &halves[i], ZIP_CM_DEFLATE);
    assert_ok(import_files(2, names, NULL));
    assert_imported(c, false);
    clear_files(c);
}

/* Half precision, bytes and axes in the other order: the same numbers. */
static void test_types(void **state)
{
    static const char *const types[] = {"<f2", ">f2", ">f4", ">f8"};

    (void)state;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        struct ks_checkpoint *c = export_example(&torch64);
        double *numbers_of[] = {c->critic.w, c->input, c->target};
        const size_t n[] = {ks_networks_parameters(&c->critic), MINIBATCHES * ROWS * IN,
                            MINIBATCHES * LOSS_ROWS};

        for (size_t i = 0; i < 3; i++) /* representable everywhere */
            for (size_t j = 0; j < n[i]; j++)
                numbers_of[i][j] = (1 + (double)(j % 100) / 128) * (j % 3 ? 1 : -2);
        export_arrays(c, &torch64);
        for (size_t i = 0; i < batch.n; i++)
            batch.list[i].type = types[k];
        for (size_t i = 0; i < critic.n; i++) {
            critic.list[i].type = types[k];
            critic.list[i].first_fastest = i % 2 == 0;
        }
        batch.list[0].first_fastest = true;
        write_files();
        assert_ok(import_one("w.npz"));
        assert_imported(c, types[k][2] != '8');
        clear_files(c);
    }
}

/* --- batches --- */

/* Targets of each critic: [N, B, E, T] in the file. */
static void test_targets(void **state)
{
    struct ks_checkpoint *c = export_example(&torch64);
    const size_t dims[4] = {MINIBATCHES, LOSS_ROWS, ENSEMBLE, 1};
    struct foreign *target;

    (void)state;
    free(batch.list[--batch.n].values);
    target = foreign_add(&batch, "target", "<f8", 4, dims);
    free(c->target);
    assert_ok(ks_alloc(foreign_count(target), sizeof *c->target, &c->target));
    c->targets_differ = true;
    for (size_t i = 0; i < foreign_count(target); i++) {
        const size_t e = i % ENSEMBLE, row = i / ENSEMBLE % LOSS_ROWS;
        const size_t n = i / ENSEMBLE / LOSS_ROWS;

        target->values[i] = (double)i / 7;
        c->target[(n * ENSEMBLE + e) * LOSS_ROWS + row] = (double)i / 7;
    }
    write_files();
    assert_ok(import_one("w.npz"));
    assert_imported(c, false);
    target->dims[2] = 1, target->dims[3] = ENSEMBLE;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "each critic [3, rows, 2, 1]");
    clear_files(c);
}

static void test_weight(void **state)
{
    struct ks_checkpoint *c = export_example(&torch64);
    const size_t dims[2] = {MINIBATCHES, LOSS_ROWS};
    struct foreign *weight = foreign_add(&batch, "weight", "<f8", 2, dims);

    (void)state;
    assert_ok(ks_alloc(foreign_count(weight), sizeof *c->weight, &c->weight));
    for (size_t i = 0; i < foreign_count(weight); i++)
        c->weight[i] = weight->values[i] = (double)i / 7;
    write_files();
    assert_ok(import_one("w.npz"));
    assert_imported(c, false);
    weight->values[5] = -1;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "b.npz: weight: row 1 of minibatch 1: expected");
    weight->dims[0] = LOSS_ROWS, weight->dims[1] = MINIBATCHES;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "weight: expected [3, 4], found float64 [4, 3]");
    clear_files(c);
}

/* Changes the layout in m.map from torch to flax. */
static void use_layout_flax(void)
{
    size_t n;
    char *map = (char *)read_bytes(scratch("m.map"), &n);

    map[n] = '\0';
    memcpy(strstr(map, "torch"), "flax ", 5);
    write_bytes(scratch("m.map"), map, n);
    free(map);
}

/* Reference results are stored; wrong ones, and a square kernel in the other layout, are refused.
 */
static void test_references(void **state)
{
    static const char SQUARE[] = "dense 5\nrelu\ndense 1\nloss mse\n";
    const struct export e = {.text = SQUARE, .type = "<f8", .torch = true};
    struct ks_checkpoint *c = export_example(&e);
    const size_t dims[4] = {MINIBATCHES, ROWS, ENSEMBLE, 1};
    struct foreign *output = foreign_add(&batch, "output", "<f8", 4, dims);
    struct foreign *loss = foreign_add(&batch, "loss", "<f4", 1, dims);
    struct foreign *norm = foreign_add(&batch, "gradient_norm", "<f8", 1, (size_t[]){1});

    (void)state;
    c->references.output = (struct ks_reference){
        .minibatches = MINIBATCHES, .rows = ROWS, .wide = true};
    c->references.loss = (struct ks_reference){.minibatches = MINIBATCHES, .rows = 1};
    c->references.gradient_norm = (struct ks_reference){.minibatches = 1, .rows = 1, .wide = true};
    assert_ok(ks_references_compute(c, &c->references));
    memcpy(output->values, c->references.output.value, foreign_count(output) * sizeof(double));
    memcpy(loss->values, c->references.loss.value, foreign_count(loss) * sizeof(double));
    norm->values[0] = c->references.gradient_norm.value[0];
    write_files();
    assert_ok(import_one("w.npz"));
    assert_imported(c, false);
    norm->values[0] *= 1 + 1e-6;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "b.npz: gradient_norm: minibatch 0");
    norm->n_dims = 2, norm->dims[1] = 1;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT,
                   "gradient_norm: expected a number for each of 3");
    output->dims[1] = 1, output->dims[2] = ENSEMBLE * ROWS;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "output: expected 3 minibatches (or the first");
    output->dims[1] = ROWS, output->dims[2] = ENSEMBLE;
    norm->n_dims = 1;
    use_layout_flax();
    foreign_find(&critic, "q9.02_dense.kernel")->dims[0] = 5;
    foreign_find(&critic, "q9.02_dense.kernel")->dims[1] = 1;
    foreign_find(&critic, "q10.02_dense.kernel")->dims[0] = 5;
    foreign_find(&critic, "q10.02_dense.kernel")->dims[1] = 1;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "b.npz: output: minibatch 0, row 0");
    clear_files(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_round_trip, scratch_clean),
        cmocka_unit_test_teardown(test_frozen, scratch_clean),
        cmocka_unit_test_teardown(test_axes, scratch_clean),
        cmocka_unit_test_teardown(test_last_axis, scratch_clean),
        cmocka_unit_test_teardown(test_squeezed, scratch_clean),
        cmocka_unit_test_teardown(test_files, scratch_clean),
        cmocka_unit_test_teardown(test_types, scratch_clean),
        cmocka_unit_test_teardown(test_targets, scratch_clean),
        cmocka_unit_test_teardown(test_weight, scratch_clean),
        cmocka_unit_test_teardown(test_references, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
