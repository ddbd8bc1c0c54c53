// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The client, its files in debugfs, and the results as KTAP.
 *
 * /sys/kernel/debug/kverbs/
 *   run      write "DEVICE GID-INDEX GID6-INDEX WHAT": WHAT is part of the cases' names,
 *            or "traffic": start what goes on until the device or this module does
 *   results  what came of it since it was last written to
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include "kverbs.h"

#define TEXT_SIZE	(256 * 1024)

static unsigned int patience = 30;
module_param(patience, uint, 0644);
MODULE_PARM_DESC(patience, "seconds until a completion is given up");

/* A device that is there */
struct device_entry {
	struct list_head node;
	struct ib_device *dev;
	struct kv kv;
	struct list_head traffic;
};

/* Covers runs and devices: one that goes waits for the run to end */
static DEFINE_MUTEX(run_mutex);
static LIST_HEAD(devices);

/* Covers the text, which a device that goes adds to */
static DEFINE_MUTEX(text_mutex);
static char *text;
static size_t text_len;
static unsigned int verdicts, bad_verdicts;

static __printf(2, 0) void add_text(const char *prefix, const char *format, va_list args)
{
	mutex_lock(&text_mutex);
	text_len += scnprintf(text + text_len, TEXT_SIZE - text_len, "%s", prefix);
	text_len += vscnprintf(text + text_len, TEXT_SIZE - text_len, format, args);
	text_len += scnprintf(text + text_len, TEXT_SIZE - text_len, "\n");
	mutex_unlock(&text_mutex);
}

void kv_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_text("# ", format, args);
	va_end(args);
}

void kv_fail(struct kv *kv, const char *format, ...)
{
	va_list args;

	/* one lost completion can bring a thousand of these */
	if (++kv->failed > 20)
		return;
	va_start(args, format);
	add_text("# ", format, args);
	va_end(args);
}

void kv_verdict(struct kv *kv, const char *name)
{
	mutex_lock(&text_mutex);
	text_len += scnprintf(text + text_len, TEXT_SIZE - text_len, "%s %u %s\n",
			      kv->failed ? "not ok" : "ok", ++verdicts, name);
	bad_verdicts += !!kv->failed;
	mutex_unlock(&text_mutex);
	kv->failed = 0;
	kv->lost = false;
}

bool kv_is_true(struct kv *kv, bool cond, const char *where, int line,
		const char *what)
{
	if (!cond)
		kv_fail(kv, "%s:%d: %s does not hold", where, line, what);
	return cond;
}

bool kv_is_equal(struct kv *kv, s64 got, s64 want, const char *where, int line,
		 const char *what)
{
	if (got != want)
		kv_fail(kv, "%s:%d: %s is %lld, not %lld", where, line, what,
			got, want);
	return got == want;
}

unsigned long kv_patience(const struct kv *kv)
{
	return kv->lost ? HZ : READ_ONCE(patience) * HZ;
}

/* ---- runs ---- */

static const struct kv_case *const suites[] = {
	kv_ops, kv_cqs, kv_frwr, kv_keys, kv_queues, kv_drain, kv_ud, kv_srq,
};

static struct device_entry *find_device(const char *name)
{
	struct device_entry *entry;

	lockdep_assert_held(&run_mutex);

	list_for_each_entry(entry, &devices, node)
		if (!strcmp(dev_name(&entry->dev->dev), name))
			return entry;
	return NULL;
}

static int run_cases(struct kv *kv, const char *what)
{
	const struct kv_case *c;
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(suites); i++) {
		for (c = suites[i]; c->run; c++) {
			if (!strstr(c->name, what))
				continue;
			c->run(kv);
			kv_verdict(kv, c->name);
			n++;
		}
	}
	return n ? 0 : -ENOENT;
}

static int run_line(const char *line)
{
	char name[IB_DEVICE_NAME_MAX + 1], what[32] = "";
	struct device_entry *entry;
	u32 gid, gid6;
	int err;

	if (sscanf(line, "%64s %u %u %31s", name, &gid, &gid6, what) < 3)
		return -EINVAL;

	mutex_lock(&run_mutex);
	entry = find_device(name);
	if (!entry) {
		err = -ENODEV;
	} else {
		entry->kv.gid_index = gid;
		entry->kv.gid6_index = gid6;
		if (!strcmp(what, "traffic"))
			err = kv_removal_start(&entry->kv, &entry->traffic);
		else
			err = run_cases(&entry->kv, what);
	}
	mutex_unlock(&run_mutex);
	return err;
}

static ssize_t run_write(struct file *file, const char __user *from, size_t len,
			 loff_t *pos)
{
	char line[160];
	int err;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = 0;
	err = run_line(line);
	return err ?: len;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = run_write,
};

static int results_show(struct seq_file *seq, void *unused)
{
	mutex_lock(&text_mutex);
	seq_printf(seq, "TAP version 13\n%s1..%u\n", text, verdicts);
	mutex_unlock(&text_mutex);
	return 0;
}

static int results_open(struct inode *inode, struct file *file)
{
	return single_open_size(file, results_show, NULL, TEXT_SIZE + PAGE_SIZE);
}

/* Whatever is written: forget what has been said */
static ssize_t results_write(struct file *file, const char __user *from,
			     size_t len, loff_t *pos)
{
	mutex_lock(&text_mutex);
	text_len = 0;
	text[0] = 0;
	verdicts = 0;
	bad_verdicts = 0;
	mutex_unlock(&text_mutex);
	return len;
}

static const struct file_operations results_fops = {
	.owner = THIS_MODULE,
	.open = results_open,
	.read = seq_read,
	.write = results_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* ---- the client ---- */

static int client_add(struct ib_device *dev);
static void client_remove(struct ib_device *dev, void *data);

static struct ib_client client = {
	.name = "kverbs",
	.add = client_add,
	.remove = client_remove,
};

static int client_add(struct ib_device *dev)
{
	struct device_entry *entry;

	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return -ENOMEM;
	entry->dev = dev;
	entry->kv.dev = dev;
	INIT_LIST_HEAD(&entry->traffic);
	ib_set_client_data(dev, &client, entry);
	mutex_lock(&run_mutex);
	list_add_tail(&entry->node, &devices);
	mutex_unlock(&run_mutex);
	return 0;
}

static void client_remove(struct ib_device *dev, void *data)
{
	struct device_entry *entry = data;

	mutex_lock(&run_mutex);
	list_del(&entry->node);
	kv_removal_end(&entry->traffic);
	mutex_unlock(&run_mutex);
	kfree(entry);
}

static struct dentry *folder;

static int __init kverbs_init(void)
{
	int err;

	text = vzalloc(TEXT_SIZE);
	if (!text)
		return -ENOMEM;
	err = ib_register_client(&client);
	if (err) {
		vfree(text);
		return err;
	}
	folder = debugfs_create_dir("kverbs", NULL);
	debugfs_create_file("run", 0200, folder, NULL, &run_fops);
	debugfs_create_file("results", 0600, folder, NULL, &results_fops);
	return 0;
}

static void __exit kverbs_exit(void)
{
	debugfs_remove(folder);
	ib_unregister_client(&client);
	/* nobody else can read what came of the traffic that this has ended */
	WARN(bad_verdicts, "kverbs: failed:\n%s", text);
	vfree(text);
}

module_init(kverbs_init);
module_exit(kverbs_exit);

MODULE_AUTHOR("the uroce authors");
MODULE_DESCRIPTION("Tests of kernel verbs");
MODULE_LICENSE("Dual BSD/GPL");
