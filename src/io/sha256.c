#include "io/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "core/path.h"

enum { BLOCK = 1 << 16 };

static ks_status digest_file(const char *path, FILE *file, EVP_MD_CTX *context, char text[])
{
    unsigned char block[BLOCK], sum[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    size_t n;

    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1)
        return ks_fail(KS_RUN, "%s: libcrypto has no SHA-256", path);
    while ((n = fread(block, 1, sizeof block, file)) > 0)
        if (EVP_DigestUpdate(context, block, n) != 1)
            return ks_fail(KS_RUN, "%s: libcrypto failed to compute SHA-256", path);
    if (ferror(file))
        return ks_fail(KS_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (EVP_DigestFinal_ex(context, sum, &length) != 1 || 2 * length + 1 != KS_SHA256_TEXT)
        return ks_fail(KS_RUN, "%s: libcrypto failed to compute SHA-256", path);
    for (unsigned int i = 0; i < length; i++)
        snprintf(text + 2 * i, 3, "%02x", sum[i]);
    return KS_OK;
}

ks_status ks_sha256(size_t n, const struct ks_piece *piece, unsigned char digest[KS_SHA256_BYTES])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned int length = 0;
    int good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;

    for (size_t i = 0; good && i < n; i++)
        good = EVP_DigestUpdate(context, piece[i].bytes, piece[i].size) == 1;
    good = good && EVP_DigestFinal_ex(context, digest, &length) == 1 && length == KS_SHA256_BYTES;
    EVP_MD_CTX_free(context);
    return good ? KS_OK : ks_fail(KS_RUN, "libcrypto failed to compute SHA-256");
}

ks_status ks_sha256_file(const char *path, char text[KS_SHA256_TEXT])
{
    EVP_MD_CTX *context;
    ks_status status;
    FILE *file;

    KS_TRY(ks_path_open(path, &file));
    context = EVP_MD_CTX_new();
    status = digest_file(path, file, context, text);
    EVP_MD_CTX_free(context);
    fclose(file);
    return status;
}
