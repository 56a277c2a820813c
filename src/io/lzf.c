/* For reading: the compression "lzf" of h5py, which libhdf5 does not have. Its number is in The HDF
 * Group's list of registered filters. */
#include <errno.h>
#include <lzf.h>

#include "io/h5.h"

enum { LZF = 32000, CHUNK = 2 /* of the filter's options: the bytes of a chunk */ };

/* Returns the bytes of the decompressed chunk, which replaces *block; 0 on failure. The size among
 * the options is not the last word: a checksum may come with the data. */
static size_t decompress(unsigned flags, size_t n_options, const unsigned *options, size_t bytes,
                         size_t *room, void **block)
{
    size_t size = n_options > CHUNK && options[CHUNK] > 0 ? options[CHUNK] : *room;

    if (!(flags & H5Z_FLAG_REVERSE))
        return 0;
    for (const size_t most = 512 * bytes + size; size <= most; size *= 2) {
        void *whole = H5allocate_memory(size, false);
        unsigned length = whole ? lzf_decompress(*block, (unsigned)bytes, whole, (unsigned)size)
                                : 0;

        if (length > 0) {
            H5free_memory(*block);
            *block = whole;
            *room = size;
            return length;
        }
        H5free_memory(whole);
        if (!whole || errno != E2BIG)
            break;
    }
    return 0;
}

ks_status ks_h5_register_lzf(void)
{
    static const H5Z_class2_t lzf = {.version = H5Z_CLASS_T_VERS,
                                     .id = LZF,
                                     .encoder_present = 0,
                                     .decoder_present = 1,
                                     .name = "lzf",
                                     .filter = decompress};

    if (H5Zfilter_avail(LZF) <= 0 && H5Zregister(&lzf) < 0)
        return ks_fail(KS_RUN, "the HDF5 library does not accept the filter lzf");
    return KS_OK;
}
