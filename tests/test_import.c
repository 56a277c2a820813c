/* Importing a critic: files written here byte by byte give the same checkpoint as writing it
 * directly, byte for byte. */
#include "import/glob.h"
#include "importing.h"

static struct foreign_list critic, batch;
static const struct export torch64 = {.text = MSE, .type = "<f8", .torch = true};

static void write_files(void)
{
    write_npz(scratch("w.npz"), &critic, ZIP_CM_DEFLATE);
    write_npz(scratch("b.npz"), &batch, ZIP_CM_STORE);
}

static void clear_files(struct ks_checkpoint *c)
{
    foreign_clear(&critic);
    foreign_clear(&batch);
    ks_checkpoint_free(c);
}

/* --- critics --- */

/* Both descriptions, layouts and precisions; critics by a wildcard, with the last one first in the
 * file. */
static void test_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const struct export e = {
            .text = i & 1 ? CE : MSE, .type = i & 2 ? "<f8" : "<f4", .torch = (i & 4) != 0};
        struct ks_checkpoint *c = export_example(&e, &critic, &batch);

        write_files();
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
    struct ks_checkpoint *c = export_example(&e, &critic, &batch);

    (void)state;
    write_files();
    assert_ok(import_one("w.npz"));
    assert_imported(c, false);
    clear_files(c);
}

/* Critics in an axis, several seeds in another, in any order of the axes. */
static void test_axes(void **state)
{
    const struct export e = {.text = CE, .type = "<f8", .torch = true, .stacked = true};
    enum { SEEDS = 3, SEED = 2 };

    (void)state;
    for (int order = 0; order < 3; order++) { /* [S, E, ...], [E, S, ...], [E, ..., S] */
        const struct ks_axes axes = {.has_ensemble = true,
                                     .has_slice = true,
                                     .ensemble = order == 0,
                                     .slice = order == 1,
                                     .index = SEED};
        struct ks_checkpoint *c = export_example(&e, &critic, &batch);
        struct ks_axes now = axes;

        for (size_t k = 0; k < critic.n; k++) {
            struct foreign *a = &critic.list[k], old = *a;
            const size_t n = foreign_count(a), inner = n / a->dims[0];
            const size_t at = order == 0 ? 0 : order == 1 ? 1 : a->n_dims;

            memmove(a->dims + at + 1, a->dims + at, (a->n_dims - at) * sizeof *a->dims);
            a->dims[at] = SEEDS;
            a->n_dims++;
            a->values = calloc(n * SEEDS, sizeof *a->values);
            for (size_t i = 0; i < n; i++) {
                const size_t place[3] = {
                    SEED * n + i, (i / inner * SEEDS + SEED) * inner + i % inner, i * SEEDS + SEED};

                a->values[place[order]] = old.values[i];
            }
            free(old.values);
        }
        write_files();
        if (order < 2) {
            const char *const name = "w.npz";

            assert_ok(import_files(1, &name, &now));
            assert_imported(c, false);
        } else { /* the last axis has another number in matrices and in vectors */
            const char *const name = "w.npz";

            now.slice = 2;
            assert_refused(import_files(1, &name, &now), KS_FORMAT, "expected");
        }
        clear_files(c);
    }
}

/* One file per critic. */
static void test_files(void **state)
{
    const char *const names[] = {"w0.npz", "w1.npz"};
    struct foreign_list halves[2] = {{.n = 0}};
    struct ks_checkpoint *c;

    (void)state;
    c = export_example(&torch64, &critic, &batch);
    write_files();
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
        struct ks_checkpoint *c = export_example(&torch64, &critic, &batch);
        double *numbers_of[] = {c->critic.w, c->input, c->target};
        const size_t n[] = {ks_networks_parameters(&c->critic), MINIBATCHES * ROWS * IN,
                            MINIBATCHES * LOSS_ROWS};

        for (size_t i = 0; i < 3; i++) /* representable everywhere */
            for (size_t j = 0; j < n[i]; j++)
                numbers_of[i][j] = (1 + (double)(j % 100) / 128) * (j % 3 ? 1 : -2);
        foreign_clear(&critic);
        foreign_clear(&batch);
        {
            struct ks_objects objects;

            assert_ok(ks_objects_of(c->critic.arch, &objects));
            for (size_t i = 0; i < objects.n; i++)
                export_object(c, &objects.list[i], &torch64, &critic);
            export_batch(c, types[k], &batch);
            free(objects.list);
        }
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

static struct ks_checkpoint *start(void)
{
    struct ks_checkpoint *c = export_example(&torch64, &critic, &batch);

    write_files();
    return c;
}

/* Targets of each critic: [N, B, E, T] in the file. */
static void test_targets(void **state)
{
    struct ks_checkpoint *c = start();
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
    struct ks_checkpoint *c = start();
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

/* Proofs are stored; wrong ones, and a square kernel in the other layout, are refused. */
static void test_proofs(void **state)
{
    static const char SQUARE[] = "dense 5\nrelu\ndense 1\nloss mse\n";
    const struct export e = {.text = SQUARE, .type = "<f8", .torch = true};
    struct ks_checkpoint *c = export_example(&e, &critic, &batch);
    const size_t dims[4] = {MINIBATCHES, ROWS, ENSEMBLE, 1};
    struct foreign *output = foreign_add(&batch, "output", "<f8", 4, dims);
    struct foreign *loss = foreign_add(&batch, "loss", "<f4", 1, dims);
    struct foreign *norm = foreign_add(&batch, "gradient_norm", "<f8", 1, (size_t[]){1});

    (void)state;
    c->proofs.output = (struct ks_proof){.minibatches = MINIBATCHES, .rows = ROWS, .wide = true};
    c->proofs.loss = (struct ks_proof){.minibatches = MINIBATCHES, .rows = 1};
    c->proofs.gradient_norm = (struct ks_proof){.minibatches = 1, .rows = 1, .wide = true};
    assert_ok(ks_proofs_compute(c, &c->proofs));
    memcpy(output->values, c->proofs.output.value, foreign_count(output) * sizeof(double));
    memcpy(loss->values, c->proofs.loss.value, foreign_count(loss) * sizeof(double));
    norm->values[0] = c->proofs.gradient_norm.value[0];
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
    {
        size_t n;
        char *map = (char *)read_bytes(scratch("m.map"), &n), *word = strstr(map, "torch");

        memcpy(word, "flax ", 5);
        write_bytes(scratch("m.map"), map, n);
        free(map);
    }
    foreign_find(&critic, "q9.02_dense.kernel")->dims[0] = 5;
    foreign_find(&critic, "q9.02_dense.kernel")->dims[1] = 1;
    foreign_find(&critic, "q10.02_dense.kernel")->dims[0] = 5;
    foreign_find(&critic, "q10.02_dense.kernel")->dims[1] = 1;
    write_files();
    assert_refused(import_one("w.npz"), KS_FORMAT, "b.npz: output: minibatch 0, row 0");
    clear_files(c);
}

/* --- patterns --- */

static void test_globs(void **state)
{
    struct ks_glob_parts parts;
    char name[300];

    (void)state;
    assert_true(ks_glob_matches("q*.net.0.weight", "q12.net.0.weight", &parts));
    assert_int_equal(parts.n, 1);
    assert_int_equal(parts.part[0].length, 2);
    assert_true(parts.part[0].start[0] == '1');
    assert_false(ks_glob_matches("q*.weight", "q1.net.weight", NULL));
    assert_false(ks_glob_matches("q*.weight", "q1/net.weight", NULL));
    assert_true(ks_glob_matches("q**.weight", "q1/net.weight", NULL));
    assert_true(ks_glob_matches("q?", "q1", NULL));
    assert_false(ks_glob_matches("q?", "q.", NULL));
    assert_false(ks_glob_matches("q?", "q", NULL));
    assert_true(ks_glob_matches("*", "", NULL));
    assert_true(ks_glob_matches("a*b*c", "abbcbc", &parts));
    assert_int_equal(parts.part[0].length, 0);
    assert_false(ks_glob_matches("a", "ab", NULL));
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_false(ks_glob_matches("*a*a*a*a*a*a*a*b", name, NULL)); /* at once */
    assert_true(ks_glob_compare("q2.w", "q10.w") < 0);
    assert_true(ks_glob_compare("q10.w", "q9.w") > 0);
    assert_true(ks_glob_compare("q02", "q2") == 0);
    assert_true(ks_glob_compare("a", "ab") < 0);
    assert_true(ks_glob_compare("b", "a10") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_round_trip, scratch_clean),
        cmocka_unit_test_teardown(test_frozen, scratch_clean),
        cmocka_unit_test_teardown(test_axes, scratch_clean),
        cmocka_unit_test_teardown(test_files, scratch_clean),
        cmocka_unit_test_teardown(test_types, scratch_clean),
        cmocka_unit_test_teardown(test_targets, scratch_clean),
        cmocka_unit_test_teardown(test_weight, scratch_clean),
        cmocka_unit_test_teardown(test_proofs, scratch_clean),
        cmocka_unit_test(test_globs),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
