/* Critics in memory, without a file: blank ones for a test to fill, random ones, and critics after
 * a few hundred steps of Adam that are small enough to compute all their eigenvalues. */
#ifndef KS_TEST_CRITICS_H
#define KS_TEST_CRITICS_H

#include <cblas.h>

#include "readers.h"
#include "test.h"

#include "core/memory.h"
#include "core/rng.h"
#include "io/file.h"
#include "net/arch.h"
#include "operators/operator.h"

struct critic_sizes {
    size_t ensemble, in, minibatches, rows, loss_rows;
};

/* A checkpoint whose parameters, statistics, inputs and targets are 0. */
struct ks_checkpoint *blank_critic(const char *text, struct critic_sizes s);

/* Keeps a critic until 63 others have been kept: nobody else frees it. A file's critic is kept. */
struct ks_checkpoint *keep_checkpoint(struct ks_checkpoint *c);
struct ks_checkpoint *read_checkpoint(const char *path);
void fill_normal(struct ks_rng *rng, size_t n, double *values);

/* n standard normal numbers in a new array. */
double *numbers(struct ks_rng *rng, size_t n);

/* Normal parameters, inputs and targets, positive statistics. With more than one output the targets
 * of row i are 0.1 but for column i mod K, and sum to 1. */
struct ks_checkpoint *random_critic(const char *text, struct critic_sizes s, uint64_t seed);

/* Scales projected columns to norm 1. */
void project_columns(struct ks_networks *n);

/* Gives the critic projected columns of norm 1, and random moments of Adam, of which some second
 * ones are zero. Returns it. */
struct ks_checkpoint *settle(struct ks_checkpoint *c, uint64_t seed);

/* f [rows, out] = the outputs of a critic on the first rows of minibatch n. */
void critic_outputs(const struct ks_checkpoint *c, size_t critic, size_t n, size_t rows,
                    bool evaluation, double *f);

/* The loss of all minibatches and critics. */
struct ks_problem full_problem(const struct ks_checkpoint *c);

enum { TASK_IN = 6, TASK_BATCHES = 2, TASK_ROWS = 64, TASK_STEPS = 300, TRAINED = 5 };

static const struct {
    const char *name, *text;
} trained_critics[TRAINED] = {
    {"bn+wn+ce", "batchnorm\nrepeat 2 {\ndense 14 bias=no project=unit\nbatchnorm\nrelu\n}\n"
                 "dense 11 project=unit-kernel\nloss ce min=-2 max=2\n"},
    {"ln+mse", "layernorm\nrepeat 2 {\ndense 16\nlayernorm\nrelu\n}\ndense 1\nloss mse\n"},
    {"dense+ce", "repeat 2 {\ndense 12\nrelu\n}\ndense 11\nloss ce min=-2 max=2\n"},
    {"bn+mse", "batchnorm\nrepeat 2 {\ndense 20 bias=no\nbatchnorm\nrelu\n}\ndense 1\nloss mse\n"},
    {"dense+huber", "repeat 2 {\ndense 16\ntanh\n}\ndense 1\nloss huber\n"},
};

/* A step of Adam (Kingma, Ba 2015) with the gradient of all minibatches. */
void adam_step(struct ks_checkpoint *c, const double *g);

/* Critic `k` after training. */
struct ks_checkpoint *train_critic(size_t k);

/* The same critic with other minibatches of the task. */
struct ks_checkpoint *draw_minibatches(const struct ks_checkpoint *c, size_t n, uint64_t seed);

#endif
