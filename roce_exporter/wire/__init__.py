"""RoCE packets from a capture or a mirror port: who congests whom, who retransmits, who is outside the lossless priority.

`inputs` yield batches of frames (`Frames`), `decode` turns a batch into columns of header fields, `tally` counts them per
pair of addresses, and `wire_text`, `wire_document` and `wire_samples` show the counts. Only `inputs` do I/O. The work is done per
batch, not per packet: a packet costs a few array operations, so numpy is required (extra `wire`).
"""

from importlib.util import find_spec

from roce_exporter.errors import UserError

if find_spec("numpy") is None:
    raise UserError("wire needs the package numpy; install the extra wire, in a clone: pip install '.[wire]'")
