/* Where spectra go: a place that is none to write to, and a disk that is full. */
#include "ks/outputs.h"

#include "disk.h"
#include "scratch.h"

static void test_folder(void **state)
{
    const char *const checkpoints[] = {"a.h5"};
    char **outputs;

    (void)state;
    assert_fails(ks_outputs_new(1, checkpoints, scratch("no/such"), &outputs), KS_IO,
                 "cannot be made");
    write_bytes(scratch("file"), "", 0);
    assert_fails(ks_outputs_new(1, checkpoints, scratch("file"), &outputs), KS_IO, "found a file");
    fate = FULL, fate_at = 1, operations = 0;
    assert_fails(ks_outputs_new(1, checkpoints, scratch("new"), &outputs), KS_FULL,
                 "cannot be made");
    fate = LIVES;
    assert_ok(ks_outputs_new(1, checkpoints, scratch("new"), &outputs));
    ks_outputs_free(1, outputs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(test_folder, scratch_clean)};

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
