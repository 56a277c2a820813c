/* The reader process: opens a file with libhdf5 and answers questions about it. */
#ifndef KS_IO_H5_SERVE_H
#define KS_IO_H5_SERVE_H

#include "io/h5_file.h"

/* Opens h5->path, then answers until the socket is closed. `processor`: seconds of processor time
 * that one piece of work may take before the system ends the process. */
void ks_h5_serve(struct ks_h5 *h5, int socket, unsigned processor) __attribute__((noreturn));

#endif
