# SPDX-License-Identifier: Apache-2.0
# ---- the emulated GPU and NCCL on top of it (tests/fake_cuda) ----
#
#   make fake-cuda               libcudart.so.12 and libnvidia-ml.so.1
#   make nccl SUITE=sid|trixie   libnccl.so.2 from Debian's objects, which are fetched when missing
#   make nccl-transports SUITE=  libnccl-net-socket.so and -ib.so: NCCL's own transports as plugins

SUITE ?= sid
NCCL_DIR ?= build/nccl/$(SUITE)
FAKE_LIB := $(BUILD)/fake_cuda/lib
FAKE_NCCL := $(FAKE_LIB)/$(SUITE)

FAKE_CUDART_SRC := $(call sources,tests/fake_cuda/runtime tests/fake_cuda/nccl)
FAKE_NVML_SRC := $(call sources,tests/fake_cuda/nvml)
FAKE_LINKED_SRC := $(call sources,tests/fake_cuda/linked)
# Sizes and offsets of this code are int, size_t and ssize_t by turns, as the CUDA API has them.
FAKE_CFLAGS = -Itests/fake_cuda/include -Wno-conversion -Wno-missing-prototypes
# The reductions profit from vector instructions and from F16C for half precision; what is built
# here also runs here.
cpu_has = $(shell grep -m 1 -ow $(1) /proc/cpuinfo)
FAKE_REDUCE_FLAGS ?= -O3 \
  $(if $(and $(call cpu_has,avx2),$(call cpu_has,f16c)),-march=x86-64-v3)

$(call objects,$(FAKE_CUDART_SRC) $(FAKE_NVML_SRC) $(FAKE_LINKED_SRC)): ALL_CFLAGS += $(FAKE_CFLAGS)
$(BUILD)/obj/tests/fake_cuda/nccl/reduce.o: ALL_CFLAGS += $(FAKE_REDUCE_FLAGS)

$(FAKE_LIB)/libcudart.so.12: $(call objects,$(FAKE_CUDART_SRC)) tests/fake_cuda/runtime/exports.map
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK    $@")
	$(Q)$(CC) -shared -pthread $(SAN_FLAGS_$(SAN)) -o $@ $(filter %.o,$^) \
	  -Wl,-soname,libcudart.so.12 -Wl,--version-script=tests/fake_cuda/runtime/exports.map \
	  $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -lm -ldl
	$(Q)ln -sf libcudart.so.12 $(@D)/libcudart.so && ln -sf libcudart.so.12 $(@D)/libcuda.so.1

$(FAKE_LIB)/libnvidia-ml.so.1: $(call objects,$(FAKE_NVML_SRC) tests/fake_cuda/runtime/config.c)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK    $@")
	$(Q)$(CC) -shared $(SAN_FLAGS_$(SAN)) -o $@ $^ -Wl,-soname,libnvidia-ml.so.1
	$(Q)ln -sf libnvidia-ml.so.1 $(@D)/libnvidia-ml.so

fake-cuda: $(FAKE_LIB)/libcudart.so.12 $(FAKE_LIB)/libnvidia-ml.so.1

$(NCCL_DIR)/complete:
	DEBIAN_COMPONENT=contrib scripts/fetch-packages $(SUITE) amd64 $(NCCL_DIR) libnccl-dev && touch $@

# enhcompat.o holds weak, hidden fallbacks for CUDA runtime functions; without it those calls reach
# libcudart. All other objects are linked as they are.
$(BUILD)/fake_cuda/nccl-$(SUITE).a: $(NCCL_DIR)/complete tests/fake_cuda/nccl/facts.c
	@mkdir -p $(@D)
	$(Q)tests/fake_cuda/supports $(NCCL_DIR)
	$(Q)cp $(NCCL_DIR)/usr/lib/*/libnccl_static.a $@.new
	$(Q)$(AR) d $@.new enhcompat.o && mv $@.new $@

# -z defs: a symbol that nobody supplies is an error here and not at run time. --no-relax: newer
# assemblers mark a push of a variable in the GOT as one that may be relaxed, which ld 2.40 takes for
# a call (ncclIbInitDevices in 2.29.7, where libibverbs is installed and NCCL_DEBUG is INFO).
$(FAKE_NCCL)/libnccl.so.2: $(BUILD)/fake_cuda/nccl-$(SUITE).a $(call objects,$(FAKE_LINKED_SRC)) \
  $(FAKE_LIB)/libcudart.so.12
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK    $@")
	$(Q)$(CXX) -shared -pthread -Wl,--no-relax -o $@ -Wl,-soname,libnccl.so.2 -Wl,--whole-archive $< \
	  -Wl,--no-whole-archive $(call objects,$(FAKE_LINKED_SRC)) -L$(FAKE_LIB) -lcudart \
	  -Wl,-rpath,'$$ORIGIN/..' $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -lrt -ldl
	$(Q)ln -sf libnccl.so.2 $(@D)/libnccl.so

nccl: fake-cuda $(FAKE_NCCL)/libnccl.so.2

# NCCL's own transports, of the same objects but only those that they need, as plugins that any
# program can load: what stratus is compared with.
FAKE_TRANSPORT_socket = ncclNetSocket
FAKE_TRANSPORT_ib = ncclNetIb
FAKE_TRANSPORTS := $(patsubst %,$(FAKE_NCCL)/libnccl-net-%.so,socket ib)
$(FAKE_TRANSPORTS): $(FAKE_NCCL)/libnccl-net-%.so: tests/fake_cuda/transport/as_plugin.c net_plugin/abi/net_abi.h \
  $(BUILD)/fake_cuda/nccl-$(SUITE).a $(call objects,$(FAKE_LINKED_SRC)) \
  $(FAKE_LIB)/libcudart.so.12
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK    $@")
	$(Q)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(FAKE_CFLAGS) -isystem $(NCCL_DIR)/usr/include \
	  -DTRANSPORT=$(FAKE_TRANSPORT_$*) -c $< -o $@.o
	$(Q)$(CXX) -shared -pthread -Wl,--no-relax $(SAN_FLAGS_$(SAN)) -o $@ -Wl,-soname,$(@F) $@.o \
	  $(BUILD)/fake_cuda/nccl-$(SUITE).a $(call objects,$(FAKE_LINKED_SRC)) -Wl,--gc-sections \
	  -L$(FAKE_LIB) -lcudart -Wl,-rpath,'$$ORIGIN/..' $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -lrt -ldl
	$(Q)rm $@.o

nccl-transports: fake-cuda $(FAKE_TRANSPORTS)

.PHONY: fake-cuda nccl nccl-transports
