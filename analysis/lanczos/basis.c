/* The file of one probe: a header, and then one record per step.
 *
 *   header     "kappascope-basis", the length of the fingerprint (8 bytes), the fingerprint, digest
 *   record j   j, alpha_j, beta_j (8 bytes each), q_{j+1} as the basis holds it, digest
 *
 * Numbers are in native byte order. A record's digest is the SHA-256 of the header's digest and
 * of the record: if it matches, the record is complete, belongs to this fingerprint and is at its
 * place. The file only grows, in the order of the steps. If writing is interrupted, by a kill or a
 * full disk, the file starts with the completed records, and reading stops at the first digest
 * mismatch.
 */
#include "lanczos/basis.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/file.h"
#include "io/sha256.h"

static const char MAGIC[] = "kappascope-basis";
enum { MAGIC_BYTES = sizeof MAGIC - 1, MODE = 0666, VERSION = 1 };

struct numbers {
    uint64_t step;
    double alpha, beta;
};

struct ks_basis {
    char *path, *fingerprint;
    uint64_t fingerprint_length;
    int descriptor;
    unsigned char digest[KS_SHA256_BYTES]; /* the header's */
    bool trimmed;                          /* the file ends with the last valid step */
};

/* Reads up to `size` bytes from offset `at`; fewer at the end of the file. */
static ks_status read_at(const struct ks_basis *b, size_t at, void *bytes, size_t size,
                         size_t *found)
{
    char *next = bytes;

    *found = 0;
    while (*found < size) {
        ssize_t n = pread(b->descriptor, next + *found, size - *found, (off_t)(at + *found));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ks_fail(KS_IO, "%s: cannot be read: %s", b->path, strerror(errno));
        if (n == 0)
            break;
        *found += (size_t)n;
    }
    return KS_OK;
}

static ks_status write_pieces(const struct ks_basis *b, size_t at, size_t n,
                              const struct ks_piece *piece)
{
    for (size_t i = 0; i < n; i++)
        for (size_t done = 0; done < piece[i].size;) {
            ssize_t written = pwrite(b->descriptor, (const char *)piece[i].bytes + done,
                                     piece[i].size - done, (off_t)at);

            if (written < 0 && errno == EINTR)
                continue;
            if (written < 0)
                return ks_fail(ks_file_status(errno),
                               "%s: cannot be written: %s; the same command resumes from the steps "
                               "stored in it",
                               b->path, strerror(errno));
            done += (size_t)written;
            at += (size_t)written;
        }
    return KS_OK;
}

static size_t header_bytes(const struct ks_basis *b)
{
    return MAGIC_BYTES + sizeof b->fingerprint_length + b->fingerprint_length + KS_SHA256_BYTES;
}

static size_t record_bytes(const struct ks_lanczos *l)
{
    return sizeof(struct numbers) + ks_lanczos_vector_bytes(l) + KS_SHA256_BYTES;
}

/* Names the first line in which the fingerprints differ. */
static ks_status refuse_fingerprint(const struct ks_basis *b, const char *found)
{
    const char *expected = b->fingerprint;
    size_t line = 0, other = 0;

    while (*expected && *found) {
        line = strcspn(expected, "\n");
        other = strcspn(found, "\n");
        if (line != other || strncmp(expected, found, line) != 0)
            break;
        expected += line + (expected[line] == '\n');
        found += other + (found[other] == '\n');
    }
    return ks_fail(KS_USAGE,
                   "%s: expected the steps of this analysis, '%.*s'; found those of another, "
                   "'%.*s': delete the file to start over",
                   b->path, (int)line, expected, (int)other, found);
}

enum { START_BYTES = MAGIC_BYTES + sizeof(uint64_t) }; /* of the header, before the fingerprint */

/* Reads the rest of the header that begins with `start`; *valid: whether it is complete and
 * undamaged. */
static ks_status read_fingerprint(struct ks_basis *b, const unsigned char *start, uint64_t length,
                                  bool *valid)
{
    ks_status status = KS_OK;
    unsigned char digest[KS_SHA256_BYTES];
    char *fingerprint = NULL;
    size_t found;

    KS_GO(ks_alloc(length + KS_SHA256_BYTES + 1, 1, &fingerprint));
    KS_GO(read_at(b, START_BYTES, fingerprint, length + KS_SHA256_BYTES, &found));
    if (found < length + KS_SHA256_BYTES)
        goto done;
    KS_GO(
        ks_sha256(2, (struct ks_piece[]){{start, START_BYTES}, {fingerprint, length}}, b->digest));
    memcpy(digest, fingerprint + length, sizeof digest);
    fingerprint[length] = '\0';
    if (memcmp(digest, b->digest, sizeof digest) != 0)
        goto done;
    if (length != b->fingerprint_length || strcmp(fingerprint, b->fingerprint) != 0)
        status = refuse_fingerprint(b, fingerprint);
    *valid = true;
done:
    free(fingerprint);
    return status;
}

/* Reads the header and its digest, which enters the digests of the records; *valid: whether the
 * file starts with a header. */
static ks_status read_header(struct ks_basis *b, bool *valid)
{
    enum { LONGEST = 1 << 16 };
    unsigned char start[START_BYTES];
    uint64_t length;
    size_t found;

    *valid = false;
    KS_TRY(read_at(b, 0, start, sizeof start, &found));
    if (memcmp(start, MAGIC, found < MAGIC_BYTES ? found : MAGIC_BYTES) != 0)
        return ks_fail(KS_FORMAT,
                       "%s: not a Lanczos basis file; remove or rename it before using "
                       "--keep-basis",
                       b->path);
    memcpy(&length, start + MAGIC_BYTES, sizeof length);
    return found < sizeof start || length > LONGEST ? KS_OK
                                                    : read_fingerprint(b, start, length, valid);
}

static ks_status write_header(struct ks_basis *b)
{
    const struct ks_piece piece[] = {{MAGIC, MAGIC_BYTES},
                                     {&b->fingerprint_length, sizeof b->fingerprint_length},
                                     {b->fingerprint, b->fingerprint_length},
                                     {b->digest, sizeof b->digest}};

    KS_TRY(ks_sha256(3, piece, b->digest));
    if (ftruncate(b->descriptor, 0) != 0)
        return ks_file_fail(errno, b->path, "emptied");
    return write_pieces(b, 0, 4, piece);
}

/* Reads the record of the next step, its vector directly into the basis; *valid: whether the record
 * is complete and undamaged. */
static ks_status read_record(const struct ks_basis *b, const struct ks_lanczos *l,
                             struct numbers *numbers, bool *valid)
{
    unsigned char digest[KS_SHA256_BYTES], stored[KS_SHA256_BYTES];
    void *vector = ks_lanczos_vector(l, l->steps + 1);
    size_t at = header_bytes(b) + l->steps * record_bytes(l), found;
    const struct ks_piece piece[] = {{b->digest, sizeof b->digest},
                                     {numbers, sizeof *numbers},
                                     {vector, ks_lanczos_vector_bytes(l)}};

    *valid = false;
    KS_TRY(read_at(b, at, numbers, sizeof *numbers, &found));
    if (found < sizeof *numbers || numbers->step != l->steps)
        return KS_OK;
    KS_TRY(read_at(b, at + sizeof *numbers, vector, piece[2].size, &found));
    if (found < piece[2].size)
        return KS_OK;
    KS_TRY(read_at(b, at + sizeof *numbers + piece[2].size, stored, sizeof stored, &found));
    KS_TRY(ks_sha256(3, piece, digest));
    *valid = found == sizeof stored && memcmp(stored, digest, sizeof stored) == 0;
    return KS_OK;
}

static ks_status take_steps(const struct ks_basis *b, struct ks_lanczos *l)
{
    struct numbers numbers;
    bool valid = true;

    while (l->steps < l->order && !l->exhausted) {
        KS_TRY(read_record(b, l, &numbers, &valid));
        if (!valid)
            break;
        ks_lanczos_retake(l, numbers.alpha, numbers.beta);
    }
    return KS_OK;
}

/* Prevents two analyses from writing the same file, if the file system supports locks. */
static ks_status lock(const struct ks_basis *b)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(b->descriptor, F_SETLK, &all) == 0 || (errno != EACCES && errno != EAGAIN))
        return KS_OK;
    return ks_fail(KS_IO, "%s: another analysis is writing it", b->path);
}

static ks_status open_file(struct ks_basis *b)
{
    struct stat info;

    b->descriptor = open(b->path, O_RDWR | O_CREAT | O_CLOEXEC, MODE);
    if (b->descriptor < 0)
        return ks_file_fail(errno, b->path, "opened");
    if (fstat(b->descriptor, &info) != 0)
        return ks_fail(KS_IO, "%s: cannot be read: %s", b->path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return ks_fail(KS_IO, "%s: expected a regular file", b->path);
    return lock(b);
}

/* Sets the path and the fingerprint, with this rank's number. The fingerprint is stored in the
 * file, so its words ("process") are part of the format. */
static ks_status name(struct ks_basis *b, const char *stem, const char *fingerprint,
                      const struct ks_lanczos *l)
{
    int rank = ks_team_rank(l->team), size = ks_team_size(l->team);
    char part[64] = "", probe[32] = "-gradient";

    if (l->probe != KS_PROBE_GRADIENT)
        snprintf(probe, sizeof probe, "%llu", (unsigned long long)l->probe);
    if (size > 1)
        snprintf(part, sizeof part, ".%dof%d", rank + 1, size);
    KS_TRY(ks_print_string(&b->path, "%s.probe%s%s.basis", stem, probe, part));
    KS_TRY(ks_print_string(&b->fingerprint, "format %d\n%sprobe %llu\nprocess %d of %d\n", VERSION,
                           fingerprint, (unsigned long long)l->probe, rank + 1, size));
    b->fingerprint_length = strlen(b->fingerprint);
    return KS_OK;
}

static ks_status open_alone(const char *stem, const char *fingerprint, struct ks_lanczos *l,
                            struct ks_basis **basis)
{
    ks_status status = KS_OK;
    struct ks_basis *b = NULL;
    bool valid;

    assert(l->steps == 0);
    *basis = NULL;
    KS_TRY(ks_alloc(1, sizeof *b, &b));
    b->descriptor = -1;
    KS_GO(name(b, stem, fingerprint, l));
    KS_GO(open_file(b));
    KS_GO(read_header(b, &valid));
    if (!valid)
        KS_GO(write_header(b));
    KS_GO(take_steps(b, l));
    *basis = b, b = NULL;
done:
    ks_basis_close(b);
    return status;
}

ks_status ks_basis_open(const char *stem, const char *fingerprint, struct ks_lanczos *l,
                        struct ks_basis **basis)
{
    KS_TRY(ks_team_agree(l->team, open_alone(stem, fingerprint, l, basis)));
    ks_lanczos_rewind(l, ks_team_least(l->team, l->steps));
    return KS_OK;
}

ks_status ks_basis_append(struct ks_basis *b, const struct ks_lanczos *l)
{
    size_t j = l->steps - 1, at = header_bytes(b) + j * record_bytes(l);
    struct numbers numbers = {j, l->alpha[j], l->beta[j]};
    unsigned char digest[KS_SHA256_BYTES];
    const struct ks_piece piece[] = {
        {b->digest, sizeof b->digest},
        {&numbers, sizeof numbers},
        {ks_lanczos_vector(l, j + 1), ks_lanczos_vector_bytes(l)},
        {digest, sizeof digest},
    };

    if (!b->trimmed && ftruncate(b->descriptor, (off_t)at) != 0)
        return ks_file_fail(errno, b->path, "truncated to its valid records");
    b->trimmed = true;
    KS_TRY(ks_sha256(3, piece, digest));
    return write_pieces(b, at, 3, piece + 1);
}

void ks_basis_close(struct ks_basis *b)
{
    if (!b)
        return;
    if (b->descriptor >= 0)
        close(b->descriptor);
    free(b->path);
    free(b->fingerprint);
    free(b);
}
