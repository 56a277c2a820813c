/* The formats of weights: each gives the same checkpoint as writing it directly, byte for byte. */
#include "foreign_formats.h"
#include "importing.h"

/* Puts "params/" in front of the names of m.map. */
static void move_to_params(void)
{
    size_t n;
    char *old = (char *)read_bytes(scratch("m.map"), &n), text[8192] = "";

    old[n] = '\0';
    for (char *line = strtok(old, "\n"); line; line = strtok(NULL, "\n")) {
        char *name = strstr(line, "= q");
        const int head = name ? (int)(name + 2 - line) : (int)strlen(line);

        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s%s%s\n", head, line,
                 name ? "params/" : "", name ? name + 2 : "");
    }
    free(old);
    write_text("m.map", text);
    extend_map("ignore step");
}

static void test_safetensors(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct export e = {
            .text = i & 1 ? CE : MSE, .type = i & 2 ? "<f8" : "<f4", .torch = true};
        struct ks_checkpoint *c = export_example(&e);

        write_safetensors(scratch("w.safetensors"), &critic);
        assert_ok(import_one("w.safetensors"));
        assert_imported(c, e.type[2] == '4');
        clear_files(c);
    }
}

/* Also arrays in chunks. */
static void test_msgpack(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct export e = {.text = CE, .type = i & 1 ? "<f8" : "<f4"};
        struct ks_checkpoint *c = export_example(&e);

        move_to_params();
        write_msgpack(scratch("w.msgpack"), &critic, i & 2 ? 3 : 1000);
        assert_ok(import_one("w.msgpack"));
        assert_imported(c, e.type[2] == '4');
        clear_files(c);
    }
}

/* Datasets in groups, written by libhdf5. */
static void write_hdf5(const char *path)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t links = H5Pcreate(H5P_LINK_CREATE), space, set, type;

    H5Pset_create_intermediate_group(links, 1);
    for (size_t i = 0; i < critic.n; i++) {
        const struct foreign *a = &critic.list[i];
        char object[FOREIGN_NAME + 16];
        hsize_t dims[FOREIGN_DIMS];

        for (size_t k = 0; k < a->n_dims; k++)
            dims[k] = a->dims[k];
        type = a->type[1] == 'i'   ? H5T_STD_I64BE
               : a->type[2] == '4' ? H5T_IEEE_F32LE
                                   : H5T_IEEE_F64BE;
        snprintf(object, sizeof object, "/params/%s", a->name);
        space = H5Screate_simple((int)a->n_dims, dims, NULL);
        set = H5Dcreate2(file, object, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, a->values) >=
                    0);
        H5Dclose(set);
        H5Sclose(space);
    }
    H5Pclose(links);
    H5Fclose(file);
}

static void test_hdf5(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct export e = {.text = CE, .type = i ? "<f8" : "<f4"};
        struct ks_checkpoint *c = export_example(&e);

        move_to_params();
        for (size_t k = 0; k < 3; k++) { /* the same file, with circles and with a link outside */
            hid_t file;

            write_hdf5(scratch("w.h5"));
            file = edit(scratch("w.h5"));
            if (k == 1)
                H5Lcreate_hard(file, "/", file, "/params/again", H5P_DEFAULT, H5P_DEFAULT);
            if (k == 2)
                H5Lcreate_external("/etc/passwd", "/a", file, "/step", H5P_DEFAULT, H5P_DEFAULT);
            H5Fclose(file);
            if (k == 0) {
                assert_ok(import_one("w.h5"));
                assert_imported(c, e.type[2] == '4');
            } else
                assert_refused(import_one("w.h5"), KS_FORMAT,
                               k == 1 ? "paths of fewer than" : "found an external link");
        }
        foreign_find(&critic, "q9.00_batchnorm.scale")->type = "<i8";
        write_hdf5(scratch("w.h5"));
        assert_refused(import_one("w.h5"), KS_FORMAT,
                       "q9.00_batchnorm.scale: expected real numbers for 00_batchnorm/scale, found "
                       "integer");
        clear_files(c);
    }
}

/* The upper half of a float32, exact in bfloat16 and in float16. */
static void test_half(void **state)
{
    static const char *const types[] = {"<b2", "<f2"};
    const struct export e = {.text = MSE, .type = "<f4", .torch = true};

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct ks_checkpoint *c = export_example(&e);

        for (size_t i = 0; i < critic.n; i++) {
            critic.list[i].type = types[k];
            for (size_t j = 0; j < foreign_count(&critic.list[i]); j++)
                critic.list[i].values[j] = -1.5;
        }
        for (size_t j = 0; j < ks_networks_parameters(&c->critic); j++)
            c->critic.w[j] = -1.5;
        write_safetensors(scratch("w.safetensors"), &critic);
        assert_ok(import_one("w.safetensors"));
        assert_imported(c, true);
        clear_files(c);
    }
}

static void test_integers(void **state)
{
    const struct export e = {.text = MSE, .type = "<f4", .torch = true};
    struct ks_checkpoint *c = export_example(&e);

    (void)state;
    foreign_find(&critic, "q9.02_dense.kernel")->type = "<i4";
    write_safetensors(scratch("w.safetensors"), &critic);
    assert_refused(import_one("w.safetensors"), KS_FORMAT,
                   "q9.02_dense.kernel: expected real numbers for 02_dense/kernel, found I32");
    move_to_params();
    write_msgpack(scratch("w.msgpack"), &critic, 1000);
    assert_refused(import_one("w.msgpack"), KS_FORMAT,
                   "params/q9.02_dense.kernel: expected real numbers for 02_dense/kernel, found "
                   "int32");
    clear_files(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_safetensors, scratch_clean),
        cmocka_unit_test_teardown(test_msgpack, scratch_clean),
        cmocka_unit_test_teardown(test_hdf5, scratch_clean),
        cmocka_unit_test_teardown(test_half, scratch_clean),
        cmocka_unit_test_teardown(test_integers, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
