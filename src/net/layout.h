/* The layout of a network's blocks: where each layer's arrays lie (struct ks_layout in net.h). */
#ifndef KS_NET_LAYOUT_H
#define KS_NET_LAYOUT_H

#include "net/net.h"

/* Sets net->at and the sizes of the blocks, from arch, rows, out_rows and evaluation. */
void KS(layout_fill)(struct KS(net) *net);

/* The first container with an index of at least c whose body starts at layer i; n_layers if there
 * is none. Such a container reads layer i's input again, as its skip. */
size_t KS(layout_container)(const struct KS(arch) *arch, size_t i, size_t c);

#endif
