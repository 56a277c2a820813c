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
 * Errors. Functions that can fail return a kappascope_status, and kappascope_error() describes the
 * calling thread's last failure in one line. A function that creates an object sets the pointer to
 * NULL when it fails. NULL for a required pointer gives KAPPASCOPE_USAGE. The library never exits
 * and never prints; but libgomp ends a process in which it cannot create a thread.
 *
 * Ownership. Every object has a function ..._free, which accepts NULL. Input arrays are copied
 * unless their description says otherwise. Arrays and strings that a function returns belong to the
 * object and stay valid until it is freed.
 *
 * Threads. Different threads may use different objects at the same time, but only one thread at a
 * time may use an object. A checkpoint is never modified, so operators in several threads may share
 * it. There is no global state except in OpenBLAS and HDF5. HDF5 is not reentrant: the library
 * locks its own calls, and a program that also calls HDF5 must not do so while another thread reads
 * or writes a file here. Products run in OpenMP threads (OMP_NUM_THREADS), one per minibatch, and
 * each calls OpenBLAS: see kappascope_blas_one_thread. A damaged or malicious file can crash
 * libhdf5, and the caller with it: see kappascope_scout.
 *
 * Matrices are row-major. All numbers are double, whatever the precision of the products. In texts
 * they have a decimal point in every locale; a caller's product runs with that, too. */
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
    KAPPASCOPE_RUN      /* any other failure, such as a product of the caller's        */
};

/* The message of the calling thread's last failure, "" if there was none; valid until the thread's
 * next call of this library. */
KAPPASCOPE_API const char *kappascope_error(void);
/* The version of the library, such as "0.7.0". The interface may change while the first number is
 * 0. */
KAPPASCOPE_API const char *kappascope_version(void);
/* Sets the number of OpenBLAS's own threads to one, for the whole process. Call it once, before
 * anything else, or set OPENBLAS_NUM_THREADS=1: products are already parallel over minibatches, so
 * more threads are slower and change the last bits of results. */
KAPPASCOPE_API void kappascope_blas_one_thread(void);
/* One line if OpenBLAS chose a kernel that is slower than this processor allows, and what to set in
 * the environment before the process starts; NULL if it did not. Valid until the next call. */
KAPPASCOPE_API const char *kappascope_blas_warning(void);

/* --- checkpoints: critics, and the minibatches over which their loss is averaged --- */

struct kappascope_checkpoint;

/* Critics in memory: E networks of the same description, with P parameters and S running statistics
 * each; N minibatches of R rows and D columns, of which the first B rows enter the loss and have T
 * targets each. kappascope_arch_sizes gives P, F, S and T. */
struct kappascope_critic {
    const char *arch;            /* the description, as in configs/README.md              */
    size_t inputs;               /* D                                                     */
    size_t ensemble;             /* E                                                     */
    const double *parameters;    /* [E, P], layer by layer, in checkpoint order            */
    const double *statistics;    /* [E, S] mean, then variance of each batchnorm; or NULL  */
    size_t minibatches;          /* N                                                     */
    size_t rows;                 /* R                                                     */
    size_t loss_rows;            /* B, from 1 to R                                        */
    const double *input;         /* [N, R, D]                                             */
    const double *target;        /* [N, B, T]; for a cross-entropy each row sums to 1      */
    const double *adam_v;        /* [E, P] Adam's second moment; or NULL                   */
    int64_t adam_step;           /* number of updates in adam_v                            */
    double adam_beta2, adam_eps; /* the preconditioner is sqrt(adam_v / (1 - beta2^step)) + eps */
    const double *frozen; /* [E, F] numbers of layers with trainable=no; NULL if there are none */
    const double *weight; /* [N, B] weights of the rows, at least 0; NULL: all 1   */
};
/* Sets ensemble = 1, adam_beta2 = 0.999, adam_eps = 1e-8, and everything else to zero. */
KAPPASCOPE_API void kappascope_critic_defaults(struct kappascope_critic *critic);

struct kappascope_sizes {
    size_t parameters; /* P: of one critic                                     */
    size_t statistics; /* S: running statistics of one critic                  */
    size_t inputs;     /* D                                                    */
    size_t outputs;    /* columns of the output                                */
    size_t targets;    /* T: targets of a row                                  */
    size_t layers;     /* layers are numbered 0 .. layers - 1                  */
    size_t ensemble, minibatches, rows, loss_rows; /* 0 unless of a checkpoint  */
    size_t frozen; /* F: numbers of one critic's layers with trainable=no      */
    size_t heads;  /* losses that are summed; 0 for a network without a loss   */
};
/* Parses a description for `inputs` input columns. KAPPASCOPE_FORMAT: the message has the line. */
KAPPASCOPE_API enum kappascope_status kappascope_arch_sizes(const char *arch, size_t inputs,
                                                            struct kappascope_sizes *sizes);

/* An array of a layer: [rows, columns], or [columns] if `rows` is 0. */
struct kappascope_shape {
    const char *name; /* "kernel"; NULL: the layer has no more arrays */
    size_t rows, columns;
};
enum { KAPPASCOPE_LAYER_ARRAYS = 3 };
/* A layer of a description. */
struct kappascope_layer {
    char name[32];    /* of its group in a checkpoint: "03_dense"             */
    const char *kind; /* "dense"                                              */
    size_t outputs;   /* columns of its output                                */
    bool trainable;   /* its line lacks trainable=no                          */
    bool joint;       /* in training mode its output joins the rows           */
    struct kappascope_shape parameter[KAPPASCOPE_LAYER_ARRAYS], state[KAPPASCOPE_LAYER_ARRAYS];
};
/* A loss of a description, and the columns that it has of the output and of the targets. */
struct kappascope_head {
    const char *loss; /* "huber"                            */
    size_t outputs, targets;
    double min, max; /* ce: the first and the last atom     */
    double delta;    /* huber: delta; quantile: kappa       */
    double weight;   /* factor of the loss                  */
};
/* Fills layer [layers] and head [heads], both as many as kappascope_arch_sizes says. Strings that
 * they point to are constants. Fails as kappascope_arch_sizes does. */
KAPPASCOPE_API enum kappascope_status kappascope_arch_parts(const char *arch, size_t inputs,
                                                            struct kappascope_layer *layer,
                                                            struct kappascope_head *head);

/* Reads a checkpoint file (checkpoints/README.md): the critics, the minibatches, Adam's second
 * moment. All that is read is checked, and compared with the outputs, losses and norms of gradients
 * that the file holds of the program which exported the critics: KAPPASCOPE_FORMAT if they differ.
 * KAPPASCOPE_IO, KAPPASCOPE_FORMAT, KAPPASCOPE_MEMORY. */
KAPPASCOPE_API enum kappascope_status
kappascope_checkpoint_read(const char *path, struct kappascope_checkpoint **checkpoint);
/* Reads a checkpoint or a spectrum in a forked child process with limits on memory and processor
 * time. Call it before another function reads a file that you do not trust: if the file makes
 * libhdf5 crash or hang, only the child ends, and this fails with KAPPASCOPE_IO. Fails as reading
 * fails. The only function here that forks. */
KAPPASCOPE_API enum kappascope_status kappascope_scout(const char *path);
/* Copies critics from memory and applies the checks of a file. KAPPASCOPE_USAGE: a size is out of
 * range; KAPPASCOPE_FORMAT: the description is malformed, targets are not distributions, or a
 * second moment or a variance is negative; KAPPASCOPE_NUMBER: an array has a NaN or an infinity. */
KAPPASCOPE_API enum kappascope_status
kappascope_checkpoint_new(const struct kappascope_critic *critic,
                          struct kappascope_checkpoint **checkpoint);
/* All sizes of a checkpoint. */
KAPPASCOPE_API enum kappascope_status
kappascope_checkpoint_sizes(const struct kappascope_checkpoint *checkpoint,
                            struct kappascope_sizes *sizes);
KAPPASCOPE_API void kappascope_checkpoint_free(struct kappascope_checkpoint *checkpoint);

/* --- operators: y = A x, symmetric --- */

struct kappascope_operator;

enum kappascope_precision {
    KAPPASCOPE_DEFAULT, /* the operator's own: float32, but float64 for "preconditioned" */
    /* By OpenBLAS, or on processors with AMX, as accurate, of bfloat16 parts (--products auto). */
    KAPPASCOPE_F32,
    KAPPASCOPE_F64
};

/* Which curvature of a checkpoint's loss is analyzed. The loss is
 *
 *   L(theta) = scale ( 1/N sum_n sum_e 1/B sum_{i<B} weight[n,i] l(f_e(input[n])[i], target[n,i])
 *                      + weight_decay/2 |theta|^2 )
 */
struct kappascope_problem {
    const char *kind; /* "hessian", "ggn", "residual", "preconditioned", "manifold", "ntk",
                       * "ntk-value" or "fisher": analysis/README.md                          */
    enum kappascope_precision precision; /* precision of products; activations are in float64 */
    bool evaluation;     /* batchnorm uses running statistics                                 */
    bool raw_rewards;    /* take the file's /batch/target_raw, targets from raw rewards        */
    size_t minibatches;  /* how many of the checkpoint's to use, from the first; 0: all       */
    double weight_decay; /* at least 0                                                        */
    double scale;        /* not 0                                                             */
    int critic, layer;   /* the diagonal block of one critic, one layer; -1: all              */
    size_t memory;       /* bytes of activations to keep between products; 0: half of the free
                          * memory. With less, products take longer; results are the same      */
};
/* Sets the Hessian of all parameters on all minibatches: kind = "hessian", scale = 1, critic =
 * layer = -1, and everything else to zero. */
KAPPASCOPE_API void kappascope_problem_defaults(struct kappascope_problem *problem);
/* The i-th name that `kind` can have; NULL if there are no more. */
KAPPASCOPE_API const char *kappascope_operator_kind(size_t i);

/* Creates an operator. The checkpoint is not copied: free it after the operator. KAPPASCOPE_USAGE:
 * a field is out of range; KAPPASCOPE_FORMAT: the checkpoint lacks what the operator needs (running
 * statistics, Adam's second moment, projected columns, raw targets); KAPPASCOPE_MEMORY. */
KAPPASCOPE_API enum kappascope_status
kappascope_operator_new(const struct kappascope_checkpoint *checkpoint,
                        const struct kappascope_problem *problem, struct kappascope_operator **a);

/* Computes y = A x, both [n], for a symmetric matrix A of the caller's; `context` is the pointer
 * that was given with it. It must not modify x, and must give the same y for the same x. It is
 * called in the thread that calls the library. Returns 0; any other value ends the computation with
 * KAPPASCOPE_RUN. */
typedef int (*kappascope_product)(void *context, const double *x, double *y);
/* Creates an operator of dimension n, from 1 to 2^31 - 1. Statistical bounds and certificates of
 * its spectrum assume that the products are accurate to float64 rounding. KAPPASCOPE_USAGE. */
KAPPASCOPE_API enum kappascope_status
kappascope_operator_from_product(size_t n, kappascope_product product, void *context,
                                 struct kappascope_operator **a);
/* The same for products that are computed in float32. `exact` computes them in float64, for the
 * certificates; NULL: it cannot be done, and bounds are not certified. KAPPASCOPE_USAGE. */
KAPPASCOPE_API enum kappascope_status
kappascope_operator_from_products(size_t n, kappascope_product product, kappascope_product exact,
                                  void *context, struct kappascope_operator **a);

/* The length n of the vectors; 0 for NULL. */
KAPPASCOPE_API size_t kappascope_operator_dimension(const struct kappascope_operator *a);
/* index [n]: which of the parameters [E, P] each coordinate is, ascending; for an operator of the
 * caller's 0 .. n - 1. */
KAPPASCOPE_API enum kappascope_status
kappascope_operator_coordinates(const struct kappascope_operator *a, size_t *index);
/* y = A x, both [n]; x and y must not overlap. KAPPASCOPE_NUMBER: x or y is not finite. */
KAPPASCOPE_API enum kappascope_status kappascope_operator_apply(struct kappascope_operator *a,
                                                                const double *x, double *y);
KAPPASCOPE_API void kappascope_operator_free(struct kappascope_operator *a);

/* --- Lanczos --- */

/* The Lanczos recurrence with full reorthogonalization. After m steps, with Q = [q_0 .. q_{m-1}]
 * and the Jacobi matrix T (alpha on the diagonal, beta beside it),
 *
 *   A Q - Q T = beta[m-1] q_m e_m'   and   [Q q_m]' [Q q_m] = I   to rounding. */
struct kappascope_lanczos_options {
    size_t order;         /* the largest number of steps, 1 to 10000; at most n are taken       */
    const double *start;  /* [n], of any norm; NULL: Gaussian, determined by (seed, probe)       */
    uint64_t seed, probe; /* which random vector: seed and number, at most 2^63 - 1 and 2^31 - 2 */
};
/* The result: arrays of the caller's, which are filled, and the number of steps. */
struct kappascope_recurrence {
    double *alpha, *beta; /* [order]: the first `steps` entries are set                         */
    double *basis;        /* [order + 1, n], q_j in row j: rows 0 to `steps` are set; or NULL   */
    size_t steps;         /* m: less than order if the Krylov space ended. Then row m of basis is
                           * not set                                                           */
};
/* Runs the recurrence. KAPPASCOPE_USAGE; KAPPASCOPE_NUMBER: the start vector is zero or not finite,
 * or a product is not finite. */
KAPPASCOPE_API enum kappascope_status
kappascope_lanczos(struct kappascope_operator *a, const struct kappascope_lanczos_options *options,
                   struct kappascope_recurrence *result);
/* The quadrature rule of a Jacobi matrix, in arrays of the caller's. */
struct kappascope_rule {
    double *ritz;     /* [m]: the Ritz values, which are the eigenvalues of T, ascending         */
    double *weight;   /* [m]: the squared first components of T's eigenvectors, with sum 1       */
    double *residual; /* [m]: some eigenvalue of A lies within residual[i] of ritz[i]            */
};
/* Computes the rule of T from alpha and beta [m]. KAPPASCOPE_USAGE; KAPPASCOPE_NUMBER: an entry is
 * not finite. */
KAPPASCOPE_API enum kappascope_status kappascope_ritz(size_t m, const double *alpha,
                                                      const double *beta,
                                                      const struct kappascope_rule *rule);

/* --- spectra --- */

struct kappascope_spectrum;

struct kappascope_slq_options {
    size_t order;      /* m: Lanczos steps of a probe, 1 to 10000                              */
    size_t probes;     /* random start vectors, 1 to 10000                                     */
    uint64_t seed;     /* seed of the start vectors, at most 2^63 - 1                          */
    bool gradient;     /* add a probe that starts at the gradient of the checkpoint's loss      */
    bool certificates; /* certify the bounds by products in float64                            */
    bool single_basis; /* keep Lanczos vectors in float32: half the memory                     */
};
/* Sets order = 90, probes = 1, certificates = true, and everything else to zero. */
KAPPASCOPE_API void kappascope_slq_defaults(struct kappascope_slq_options *options);
/* Stochastic Lanczos quadrature (Ubaru, Chen, Saad, SIAM J. Matrix Anal. Appl. 38, 2017), with at
 * most (order) x (probes) products and a few more. For a checkpoint, kappascope-analyze gives the
 * same bits with the same number of threads and the same OpenBLAS kernel. Fails as products do;
 * KAPPASCOPE_USAGE: an option is out of range. */
KAPPASCOPE_API enum kappascope_status kappascope_slq(struct kappascope_operator *a,
                                                     const struct kappascope_slq_options *options,
                                                     struct kappascope_spectrum **spectrum);
/* All eigenvalues, from n products and a dense matrix; n is at most 8000. */
KAPPASCOPE_API enum kappascope_status kappascope_exact(struct kappascope_operator *a,
                                                       struct kappascope_spectrum **spectrum);
/* An option by the long name that kappascope-analyze has for it, without dashes ("order",
 * "weight-decay"), and its value as on the command line; "yes" for an option without a value. */
struct kappascope_option {
    const char *name, *value;
};
/* Called in the calling thread after each product, with the number of products so far and in all,
 * with a tolerance at most. Any value other than 0 ends the analysis with KAPPASCOPE_RUN. */
typedef int (*kappascope_watch)(void *watcher, size_t done, size_t products);
/* An analysis by options: those that decide how a spectrum is computed, not those that decide what
 * kappascope-analyze writes and prints. */
struct kappascope_request {
    size_t options;
    const struct kappascope_option *option; /* [options]                                       */
    kappascope_watch watch;                 /* NULL: nobody watches                            */
    void *watcher;                          /* its first argument                              */
};
/* The spectrum of the checkpoint file `path`, as kappascope-analyze with these options writes it.
 * Fails as it does: KAPPASCOPE_USAGE: an option does not exist, or its value is out of range. */
KAPPASCOPE_API enum kappascope_status kappascope_analyze(const char *path,
                                                         const struct kappascope_request *request,
                                                         struct kappascope_spectrum **spectrum);
/* The spectrum of an operator. The options that say which operator a checkpoint has, and how its
 * products are computed, are KAPPASCOPE_USAGE here, as they belong to the operator. */
KAPPASCOPE_API enum kappascope_status
kappascope_operator_analyze(struct kappascope_operator *a, const struct kappascope_request *request,
                            struct kappascope_spectrum **spectrum);

/* Spectrum files (checkpoints/README.md), as kappascope-analyze writes them. A file appears
 * complete or not at all. */
KAPPASCOPE_API enum kappascope_status
kappascope_spectrum_read(const char *path, struct kappascope_spectrum **spectrum);
KAPPASCOPE_API enum kappascope_status
kappascope_spectrum_write(const struct kappascope_spectrum *spectrum, const char *path);
KAPPASCOPE_API void kappascope_spectrum_free(struct kappascope_spectrum *spectrum);

/* The number of probes. With the option `complement` one of them starts in the complement of the
 * first one's Krylov space; it comes after those with random start vectors. The gradient's is the
 * last. An exact spectrum counts as one probe. */
KAPPASCOPE_API size_t kappascope_spectrum_probes(const struct kappascope_spectrum *spectrum);
/* The steps m that a probe took, n for an exact spectrum; 0 if there is no such probe. */
KAPPASCOPE_API size_t kappascope_spectrum_steps(const struct kappascope_spectrum *spectrum,
                                                size_t probe);
/* Arrays [m] of a probe as in kappascope_ritz; for an exact spectrum the eigenvalues, 1/n and 0.
 * NULL if there is no such probe. */
KAPPASCOPE_API const double *kappascope_spectrum_ritz(const struct kappascope_spectrum *spectrum,
                                                      size_t probe);
KAPPASCOPE_API const double *kappascope_spectrum_weight(const struct kappascope_spectrum *spectrum,
                                                        size_t probe);
KAPPASCOPE_API const double *
kappascope_spectrum_residual(const struct kappascope_spectrum *spectrum, size_t probe);
/* The Jacobi matrix [m] of a probe; NULL for an exact spectrum, or if there is no such probe. */
KAPPASCOPE_API const double *kappascope_spectrum_alpha(const struct kappascope_spectrum *spectrum,
                                                       size_t probe);
KAPPASCOPE_API const double *kappascope_spectrum_beta(const struct kappascope_spectrum *spectrum,
                                                      size_t probe);

/* A statistic or bound by its name in analysis/README.md: "lambda_max", "kappa",
 * "kappa_effective_bound", "directions_1e2_lower", ... NaN if the spectrum does not have it. */
KAPPASCOPE_API double kappascope_spectrum_statistic(const struct kappascope_spectrum *spectrum,
                                                    const char *name);
/* The name of the i-th statistic; NULL if there are no more. */
KAPPASCOPE_API const char *
kappascope_spectrum_statistic_name(const struct kappascope_spectrum *spectrum, size_t i);
/* A certificate by its name: what a float64 product with a vector behind the bounds gave, such as
 * "largest_quotient". NaN and NULL as above. */
KAPPASCOPE_API double kappascope_spectrum_certificate(const struct kappascope_spectrum *spectrum,
                                                      const char *name);
KAPPASCOPE_API const char *
kappascope_spectrum_certificate_name(const struct kappascope_spectrum *spectrum, size_t i);
/* What the spectrum proves about the operator, in words. */
KAPPASCOPE_API const char *kappascope_spectrum_claim(const struct kappascope_spectrum *spectrum);

/* A statistic that is shown to readers. */
struct kappascope_statistic {
    const char *name;
    double value;        /* NaN: it has none, or it is not resolved                           */
    double lower, upper; /* the ends of its interval; NaN: there is none, or it is not known   */
    /* "bound": of an eigenvalue or a condition number; "interval"; "estimate", with or without an
     * interval; "number": it is computed without chance; "quotient": of Ritz values, an estimate
     * of nothing. */
    const char *what;
    const char *meaning; /* in a few words */
    char text[96];       /* as it is printed, with its interval: "422.4 [398, 447]" */
};
/* The i-th of these statistics, the most reliable first. KAPPASCOPE_USAGE: there are no more. */
KAPPASCOPE_API enum kappascope_status
kappascope_spectrum_reading(const struct kappascope_spectrum *spectrum, size_t i,
                            struct kappascope_statistic *statistic);
/* An attribute of the file: a text, or else a number. */
struct kappascope_attribute {
    const char *name;
    const char *text; /* NULL: it is a number */
    double number;    /* NaN for a list       */
    bool integer;     /* the number is one    */
};
/* The i-th attribute. KAPPASCOPE_USAGE: there are no more. */
KAPPASCOPE_API enum kappascope_status
kappascope_spectrum_attribute(const struct kappascope_spectrum *spectrum, size_t i,
                              struct kappascope_attribute *attribute);
/* A dataset of the file, by the name that it has there, such as "/ritz/value": [rows, columns], or
 * [columns] if `rows` is 0. Where a probe took fewer steps than others its row ends in NaN. */
struct kappascope_array {
    const char *name;
    size_t rows, columns;
    const double *values; /* NULL: the spectrum does not have it */
};
/* The i-th dataset. KAPPASCOPE_USAGE: there are no more. */
KAPPASCOPE_API enum kappascope_status
kappascope_spectrum_array(const struct kappascope_spectrum *spectrum, size_t i,
                          struct kappascope_array *array);

/* The smoothed density of eigenvalues, of integral 1 by the trapezoidal rule: density [points] at
 * the eigenvalues grid [points]. The second pair is on a symmetric-log grid, which resolves every
 * decade; its density, too, is per unit of eigenvalue. points is 0 if a file has no density. */
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
