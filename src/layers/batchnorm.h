/* The settings of a batchnorm with parameters, for a kind that builds on its functions. */
#ifndef KS_LAYERS_BATCHNORM_H
#define KS_LAYERS_BATCHNORM_H

#include "core/real.h"

enum { KS_BATCHNORM_SETTINGS = 64 }; /* bytes; at least the size of the settings */

/* Sets them in `settings`, KS_BATCHNORM_SETTINGS aligned bytes, which a ks_layer may point to. */
void KS(batchnorm_settings)(double eps, double momentum, void *settings);

#endif
