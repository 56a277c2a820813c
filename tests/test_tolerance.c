/* The reward shaping functions, against values computed by hand. */
#include "test.h"

#include "../src/env/tolerance.h"

static const struct ks_bounds one_to_three = {1, 3};

/* At a distance of d margins below the bounds. */
static double outside(double d, enum ks_sigmoid kind, double v)
{
    return ks_tolerance(1 - 2 * d, one_to_three, 2, kind, v);
}

static void test_values(void **state)
{
    (void)state;
    for (int kind = KS_GAUSSIAN; kind <= KS_QUADRATIC; kind++) {
        assert_close(outside(1, (enum ks_sigmoid)kind, 0.1), 0.1, 1e-15);
        assert_close(outside(1e-9, (enum ks_sigmoid)kind, 0.1), 1, 1e-7);
        assert_close(ks_tolerance(5, one_to_three, 2, (enum ks_sigmoid)kind, 0.1), 0.1, 1e-15);
        assert_false(ks_tolerance(NAN, one_to_three, 2, (enum ks_sigmoid)kind, 0.1) > 0);
    }
    assert_close(outside(0.5, KS_GAUSSIAN, 0.1), pow(0.1, 0.25), 1e-15);
    assert_close(outside(0.5, KS_LINEAR, 0), 0.5, 0);
    assert_close(outside(0.5, KS_QUADRATIC, 0), 0.75, 0);
    assert_close(outside(1.5, KS_LINEAR, 0), 0, 0);
    assert_close(outside(1.5, KS_QUADRATIC, 0), 0, 0);
}

static void test_bounds(void **state)
{
    (void)state;
    assert_close(ks_tolerance(1, one_to_three, 2, KS_LINEAR, 0), 1, 0); /* inclusive */
    assert_close(ks_tolerance(3, one_to_three, 2, KS_LINEAR, 0), 1, 0);
    assert_close(ks_tolerance(1e300, (struct ks_bounds){1, INFINITY}, 2, KS_LINEAR, 0), 1, 0);
    assert_close(ks_tolerance(3, (struct ks_bounds){3, 3}, 0, KS_LINEAR, 0), 1, 0);
    assert_close(ks_tolerance(3.1, (struct ks_bounds){3, 3}, 0, KS_LINEAR, 0), 0, 0);
    assert_false(ks_tolerance(NAN, (struct ks_bounds){-INFINITY, INFINITY}, 0, KS_GAUSSIAN, 0.1) >
                 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
