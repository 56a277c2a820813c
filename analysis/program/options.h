/* The analyzer's options, checked and converted (options_table.h reads them). */
#ifndef KS_PROGRAM_OPTIONS_H
#define KS_PROGRAM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "operators/operator_kinds.h"
#include "statistics/tolerance.h"

/* Which of the checkpoint's targets are used: /batch/target, from the normalized rewards that the
 * critic was trained with; /batch/target_raw, from raw rewards; or raw where the checkpoint has
 * them, else normalized. */
enum ks_rewards { KS_REWARDS_NORMALIZED, KS_REWARDS_RAW, KS_REWARDS_RAW_IF_PRESENT };

struct ks_options {
    const struct ks_operator_kind *kind;
    bool single;         /* float32 products                                    */
    bool evaluation;     /* batch normalization by running statistics           */
    bool loss_rows_only; /* batch statistics of the loss's rows alone          */
    bool exact;          /* all eigenvalues, from the dense operator            */
    bool layers;         /* a table of the diagonal blocks of all layers        */
    bool compat;         /* --compat xqc: the published code's Lanczos recurrence, unweighted
                          * statistics, products divided by N once more, raw rewards */
    enum ks_rewards rewards;
    bool certificates;               /* certify bounds by float64 products                  */
    bool gradient_probe;             /* one more probe, which starts at the gradient        */
    double learning_rate;            /* used by sharpness_ratio; NaN: the checkpoint's      */
    bool json, csv;                  /* the form of the report; neither: a table            */
    size_t order, probes;            /* Lanczos steps; random start vectors                 */
    struct ks_tolerances tolerances; /* none: `order` and `probes` are fixed       */
    size_t eigenvectors;             /* write so many eigenvectors, and no spectrum; 0: none */
    double residual;                 /* the largest relative residual of eigenvectors       */
    size_t batches;                  /* use the first so many minibatches; 0: all           */
    size_t memory;                   /* bytes per MPI rank; 0: half of the free memory      */
    uint64_t seed;                   /* seed of the start vectors                           */
    int critic, layer;               /* the diagonal block; -1: all                         */
    const char *layer_kind;          /* of --layer 02_dense: "dense"; NULL: not given       */
    double weight_decay, scale;
    const char *folder;   /* where spectra are written; NULL: beside their checkpoints */
    const char *name;     /* a part of the spectra's file names; NULL: none        */
    const char *apply;    /* the file of factors; NULL: none               */
    const char *output;   /* the file of products or eigenvectors; NULL: neither */
    const char *gradient; /* the file of the gradient; NULL: none           */
};

/* The minibatches with which an analysis begins, of `most`: with tolerances for lambda_max or
 * lambda_min only a few, if there are many. */
size_t ks_first_minibatches(const struct ks_options *options, size_t most);

#endif
