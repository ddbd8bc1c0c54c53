/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The counters of a port: one list makes the enumeration and the names that
 * "rdma statistic show" and sysfs hw_counters print. docs/counters.md tells
 * each one's meaning. Names follow mlx5 where it has the counter.
 * Leaf: compiles in user space too.
 */
#ifndef UROCE_COUNTERS_H
#define UROCE_COUNTERS_H

#define UROCE_COUNTERS(X)						\
	X(SENT_PKTS, sent_pkts)						\
	X(RCVD_PKTS, rcvd_pkts)						\
	X(SENT_BYTES, sent_bytes)					\
	X(RCVD_BYTES, rcvd_bytes)					\
	X(LOCAL_MSGS, local_msgs)					\
	X(KICKS, kicks)							\
	/* requester and completer */					\
	X(RETRANSMITS, retransmits)					\
	X(PACKET_SEQ_ERR, packet_seq_err)				\
	X(IMPLIED_NAK_SEQ_ERR, implied_nak_seq_err)			\
	X(LOCAL_ACK_TIMEOUT_ERR, local_ack_timeout_err)			\
	X(RNR_NAK_RETRY_ERR, rnr_nak_retry_err)				\
	X(REQ_REMOTE_ACCESS_ERRORS, req_remote_access_errors)		\
	X(REQ_REMOTE_INVALID_REQUEST, req_remote_invalid_request)	\
	X(REQ_CQE_ERROR, req_cqe_error)					\
	X(REQ_CQE_FLUSH_ERROR, req_cqe_flush_error)			\
	X(TX_DROPPED, tx_dropped)					\
	X(TX_NO_ROUTE, tx_no_route)					\
	/* responder */							\
	X(DUPLICATE_REQUEST, duplicate_request)				\
	X(OUT_OF_SEQUENCE, out_of_sequence)				\
	X(OUT_OF_BUFFER, out_of_buffer)					\
	X(RESP_REMOTE_ACCESS_ERRORS, resp_remote_access_errors)		\
	X(RESP_INVALID_REQUEST, resp_invalid_request)			\
	X(RESP_LOCAL_LENGTH_ERROR, resp_local_length_error)		\
	X(RESP_CQE_ERROR, resp_cqe_error)				\
	X(RESP_CQE_FLUSH_ERROR, resp_cqe_flush_error)			\
	/* packets dropped on receive, by reason */			\
	X(RX_ICRC_ENCAPSULATED, rx_icrc_encapsulated)			\
	X(DROP_SHORT, drop_short)					\
	X(DROP_LENGTH, drop_length)					\
	X(DROP_VERSION, drop_version)					\
	X(DROP_OPCODE, drop_opcode)					\
	X(DROP_QPN, drop_qpn)						\
	X(DROP_QP_STATE, drop_qp_state)					\
	X(DROP_SERVICE, drop_service)					\
	X(DROP_ADDRESS, drop_address)					\
	X(DROP_PKEY, drop_pkey)						\
	X(DROP_QKEY, drop_qkey)						\
	X(DROP_QUEUE_FULL, drop_queue_full)				\
	X(DROP_NO_RECV, drop_no_recv)					\
	X(DROP_BROKEN, drop_broken)					\
	X(DROP_RESPONSE, drop_response)					\
	X(CQ_OVERFLOW, cq_overflow)					\
	/* on-demand paging */						\
	X(PAGE_FAULTS, page_faults)					\
	X(PAGE_INVALIDATIONS, page_invalidations)			\
	X(PAGE_PREFETCH, page_prefetch)

enum uroce_counter {
#define UROCE_CNT_ENUM(id, name) UROCE_CNT_##id,
	UROCE_COUNTERS(UROCE_CNT_ENUM)
#undef UROCE_CNT_ENUM
	UROCE_NUM_COUNTERS
};

#endif
