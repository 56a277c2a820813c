/* A thin layer over HDF5's C API. Every call is checked; every failure is one line that names the
 * file, the object, what was expected and what was found.
 *
 * Files are read in a separate process, because libhdf5 may crash or hang on a damaged one; that,
 * too, becomes a failure with one line (h5_reader.h). Nothing outside the file itself is read:
 * external links, external storage and virtual datasets are refused.
 *
 * Reading accepts any numeric type, width, byte order and storage layout and gives double. Writing
 * gives chunked, shuffled, compressed datasets with Fletcher-32 checksums in HDF5 1.10's format,
 * whose metadata carry checksums too. No time is stored, so equal content gives equal bytes. HDF5
 * is not reentrant: use one thread at a time.
 *
 * Includes go one way:
 *
 *   h5_file <- h5_local <- h5_serve <- h5_reader <- h5_ask <- h5_read <- h5     reading
 *              h5_wire  <---'
 *   h5_file <- h5_local <- h5_write <- h5,  h5_file <- h5_image <- h5           writing */
#ifndef KS_IO_H5_H
#define KS_IO_H5_H

#include "core/error.h"
#include "io/h5_file.h"
#include "io/h5_read.h"
#include "io/h5_write.h"

/* The newest version of a checkpoint, and of all other formats. A file has the lowest version that
 * has what it uses. */
enum { KS_H5_VERSION = 1, KS_H5_CHECKPOINT_VERSION = 2 };

/* Opens for reading and checks the root attributes `format` and `version`; format NULL: any HDF5
 * file. Fails with KS_IO or KS_FORMAT. The caller ends with ks_h5_close. */
ks_status ks_h5_open(const char *path, const char *format, struct ks_h5 **h5);
/* A new file with its `format` and `version`, built in memory. It appears when ks_h5_commit
 * succeeds (KS_FULL, KS_IO otherwise). The caller ends with ks_h5_close in any case. */
ks_status ks_h5_create(const char *path, const char *format, struct ks_h5 **h5);
/* The same with a version other than KS_H5_VERSION. */
ks_status ks_h5_create_version(const char *path, const char *format, int64_t version,
                               struct ks_h5 **h5);
ks_status ks_h5_commit(struct ks_h5 *h5);
void ks_h5_close(struct ks_h5 *h5); /* frees; NULL is fine */

#endif
