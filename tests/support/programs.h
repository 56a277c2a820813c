/* Runs the programs, as a user would. They are in $KS_BIN, or in build/bin if that is not set. */
#ifndef KS_TEST_PROGRAMS_H
#define KS_TEST_PROGRAMS_H

#include <jansson.h>

#include "readers.h"
#include "scratch.h"

#include "io/h5.h"

/* standard output and standard error of the last run */
extern char printed[1 << 16], complained[1 << 14];

/* a command in front of the program, such as "timeout 10" */
extern char launcher[256];

/* 60 agent steps, 30 of them before the first update; 2 checkpoints, and one before the first
 * update. The task takes little time to start. */
#define SMALL                                                                                      \
    "--quiet --env cartpole-balance --steps 120 --set hidden=16 --set actor_hidden=16 --set "      \
    "batch=8 "                                                                                     \
    "--set random_steps=30 --set eval_episodes=1 --set checkpoints=2 --set "                       \
    "analysis_minibatches=3 "

/* The path of a program. */
const char *program_path(const char *name);

/* Runs a shell command in the scratch folder, which writes its two outputs to the files out.txt and
 * err.txt; returns its exit status. */
int run_shell(const char *command);

/* Runs "NAME ARGUMENTS" by the shell in the scratch folder; returns its exit status. Waiting OpenMP
 * threads sleep, since tests run side by side on problems of microseconds. */
int run_program(const char *name, const char *arguments);

/* kappascope-analyze, -train and -audit. The analyzer's exit status is at most 2. */
__attribute__((format(printf, 1, 2))) int analyzer(const char *arguments, ...);
__attribute__((format(printf, 1, 2))) int train(const char *arguments, ...);
int audit(const char *arguments);

#define assert_runs(...)                                                                           \
    do {                                                                                           \
        if (analyzer(__VA_ARGS__) != 0)                                                            \
            fail_msg("the analyzer failed: %s", complained);                                       \
    } while (0)

#define assert_trains(...)                                                                         \
    do {                                                                                           \
        if (train(__VA_ARGS__) != 0)                                                               \
            fail_msg("training failed: %s", complained);                                           \
    } while (0)

/* Standard output of the last run has these words. */
void assert_shows(const char *words);
void assert_complains(const char *words);

/* Exit status 2, with these words on standard error. */
void analyzer_refuses(const char *arguments, const char *words);
void train_refuses(const char *arguments, const char *words);
void audit_refuses(const char *arguments, const char *words);

/* The least --memory, in K, with which these arguments run, as a refusal names it: one less is
 * refused. `complained` holds the first refusal. The second function also runs them with it. */
size_t refused_memory(const char *arguments);
size_t least_memory(const char *arguments);

/* The vectors of a file in the scratch folder, n numbers each; held until the test ends. */
double *read_vectors(const char *name, size_t n, size_t k);

/* The numbers of a dataset of one dimension; held until the test ends. */
double *read_list(const char *path, const char *object, size_t *n);

/* A numeric root attribute of an HDF5 file. */
double read_root_number(const char *path, const char *name);

/* The value in a file of the scratch folder, such as out.txt; held until the test ends. */
json_t *read_json(const char *name);

/* Asserts that a vector file has this word as an attribute. */
void check_word(const char *path, const char *name, const char *expected);

/* Runs a program in the current folder; both outputs go to the file "said" of the scratch folder.
 * Skips the test if the program is missing. */
int run_here(const char *name, const char *arguments);

/* The file "said" contains `words` and has this number of lines (0: any number). */
void assert_said(const char *words, size_t lines);

/* Runs a program, which ends with this status and prints these words, in so many lines. */
void run_says(const char *name, const char *arguments, int status, const char *words, size_t lines);

/* How often these words are in the text. */
size_t count(const char *text, const char *words);

#endif
