/* Small checkpoints of six architectures for the tests of the analyzer, written to NAME.h5 in the
 * scratch folder. */
#ifndef KS_TEST_SMALL_CRITICS_H
#define KS_TEST_SMALL_CRITICS_H

#include "critics.h"
#include "programs.h"

#include "io/spectrum.h"
#include "statistics/statistics.h"

enum { IN = 5, ENSEMBLE = 2, MINIBATCHES = 3, ROWS = 10, LOSS_ROWS = 6, ARCHS = 6 };

/* Batchnorm, layernorm or no norm before each relu, with both losses. */
static const struct {
    const char *name, *text;
} archs[ARCHS] = {
    {"bn+ce", "batchnorm\nrepeat 2 {\ndense 6 bias=no\nbatchnorm\nrelu\n}\ndense 4\n"
              "loss ce min=-5 max=5\n"},
    {"bn+mse", "batchnorm\ndense 6 bias=no\nbatchnorm\nrelu\ndense 1\nloss mse\n"},
    {"ln+ce",
     "layernorm\nrepeat 2 {\ndense 6\nlayernorm\nrelu\n}\ndense 4\nloss ce min=-5 max=5\n"},
    {"ln+mse", "dense 6\nlayernorm\nrelu\ndense 1\nloss mse\n"},
    {"dense+ce", "repeat 2 {\ndense 6\nrelu\n}\ndense 4\nloss ce min=-5 max=5\n"},
    {"dense+mse", "repeat 2 {\ndense 6\nrelu\n}\ndense 1\nloss mse\n"},
};

/* Random critics with this description; kept, as keep_checkpoint does. */
struct ks_checkpoint *make(const char *text);

/* Adds targets from raw rewards for an mse loss: three times as large, and shifted. */
void add_raw(struct ks_checkpoint *c);
const char *file(const char *name);

/* Writes the critic to NAME.h5. */
void save(const char *name, struct ks_checkpoint *c);

/* The spectrum from a run with these arguments on NAME.h5; held until the test ends. */
struct ks_spectrum *spectrum(const char *name, const char *arguments);

/* One statistic of that spectrum. */
double statistic_of(const char *name, const char *arguments, const char *statistic_name);
size_t dimension(const char *text);
/* The Hessian [n, n], by products with the unit vectors; held until the test ends. */
double *dense_hessian(const char *name, size_t n);
int write_checkpoints(void **state);

#endif
