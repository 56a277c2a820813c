/* Whole files, for tests. */
#ifndef KS_TEST_READERS_H
#define KS_TEST_READERS_H

#include "io/checkpoint.h"

/* All of a file, with the networks and attributes of a run, which no program reads; the vectors of
 * a file [k, n]. Fail as the reading functions of checkpoint.h. The caller frees. */
ks_status try_checkpoint(const char *path, struct ks_checkpoint **out);
ks_status try_vectors(const char *path, size_t n, size_t *k, double **vectors);

#endif
