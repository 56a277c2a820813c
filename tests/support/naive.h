/* One critic as a reader of the formulas would write it: no matrix products, no shared code. It
 * gives reference results that do not come from what they are to check. */
#ifndef KS_TEST_NAIVE_H
#define KS_TEST_NAIVE_H

#include "critics.h"
#include "scratch.h"

enum { SIDE = 5, CRITICS = 2, BATCHES = 3, BATCH_ROWS = 9, BATCH_LOSS_ROWS = 6 };

/* Square kernels, batch and layer normalization: the first number of each array in a critic's
 * parameters. */
#define NAIVE_BODY                                                                                 \
    "batchnorm\ndense 5\nlayernorm eps=1e-5\nrelu\ndense 5\nbatchnorm\ngelu\ndense 1\n"

enum {
    SCALE0 = 0,
    KERNEL1 = 10,
    BIAS1 = 35,
    SCALE2 = 40,
    BIAS2 = 45,
    KERNEL4 = 50,
    BIAS4 = 75,
    SCALE5 = 80,
    KERNEL7 = 90,
    BIAS7 = 95,
    PARAMETERS = 96
};

/* What programs do differently. */
struct how {
    double eps;          /* of the layer normalization */
    bool erf;            /* gelu by the error function, not by tanh */
    bool evaluation;     /* running statistics */
    bool alone;          /* batch statistics of the rows of the loss alone */
    bool held;           /* batch statistics are those in `moments`: no derivative through them */
    size_t from, behind; /* parameters without a derivative */
};

static const struct how RIGHT = {.eps = 1e-5};

struct moments {
    double mean[2][SIDE], var[2][SIDE];
};

void naive_dense(size_t out, const double *w, const double *b, const double *x, double *y);

/* f [BATCH_ROWS] = the outputs of one critic with parameters w. */
void naive_outputs(const double *w, const double *input, const struct how *how, struct moments *m,
                   double *f);

/* The reference results of a program that computes as `forward` says, and differentiates as
 * `backward` does. Outputs and loss are in float64, and of `rows` rows. */
void naive_references(struct ks_checkpoint *c, size_t rows, struct how forward,
                      struct how backward);
struct ks_checkpoint *naive_critic(void);

/* One critic of these sizes with another description. */
struct ks_checkpoint *linear_critic(const char *text);

/* Replaces the description and keeps the parameters. */
void describe(struct ks_checkpoint *c, const char *text);
void write_file(const char *name, const struct ks_checkpoint *c);

#endif
