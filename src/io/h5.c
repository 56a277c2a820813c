#include "io/h5.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/h5_image.h"
#include "io/h5_reader.h"

void ks_h5_close(struct ks_h5 *h5)
{
    if (!h5)
        return;
    ks_h5_reader_end(h5);
    if (h5->writing)
        ks_file_close(&h5->file);
    ks_h5_file_free(h5);
}

static ks_status check_format(const struct ks_h5 *h5, const char *format)
{
    ks_status status = KS_OK;
    char *found = NULL;
    bool checkpoint = strcmp(format, "kappascope-checkpoint") == 0;
    int64_t version = 0;
    bool has;

    KS_TRY(ks_h5_has_attribute(h5, "/", "format", &has));
    if (!has)
        return ks_fail(KS_FORMAT,
                       "%s: expected a %s, found an HDF5 file without the root attribute format%s",
                       h5->path, format,
                       checkpoint ? ": weights of another program become a checkpoint by "
                                    "'kappascope import'"
                                  : "");
    KS_GO(ks_h5_read_string(h5, "/", "format", &found));
    if (strcmp(found, format) != 0) {
        status = ks_fail(KS_FORMAT, "%s: attribute format: expected \"%s\", found \"%.60s\"",
                         h5->path, format, found);
        goto done;
    }
    KS_GO(ks_h5_read_integer(h5, "/", "version", INT64_MIN, &version));
    if (version != KS_H5_VERSION && !(checkpoint && version == KS_H5_CHECKPOINT_VERSION))
        status = ks_fail(KS_FORMAT, "%s: attribute version of a %s: expected %s, found %lld",
                         h5->path, format, checkpoint ? "1 or 2" : "1", (long long)version);
done:
    free(found);
    return status;
}

ks_status ks_h5_open(const char *path, const char *format, struct ks_h5 **out)
{
    ks_status status = KS_OK;
    struct ks_h5 *h5 = NULL;
    struct stat found;

    *out = NULL;
    if (stat(path, &found) != 0 || (S_ISREG(found.st_mode) && access(path, R_OK) != 0))
        return ks_fail(KS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(found.st_mode))
        return ks_fail(KS_IO, "%s: expected an HDF5 file, found %s", path,
                       S_ISDIR(found.st_mode) ? "a directory" : "a special file");
    KS_TRY(ks_h5_file_new(path, false, &h5));
    KS_GO(ks_h5_reader_start(h5));
    if (format)
        KS_GO(check_format(h5, format));
    *out = h5, h5 = NULL;
done:
    ks_h5_close(h5);
    return status;
}

ks_status ks_h5_create(const char *path, const char *format, struct ks_h5 **out)
{
    return ks_h5_create_version(path, format, KS_H5_VERSION, out);
}

ks_status ks_h5_create_version(const char *path, const char *format, int64_t version,
                               struct ks_h5 **out)
{
    ks_status status = KS_OK;
    struct ks_h5 *h5 = NULL;

    *out = NULL;
    KS_TRY(ks_h5_file_new(path, true, &h5));
    KS_GO(ks_file_create(path, &h5->file));
    KS_GO(ks_h5_image_create(h5));
    KS_GO(ks_h5_write_string(h5, "/", "format", format));
    KS_GO(ks_h5_write_integer(h5, "/", "version", version));
    *out = h5, h5 = NULL;
done:
    ks_h5_close(h5);
    return status;
}

ks_status ks_h5_commit(struct ks_h5 *h5)
{
    return ks_h5_image_commit(h5);
}
