/* What the analyzer was asked to do, and what it analyzes. */
#ifndef KS_PROGRAM_OPTIONS_H
#define KS_PROGRAM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/sha256.h"
#include "operators/operator.h"
#include "operators/operator_kinds.h"

struct ks_budget;

/* Which targets of the checkpoint are used: those from the rewards that the critic was trained
 * with, which are normalized; those from raw rewards; or the latter where the checkpoint has them.
 */
enum ks_rewards { KS_REWARDS_NORMALIZED, KS_REWARDS_RAW, KS_REWARDS_RAW_IF_THERE };

/* The options, checked (options.h). */
struct ks_options {
    const struct ks_operator_kind *kind;
    bool single;     /* float32 products                                      */
    bool evaluation; /* batchnorm by running statistics                       */
    bool exact;      /* all eigenvalues                                       */
    bool layers;     /* the diagonal blocks of all layers, in a table         */
    bool compat;     /* the published code's choices: its Lanczos process, unweighted statistics,
                      * products by 1/N, raw rewards */
    enum ks_rewards rewards;
    bool keep_basis;      /* the Lanczos steps stay on disk                        */
    bool certificates;    /* float64 products of the vectors behind the bounds     */
    bool gradient_probe;  /* one more probe, which starts at the gradient         */
    double learning_rate; /* for the statistics of steps and stability; NaN: the checkpoint's own */
    bool json, csv;       /* neither: a table                                      */
    size_t order, probes;
    size_t batches; /* 0: all of the checkpoint's                            */
    size_t memory;  /* bytes per process; 0: half of what is free            */
    uint64_t seed;
    int critic, layer; /* -1: all */
    double weight_decay, scale;
    const char *folder;         /* of the spectra; NULL: beside their checkpoints */
    const char *name;           /* stands in the spectra's file names; NULL: none */
    const char *apply, *output; /* vectors in, products out; both or neither      */
    const char *gradient;       /* where the gradient goes; NULL: none            */
};

/* One checkpoint's operator, before there is a spectrum or a product of it. */
struct ks_subject {
    const char *path;            /* of the checkpoint              */
    char digest[KS_SHA256_TEXT]; /* of that file                   */
    bool raw;                    /* the targets are those from raw rewards */
    struct ks_problem problem;   /* what the operator is made from */
    size_t dimension;            /* of the operator                */
    size_t normals;              /* of spheres, in its null space  */
    size_t vectors;              /* that --apply multiplies        */
    int processes;               /* that share a product           */
    const struct ks_budget *budget;
};

#endif
