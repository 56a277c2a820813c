/* How often the intervals for the largest and the smallest eigenvalue of the loss itself hold:
 * analyses of disjoint sets of minibatches against one of many more minibatches.
 *
 *   KS_COVERAGE=full  uses 200 sets for each critic instead of 20
 */
#include "programs.h"

#include "critics.h"
#include "statements.h"

enum { SETS = 20, FULL = 200, MINIBATCHES = 16, ALL = 800 };

static size_t sets(void)
{
    const char *size = getenv("KS_COVERAGE");

    return size && strcmp(size, "full") == 0 ? FULL : SETS;
}

static struct ks_spectrum *analyze(const struct ks_checkpoint *c, const char *options)
{
    assert_ok(ks_checkpoint_write(scratch("critic.h5"), c, false));
    assert_runs("-q --precision f64 %s critic.h5", options);
    return read_spectrum(scratch("critic.spectrum.h5"));
}

struct ends {
    double max, min;
};

static struct ends find_truth(const struct ks_checkpoint *critic)
{
    struct ks_checkpoint *c = draw_minibatches(critic, ALL, FULL);
    struct ks_spectrum *s = analyze(c, "--order 80");
    struct ends truth = {ks_statistic(s, "lambda_max"), ks_statistic(s, "lambda_min")};

    assert_close(ks_statistic(s, "lambda_max_upper"), truth.max, 1e-6 * truth.max);
    ks_checkpoint_free(c);
    return truth;
}

static bool misses(const struct ks_spectrum *s, const char *name, double truth)
{
    const double lower = ks_statistic(s, text_of("%s_lower", name));
    const double upper = ks_statistic(s, text_of("%s_upper", name));

    assert_false(isnan(lower) || isnan(upper));
    return lower > truth || upper < truth;
}

TEST(test_coverage)
{
    size_t made = 0, missed = 0, missed_min = 0;

    for (size_t k = 0; k < TRAINED; k += 2) {
        struct ks_checkpoint *critic = train_critic(k);
        struct ends truth = find_truth(critic);
        double width = 0;

        for (size_t i = 0; i < sets(); i++, made++) {
            struct ks_checkpoint *c = draw_minibatches(critic, MINIBATCHES, i);
            struct ks_spectrum *s = analyze(c, "--tolerance lambda_max=0.9 --order 60");

            missed += misses(s, "lambda_max_loss", truth.max);
            missed_min += misses(s, "lambda_min_loss", truth.min);
            width += (ks_statistic(s, "lambda_max_loss_upper") -
                      ks_statistic(s, "lambda_max_loss_lower")) /
                     truth.max / (double)sets();
            ks_checkpoint_free(c);
        }
        print_message("%s: mean width %.2f of lambda_max\n", trained_critics[k].name, width);
        ks_checkpoint_free(critic);
    }
    print_message("%zu intervals: %zu miss lambda_max, %zu lambda_min\n", made, missed, missed_min);
    assert_true(missed <= most_misses(made, 0.01));
    assert_true(missed_min <= most_misses(made, 0.01));
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
