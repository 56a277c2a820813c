/* The part of an analysis that depends on theta alone: activations, batch statistics, adjoints and
 * the gradient of the folded critic (fold.h).
 *
 * Always in float64: a relu that sits near its kink must fall on the same side whatever the
 * product's precision. */
#ifndef KS_OPERATORS_PRIMAL_H
#define KS_OPERATORS_PRIMAL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "net/net.h"
#include "operators/fold.h"
#include "operators/operator.h"

struct ks_primal {
    const struct ks_problem *problem; /* not owned */
    struct ks_fold *fold;
    struct ks_net *net; /* of the folded critic */
    double *w;          /* [E, P of the folded critic] */
    bool gauss_newton;  /* adjoints start from zero at the outputs */
    size_t rows; /* of a minibatch that take part: R, or B where rows do not influence each other */
    size_t input;        /* numbers of a minibatch's input: rows * its width */
    double output_scale; /* 1/(N B): the weight of one row's loss */
    /* A power of two. All that is computed is that of the loss divided by it, whose weight is about
     * 1: a tiny or a huge weight would leave the range of float32. */
    double unit;
};

/* Checks that the problem fits its checkpoint. The caller frees with ks_primal_free. */
ks_status ks_primal_new(const struct ks_problem *problem, bool gauss_newton,
                        struct ks_primal **primal);
void ks_primal_free(struct ks_primal *primal);
/* The power of two next to the loss's weight. */
double ks_primal_unit(const struct ks_loss *loss);

/* The bytes that every operator of the problem allocates before it is prepared, at the least, with
 * products in float32 if `single`: known from sizes alone, so that what does not fit is refused
 * before it is allocated. */
ks_status ks_primal_bytes(const struct ks_problem *problem, bool single, double *bytes);

/* One critic and minibatch; the arrays lie in a block of ks_primal_block() numbers. */
struct ks_primal_block {
    /* As the net lays them out, but with the weights of the loss's Hessian (loss.h), which products
     * need, in place of the outputs. */
    double *primal, *adjoint;
    double *input; /* [primal->input], what enters the folded critic; where only batch norms see
                    * it (net.h: input_invariant), less the mean of its rows */
    double *cache; /* scratch                          */
};
size_t ks_primal_block(const struct ks_primal *primal);

/* Fills the block, into which *parts then points. Returns this critic's and minibatch's part of
 * L / unit, and adds that of its gradient to gradient [P of the folded critic] unless that is NULL;
 * neither has weight decay or scale in it. Thread-safe. */
double ks_primal_compute(const struct ks_primal *primal, size_t critic, size_t minibatch,
                         double *block, struct ks_primal_block *parts, double *gradient);

/* The critics that a problem is about: [first, first + count). */
size_t ks_primal_first_critic(const struct ks_problem *problem);
size_t ks_primal_critics(const struct ks_problem *problem);

/* Threads that an analysis of this problem uses: one per minibatch, at most as many as OpenMP has.
 */
size_t ks_primal_workers(const struct ks_problem *problem);

#endif
