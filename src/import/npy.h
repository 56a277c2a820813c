/* The header of an .npy file (numpy/lib/format.py). It is a magic string, a version, and a
 * dictionary as Python writes it, such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4),
 * }. */
#ifndef KS_IMPORT_NPY_H
#define KS_IMPORT_NPY_H

#include "import/weights.h"

enum { KS_NPY_START = 10 }; /* bytes: 6 of magic, 2 of version, 2 of the dictionary's length */

/* Reads the first bytes of an .npy file. *length is the length of the dictionary, of which versions
 * 2 and 3 have two more bytes behind these. False unless it is an .npy file of version 1 to 3. */
bool ks_npy_start(const unsigned char start[KS_NPY_START], size_t *length);

/* Sets type, real, big_endian, first_fastest and the shape from the dictionary. False if it is
 * malformed or has more than KS_STORED_DIMS dimensions. A structured array gets the type
 * "structured" and no shape. */
bool ks_npy_header(const char *text, struct ks_stored *s);

#endif
