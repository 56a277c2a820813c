/* Roots of increasing functions: smooth ones, steps, and functions without a root. */
#include "statistics/share_bounds.h"

#include "test.h"

struct function {
    double step, at; /* the height and position of a step */
    size_t evaluations, fail_at;
};

/* Smooth except at the step and at 70. */
static double value_at(const struct function *f, double x)
{
    return 3 * log(x) + tanh(x) + (x >= f->at ? f->step : 0) + 1e6 * fmax(0, log(x / 70));
}

static ks_status evaluate(const void *context, double x, double *value)
{
    struct function *f = *(struct function *const *)context;

    f->evaluations++;
    if (f->evaluations == f->fail_at)
        return ks_fail(KS_NUMBER, "the function's own words");
    assert_true(x >= 1e-8 && x <= 1000);
    *value = value_at(f, x);
    return KS_OK;
}

static const double breaks[] = {0, 1e-7, 1e-3, 2, 2, 5, 70, 800, 5000};

static struct ks_monotone rising_of(struct function *const *f)
{
    return (struct ks_monotone){evaluate, f, sizeof breaks / sizeof breaks[0], breaks};
}

/* The root is bracketed to 2e-13, in about twenty evaluations where the function is smooth, and
 * next to a step in no more than bisection needs. */
TEST(test_crossing)
{
    for (int step = 0; step < 2; step++)
        for (double x = 3e-8; x < 900; x *= 1.31) {
            struct function f = {.step = step ? 40 : 0, .at = 5}, *pointer = &f;
            struct ks_monotone rising = rising_of((struct function *const *)&pointer);
            double level = value_at(&f, x);
            struct ks_crossing at;

            assert_ok(ks_monotone_root(&rising, level, 1e-8, 1000, &at));
            assert_true(at.before <= x * (1 + 1e-14) && at.after >= x * (1 - 1e-14));
            assert_true(at.after - at.before <= 2.01e-13 * at.after);
            assert_true(f.evaluations <= (step ? 55 : 18));
        }
}

TEST(test_step)
{
    for (size_t i = 0; i < 2; i++) {
        struct function f = {.step = 40, .at = i == 0 ? 5 : 5.5}, *pointer = &f;
        struct ks_monotone rising = rising_of((struct function *const *)&pointer);
        struct ks_crossing at;

        assert_ok(ks_monotone_root(&rising, 20, 1e-8, 1000, &at));
        assert_true(at.before < f.at && at.after >= f.at);
        assert_true(at.after - at.before <= 2.01e-13 * at.after);
        assert_true(f.evaluations <= 55);
    }
}

TEST(test_no_crossing)
{
    struct function f = {.fail_at = 0}, *pointer = &f;
    struct ks_monotone rising = rising_of((struct function *const *)&pointer);
    struct ks_crossing at;

    assert_ok(ks_monotone_root(&rising, 1e8, 0.5, 1000, &at));
    assert_close(at.before, 1000, 0);
    assert_true(isinf(at.after));
    assert_ok(ks_monotone_root(&rising, -100, 0.5, 1000, &at));
    assert_close(at.before, 0, 0);
    assert_close(at.after, 0.5, 0);
    for (size_t k = 1; k < 8; k++) {
        f = (struct function){.fail_at = k};
        assert_fails(ks_monotone_root(&rising, 1, 0.5, 1000, &at), KS_NUMBER, "own words");
    }
}
