# SPDX-License-Identifier: Apache-2.0
# stratus: one Makefile for everything. `make help` lists the targets, from their comments, and these variables:
#
#   V=1                 show the commands
#   SAN=address|thread  build with sanitizers, below build/san-<name>; SAN=fuzz: for tests/fuzz, by clang
#   BUILD=dir           where everything that is made goes
#   PREFIX, DESTDIR     of install and uninstall: /usr/local, and a directory to stage below
#   LIBDIR=lib          below PREFIX: where links let NCCL find the plugins by name; empty: no links
#   ARCH=aarch64        another processor, by Debian's cross compiler, below build/aarch64
#   GLIBC=2.28          the oldest glibc on which plugins and tools load; empty: this machine's own
#   WERROR=1            warnings are errors, as in our CI

SAN ?=
HOST_ARCH := $(shell uname -m)
ARCH ?= $(HOST_ARCH)
CROSS := $(if $(filter-out $(HOST_ARCH),$(ARCH)),$(ARCH)-linux-gnu)
BUILD ?= build$(if $(CROSS),/$(ARCH))$(if $(SAN),/san-$(SAN))
PREFIX ?= /usr/local
LIBDIR ?= lib
V ?= 0
WERROR ?=
ifneq ($(words $(BUILD)),1)
  $(error BUILD=$(BUILD): make takes one directory, without a blank in its name)
endif
Q := $(if $(filter 0,$(V)),@)

CC = $(if $(filter fuzz,$(SAN)),clang,$(CROSS:%=%-)gcc)
CXX = $(CROSS:%=%-)g++
AR = $(CROSS:%=%-)ar
OBJCOPY = $(CROSS:%=%-)objcopy
# Sanitizers want stack traces, not variables; their builds are half of what the tests take to compile.
CFLAGS ?= $(if $(SAN),-O1 -g1,-O2 -g)
WARNINGS = -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(if $(filter-out 0,$(WERROR)),-Werror)
SAN_FLAGS_address = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SAN_FLAGS_thread = -fsanitize=thread -fno-omit-frame-pointer
# engine_assert_locked (net_plugin/engine/engine.h).
CHECKED = $(if $(SAN),-DSTRATUS_CHECKED)
# clang counts changes of sign to -Wconversion, gcc does not.
SAN_FLAGS_fuzz = -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
  -fno-omit-frame-pointer -Wno-sign-conversion
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(CFLAGS) $(WARNINGS) $(SAN_FLAGS_$(SAN)) $(CHECKED) -fPIC \
  -fvisibility=hidden -ffunction-sections -fdata-sections -pthread -I. '-ffile-prefix-map=$(CURDIR)=.' $(CROSS_CFLAGS) -MMD -MP
# -z nodelete: NCCL unloads plugins at moments that differ per release; code must stay mapped.
# --gc-sections: a training process carries no function that it cannot call.
PLUGIN_LDFLAGS = -shared -Wl,-z,nodelete -Wl,--exclude-libs,ALL -Wl,--gc-sections \
  $(if $(SAN),,-Wl$(comma)-z$(comma)defs)
comma := ,
SYSTEM_LIBS = $(STATIC_A) -ldl -lm
# Linked statically, so that plugins and tools run where they are not installed.
STATIC_A := $(patsubst %,$(BUILD)/obj/static/lib%.a,jansson hwloc)

# ---- the oldest glibc: what users get is linked against stand-ins for it (scripts/glibc-floor) ----

# 2.28 is RHEL 8's; distributions that NCCL's users have are that old. Sanitizers need this machine's glibc.
# Without python3 there are no stand-ins nor man pages; `man` says so.
PYTHON := $(shell command -v python3)
GLIBC ?= $(if $(SAN),,$(if $(PYTHON),2.28))
GLIBC_DIR := $(if $(GLIBC),$(BUILD)/glibc-$(GLIBC))
FLOOR_MADE := $(GLIBC_DIR:%=%/libc.so)
# Before glibc 2.34 threads and dlopen() are in files of their own, which must be loaded then.
FLOOR = $(if $(GLIBC),-L$(GLIBC_DIR) -Wl$(comma)--no-as-needed -lpthread -ldl)
# A tool's start is the compiler's, so newer than the floor.
TOOL_START = $(if $(GLIBC),$(call objects,common/old_glibc_start.c))
TOOL_FLOOR = $(FLOOR) $(if $(GLIBC),-Wl$(comma)--wrap=__libc_start_main)

# ---- another processor: libraries of its Debian packages, programs run by QEMU ----

CROSS_DIR := $(if $(CROSS),$(BUILD)/debian)
CROSS_CFLAGS = $(if $(CROSS),-isystem $(CROSS_DIR)/usr/include -isystem $(CROSS_DIR)/usr/include/$(CROSS))
CROSS_LDFLAGS = $(if $(CROSS),-L$(CROSS_DIR)/usr/lib/$(CROSS))

# ---- sources, found by wildcard: a new file needs no edit here ----

sources = $(sort $(foreach dir,$(1),$(wildcard $(dir)/*.c)))
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

COMMON_SRC := $(filter-out common/old_glibc_start.c common/static_calls.c,$(call sources,common))
NET_SRC := $(call sources,$(addprefix net_plugin/,abi collnet plugin setup observe connection engine lane lane/tcp lane/rdma link codec policy reduce))
TUNER_SRC := $(call sources,$(addprefix tuner_plugin/,abi plugin decide))
MODEL_SRC := $(call sources,tuner_plugin/model)
NET_TOOL_SRC := $(call sources,$(addprefix net_plugin/,tools tools/perf tools/probe))
TUNER_TOOL_SRC := $(call sources,$(addprefix tuner_plugin/,tools tools/calibrate))
TOOL_SRC := $(call sources,common/tools) $(NET_TOOL_SRC) $(TUNER_TOOL_SRC)

NET_PLUGIN := $(BUILD)/lib/libnccl-net-stratus.so
TUNER_PLUGIN := $(BUILD)/lib/libnccl-tuner-stratus.so
STRATUS := $(BUILD)/bin/stratus
MAN := $(addprefix $(BUILD)/man/,stratus.7 stratus.1)
COMPLETION := common/tools/completion/stratus
ifeq ($(PYTHON),)
  MAN :=
endif

all: $(NET_PLUGIN) $(TUNER_PLUGIN) $(STRATUS) man ## plugins, command, man pages (the default)

help: ## this list
	@sed -n 's/^# \( *[A-Z]*[=,].*\)/\1/p' Makefile
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-20s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BUILD)/glibc-%/libc.so: scripts/glibc-floor
	$(Q)scripts/glibc-floor $* $(CC) $(@D)

ifneq ($(CROSS),)
# The suite is this machine's: static libraries go with the C library that its cross compiler has.
$(CROSS_DIR)/packages:
	$(Q)scripts/fetch-packages $(shell . /etc/os-release && echo $$VERSION_CODENAME) $(CROSS_DEBIAN_$(ARCH)) $(@D) \
	  libcmocka-dev libhwloc-dev libibverbs-dev libjansson-dev librdmacm-dev \
	  libcmocka0 libibverbs1 librdmacm1 libnl-3-200 libnl-route-3-200
CROSS_DEBIAN_aarch64 = arm64
endif

# Debian's, with names of ours for what they shall not find outside of themselves (common/static_calls.c). They are not made
# for shared objects: they take variables of other libraries for near ones. The file beside each says where it is from.
STATIC_RENAMED = getenv stdin stderr stdout program_invocation_name
$(STATIC_A): $(call objects,common/static_calls.c) Makefile | $(if $(CROSS),$(CROSS_DIR)/packages)
	@mkdir -p $(@D)
	$(Q)$(if $(CROSS),echo $(CROSS_DIR)/usr/lib/$(CROSS)/$(@F),$(CC) -print-file-name=$(@F)) >$@.from
	$(Q)$(OBJCOPY) $(foreach name,$(STATIC_RENAMED),--redefine-sym $(name)=static_$(name)) "$$(cat $@.from)" $@
	$(if $(filter %hwloc.a,$@),$(Q)$(AR) rcs $@ $<)

$(BUILD)/obj/%.o: %.c | $(if $(CROSS),$(CROSS_DIR)/packages)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC      $<")
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@

# Every variant of a sum has the same bits: no multiplication and addition in one, rounded once.
$(BUILD)/obj/net_plugin/reduce/%.o: ALL_CFLAGS += -ffp-contract=off

define link
@mkdir -p $(@D)
$(if $(Q),@echo "  LINK    $@")
$(Q)$(CC) $(SAN_FLAGS_$(SAN)) $(FAST) $(CROSS_LDFLAGS) -pthread -Wl,--build-id=sha1 $(LINK_MAP) -o $@
endef

# For the list of what is linked statically.
$(NET_PLUGIN) $(TUNER_PLUGIN) $(STRATUS): LINK_MAP = -Wl,-Map=$(BUILD)/obj/$(@F).map

# An empty library that needs the net plugin, and is linked before there is one (net_plugin/plugin/default_name.h).
EMPTY_LDFLAGS = -shared -nostdlib -s -Wl,--build-id=none -Wl,-z,norelro -Wl,-z,noseparate-code -Wl,--no-as-needed
NET_NAME := libnccl-net-stratus.so
DEFAULT_NAME := $(BUILD)/obj/default_name/libnccl-net.so
$(DEFAULT_NAME): Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(EMPTY_LDFLAGS) -Wl,-soname,$(NET_NAME) -o $(@D)/$(NET_NAME) -x c /dev/null
	$(Q)$(CC) $(EMPTY_LDFLAGS) -Wl,-soname,$(@F) -o $@ -x c /dev/null -x none $(@D)/$(NET_NAME)
$(call objects,net_plugin/plugin/default_name.c): $(DEFAULT_NAME)
$(call objects,net_plugin/plugin/default_name.c): ALL_CFLAGS += '-DDEFAULT_NAME_LIBRARY="$(DEFAULT_NAME)"'

$(NET_PLUGIN): $(call objects,$(COMMON_SRC) $(NET_SRC)) net_plugin/abi/exports.map | $(FLOOR_MADE) $(STATIC_A)
	$(link) $(PLUGIN_LDFLAGS) -Wl,-soname,$(NET_NAME) -Wl,--version-script=net_plugin/abi/exports.map $(filter %.o,$^) $(SYSTEM_LIBS) $(FLOOR)

$(TUNER_PLUGIN): $(call objects,$(COMMON_SRC) $(TUNER_SRC)) tuner_plugin/abi/exports.map | $(FLOOR_MADE) $(STATIC_A)
	$(link) $(PLUGIN_LDFLAGS) -Wl,--version-script=tuner_plugin/abi/exports.map $(filter %.o,$^) $(SYSTEM_LIBS) $(FLOOR)

# Everything but main functions: what tools and tests link against; and what has nothing of the plugins.
STRATUS_A := $(BUILD)/obj/libstratus.a
COMMON_A := $(BUILD)/obj/libcommon.a
$(STRATUS_A): $(call objects,$(COMMON_SRC) $(NET_SRC) $(TUNER_SRC) $(MODEL_SRC))
$(COMMON_A): $(call objects,$(COMMON_SRC))
$(STRATUS_A) $(COMMON_A): | $(STATIC_A)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(STRATUS): $(call objects,$(TOOL_SRC)) $(TOOL_START) $(STRATUS_A) | $(FLOOR_MADE)
	$(link) $^ $(SYSTEM_LIBS) $(TOOL_FLOOR)

# ---- man pages, from what the tools print for -h ----

# As this machine can run them.
RUNNABLE_DIR := $(BUILD)/$(if $(CROSS),emulated,bin)
RUNNABLE := $(RUNNABLE_DIR)/stratus

$(BUILD)/emulated/%: $(BUILD)/bin/%
	@mkdir -p $(@D)
	$(Q)printf '#!/bin/sh\nexec qemu-$(ARCH) -L /usr/$(CROSS) '\''%s'\'' "$$@"\n' '$(abspath $<)' >$@ && chmod +x $@

ifneq ($(PYTHON),)
$(MAN) &: scripts/gen-man scripts/gen-docs $(wildcard docs/man/*.in) $(RUNNABLE)
	$(if $(Q),@echo "  GEN     $(BUILD)/man")
	$(Q)scripts/gen-man $(RUNNABLE) $(BUILD)/man
endif

man: $(MAN) ## man pages alone
	@$(if $(PYTHON),:,echo "no python3: no man pages; plugins and tools need $(if \
	  $(GLIBC),glibc $(GLIBC),this machine's glibc or a newer one)")

# ---- install and uninstall: one list of what goes where ----

# $(call place,DIRECTORY below PREFIX,MODE,FILES)
place = $(eval PLACES += $(1))$(eval MODE_$(1) := $(2))$(eval FILES_$(1) := $(3))
$(call place,lib/stratus,755,$(NET_PLUGIN) $(TUNER_PLUGIN))
$(call place,bin,755,$(STRATUS))
$(call place,share/stratus/profiles,644,$(wildcard tuner_plugin/profiles/*.profile))
$(call place,share/man/man1,644,$(filter %.1,$(MAN)))
$(call place,share/man/man7,644,$(filter %.7,$(MAN)))
$(call place,share/bash-completion/completions,644,$(COMPLETION))
# In a directory of their own, which can stand in LD_LIBRARY_PATH without others' libraries; links are where the loader looks.
# RCCL prefixes its own name to that of a plugin.
rccl_links = $(subst libnccl-,librccl-,$(notdir $(FILES_lib/stratus)))
loader_links = $(if $(LIBDIR),$(addprefix $(LIBDIR)/,$(notdir $(FILES_lib/stratus)) $(rccl_links)))
installed = $(foreach place,$(PLACES),$(addprefix $(place)/,$(notdir $(FILES_$(place))))) $(loader_links) \
  $(addprefix lib/stratus/,$(rccl_links))

define install_place
$(if $(Q),@echo "  INSTALL $(DESTDIR)$(PREFIX)/$(1)")
$(Q)install -d "$(DESTDIR)$(PREFIX)/$(1)" && install -m $(MODE_$(1)) $(FILES_$(1)) "$(DESTDIR)$(PREFIX)/$(1)/"

endef

install: may-install all ## everything, to DESTDIR PREFIX
	$(foreach place,$(PLACES),$(if $(FILES_$(place)),$(call install_place,$(place))))
	$(Q)cd "$(DESTDIR)$(PREFIX)/lib/stratus" && for link in $(rccl_links); do ln -sf "libn$${link#libr}" $$link; done
	$(if $(LIBDIR),$(Q)cd "$(DESTDIR)$(PREFIX)" && install -d $(LIBDIR) && ln -srft $(LIBDIR) lib/stratus/*)

# Asked before anything is built: of the directories that are there, the one below which install would write.
may-install:
	@there="$(DESTDIR)$(PREFIX)"; while ! test -e "$$there"; do there=$$(dirname "$$there"); done; \
	  test -d "$$there" -a -w "$$there" || { echo "make install: $$there cannot be written: sudo make install," \
	    'or a place of your own: make install PREFIX=$$HOME/.local' >&2; exit 1; }

# Directories that others use as well stay; below DESTDIR, where there are no others, empty ones go.
uninstall: ## remove what install put there, and nothing else
	$(Q)! cd "$(DESTDIR)$(PREFIX)" 2>/dev/null || rm -f $(installed)
	$(Q)cd "$(DESTDIR)/" && rmdir $(if $(DESTDIR),-p) --ignore-fail-on-non-empty 2>/dev/null \
	  $(patsubst %,"$(PREFIX:/%=%)/%",share/stratus/profiles share/stratus lib/stratus \
	  $(if $(DESTDIR),$(PLACES) $(LIBDIR))) || true

# ---- packages, in $(BUILD)/dist: scripts/packaging ----

PACKAGES := deb rpm tarball wheel

stage: all
	$(Q)rm -rf $(BUILD)/stage
	$(Q)$(MAKE) --no-print-directory install DESTDIR=$(BUILD)/stage PREFIX=/usr LIBDIR= >/dev/null

$(PACKAGES): stage
	$(Q)scripts/package $(BUILD) $@

deb: ## a package for Debian and Ubuntu
rpm: ## one for RHEL, Fedora and SUSE
tarball: ## one to unpack anywhere
wheel: ## one for pip

dist: stage ## all of these, the source, and their hashes
	$(Q)rm -rf $(BUILD)/dist
	$(Q)scripts/package $(BUILD) $(PACKAGES) source
	$(Q)cd $(BUILD)/dist && LC_ALL=C sha256sum * >SHA256SUMS

.PHONY: stage dist $(PACKAGES)

# For editors: how each file is compiled, as clangd reads it.
compile_commands.json: Makefile
	$(file >$@,[)
	$(foreach each,$(filter-out %:,$(shell git ls-files '*.c')),$(file >>$@,{"directory": "$(CURDIR)", "file": "$(each)", \
	  "command": "$(CC) $(subst ",\",$(ALL_CFLAGS)) -c $(each)"}$(comma)))
	$(file >>$@,{"directory": "$(CURDIR)", "file": "Makefile", "command": "true"}])
	@echo "  GEN     $@"

clean: ## remove what was built; downloaded packages stay
	rm -rf $(filter-out $(BUILD)/nccl,$(wildcard $(BUILD)/*))

# ---- tests; tests/README.md names them all ----

test: $(if $(T),,tests-sim) ## unit tests and simulation, without root; T=wire: one module
	$(Q)tests/unit/run $(if $(SAN),SAN=$(SAN)) $(T)
	$(if $(T),,$(Q)$(SIM) --runs 1000)

check: ## all tests, as our CI runs them; installs what is missing, root for network namespaces
	$(Q)WERROR=1 scripts/check

nightly: ## all of check, and what takes hours: fuzzing, soak, all cases, the other NCCL, 100,000 schedules
	$(Q)WERROR=1 scripts/check --nightly

# ---- unit tests: tests/unit/test_<module>.c, one program each; `make test T=MODULE` runs one ----

# ThreadSanitizer: those that start threads, as tests/unit/run finds, but for those of the night.
UNIT_SRC := $(if $(filter thread,$(SAN)),$(patsubst %,tests/unit/test_%.c,$(shell grep -v night tests/unit/threaded)),$(call sources,tests/unit))
TEST_LIB_SRC := $(call sources,tests/lib)
# What stands in for others' functions has their parameters; likewise fixtures.
$(BUILD)/obj/tests/%.o: ALL_CFLAGS += -Wno-unused-parameter
# With sanitizers a test takes longer to compile than to run.
$(BUILD)/obj/tests/unit/%.o: ALL_CFLAGS += $(if $(SAN),-O0)
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SRC))
# tests/lib/fault*.c stand between our objects and the allocator and the kernel.
FAULT_WRAP := $(patsubst %,-Wl$(comma)--wrap=%,malloc calloc realloc reallocarray strdup strndup vasprintf asprintf open_memstream posix_memalign \
  aligned_alloc tsearch mmap munmap socket setsockopt getsockopt getsockname getpeername bind listen accept4 connect \
  send sendmsg sendto recv recvmsg getaddrinfo epoll_create1 epoll_ctl epoll_wait poll ppoll eventfd \
  signalfd timerfd_create pipe pipe2 socketpair fork pthread_create pthread_cond_init pthread_mutex_init \
  pthread_condattr_init pthread_setaffinity_np setrlimit getrlimit getrandom open openat fopen fdopen opendir \
  fdopendir scandir read pread readlink write rename stat lstat fstat fstatat mkdir dlopen dlsym)

# What takes half of the time to link many programs, where there is one.
FAST_LINKER := $(if $(shell command -v ld.gold),-fuse-ld=gold)
$(BUILD)/tests/test_% $(BUILD)/fuzz/fuzz_%: FAST := $(if $(filter address thread,$(SAN)),$(FAST_LINKER))

# A library: what a program does not use would be most of it, and half of what building the tests takes.
TEST_LIB_A := $(BUILD)/obj/libtest.a
$(TEST_LIB_A): $(call objects,$(TEST_LIB_SRC))
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/tests/test_%: $(BUILD)/obj/tests/unit/test_%.o $(TEST_LIB_A) $(STRATUS_A)
	$(link) $(FAULT_WRAP) $(filter %.o,$^) -Wl,--start-group $(TEST_LIB_A) $(STRATUS_A) $(SYSTEM_LIBS) -Wl,--end-group -lcmocka

# Stands between auth and common/hash.
$(BUILD)/tests/test_trust: FAULT_WRAP += $(patsubst %,-Wl$(comma)--wrap=hash_%,hmac_sha256 hkdf_extract hkdf_expand)

# Sees the nonces.
$(BUILD)/tests/test_dial: FAULT_WRAP += -Wl,--wrap=handshake_finish

# Parts of the command.
$(BUILD)/tests/test_perf: $(BUILD)/obj/tests/unit/test_perf.o $(BUILD)/obj/tests/lib/unit.o \
  $(filter-out %/stratus.o,$(call objects,$(TOOL_SRC))) $(STRATUS_A)
	$(link) $^ -lcmocka $(SYSTEM_LIBS)

$(addprefix $(BUILD)/tests/test_,calibrate ab_test): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o \
  $(call objects,$(TUNER_TOOL_SRC) $(addprefix tests/lib/,tool.c tree.c unit.c)) $(STRATUS_A) | $(RUNNABLE)
	$(link) $^ -lcmocka $(SYSTEM_LIBS)

# Runs the tool.
$(addprefix $(BUILD)/tests/test_,compare tuner_tool net_tool): | $(RUNNABLE)
$(BUILD)/tests/test_net_tool: | $(NET_PLUGIN)
$(BUILD)/tests/test_launch_agent: $(call objects,common/tools/launch_agent.c common/tools/program_path.c)
$(BUILD)/tests/test_doctor: $(call objects,$(addprefix net_plugin/tools/,doctor_host.c doctor_nics.c))
$(BUILD)/tests/test_stats_source: $(call objects,net_plugin/tools/stats_source.c)
$(BUILD)/tests/test_stats_text: $(call objects,$(addprefix net_plugin/tools/,document.c stats_print.c))

tests-unit: $(UNIT_TESTS) ## unit tests, to be run by tests/unit/run

# ---- deterministic simulation of the protocol core ----

SIM_SRC := $(call sources,tests/sim)
SIM := $(if $(SIM_SRC),$(BUILD)/tests/sim)
$(BUILD)/tests/sim: $(call objects,$(SIM_SRC) tests/lib/link_check.c) $(STRATUS_A)
	$(link) $^ $(SYSTEM_LIBS)

tests-sim: $(SIM) ## build/tests/sim: the protocol under simulated faults

# ---- collectives and training steps through NCCL: tests/coll ----

COLL := $(BUILD)/tests/coll/coll
COLL_OBJ := $(call objects,$(call sources,tests/coll tests/coll/replay tests/coll/stress))
# Measures plugins from outside, so it has none of their objects.
COLL_PARTS := $(filter-out %/main.o,$(COLL_OBJ)) $(COMMON_A)
# As nccl-tests' programs are called: the name is the operation.
COLL_NAMES := $(patsubst %,$(BUILD)/tests/coll/%_perf,all_reduce all_gather reduce_scatter)
COLL_FAULTY := $(BUILD)/tests/coll/libnccl-faulty.so

# The emulated GPU's NCCL, where LD_LIBRARY_PATH has none.
COLL_RUNPATH := -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/../../fake_cuda/lib/sid:$$ORIGIN/../../fake_cuda/lib/trixie'

$(COLL): $(COLL_OBJ) $(COMMON_A)
	$(link) $^ $(SYSTEM_LIBS) $(COLL_RUNPATH)

$(COLL_NAMES): $(COLL)
	$(Q)ln -sf $(<F) $@

# An NCCL with faults, for LD_PRELOAD.
$(COLL_FAULTY): $(call objects,tests/coll/faulty/faulty_nccl.c tests/coll/element.c)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK    $@")
	$(Q)$(CC) -shared $(SAN_FLAGS_$(SAN)) -o $@ $^ -ldl -lm

coll: all $(COLL) $(COLL_NAMES) $(COLL_FAULTY) ## build/tests/coll/coll: collectives and training steps
.PHONY: coll

# ---- simulation of many hosts: tests/scale ----

SCALE := $(BUILD)/tests/scale
SCALE_SRC := $(call sources,tests/scale)
# Workloads, plans and counts of collectives are those of tests/coll.
$(SCALE): $(call objects,$(SCALE_SRC)) $(filter %.o,$(COLL_PARTS)) $(STRATUS_A)
	$(link) $(filter %.o,$^) $(STRATUS_A) $(SYSTEM_LIBS)

$(BUILD)/tests/test_scale_%: $(BUILD)/obj/tests/unit/test_scale_%.o $(BUILD)/obj/tests/lib/unit.o \
  $(filter-out %/main.o,$(call objects,$(SCALE_SRC)) $(COLL_OBJ)) $(STRATUS_A)
	$(link) $(filter %.o,$^) $(STRATUS_A) -lcmocka $(SYSTEM_LIBS)

tests-scale: $(SCALE) ## build/tests/scale: training steps on up to 1024 simulated hosts

# ---- what the codec costs and gains: build/tests/codec-speed FILE... ----

CODEC_SPEED := $(BUILD)/tests/codec-speed
$(CODEC_SPEED): $(call objects,tests/codec/speed.c) $(STRATUS_A)
	$(link) $^ $(SYSTEM_LIBS)

codec-speed: $(CODEC_SPEED) ## build/tests/codec-speed: GB/s and ratio of the codec's forms
.PHONY: codec-speed

# ---- net_plugin/reduce alone, for tests/reduce/train ----

$(BUILD)/tests/reduce/libexchange.so: $(call objects,tests/reduce/exchange.c $(call sources,net_plugin/reduce))
	$(link) -shared $^ -lm

reduce-tests: $(BUILD)/tests/reduce/libexchange.so ## what tests/reduce/train uses
.PHONY: reduce-tests

# ---- fuzz targets: tests/fuzz/fuzz_<name>.c, one program each; tests/fuzz/run runs them ----

FUZZ_TARGETS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

# By the usual compiler: what runs kept inputs alone.
FUZZ_REPLAY = $(if $(filter fuzz,$(SAN)),,$(call objects,tests/fuzz/replay.c))
$(BUILD)/fuzz/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(FUZZ_REPLAY) $(STRATUS_A)
	$(link) $(if $(FUZZ_REPLAY),,-fsanitize=fuzzer) $(filter %.o,$^) $(STRATUS_A) $(SYSTEM_LIBS)

$(addprefix $(BUILD)/fuzz/fuzz_,link stream): $(call objects,tests/lib/link_check.c)
# Parts of the tools.
$(BUILD)/fuzz/fuzz_stats: $(call objects,$(addprefix net_plugin/tools/,document.c stats_print.c))

fuzz-targets: $(FUZZ_TARGETS)

# Another compiler, and so another directory and another make.
fuzz: ## fuzz targets, by clang; tests/fuzz/run runs them
	$(Q)$(MAKE) SAN=fuzz fuzz-targets

.PHONY: fuzz fuzz-targets

# ---- stand-in NCCL hosts that load the built plugins ----
#
# It sees of a plugin what NCCL does, the file, and so is not linked with any of its objects.

STAND_INS := $(addprefix $(BUILD)/tests/,abi_nccl.so librccl_abi.so abi_ncclx.so)
$(BUILD)/tests/abi_nccl.so: $(call objects,tests/abi/stand_in/libnccl.c)
$(BUILD)/tests/librccl_abi.so: $(call objects,tests/abi/stand_in/librccl.c)
$(BUILD)/tests/abi_ncclx.so: $(call objects,tests/abi/stand_in/libncclx.c)
$(STAND_INS):
	$(link) -shared $^

$(BUILD)/tests/abi: $(call objects,$(call sources,tests/abi) tests/coll/element.c tests/coll/pattern.c) | $(STAND_INS)
	$(link) -rdynamic $^ -lcmocka -ldl

tests-abi: $(BUILD)/tests/abi ## stand-ins for NCCL, to be run by tests/abi/run
.PHONY: tests-abi

# ---- plugins for tests/netns/perf: ours with faults; with an interface that is too old ----

PERF_PLUGINS := $(patsubst %,$(BUILD)/tests/perf/libnccl-net-%.so,v10 faulty)
$(PERF_PLUGINS): $(BUILD)/tests/perf/libnccl-net-%.so: tests/netns/perf_plugin.c net_plugin/abi/net_abi.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -shared \
	  -DVERSION=$(if $(filter faulty,$*),12 -DIS_FAULTY=1,10 -DIS_FAULTY=0) -o $@ $< -ldl

perf-tests: all $(PERF_PLUGINS)
.PHONY: perf-tests

# ---- another compiler's opinion: make syntax CC=clang WERROR=1 ----

SYNTAX_SRC := $(COMMON_SRC) $(NET_SRC) $(TUNER_SRC) $(MODEL_SRC) $(NET_TOOL_SRC) $(TUNER_TOOL_SRC) $(UNIT_SRC) $(TEST_LIB_SRC) \
  $(SIM_SRC) $(SCALE_SRC) $(call sources,common/tools tests/abi tests/coll tests/coll/replay tests/coll/stress)
# Two at a time: what a test runs beside takes the rest.
syntax: ALL_CFLAGS += '-DDEFAULT_NAME_LIBRARY=""' -Wno-unused-parameter
syntax: ## warnings of CC in plugins, tools, unit tests; makes nothing
	$(Q)printf '%s\n' $(SYNTAX_SRC) | xargs -P 2 -n 20 $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -fsyntax-only
.PHONY: syntax

include tests/fake_cuda/rules.mk

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

.DEFAULT_GOAL := all
# Not .SECONDARY, which would make a missing object of a new source no reason to link again.
.PRECIOUS: $(BUILD)/obj/%.o
.PHONY: all help man install may-install uninstall clean test check nightly tests-unit tests-sim tests-scale
