/* The settings of a batchnorm with parameters, for a kind that builds on its functions. */
#ifndef KS_LAYERS_BATCHNORM_H
#define KS_LAYERS_BATCHNORM_H

#include "core/line.h"
#include "core/real.h"

enum { KS_BATCHNORM_SETTINGS = 64 }; /* bytes; at least the size of the settings */

/* Reads the options eps, momentum and unbiased into `settings`, KS_BATCHNORM_SETTINGS aligned
 * bytes, which a ks_layer may point to. */
ks_status KS(batchnorm_settings)(struct ks_line *line, void *settings);

#endif
