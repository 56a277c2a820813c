#include "programs.h"

char printed[1 << 16], complained[1 << 14], launcher[256];

const char *program_path(const char *name)
{
    static char path[2048];
    char here[1024] = "";
    const char *folder = getenv("KS_BIN");

    folder = folder ? folder : "build/bin";
    if (folder[0] != '/')
        assert_non_null(getcwd(here, sizeof here));
    snprintf(path, sizeof path, "%s%s%s/%s", here, here[0] ? "/" : "", folder, name);
    return path;
}

static void read_output(const char *name, char *text, size_t size)
{
    assert_true(snprintf(text, size, "%s", file_text(name)) < (int)size);
}

int run_shell(const char *command)
{
    const int status = system(text_of("cd '%s' && %s", scratch_folder, command));

    assert_true(WIFEXITED(status));
    read_output("out.txt", printed, sizeof printed);
    read_output("err.txt", complained, sizeof complained);
    return WEXITSTATUS(status);
}

int run_program(const char *name, const char *arguments)
{
    return run_shell(text_of("OMP_WAIT_POLICY=passive %s '%s' >out.txt 2>err.txt %s", launcher,
                             program_path(name), arguments));
}

static char list[2048]; /* the arguments of the last run */

static int run_formatted(const char *name, const char *arguments, va_list values)
{
    assert_true(vsnprintf(list, sizeof list, arguments, values) < (int)sizeof list);
    return run_program(name, list);
}

int analyzer(const char *arguments, ...)
{
    va_list values;
    int status;

    va_start(values, arguments);
    status = run_formatted("kappascope-analyze", arguments, values);
    va_end(values);
    if (status > 3)
        fail_msg("analyze %s: exit status %d, '%s'", list, status, complained);
    return status;
}

int train(const char *arguments, ...)
{
    va_list values;
    int status;

    va_start(values, arguments);
    status = run_formatted("kappascope-train", arguments, values);
    va_end(values);
    return status;
}

int audit(const char *arguments)
{
    return run_program("kappascope-audit", arguments);
}

void assert_shows(const char *words)
{
    assert_contains(printed, words);
}

void assert_complains(const char *words)
{
    assert_contains(complained, words);
}

void analyzer_refuses(const char *arguments, const char *words)
{
    assert_int_equal(analyzer("%s", arguments), 2);
    assert_complains(words);
}

void train_refuses(const char *arguments, const char *words)
{
    assert_int_equal(train("%s", arguments), 2);
    assert_complains(words);
}

void audit_refuses(const char *arguments, const char *words)
{
    assert_int_equal(audit(arguments), 2);
    assert_complains(words);
}

size_t refused_memory(const char *arguments)
{
    static const char WORDS[] = "--memory: expected at least ";
    char refusal[sizeof complained];
    size_t least = 0;

    if (analyzer("--memory 1 %s", arguments) != 1 || !strstr(complained, WORDS))
        fail_msg("--memory 1 %s: '%s'", arguments, complained);
    assert_int_equal(sscanf(strstr(complained, WORDS) + sizeof WORDS - 1, "%zuK, found", &least),
                     1);
    memcpy(refusal, complained, sizeof refusal);
    assert_int_equal(analyzer("--memory %zuK %s", least - 1, arguments), 1);
    memcpy(complained, refusal, sizeof refusal);
    return least;
}

size_t least_memory(const char *arguments)
{
    const size_t least = refused_memory(arguments);
    char refusal[sizeof complained];

    memcpy(refusal, complained, sizeof refusal);
    assert_runs("--memory %zuK %s", least, arguments);
    memcpy(complained, refusal, sizeof refusal);
    return least;
}

double *read_vectors(const char *name, size_t n, size_t k)
{
    double *vectors;
    size_t found;

    assert_ok(try_vectors(scratch(name), n, &found, &vectors));
    assert_int_equal(found, k);
    return hold(vectors);
}

double *read_list(const char *path, const char *object, size_t *n)
{
    struct ks_h5_shape shape;
    struct ks_h5 *h5;
    double *values;

    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_ok(ks_h5_shape(h5, object, &shape));
    assert_int_equal(shape.n_dims, 1);
    assert_ok(ks_h5_read_new(h5, object, &shape, &values));
    *n = shape.dims[0];
    ks_h5_close(h5);
    return hold(values);
}

void check_word(const char *path, const char *name, const char *expected)
{
    struct ks_attribute a;
    struct ks_h5 *h5;

    assert_ok(ks_h5_open(path, "kappascope-vector", &h5));
    assert_ok(ks_h5_read_attribute(h5, "/", name, KS_ATTRIBUTE_STRING, &a));
    assert_string_equal(a.string, expected);
    free(a.string);
    ks_h5_close(h5);
}

double read_root_number(const char *path, const char *name)
{
    struct ks_attribute attribute;
    struct ks_h5 *h5;

    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_ok(ks_h5_read_attribute(h5, "/", name, KS_ATTRIBUTE_NUMBER, &attribute));
    ks_h5_close(h5);
    return attribute.number;
}

RELEASES(free_json, json_decref)

json_t *read_json(const char *name)
{
    json_t *value = json_load_file(scratch(name), 0, NULL);

    assert_non_null(value);
    return hold_object(value, free_json);
}

int run_here(const char *name, const char *arguments)
{
    int result;

    if (access(program_path(name), X_OK) != 0)
        skip();
    result = system(
        text_of("'%s' %s >%s 2>&1 </dev/null", program_path(name), arguments, scratch("said")));
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

size_t count(const char *text, const char *words)
{
    size_t n = 0;

    for (; (text = strstr(text, words)); text++)
        n++;
    return n;
}

void assert_said(const char *words, size_t lines)
{
    const char *said = file_text("said");

    assert_contains(said, words);
    if (lines > 0)
        assert_int_equal(count(said, "\n"), lines);
}

void run_says(const char *name, const char *arguments, int status, const char *words, size_t lines)
{
    assert_int_equal(run_here(name, arguments), status);
    assert_said(words, lines);
}
