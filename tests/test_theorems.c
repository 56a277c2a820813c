/* theorems.csv and the lines about it, from statistics made by hand. */
#include "claimed_study.h"

#include "claims/theorems.h"

static int make(void **state)
{
    int failed = tree_make(state);

    claimed_new("bn+wn+ce ln+mse dense+ce", 2, "");
    return failed;
}

static void put_bounds(struct spot at, double logit, double gradient, double jacobian)
{
    put(at, "logit_gradient_largest", logit);
    put(at, "logit_gradient_median", logit / 2);
    put(at, "minibatch_gradient_largest", gradient);
    put(at, "logit_jacobian_largest", jacobian);
    put(at, "logit_jacobian_median", jacobian / 4);
    put(at, "logit_jacobian_rows", 4);
}

static const char *printed(void (*print)(const struct ks_results *, FILE *))
{
    FILE *file = fopen(tree_path("printed"), "w");

    assert_non_null(file);
    print(study_results, file);
    assert_int_equal(fclose(file), 0);
    return tree_text("printed");
}

/* Rows only for spectra with the statistics, in the order of runs and checkpoints. */
static void test_table(void **state)
{
    (void)state;
    put_bounds((struct spot){STANDARD, KS_TWELVE_OF(KS_DENSE, 0, KS_CE), 1, 2}, sqrt(2) / 2,
               sqrt(2) * 3, 10);
    put_bounds((struct spot){STANDARD, BEST, 0, 5}, sqrt(2), sqrt(2), 2);
    assert_string_equal(
        printed(ks_theorems_print_csv),
        "architecture,seed,env_step,proposition_2_largest,proposition_2_median,theorem_1,"
        "theorem_1_median,jacobian_rows\n"
        "bn+wn+ce,0,24,1,0.5,0.5,2,4\n"
        "dense+ce,1,12,0.5,0.25,0.3,1.2,4\n");
}

static void test_lines(void **state)
{
    const char *text;

    (void)state;
    assert_string_equal(printed(ks_theorems_print), "");
    put_bounds((struct spot){STANDARD, BEST, 0, 5}, sqrt(2) / 2, sqrt(2), 2);
    put_bounds((struct spot){STANDARD, BEST, 1, 5}, sqrt(2) / 4, sqrt(2), 4);
    text = printed(ks_theorems_print);
    assert_non_null(strstr(text, "of 2 checkpoints with cross-entropy the largest ratio is 0.5."));
    assert_non_null(strstr(text, "the largest ratio is at most 0.5, with L_f"));
    assert_null(strstr(text, "error"));
    put_bounds((struct spot){STANDARD, BEST, 0, 5}, sqrt(2) * 1.01, sqrt(2), 2);
    assert_non_null(
        strstr(printed(ks_theorems_print), "1 checkpoints exceed it: that is an error"));
}

int main(void)
{
#define IN_STUDY(test) cmocka_unit_test_setup_teardown(test, make, claimed_end)
    const struct CMUnitTest tests[] = {IN_STUDY(test_table), IN_STUDY(test_lines)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
