/* Small critics with random theta and batches, the null directions that their architecture implies,
 * and the thresholds for a zero eigenvalue. For the tests of null_space.h. */
#ifndef KS_TEST_NULL_CRITICS_H
#define KS_TEST_NULL_CRITICS_H

#include "critics.h"

#include "operators/null_space.h"
#include "train/architecture.h"

extern size_t critic_inputs; /* columns of the input of `make` */

enum { IN = 5, MINIBATCHES = 3, ROWS = 80, LOSS_ROWS = 60 };

static const struct ks_operator_kind *const HESSIAN = &ks_operator_kinds[0];

/* Random theta, inputs and targets; for ce each row of targets is a probability distribution. */
void draw(struct ks_rng *rng, struct ks_checkpoint *c);
struct ks_checkpoint *null_critic(const char *text, size_t ensemble);

/* How many of the values are zero relative to the largest. Fails if a value is in between. */
size_t zeros(const char *text, size_t n, const double *value);

/* The predicted null space, held until the test ends. */
struct ks_null_space *predict(const struct ks_problem *q, const struct ks_operator_kind *kind);

/* The operator of this kind, restricted to the selection. */
struct ks_operator *build(const struct ks_problem *q, const struct ks_operator_kind *kind,
                          const struct ks_selection *selection, bool single);

/* All directions [dimension, E P], each of norm 1. */
double *all_directions(const struct ks_null_space *s);

/* The dimension for the study's twelve architectures at width d and depth k. With layernorm: IN + 1
 * for the first dense and d + 1 for each further one. With batchnorm: the IN biases of the input's
 * norm. With ce: d + 1 more. */
size_t study_dimension(const char *name, size_t d, size_t k);
char *study_text(const char *name, size_t width, size_t depth);

#endif
