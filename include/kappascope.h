/* KappaScope's analysis as a library: spectra of the curvature of a critic's loss, and of any
 * symmetric operator that is given by its products. For C11 and C++11.
 *
 *   struct kappascope_operator *a;
 *   struct kappascope_slq_options options;
 *   struct kappascope_spectrum *s;
 *
 *   kappascope_operator_from_product(n, my_product, my_context, &a);
 *   kappascope_slq_defaults(&options);
 *   kappascope_slq(a, &options, &s);
 *   kappascope_spectrum_statistic(s, "lambda_max");
 *
 * Errors. Functions that can fail return a kappascope_status; kappascope_error() then has one line
 * of text for the calling thread. A function that makes an object sets its pointer to NULL where it
 * fails. A NULL where a pointer is required is KAPPASCOPE_USAGE. Nothing here exits or prints.
 *
 * Ownership. Objects are freed with the function ..._free, for which NULL is fine. Arrays that go
 * in are copied before a function returns. Pointers that functions return belong to their object
 * and are valid until it is freed.
 *
 * Threads. Different threads may use different objects at the same time; one object is for one
 * thread at a time, but a checkpoint, which nothing changes, may have operators in several threads.
 * The library has no state of its own but a lock around HDF5, which is not reentrant: a program
 * that calls HDF5 itself does so while no other thread reads or writes a file here. Products use
 * OpenMP's threads (OMP_NUM_THREADS), a minibatch each, and call OpenBLAS in each of them: see
 * kappascope_blas_one_thread. Checkpoints and spectra are read in a forked process, which a damaged
 * file may crash without harm.
 *
 * All matrices are row-major; all numbers are double, whatever the precision of products. */
#ifndef KAPPASCOPE_H
#define KAPPASCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define KAPPASCOPE_API __attribute__((visibility("default")))
#else
#define KAPPASCOPE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum kappascope_status {
    KAPPASCOPE_OK = 0,
    KAPPASCOPE_USAGE,   /* an argument that is out of range or does not fit the others */
    KAPPASCOPE_FORMAT,  /* a file or a description that is malformed                   */
    KAPPASCOPE_IO,      /* a file that cannot be opened, read or written               */
    KAPPASCOPE_MISSING, /* something that has to be installed first                    */
    KAPPASCOPE_FULL,    /* a disk that is full or fails while it is written            */
    KAPPASCOPE_MEMORY,  /* an allocation that failed, or would not fit                 */
    KAPPASCOPE_NUMBER,  /* a NaN or an infinity where numbers must be finite           */
    KAPPASCOPE_RUN      /* any other failure, as of a caller's product                 */
};

/* The message of the calling thread's last failure, "" before the first; valid until its next. */
KAPPASCOPE_API const char *kappascope_error(void);
/* The version of the library, "0.4.0". The interface may change while the first number is 0. */
KAPPASCOPE_API const char *kappascope_version(void);
/* Makes OpenBLAS use one thread per caller, in the whole process: products are parallel over
 * minibatches already, and with more their last bits depend on OpenBLAS's threads. Best called
 * once, before anything else; not needed where OPENBLAS_NUM_THREADS=1 is set. */
KAPPASCOPE_API void kappascope_blas_one_thread(void);

/* --- checkpoints: critics, and the minibatches that their loss is a mean over ------------------
 */

struct kappascope_checkpoint;

/* Critics from memory: `ensemble` networks of one description. Shapes in brackets:
 * E critics of P parameters and S running statistics; N minibatches of R rows and D columns, of
 * which the first B rows have a loss and T targets each. */
struct kappascope_critic {
    const char *arch;            /* the description, as in configs/README.md              */
    size_t inputs;               /* D                                                     */
    size_t ensemble;             /* E                                                     */
    const double *parameters;    /* [E, P], in the order of the description               */
    const double *statistics;    /* [E, S] of batchnorms, mean before var; NULL: none     */
    size_t minibatches;          /* N                                                     */
    size_t rows;                 /* R                                                     */
    size_t loss_rows;            /* B, from 1 to R                                        */
    const double *input;         /* [N, R, D]                                             */
    const double *target;        /* [N, B, T]; rows of a cross-entropy's sum to 1         */
    const double *adam_v;        /* [E, P] Adam's second moment; NULL: none               */
    int64_t adam_step;           /* updates that it has seen                              */
    double adam_beta2, adam_eps; /* of Adam: D = sqrt(adam_v / (1 - beta2^step)) + eps    */
};
/* All zero but ensemble = 1, adam_beta2 = 0.999 and adam_eps = 1e-8. */
KAPPASCOPE_API void kappascope_critic_defaults(struct kappascope_critic *critic);

struct kappascope_sizes {
    size_t parameters; /* P: of one critic                                     */
    size_t statistics; /* S: running statistics of one critic                  */
    size_t inputs;     /* D                                                    */
    size_t outputs;    /* columns of its output                                */
    size_t targets;    /* T: targets of a row                                  */
    size_t layers;     /* numbers of layers are 0 .. layers - 1                */
    size_t ensemble, minibatches, rows, loss_rows; /* of a checkpoint, else 0   */
};
/* The sizes that a description implies for `inputs` columns. KAPPASCOPE_FORMAT, with the line. */
KAPPASCOPE_API enum kappascope_status kappascope_arch_sizes(const char *arch, size_t inputs,
                                                            struct kappascope_sizes *sizes);

/* Reads a checkpoint file (checkpoints/README.md) and checks all of it. */
KAPPASCOPE_API enum kappascope_status
kappascope_checkpoint_read(const char *path, struct kappascope_checkpoint **checkpoint);
/* Copies critics from memory, and checks them as a file: KAPPASCOPE_USAGE for sizes,
 * KAPPASCOPE_FORMAT for the description and for targets or moments that are none, KAPPASCOPE_NUMBER
 * for a NaN or an infinity. */
KAPPASCOPE_API enum kappascope_status
kappascope_checkpoint_new(const struct kappascope_critic *critic,
                          struct kappascope_checkpoint **checkpoint);
KAPPASCOPE_API enum kappascope_status
kappascope_checkpoint_sizes(const struct kappascope_checkpoint *checkpoint,
                            struct kappascope_sizes *sizes);
KAPPASCOPE_API void kappascope_checkpoint_free(struct kappascope_checkpoint *checkpoint);

/* --- operators: y = A x, symmetric -------------------------------------------------------------
 */

struct kappascope_operator;

enum kappascope_precision {
    KAPPASCOPE_DEFAULT, /* the operator's own: float32, but float64 for "preconditioned" */
    KAPPASCOPE_F32,
    KAPPASCOPE_F64
};

/* What of a checkpoint is analyzed: a curvature of
 *
 *   L(theta) = scale ( 1/N sum_n sum_e 1/B sum_{i<B} l(f_e(input[n])[i], target[n,i])
 *                      + weight_decay/2 |theta|^2 )
 */
struct kappascope_problem {
    const char *kind; /* "hessian", "ggn", "residual", "preconditioned", "manifold": see
                       * kappascope_operator_kind and analysis/README.md                      */
    enum kappascope_precision precision; /* of products; activations are always float64       */
    bool evaluation;     /* batchnorm uses running statistics                                 */
    bool raw_rewards;    /* the file's targets from raw rewards (/batch/target_raw)           */
    size_t minibatches;  /* the first of the checkpoint's; 0: all                             */
    double weight_decay; /* at least 0                                                        */
    double scale;        /* not 0                                                             */
    int critic, layer;   /* the diagonal block of one critic, one layer; -1: all              */
    size_t memory;       /* bytes of activations that may be kept between products; 0: half of
                          * what is free on the machine. More is faster; results are the same */
};
/* The Hessian of all parameters on all minibatches: scale = 1, critic = layer = -1, else zero. */
KAPPASCOPE_API void kappascope_problem_defaults(struct kappascope_problem *problem);
/* The names of the operators: the i-th, NULL behind the last. */
KAPPASCOPE_API const char *kappascope_operator_kind(size_t i);

/* An operator of a checkpoint, which is freed after it. KAPPASCOPE_FORMAT where the checkpoint
 * lacks what the operator needs (running statistics, Adam's second moment, projected columns),
 * KAPPASCOPE_MEMORY. */
KAPPASCOPE_API enum kappascope_status
kappascope_operator_new(const struct kappascope_checkpoint *checkpoint,
                        const struct kappascope_problem *problem, struct kappascope_operator **a);

/* A product of the caller's: y = A x, both [n], for a symmetric A; x stays as it is. It is called
 * in the thread that runs the computation, and must give the same y for the same x. Returns 0, or
 * another number to fail: the computation ends with KAPPASCOPE_RUN. */
typedef int (*kappascope_product)(void *context, const double *x, double *y);
/* An operator of dimension n, 1 to 2^31 - 1, by its products; `context` is handed to each. Bounds
 * and certificates hold for it as far as the products are exact to float64 rounding. */
KAPPASCOPE_API enum kappascope_status
kappascope_operator_from_product(size_t n, kappascope_product product, void *context,
                                 struct kappascope_operator **a);

KAPPASCOPE_API size_t kappascope_operator_dimension(const struct kappascope_operator *a);
/* index [dimension]: the coordinates of the operator in the parameters [E, P], ascending; those of
 * a caller's product are 0 .. n - 1. */
KAPPASCOPE_API enum kappascope_status
kappascope_operator_coordinates(const struct kappascope_operator *a, size_t *index);
/* y = A x, both [dimension], which do not overlap. KAPPASCOPE_NUMBER where x or y is not finite. */
KAPPASCOPE_API enum kappascope_status kappascope_operator_apply(struct kappascope_operator *a,
                                                                const double *x, double *y);
KAPPASCOPE_API void kappascope_operator_free(struct kappascope_operator *a);

/* --- Lanczos -----------------------------------------------------------------------------------
 */

/* One recurrence with full reorthogonalization: after m steps, with Q = [q_0 .. q_{m-1}] and the
 * Jacobi matrix T, A Q - Q T = beta[m-1] q_m e_m'. */
struct kappascope_lanczos_options {
    size_t order;         /* the most steps, 1 to 10000; no more than n are taken               */
    const double *start;  /* [n], scaled to norm 1; NULL: Gaussian numbers of (seed, probe)      */
    uint64_t seed, probe; /* up to 2^63 - 1, 2^31 - 2                                           */
};
/* Results go into arrays of the caller's: alpha, beta [order]; beta[j] couples steps j and j + 1,
 * the last one is the residual norm. `basis` [order + 1, n], a q_j in each row, may be NULL. *steps
 * is smaller than order where the Krylov space ends. KAPPASCOPE_NUMBER where `start` is zero. */
KAPPASCOPE_API enum kappascope_status
kappascope_lanczos(struct kappascope_operator *a, const struct kappascope_lanczos_options *options,
                   double *alpha, double *beta, double *basis, size_t *steps);
/* The eigenvalues of the Jacobi matrix of m steps: ritz [m], ascending; weight [m], the squares of
 * the eigenvectors' first components, sum 1; residual [m]: an eigenvalue of A is as close to that
 * Ritz value. */
KAPPASCOPE_API enum kappascope_status kappascope_ritz(size_t m, const double *alpha,
                                                      const double *beta, double *ritz,
                                                      double *weight, double *residual);

/* --- spectra -----------------------------------------------------------------------------------
 */

struct kappascope_spectrum;

struct kappascope_slq_options {
    size_t order;      /* m: Lanczos steps of a probe, 1 to 10000                              */
    size_t probes;     /* random start vectors, 1 to 10000                                     */
    uint64_t seed;     /* of the start vectors, up to 2^63 - 1                                 */
    bool gradient;     /* one more probe, which starts at the gradient of the checkpoint's loss */
    bool certificates; /* products in float64 certify the bounds                               */
    bool single_basis; /* Lanczos vectors in float32: half the memory                          */
};
/* order = 90, probes = 1, seed = 0, certificates; the rest is off. */
KAPPASCOPE_API void kappascope_slq_defaults(struct kappascope_slq_options *options);
/* Stochastic Lanczos quadrature (Ubaru, Chen, Saad, SIAM J. Matrix Anal. Appl. 38, 2017), with the
 * statistics, bounds and density that kappascope-analyze finds, to the last bit where the
 * number of threads is the same. Takes order * probes products, and some more. */
KAPPASCOPE_API enum kappascope_status kappascope_slq(struct kappascope_operator *a,
                                                     const struct kappascope_slq_options *options,
                                                     struct kappascope_spectrum **spectrum);
/* All eigenvalues, by n products and LAPACK; n is at most 8000. */
KAPPASCOPE_API enum kappascope_status kappascope_exact(struct kappascope_operator *a,
                                                       struct kappascope_spectrum **spectrum);
/* Spectrum files (analysis/README.md), as kappascope-analyze writes them. A file appears whole or
 * not at all. */
KAPPASCOPE_API enum kappascope_status
kappascope_spectrum_read(const char *path, struct kappascope_spectrum **spectrum);
KAPPASCOPE_API enum kappascope_status
kappascope_spectrum_write(const struct kappascope_spectrum *spectrum, const char *path);
KAPPASCOPE_API void kappascope_spectrum_free(struct kappascope_spectrum *spectrum);

/* Probes, that of the gradient last; one of an exact spectrum. */
KAPPASCOPE_API size_t kappascope_spectrum_probes(const struct kappascope_spectrum *spectrum);
/* Lanczos steps of a probe, n of an exact spectrum; 0: there is no such probe. */
KAPPASCOPE_API size_t kappascope_spectrum_steps(const struct kappascope_spectrum *spectrum,
                                                size_t probe);
/* Arrays [steps] of a probe, NULL where there is no such probe. As kappascope_ritz has them; of an
 * exact spectrum the eigenvalues, 1/n and 0. */
KAPPASCOPE_API const double *kappascope_spectrum_ritz(const struct kappascope_spectrum *spectrum,
                                                      size_t probe);
KAPPASCOPE_API const double *kappascope_spectrum_weight(const struct kappascope_spectrum *spectrum,
                                                        size_t probe);
KAPPASCOPE_API const double *
kappascope_spectrum_residual(const struct kappascope_spectrum *spectrum, size_t probe);
/* The Jacobi matrix of a probe, each [steps]; NULL also of an exact spectrum. */
KAPPASCOPE_API const double *kappascope_spectrum_alpha(const struct kappascope_spectrum *spectrum,
                                                       size_t probe);
KAPPASCOPE_API const double *kappascope_spectrum_beta(const struct kappascope_spectrum *spectrum,
                                                      size_t probe);

/* Statistics and bounds by their names in analysis/README.md: "lambda_max", "kappa",
 * "kappa_effective_bound", "directions_1e2_lower", ... NaN where the spectrum has none of that
 * name. */
KAPPASCOPE_API double kappascope_spectrum_statistic(const struct kappascope_spectrum *spectrum,
                                                    const char *name);
/* The name of the i-th statistic, NULL behind the last. */
KAPPASCOPE_API const char *
kappascope_spectrum_statistic_name(const struct kappascope_spectrum *spectrum, size_t i);
/* The same for certificates, the float64 products behind the bounds: "largest_quotient", ... */
KAPPASCOPE_API double kappascope_spectrum_certificate(const struct kappascope_spectrum *spectrum,
                                                      const char *name);
KAPPASCOPE_API const char *
kappascope_spectrum_certificate_name(const struct kappascope_spectrum *spectrum, size_t i);
/* What can be claimed of a checkpoint's operator, in words; NULL: nothing was said, as of a
 * caller's product. */
KAPPASCOPE_API const char *kappascope_spectrum_claim(const struct kappascope_spectrum *spectrum);

/* The density of eigenvalues, smoothed: points grid, density [points], of integral 1. The other
 * pair resolves every decade (symmetric-log grid); also per unit of eigenvalue. `points` is 0 where
 * a file has none. */
struct kappascope_density {
    size_t points;
    const double *grid, *density;
    const double *symlog_grid, *symlog_density;
};
KAPPASCOPE_API enum kappascope_status
kappascope_spectrum_density(const struct kappascope_spectrum *spectrum,
                            struct kappascope_density *density);

#ifdef __cplusplus
}
#endif

#endif
