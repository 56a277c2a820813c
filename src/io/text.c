#include "io/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/path.h"
#include "io/file.h"

static ks_status read_stream(FILE *file, const char *path, char **bytes, size_t *size)
{
    size_t room = 1 << 16, used = 0;
    char *text = NULL, *larger;

    KS_TRY(ks_alloc(room, 1, &text));
    while (used += fread(text + used, 1, room - 1 - used, file), used == room - 1) {
        if (ks_alloc(2 * room, 1, &larger) != KS_OK) {
            free(text);
            return KS_MEMORY;
        }
        memcpy(larger, text, used);
        free(text);
        text = larger, room *= 2;
    }
    if (ferror(file)) {
        free(text);
        return ks_fail(KS_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    text[used] = '\0';
    *bytes = text;
    if (size)
        *size = used;
    return KS_OK;
}

ks_status ks_text_read(const char *path, char **bytes, size_t *size)
{
    ks_status status;
    FILE *file;

    *bytes = NULL;
    KS_TRY(ks_path_open(path, &file));
    status = read_stream(file, path, bytes, size);
    fclose(file);
    return status;
}

ks_status ks_text_open(const char *path, struct ks_text *text)
{
    *text = (struct ks_text){0};
    KS_TRY(ks_copy_string(path, &text->path));
    text->stream = open_memstream(&text->bytes, &text->size);
    if (!text->stream)
        return ks_fail(KS_MEMORY, "%s: out of memory", path);
    return KS_OK;
}

ks_status ks_text_close(struct ks_text *text, ks_status status)
{
    bool failed = text->stream && ferror(text->stream) != 0;

    if (text->stream && fclose(text->stream) != 0)
        failed = true;
    if (status == KS_OK && failed)
        status = ks_fail(KS_MEMORY, "%s: out of memory", text->path);
    if (status == KS_OK)
        status = ks_file_write(text->path, text->bytes, text->size);
    free(text->bytes);
    free(text->path);
    *text = (struct ks_text){0};
    return status;
}

bool ks_path_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

ks_status ks_folder_make(const char *path)
{
    ks_status status = KS_OK;
    char *copy = NULL;
    struct stat found;

    KS_TRY(ks_copy_string(path, &copy));
    for (char *c = copy + 1; *copy; c++) {
        char end = *c;

        if (end != '/' && end != '\0')
            continue;
        *c = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST) {
            status = ks_file_fail(errno, copy, "created");
            break;
        }
        *c = end;
        if (end == '\0')
            break;
    }
    if (status == KS_OK && (stat(path, &found) != 0 || !S_ISDIR(found.st_mode)))
        status = ks_fail(KS_IO, "%s: exists and is not a directory", path);
    free(copy);
    return status;
}

ks_status ks_folder_make_in(const char *dir, const char *name)
{
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/%s", dir, name));
    status = ks_folder_make(path);
    free(path);
    return status;
}
