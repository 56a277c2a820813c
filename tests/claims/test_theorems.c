/* theorems.csv and the lines about it, from statistics made by hand. */
#include "claimed.h"

enum { EVALUATION = 1, RESIDUAL }; /* analyses */

#define DENSE_CE KS_TWELVE_OF(KS_DENSE, 0, KS_CE)
#define LN_MSE   KS_TWELVE_OF(KS_LN, 0, KS_MSE)

static const double SCALE = 2; /* eigenvalues are those of twice the loss */

/* The attributes by which an analysis of the residual is found. */
static void describe(struct ks_spectrum *s, const char *operator, const char * batchnorm)
{
    ks_attribute_add_string(&s->attributes, "operator", operator);
    ks_attribute_add_string(&s->attributes, "batchnorm", batchnorm);
    ks_attribute_add_integer(&s->attributes, "critic", -1);
    ks_attribute_add_integer(&s->attributes, "layer", -1);
    ks_attribute_add_number(&s->attributes, "scale", SCALE);
    ks_attribute_add_number(&s->attributes, "weight_decay", 0.25);
}

static int make(void **state)
{
    int failed = scratch_make(state);

    claimed_new("bn+wn+ce ln+mse dense+ce", 2,
                "[analyze evaluation]\noperator = residual\nbatchnorm = eval\n"
                "[analyze residual]\noperator = residual\n");
    for (size_t n = 0; n < study_results->n_runs; n++)
        for (size_t i = 0; i < 3 * (TIMES + 1); i++) {
            static const char *const names[] = {"hessian", "residual", "residual"};
            size_t k = i / (TIMES + 1);

            describe(study_results->run[n].spectrum[i], names[k],
                     k == EVALUATION ? "eval" : "train");
        }
    return failed;
}

/* The residual's extreme eigenvalues. */
static void put_residual(struct spot at, double smallest, double largest)
{
    at.analysis = RESIDUAL;
    put(at, "lambda_min", SCALE * smallest);
    put(at, "lambda_max", SCALE * largest);
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

/* Sets the statistics of the hidden layers. */
static void put_hidden(struct spot at, double gradient, double jacobian, double norm)
{
    put(at, "minibatch_gradient_hidden_largest", gradient);
    put(at, "logit_jacobian_hidden_largest", jacobian);
    put(at, "hidden_norm", norm);
    put(at, "hidden_radial_largest", 0.0625);
}

static void put_error(struct spot at, double largest)
{
    put(at, "prediction_error_largest", largest);
    put(at, "prediction_error_median", largest / 8);
}

/* What is printed of the theorems' numbers. */
static const char *printed(void)
{
    FILE *file = fopen(scratch("printed"), "w");
    struct ks_theorems theorems = {0};

    assert_non_null(file);
    assert_ok(ks_theorems_find(study_results, &theorems));
    ks_theorems_print(study_results->study, &theorems, file);
    free(theorems.row);
    assert_int_equal(fclose(file), 0);
    return file_text("printed");
}

/* Rows only for spectra with the statistics, in the order of runs and checkpoints. */
TEST_WITH(test_table, make, claimed_end)
{
    struct ks_summary_table results = {0};

    put_bounds((struct spot){STANDARD, DENSE_CE, 1, 2}, sqrt(2) / 2, sqrt(2) * 3, 10);
    put_bounds((struct spot){STANDARD, BEST, 0, 5}, sqrt(2), sqrt(2), 2);
    put_residual((struct spot){.number = BEST, .time = 5}, -3, 2);
    put_residual((struct spot){.number = DENSE_CE, .seed = 1, .time = 2}, NAN, NAN);
    put_hidden((struct spot){STANDARD, BEST, 0, 5}, sqrt(2), 4, sqrt(2) * 8);
    put_error((struct spot){STANDARD, LN_MSE, 0, 3}, 24);
    put((struct spot){STANDARD, LN_MSE, 0, 3}, "logit_gradient_largest", NAN);
    put_residual((struct spot){.number = LN_MSE, .time = 3}, -3, 2);
    assert_ok(ks_theorems_find(study_results, &results.theorems));
    assert_string_equal(
        table_text("theorems", &results),
        "architecture,seed,env_step,proposition_1_largest,proposition_1_median,"
        "proposition_2_largest,proposition_2_median,lemma_1,lemma_1_median,jacobian_rows,"
        "theorem_1,hidden_norm,hidden_radial,effective_update,effective_update_bound,"
        "weight_decay,weight_decay_needed\n"
        "bn+wn+ce,0,24,-,-,1,0.5,0.5,2,4,0.25,11.3137085,0.0625,0.125,0.5,0.25,3\n"
        "ln+mse,0,16,24,3,-,-,-,-,-,-,-,-,-,-,-,-\n"
        "dense+ce,1,12,-,-,0.5,0.25,0.3,1.2,4,-,-,-,-,-,0.25,-\n");
    ks_summary_clear(&results);
}

TEST_WITH(test_lines, make, claimed_end)
{
    const char *text;

    assert_string_equal(printed(), "");
    put_bounds((struct spot){STANDARD, BEST, 0, 5}, sqrt(2) / 2, sqrt(2), 2);
    put_bounds((struct spot){STANDARD, BEST, 1, 5}, sqrt(2) / 4, sqrt(2), 4);
    text = printed();
    assert_contains(text, "of 2 checkpoints with cross-entropy the largest ratio is 0.5.");
    assert_contains(text, "the largest ratio is at most 0.5, with L_f");
    assert_null(strstr(text, "error"));
    assert_null(strstr(text, "Theorem 1"));
    put_bounds((struct spot){STANDARD, BEST, 0, 5}, sqrt(2) * 1.01, sqrt(2), 2);
    assert_contains(printed(), "1 checkpoints exceed it: that is an error");
}

TEST_WITH(test_squared_error, make, claimed_end)
{
    const char *text;

    put_error((struct spot){STANDARD, LN_MSE, 0, 5}, 16);
    put_error((struct spot){STANDARD, LN_MSE, 1, 5}, 40);
    text = printed();
    assert_contains(text, "of 2 checkpoints with squared error the largest is 40, the largest "
                          "median over rows 5.\n");
    assert_null(strstr(text, "Proposition 2"));
}

/* Theorem 1 with its premises: a ratio of the hidden layers, and by how much their norm changes
 * over the checkpoints of a run. */
TEST_WITH(test_hidden_layers, make, claimed_end)
{
    const struct spot best = {STANDARD, BEST, 0, 5}, other = {.number = DENSE_CE, .time = 6};
    struct spot later = best, seed = best;
    const char *text;

    later.time++;
    seed.seed = 1;
    put_bounds(best, 1, 1, 1);
    put_hidden(best, sqrt(2), 4, 8);
    text = printed();
    assert_contains(text, "of 1 checkpoints the largest ratio is at most 0.25. Its f is "
                          "scale-invariant up to an epsilon: the largest cosine of theta_h "
                          "and g_h is 0.062 (exactly: 0).\n");
    assert_null(strstr(text, "fixed")); /* one checkpoint says nothing */
    put_bounds(later, 1, 1, 1);
    put_hidden(later, sqrt(2), 4, 8.000001);
    put_bounds(seed, 1, 1, 1);
    put_hidden(seed, sqrt(2), 4, 100); /* another run */
    text = printed();
    assert_contains(text, "|theta_h| is fixed during the runs of bn+wn+ce (it changes by at "
                          "most 1.3e-05%).\n");
    put_bounds(other, 1, 1, 1);
    put_hidden(other, 1, 1, 5);
    put_bounds((struct spot){STANDARD, DENSE_CE, 0, 7}, 1, 1, 1);
    put_hidden((struct spot){STANDARD, DENSE_CE, 0, 7}, 1, 1, 4);
    text = printed();
    assert_contains(text, "(it changes by at most 1.3e-05%), and changes by up to 25% in those "
                          "of other architectures.\n");
    put_hidden(later, sqrt(2), 4, 9);
    text = printed();
    assert_contains(text, "\n|theta_h| is not fixed: it changes during a run by up to 25%.\n");
}

/* Which checkpoints the residual rules out, with bounds rounded so that they stay bounds. */
TEST_WITH(test_weight_decay, make, claimed_end)
{
    const char *text;

    for (size_t time = 0; time < TIMES; time++)
        for (size_t seed = 0; seed < 2; seed++) {
            put_residual((struct spot){.number = BEST, .seed = seed, .time = time}, NAN, NAN);
            put_bounds((struct spot){STANDARD, BEST, seed, time}, 1, 1, 1);
        }
    assert_null(strstr(printed(), "Proposition 4"));
    put_residual((struct spot){.number = BEST, .time = 5}, -0.1, 0.12);
    assert_contains(printed(), "rule that out at none of 1 checkpoints;");
    put_residual((struct spot){.number = BEST, .time = 6}, -0.25, 0.12);
    put_residual((struct spot){.number = BEST, .time = 7}, -0.1, 5);
    text = printed();
    assert_contains(text, "At 2 of 3 checkpoints mu^2 is not that large: there it is at "
                          "most 0.25, and 2 lambda_m^f is at least 0.25,");
    put_residual((struct spot){.number = BEST, .time = 6}, -0.25367, 0.12);
    assert_contains(printed(), "is at least 0.253,");
}
