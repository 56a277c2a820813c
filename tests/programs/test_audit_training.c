/* kappascope-audit --train: from a description to an audit. */
#include "programs.h"

/* A described critic is trained beside a baseline; a second time nothing is computed. */
TEST(test_training)
{
    static const char command[] = "--order 10 --layer-order 0 --train new.arch --env "
                                  "cartpole-swingup --steps 1000 --out fresh --baseline dense+mse";
    struct stat first, second;

    write_text("new.arch", "dense 16\nrelu\ndense 1\nloss mse\n");
    assert_int_equal(audit(text_of("%s", command)), 0);
    assert_shows("\nWhich is better conditioned?\n");
    assert_contains(file_text("fresh/audit.html"), "baseline/seed0/step_000001000.h5");
    assert_int_equal(
        stat(scratch("fresh/runs/cartpole-swingup/new.arch/seed0/step_000001000.h5"), &first), 0);
    assert_int_equal(audit(text_of("%s", command)), 0);
    assert_int_equal(
        stat(scratch("fresh/runs/cartpole-swingup/new.arch/seed0/step_000001000.h5"), &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
    audit_refuses("--order 10 --layer-order 0 --train new.arch --env cartpole-swingup --steps 2000 "
                  "--out fresh",
                  "expected the study of this audit, found another one");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
