/* The scout, which reads a file before this process does.
 *
 * libhdf5 1.10 trusts the files that it reads: eight wrong bytes can make it crash, loop forever or
 * allocate all memory. So a forked child, whose memory and processor time are limited, reads all of
 * a user's file once with the code that will read it here. If the child dies, the file is refused
 * with one line, and no data structure that libhdf5 builds from it is in this process. */
#ifndef KS_IO_SCOUT_H
#define KS_IO_SCOUT_H

#include <stddef.h>

#include "core/error.h"

struct ks_h5;

/* Reads a checkpoint (what ks_checkpoint_read_loss reads of it), a spectrum or a vector file, by
 * its attribute `format`, in a child. Fails as reading fails, and with KS_IO if the child crashes,
 * does not finish, or runs out of memory. Does not fail if the file is an HDF5 file of another
 * kind. Arrays that would take more than the free memory, or than ks_scout_limit_memory allows, are
 * not read; the caller refuses them by their size.
 *
 * The child calls no BLAS and starts no threads, so the caller may have some. The variable
 * KAPPASCOPE_SCOUT has the seconds of processor time that the child may use, beyond the time that
 * the declared size of the arrays explains; 0: no child is forked. */
ks_status ks_scout(const char *path);
/* The same for a file that ks_h5_open has loaded and is about to open: so no HDF5 file is read in
 * this process first. ks_scout_only_if_asked ends that, for the reading process itself and for the
 * library, in which only kappascope_scout forks. */
ks_status ks_scout_before_opening(struct ks_h5 *h5);
void ks_scout_only_if_asked(void);
/* The bytes that later scouts may use for arrays; 0: the free memory. */
void ks_scout_limit_memory(size_t bytes);
/* Calls `read`, which reads about this many small files. One child calls it before; only if it
 * fails there has each file a scout of its own. Fails as `read` does. */
ks_status ks_scout_many(size_t files, ks_status (*read)(void *data), void *data);

#endif
