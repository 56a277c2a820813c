/* The names of spectrum files, and refused output folders: wrong paths, a full disk. */
#include "pipeline/pipeline.h"

#include "disk.h"
#include "scratch.h"

TEST_CLEAN(test_folder)
{
    const char *const checkpoints[] = {"a.h5"};
    char **outputs;

    assert_fails(ks_outputs_new(1, checkpoints, scratch("no/such"), NULL, &outputs), KS_IO,
                 "cannot be created");
    write_bytes(scratch("file"), "", 0);
    assert_fails(ks_outputs_new(1, checkpoints, scratch("file"), NULL, &outputs), KS_IO,
                 "exists and is not a directory");
    fault = DISK_FULL, fault_at = 1, operations = 0;
    assert_fails(ks_outputs_new(1, checkpoints, scratch("new"), NULL, &outputs), KS_FULL,
                 "cannot be created");
    fault = NO_FAULT;
    assert_ok(ks_outputs_new(1, checkpoints, scratch("new"), NULL, &outputs));
    ks_outputs_free(1, outputs);
}

/* The name of an analysis precedes the ending, with and without an output folder. */
TEST_CLEAN(test_names)
{
    const char *const checkpoints[] = {"runs/a.h5", "runs/b"};
    char **outputs;

    assert_ok(ks_outputs_new(2, checkpoints, NULL, NULL, &outputs));
    assert_string_equal(outputs[0], "runs/a.spectrum.h5");
    assert_string_equal(outputs[1], "runs/b.spectrum.h5");
    ks_outputs_free(2, outputs);
    assert_ok(ks_outputs_new(2, checkpoints, NULL, "xqc", &outputs));
    assert_string_equal(outputs[0], "runs/a.xqc.spectrum.h5");
    assert_string_equal(outputs[1], "runs/b.xqc.spectrum.h5");
    ks_outputs_free(2, outputs);
    assert_ok(ks_outputs_new(2, checkpoints, scratch("named"), "xqc", &outputs));
    assert_string_equal(strrchr(outputs[1], '/'), "/b.xqc.spectrum.h5");
    ks_outputs_free(2, outputs);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
