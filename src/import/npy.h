/* The header of an .npy file (numpy/lib/format.py): a magic string, a version, and a dictionary as
 * Python writes it, such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. */
#ifndef KS_IMPORT_NPY_H
#define KS_IMPORT_NPY_H

#include "import/weights.h"

enum { KS_NPY_START = 10 }; /* bytes: 6 of magic, 2 of version, 2 of the dictionary's length */

/* False unless the bytes start an .npy file of version 1 to 3. Versions 2 and 3 have two more bytes
 * of *length behind these. */
bool ks_npy_start(const unsigned char start[KS_NPY_START], size_t *length);

/* Sets type, real, big_endian, first_fastest and the shape from the dictionary. False if it is
 * malformed. The type of a structured array is "structured", and its shape is left out. */
bool ks_npy_header(const char *text, struct ks_stored *s);

#endif
