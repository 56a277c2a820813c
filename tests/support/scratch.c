#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include "scratch.h"

char scratch_folder[64];

int scratch_make(void **state)
{
    snprintf(scratch_folder, sizeof scratch_folder, "/tmp/kappascope-test-XXXXXX");
    return mkdtemp(scratch_folder) ? 0 : -1;
}

size_t scratch_files(bool clean)
{
    DIR *folder = opendir(scratch_folder);
    struct dirent *entry;
    size_t n = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (clean)
            remove(text_of("%s/%s", scratch_folder, entry->d_name));
        n++;
    }
    closedir(folder);
    return n;
}

size_t each_file(const char *folder, const char *ending, void (*visit)(const char *name))
{
    DIR *list = opendir(folder);
    struct dirent *entry;
    size_t n = 0;

    if (!list) {
        print_message("%s does not exist\n", folder);
        skip();
    }
    while ((entry = readdir(list))) {
        char *name;

        if (!ks_path_ends(entry->d_name, ending))
            continue;
        name = hold(strdup(entry->d_name));
        name[ks_path_stem(name, ending)] = '\0';
        visit(name);
        n++;
    }
    closedir(list);
    return n;
}

int scratch_clean(void **state)
{
    scratch_files(true);
    return 0;
}

static int remove_one(const char *path, const struct stat *there, int type, struct FTW *walk)
{
    (void)there;
    (void)type;
    (void)walk;
    return remove(path);
}

int scratch_remove(void **state)
{
    return nftw(scratch_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *scratch(const char *name)
{
    static char paths[8][512];
    static int turn;
    char *path = paths[turn++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", scratch_folder, name);
    return path;
}

bool exists(const char *name)
{
    return access(scratch(name), F_OK) == 0;
}

unsigned char *read_bytes(const char *path, size_t *size)
{
    char *bytes = NULL;
    size_t n;

    assert_ok(ks_text_read(path, &bytes, &n));
    if (size)
        *size = n;
    return hold(bytes);
}

void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void write_text(const char *name, const char *text)
{
    char path[512];

    snprintf(path, sizeof path, "%s", scratch(name));
    for (char *slash = path + strlen(scratch_folder) + 1; (slash = strchr(slash, '/'));
         *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0777);
    }
    write_bytes(path, text, strlen(text));
}

char *file_text(const char *name)
{
    return (char *)read_bytes(scratch(name), NULL);
}

void copy_file(const char *from, const char *to)
{
    size_t size;
    const unsigned char *bytes = read_bytes(from, &size);

    write_bytes(to, bytes, size);
}

void assert_same_files(const char *found, const char *expected)
{
    size_t n, m;
    unsigned char *a = read_bytes(found, &n), *b = read_bytes(expected, &m);

    if (n != m || memcmp(a, b, m) != 0)
        fail_msg("%s and %s differ", found, expected);
}

void assert_one_line(const char *path)
{
    if (!strstr(ks_error_text(), path) || strchr(ks_error_text(), '\n'))
        fail_msg("'%s' is not one line that names %s", ks_error_text(), path);
}

void find_host_name(const char *path, char host[9])
{
    struct ks_file file;

    assert_ok(ks_file_create(path, &file));
    assert_int_equal(
        sscanf(ks_path_base(file.temporary), ".kappascope-%8[0-9a-f]-%*d-%*u.tmp", host), 1);
    ks_file_close(&file);
}

long dead_process(void)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return (long)child;
}

void name_leftover(const char *path, char name[64])
{
    char host[9];

    find_host_name(path, host);
    snprintf(name, 64, ".kappascope-%s-%ld-3.tmp", host, dead_process());
}

const struct ks_csv *read_csv(const char *name)
{
    static struct ks_csv *csv;

    ks_csv_free(csv);
    csv = NULL;
    assert_ok(ks_csv_read(scratch(name), false, &csv));
    return csv;
}

const char *cell(const struct ks_csv *csv, size_t row, const char *name)
{
    size_t column;

    assert_true(row < csv->rows);
    assert_ok(ks_csv_column(csv, name, &column));
    return ks_csv_cell(csv, row, column);
}

double cell_number(const struct ks_csv *csv, size_t row, const char *name)
{
    const char *text = cell(csv, row, name);
    char *end;
    double value = strtod(text, &end);

    assert_true(*end == '\0' || strcmp(text, "-") == 0);
    return end == text ? NAN : value;
}

void check_row(const struct ks_csv *csv, size_t row, const char *expected)
{
    char name[64], value[128];

    for (int length; *expected; expected += length + strspn(expected + length, " ")) {
        assert_int_equal(sscanf(expected, "%63[^=]=%127s%n", name, value, &length), 2);
        if (strcmp(cell(csv, row, name), value) != 0)
            fail_msg("row %zu, %s: expected %s, found %s", row, name, value, cell(csv, row, name));
    }
}

struct ks_spectrum *keep_spectrum(struct ks_spectrum *s)
{
    static struct ks_spectrum *kept[64];
    static size_t turn;

    turn = (turn + 1) % (sizeof kept / sizeof *kept);
    ks_spectrum_free(kept[turn]);
    return kept[turn] = s;
}

struct ks_spectrum *read_spectrum(const char *path)
{
    struct ks_spectrum *s = NULL;

    assert_ok(ks_spectrum_read(path, &s));
    return keep_spectrum(s);
}
