/* A temporary folder for a test's files, and what reads, writes and compares them. */
#ifndef KS_TEST_SCRATCH_H
#define KS_TEST_SCRATCH_H

#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "io/csv.h"
#include "io/file.h"
#include "io/spectrum.h"

extern char scratch_folder[64];

/* Calls `visit` with the name, without its ending, of each file of a folder that has this ending;
 * returns how many there are. Skips the test if the folder does not exist. */
size_t each_file(const char *folder, const char *ending, void (*visit)(const char *name));

/* A test in a folder of its own, and one after which the folder of all tests is emptied. */
#define TEST_IN_FOLDER(name) TEST_WITH(name, scratch_make, scratch_remove)
#define TEST_CLEAN(name)     TEST_WITH(name, NULL, scratch_clean)

int scratch_make(void **state);

/* The number of files in the folder, including hidden ones; removes them if `clean`. */
size_t scratch_files(bool clean);
int scratch_clean(void **state);
int scratch_remove(void **state);

/* The path of `name` in the folder, in one of eight buffers used in turn. */
const char *scratch(const char *name);
bool exists(const char *name);

/* A file's bytes, followed by a zero; held until the test ends. `size` may be NULL. */
unsigned char *read_bytes(const char *path, size_t *size);
void write_bytes(const char *path, const void *bytes, size_t size);

/* Writes the file `name` in the folder, and creates its parent folders. */
void write_text(const char *name, const char *text);

/* The text of a file in the folder; held until the test ends. */
char *file_text(const char *name);
void copy_file(const char *from, const char *to);

/* A table of the folder, until the next call. A cell as text, and as a number: NaN for "-" or
 * nothing. check_row compares cells of a row, "NAME=TEXT NAME=TEXT ...". */
const struct ks_csv *read_csv(const char *name);
const char *cell(const struct ks_csv *csv, size_t row, const char *name);
double cell_number(const struct ks_csv *csv, size_t row, const char *name);
void check_row(const struct ks_csv *csv, size_t row, const char *expected);

/* A spectrum, until 63 others have been read or kept. */
struct ks_spectrum *read_spectrum(const char *path);
struct ks_spectrum *keep_spectrum(struct ks_spectrum *s);

/* Both files have the same bytes. */
void assert_same_files(const char *found, const char *expected);

/* The last error message is one line and names the file. */
void assert_one_line(const char *path);

/* Sets host to the part of a temporary file's name that identifies the machine. `path` is a file
 * that can be created. */
void find_host_name(const char *path, char host[9]);

/* The id of a process that has ended. */
long dead_process(void);

/* Sets name to that of a leftover temporary file; `path` as above. */
void name_leftover(const char *path, char name[64]);

#endif
