/* HDF5 string types of fixed or variable length. */
#ifndef KS_TEST_STRING_TYPE_H
#define KS_TEST_STRING_TYPE_H

#include <stddef.h>

#include "io/h5.h"
#include "test.h"

static inline hid_t string_type(size_t size, H5T_str_t padding, H5T_cset_t characters)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    assert_true(H5Tset_size(type, size) >= 0 && H5Tset_strpad(type, padding) >= 0 &&
                H5Tset_cset(type, characters) >= 0);
    return type;
}

#endif
