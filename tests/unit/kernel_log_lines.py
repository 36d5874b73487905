"""One line of the kernel log per message of `catalog.kernel_events`, made from the formats in the sources that the row names (constructed).

The first word of each block is the driver; `@` is its device at 0000:3b:00.0, `@eth0` the same with its network device.
"""

EXAMPLES = {
    "mlx5_core": """
completion_unanswered     @mlx5_0: QP 4521 error: general error (0x81 0x0 0x0)
completion_not_ready      @mlx5_0: QP 4521 error: RNR retry counter exceeded (0x81 0x0 0x0)
completion_refused        @mlx5_0: QP 4521 error: fatal error (0x81 0x0 0x0)
completion_local          @mlx5_0: QP 4521 error: unrecognized status (0x41 0x0 0x91)
completion_local          @mlx5_0: mr_umem_get:859:(pid 5771): umem get failed (-14)
pcie_unreachable          @: reset reload flow aborted, PCI reads still not working
recovery_failed           @: Firmware is not responsive (0x1) after 120000 ms
device_reset              @: mlx5_health_try_recover:341:(pid 9): starting health recovery flow
completion_unanswered     @mlx5_0: mlx5_handle_error_cqe:333:(pid 5771): WC error: 12, Message: transport retry counter exceeded
completion_not_ready      @mlx5_0: mlx5_handle_error_cqe:333:(pid 5771): WC error: 13, Message: RNR retry counter exceeded
completion_refused        @mlx5_0: mlx5_handle_error_cqe:333:(pid 5771): WC error: 10, Message: remote access error
completion_local          @mlx5_0: mlx5_handle_error_cqe:333:(pid 5771): WC error: 4, Message: local protection error
driver_error              @: alloc_system_page:302:(pid 48120): failed to allocate page
objects_exhausted         @mlx5_0: create_mkey_warn:158:(pid 2163): async reg mr failed. status -12
driver_error              @: wait_func_handle_exec_timeout:1163:(pid 44): cmd[2]: QUERY_HCA_CAP(0x100) recovered after timeout
driver_error              @eth0: Error cqe on cqn 0x42, ci 0x1f, qn 0x11, opcode 0xd, syndrome 0x2, vendor syndrome 0x68
recovery_failed           @: mlx5_function_enable:1176:(pid 9): Firmware over 120000 MS in pre-initializing state, aborting
recovery_failed           @: mlx5_pci_slot_reset: wait vital failed with error code: -110
pcie_unreachable          @: PCI link not ready (0x0011) after 2000 ms
pcie_unreachable          @: Unable to change power state from D3cold to D0, device inaccessible
pcie_unreachable          @: Refused to change power state, currently in D3
recovery_failed           @: not ready 65535ms after FLR; giving up
objects_exhausted         @: mlx5_cmd_out_err:808:(pid 812): ALLOC_TRANSPORT_DOMAIN(0x816) op_mod(0x0) failed, status no resources(0xf), syndrome (0x1), err(-12)
module_unplugged          @: Port module event: module 0, Cable unplugged
module_plugged            @: Port module event: module 1, Cable plugged
module_disabled           @: Port module event: module 0, Cable disabled
module_high_temperature   @: port_module:254:(pid 0): Port module event[error]: module 0, Cable error, High Temperature
module_power_insufficient @: Port module event[error]: module 0, Cable error, Power budget exceeded
module_power_insufficient @: port_module:283:(pid 0): Port module event[error]: module 0, Cable error, One or more network ports have been powered down due to insufficient/unadvertised power on the PCIe slot
module_error              @: Port module event[error]: module 1, Cable error, Bus stuck (I2C or data shorted)
device_high_temperature   @: temp_warn:173:(pid 0): High temperature on sensors with bit set 0 1
device_high_temperature   @: temp_warn:191:(pid 0): High temperature on sensors with bit set 0 0x1.
slot_power_insufficient   @: mlx5_pcie_event:301:(pid 214): Detected insufficient power on the PCIe slot (25W).
health_syndrome           @: print_health_info:431:(pid 0): Health issue observed, firmware internal error, severity(3) ERROR:
health_syndrome           @: print_health_info:431:(pid 0): Health issue observed, High temperature, severity(2) CRITICAL:
health_syndrome           @: print_health_info:387:(pid 0): synd 0x1: firmware internal error
health_warning            @: print_health_info:431:(pid 0): Health issue observed, FFSER error, severity(4) WARNING:
power_cycle_required      @: print_health_info:460:(pid 0): Cold reset is required
pcie_unreachable          @: print_health_info:425:(pid 0): PCI slot is unavailable
objects_exhausted         @: mlx5_cmd_out_err:808:(pid 812): CREATE_QP(0x500) op_mod(0x0) failed, status limits exceeded(0x8), syndrome (0x1), err(-12)
recovery_failed           @: probe with driver mlx5_core failed with error -110
pcie_unreachable          @: mlx5_health_wait_pci_up:325:(pid 41): PCI channel offline, stop waiting for PCI
firmware_fatal            @: poll_health:801:(pid 0): device's health compromised - reached miss count
firmware_fatal            @: poll_health:785:(pid 0): Fatal error 3 detected
firmware_fatal            @: health_care:154:(pid 16889): handling bad device here
recovery_failed           @: mlx5_health_try_recover:343:(pid 9): health recovery failed
recovery_failed           @: mlx5_health_try_recover:338:(pid 9): health recovery flow aborted, PCI reads still not working
recovery_failed           @: mlx5_fw_fatal_reporter_err_work:657:(pid 9): Driver is in error state. Unloading
device_recovered          @: health recovery succeeded
command_timeout           @: wait_func:1186:(pid 44): ACCESS_REG(0x805) timeout. Will cause a leak of a command resource
command_timeout           @: cb_timeout_handler:947:(pid 44): cmd[3]: MODIFY_RQ(0x909) Async, timeout. Will cause a leak of a command resource
command_timeout           @: wait_func_handle_exec_timeout:1156:(pid 44): cmd[0]: QUERY_VPORT_COUNTER(0x770) No done completion
command_timeout           @: cmd_work_handler:993:(pid 44): CREATE_MKEY(0x200) timed out while waiting for a slot.
command_timeout           @: wait_func:1189:(pid 44): QUERY_HCA_CAP(0x100) canceled on out of queue timeout.
command_timeout           @: wait_func:1192:(pid 44): QUERY_HCA_CAP(0x100) timeout while waiting for command semaphore.
command_timeout           @: mlx5_cmd_invoke:1276:(pid 44): All CMD slots are stalled, aborting command
command_failed            @: mlx5_cmd_out_err:815:(pid 44): ACCESS_REG(0x805) op_mod(0x1) failed, status bad parameter(0x3), syndrome (0x15c356), err(-22)
firmware_reset            @: mlx5_sync_reset_now_event:695:(pid 8): Sync Reset now. Device is going to reset.
tx_timeout                @eth0: TX timeout detected
link_up                   @eth0: Link up
link_down                 @eth0: Link down
tx_timeout                @eth0: NETDEV WATCHDOG: CPU: 17: transmit queue 3 timed out 5224 ms
tx_timeout                @eth0: tx hang 1 detected on queue 5, resetting adapter
tx_timeout                @eth0: Detected Tx Unit Hang
pcie_aer_correctable      @: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)
pcie_aer_correctable      @: AER: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)
pcie_aer_uncorrectable    @: PCIe Bus Error: severity=Uncorrected (Fatal), type=Inaccessible, (Unregistered Agent ID)
pcie_aer_uncorrectable    @: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, (Requester ID)
pcie_aer_uncorrectable    @: PCIe Bus Error: severity=Uncorrectable (Fatal) (Inaccessible)
pcie_aer_uncorrectable    @: AER: aer_uncor_severity: 0x00062010
""",
    "mlx4_core": """
driver_error              @: EQ overrun on EQN 7
command_timeout         @: Communication channel is offline.
pcie_unreachable        @: PCI can't be accessed to read vendor id
command_failed          @: command 0x1a failed: fw status = 0x2
device_high_temperature @: Temperature Threshold was reached! Threshold: 105 celsius degrees; Current Temperature: 107
module_error            @: Bad cable detected on port 1
module_error            @: Unsupported cable detected
firmware_fatal          @: Internal error detected:
firmware_fatal          @: Internal error mark was detected on device
command_timeout         @: command 0x24 timed out (go bit not cleared)
command_timeout         @: Communication channel command 0x1 timed out
command_timeout         @: communication channel command 0x1 (op=0x5) timed out
device_reset            @: device is going to be reset
device_recovered        @: device was reset successfully
recovery_failed         @: PCI device did not come back after reset, aborting
""",
    "bnxt_en": """
link_mode_mismatch @eth0: Link speed 100000 no longer supported
command_timeout    @eth0: Resp cmpl intr abandoning msg: 0x15 due to firmware status: 0x8000
recovery_failed    @eth0: A previous firmware reset has not completed, aborting
recovery_failed    @eth0: A previous firmware reset did not complete, aborting
command_timeout         @eth0: Abandoning msg {0x23 0x1b4} len: 0 due to firmware status: 0xc0
command_failed          @eth0: hwrm req_type 0x23 seq id 0x1b4 error 0x4
recovery_failed         @eth0: bnxt_open() failed during FW reset
driver_error            @eth0: RX ring reset failed, rc = -5, falling back to global reset
objects_exhausted       @: Create QP failed - max exceeded! 0x1/0x80 0x1/0x80 0x1/0x6 0x1/0x6 0x0/0x0
objects_exhausted       @: Failed to create CQ -max exceeded
driver_error            @: Create HW SRQ failed!
firmware_fatal          @eth0: Firmware fatal reset event received, max wait time 60000 msec
firmware_fatal          @eth0: Firmware fatal reset event, data1: 0x2, data2: 0x0, min wait 2000 ms, max wait 60000 ms
firmware_reset          @eth0: Firmware non-fatal reset event received, max wait time 5000 msec
command_timeout         @: cmdq[0x1c]=0x4 timedout (20000)msec
command_timeout         @: QPLIB: bnxt_re_is_fw_stalled: FW STALL Detected. cmdq[0xe]=0x3 waited (103641 > 100000) msec active 1
driver_error            @: QPLIB: cmdq[0xd3a]=0x9 status 0x3
driver_error            @: QPLIB: cmdq[0x0]=0x3 send failed
driver_error            @eth0: Failed to create HW CQ
driver_error            @eth0: Failed to modify HW QP
firmware_fatal            @eth0: Detected firmware fatal condition, initiating reset
firmware_fatal            @eth0: Fatal firmware reset event, data1: 0x1, data2: 0x8000, min wait 100 ms, max wait 6000 ms
firmware_fatal            @eth0: Firmware not responding, status: 0xc0
firmware_reset            @eth0: Non-fatal firmware reset event, data1: 0x1, data2: 0x9000, min wait 100 ms, max wait 6000 ms
recovery_failed           @eth0: Firmware reset aborted, PCI config space invalid
command_timeout           @eth0: Error (timeout: 1000000) msg {0x23 0x1b4} len:0
command_timeout           @eth0: Resp cmpl intr err msg: 0x17
command_timeout           @: rcfw timedout: cookie = 0x12, free_slots = 250
device_high_temperature   @eth0: Chip temperature has gone above the critical thermal threshold!
module_error              @eth0: Unqualified SFP+ module detected on port 0
module_error       @eth0: SFP+ module is shutdown
pause_storm               @eth0: Pause Storm detected!
driver_error              @eth0: One or more MMIO doorbells dropped by the device!
tx_timeout                @eth0: TX timeout detected, starting reset task!
link_up                   @eth0: NIC Link is Up, 200000 Mbps (NRZ) full duplex, Flow control: ON - receive & transmit
link_down                 @eth0: NIC Link is Down
""",
    "ice": """
recovery_failed @: Error during VSI rebuild: -5. Unload and reload the driver.
recovery_failed @: The driver for the device stopped because the NVM image is newer than expected. You must install the most recent version of the network driver.
recovery_failed @: eeprom check failed (-64), Tx/Rx traffic disabled
power_cycle_required @: Please do Power-On Reset to initialize adapter in normal mode with full functionality.
device_reset @: Reset indication received from the PF
module_high_temperature @: Rx/Tx is disabled on this device because the module does not meet thermal requirements.
module_power_insufficient @: Rx/Tx is disabled on this device because the module does not meet the power requirements.
module_power_insufficient @: Rx/Tx is disabled on this device because the module exceeds the power of the port.
module_power_insufficient @: The module's power requirements exceed the device's power supply. Cannot start link
module_error    @: The installed module is incompatible with the device's NVM image. Cannot start link
recovery_failed @: Error resetting device. Please reload the driver
recovery_failed @eth0: driver needs to be unloaded and reloaded
driver_error    @: PF VSI rebuild failed: -5
driver_error    @irdma0: PE Push Error
command_timeout @irdma0: WQE: CQP SQ is full, head 0x1 tail 0x2 size 0x800
completion_unanswered @irdma0: abnormal ae_id = 0x50a bool qp=1 qp_id = 5, ae_src=5
completion_not_ready @irdma0: abnormal ae_id = 0x50f bool qp=1 qp_id = 5, ae_src=5
completion_refused @irdma0: abnormal ae_id = 0x208 bool qp=1 qp_id = 5, ae_src=3
completion_local @irdma0: abnormal ae_id = 0x102 bool qp=1 qp_id = 5, ae_src=1
recovery_failed @: IRDMA hardware initialization FAILED init_state=4 status=-110
driver_error    @: PF failed to honor VF 3, opcode 4, error -5
firmware_fatal  @irdma0: critical PE Error, GLPE_CRITERR=0x00000010
memory_error    @irdma0: HMC Error
device_reset    @irdma0: Requesting a reset
firmware_fatal  @: Firmware recovery mode detected. Limiting functionality. Refer to the Intel(R) Ethernet Adapters and Devices User Guide
recovery_failed @eth0: tx_timeout recovery unsuccessful, device is in unrecoverable state.
recovery_failed @: Rebuild failed, unload and reload driver
recovery_failed @: ice_pci_err_detected: unrecoverable device error 2
recovery_failed @: ice_pci_err_resume failed, device is unrecoverable
tx_timeout      @eth0: tx_timeout: VSI_num: 6, Q 12, NTC: 0x3f, HW_HEAD: 0x3f, NTU: 0x41, INT: 0x0
pause_storm     @: Fake Tx hang detected on queue 12, timeout caused by PFC storm
driver_error    @: Malicious Driver Detection event 7 on TX queue 4 PF# 0 VF# 0
driver_error    @irdma0: [Modify QP Cmd Error][op_code=15] status=-5 waiting=1 completion_err=1 maj=0xffff min=0x8029
module_error    @eth0: An unsupported module type was detected. Refer to the Intel(R) Ethernet Adapters and Devices User Guide
module_error    @eth0: Rx/Tx is disabled on this device because an unsupported module type was detected. Refer to the guide
link_up         @eth0: NIC Link is up 100 Gbps Full Duplex, Requested FEC: RS-FEC, Negotiated FEC: RS-FEC, Autoneg: On
link_down       @eth0: NIC Link is Down
""",
    "i40e": """
recovery_failed @: PF reset failed, -15
memory_error            @: HMC error interrupt
firmware_fatal          @: Entering recovery mode due to repeated FW resets. This may take several minutes.
firmware_fatal          @: ARQ Critical Error detected
link_up                 @eth0: NIC Link is Up, 40 Gbps Full Duplex, Flow Control: None
""",
    "idpf": """
device_reset @: HW reset detected
command_timeout @irdma0: Virtual channel Req <-> Resp completion timeout
recovery_failed @: Device reset timeout!
tx_timeout      @eth0: Detected Tx timeout: Count 1, Queue 3
""",
    "ionic": """
device_recovered @: FW heartbeat restored at 4300
firmware_reset   @: DEVCMD IONIC_CMD_LIF_GETATTR (22) interrupted - FW is down
command_failed   @eth0: IONIC_CMD_RDMA_CREATE_CQ (51) failed: IONIC_RC_ENOMEM (13)
firmware_fatal   @: FW heartbeat stalled at 17
firmware_fatal   @: Surprise FW stop, stopping queues
firmware_reset   @: FW Down: Stopping LIFs
device_recovered @: FW Up: LIFs restarted
recovery_failed  @: FW Up: LIFs restart failed - err -5
recovery_failed  @ionic_0: failed to reset rdma -110
command_timeout  @: DEVCMD IONIC_CMD_LIF_GETATTR (22) timeout after 5 secs
command_timeout  @ionic_0: admin command timed out, aq 1 after: 3001ms
tx_timeout       @eth0: Tx Timeout triggered - txq 4
link_up          @eth0: Link up - 400 Gbps
link_down        @eth0: Link down
""",
    "hns3": """
module_unplugged @: SFP is absent!
module_error     @: SFP tx is disabled!
driver_error     @: Reference clock lost!
firmware_reset   @: IMP firmware watchdog reset soon expected!
memory_error    @: ROCEE RAS 2bit ECC error
memory_error    @: ECC UCERR ALARM: 0x0, 0x1, 0x2
driver_error    @: found MODULE_PPP fd_ad_error, is ras error.
driver_error    @: ROCEE TSP OVF [error status=0x2] found
device_reset    @: IMP reset requested
device_reset    @: global reset requested
device_reset    @: Function level reset.
completion_local @: Local work queue 0x2 catas error, sub_type:1
command_timeout @: Query SCC clr done flag overtime.
device_reset    @: received reset event, reset type is 3
device_reset    @: receive reset interrupt 0x2!
device_recovered @: Reset done, hclge driver initialization finished.
device_recovered @: reset done, RoCE client reinit finished.
recovery_failed @: fail to rebuild, ret=-5
recovery_failed @: couldn't get reset done status from h/w, timeout!
command_timeout @hns_0: failed to wait mbox status 0x80000000
command_failed  @: Cmdq IO error, opcode = 0x8500, return = 0x1.
completion_local @: CQ 0x9 access err.
driver_error    @: SRQ catas error.
driver_error    @: Failed to reset the virtual function, it is disabled
command_timeout @: the mailbox does not answer: no response within 2000 ms
driver_error    @: the unit does not answer: no response within 2000 ms
memory_error    @: PPP_MPF_ABNORMAL_INT_ST1 vf_vlan_ad_mem_ecc_mbit_err found [error status=0x1]
memory_error    @: PPU_MPF_ABNORMAL_INT_ST1 rpu_rx_pkt_ecc_mbit_err found
driver_error    @: IGU_INT_STS igu_rx_buf0_err found [error status=0x4]
firmware_reset  @: IMP reset interrupt
recovery_failed @: Reset fail!
recovery_failed @: Wait for reset timeout: 4
tx_timeout      @eth0: tx_timeout count: 1, queue id: 3, SW_NTU: 0x1, SW_NTC: 0x0, napi state: 16
command_timeout @: [cmd] token 0xb2 mailbox 0x3 timeout.
driver_error    @: AEQ overflow!
completion_local    @: Local work queue 0x9 catast error, sub_event type is: 3
completion_local @: Invalid request local work queue 0x9 error.
completion_local @: Local access violation work queue 0x9 error, sub_event type is: 1
link_up         @eth0: link up
link_down       @eth0: link down
""",
    "qede": """
power_cycle_required @eth0: Recovery handling has failed. Power cycle is needed.
""",
    "be2net": """
power_cycle_required @: Reset failed .. Reboot server
recovery_failed      @: Cannot recover from a consecutive TPE error
device_reset         @: Recoverable HW error detected
device_recovered     @: Adapter recovery successful
health_syndrome      @: Unrecoverable HW error detected: 0x4000
module_error         @: Port A: Optics faulted/incorrectly installed/not installed - Reseat optics. If issue not resolved, replace.
firmware_fatal       @: Error detected in the card
health_syndrome      @: Unrecoverable Error detected in the adapter
health_syndrome      @: UE: MPU bit set
power_cycle_required @: Please reboot server to recover
command_timeout      @: FW not responding
""",
    "ocrdma": """
command_timeout @: mailbox timeout: fw not responding
firmware_fatal  @ocrdma0: Fatal event received
""",
    "cxgb4": """
module_unplugged @eth0: port module unplugged
module_plugged   @eth0: passive DA module inserted
module_error     @eth0: eth0: unknown module type 12 inserted
link_mode_mismatch      @: Port 1 link down, reason: Auto-negotiation Failure
device_high_temperature @: Port 1 link down, reason: Insufficient Airflow
recovery_failed         @: Cannot reenable PCI device after reset
firmware_fatal   @: FW assertion at ofld_rx.c:123, val0 0x1, val1 0x2
memory_error     @: MC0 uncorrectable ECC data error
memory_error     @: TP FIFO parity error
driver_error     @: SGE idma0, queue 4, potentially stuck in state 3 for 10 seconds (debug0=0x1, debug11=0x2)
module_error     @eth0: eth0: transceiver module error
link_down        @eth0: link down
link_down        @: Port 1 link down, reason: No RX Signal Detected
link_up          @eth0: link up, 100Gbps, full-duplex, Tx/Rx PAUSE
firmware_fatal  @: encountered fatal error, adapter stopped
firmware_fatal  @: Firmware reports adapter error: Crash
command_timeout @: command 0x23 in mailbox 4 timed out
""",
    "mana": """
recovery_failed  @: Failed to establish HWC: -110
command_timeout  @: Timeout when setting up HWC: -110
command_failed   @: HWC: Failed hw_channel req: 0x5
driver_error     @: EQ 3: overflow detected
command_timeout  @: HWC: Request timed out!
command_timeout  @: HWC: Request timed out: 30000 ms
command_timeout  @: Command 0x20001 timed out: 5000 ms
device_reset     @: MANA reset cycle start
device_reset     @: Recv MANA service type:135
device_recovered @: MANA reset cycle completed
recovery_failed  @: MANA reset cycle failed err -110
""",
    "efa": """
command_timeout @efa_0: The device sent a completion but the driver didn't receive any MSI-X interrupt for admin cmd CREATE_QP(1) status 1
command_timeout @efa_0: Admin queue is closed
command_timeout @efa_0: Reading register timed out. expected: req id[4] offset[0x58] actual: req id[3] offset[0x0]
command_timeout @efa_0: Failed to process command CREATE_QP (opcode 1) comp_status 0 err -62
command_timeout @efa_0: Failed to modify qp-5 modify_mask[0x1] [-62]
objects_exhausted @efa_0: Failed to create cq[-12]
completion_local @efa_0: Failed to register mr [-22]
command_timeout @efa_0: Wait for completion (polling) timeout
command_timeout @efa_0: The device didn't send any completion for admin cmd CREATE_QP(1) status 0 (ctx 0x0, sq producer: 5, sq consumer: 4, cq consumer: 4)
recovery_failed @efa_0: Reset indication didn't turn off
objects_exhausted @efa_0: Failed to process command ALLOC_PD (opcode 15) comp_status 2 err -12
command_timeout @efa_0: Failed to submit command CREATE_AH (opcode 6) err -19
driver_error @efa_0: Failed to submit command CREATE_AH (opcode 6) err -11
completion_local @efa_0: Failed to process command DEREG_MR (opcode 8) comp_status 6 err -22
driver_error @efa_0: Failed to process command MODIFY_QP (opcode 2) comp_status 5 err -5
""",
    "pcieport": """
recovery_failed  @: AER: device recovery failed
device_recovered @: AER: device recovery successful
device_removed   @: pciehp: Slot(3): Cannot train link: status 0x0001
pcie_contained   @: DPC: containment event, status:0x1f01 source:0x0000
pcie_contained   @: DPC containment event, status:0x1f01 source:0x0000
device_removed   @: pciehp: Slot(3): Card not present
device_removed   @: pciehp: Slot(3-1): Link Down
slot_power_fault @: pciehp: Slot(3): Power fault
""",
}

OTHER_FORMS = (
    ("tx_timeout", "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out"),
    ("tx_timeout", "NETDEV WATCHDOG: eth0 (bnxt_en): transmit queue 3 timed out 5224 ms"),
    ("tx_timeout", "NETDEV WATCHDOG: eth0: transmit timed out"),
    ("tx_timeout", "mlx4_en: eth0: TX timeout on queue: 3, QP: 0x44, CQ: 0x84, Cons: 0x1, Prod: 0x2"),
    ("completion_unanswered", "eth0/1: QP 4521 error: general error (0x81 0x0 0x0)"),
    ("completion_not_ready", "eth0/1: QP 4521 error: RNR retry counter exceeded (0x81 0x0 0x0)"),
    ("completion_refused", "eth0/1: QP 4521 error: fatal error (0x81 0x0 0x0)"),
    ("completion_local", "eth0/1: QP 4521 error: unrecognized status (0x41 0x0 0x91)"),
    ("completion_local", "eth0:mr_umem_get:859:(pid 5771): umem get failed (-14)"),
    ("link_up", "mlx4_en: eth0: Link Up"),
    ("link_down", "mlx4_en: eth0: Link Down"),
    ("device_high_temperature", "[qed_hw_error_occurred:2763(eth0-0)]HW error occurred [Fan Failure]"),
    ("firmware_fatal", "[qed_hw_error_occurred:2763(eth0-1)]HW error occurred [MFW Response Failure]"),
    (
        "firmware_fatal",
        "[qed_mcp_handle_critical_error:1931(eth0-0)]The MFW notified that a critical error occurred in the device",
    ),
    *(
        (event, f"[qed_text:543(eth0-0)]{text}")
        for event, text in (
            ("firmware_fatal", "FW assertion!"),
            ("firmware_fatal", "`General Attention 32': Fatal attention"),
            ("device_high_temperature", "Fan failure was detected on the network interface card"),
            ("command_timeout", "The MFW is not responsive. Avoid sending mailbox command 0x1 [param 0x0]."),
            ("command_timeout", "MCP response failure, aborting"),
            ("command_timeout", "Ramrod is stuck [CID 00000001 4:01 4:01 echo 0007]"),
            ("recovery_failed", "Final cleanup failed"),
            ("recovery_failed", "Failed to resume the MCP [CPU_MODE = 0x1, CPU_STATE = 0x2]"),
            ("device_reset", "Received a process kill indication"),
            ("driver_error", "Doorbell drop occurred"),
            ("driver_error", "PGLUE_B parity attention is set [address 0x1, bit 3]"),
            ("objects_exhausted", "Out of MR resources"),
            (
                "pcie_unreachable",
                "Detected PCI device error [rev_id 0xff]. Probably due to prior indication. Aborting.",
            ),
        )
    ),
    (
        "command_timeout",
        "[_qed_mcp_cmd_and_union:543(eth0-0)]The MFW failed to respond to command 0x10000000 [param 0x00000000].",
    ),
    *(
        (event, f"[qedr_poll_cq_req:4016(eth0)]Error: POLL CQ with {status}_ERR. CQ icid=0x1, QP icid=0x2")
        for event, status in (
            ("completion_unanswered", "ROCE_CQE_REQ_STS_TRANSPORT_RETRY_CNT"),
            ("completion_not_ready", "RDMA_CQE_REQ_STS_RNR_NAK_RETRY_CNT"),
            ("completion_refused", "RDMA_CQE_REQ_STS_REMOTE_ACCESS"),
            ("completion_refused", "RDMA_CQE_REQ_STS_REMOTE_OPERATION"),
            ("completion_local", "RDMA_CQE_REQ_STS_LOCAL_LENGTH"),
        )
    ),
    ("recovery_failed", "mlx5_core: probe of 0000:3b:00.0 failed with error -12"),
    ("recovery_failed", "irdma.gen_2 0000:3b:00.0: probe with driver irdma.gen_2 failed with error -110"),
    (
        "duplicate_address",
        "ICMPv6: NA: 02:16:3e:00:00:77 advertised our address fe80::216:3eff:fe00:0 on eth0!",
    ),
    ("duplicate_address", "IPv6: eth0: IPv6 duplicate address fe80::1 used by 02:16:3e:00:00:77 detected!"),
    ("packet_damaged", "eth0: bad ICRC from 172.16.1.61"),
    ("packet_damaged", "eth0: crc error. in: 1a2b3c4d, own 5e6f7081, op 3"),
    (
        "driver_error",
        "ice 0000:3b:00.0 eth0: [Modify QP Cmd Error][op_code=15] status=-5 waiting=1 completion_err=1 maj=0xffff min=0x8029",
    ),
    (
        "pcie_aer_uncorrectable",
        "mlx5_core 0000:3b:00.0: mlx5_pci_err_detected Device state = 1 health sensors: 0 pci_status: 0. Enter",
    ),
    ("driver_error", "eth0: hw csum failure"),
    (
        "lag_unanswered",
        "eth0: Warning: No 802.3ad response from the link partner for any adapters in the bond",
    ),
    (
        "objects_exhausted",
        "mlx5_core 0000:3b:00.0: swiotlb buffer is full (sz: 65536 bytes), total 524288 (slots), used 524262 (slots)",
    ),
    ("driver_error", "infiniband eth0: Couldn't open port 1"),
    (
        "module_high_temperature",
        "hfi1 0000:3b:00.0: eth0: handle_qsfp_error_conditions: QSFP cable temperature too high",
    ),
    *(
        (event, f"hfi1 0000:3b:00.0: hfi1_0: {text}")
        for event, text in (
            ("module_power_insufficient", "qual_power: Port disabled due to system power restrictions"),
            ("link_mode_mismatch", "qual_bitrate: Cable failed bitrate check, disabling port"),
            ("module_unplugged", "handle_qsfp_int: QSFP module removed"),
            ("module_error", "handle_qsfp_error_conditions: QSFP supply voltage too low"),
            ("module_error", "handle_qsfp_error_conditions: Cable RX channel 1/2 power too low"),
            ("module_error", "tune_serdes: Reading QSFP memory failed"),
            ("module_error", "tune_qsfp: Unknown/unsupported cable"),
            ("module_error", "port 1: QSFP chain 0 can't write QSFP_PAGE_SELECT_BYTE: -5"),
        )
    ),
    ("link_mode_mismatch", "ice 0000:3b:00.0 eth0: autonegotiation failed"),
    ("device_high_temperature", "ionic 0000:3b:00.0: ASIC temperature is above its critical limit"),
    ("slot_power_insufficient", "ice 0000:3b:00.0: insufficient power for the port"),
    ("objects_exhausted", "cxgb4 0000:3b:00.0: device IRD resources exhausted"),
    ("driver_error", "infiniband eth0: Failed to modify HW QP"),
    ("command_timeout", "infiniband eth0: admin command timed out, aq 3 after: 2004ms"),
    ("recovery_failed", "infiniband eth0: failed to reset rdma -110"),
    ("objects_exhausted", "infiniband eth0: create_mkey_warn:158:(pid 0): async reg mr failed. status -12"),
    (
        "driver_error",
        "DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0xfffe0000 [fault reason 0x06] PTE Read access is not set",
    ),
    ("driver_error", "DMAR: [DMA Write] Request device [3b:00.0] PASID ffffffff fault addr 7ebb0000"),
    ("driver_error", "DMAR: [INTR-REMAP] Request device [3b:00.0] fault index 0x24 [fault reason 0x22]"),
    *(
        ("driver_error", f"{head} {device}{rest}")
        for head, rest in (
            ("AMD-Vi: Event logged [IO_PAGE_FAULT", " domain=0x0007 address=0xffffc02000 flags=0x0000]"),
            (
                "iommu ivhd3: AMD-Vi: Event logged [ILLEGAL_DEV_TABLE_ENTRY",
                " pasid=0x00000 address=0x3737b01000]",
            ),
            ("iommu ivhd0: AMD-Vi: Event logged [IOTLB_INV_TIMEOUT", " address=0x100]"),
        )
        for device in ("device=3b:00.0", "device=0000:3b:00.0")
    ),
    (
        "driver_error",
        "arm-smmu-v3 arm-smmu-v3.0.auto: event: F_TRANSLATION client: 0000:3b:00.0 sid: 0x100 ssid: 0 iova: 0xfff0 ipa: 0x0",
    ),
    ("driver_error", "mlx5_core 0000:3b:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0a flags=0x0020]"),
    (
        "pcie_aer_uncorrectable",
        "mlx5_core 0000:3b:00.0: mlx5_pci_err_detected Device state = 1 health sensors: 0 pci_status: 0. Enter",
    ),
    ("driver_error", "eth0: hw csum failure"),
    ("device_reset", "[qede_recovery_handler:2674(eth0)]Starting a recovery process"),
    ("device_recovered", "[qede_recovery_handler:2706(eth0)]Recovery handling is done"),
    ("module_unplugged", "[qed_mcp_handle_transceiver_change:1269(eth0-0)]Transceiver is unplugged."),
    ("module_plugged", "[qed_mcp_handle_transceiver_change:1267(eth0-0)]Transceiver is present."),
    ("tx_timeout", "[qede_tx_timeout:596(eth0)]TX timeout on queue 3!"),
    ("link_up", "[qede_link_update:2624(eth0)]Link is up"),
    ("link_down", "[qede_link_update:2631(eth0)]Link is down"),
    ("tx_timeout", "eth0: NETDEV WATCHDOG: CPU: 0: transmit queue 0 timed out 5120 ms"),
)
"""Lines whose head is not that of `dev_printk` about a PCI function."""


def lines() -> list[tuple[str, str]]:
    """Event and line of every example."""
    found = []
    for driver, block in EXAMPLES.items():
        for row in block.strip().splitlines():
            event, _, rest = row.partition(" ")
            place, _, text = rest.strip().removeprefix("@").partition(": ")
            found.append((event, f"{driver} 0000:3b:00.0{' ' + place if place else ''}: {text}"))
    return [*found, *OTHER_FORMS]
