# `make help` lists the targets and these variables, which may be set:
#
#   PREFIX, DESTDIR              install into DESTDIR/PREFIX (default: /usr/local)
#   MUJOCO_DIR, DM_CONTROL_DIR, GYMNASIUM_DIR, MYOSUITE_DIR   existing installations to use (default: build/deps)
#   BUILD                        folder of all build outputs (default: build)
#   STUDY                        the study that `make study` runs (default: quick)
#   AMX_CC                       compiler of the file that uses AMX: GCC 11, clang 11 or newer (default: CC)
#   JOBS                         compilers, then test programs, at a time (default: one per processor)

# make and compiler flags split paths at spaces.
paths := CURDIR BUILD PREFIX DESTDIR MUJOCO_DIR DM_CONTROL_DIR GYMNASIUM_DIR MYOSUITE_DIR
ifneq ($(filter-out 0 1,$(foreach d,$(paths),$(words $($(d))))),)
$(error paths must not contain spaces: $(foreach d,$(paths),$(d)=$($(d))))
endif

BUILD ?= build
STUDY ?= quick
JOBS  ?= $(shell nproc)
PREFIX ?= /usr/local
DEPS  := build/deps
export MUJOCO_DIR     ?= $(CURDIR)/$(DEPS)/mujoco
export DM_CONTROL_DIR ?= $(CURDIR)/$(DEPS)/dm_control
export GYMNASIUM_DIR  ?= $(CURDIR)/$(DEPS)/gymnasium
export MYOSUITE_DIR   ?= $(CURDIR)/$(DEPS)/myosuite

packages := openblas lapacke hdf5 liblzf expat jansson popt inih libcrypto
pkgflags := $(shell pkg-config --cflags $(packages) 2>/dev/null)
pkglibs  := $(shell pkg-config --libs $(packages) 2>/dev/null)
CC       := gcc
AMX_CC   ?= $(CC)
CFLAGS   ?= -O3 -march=native -ffp-contract=fast -fno-math-errno -g
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
CPPFLAGS += -std=c11 -D_POSIX_C_SOURCE=200809L -iquote src -iquote analysis -iquote include -iquote $(BUILD) -isystem $(MUJOCO_DIR)/include $(pkgflags)
flags    := $(CC) $(AMX_CC) $(CPPFLAGS) $(CFLAGS)# before a target adds its own
LIBMUJOCO = $(abspath $(firstword $(wildcard $(MUJOCO_DIR)/lib/libmujoco.so* $(MUJOCO_DIR)/libmujoco.so*)))
LDLIBS    = -Wl,--as-needed $(pkglibs) -ldl -lpthread -lm
version  := $(shell cat src/VERSION)
# What decides the bits: the sources, the compiler and its options. Runs and spectra record it behind the version.
hash     := $(shell { cat $(sort $(wildcard $(addsuffix /*.[ch],include src/* analysis/*))); echo '$(CFLAGS)'; $(CC) -dumpfullversion; } | sha256sum | cut -c1-12)
# Version and paths, which few files include. Rewritten only if they change, as is the file of the flags.
define config
#pragma once
#define KS_VERSION "$(version)"
#define KS_BUILD "$(version)+$(hash)"
#define KS_SHARE_DIR "$(CURDIR)"
#define KS_LIBMUJOCO "$(LIBMUJOCO)"
#define KS_DM_CONTROL_DIR "$(abspath $(DM_CONTROL_DIR))"
#define KS_GYMNASIUM_DIR "$(abspath $(GYMNASIUM_DIR))"
#define KS_MYOSUITE_DIR "$(abspath $(MYOSUITE_DIR))"
endef
export config

# Folders compiled once (double or no `real`), once for float32, and twice (float32 and float64).
once     := $(addprefix src/,core io document env study inspect results claims report audit) \
            $(addprefix analysis/,operators lanczos statistics pipeline library)
single   := src/train
twice    := src/layers src/net src/agent analysis/products
mains    := $(wildcard src/programs/*.c)
programs := $(BUILD)/bin/kappascope $(patsubst src/programs/%.c,$(BUILD)/bin/kappascope-%,$(filter-out %/kappascope.c,$(mains)))
sources   = $(wildcard $(addsuffix /*.c,$(1)))
objects  := $(patsubst %.c,$(BUILD)/%.o,$(call sources,$(once))) \
            $(patsubst %.c,$(BUILD)/%.f32.o,$(call sources,$(single) $(twice))) \
            $(patsubst %.c,$(BUILD)/%.f64.o,$(call sources,$(twice)))
library  := $(BUILD)/libks.a
# The public library: the functions of include/kappascope.h and the objects of libks.a that they need.
# The soname has major and minor version, as the interface may change between 0.x versions.
public   := $(patsubst %.c,$(BUILD)/%.o,$(wildcard analysis/library/*.c))
soname   := libkappascope.so.$(basename $(version))
shared   := $(BUILD)/lib/libkappascope.so.$(version)
static   := $(BUILD)/lib/libkappascope.a
# Tests of code that is compiled twice are compiled twice themselves.
all_tests := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/*/test_*.c)) \
             $(patsubst %,$(BUILD)/tests/%.f32,net/test_exponential layers/test_layers layers/test_layer_values net/test_loss \
             net/test_net agent/test_init agent/test_policy agent/test_target agent/test_optim) \
             $(patsubst tests/%.py,$(BUILD)/tests/%,$(wildcard tests/python/test_*.py))
tests    := $(foreach t,$(all_tests),$(if $(filter $(without:%=test_%),$(notdir $(t))),,$(t)))
# What tests share. disk.c replaces functions of the C library, so it is linked only with tests that ask for it.
shared_by_tests := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/disk.c %/layer.c,$(wildcard tests/support/*.c))) \
             $(BUILD)/tests/support/layer.f32.o $(BUILD)/tests/support/layer.f64.o
support  := $(BUILD)/libtests.a
on_disk  := $(patsubst tests/%.c,$(BUILD)/tests/%,$(shell grep -lE '"(disk|resuming).h"' tests/*/test_*.c))
benches  := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(filter-out %/instructions.c,$(wildcard tests/bench/*.c)))
compile   = @echo '  compile  $<' && mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(WARN) $(CFLAGS) -fopenmp -fPIC -fvisibility=hidden -MMD -MP
# Builds targets in parallel: JOBS at a time, unless make was called with -j.
build     = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS))
link      = @echo '  link     $@' && mkdir -p $(@D) && $(CC) $(CFLAGS) -fopenmp $^ -o $@ $(LDLIBS)

.PHONY: FORCE all help deps deps-myosuite deps-pixels programs libraries test test-programs run-tests check docs site study further install uninstall wheel bench run-benches instructions bench-peers bench-answers sanitize lto threads nightly coverage lint format clean
.SECONDARY:
all: ## compile the programs (set-up first: make deps)
	+@$(build) programs
help: ## print this list
	@echo 'Targets:'; sed -n 's/^\([a-z-]*\):.* ## /  \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18
	@echo 'Variables:'; sed -n 's/^#  \( *[A-Z].*\)/\1/p' $(firstword $(MAKEFILE_LIST))
programs: $(programs) $(shared)
libraries: $(shared) $(static)

deps: ## set up: install libraries and models, all but the packages into build/deps
	@src/deps/install.sh $(DEPS)
# The models of MyoSuite's tasks, a download of 86 MB that nothing else needs.
deps-myosuite: ## download the models of MyoSuite's tasks
	@src/deps/install.sh $(DEPS) myosuite
deps-pixels: ## install Mesa's OpenGL in software, to draw frames
	@src/deps/install.sh $(DEPS) pixels

$(BUILD)/%.f32.o: %.c $(BUILD)/flags | $(BUILD)/config.h
	$(compile) -DKS_SINGLE -c $< -o $@
$(BUILD)/%.f64.o: %.c $(BUILD)/flags | $(BUILD)/config.h
	$(compile) -c $< -o $@
$(BUILD)/%.o: %.c $(BUILD)/flags | $(BUILD)/config.h
	$(compile) -c $< -o $@
# NumPy does not use fused multiply-add: without it, the results equal dm_control's to the last bit.
$(BUILD)/src/env/%.o: CFLAGS += -ffp-contract=off
# The same bits with and without fused multiply-add where a result is subnormal.
$(BUILD)/src/core/split.o: CFLAGS += -ffp-contract=off
$(BUILD)/src/core/split_amx.o: override CC := $(AMX_CC)
$(BUILD)/tests/%.o: CPPFLAGS += -iquote tests/support
# -O1 compiles in half the time. Benchmarks need -O3, and so does a test that rounds as the program does.
$(BUILD)/tests/%.o: CFLAGS += -O1
$(BUILD)/tests/bench/%.o: CFLAGS += -O3
$(BUILD)/tests/programs/test_compat.o: CFLAGS += -O3
# cmocka passes a state to each test, which few need.
$(BUILD)/tests/%.o: WARN += -Wno-unused-parameter
# Tests and benchmarks of training have its precision. Systems are compared with definitions in double.
$(filter-out %/test_systems.o,$(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/train/*.c tests/bench/*.c tests/bench/peer/cycle.c))): CPPFLAGS += -DKS_SINGLE
$(BUILD)/config.h: FORCE
	@pkg-config --exists $(packages) && [ -f '$(LIBMUJOCO)' ] || { echo 'libraries are missing: run make deps' >&2; exit 1; }
	@mkdir -p $(@D) && echo "$$config" >$@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
$(BUILD)/flags: FORCE
	@mkdir -p $(@D) && echo '$(flags)' >$@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
$(library): $(objects)
	@rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/bin/kappascope: $(BUILD)/src/programs/kappascope.o $(library)
	$(link)
$(BUILD)/bin/kappascope-%: $(BUILD)/src/programs/%.o $(library)
	$(link)
# Only the functions of include/kappascope.h are exported: everything else has hidden visibility.
$(shared): $(public) $(library)
	$(link) -shared -Wl,-soname,$(soname) $(defs)
defs = -Wl,-z,defs
$(static): $(public) $(library)
	@mkdir -p $(@D) && rm -f $@ && $(LD) -r $^ -o $(@D)/kappascope.o
	@objcopy --localize-hidden $(@D)/kappascope.o && $(AR) rcs $@ $(@D)/kappascope.o
$(support): $(shared_by_tests)
	@rm -f $@ && $(AR) rcs $@ $^
$(on_disk): $(BUILD)/tests/support/disk.o
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(support) $(library)
	@mkdir -p $(@D) && $(CC) $(CFLAGS) -fopenmp $^ -o $@ $(LDLIBS) -lcmocka
# A file of Python's tests is run as the programs are.
$(BUILD)/tests/python/%: tests/python/%.py
	@mkdir -p $(@D) && printf '#!/bin/sh\nexec tests/python/run.sh $*\n' >$@ && chmod +x $@
$(BUILD)/bench/%: $(BUILD)/tests/bench/%.o $(library)
	$(link)
$(BUILD)/peer/%: $(BUILD)/tests/peer/%.o $(support) $(library)
	$(link) -lcmocka

test: deps ## set up, compile, then run all tests
	+@$(build) test-programs
	@$(MAKE) --no-print-directory run-tests
test-programs: $(tests) programs
run-tests: $(tests) programs
	@JOBS=$(JOBS) KS_BIN=$(BUILD)/bin tests/support/run.sh $(BUILD)/tests $(tests)
# The tests of one name, or of one folder: make check T=lanczos
check: programs ## run the tests of one name or folder: make check T=lanczos
	+@$(MAKE) --no-print-directory run-tests tests="$(filter %/test_$(T) %/test_$(T).f32 $(BUILD)/tests/$(T)/%,$(all_tests))"
# The tables of the READMEs, from those of the code.
docs: $(BUILD)/tests/docs/test_docs $(programs) ## write the READMEs' tables from the code
	@KS_DOCS=write KS_BIN=$(BUILD)/bin $<
# The pages as they are in this tree. Python-Markdown ends a list at a comment only if lines are empty around it, a
# website has no listings of folders, and Debian's mkdocs asks for jQuery by another name than it has.
site: ## build the website of all pages, build/site (needs mkdocs)
	@command -v mkdocs >/dev/null && [ -e /usr/share/javascript/jquery/jquery.min.js ] || \
	    { echo 'missing: apt-get install mkdocs libjs-jquery' >&2; exit 1; }
	@rm -rf build/pages && mkdir -p build/pages
	@git ls-files --cached --others --exclude-standard | xargs cp --parents -t build/pages
	@find build/pages -name '*.md' -exec sed -i 's/^<!-- .* -->$$/\n&\n/' {} +
	@find build/pages -type d | while read -r folder; do [ -e "$$folder/README.md" ] || (cd "$$folder" && \
	    ls | sed 's|.*|<li><a href="&">&</a>|; 1i <!DOCTYPE html><meta charset="utf-8"><ul>' >../listing && mv ../listing index.html); done
	@mkdir build/pages/js && cp /usr/share/javascript/jquery/jquery.min.js build/pages/js/jquery-3.6.0.min.js
	@mkdocs build --quiet
	@echo 'build/site/index.html; with search: python3 -m http.server --directory build/site'
study: deps ## set up, compile, then run the study STUDY: trainings, spectra, plots and report
	+@$(build) programs
	$(BUILD)/bin/kappascope study $(STUDY)
	@$(MAKE) --no-print-directory further

# What the larger studies take on this machine, measured side by side, as a study's jobs run, in about a minute.
further:
	@echo; echo 'To go on (configs/README.md describes the studies; times of this machine, measured now for about a minute):'
	@for study in $(larger); do \
	    { printf '  make study STUDY=%-8s ' $$study; $(BUILD)/bin/kappascope study $$study --dry-run | \
	      sed -n 's/^# *\(time, one job\|with [0-9]* jobs\)[^:]*: //p' | tail -n 1; } >$(BUILD)/further.$$study & \
	done; wait; cd $(BUILD) && cat $(larger:%=further.%); rm -f $(larger:%=further.%)
larger = $(filter-out $(STUDY),small trot dogtrot)

# Programs find installed files relative to their own folder. MuJoCo and the models are installed only if
# their folders are those of `make deps` and `make deps-myosuite`.
root    = $(DESTDIR)$(abspath $(PREFIX))
bundled = $(root)/lib/kappascope
comma  := ,
# A manual page from the text that a command prints.
page    = $(1) | awk -v version=$(version) -f src/programs/man.awk >$(root)/share/man/man1/$(2).1
install: all ## install programs, library and studies into DESTDIR/PREFIX
	@$(MAKE) --no-print-directory libraries
	@mkdir -p $(root)/bin $(root)/include $(root)/lib/pkgconfig $(root)/share/kappascope/configs \
	    $(root)/share/kappascope/plots $(root)/share/man/man1
	@install $(programs) $(root)/bin
	@install -m 644 include/kappascope.h include/kappascope_env.h $(root)/include
	@install -m 644 $(shared) $(static) $(root)/lib
	@ln -sf $(notdir $(shared)) $(root)/lib/$(soname) && ln -sf $(soname) $(root)/lib/libkappascope.so
	@sed 's|@PREFIX@|$(abspath $(PREFIX))|; s|@VERSION@|$(version)|' analysis/library/kappascope.pc.in \
	    >$(root)/lib/pkgconfig/kappascope.pc
	@install -m 644 configs/*.study $(root)/share/kappascope/configs
	@install -D -m 644 -t $(root)/share/kappascope/configs/tasks configs/tasks/*
	@install -D -m 644 -t $(root)/share/kappascope/configs/arch configs/arch/*
	@install -D -m 644 -t $(root)/share/kappascope/configs/systems configs/systems/*
	@install -D -m 644 -t $(root)/share/kappascope/configs/slurm configs/slurm/*
	@install -m 644 plots/*.gp plots/*.html plots/report.css plots/report.js $(root)/share/kappascope/plots
	@install -D -m 644 -t $(root)/share/kappascope/plots/gallery plots/gallery/critics.csv
	@install -D -m 644 -t $(root)/share/kappascope/python analysis/python/*.py
	@install -D -m 644 -t $(root)/share/kappascope/python/kappascope analysis/python/kappascope/*.py
	@install -m 644 LICENSE $(root)/share/kappascope
	@for p in $(notdir $(programs)); do $(call page,$(BUILD)/bin/$$p --help,$$p) || exit 1; done
	@$(call page,sed -n '/^HELP = /$(comma)/^"""/{//!{s/\\\\/\\/;p}}' analysis/python/kappascope/import_program.py,kappascope-import)
ifeq ($(MUJOCO_DIR),$(CURDIR)/$(DEPS)/mujoco)
	@mkdir -p $(bundled)/mujoco && install -m 644 $(LIBMUJOCO) $(MUJOCO_DIR)/LICENSE* $(bundled)/mujoco
	@ln -sf mujoco/$(notdir $(LIBMUJOCO)) $(bundled)/libmujoco.so
endif
ifeq ($(DM_CONTROL_DIR),$(CURDIR)/$(DEPS)/dm_control)
	@mkdir -p $(bundled) && cp -R $(DM_CONTROL_DIR) $(bundled)
endif
ifeq ($(GYMNASIUM_DIR),$(CURDIR)/$(DEPS)/gymnasium)
	@mkdir -p $(bundled) && cp -R $(GYMNASIUM_DIR) $(bundled)
endif
ifeq ($(MYOSUITE_DIR),$(CURDIR)/$(DEPS)/myosuite)
	@[ ! -d $(MYOSUITE_DIR) ] || { mkdir -p $(bundled) && cp -R $(MYOSUITE_DIR) $(bundled); }
endif
	@echo "installed in $(root), compiled with $(CFLAGS)$(if $(findstring native,$(CFLAGS)),: for processors like this one)"
uninstall: ## remove what install has installed
	@rm -f $(addprefix $(root)/bin/,$(notdir $(programs))) $(root)/include/kappascope.h $(root)/include/kappascope_env.h \
	    $(root)/lib/libkappascope.* $(root)/lib/pkgconfig/kappascope.pc $(root)/share/man/man1/kappascope*.1
	@rm -rf $(root)/share/kappascope $(bundled)

# For all ARM processors of 64 bits, or all of x86-64 with AVX2 (x86-64-v3, a name that GCC 10 does not know), so that
# neither a wheel nor a number of instructions depends on this one.
portable_x86_64 := -mcx16 -msahf -mpopcnt -mavx2 -mfma -mbmi -mbmi2 -mf16c -mlzcnt -mmovbe -mxsave
portable := -O3 $(portable_$(shell uname -m)) -ffp-contract=fast -fno-math-errno
wheel: deps ## make two wheels for pip in build/wheel: kappascope, and kappascope_train with what only trainings need
	+@CFLAGS='$(portable)' analysis/python/wheel.sh $(BUILD)/wheel

bench: deps ## run the benchmarks
	@$(MAKE) --no-print-directory run-benches
run-benches: $(benches)
	@for b in $^; do env -u OPENBLAS_CORETYPE $$b || exit 1; done
# The object files are the wheel's, too.
instructions: deps ## compare the instructions of a product and of updates with those on record
	+@$(build) $(BUILD)/wheel/bench/instructions BUILD=$(BUILD)/wheel CFLAGS='$(portable)'
	@tests/bench/instructions.sh $(BUILD)/wheel/bench/instructions
bench-peers: ## compare the speed with PyTorch and JAX
	@BUILD=$(BUILD) tests/bench/peer/run.sh
	@BUILD=$(BUILD) tests/bench/peer/run.sh update
bench-answers: ## compare answers with other programs on the checkpoints CHECKPOINTS
	@BUILD=$(BUILD) tests/bench/peer/answers.sh $(CHECKPOINTS)
# Without the tests that repeat analyses to count how often statements hold, and those that start programs
# hundreds of times. `make nightly` runs these, too.
unsanitized = coverage extreme_bound share_coverage mass loss_interval search stopping plot resume audit_training \
              study_program study_run elsewhere learning claim_starts
sanitize: ## run the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	+@OMP_NUM_THREADS=1 $(MAKE) test BUILD=build/sanitize without="$(unsanitized)" \
	    CFLAGS="-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined"
# Whether all files of the programs agree on functions and variables (the macro KS() in core/real.h): on numbers, and
# structs passed by value. GCC does not compare what pointers point to; for that, types of both precisions have two names.
lto: ## check that all files agree on their types
	+@$(build) programs BUILD=build/lto CFLAGS="-O1 -flto=$(JOBS) -Wlto-type-mismatch -Werror"
# ThreadSanitizer needs to see how OpenMP's threads wait for each other: LLVM's library tells it by libarcher, GCC's
# does not. Three threads everywhere, also on fewer cores.
threaded := operators/test_hessian operators/test_gradient_bounds operators/test_null operators/test_operator \
            lanczos/test_lanczos agent/test_agent train/test_run results/test_aggregate study/test_graph_changes \
            library/test_library programs/test_blocks programs/test_analyze_output programs/test_train
threads: deps ## run tests of products, Lanczos and training under ThreadSanitizer
	+@OMP_NUM_THREADS=3 OMP_TOOL_LIBRARIES=$$(dirname $$(realpath $$(command -v clang)))/../lib/libarcher.so \
	    TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
	    $(build) run-tests BUILD=build/threads CC=clang CFLAGS="-O1 -g -fsanitize=thread" defs= \
	    tests="$(threaded:%=build/threads/tests/%)"
nightly: ## run the checks that take long and rarely fail
	@.ci/nightly
coverage: ## print which share of the lines the tests run
	+@$(MAKE) test BUILD=build/coverage CFLAGS="-O0 -g --coverage -DKS_COVERAGE"
	@cd build/coverage && find . -name '*.gcno' | grep -v /tests/ | xargs gcov -r -s $(CURDIR) 2>/dev/null \
	    | grep -A1 "^File '[sa]" | paste - - - | sort
# Without clang's analysis of paths, which takes minutes: `make lint tidy=` has it, too.
tidy := --checks=-clang-analyzer-*
lint: deps ## check format, cppcheck and clang-tidy
	@clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h')
	cppcheck --quiet -j$(JOBS) --error-exitcode=1 --enable=warning,portability --inline-suppr -Isrc -Ianalysis -Iinclude \
	    --std=c11 src analysis include
	@$(MAKE) --no-print-directory --keep-going -j$(JOBS) \
	    $(patsubst %,tidy/%,$(foreach d,$(once) $(single) $(twice),$(wildcard $(d)/*.c)) $(mains))
tidy/%:
	@clang-tidy --quiet $(tidy) $* -- $(CPPFLAGS) $(if $(filter $(single:%=%/%),$*),-DKS_SINGLE)
format: ## format all C files
	clang-format -i $$(git ls-files '*.c' '*.h')
clean: ## remove BUILD
	rm -rf $(BUILD)

-include $(wildcard $(foreach d,src analysis tests,$(BUILD)/$(d)/*/*.d $(BUILD)/$(d)/*/*/*.d))
