/* The constants of Adam (Kingma & Ba, ICLR 2015): what the training engine uses, and what a reader
 * assumes of a checkpoint that does not store them. */
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
