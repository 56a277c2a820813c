/* A new HDF5 file, built in memory. For h5.c only; callers outside src/io include h5.h.
 *
 * The core driver builds the file in memory and ks_file_commit writes it. So a full disk is met by
 * one write() of ours and not by HDF5's cache, which cannot give up a file that it fails to write
 * back. The bytes are taken when HDF5 closes the file: H5Fget_file_image of 1.10.8 leaves a wrong
 * checksum in the superblock of this format. */
#ifndef KS_IO_H5_IMAGE_H
#define KS_IO_H5_IMAGE_H

#include "io/h5_file.h"

/* Opens h5->id on an empty image, h5->image. */
ks_status ks_h5_image_create(struct ks_h5 *h5);
/* Closes h5->id and writes the image to h5->file, which appears under its name. */
ks_status ks_h5_image_commit(struct ks_h5 *h5);

#endif
