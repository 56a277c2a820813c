/* Files of weights with random bytes changed: opening them and reading all that they list succeeds,
 * or fails with one line that names the file; no claim of a size is believed.
 *
 * $KS_MUTATIONS: the number of mutations of each file; .ci/run sets more than the default. */
#include <sys/resource.h>

#include "foreign_formats.h"
#include "importing.h"
#include "mutations.h"

enum { MUTATIONS = 1000 };
/* Bytes that reading these files of a few KB may take; AddressSanitizer keeps what is freed. */
#ifdef __SANITIZE_ADDRESS__
static const double ROOM = 4e9;
#else
static const double ROOM = 256e6;
#endif

/* Of an archive with checksums: what is read is what was written. */
static void check_values(const struct ks_stored *s, const double *values)
{
    for (size_t i = 0; i < critic.n; i++) {
        const struct foreign *a = &critic.list[i];

        if (strcmp(a->name, s->name) != 0)
            continue;
        assert_int_equal(ks_stored_count(s), foreign_count(a));
        same_numbers(foreign_count(a), values, a->values, s->real == KS_FLOAT32);
    }
}

/* Opens the file and reads every array of real numbers; returns whether it could be opened. */
static bool read_all(const char *path, bool checked)
{
    struct ks_weights *w;
    double *values;

    if (ks_weights_open(path, &w) != KS_OK) {
        assert_one_line(path);
        return false;
    }
    for (size_t i = 0; i < w->n; i++) {
        const ks_status status = ks_weights_read(w, &w->list[i], &values);

        if (status != KS_OK)
            assert_one_line(path);
        else if (checked)
            check_values(&w->list[i], values);
        assert_int_not_equal(status, KS_MEMORY);
        free(values);
    }
    ks_weights_close(w);
    return true;
}

static double most_memory(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return 1024 * (double)usage.ru_maxrss;
}

static void check_mutations(const char *path, uint64_t stream, bool checked)
{
    const size_t mutations = mutations_asked(MUTATIONS);
    const double before = most_memory();
    struct ks_rng rng = ks_rng_start(13, stream);
    char name[256], good[256];
    unsigned char *bytes, *bad;
    size_t n, opened = 0;

    snprintf(good, sizeof good, "%s", path);
    snprintf(name, sizeof name, "%s%s", scratch("bad"), strrchr(good, '.'));
    assert_true(read_all(good, true));
    bytes = read_bytes(good, &n);
    bad = malloc(n);
    assert_non_null(bad);
    for (size_t i = 0; i < mutations; i++) {
        memcpy(bad, bytes, n);
        write_bytes(name, bad, mutate(&rng, bad, n));
        opened += read_all(name, checked);
    }
    print_message("%zu mutations: %zu opened\n", mutations, opened);
    assert_true(most_memory() - before < ROOM);
    free(bytes);
    free(bad);
}

static void make_lists(void)
{
    const struct export e = {.text = CE, .type = "<f4"};

    ks_checkpoint_free(export_example(&e));
}

static void test_npz(void **state)
{
    (void)state;
    make_lists();
    write_npz(scratch("good.npz"), &critic, ZIP_CM_DEFLATE);
    check_mutations(scratch("good.npz"), 0, true);
    write_npz(scratch("good.npz"), &critic, ZIP_CM_STORE);
    check_mutations(scratch("good.npz"), 1, true);
    clear_files(NULL);
}

static void test_safetensors(void **state)
{
    (void)state;
    make_lists();
    write_safetensors(scratch("good.safetensors"), &critic);
    check_mutations(scratch("good.safetensors"), 2, false);
    clear_files(NULL);
}

static void test_msgpack(void **state)
{
    (void)state;
    make_lists();
    write_msgpack(scratch("good.msgpack"), &critic, 20);
    check_mutations(scratch("good.msgpack"), 3, false);
    clear_files(NULL);
}

/* The text of a map, too. */
static void test_map(void **state)
{
    struct ks_rng rng = ks_rng_start(13, 4);
    unsigned char *bytes, *bad;
    struct ks_map map;
    char name[256];
    size_t n;

    (void)state;
    make_lists();
    snprintf(name, sizeof name, "%s", scratch("bad.map"));
    bytes = read_bytes(scratch("m.map"), &n);
    bad = malloc(n);
    assert_non_null(bad);
    for (size_t i = 0; i < mutations_asked(MUTATIONS); i++) {
        memcpy(bad, bytes, n);
        write_bytes(name, bad, mutate(&rng, bad, n));
        if (ks_map_read(name, &map) != KS_OK)
            assert_one_line(name);
        ks_map_clear(&map);
    }
    free(bytes);
    free(bad);
    clear_files(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_npz, scratch_clean),
        cmocka_unit_test_teardown(test_safetensors, scratch_clean),
        cmocka_unit_test_teardown(test_msgpack, scratch_clean),
        cmocka_unit_test_teardown(test_map, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
