/* What depends on theta alone and not on the direction v of a product: activations, batch
 * statistics, adjoints and the gradient of the folded critic (fold.h).
 *
 * All of it is in float64: a relu whose input is close to 0 must have the same sign whatever the
 * precision of the products. */
#ifndef KS_OPERATORS_PRIMAL_H
#define KS_OPERATORS_PRIMAL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/memory.h"
#include "net/net.h"
#include "operators/fold.h"
#include "operators/operator.h"

struct ks_net_f64; /* of net/net.h and net/loss.h, in code compiled for double */
struct ks_loss_f64;

struct ks_primal {
    const struct ks_problem *problem; /* not owned */
    struct ks_fold *fold;
    struct ks_net_f64 *net; /* the folded critic */
    double *w;              /* [E, ...] extended parameters (arch.h) of the folded critics */
    /* Of products J' M J, which depend on no adjoints, these are zero; and which M. */
    bool gauss_newton;
    enum ks_inner inner;
    /* Rows of a minibatch that are computed: all R; or, if rows do not depend on each other, the B
     * rows that enter the loss, in microbatches (net.h). All of these have the same number of rows:
     * the last repeats its last row, without a loss. */
    size_t microbatches;    /* of a minibatch */
    size_t rows, loss_rows; /* of a microbatch: all; those of its loss */
    size_t input;           /* rows * D, the size of the input of a microbatch */
    double output_scale;    /* 1/(N B): the weight of one row in the loss */
    /* The loss is divided by this power of two, so that its weight is about 1: with a tiny or a
     * huge weight, products would leave the range of float32. */
    double unit;
    struct ks_arena arena; /* of `w`. Owned */
};

/* Checks that the problem fits its checkpoint (KS_USAGE, KS_FORMAT), folds the critic and its
 * parameters. Computes nothing yet. `inner` is KS_INNER_HESSIAN; the caller may change it, and
 * frees with ks_primal_free. */
ks_status ks_primal_new(const struct ks_problem *problem, bool gauss_newton,
                        struct ks_primal **primal);
void ks_primal_free(struct ks_primal *primal);
KS_OWNER(ks_primal_free, struct ks_primal *)

/* A microbatch has the rows first, first + 1, ..., first + rows - 1 of a minibatch's loss. */
struct ks_microbatch {
    size_t minibatch, first, rows;
};
/* Number `number` of all: the microbatches of a minibatch follow each other. */
struct ks_microbatch ks_microbatch(const struct ks_primal *primal, size_t number);

/* The passes of one critic over one microbatch; the arrays lie in one block of ks_primal_size()
 * numbers. */
struct ks_primal_pass {
    /* In the layout of the net (net.h), except that what describes the matrices M (loss.h:
     * loss_inner), which products need, has replaced the outputs. */
    double *primal, *adjoint;
    double *input; /* [primal->input], the input of the folded critic; if only batch norms read it
                    * (net.h: input_invariant), minus the mean of its rows */
    double *cache, *state; /* scratch */
    double loss; /* what this critic and microbatch contribute to L / unit, without the weight decay
                  * and problem->scale */
};
size_t ks_primal_size(const struct ks_primal *primal);

/* Computes the passes in `block` [ks_primal_size(primal)] and adds the gradient of their loss to
 * `gradient` [P of the folded critic] unless that is NULL. Thread-safe. */
struct ks_primal_pass ks_primal_compute(const struct ks_primal *primal, size_t critic,
                                        struct ks_microbatch at, double *block, double *gradient);

/* The arrays with which threads find gradients, each in those of its own. */
struct ks_primal_workers {
    const struct ks_primal *primal; /* not owned */
    size_t n, parameters;           /* threads; the length of `gradient` */
    struct ks_primal_worker {
        double *block, *folded, *gradient; /* [ks_primal_size], [P folded], [parameters] */
    } * worker;                            /* [n] */
};
/* A layout function of a struct ks_primal_workers. */
void ks_primal_lay_out_workers(struct ks_arena *arena, void *workers);

/* The critics of a problem: the first one, and how many follow each other from there. */
size_t ks_primal_first_critic(const struct ks_problem *problem);
size_t ks_primal_critics(const struct ks_problem *problem);

/* The number of threads that products of this problem use: one per minibatch, at most
 * omp_get_max_threads(). */
size_t ks_primal_threads(const struct ks_problem *problem);

#endif
