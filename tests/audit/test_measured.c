/* Critics that were measured: which rows make an entry, and which of two critics is better
 * conditioned. */
#include "scratch.h"

#include "audit/measured.h"

static struct ks_conditioning of(double least, double most, double low, double high)
{
    return (struct ks_conditioning){.directions = {least, most}, .q99 = {low, high}};
}

/* Either statistic decides, with a margin; if they disagree, or if an end is not resolved where it
 * is needed, nothing is decided. */
TEST(test_verdicts)
{
    static const struct {
        double a[4], b[4];
        enum ks_verdict verdict;
    } cases[] = {
        {{100, 200, 5, 10}, {10, 79, 5, 10}, KS_BETTER},
        {{100, 200, 5, 10}, {10, 81, 5, 10}, KS_UNDECIDED}, /* within the margin */
        {{100, 200, 5, 10}, {251, 300, 5, 10}, KS_WORSE},
        {{100, 200, 5, 10}, {100, 200, 13, 20}, KS_BETTER},
        {{100, 200, 5, 10}, {100, 200, 1, 3}, KS_WORSE},
        {{100, 200, 5, 10}, {10, 20, 1, 3}, KS_UNDECIDED}, /* more directions, for a larger size */
        {{100, NAN, 5, 10}, {251, 300, 5, 10}, KS_UNDECIDED},
        {{100, 200, NAN, NAN}, {10, 20, 5, NAN}, KS_BETTER},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double *a = cases[i].a, *b = cases[i].b;
        const struct ks_conditioning x = of(a[0], a[1], a[2], a[3]), y = of(b[0], b[1], b[2], b[3]);
        static const enum ks_verdict opposite[] = {KS_WORSE, KS_BETTER, KS_UNDECIDED};

        assert_int_equal(ks_verdict(&x, &y), cases[i].verdict);
        assert_int_equal(ks_verdict(&y, &x), opposite[cases[i].verdict]);
    }
}

static const char TABLE[] =
    "study,env,architecture,seed,env_step,return_mean,directions_1e2_lower,directions_1e2_upper,"
    "kappa_q99_lower,kappa_q99_upper,kappa_effective_bound\n"
    "one,toy,bn+mse,0,1000,10,50,60,5,6,100\n"
    "one,toy,bn+mse,1,1000,20,40,55,7,8,200\n"
    "one,toy,bn+mse,0,5000,30,5,6,70,-,300\n"
    "two,toy,bn+mse,0,1000,40,1,2,3,4,500\n";

/* A critic at its first update is compared with such critics, any other one with the others. */
TEST(test_first_update)
{
    static const char table[] = "study,env,architecture,seed,env_step,update,directions_1e2_lower,"
                                "directions_1e2_upper,kappa_q99_lower,kappa_q99_upper\n"
                                "one,toy,bn+mse,0,1000,0,5000,6000,5,6\n"
                                "one,toy,bn+mse,0,5000,400,50,60,70,80\n"
                                "two,toy,bn+mse,0,5000,400,5,6,70,80\n";
    struct ks_measured m;

    write_bytes(scratch("critics.csv"), table, strlen(table));
    assert_ok(ks_measured_read(scratch("critics.csv"), NULL, 1000, false, &m));
    assert_int_equal(m.n, 2);
    assert_close(m.critic[0].step, 5000, 0);
    ks_measured_clear(&m);
    assert_ok(ks_measured_read(scratch("critics.csv"), NULL, 5000, true, &m));
    assert_int_equal(m.n, 1);
    assert_close(m.critic[0].step, 1000, 0);
    ks_measured_clear(&m);
}

/* Seeds of one study at one step are gathered, and the nearest step is taken. */
TEST(test_reading)
{
    static const struct {
        double step, taken, lower, upper, high, mean;
        size_t seeds;
    } cases[] = {{1200, 1000, 40, 60, 8, 15, 2},
                 {3000, 5000, 5, 6, NAN, 30, 1}, /* 5/3 is nearer to 1 than 3 */
                 {NAN, 5000, 5, 6, NAN, 30, 1},
                 {0, 1000, 40, 60, 8, 15, 2}};

    write_bytes(scratch("critics.csv"), TABLE, strlen(TABLE));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ks_measured m;

        assert_ok(ks_measured_read(scratch("critics.csv"), NULL, cases[i].step, false, &m));
        assert_int_equal(m.n, 2);
        assert_string_equal(m.critic[0].study, "one");
        assert_string_equal(m.critic[0].loss, "mse"); /* by its name */
        assert_string_equal(m.critic[1].study, "two");
        assert_close(m.critic[0].step, cases[i].taken, 0);
        assert_int_equal(m.critic[0].seeds, cases[i].seeds);
        assert_close(m.critic[0].conditioning.directions.lower, cases[i].lower, 0);
        assert_close(m.critic[0].conditioning.directions.upper, cases[i].upper, 0);
        assert_close(m.critic[0].return_mean, cases[i].mean, 0);
        if (isnan(cases[i].high))
            assert_true(isnan(m.critic[0].conditioning.q99.upper));
        else
            assert_close(m.critic[0].conditioning.q99.upper, cases[i].high, 0);
        ks_measured_clear(&m);
    }
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
