/* The loss along the step that Adam takes: theta - eta u, with the direction u = m^ / (sqrt v^ +
 * eps) from the moments m^ and v^ that the checkpoint stores, without bias (Kingma and Ba, ICLR
 * 2015, algorithm 1). That is the last update, taken once more: no further gradient enters. What a
 * training program does after Adam's step is left out: decoupled weight decay, the projection of
 * weights. */
#ifndef KS_OPERATORS_STEP_H
#define KS_OPERATORS_STEP_H

#include "core/error.h"
#include "core/interval.h"
#include "operators/operator.h"

/* NaN is what is not known. */
struct ks_step {
    double curvature; /* u'Hu / u'u, with the Hessian H of L                                */
    double change;    /* L(theta - eta u) - L(theta), by forward passes                     */
    double quadratic; /* what the gradient g and H predict for it: -eta g'u + eta^2 u'Hu / 2 */
    double critical;  /* 2/eta_c, within `in`                                               */
    struct ks_interval in;
};

/* u has the problem's selected coordinates, and is zero in all others. eta_c > 0 is a length at
 * which L is again what it was: L(theta - eta u) <= L(theta) at one end of `in`, and more at the
 * other, at most 2% away (critical sharpness, arXiv 2601.16979: on a quadratic, and along the
 * gradient, 2/eta_c is g'Hg / g'g). It is searched upwards or downwards in factors of two from the
 * length at which the quadratic is again 0 (|theta| / |u| if it bends down), so there may be a
 * shorter one. `critical` and `in` are NaN if the loss rises along the step at once, or if it does
 * not rise again; curvature, too, if u is zero. Forward passes compute what derivatives hold fixed
 * (batchrenorm) anew. `change` and `quadratic` are NaN without a learning rate (eta NaN). In
 * float64; takes a gradient, one product with H, and ten forward passes or more. KS_MEMORY; fails
 * as ks_gradient does.
 */
ks_status ks_step_measure(const struct ks_problem *problem, double eta, struct ks_step *step);

/* Whether the checkpoint has Adam's moments. */
bool ks_step_exists(const struct ks_problem *problem);

#endif
