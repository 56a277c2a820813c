/* Memory and start of a network in training (optim.h). */
#ifndef KS_AGENT_TRAINED_H
#define KS_AGENT_TRAINED_H

#include "agent/init.h"
#include "agent/optim.h"
#include "core/error.h"
#include "core/rng.h"
#include "net/net.h"

/* `n` zeroed reals. KS_MEMORY. */
ks_status KS(reals)(size_t n, real **out);
/* Allocates all of *t but the target. The blocks have room for the passes of `train` and `eval`,
 * and for the forward pass of `forward`. After a failure (KS_MEMORY) the caller still frees it. */
ks_status KS(trained_allocate)(const struct KS(net) *train, const struct KS(net) *eval,
                               const struct KS(net) *forward, struct KS(trained) *t);
void KS(trained_free)(struct KS(trained) *t); /* frees what it holds */
/* Sets parameters and running statistics to their start, projected, the target to a copy, moments
 * to zero. */
ks_status KS(trained_init)(const struct KS(arch) *arch, const struct ks_starts *starts,
                           struct ks_rng rng, struct KS(trained) *t);

#endif
