/* An example checkpoint with all optional parts, comparisons of checkpoints, and edits of their
 * files such as another program might make. */
#ifndef KS_TEST_EXAMPLE_H
#define KS_TEST_EXAMPLE_H

#include <hdf5.h>

#include "critics.h"
#include "scratch.h"

#include "io/h5.h"

static const char CE[] = "batchnorm\nrepeat 2 {\n  dense 7 bias=no project=unit\n  layernorm\n"
                         "  relu\n}\ndense 3 project=unit-kernel\nloss ce min=-5 max=5\n";

static const char MSE[] = "dense 4\nrelu\ndense 1\nloss mse\n";
static const char ACTOR[] = "dense 6\nbatchnorm\nrelu\ndense 4\n"
                            "policy tanh-gaussian log-std=clip min=-10 max=2\n";

enum { IN = 5, ACTIONS = 2, ENSEMBLE = 2, MINIBATCHES = 3, ROWS = 6, LOSS_ROWS = 4 };

double *squares(struct ks_rng *rng, size_t n);

/* Targets [MINIBATCHES, LOSS_ROWS, k]; each row is a distribution if k > 1. */
double *make_targets(struct ks_rng *rng, size_t k);
struct ks_checkpoint *make_plain(const char *text);

/* A checkpoint as the training engine writes it, with all optional parts but reference results. */
struct ks_checkpoint *make_full(void);

/* Such a checkpoint with random reference results, for reading and writing only: an analysis
 * refuses it. */
struct ks_checkpoint *make_with_references(void);
void write_one(const char *path, struct ks_checkpoint *c, bool single);
void same_numbers(size_t n, const double *a, const double *b, bool single);
void same_checkpoint(const struct ks_checkpoint *a, const struct ks_checkpoint *b, bool single);
hid_t edit(const char *path);
void remove_object(const char *path, const char *object);
void remove_attribute(const char *path, const char *object, const char *name);
void set_integer(const char *path, const char *object, const char *name, int64_t value);
void set_number(const char *path, const char *object, const char *name, double value);
void set_string(const char *path, const char *object, const char *name, const char *value);

/* Overwrites element `at` of a dataset. */
void poke(const char *path, const char *object, size_t at, double value);

/* How a dataset is stored: its shape, values (NULL: zeros), creation property list (0: the
 * default).
 */
struct stored {
    int rank;
    hsize_t dims[5];
    const double *values;
    hid_t list;
};

/* Adds a dataset to an open file. */
void add_dataset(hid_t file, const char *name, hid_t type, const struct stored *how);

/* Puts a dataset in the place of what the file has under this name, if anything. */
void replace(const char *path, const char *object, hid_t type, const struct stored *how);

/* Replaces a dataset by zeros: dimension `dim` of the shape is changed by `by`. */
void resize(const char *path, const char *object, size_t dim, int by);

hid_t string_type(size_t size, H5T_str_t padding, H5T_cset_t characters);

/* Two checkpoints hold the same critics, moments, and minibatches. */
void assert_same(const char *a, const char *b);

#endif
