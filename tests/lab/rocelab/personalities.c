// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The drivers that a device can imitate. names.py makes names.h from the lists
 * of names in the source of the kernel that the module is built for; a new
 * driver needs an entry here and one there.
 */
#include <linux/string.h>
#include "rocelab.h"
#include "names.h"

#define NAMES(driver)							\
	.ethtool = driver##_ethtool,					\
	.ethtool_count = ARRAY_SIZE(driver##_ethtool),			\
	.rdma = driver##_hw_counters,					\
	.rdma_count = ARRAY_SIZE(driver##_hw_counters)

/*
 * mlx5 lists its congestion counters and rx_icrc_encapsulated in counter sets,
 * too, and fills them for the port only.
 */
static const char *const mlx5_not_in_sets[] = {
	"np_", "rp_", "rx_icrc_encapsulated", NULL,
};

static const struct rocelab_personality personalities[] = {
	{
		.name = "mlx5",
		.driver = "mlx5_core",
		.rdma_name = "mlx5_%d",
		.firmware = "28.43.2026",
		.model = "MT4129",
		.board = "LAB0000000001",
		.port_counters = true,
		.not_in_sets = mlx5_not_in_sets,
		.gids = 255,
		NAMES(mlx5),
	},
	{
		.name = "bnxt",
		.driver = "bnxt_en",
		.rdma_name = "bnxt_re%d",
		.firmware = "231.0.153.0",
		.model = "0x1760",
		.refresh_ms = 1000,	/* stats-block-usecs of bnxt_en */
		.gids = 256,
		NAMES(bnxt),
	},
	{
		.name = "ionic",
		.driver = "ionic",
		.rdma_name = "ionic_%d",
		.firmware = "1.117.1-a-63",
		.gids = 128,
		NAMES(ionic),
	},
	{
		.name = "ice",
		.driver = "ice",
		.rdma_name = "irdma%d",
		.firmware = "1.71",
		.model = "E810",
		.gids = 32,
		NAMES(ice),
	},
	{
		.name = "i40e",
		.driver = "i40e",
		.rdma_name = "iwarp%d",
		.firmware = "9.20",
		.gids = 1,
		NAMES(i40e),
	},
	{
		.name = "mlx4",
		.driver = "mlx4_core",
		.rdma_name = "mlx4_%d",
		.firmware = "2.42.5000",
		.model = "MT4103",
		.board = "LAB0000000002",
		.port_counters = true,
		.gids = 128,
		NAMES(mlx4),
	},
	{
		.name = "hns",
		.driver = "hns3",
		.rdma_name = "hns_%d",
		.firmware = "1.8.15",
		.gids = 256,
		NAMES(hns),
	},
	{
		.name = "qedr",
		.driver = "qede",
		.rdma_name = "qedr%d",
		.firmware = "8.59.1.0",
		.gids = 256,
		NAMES(qedr),
	},
	{
		.name = "efa",
		.driver = "efa",
		.rdma_name = "efa_%d",
		.firmware = "0.0.0.0",
		.gids = 1,
		NAMES(efa),
	},
	{
		.name = "mana",
		.driver = "mana",
		.rdma_name = "mana_%d",
		.firmware = "0.0.0",
		.gids = 128,
		NAMES(mana),
	},
	{
		.name = "erdma",
		.driver = "erdma",
		.rdma_name = "erdma_%d",
		.firmware = "2.0",
		.gids = 1,
		NAMES(erdma),
	},
};

const struct rocelab_personality *rocelab_personality_at(unsigned int number)
{
	return number < ARRAY_SIZE(personalities) ? &personalities[number] : NULL;
}

const struct rocelab_personality *rocelab_personality_named(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(personalities); i++)
		if (!strcmp(name, personalities[i].name))
			return &personalities[i];
	return NULL;
}
