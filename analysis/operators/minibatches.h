/* The operators of single minibatches. The analyzed operator is their sum, so it has the factor 1/N
 * of the mean over all minibatches. A thread has one of them at a time. */
#ifndef KS_OPERATORS_MINIBATCHES_H
#define KS_OPERATORS_MINIBATCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/memory.h"
#include "operators/operator.h"

/* The work of one thread. */
struct ks_minibatch {
    struct ks_checkpoint checkpoint; /* a view of this minibatch in the analyzed checkpoint */
    struct ks_problem problem;
    struct ks_operator *a; /* owned            */
    double *out;           /* [n] A v          */
    ks_status status;
    char message[512]; /* messages are thread-local, so they are kept here */
};

struct ks_minibatches {
    /* Set by the caller. */
    const struct ks_problem *problem;
    size_t n;          /* dimension of the operator               */
    size_t memory;     /* bytes of activations that each may keep */
    bool products_f32; /* products in float32, not float64        */
    /* The others. */
    size_t threads; /* operators at a time: OpenMP's threads, at most one per minibatch */
    struct ks_minibatch *list; /* [threads]. Owned                                       */
    size_t made;               /* operators in the list at present                       */
    const double **v;          /* [threads]: scratch of ks_minibatches_multiply. Owned    */
    struct ks_arena arena;     /* of the products. Owned                                 */
};

/* Sets the other fields for the operators of `count` minibatches. KS_MEMORY. The caller ends with
 * ks_minibatches_clear, also after a failure. */
ks_status ks_minibatches_new(struct ks_minibatches *set, size_t count);
/* list[0 .. made) = the operators of the minibatches first, first + 1, ... below `end`, as many as
 * there are threads, in parallel; without the weight decay. Fails as the operator does. */
ks_status ks_minibatches_make(struct ks_minibatches *set, size_t first, size_t end);
/* list[at] = the operator of one minibatch, with or without the weight decay. */
ks_status ks_minibatches_make_one(struct ks_minibatches *set, size_t minibatch, bool decays,
                                  size_t at);
/* list[t].out = the product of list[t].a with v[t], for t < made, in parallel. */
ks_status ks_minibatches_apply(struct ks_minibatches *set, const double *const *v);
/* Vectors to be multiplied by the operators A_i of minibatches, and what comes of it. */
struct ks_minibatch_products {
    size_t vectors;
    const double *const *v;  /* [vectors] [n]; NULL: left out                               */
    double *const *quotient; /* [vectors] [minibatches]: v'A_i v N / v'v                     */
    double *const *image;    /* [vectors] [n]: A_i v is added, in the order of the minibatches;
                              * NULL: for none                                              */
};
/* Multiplies by the operators of the minibatches [begin, end), without the weight decay. Fails as
 * the operators do; KS_MEMORY. */
ks_status ks_minibatches_multiply(struct ks_minibatches *set, size_t begin, size_t end,
                                  const struct ks_minibatch_products *products);
/* Returns the mean of `count` quotients; *se is its standard error, NaN if there is only one. */
double ks_minibatches_mean(size_t count, const double *quotient, double *se);
void ks_minibatches_clear(struct ks_minibatches *set);

#endif
