/* Weights of other programs, which the analyzer cannot read. */
#ifndef KS_PIPELINE_FOREIGN_H
#define KS_PIPELINE_FOREIGN_H

#include "core/error.h"

/* KS_FORMAT if the file's name ends like weights of another framework (.safetensors, .npz,
 * .msgpack, .pt, ...) and it is not an HDF5 file; the message names the command that imports it. */
ks_status ks_foreign_check(const char *path);

#endif
