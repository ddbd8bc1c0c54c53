# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make                   the module for KDIR, and the provider
# make module | provider one of the two
# make install           both, below DESTDIR (a real machine: as root, DESTDIR empty)
# make W=1 | C=2         more compiler warnings | sparse, as in the kernel's own build
# make check             the tests (tests/check)
# make kverbs            a module for them (tests/kverbs)
# make clean             forget build/
#
# KDIR is a prepared kernel tree: the running kernel's by default, else the newest installed.
# Everything is built below build/, the module in a folder per kernel release, so that the source
# tree stays clean and several kernels live side by side.

KDIR ?= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
	$(shell ls -d /lib/modules/*/build 2>/dev/null | sort -rV))
BUILD := $(CURDIR)/build
MAKEFLAGS += --no-print-directory

.PHONY: all module provider kverbs install module_install provider_install check clean

all: module provider

ifneq ($(filter-out provider provider_install check clean,$(or $(MAKECMDGOALS),all)),)
ifeq ($(wildcard $(KDIR)/include/generated/utsrelease.h),)
$(error No kernel headers at KDIR='$(KDIR)': apt-get install linux-headers-amd64, or say KDIR=...)
endif
RELEASE := $(shell sed 's/.*"\(.*\)"/\1/' $(KDIR)/include/generated/utsrelease.h)
ifneq ($(RELEASE),$(shell uname -r))
$(info The module is for kernel $(RELEASE); this machine runs $(shell uname -r))
endif
MODULE_BUILD := $(BUILD)/kmod-$(RELEASE)
KVERBS_BUILD := $(BUILD)/kverbs-$(RELEASE)
endif

ifneq ($(filter-out /%,$(DESTDIR)),)
$(error DESTDIR='$(DESTDIR)' is not an absolute path)
endif

# Kbuild writes its objects beside the sources, so it gets a mirror of links to build in. The locks
# let several runs of the tests share build/.
module:
	@mkdir -p $(MODULE_BUILD)
	@find $(MODULE_BUILD) -xtype l -delete
	@cp -asn $(CURDIR)/Kbuild $(CURDIR)/kmod $(CURDIR)/uapi $(MODULE_BUILD)/
	flock $(MODULE_BUILD)/lock $(MAKE) -C $(KDIR) M=$(MODULE_BUILD) modules

kverbs:
	@mkdir -p $(KVERBS_BUILD)
	@find $(KVERBS_BUILD) -xtype l -delete
	@cp -asn $(CURDIR)/tests/kverbs/. $(KVERBS_BUILD)/
	flock $(KVERBS_BUILD)/lock $(MAKE) -C $(KDIR) M=$(KVERBS_BUILD) modules

# Configured each time: libibverbs may be another one by now.
provider:
	@mkdir -p $(BUILD)/provider
	flock $(BUILD)/provider/lock cmake -S $(CURDIR) -B $(BUILD)/provider -G 'Unix Makefiles' \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo -DBUILD_TESTING=OFF \
		-DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_SYSCONFDIR=/etc
	+flock $(BUILD)/provider/lock cmake --build $(BUILD)/provider --target provider

install: module_install provider_install

# depmod belongs to the machine the module ends up on.
module_install: module
	install -D -m 644 $(MODULE_BUILD)/uroce.ko $(DESTDIR)/lib/modules/$(RELEASE)/updates/uroce.ko
	$(if $(DESTDIR),,depmod -a $(RELEASE))

provider_install: provider
	DESTDIR=$(DESTDIR) cmake --install $(BUILD)/provider
	$(if $(DESTDIR)$(filter $(RELEASE),$(shell uname -r)),,@echo "Installed for kernel $(RELEASE), NOT for the running one, $(shell uname -r): reboot into it, or KDIR=...")

check:
	tests/check

clean:
	rm -rf $(BUILD)
