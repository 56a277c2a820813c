/* The exponential function of many numbers at once. */
#ifndef KS_NET_EXPONENTIAL_H
#define KS_NET_EXPONENTIAL_H

#include "core/real.h"

enum { KS_EXP_BLOCK = 32 };

/* y_i = exp(x_i) for KS_EXP_BLOCK numbers; x and y may be the same array. It uses the vector
 * functions of the C library if it has them (glibc's libmvec on x86-64: error below 4 ulp), and
 * takes whole blocks only, so that the bits of y_i depend on x_i alone: a loop of any length would
 * leave its last numbers to the scalar function, which rounds differently. */
void KS(exp_block)(const real x[KS_EXP_BLOCK], real y[KS_EXP_BLOCK]);

#endif
