/* Probability of improvement and profiles, by hand. */
#include "test.h"

#include "core/number.h"
#include "results/comparison.h"

/* {1 2 1 2} and {2 2 1 1} against {1 2 3} on both tasks: 1/3 on each. */
static const double X[] = {1, 2, 1, 2, 2, 2, 1, 1}, Y[] = {1, 2, 3, 1, 2, 3};
static const size_t FOUR[] = {4, 4}, THREE[] = {3, 3};

TEST(test_improvement_by_hand)
{
    const struct ks_sample x = {2, FOUR, X}, y = {2, THREE, Y}, first = {1, FOUR, X},
                           second = {1, FOUR + 1, X + 4}, other_first = {1, THREE, Y},
                           other_second = {1, THREE + 1, Y + 3};
    struct ks_estimate p;

    assert_ok(ks_improvement(&first, &other_first, 0, 0, &p));
    assert_close(p.value, 1 / 3., 1e-15);
    assert_ok(ks_improvement(&second, &other_second, 0, 0, &p));
    assert_close(p.value, 1 / 3., 1e-15);
    assert_ok(ks_improvement(&x, &y, 0, 0, &p));
    assert_close(p.value, 1 / 3., 1e-15);
    assert_true(isnan(p.in.lower) && isnan(p.in.upper));
    assert_ok(ks_improvement(&y, &x, 0, 0, &p));
    assert_close(p.value, 2 / 3., 1e-15);
    assert_ok(ks_improvement(&x, &x, 0, 0, &p)); /* against itself */
    assert_close(p.value, 0.5, 1e-15);
}

/* The mean over two tasks, by the definition: tasks of x and y at `runs` [14]. */
static double improvement(const size_t *runs)
{
    double p = 0;

    for (size_t m = 0; m < 2; m++)
        for (size_t i = 0; i < 4; i++)
            for (size_t j = 0; j < 3; j++) {
                double x = X[runs[4 * m + i]], y = Y[runs[8 + 3 * m + j] - 8];

                p += ((x > y) + 0.5 * (x == y)) / 24;
            }
    return p;
}

/* A resample's draws: both tasks of x, then both of y. */
TEST(test_improvement_interval)
{
    enum { B = 200 };
    const size_t all[] = {4, 4, 3, 3};
    const struct ks_bootstrap draws = {B, 3, 4, all};
    const struct ks_sample x = {2, FOUR, X}, y = {2, THREE, Y};
    struct ks_estimate p;
    double drawn[B];

    for (size_t b = 0; b < B; b++) {
        size_t index[14];

        ks_bootstrap_draw(&draws, b, index);
        drawn[b] = improvement(index);
    }
    qsort(drawn, B, sizeof *drawn, ks_ascending);
    assert_ok(ks_improvement(&x, &y, B, 3, &p));
    assert_close(p.in.lower, ks_quantile(B, drawn, 0.05), 1e-12);
    assert_close(p.in.upper, ks_quantile(B, drawn, 0.95), 1e-12);
    assert_true(p.in.lower < p.value && p.value < p.in.upper);
}

/* Two architectures with one run each have no interval; one with several gives one. */
TEST(test_improvement_of_single_runs)
{
    const size_t one[] = {1}, two[] = {2};
    const double a[] = {3}, b[] = {1, 5};
    const struct ks_sample x = {1, one, a}, y = {1, two, b};
    struct ks_estimate p;

    assert_ok(ks_improvement(&x, &x, 100, 0, &p));
    assert_close(p.value, 0.5, 0);
    assert_true(isnan(p.in.lower) && isnan(p.in.upper));
    assert_ok(ks_improvement(&x, &y, 1000, 0, &p));
    assert_close(p.value, 0.5, 0);
    assert_close(p.in.lower, 0, 0);
    assert_close(p.in.upper, 1, 0);
}

TEST(test_refused_samples)
{
    const size_t none[] = {4, 0};
    const double nan[] = {1, 2, NAN, 3, 4, 5, 6, 7};
    const struct ks_sample no_task = {0, FOUR, X}, x = {2, FOUR, X}, no_run = {2, none, X},
                           z = {2, FOUR, nan};
    const struct ks_profile profile = {.scores = z};
    struct ks_estimate p;

    assert_fails(ks_improvement(&no_task, &no_task, 0, 0, &p), KS_FORMAT, "no task");
    assert_fails(ks_improvement(&x, &no_run, 0, 0, &p), KS_FORMAT, "task 2 of 2 has no run");
    assert_fails(ks_improvement(&z, &x, 0, 0, &p), KS_FORMAT, "score 3 of 8 is NaN");
    assert_fails(ks_profile(&profile, &p), KS_FORMAT, "score 3 of 8 is NaN");
}

/* Strictly above: a score at the threshold does not count. */
TEST(test_profile_by_hand)
{
    const double tau[] = {0, 1, 1.5, 1.75, 2}, fraction[] = {1, 0.5, 0.5, 0.5, 0};
    struct ks_profile profile = {{2, FOUR, X}, 5, tau, 0, 0};
    struct ks_estimate runs[5];

    assert_ok(ks_profile(&profile, runs));
    for (size_t k = 0; k < 5; k++) {
        assert_close(runs[k].value, fraction[k], 1e-15);
        assert_true(isnan(runs[k].in.lower));
    }
    profile.resamples = 500;
    assert_ok(ks_profile(&profile, runs));
    assert_close(runs[0].in.lower, 1, 0);
    assert_close(runs[0].in.upper, 1, 0);
    assert_true(runs[1].in.lower > 0 && runs[1].in.lower < 0.5 && runs[1].in.upper > 0.5 &&
                runs[1].in.upper < 1);
}
