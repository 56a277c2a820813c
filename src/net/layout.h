/* What a network's passes ask of the layout of its blocks. */
#ifndef KS_NET_LAYOUT_H
#define KS_NET_LAYOUT_H

#include "net/net.h"

/* Fills net->at and the sizes of the blocks, from arch, rows and out_rows. */
void KS(places_lay_out)(struct ks_net *net);

/* The next container, from index c on, whose body starts at layer i (whose input must then be
 * preserved); n_layers if none. */
size_t KS(places_opening)(const struct ks_arch *arch, size_t i, size_t c);

#endif
