/* A new HDF5 file, built in memory. For h5.c only; callers outside src/io include h5.h.
 *
 * HDF5's core driver builds the file in memory, and ks_file_commit writes it. If the disk is full,
 * our own write() fails, and not HDF5's cache, which cannot close a file that it fails to write.
 * The bytes are taken when HDF5 closes the file, because those of H5Fget_file_image (1.10.8) have a
 * wrong checksum in the superblock of this format. */
#ifndef KS_IO_H5_IMAGE_H
#define KS_IO_H5_IMAGE_H

#include "io/h5_file.h"

/* Opens h5->id on an empty image, h5->image. */
ks_status ks_h5_image_create(struct ks_h5 *h5);
/* Closes h5->id and writes the image to h5->file, which appears under its name. */
ks_status ks_h5_image_commit(struct ks_h5 *h5);

#endif
