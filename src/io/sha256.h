/* SHA-256 (FIPS 180-4), by libcrypto. */
#ifndef KS_IO_SHA256_H
#define KS_IO_SHA256_H

#include <stddef.h>

#include "core/error.h"

enum { KS_SHA256_BYTES = 32, KS_SHA256_TEXT = 65 };

/* The digest of n pieces of memory, concatenated. Fails with KS_RUN if libcrypto fails. */
struct ks_piece {
    const void *bytes;
    size_t size;
};
ks_status ks_sha256(size_t n, const struct ks_piece *piece, unsigned char digest[KS_SHA256_BYTES]);

/* The digest of the file's bytes as 64 lower-case hexadecimal digits and a terminating zero. Fails
 * with KS_IO. */
ks_status ks_sha256_file(const char *path, char text[KS_SHA256_TEXT]);

#endif
