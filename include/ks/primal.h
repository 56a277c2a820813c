/* What of an analysis depends on theta alone: activations, batch statistics, adjoints, the
 * gradient.
 *
 * Always in float64: a relu that sits near its kink must fall on the same side whatever the
 * product's precision. The block of one minibatch and one critic is a net's primal block and its
 * adjoint block; a net of the other precision lays out the same numbers at the same places. */
#ifndef KS_PRIMAL_H
#define KS_PRIMAL_H

#include <stddef.h>

#include "ks/error.h"
#include "ks/net.h"
#include "ks/operator.h"

struct ks_primal {
    const struct ks_problem *problem; /* not owned */
    struct ks_net *net;
    size_t rows; /* of a minibatch that take part: R, or B where rows do not influence each other */
    size_t block;        /* numbers in a block */
    double output_scale; /* 1/(N B): the weight of one row's loss */
};

/* Checks that the problem fits its checkpoint. The caller frees with ks_primal_free. */
ks_status ks_primal_new(const struct ks_problem *problem, struct ks_primal **primal);
void ks_primal_free(struct ks_primal *primal);

/* Fills `block` for one critic and minibatch; adds their part of L's gradient (neither weight decay
 * nor scale in it) to gradient [P] unless that is NULL; returns their part of L. Thread-safe. */
double ks_primal_compute(const struct ks_primal *primal, size_t critic, size_t minibatch,
                         double *block, double *gradient);

/* Threads that an analysis of this problem uses: one a minibatch, at most as many as OpenMP has. */
size_t ks_primal_workers(const struct ks_problem *problem);

#endif
