"""Short names for the spellings of each dialect: `mlx5("np_cnp_sent")`. Several names in one are their sum."""

from functools import partial

from roce_exporter.catalog.row import ANY, COUNTERS, ETHTOOL, HW_COUNTERS, spelt

pma = partial(spelt, ANY, COUNTERS)
"""The port counters of the InfiniBand Architecture Specification, chapter 16; mlx5 and mlx4 have them on Ethernet too."""

mlx5 = partial(spelt, "mlx5", HW_COUNTERS)
mlx5_q = partial(spelt, "mlx5", HW_COUNTERS, bits=32)
"""A queue counter of mlx5, which wraps at 32 bits."""
mlx4 = partial(spelt, "mlx4", HW_COUNTERS, bits=32)
bnxt = partial(spelt, "bnxt_re", HW_COUNTERS)
irdma = partial(spelt, "irdma", HW_COUNTERS)
ionic = partial(spelt, "ionic", HW_COUNTERS)
hns = partial(spelt, "hns", HW_COUNTERS)
mana = partial(spelt, "mana", HW_COUNTERS)
efa = partial(spelt, "efa", HW_COUNTERS)
erdma = partial(spelt, "erdma", HW_COUNTERS)
rxe = partial(spelt, "rxe", HW_COUNTERS)

eth_mlx5 = partial(spelt, "mlx5", ETHTOOL)
"""Of `ethtool -S` by the Ethernet driver beside the RDMA driver: mlx5_core."""
eth_mlx4 = partial(spelt, "mlx4", ETHTOOL)
eth_bnxt = partial(spelt, "bnxt_re", ETHTOOL)
"""bnxt_en."""
eth_bng = partial(spelt, "bng_re", ETHTOOL)
"""bng_en, the driver of Broadcom's next generation."""
eth_intel = partial(spelt, "irdma", ETHTOOL)
"""ice (names end in `.nic`) and i40e (names begin with `port.`)."""
eth_ionic = partial(spelt, "ionic", ETHTOOL)
eth_hns = partial(spelt, "hns", ETHTOOL)
"""hns3."""
eth_qedr = partial(spelt, "qedr", ETHTOOL)
"""qede."""
eth_mana = partial(spelt, "mana", ETHTOOL)
eth_efa = partial(spelt, "efa", ETHTOOL)
"""ena, whose network device stands beside an efa."""
eth_ocrdma = partial(spelt, "ocrdma", ETHTOOL, bits=32)
"""be2net, which returns the low 32 bits of every counter."""
