/* The reference results in a checkpoint: right ones are accepted. Each way to export a critic
 * wrongly is refused by a message that names the object, the place and both values. */
#include "naive.h"
#include "programs.h"

#include "kappascope.h"

static void accepted(const struct ks_checkpoint *c)
{
    write_file("a.h5", c);
    assert_runs("-q --order 5 a.h5%s", "");
}

/* In one line, which is in `complained`. */
static void refused(const struct ks_checkpoint *c)
{
    write_file("a.h5", c);
    assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), 2);
    assert_ptr_equal(strchr(complained, '\n'), complained + strlen(complained) - 1);
}

/* Outputs of the rows of the loss or of all rows, of all minibatches or of the first, in both
 * precisions, each reference result alone: all are accepted, in every kind of analysis. */
TEST_CLEAN(test_right)
{
    static const char *const runs[] = {"--order 5 a.h5", "--layers --order 5 a.h5",
                                       "--gradient g.h5 a.h5", "--batchnorm eval --order 5 a.h5",
                                       "--critic 1 --weight-decay 1 --scale 3 --order 5 a.h5"};
    struct kappascope_checkpoint *k;

    for (size_t i = 0; i < 16; i++) {
        struct ks_checkpoint *c = naive_critic();
        const size_t minibatches = i & 2 ? 1 : BATCHES;

        if (i & 1)
            naive_references(c, BATCH_ROWS, RIGHT, RIGHT);
        c->references.output.minibatches = c->references.loss.minibatches = minibatches;
        c->references.gradient_norm.minibatches = minibatches;
        c->references.output.wide = c->references.loss.wide = !(i & 4);
        if (i & 8) {
            free(c->references.loss.value), c->references.loss.value = NULL;
            free(c->references.gradient_norm.value), c->references.gradient_norm.value = NULL;
        }
        write_file("a.h5", c);
        assert_runs("%s", runs[i % 5]);
        assert_null(strstr(complained, "nothing was compared"));
        assert_int_equal(kappascope_checkpoint_read(scratch("a.h5"), &k), KAPPASCOPE_OK);
        kappascope_checkpoint_free(k);
    }
}

/* Without reference results a line says so, unless --quiet. */
TEST_CLEAN(test_none)
{
    struct ks_checkpoint *c = naive_critic();

    ks_references_clear(&c->references);
    write_file("a.h5", c);
    assert_runs("--order 5 a.h5%s", "");
    assert_complains("a.h5: nothing was compared: the file has no /batch/output");
    assert_runs("-q --order 5 a.h5%s", "");
    assert_null(strstr(complained, "nothing was compared"));
}

/* Only the minibatches that are analyzed are computed. */
TEST_CLEAN(test_batches)
{
    struct ks_checkpoint *c = naive_critic();

    c->references.output.value[2 * BATCH_LOSS_ROWS * CRITICS + 7] += 1;
    write_file("a.h5", c);
    assert_runs("-q --order 5 --batches 2 a.h5%s", "");
    assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), 2);
    assert_complains("minibatch 2, row 3, critic 1, output 0: expected");
    assert_complains("1 of 36 values differ by more than 1e-09 of their root");
}

/* Reference results in float64 must be results of float64. Errors of 1e-6 are accepted in a float32
 * dataset only, errors of 1e-3 in none. The message gives the likely reason. */
TEST_CLEAN(test_precision)
{
    const double errors[] = {1e-11, 1e-6, 1e-3};

    for (size_t i = 0; i < 6; i++) {
        struct ks_checkpoint *c = naive_critic();
        const bool wide = i % 2, right = i / 2 == 0 || (i / 2 == 1 && !wide);

        c->references.output.wide = wide;
        for (size_t k = 0; k < BATCHES * BATCH_LOSS_ROWS * CRITICS; k++)
            c->references.output.value[k] *= 1 + errors[i / 2];
        write_file("a.h5", c);
        assert_int_equal(analyzer("-q --order 5 a.h5%s", ""), right ? 0 : 2);
        assert_int_equal(!!strstr(complained, "results of float32 belong in a float32 dataset"),
                         i == 3);
        assert_int_equal(!!strstr(complained, "products in TF32 or bfloat16"), i >= 4);
    }
}

/* Each critic has a tolerance of its own: an error of a critic with small outputs is not hidden by
 * the large outputs of another one. */
TEST_CLEAN(test_scales)
{
    struct ks_checkpoint *c = naive_critic();

    for (size_t i = KERNEL7; i <= BIAS7; i++)
        c->critic.w[PARAMETERS + i] *= 1e-6;
    naive_references(c, BATCH_LOSS_ROWS, RIGHT, RIGHT);
    c->references.output.wide = false;
    accepted(c);
    c->references.output.value[CRITICS + 1] *= 2;
    refused(c);
    assert_complains("minibatch 0, row 1, critic 1, output 0: expected");
    assert_complains("of their root mean square in this critic");
}

/* What the comparison allocates counts against --memory, before it is allocated; the size that a
 * refusal names is enough. */
TEST_CLEAN(test_memory)
{
    static const char WORDS[] = "--memory: expected at least ";
    struct ks_checkpoint *c = naive_critic();
    size_t least;

    write_file("a.h5", c);
    assert_int_equal(analyzer("-q --order 5 --memory 1 a.h5%s", ""), 1);
    assert_complains("analyze: a.h5: --memory: expected at least ");
    assert_int_equal(sscanf(strstr(complained, WORDS) + strlen(WORDS), "%zuK", &least), 1);
    assert_int_equal(analyzer("-q --order 5 --memory %zuK a.h5", least - 1), 1);
    assert_runs("-q --order 5 --memory %zuK a.h5", least);
}

/* A frozen layer is right if the description says so. */
TEST_CLEAN(test_frozen)
{
    static const char text[] =
        "batchnorm\ndense 5 trainable=no\nlayernorm eps=1e-5\nrelu\ndense 5\n"
        "batchnorm\ngelu\ndense 1\nloss mse\n";
    const size_t frozen = SCALE2 - KERNEL1, kept = PARAMETERS - frozen;
    struct ks_checkpoint *c = naive_critic();
    struct how how = RIGHT;

    how.from = KERNEL1;
    how.behind = SCALE2;
    naive_references(c, BATCH_LOSS_ROWS, RIGHT, how);
    free(c->critic.frozen);
    assert_ok(ks_alloc(CRITICS * frozen, sizeof(double), &c->critic.frozen));
    for (size_t e = 0; e < CRITICS; e++) {
        const double *from = c->critic.w + e * PARAMETERS;

        memcpy(c->critic.frozen + e * frozen, from + KERNEL1, frozen * sizeof *from);
        memmove(c->critic.w + e * kept, from, KERNEL1 * sizeof *from);
        memmove(c->critic.w + e * kept + KERNEL1, from + SCALE2,
                (PARAMETERS - SCALE2) * sizeof *from);
    }
    describe(c, text);
    accepted(c);
}

/* --- ways to export a critic wrongly --- */

static const char OUTPUT[] = "/batch/output", LOSS[] = "/batch/loss",
                  NORM[] = "/batch/gradient_norm";

/* The place of the first value that differs, the value in the file and the computed one. */
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

static void loss_differs(const struct ks_checkpoint *c, size_t minibatch)
{
    refused(c);
    assert_int_equal(read_place(LOSS, complained).minibatch, minibatch);
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

/* Outputs [N, E, B] that were only given the shape [N, B, E, 1]. */
static void reshape_outputs(struct ks_checkpoint *c)
{
    const size_t n = BATCH_LOSS_ROWS * CRITICS;
    double from[BATCH_LOSS_ROWS * CRITICS];

    for (size_t k = 0; k < BATCHES; k++) {
        double *to = c->references.output.value + k * n;

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
        c->references.loss.value[n] *= factor;
        c->references.gradient_norm.value[n] *= factor;
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

/* The squared norm. */
static void squared_norm(struct ks_checkpoint *c)
{
    for (size_t n = 0; n < BATCHES; n++)
        c->references.gradient_norm.value[n] *= c->references.gradient_norm.value[n];
}

/* The errors. Either `change` makes the error in the checkpoint, or the reference results are those
 * of a program that computes as `forward` says and differentiates as `backward` says. */
static const struct wrong {
    const char *name, *object; /* the dataset that differs */
    void (*change)(struct ks_checkpoint *c);
    struct how forward, backward; /* with the eps of RIGHT */
    bool described; /* the description is NAIVE, so naive_outputs gives what the analyzer finds */
} wrongs[] = {
    {"transposed kernel", OUTPUT, .change = transpose_kernel, .described = true},
    {"no bias", OUTPUT, .change = drop_bias},
    {"other eps", OUTPUT, .change = other_eps},
    {"swapped inputs", OUTPUT, .change = swap_inputs, .described = true},
    {"swapped critics", OUTPUT, .change = swap_critics, .described = true},
    {"swapped scale and bias", OUTPUT, .change = swap_scale_and_bias, .described = true},
    {"evaluation mode", OUTPUT, .forward = {.evaluation = true}, .described = true},
    /* two forward passes in place of one over the rows of (s, a) and (s', a') together */
    {"separate passes", OUTPUT, .forward = {.alone = true}, .described = true},
    /* gelu is the tanh form here, and the error function in PyTorch */
    {"other gelu", OUTPUT, .forward = {.erf = true}, .described = true},
    {"axes of outputs", OUTPUT, .change = reshape_outputs, .described = true},
    {"targets of another batch", LOSS, .change = targets_of_another_batch, .described = true},
    {"loss without 1/2", LOSS, .change = loss_without_half, .described = true},
    {"loss summed over rows", LOSS, .change = loss_summed_over_rows, .described = true},
    {"loss averaged over critics", LOSS, .change = loss_averaged_over_critics, .described = true},
    {"other loss", LOSS, .change = other_loss, .described = true},
    /* batch statistics as constants: outputs and loss are right, and the gradient is not */
    {"detached statistics", NORM, .backward = {.held = true}, .described = true},
    {"frozen layer", NORM, .backward = {.from = KERNEL1, .behind = SCALE2}, .described = true},
    {"squared norm", NORM, .change = squared_norm, .described = true},
};

static void make_wrong(const struct wrong *w, struct ks_checkpoint *c)
{
    struct how forward = w->forward, backward = w->backward;

    if (w->change) {
        w->change(c);
        return;
    }
    forward.eps = backward.eps = RIGHT.eps;
    naive_references(c, BATCH_LOSS_ROWS, forward, backward);
}

static void check_place(const struct wrong *w, const struct ks_checkpoint *c, struct place p)
{
    struct moments m;
    double f[BATCH_ROWS];
    double stored = w->object == OUTPUT
                        ? c->references.output
                              .value[(p.minibatch * BATCH_LOSS_ROWS + p.row) * CRITICS + p.critic]
                    : w->object == LOSS ? c->references.loss.value[p.minibatch]
                                        : c->references.gradient_norm.value[p.minibatch];

    assert_close(p.stored, stored, 1e-6 * fabs(stored));
    assert_true(fabs(p.computed - p.stored) > 1e-9 * fabs(stored));
    if (w->object != OUTPUT || !w->described)
        return;
    naive_outputs(c->critic.w + p.critic * PARAMETERS, c->input + p.minibatch * BATCH_ROWS * SIDE,
                  &RIGHT, &m, f);
    assert_close(p.computed, f[p.row], 1e-12);
}

TEST_CLEAN(test_wrong)
{
    struct kappascope_checkpoint *k;

    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        struct ks_checkpoint *c = naive_critic();

        make_wrong(&wrongs[i], c);
        write_file("a.h5", c);
        if (analyzer("-q --order 5 a.h5%s", "") != 2)
            fail_msg("%s was accepted", wrongs[i].name);
        assert_ptr_equal(strchr(complained, '\n'), complained + strlen(complained) - 1);
        assert_complains("a.h5: /batch/");
        check_place(&wrongs[i], c, read_place(wrongs[i].object, complained));
        assert_int_equal(printed[0], '\0');
        assert_int_not_equal(access(scratch("a.spectrum.h5"), F_OK), 0);
        assert_int_equal(analyzer("-q --gradient g.h5 a.h5%s", ""), 2);
        assert_int_equal(kappascope_checkpoint_read(scratch("a.h5"), &k), KAPPASCOPE_FORMAT);
        read_place(wrongs[i].object, kappascope_error());
        assert_null(k);
    }
}

/* --- other losses, with critics of one linear layer --- */

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

/* Stores the loss of a critic whose only layer is a dense with `arch->out` outputs. */
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
TEST_CLEAN(test_weights)
{
    struct ks_checkpoint *c = linear_critic("dense 4\nloss quantile\n");

    put_loss(c, quantile_loss);
    assert_ok(ks_alloc(BATCHES * BATCH_LOSS_ROWS, sizeof(double), &c->weight));
    for (size_t i = 0; i < BATCHES * BATCH_LOSS_ROWS; i++)
        c->weight[i] = 2;
    for (size_t n = 0; n < BATCHES; n++)
        c->references.loss.value[n] *= 2;
    accepted(c);
    c->weight[BATCH_LOSS_ROWS] = 0;
    loss_differs(c, 1);
}

/* Targets of another kind for the same returns (smeared, where they were two-hot), and the quantile
 * loss as a mean over both indices, are other losses. */
TEST_CLEAN(test_other_losses)
{
    struct ks_checkpoint *c = linear_critic("dense 4\nloss ce min=-1 max=1\n");

    put_loss(c, softmax_loss);
    accepted(c);
    for (size_t i = 0; i < BATCHES * BATCH_LOSS_ROWS; i++)
        for (size_t k = 0; k < 4; k++)
            c->target[4 * i + k] = 0.75 * c->target[4 * i + k] + 0.0625;
    loss_differs(c, 0);
    c = linear_critic("dense 4\nloss quantile\n");
    put_loss(c, quantile_loss);
    accepted(c);
    for (size_t n = 0; n < BATCHES; n++)
        c->references.loss.value[n] /= 4;
    loss_differs(c, 0);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
