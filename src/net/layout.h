/* What a network's passes ask of the layout of its blocks. */
#ifndef KS_NET_LAYOUT_H
#define KS_NET_LAYOUT_H

#include "net/net.h"

/* Fills net->at and the sizes of the blocks, from arch, rows and out_rows. */
void KS(layout_fill)(struct ks_net *net);

/* The next container, from index c on, whose body starts at layer i (whose input must then be
 * preserved); n_layers if none. */
size_t KS(layout_container)(const struct ks_arch *arch, size_t i, size_t c);

#endif
