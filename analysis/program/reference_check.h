/* The comparison of a checkpoint with the program that exported it, before any analysis. */
#ifndef KS_PROGRAM_REFERENCE_CHECK_H
#define KS_PROGRAM_REFERENCE_CHECK_H

#include "core/error.h"
#include "program/analysis.h"

/* On rank 0, after reading a file whose arrays take `bytes`: compares the outputs, losses and norms
 * of gradients that it holds (io/reference.h) of the minibatches to be analyzed, and frees them. If
 * there are none, a line on standard error says so, unless `quiet`. KS_FORMAT if they differ;
 * KS_MEMORY, where the message does not name the file. */
ks_status ks_reference_check(struct ks_analysis *analysis, double bytes);

#endif
