/* Probability of improvement and profiles, by hand. */
#include "test.h"

#include "core/number.h"
#include "results/comparison.h"

/* {1 2 1 2} against {1 2 3}: 1/3. */
static const double X[] = {1, 2, 1, 2}, Y[] = {1, 2, 3};
static const struct ks_sample x = {4, X}, y = {3, Y};

TEST(test_improvement_by_hand)
{
    struct ks_estimate p;

    assert_ok(ks_improvement(&x, &y, 0, 0, &p));
    assert_close(p.value, 1 / 3., 1e-15);
    assert_true(isnan(p.in.lower) && isnan(p.in.upper));
    assert_ok(ks_improvement(&y, &x, 0, 0, &p));
    assert_close(p.value, 2 / 3., 1e-15);
    assert_ok(ks_improvement(&x, &x, 0, 0, &p)); /* against itself */
    assert_close(p.value, 0.5, 1e-15);
    assert_ok(ks_improvement(&x, &(struct ks_sample){2, (double[]){1, NAN}}, 0, 0, &p));
    assert_true(isnan(p.value));
}

/* A resample's draws: the runs of x, then those of y. */
TEST(test_improvement_interval)
{
    enum { B = 200 };
    const struct ks_bootstrap draws = {B, 3, 2, (size_t[]){4, 3}};
    struct ks_estimate p;
    double drawn[B];

    for (size_t b = 0; b < B; b++) {
        size_t index[7];

        ks_bootstrap_draw(&draws, b, index);
        drawn[b] = 0;
        for (size_t i = 0; i < 4; i++)
            for (size_t j = 4; j < 7; j++) {
                double of_x = X[index[i]], of_y = Y[index[j] - 4];

                drawn[b] += ((of_x > of_y) + 0.5 * (of_x == of_y)) / 12;
            }
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
    const struct ks_sample one = {1, (double[]){3}}, two = {2, (double[]){1, 5}};
    struct ks_estimate p;

    assert_ok(ks_improvement(&one, &one, 100, 0, &p));
    assert_close(p.value, 0.5, 0);
    assert_true(isnan(p.in.lower) && isnan(p.in.upper));
    assert_ok(ks_improvement(&one, &two, 1000, 0, &p));
    assert_close(p.value, 0.5, 0);
    assert_close(p.in.lower, 0, 0);
    assert_close(p.in.upper, 1, 0);
}

/* Strictly above: a score at the threshold does not count. */
TEST(test_profile_by_hand)
{
    const double tau[] = {0, 1, 1.5, 1.75, 2}, fraction[] = {1, 0.5, 0.5, 0.5, 0};
    struct ks_profile profile = {{8, (double[]){1, 2, 1, 2, 2, 2, 1, 1}}, 5, tau, 0, 0};
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
