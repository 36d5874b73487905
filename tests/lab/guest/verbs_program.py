"""Queue pairs of a process of its own, through pyverbs: run by Debian's python3, which has it.

verbs_program.py hold DEVICE MANY FAILED: that many queue pairs, some of them in state ERR, until its input ends
verbs_program.py connect DEVICE: one queue pair and a memory region. Prints the facts that its peer needs, reads those of
  the peer, prints `connected`; then it writes to the peer once per line that it reads, and prints how the write ended.
"""

import sys

from pyverbs import enums
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

PORT = 1
IPV4 = 1
"""The entry of the GID table that has the IPv4 address of a Soft-RoCE device."""
SIZE = 4096
TIMEOUT, RETRIES = 16, 2
"""0.27 s (4.096 us * 2 ** 16) per try. 7 retries are endless to rxe (rxe_comp.c)."""


def say(*words: object) -> None:
    """Print a line at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def make_pair(domain: PD, queue: CQ) -> QP:
    """A queue pair in state RESET."""
    cap = QPCap(max_send_wr=1, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
    return QP(domain, QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=queue, rcq=queue, cap=cap))


def initialise(pair: QP) -> None:
    """To state INIT; the peer may write."""
    attributes = QPAttr(qp_state=enums.IBV_QPS_INIT, port_num=PORT)
    attributes.pkey_index = 0
    attributes.qp_access_flags = enums.IBV_ACCESS_REMOTE_WRITE
    pair.modify(
        attributes,
        enums.IBV_QP_STATE | enums.IBV_QP_PKEY_INDEX | enums.IBV_QP_PORT | enums.IBV_QP_ACCESS_FLAGS,
    )


def connect(pair: QP, number: int, address: str) -> None:
    """From INIT to RTS, to the peer's queue pair."""
    attributes = QPAttr(qp_state=enums.IBV_QPS_RTR, port_num=PORT, path_mtu=enums.IBV_MTU_1024)
    attributes.dest_qp_num = number
    attributes.max_dest_rd_atomic = 1
    attributes.min_rnr_timer = 12
    route = GlobalRoute(dgid=GID(address), sgid_index=IPV4)
    attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=PORT)
    pair.to_rtr(attributes)
    attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = TIMEOUT, RETRIES, RETRIES
    attributes.max_rd_atomic = 1
    pair.to_rts(attributes)


def write(pair: QP, queue: CQ, source: MR, key: int, address: int) -> str:
    """How a write of the whole region ended."""
    request = SendWR(
        num_sge=1,
        sg=[SGE(source.buf, SIZE, source.lkey)],
        opcode=enums.IBV_WR_RDMA_WRITE,
        send_flags=enums.IBV_SEND_SIGNALED,
    )
    request.set_wr_rdma(key, address)
    pair.post_send(request)
    while True:
        many, completions = queue.poll()
        if many:
            return enums.ibv_wc_status(completions[0].status).name


def hold(device: str, many: int, failed: int) -> None:
    """Hold queue pairs until the input ends."""
    context = Context(name=device)
    domain, queue = PD(context), CQ(context, 1)
    pairs = [make_pair(domain, queue) for _ in range(many)]
    for pair in pairs[:failed]:
        initialise(pair)
        pair.modify(QPAttr(qp_state=enums.IBV_QPS_ERR), enums.IBV_QP_STATE)
    say("ready")
    sys.stdin.read()


def converse(device: str) -> None:
    """Write to the peer as the input says."""
    context = Context(name=device)
    domain, queue = PD(context), CQ(context, 1)
    pair = make_pair(domain, queue)
    region = MR(domain, SIZE, enums.IBV_ACCESS_LOCAL_WRITE | enums.IBV_ACCESS_REMOTE_WRITE)
    initialise(pair)
    say(context.query_gid(PORT, IPV4), pair.qp_num, region.rkey, region.buf)
    peer, *numbers = sys.stdin.readline().split()
    number, key, address = map(int, numbers)
    connect(pair, number, peer)
    say("connected")
    for _ in sys.stdin:
        say(write(pair, queue, region, key, address))


if __name__ == "__main__":
    {"hold": lambda: hold(sys.argv[2], *map(int, sys.argv[3:])), "connect": lambda: converse(sys.argv[2])}[
        sys.argv[1]
    ]()
