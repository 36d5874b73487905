"""Messages of the drivers in the kernel log: one row per message and driver, with the event that it means.

Rule 1. A pattern is matched at the begin of the text after the driver, the device and the position in the code
(`health_care:347:(pid 5): ` of mlx5): `normalise.log_lines` removes these, and finds the device by them.
Rule 2. Patterns are linear in time: no repetition without a bound, and no repetition in a repetition.
Rule 3. A message that has changed between Linux 6.1 and 7.3 has a row per spelling, or a pattern for all of them.
Rule 4. The first row that matches counts. A message counts once, and so each message of a fault counts: one fault may write several.

Texts are from the sources of Debian's Linux 6.1.176, 6.12.107 and 7.3.4; `source` names the file and function of the newest. Firmware-first
AER (`aer_status:`) does not say whether an error was corrected, so only its uncorrectable errors have a row. Events that netdev
drivers report about VFs belong to the PF. `be2net` (ocrdma) has no rows.
"""

from __future__ import annotations

from typing import NamedTuple


class KernelMessage(NamedTuple):
    """One message."""

    event: str
    """A name of `kernel_events.EVENTS`."""
    drivers: tuple[str, ...]
    """The first word of the message: the kernel driver of the function, or the module. Empty: any."""
    pattern: str
    """A regular expression."""
    source: str
    """File below the kernel's source and function; `6.1` or `7.3` if only kernels up to or from there have it."""


MLX5 = ("mlx5_core",)
MLX4 = ("mlx4_core", "mlx4_en")
BNXT = ("bnxt_en", "bng_en")
ICE = ("ice",)
I40E = ("i40e",)
INTEL = ("ice", "i40e", "idpf")
IONIC = ("ionic",)
HNS = ("hns3", "hclge", "hns_roce_hw_v2")
QED = ("qed", "qede", "qedr")
MANA = ("mana",)
EFA = ("efa",)
PORT = ("pcieport",)

_MLX5 = "drivers/net/ethernet/mellanox/mlx5/core"
_MLX4 = "drivers/net/ethernet/mellanox/mlx4"
_BNXT = "drivers/net/ethernet/broadcom/bnxt"
_INTEL = "drivers/net/ethernet/intel"
_IONIC = "drivers/net/ethernet/pensando/ionic"
_HNS = "drivers/net/ethernet/hisilicon/hns3"
_QED = "drivers/net/ethernet/qlogic"
_MANA = "drivers/net/ethernet/microsoft/mana"
_RDMA = "drivers/infiniband/hw"

_COMMAND = r"[A-Z0-9_a-z ]{1,64}\(0x[0-9a-f]{1,8}\)"
_MODULE_ERROR = r"Port module event\[error\]: module [0-9]{1,3}, Cable error, "

MLX5_MESSAGES = (
    KernelMessage(
        "module_unplugged",
        MLX5,
        r"Port module event: module [0-9]{1,3}, Cable unplugged",
        f"{_MLX5}/events.c port_module",
    ),
    KernelMessage(
        "module_plugged",
        MLX5,
        r"Port module event: module [0-9]{1,3}, Cable plugged",
        f"{_MLX5}/events.c port_module",
    ),
    KernelMessage(
        "module_disabled",
        MLX5,
        r"Port module event: module [0-9]{1,3}, Cable disabled",
        f"{_MLX5}/events.c port_module",
    ),
    KernelMessage(
        "module_high_temperature", MLX5, _MODULE_ERROR + "High Temperature", f"{_MLX5}/events.c port_module"
    ),
    KernelMessage(
        "module_power_insufficient",
        MLX5,
        _MODULE_ERROR + "(?:Power budget exceeded|One or more network ports have been powered down)",
        f"{_MLX5}/events.c port_module",
    ),
    KernelMessage("module_error", MLX5, _MODULE_ERROR, f"{_MLX5}/events.c port_module"),
    KernelMessage(
        "device_high_temperature",
        MLX5,
        "High temperature on sensors with bit set ",
        f"{_MLX5}/events.c temp_warn",
    ),
    KernelMessage(
        "slot_power_insufficient",
        MLX5,
        "Detected insufficient power on the PCIe slot",
        f"{_MLX5}/events.c mlx5_pcie_event",
    ),
    KernelMessage(
        "health_syndrome",
        MLX5,
        r"Health issue observed, .{1,64}, severity\([0-3]\)",
        f"{_MLX5}/health.c print_health_info",
    ),
    KernelMessage("health_warning", MLX5, "Health issue observed, ", f"{_MLX5}/health.c print_health_info"),
    KernelMessage(
        "power_cycle_required", MLX5, "Cold reset is required", f"{_MLX5}/health.c print_health_info (7.3)"
    ),
    KernelMessage("pcie_unreachable", MLX5, "PCI slot is unavailable", f"{_MLX5}/health.c print_health_info"),
    KernelMessage(
        "pcie_unreachable",
        MLX5,
        "PCI channel offline, stop waiting for ",
        f"{_MLX5}/health.c mlx5_health_wait_pci_up",
    ),
    KernelMessage(
        "firmware_fatal",
        MLX5,
        "device's health compromised - reached miss count",
        f"{_MLX5}/health.c poll_health",
    ),
    KernelMessage(
        "firmware_fatal", MLX5, "Fatal error [0-9]{1,10} detected", f"{_MLX5}/health.c poll_health"
    ),
    KernelMessage(
        "recovery_failed",
        MLX5,
        "health recovery (?:failed|flow aborted)",
        f"{_MLX5}/health.c mlx5_health_try_recover",
    ),
    KernelMessage(
        "recovery_failed",
        MLX5,
        "Driver is in error state. Unloading",
        f"{_MLX5}/health.c mlx5_fw_fatal_reporter_err_work",
    ),
    KernelMessage(
        "device_recovered", MLX5, "health recovery succeeded", f"{_MLX5}/health.c mlx5_health_try_recover"
    ),
    KernelMessage(
        "command_timeout",
        MLX5,
        r"(?:cmd\[[0-9]{1,5}\]: )?"
        + _COMMAND
        + r"(?: Async,)? (?:timeout\. Will cause a leak|No done completion)",
        f"{_MLX5}/cmd.c wait_func, cb_timeout_handler",
    ),
    KernelMessage(
        "command_timeout",
        MLX5,
        _COMMAND
        + " (?:timed out while waiting for a slot|canceled on out of queue timeout|timeout while waiting for command)",
        f"{_MLX5}/cmd.c wait_func, cmd_work_handler",
    ),
    KernelMessage(
        "command_timeout", MLX5, "All CMD slots are stalled", f"{_MLX5}/cmd.c mlx5_cmd_invoke (7.3)"
    ),
    KernelMessage(
        "command_failed",
        MLX5,
        _COMMAND + r" op_mod\(0x[0-9a-f]{1,8}\) failed, status ",
        f"{_MLX5}/cmd.c mlx5_cmd_out_err",
    ),
    KernelMessage(
        "firmware_reset",
        MLX5,
        r"Sync Reset (?:now|Unload done|Unload\.)",
        f"{_MLX5}/fw_reset.c mlx5_sync_reset_now_event",
    ),
    KernelMessage("tx_timeout", MLX5, "TX timeout detected", f"{_MLX5}/en_main.c mlx5e_tx_timeout"),
    KernelMessage("link_up", MLX5, "Link up", f"{_MLX5}/en_main.c mlx5e_update_carrier"),
    KernelMessage("link_down", MLX5, "Link down", f"{_MLX5}/en_main.c mlx5e_update_carrier"),
)

MLX4_MESSAGES = (
    KernelMessage(
        "device_high_temperature", MLX4, "Temperature Threshold was reached!", f"{_MLX4}/eq.c mlx4_eq_int"
    ),
    KernelMessage("module_error", MLX4, "(?:Bad|Unsupported) cable detected", f"{_MLX4}/eq.c mlx4_eq_int"),
    KernelMessage(
        "firmware_fatal",
        MLX4,
        "Internal error (?:detected|mark was detected)",
        f"{_MLX4}/catas.c dump_err_buf, poll_catas",
    ),
    KernelMessage(
        "command_timeout",
        MLX4,
        "command 0x[0-9a-f]{1,8} timed out",
        f"{_MLX4}/cmd.c mlx4_cmd_poll, mlx4_cmd_reset_flow",
    ),
    KernelMessage(
        "command_timeout",
        MLX4,
        r"[Cc]ommunication channel command 0x[0-9a-f]{1,8} (?:\(op=0x[0-9a-f]{1,8}\) )?timed out",
        f"{_MLX4}/cmd.c mlx4_comm_cmd_poll, mlx4_comm_cmd_wait",
    ),
    KernelMessage(
        "device_reset", MLX4, "device is going to be reset", f"{_MLX4}/catas.c mlx4_enter_error_state"
    ),
    KernelMessage(
        "device_recovered", MLX4, "device was reset successfully", f"{_MLX4}/catas.c mlx4_enter_error_state"
    ),
    KernelMessage(
        "recovery_failed", MLX4, "PCI device did not come back after reset", f"{_MLX4}/reset.c mlx4_reset"
    ),
    KernelMessage("tx_timeout", MLX4, "TX timeout on queue: ", f"{_MLX4}/en_netdev.c mlx4_en_tx_timeout"),
    KernelMessage("link_up", MLX4, "Link Up", f"{_MLX4}/en_netdev.c mlx4_en_linkstate_work"),
    KernelMessage("link_down", MLX4, "Link Down", f"{_MLX4}/en_netdev.c mlx4_en_linkstate_work"),
)

BNXT_MESSAGES = (
    KernelMessage(
        "firmware_fatal", BNXT, "Detected firmware fatal condition", f"{_BNXT}/bnxt.c bnxt_fw_exception"
    ),
    KernelMessage(
        "firmware_fatal", BNXT, "Fatal firmware reset event", f"{_BNXT}/bnxt.c bnxt_async_event_process"
    ),
    KernelMessage(
        "firmware_fatal", BNXT, "Firmware not responding, status: ", f"{_BNXT}/bnxt.c bnxt_try_recover_fw"
    ),
    KernelMessage(
        "firmware_reset",
        BNXT,
        "(?:Non-fatal|Solicited) firmware reset event",
        f"{_BNXT}/bnxt.c bnxt_async_event_process",
    ),
    KernelMessage("recovery_failed", BNXT, "Firmware reset aborted", f"{_BNXT}/bnxt.c bnxt_fw_reset_task"),
    KernelMessage(
        "command_timeout", BNXT, r"Error \(timeout: [0-9]{1,10}\) msg ", f"{_BNXT}/bnxt_hwrm.c __hwrm_send"
    ),
    KernelMessage("command_timeout", BNXT, "Resp cmpl intr err msg: ", f"{_BNXT}/bnxt_hwrm.c __hwrm_send"),
    KernelMessage(
        "command_timeout",
        BNXT,
        "rcfw timedout: ",
        f"{_RDMA}/bnxt_re/qplib_rcfw.c __send_message_basic_sanity",
    ),
    KernelMessage(
        "device_high_temperature",
        BNXT,
        "Chip temperature has gone above ",
        f"{_BNXT}/bnxt.c bnxt_event_error_report (7.3)",
    ),
    KernelMessage(
        "module_error",
        BNXT,
        "Unqualified SFP\\+ module detected",
        f"{_BNXT}/bnxt.c bnxt_get_port_module_status",
    ),
    KernelMessage(
        "module_power_insufficient",
        BNXT,
        "SFP\\+ module is shutdown",
        f"{_BNXT}/bnxt.c bnxt_get_port_module_status",
    ),
    KernelMessage("pause_storm", BNXT, "Pause Storm detected", f"{_BNXT}/bnxt.c bnxt_event_error_report"),
    KernelMessage(
        "driver_error", BNXT, "One or more MMIO doorbells dropped", f"{_BNXT}/bnxt.c bnxt_event_error_report"
    ),
    KernelMessage("tx_timeout", BNXT, "TX timeout detected", f"{_BNXT}/bnxt.c bnxt_tx_timeout"),
    KernelMessage("link_up", BNXT, "NIC Link is Up", f"{_BNXT}/bnxt.c bnxt_report_link"),
    KernelMessage("link_down", BNXT, "NIC Link is Down", f"{_BNXT}/bnxt.c bnxt_report_link"),
)

INTEL_MESSAGES = (
    KernelMessage(
        "firmware_fatal", INTEL, "critical PE Error", f"{_RDMA}/irdma/icrdma_if.c icrdma_iidc_event_handler"
    ),
    KernelMessage("memory_error", INTEL, "HMC Error", f"{_RDMA}/irdma/icrdma_if.c icrdma_iidc_event_handler"),
    KernelMessage("memory_error", I40E, "HMC error interrupt", f"{_INTEL}/i40e/i40e_main.c i40e_intr"),
    KernelMessage(
        "device_reset", INTEL, "Requesting a reset", f"{_RDMA}/irdma/icrdma_if.c icrdma_request_reset"
    ),
    KernelMessage(
        "command_timeout",
        INTEL,
        "Virtual channel Req <-> Resp completion timeout",
        f"{_RDMA}/irdma/ig3rdma_if.c (7.3)",
    ),
    KernelMessage(
        "firmware_fatal",
        INTEL,
        "Firmware recovery mode detected",
        f"{_INTEL}/ice/ice_main.c, i40e/i40e_main.c",
    ),
    KernelMessage(
        "firmware_fatal",
        I40E,
        "Entering recovery mode due to repeated FW resets",
        f"{_INTEL}/i40e/i40e_main.c",
    ),
    KernelMessage(
        "firmware_fatal",
        I40E,
        "A[RS]Q Critical Error detected",
        f"{_INTEL}/i40e/i40e_main.c i40e_clean_adminq_subtask",
    ),
    KernelMessage(
        "recovery_failed",
        INTEL,
        "tx_timeout recovery unsuccessful",
        f"{_INTEL}/ice/ice_main.c ice_tx_timeout",
    ),
    KernelMessage(
        "recovery_failed",
        ICE,
        "Rebuild failed, unload and reload driver",
        f"{_INTEL}/ice/ice_main.c ice_rebuild",
    ),
    KernelMessage(
        "recovery_failed",
        ICE,
        r"\w{1,64}(?:: unrecoverable device error| failed, device is unrecoverable)",
        f"{_INTEL}/ice/ice_main.c ice_pci_err_detected",
    ),
    KernelMessage(
        "recovery_failed",
        ("idpf",),
        "Device reset timeout!",
        f"{_INTEL}/idpf/idpf_lib.c idpf_check_reset_complete",
    ),
    KernelMessage(
        "tx_timeout", INTEL, "tx_timeout: VSI_", f"{_INTEL}/ice/ice_main.c ice_tx_timeout, i40e/i40e_main.c"
    ),
    KernelMessage(
        "tx_timeout", ("idpf",), "Detected Tx timeout: ", f"{_INTEL}/idpf/idpf_txrx.c idpf_tx_timeout"
    ),
    KernelMessage(
        "pause_storm",
        ICE,
        "Fake Tx hang detected on queue .{1,20} timeout caused by PFC storm",
        f"{_INTEL}/ice/ice_main.c",
    ),
    KernelMessage(
        "driver_error",
        INTEL,
        "Malicious Driver Detection event ",
        f"{_INTEL}/ice/ice_main.c ice_handle_mdd_event",
    ),
    KernelMessage(
        "module_high_temperature",
        I40E,
        "Rx/Tx is disabled on this device because the module does not meet thermal requirements",
        f"{_INTEL}/i40e/i40e_main.c i40e_handle_link_event",
    ),
    KernelMessage(
        "module_error",
        INTEL,
        "(?:An unsupported module type was detected|Rx/Tx is disabled on this device because an unsupported )",
        f"{_INTEL}/ice/ice_main.c ice_check_module_power, i40e/i40e_main.c i40e_handle_link_event",
    ),
    KernelMessage(
        "link_up", INTEL, "NIC Link is [Uu]p", f"{_INTEL}/ice/ice_main.c ice_print_link_msg, i40e/i40e_main.c"
    ),
    KernelMessage(
        "link_down",
        INTEL,
        "NIC Link is Down",
        f"{_INTEL}/ice/ice_main.c ice_print_link_msg, i40e/i40e_main.c",
    ),
)

OTHER_MESSAGES = (
    KernelMessage(
        "firmware_fatal", IONIC, "FW heartbeat stalled", f"{_IONIC}/ionic_dev.c ionic_heartbeat_check"
    ),
    KernelMessage(
        "firmware_fatal", IONIC, "Surprise FW stop", f"{_IONIC}/ionic_lif.c ionic_lif_handle_fw_down"
    ),
    KernelMessage(
        "firmware_reset", IONIC, "FW Down: Stopping LIFs", f"{_IONIC}/ionic_lif.c ionic_lif_handle_fw_down"
    ),
    KernelMessage(
        "device_recovered", IONIC, "FW Up: LIFs restarted", f"{_IONIC}/ionic_lif.c ionic_lif_handle_fw_up"
    ),
    KernelMessage(
        "recovery_failed", IONIC, "FW Up: LIFs restart failed", f"{_IONIC}/ionic_lif.c ionic_lif_handle_fw_up"
    ),
    KernelMessage(
        "command_timeout",
        IONIC,
        r"DEVCMD .{1,64} timeout after ",
        f"{_IONIC}/ionic_main.c __ionic_dev_cmd_wait",
    ),
    KernelMessage(
        "command_timeout", IONIC, "admin command timed out, ", f"{_RDMA}/ionic/ionic_admin.c (7.3)"
    ),
    KernelMessage("tx_timeout", IONIC, "Tx Timeout triggered", f"{_IONIC}/ionic_lif.c ionic_tx_timeout"),
    KernelMessage("link_up", IONIC, "Link up", f"{_IONIC}/ionic_lif.c ionic_link_status_check"),
    KernelMessage("link_down", IONIC, "Link down", f"{_IONIC}/ionic_lif.c ionic_link_status_check"),
    KernelMessage(
        "memory_error", HNS, r"[\w ]{0,128}ecc_mbit_err found", f"{_HNS}/hns3pf/hclge_err.c hclge_log_error"
    ),
    KernelMessage(
        "driver_error",
        HNS,
        r"\w{1,64} \w{1,64} found \[error status=",
        f"{_HNS}/hns3pf/hclge_err.c hclge_log_error",
    ),
    KernelMessage(
        "firmware_reset",
        HNS,
        "(?:IMP|global) reset interrupt",
        f"{_HNS}/hns3pf/hclge_main.c hclge_check_event_cause",
    ),
    KernelMessage(
        "recovery_failed",
        HNS,
        "(?:Reset fail!|Wait for reset timeout: )",
        f"{_HNS}/hns3pf/hclge_main.c hclge_reset_wait",
    ),
    KernelMessage(
        "tx_timeout", HNS, "tx_timeout count: ", f"{_HNS}/hns3_enet.c hns3_get_tx_timeo_queue_info"
    ),
    KernelMessage(
        "command_timeout",
        HNS,
        r"\[cmd\] ?token 0x[0-9a-f]{1,8} mailbox 0x[0-9a-f]{1,8} timeout",
        f"{_RDMA}/hns/hns_roce_cmd.c",
    ),
    KernelMessage(
        "driver_error", HNS, "AEQ overflow!", f"{_RDMA}/hns/hns_roce_hw_v2.c abnormal_interrupt_basic"
    ),
    KernelMessage("link_up", HNS, "link up", f"{_HNS}/hns3_enet.c hns3_link_status_change"),
    KernelMessage("link_down", HNS, "link down", f"{_HNS}/hns3_enet.c hns3_link_status_change"),
    KernelMessage(
        "device_high_temperature",
        QED,
        r"HW error occurred \[Fan Failure\]",
        f"{_QED}/qed/qed_main.c qed_hw_error_occurred",
    ),
    KernelMessage(
        "firmware_fatal", QED, r"HW error occurred \[", f"{_QED}/qed/qed_main.c qed_hw_error_occurred"
    ),
    KernelMessage(
        "firmware_fatal", QED, "The MFW notified that a critical error occurred", f"{_QED}/qed/qed_mcp.c"
    ),
    KernelMessage(
        "command_timeout",
        QED,
        "The MFW failed to respond to command ",
        f"{_QED}/qed/qed_mcp.c _qed_mcp_cmd_and_union",
    ),
    KernelMessage(
        "power_cycle_required",
        QED,
        "Recovery handling has failed. Power cycle is needed",
        f"{_QED}/qede/qede_main.c",
    ),
    KernelMessage(
        "device_reset", QED, "Starting a recovery process", f"{_QED}/qede/qede_main.c qede_recovery_handler"
    ),
    KernelMessage(
        "device_recovered", QED, "Recovery handling is done", f"{_QED}/qede/qede_main.c qede_recovery_handler"
    ),
    KernelMessage(
        "module_unplugged",
        QED,
        "Transceiver is unplugged",
        f"{_QED}/qed/qed_mcp.c qed_mcp_handle_transceiver_change",
    ),
    KernelMessage(
        "module_plugged",
        QED,
        "Transceiver is present",
        f"{_QED}/qed/qed_mcp.c qed_mcp_handle_transceiver_change",
    ),
    KernelMessage("tx_timeout", QED, "TX timeout on queue ", f"{_QED}/qede/qede_main.c qede_tx_timeout"),
    KernelMessage("link_up", QED, "Link is up", f"{_QED}/qede/qede_main.c qede_link_update"),
    KernelMessage("link_down", QED, "Link is down", f"{_QED}/qede/qede_main.c qede_link_update"),
    KernelMessage(
        "command_timeout",
        MANA,
        "HWC: Request timed out!",
        f"{_MANA}/hw_channel.c mana_hwc_send_request (6.1, 6.12)",
    ),
    KernelMessage(
        "command_timeout",
        MANA,
        "Command 0x[0-9a-f]{1,8} timed out: ",
        f"{_MANA}/hw_channel.c mana_hwc_send_request (7.3)",
    ),
    KernelMessage("device_reset", MANA, "MANA reset cycle start", f"{_MANA}/gdma_main.c (7.3)"),
    KernelMessage("device_recovered", MANA, "MANA reset cycle completed", f"{_MANA}/gdma_main.c (7.3)"),
    KernelMessage("recovery_failed", MANA, "MANA reset cycle failed", f"{_MANA}/gdma_main.c (7.3)"),
    KernelMessage(
        "command_timeout",
        EFA,
        r"(?:Wait for completion \(polling\) timeout|The device didn't send any completion for admin cmd)",
        f"{_RDMA}/efa/efa_com.c efa_com_wait_and_process_admin_cq_polling, _interrupts",
    ),
    KernelMessage(
        "recovery_failed",
        EFA,
        "Reset indication didn't turn (?:on|off)",
        f"{_RDMA}/efa/efa_com.c efa_com_dev_reset",
    ),
)

ANY_DRIVER = (
    KernelMessage("tx_timeout", (), "NETDEV WATCHDOG: ", "net/sched/sch_generic.c dev_watchdog"),
    KernelMessage(
        "tx_timeout",
        ("NETDEV WATCHDOG",),
        r"transmit queue [0-9]{1,5} timed out",
        "net/sched/sch_generic.c dev_watchdog (before 6.5)",
    ),
    KernelMessage(
        "pcie_aer_correctable",
        (),
        r"(?:AER: )?(?:PCIe|CXL) Bus Error: severity=Correct",
        "drivers/pci/pcie/aer.c aer_print_error",
    ),
    KernelMessage(
        "pcie_aer_uncorrectable",
        (),
        r"(?:AER: )?(?:PCIe|CXL) Bus Error: severity=Uncorrect",
        "drivers/pci/pcie/aer.c aer_print_error",
    ),
    KernelMessage(
        "pcie_aer_uncorrectable", (), "(?:AER: )?aer_uncor_severity: ", "drivers/pci/pcie/aer.c pci_print_aer"
    ),
    KernelMessage(
        "pcie_contained", PORT, "DPC: containment event, ", "drivers/pci/pcie/dpc.c dpc_process_error"
    ),
    KernelMessage(
        "device_removed",
        PORT,
        r"pciehp: Slot\([^)]{1,32}\): (?:Card not present|Link Down$)",
        "drivers/pci/hotplug/pciehp_ctrl.c pciehp_handle_presence_or_link_change",
    ),
    KernelMessage(
        "slot_power_fault",
        PORT,
        r"pciehp: Slot\([^)]{1,32}\): Power fault",
        "drivers/pci/hotplug/pciehp_hpc.c pciehp_isr",
    ),
)

MESSAGES = (*MLX5_MESSAGES, *MLX4_MESSAGES, *BNXT_MESSAGES, *INTEL_MESSAGES, *OTHER_MESSAGES, *ANY_DRIVER)
"""All messages; the order counts within a driver."""
