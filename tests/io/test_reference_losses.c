/* Reference results of other losses, with critics of one linear layer. */
#include "analyzer.h"
#include "naive_critic.h"
#include "refused_references.h"

static double softmax_loss(size_t k, const double *f, const double *t)
{
    double sum = 0, loss = 0;

    for (size_t i = 0; i < k; i++)
        sum += exp(f[i]);
    for (size_t i = 0; i < k; i++)
        loss -= t[i] * (f[i] - log(sum));
    return loss;
}

/* sum_ij abs(q_i - [t_j < f_i]) huber(t_j - f_i), over K. */
static double quantile_loss(size_t k, const double *f, const double *t)
{
    double loss = 0;

    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k; j++) {
            const double e = fabs(t[j] - f[i]), q = (2 * (double)i + 1) / (2 * (double)k);

            loss += fabs(q - (t[j] < f[i])) * (e <= 1 ? e * e / 2 : e - 0.5) / (double)k;
        }
    return loss;
}

/* Proves the loss of a critic whose only layer is a dense with `arch->out` outputs. */
static void put_loss(struct ks_checkpoint *c,
                     double (*loss)(size_t k, const double *f, const double *t))
{
    const size_t k = c->critic.arch->out;
    const double *w = c->critic.w;
    double f[8];

    c->references.loss = (struct ks_reference){.minibatches = BATCHES, .rows = 1, .wide = true};
    assert_ok(ks_alloc(BATCHES, sizeof(double), &c->references.loss.value));
    for (size_t n = 0; n < BATCHES * BATCH_LOSS_ROWS; n++) {
        const double *x = c->input +
                          (n / BATCH_LOSS_ROWS * BATCH_ROWS + n % BATCH_LOSS_ROWS) * SIDE;

        naive_dense(k, w, w + SIDE * k, x, f);
        c->references.loss.value[n / BATCH_LOSS_ROWS] += loss(k, f, c->target + n * k) /
                                                         BATCH_LOSS_ROWS;
    }
}

/* Weights of rows count in the loss. */
static void test_weights(void **state)
{
    struct ks_checkpoint *c = linear_critic("dense 4\nloss quantile\n");

    (void)state;
    put_loss(c, quantile_loss);
    assert_ok(ks_alloc(BATCHES * BATCH_LOSS_ROWS, sizeof(double), &c->weight));
    for (size_t i = 0; i < BATCHES * BATCH_LOSS_ROWS; i++)
        c->weight[i] = 2;
    for (size_t n = 0; n < BATCHES; n++)
        c->references.loss.value[n] *= 2;
    write_file("a.h5", c);
    assert_runs("-q --order 5 a.h5%s", "");
    c->weight[BATCH_LOSS_ROWS] = 0;
    write_file("a.h5", c);
    assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), 2);
    assert_int_equal(read_place(LOSS, complained).minibatch, 1);
    ks_checkpoint_free(c);
}

/* Targets of another kind for the same returns (smeared, where they were two-hot), and the quantile
 * loss as a mean over both indices, are other losses. */
static void test_other_losses(void **state)
{
    struct ks_checkpoint *c = linear_critic("dense 4\nloss ce min=-1 max=1\n");

    (void)state;
    put_loss(c, softmax_loss);
    write_file("a.h5", c);
    assert_runs("-q --order 5 a.h5%s", "");
    for (size_t i = 0; i < BATCHES * BATCH_LOSS_ROWS; i++)
        for (size_t k = 0; k < 4; k++)
            c->target[4 * i + k] = 0.75 * c->target[4 * i + k] + 0.0625;
    write_file("a.h5", c);
    assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), 2);
    assert_int_equal(read_place(LOSS, complained).minibatch, 0);
    ks_checkpoint_free(c);
    c = linear_critic("dense 4\nloss quantile\n");
    put_loss(c, quantile_loss);
    write_file("a.h5", c);
    assert_runs("-q --order 5 a.h5%s", "");
    for (size_t n = 0; n < BATCHES; n++)
        c->references.loss.value[n] /= 4;
    write_file("a.h5", c);
    assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), 2);
    assert_int_equal(read_place(LOSS, complained).minibatch, 0);
    ks_checkpoint_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_other_losses, scratch_clean),
        cmocka_unit_test_teardown(test_weights, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
