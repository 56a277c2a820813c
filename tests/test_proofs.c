/* Checkpoints that prove themselves: right ones are accepted, and each way to export a critic
 * wrongly is refused by a message that names the object, the place and both values. */
#include "analyzer.h"
#include "naive_critic.h"

#include "kappascope.h"

/* --- right ones --- */

/* Outputs of the rows of the loss or of all rows, of all minibatches or of the first, in both
 * precisions, each proof alone: all are accepted, in every kind of analysis. */
static void test_right(void **state)
{
    static const char *const runs[] = {"--order 5 a.h5", "--layers --order 5 a.h5",
                                       "--gradient g.h5 a.h5", "--batchnorm eval --order 5 a.h5",
                                       "--critic 1 --weight-decay 1 --scale 3 --order 5 a.h5"};
    struct kappascope_checkpoint *k;

    (void)state;
    for (size_t i = 0; i < 16; i++) {
        struct ks_checkpoint *c = naive_critic();
        const size_t minibatches = i & 2 ? 1 : BATCHES;

        if (i & 1)
            naive_prove(c, BATCH_ROWS, RIGHT, RIGHT);
        c->proofs.output.minibatches = c->proofs.loss.minibatches = minibatches;
        c->proofs.gradient_norm.minibatches = minibatches;
        c->proofs.output.wide = c->proofs.loss.wide = !(i & 4);
        if (i & 8) {
            free(c->proofs.loss.value), c->proofs.loss.value = NULL;
            free(c->proofs.gradient_norm.value), c->proofs.gradient_norm.value = NULL;
        }
        write_file("a.h5", c);
        assert_runs("%s", runs[i % 5]);
        assert_null(strstr(complained, "nothing was compared"));
        assert_int_equal(kappascope_checkpoint_read(scratch("a.h5"), &k), KAPPASCOPE_OK);
        kappascope_checkpoint_free(k);
        ks_checkpoint_free(c);
    }
}

/* Without proofs a line says so, unless --quiet. */
static void test_none(void **state)
{
    struct ks_checkpoint *c = naive_critic();

    (void)state;
    ks_proofs_clear(&c->proofs);
    write_file("a.h5", c);
    assert_runs("--order 5 a.h5%s", "");
    assert_non_null(
        strstr(complained, "a.h5: nothing was compared: the file has no /batch/output"));
    assert_runs("-q --order 5 a.h5%s", "");
    assert_null(strstr(complained, "nothing was compared"));
    ks_checkpoint_free(c);
}

/* --- wrong ones --- */

/* Replaces the description; the parameters stay. */
static void describe(struct ks_checkpoint *c, const char *text)
{
    ks_arch_free_f64(c->critic.arch);
    free(c->critic.text);
    assert_ok(ks_copy_string(text, &c->critic.text));
    assert_ok(ks_arch_parse_f64(text, "test", SIDE, &c->critic.arch));
}

static void swap(double *a, double *b)
{
    const double kept = *a;

    *a = *b, *b = kept;
}

/* A square kernel as PyTorch stores it, [out, in]. */
static void transpose_kernel(struct ks_checkpoint *c)
{
    for (size_t e = 0; e < CRITICS; e++)
        for (size_t i = 0; i < SIDE; i++)
            for (size_t j = 0; j < i; j++) {
                double *kernel = c->critic.w + e * PARAMETERS + KERNEL4;

                swap(&kernel[i * SIDE + j], &kernel[j * SIDE + i]);
            }
}

/* bias=no, and the file has no bias either. */
static void drop_bias(struct ks_checkpoint *c)
{
    double *to = c->critic.w;

    describe(c, "batchnorm\ndense 5 bias=no\nlayernorm eps=1e-5\nrelu\ndense 5\nbatchnorm\ngelu\n"
                "dense 1\nloss mse\n");
    for (size_t i = 0; i < CRITICS * PARAMETERS; i++)
        if (i % PARAMETERS < BIAS1 || i % PARAMETERS >= BIAS1 + SIDE)
            *to++ = c->critic.w[i];
}

/* 1e-6, the default here, where PyTorch has 1e-5. */
static void other_eps(struct ks_checkpoint *c)
{
    describe(c, "batchnorm\ndense 5\nlayernorm\nrelu\ndense 5\nbatchnorm\ngelu\ndense 1\n"
                "loss mse\n");
}

/* [actions, observations] where the critic was trained on [observations, actions]. */
static void swap_inputs(struct ks_checkpoint *c)
{
    for (size_t i = 0; i < BATCHES * BATCH_ROWS; i++) {
        double row[SIDE];

        memcpy(row, c->input + i * SIDE, sizeof row);
        for (size_t j = 0; j < SIDE; j++)
            c->input[i * SIDE + j] = row[(j + 2) % SIDE];
    }
}

static void swap_critics(struct ks_checkpoint *c)
{
    for (size_t i = 0; i < PARAMETERS; i++)
        swap(&c->critic.w[i], &c->critic.w[PARAMETERS + i]);
}

static void swap_scale_and_bias(struct ks_checkpoint *c)
{
    for (size_t i = 0; i < CRITICS * SIDE; i++) {
        double *norm = c->critic.w + i / SIDE * PARAMETERS + SCALE2 + i % SIDE;

        swap(norm, norm + SIDE);
    }
}

static void evaluation_mode(struct ks_checkpoint *c)
{
    struct how how = RIGHT;

    how.evaluation = true;
    naive_prove(c, BATCH_LOSS_ROWS, how, RIGHT);
}

/* Two forward passes instead of one over the rows of (s, a) and (s', a') together. */
static void separate_passes(struct ks_checkpoint *c)
{
    struct how how = RIGHT;

    how.alone = true;
    naive_prove(c, BATCH_LOSS_ROWS, how, how);
}

/* gelu is the tanh form here, the error function in PyTorch. */
static void other_gelu(struct ks_checkpoint *c)
{
    struct how how = RIGHT;

    how.erf = true;
    naive_prove(c, BATCH_LOSS_ROWS, how, how);
}

/* Outputs [N, E, B] that were only given the shape [N, B, E, 1]. */
static void reshape_outputs(struct ks_checkpoint *c)
{
    const size_t n = BATCH_LOSS_ROWS * CRITICS;
    double from[BATCH_LOSS_ROWS * CRITICS];

    for (size_t k = 0; k < BATCHES; k++) {
        double *to = c->proofs.output.value + k * n;

        memcpy(from, to, sizeof from);
        for (size_t i = 0; i < n; i++)
            to[i] = from[i % BATCH_LOSS_ROWS * CRITICS + i / BATCH_LOSS_ROWS];
    }
}

static void targets_of_another_batch(struct ks_checkpoint *c)
{
    for (size_t i = 0; i < BATCH_LOSS_ROWS; i++)
        swap(&c->target[i], &c->target[BATCH_LOSS_ROWS + i]);
}

static void scale_loss(struct ks_checkpoint *c, double factor)
{
    for (size_t n = 0; n < BATCHES; n++) {
        c->proofs.loss.value[n] *= factor;
        c->proofs.gradient_norm.value[n] *= factor;
    }
}

/* torch.nn.functional.mse_loss has no 1/2. */
static void loss_without_half(struct ks_checkpoint *c)
{
    scale_loss(c, 2);
}

static void loss_summed_over_rows(struct ks_checkpoint *c)
{
    scale_loss(c, BATCH_LOSS_ROWS);
}

static void loss_averaged_over_critics(struct ks_checkpoint *c)
{
    scale_loss(c, 1.0 / CRITICS);
}

static void other_loss(struct ks_checkpoint *c)
{
    describe(c, NAIVE_BODY "loss huber\n");
}

/* Batch statistics as constants: outputs and loss are right, and the gradient is not. */
static void detached_statistics(struct ks_checkpoint *c)
{
    struct how how = RIGHT;

    how.held = true;
    naive_prove(c, BATCH_LOSS_ROWS, RIGHT, how);
}

static void frozen_layer(struct ks_checkpoint *c)
{
    struct how how = RIGHT;

    how.from = KERNEL1;
    how.behind = SCALE2;
    naive_prove(c, BATCH_LOSS_ROWS, RIGHT, how);
}

/* The same, and the description says so: this is right. */
static void frozen_and_described(struct ks_checkpoint *c)
{
    const size_t kept = PARAMETERS - (SCALE2 - KERNEL1);

    frozen_layer(c);
    free(c->critic.frozen);
    assert_ok(ks_alloc(CRITICS * (SCALE2 - KERNEL1), sizeof(double), &c->critic.frozen));
    for (size_t e = 0; e < CRITICS; e++) {
        const double *from = c->critic.w + e * PARAMETERS;

        memcpy(c->critic.frozen + e * (SCALE2 - KERNEL1), from + KERNEL1,
               (SCALE2 - KERNEL1) * sizeof *from);
        memmove(c->critic.w + e * kept, from, KERNEL1 * sizeof *from);
        memmove(c->critic.w + e * kept + KERNEL1, from + SCALE2,
                (PARAMETERS - SCALE2) * sizeof *from);
    }
    describe(c, "batchnorm\ndense 5 trainable=no\nlayernorm eps=1e-5\nrelu\ndense 5\nbatchnorm\n"
                "gelu\ndense 1\nloss mse\n");
}

static void test_frozen(void **state)
{
    struct ks_checkpoint *c = naive_critic();

    (void)state;
    frozen_and_described(c);
    write_file("a.h5", c);
    assert_runs("-q --order 5 a.h5%s", "");
    ks_checkpoint_free(c);
}

/* The squared norm. */
static void squared_norm(struct ks_checkpoint *c)
{
    for (size_t n = 0; n < BATCHES; n++)
        c->proofs.gradient_norm.value[n] *= c->proofs.gradient_norm.value[n];
}

static const char OUTPUT[] = "/batch/output", LOSS[] = "/batch/loss",
                  NORM[] = "/batch/gradient_norm";

static const struct wrong {
    void (*change)(struct ks_checkpoint *c);
    const char *object, *name;
    bool described; /* the description is NAIVE, so naive_outputs gives what the analyzer finds */
} wrongs[] = {
    {transpose_kernel, OUTPUT, "transposed kernel", true},
    {drop_bias, OUTPUT, "no bias", false},
    {other_eps, OUTPUT, "other eps", false},
    {swap_inputs, OUTPUT, "swapped inputs", true},
    {swap_critics, OUTPUT, "swapped critics", true},
    {swap_scale_and_bias, OUTPUT, "swapped scale and bias", true},
    {evaluation_mode, OUTPUT, "evaluation mode", true},
    {separate_passes, OUTPUT, "separate passes", true},
    {other_gelu, OUTPUT, "other gelu", true},
    {reshape_outputs, OUTPUT, "axes of outputs", true},
    {targets_of_another_batch, LOSS, "targets of another batch", true},
    {loss_without_half, LOSS, "loss without 1/2", true},
    {loss_summed_over_rows, LOSS, "loss summed over rows", true},
    {loss_averaged_over_critics, LOSS, "loss averaged over critics", true},
    {other_loss, LOSS, "other loss", true},
    {detached_statistics, NORM, "detached statistics", true},
    {frozen_layer, NORM, "frozen layer", true},
    {squared_norm, NORM, "squared norm", true},
};

/* What a refusal says. */
struct place {
    size_t minibatch, row, critic, output;
    double stored, computed;
};

/* Reads the message "FILE: OBJECT: minibatch ...", and fails the test if it is another one. */
static struct place read_place(const char *object, const char *message)
{
    static const char OUTPUT_WORDS[] = ": minibatch %zu, row %zu, critic %zu, output %zu: expected "
                                       "the same as in the file, %lf, found %lf (",
                      WORDS[] =
                          ": minibatch %zu: expected the same as in the file, %lf, found %lf (";
    struct place p = {.row = 0};
    const char *at = strstr(message, object);
    int found = 0;

    if (at && object == OUTPUT)
        found = sscanf(at + strlen(object), OUTPUT_WORDS, &p.minibatch, &p.row, &p.critic,
                       &p.output, &p.stored, &p.computed);
    else if (at)
        found = sscanf(at + strlen(object), WORDS, &p.minibatch, &p.stored, &p.computed);
    if (found != (object == OUTPUT ? 6 : 3))
        fail_msg("'%s' does not name %s, its place and both values", message, object);
    return p;
}

static void check_place(const struct wrong *w, const struct ks_checkpoint *c, struct place p)
{
    struct moments m;
    double f[BATCH_ROWS];
    double stored =
        w->object == OUTPUT
            ? c->proofs.output.value[(p.minibatch * BATCH_LOSS_ROWS + p.row) * CRITICS + p.critic]
        : w->object == LOSS ? c->proofs.loss.value[p.minibatch]
                            : c->proofs.gradient_norm.value[p.minibatch];

    assert_close(p.stored, stored, 1e-6 * fabs(stored));
    assert_true(fabs(p.computed - p.stored) > 1e-9 * fabs(stored));
    if (w->object != OUTPUT || !w->described)
        return;
    naive_outputs(c->critic.w + p.critic * PARAMETERS, c->input + p.minibatch * BATCH_ROWS * SIDE,
                  &RIGHT, &m, f);
    assert_close(p.computed, f[p.row], 1e-12);
}

static void test_wrong(void **state)
{
    struct kappascope_checkpoint *k;

    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        struct ks_checkpoint *c = naive_critic();

        wrongs[i].change(c);
        write_file("a.h5", c);
        if (analyzer("-q --order 5 a.h5%s", "") != 2)
            fail_msg("%s was accepted", wrongs[i].name);
        assert_ptr_equal(strchr(complained, '\n'), complained + strlen(complained) - 1);
        assert_non_null(strstr(complained, "a.h5: /batch/"));
        check_place(&wrongs[i], c, read_place(wrongs[i].object, complained));
        assert_int_equal(printed[0], '\0');
        assert_int_not_equal(access(scratch("a.spectrum.h5"), F_OK), 0);
        assert_int_equal(analyzer("-q --gradient g.h5 a.h5%s", ""), 2);
        assert_int_equal(kappascope_checkpoint_read(scratch("a.h5"), &k), KAPPASCOPE_FORMAT);
        read_place(wrongs[i].object, kappascope_error());
        assert_null(k);
        ks_checkpoint_free(c);
    }
}

/* Only the minibatches that are analyzed are computed. */
static void test_batches(void **state)
{
    struct ks_checkpoint *c = naive_critic();

    (void)state;
    c->proofs.output.value[2 * BATCH_LOSS_ROWS * CRITICS + 7] += 1;
    write_file("a.h5", c);
    assert_runs("-q --order 5 --batches 2 a.h5%s", "");
    assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), 2);
    assert_non_null(strstr(complained, "minibatch 2, row 3, critic 1, output 0: expected"));
    assert_non_null(strstr(complained, "1 of 36 values differ by more than 1e-09 of their root"));
    ks_checkpoint_free(c);
}

/* float64 proofs need float64 results: errors of 1e-6 belong in a float32 dataset, errors of 1e-3
 * nowhere. */
static void test_precision(void **state)
{
    const double errors[] = {1e-11, 1e-6, 1e-3};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct ks_checkpoint *c = naive_critic();
        const bool wide = i % 2, right = i / 2 == 0 || (i / 2 == 1 && !wide);

        c->proofs.output.wide = wide;
        for (size_t k = 0; k < BATCHES * BATCH_LOSS_ROWS * CRITICS; k++)
            c->proofs.output.value[k] *= 1 + errors[i / 2];
        write_file("a.h5", c);
        assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), right ? 0 : 2);
        assert_int_equal(!!strstr(complained, "results of float32 belong in a float32 dataset"),
                         i == 3);
        ks_checkpoint_free(c);
    }
}

/* What the comparison allocates counts against --memory, before it is allocated. */
static void test_memory(void **state)
{
    static const char WORDS[] = "--memory: expected at least ";
    struct ks_checkpoint *c = naive_critic();
    size_t least;

    (void)state;
    write_file("a.h5", c);
    assert_int_equal(analyzer("-q --order 5 --memory 1 a.h5%s", ""), 1);
    assert_non_null(strstr(complained, "the checkpoint's arrays alone take"));
    assert_int_equal(sscanf(strstr(complained, WORDS) + strlen(WORDS), "%zuK", &least), 1);
    assert_int_equal(analyzer("-q --order 5 --memory %zuK a.h5", least), 1);
    assert_non_null(strstr(complained, "a.h5: --memory: expected at least "));
    assert_non_null(strstr(complained, "checkpoint and the comparison of its outputs take"));
    ks_checkpoint_free(c);
}

/* --- other losses, with one linear layer --- */

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
static void prove_loss(struct ks_checkpoint *c,
                       double (*loss)(size_t k, const double *f, const double *t))
{
    const size_t k = c->critic.arch->out;
    const double *w = c->critic.w;
    double f[8];

    c->proofs.loss = (struct ks_proof){.minibatches = BATCHES, .rows = 1, .wide = true};
    assert_ok(ks_alloc(BATCHES, sizeof(double), &c->proofs.loss.value));
    for (size_t n = 0; n < BATCHES * BATCH_LOSS_ROWS; n++) {
        const double *x = c->input +
                          (n / BATCH_LOSS_ROWS * BATCH_ROWS + n % BATCH_LOSS_ROWS) * SIDE;

        naive_dense(k, w, w + SIDE * k, x, f);
        c->proofs.loss.value[n / BATCH_LOSS_ROWS] += loss(k, f, c->target + n * k) /
                                                     BATCH_LOSS_ROWS;
    }
}

/* Weights of rows count in the loss. */
static void test_weights(void **state)
{
    struct ks_checkpoint *c = linear_critic("dense 4\nloss quantile\n");

    (void)state;
    prove_loss(c, quantile_loss);
    assert_ok(ks_alloc(BATCHES * BATCH_LOSS_ROWS, sizeof(double), &c->weight));
    for (size_t i = 0; i < BATCHES * BATCH_LOSS_ROWS; i++)
        c->weight[i] = 2;
    for (size_t n = 0; n < BATCHES; n++)
        c->proofs.loss.value[n] *= 2;
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
    prove_loss(c, softmax_loss);
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
    prove_loss(c, quantile_loss);
    write_file("a.h5", c);
    assert_runs("-q --order 5 a.h5%s", "");
    for (size_t n = 0; n < BATCHES; n++)
        c->proofs.loss.value[n] /= 4;
    write_file("a.h5", c);
    assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), 2);
    assert_int_equal(read_place(LOSS, complained).minibatch, 0);
    ks_checkpoint_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_right, scratch_clean),
        cmocka_unit_test_teardown(test_none, scratch_clean),
        cmocka_unit_test_teardown(test_wrong, scratch_clean),
        cmocka_unit_test_teardown(test_batches, scratch_clean),
        cmocka_unit_test_teardown(test_precision, scratch_clean),
        cmocka_unit_test_teardown(test_memory, scratch_clean),
        cmocka_unit_test_teardown(test_other_losses, scratch_clean),
        cmocka_unit_test_teardown(test_weights, scratch_clean),
        cmocka_unit_test_teardown(test_frozen, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
