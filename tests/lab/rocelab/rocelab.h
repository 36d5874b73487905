/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * rocelab: RoCE network cards without hardware. README.md describes them
 * and how a test controls them.
 */
#ifndef ROCELAB_H
#define ROCELAB_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/debugfs.h>
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

#define ROCELAB_DEVICES		12
#define ROCELAB_PERSONALITIES	16	/* at most */
#define ROCELAB_NAME		64
#define ROCELAB_LEGS		2
#define ROCELAB_PRIORITIES	8
#define ROCELAB_QUEUES		16
#define ROCELAB_SETS		8
#define ROCELAB_COUNTERS	128	/* of an RDMA device, at most */

/* When a driver lists a name, and for what it lists it several times. */
enum rocelab_scope {
	ONCE,
	EACH_PRIORITY,
	EACH_PFC_PRIORITY,	/* only while PFC is on for it, as mlx5 does */
	EACH_QUEUE,		/* only while there are that many queues */
	FEATURE,		/* only while software features are on */
	GLOBAL_PAUSE,		/* only while global pause is on */
	OPTIONAL,		/* rdma statistic ... optional-counters */
};

/* A name of a driver; "%d" in it is the priority or the queue. */
struct rocelab_name {
	const char *text;
	enum rocelab_scope scope;
	u8 bits;		/* width of the hardware's counter; 0: 64 */
};

struct rocelab_value {
	char name[ROCELAB_NAME];
	enum rocelab_scope scope;
	u8 bits;
	u8 index;		/* priority or queue */
	int error;		/* result of a query for it alone */
	u64 set;		/* as the test wrote it */
	u64 copy;		/* value at the last refresh */
};

/*
 * One query of the driver: its values, and its faults. One write to its
 * "values" file is one moment: no reader sees half of it.
 */
struct rocelab_table {
	const char *title;
	spinlock_t lock;	/* everything below but delay, refresh, queries */
	struct rocelab_value *values;
	unsigned int count;
	int fault;		/* negative errno of every query */
	bool hanging;
	bool gone;		/* the device is being removed */
	u64 period;		/* number of the refresh that made the copies */
	wait_queue_head_t released;
	u32 delay_us;
	u32 refresh_ms;		/* 0: values are visible at once */
	atomic_t queries;
	/* After a write; such tables are written under the RTNL. */
	void (*changed)(struct rocelab_table *table);
	void *owner;
};

/* Numbers of the values in the tables that are the same for every driver. */
enum { STATE_STATE, STATE_PHYSICAL, STATE_SPEED, STATE_WIDTH };
enum { PAUSE_AUTONEGOTIATE, PAUSE_RECEIVE, PAUSE_TRANSMIT,
	PAUSE_RECEIVE_FRAMES, PAUSE_TRANSMIT_FRAMES };
#define FEC_BINS 4
enum { FEC_CORRECTED, FEC_UNCORRECTABLE, FEC_BITS, FEC_BIN };
enum { LINK_UP, LINK_SPEED, LINK_DOWN_EVENTS, LINK_DETACHED, LINK_QUEUES,
	LINK_PFC_TIMEOUT, LINK_FEATURES };
enum { STANDARD_SYMBOL, STANDARD_FCS, STANDARD_RECEIVED, STANDARD_SENT,
	STANDARD_CONTROL_RECEIVED, STANDARD_CONTROL_SENT, STANDARD_JABBERS };
enum { PORT_SYMBOL, PORT_RECOVERY, PORT_DOWNED, PORT_RECEIVE_ERRORS,
	PORT_DISCARDS, PORT_WAIT, PORT_TRANSMIT_DATA, PORT_RECEIVE_DATA,
	PORT_TRANSMIT_PACKETS, PORT_RECEIVE_PACKETS };
enum { DCB_CAPABLE, DCB_ENABLED, DCB_DELAY, DCB_TOTAL_BUFFER,
	DCB_REQUESTS,
	DCB_INDICATIONS = DCB_REQUESTS + ROCELAB_PRIORITIES,
	DCB_CLASS = DCB_INDICATIONS + ROCELAB_PRIORITIES,
	DCB_BANDWIDTH = DCB_CLASS + ROCELAB_PRIORITIES,
	DCB_ALGORITHM = DCB_BANDWIDTH + ROCELAB_PRIORITIES,
	DCB_PRIORITY_BUFFER = DCB_ALGORITHM + ROCELAB_PRIORITIES,
	DCB_BUFFER = DCB_PRIORITY_BUFFER + ROCELAB_PRIORITIES };

struct rocelab_personality {
	const char *name;
	const char *driver;	/* target of the link "driver" in sysfs */
	const char *rdma_name;
	const char *firmware;
	const char *model;	/* hca_type and board_id; NULL: no such files */
	const char *board;
	bool port_counters;	/* the "counters" directory of sysfs */
	/* Queue pairs and counter sets; beginnings of names they do not fill. */
	const char *const *not_in_sets;
	u32 refresh_ms;
	unsigned int gids;
	const struct rocelab_name *ethtool;
	unsigned int ethtool_count;
	const struct rocelab_name *rdma;
	unsigned int rdma_count;
};

/* One network device. A LAG has two below one RDMA device. */
struct rocelab_leg {
	struct net_device *netdev;
	const struct rocelab_personality *personality;
	struct rocelab_table access;	/* every ethtool query */
	struct rocelab_table ethtool;
	struct rocelab_table pause;
	struct rocelab_table fec;
	struct rocelab_table standard;
	struct rocelab_table link;
	struct rocelab_table dcb;
	u8 trust[8];
	int trusted;
};

struct rocelab_device;

struct rocelab_rdma {
	struct ib_device ib;
	struct rocelab_device *device;
};

struct rocelab_device {
	int number;
	const struct rocelab_personality *personality;
	struct device *parent;
	struct dentry *directory;
	struct rocelab_leg *legs[ROCELAB_LEGS];
	unsigned int leg_count;
	struct rocelab_rdma *rdma;
	struct rdma_stat_desc *descriptions;
	struct rocelab_table counters;	/* hw_counters, RDMA netlink */
	struct rocelab_table port;	/* counters */
	struct rocelab_table state;	/* query_port */
	DECLARE_BITMAP(optional_on, ROCELAB_COUNTERS);
	struct rocelab_table sets[ROCELAB_SETS];	/* of queue pairs */
	unsigned long sets_in_use;
	atomic_t pairs_made;
};

/* Parameters of one of our platform devices. */
struct rocelab_order {
	const struct rocelab_personality *personality;
	unsigned int legs;
};

/* table.c */
int rocelab_table_make(struct rocelab_table *table, const char *title,
		       const struct rocelab_name *names, unsigned int count);
void rocelab_table_free(struct rocelab_table *table);
void rocelab_table_let_go(struct rocelab_table *table);
int rocelab_query(struct rocelab_table *table);
u64 rocelab_get(struct rocelab_table *table, unsigned int position);
void rocelab_put(struct rocelab_table *table, unsigned int position, u64 value);
int rocelab_error(struct rocelab_table *table, unsigned int position);
void rocelab_snapshot(struct rocelab_table *table, u64 *values,
		      bool (*is_told)(struct rocelab_leg *leg,
				      const struct rocelab_value *value),
		      struct rocelab_leg *leg);
void rocelab_table_reset(struct rocelab_table *table);

/* control.c */
void rocelab_table_show(struct rocelab_table *table, struct dentry *parent);
void rocelab_log_show(struct rocelab_device *device);

/* personalities.c */
const struct rocelab_personality *rocelab_personality_at(unsigned int number);
const struct rocelab_personality *rocelab_personality_named(const char *name);

/* netdev.c */
struct rocelab_leg *rocelab_leg_make(struct rocelab_device *device);
void rocelab_leg_show(struct rocelab_leg *leg, struct dentry *parent);
void rocelab_leg_let_go(struct rocelab_leg *leg);
void rocelab_leg_reset(struct rocelab_leg *leg);
void rocelab_leg_free(struct rocelab_leg *leg);

static inline struct rocelab_leg *rocelab_leg_of(struct net_device *netdev)
{
	return netdev_priv(netdev);
}

/* ethtool.c */
extern const struct ethtool_ops rocelab_ethtool_ops;

/* dcb.c */
extern const struct dcbnl_rtnl_ops rocelab_dcb_ops;
int rocelab_dcb_make(struct rocelab_leg *leg);

/* rdma.c */
struct rdma_hw_stats *rocelab_make_statistics(struct rocelab_device *device);
int rocelab_rdma_make(struct rocelab_device *device);
void rocelab_rdma_show(struct rocelab_device *device);
void rocelab_rdma_let_go(struct rocelab_device *device);
void rocelab_rdma_reset(struct rocelab_device *device);
void rocelab_rdma_free(struct rocelab_device *device);

static inline struct rocelab_device *rocelab_device_of(struct ib_device *ib)
{
	return container_of(ib, struct rocelab_rdma, ib)->device;
}

/* verbs.c */
extern const struct ib_device_ops rocelab_verbs_ops;

/* sets.c */
extern const struct ib_device_ops rocelab_set_ops;
int rocelab_sets_make(struct rocelab_device *device);
void rocelab_sets_show(struct rocelab_device *device);
void rocelab_sets_let_go(struct rocelab_device *device);
void rocelab_sets_reset(struct rocelab_device *device);
void rocelab_sets_free(struct rocelab_device *device);

#endif
