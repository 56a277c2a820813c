/* The constants of Adam (Kingma & Ba, ICLR 2015): those that the training engine uses, which are
 * also those of a checkpoint that does not say. */
#ifndef KS_IO_ADAM_H
#define KS_IO_ADAM_H

#define KS_ADAM_BETA1 0.9
#define KS_ADAM_BETA2 0.999
#define KS_ADAM_EPS   1e-8

/* 0 <= beta1, beta2 < 1; eps >= 0. */
struct ks_adam_constants {
    double beta1, beta2, eps;
};
#define KS_ADAM_DEFAULTS ((struct ks_adam_constants){KS_ADAM_BETA1, KS_ADAM_BETA2, KS_ADAM_EPS})

#endif
