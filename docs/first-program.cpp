// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A first RDMA program. `first-program` waits for one message; `first-program ADDRESS TEXT` writes
 * TEXT into the memory of the one that waits at ADDRESS, without its help, and sends it a word that
 * it is there. ADDRESS is one of the interface's that has the device, not 127.0.0.1.
 *
 *   g++ -std=c++17 -o first-program first-program.cpp -lrdmacm -libverbs
 *
 * Nothing in it is special to uroce.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <rdma/rdma_verbs.h>

static char buffer[64];
struct Where { // of a buffer: what the other side needs to write there
	uint64_t address;
	uint32_t rkey;
};

static void must(const char *what, bool worked)
{
	if (!worked)
		exit((perror(what), 1));
}

// A completion's outcome is its status; errno says nothing about it.
static void must_complete(const char *what, bool came, const ibv_wc &wc)
{
	must(what, came);
	if (wc.status != IBV_WC_SUCCESS)
		exit((fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(wc.status)), 1));
}

int main(int argc, char **argv)
{
	if (argc == 2)
		exit((fprintf(stderr, "usage: %s [ADDRESS TEXT]\n", argv[0]), 2));
	const bool client = argc > 2;
	rdma_addrinfo hints = {}, *path;
	hints.ai_port_space = RDMA_PS_TCP;
	hints.ai_flags = client ? 0 : RAI_PASSIVE;
	must("address", !rdma_getaddrinfo(client ? argv[1] : nullptr, "4790", &hints, &path));

	// A queue pair for one request each way; the server gets its own with the connection.
	ibv_qp_init_attr queues = {};
	queues.cap = {2, 2, 1, 1, 0};
	queues.sq_sig_all = 1; // a completion for everything that is posted
	rdma_cm_id *id, *listener = nullptr;
	must("endpoint", !rdma_create_ep(client ? &id : &listener, path, nullptr, &queues));
	if (!client)
		must("listen", !rdma_listen(listener, 1) && !rdma_get_request(listener, &id));

	// Memory that the device may touch is registered and known by keys.
	ibv_mr *mr = client ? rdma_reg_msgs(id, buffer, sizeof(buffer)) :
			      rdma_reg_write(id, buffer, sizeof(buffer));
	must("registration", mr);
	Where where = {reinterpret_cast<uintptr_t>(buffer), client ? 0 : mr->rkey};
	rdma_conn_param greeting = {};
	greeting.responder_resources = 1; // READs and atomics that it answers at once,
	greeting.initiator_depth = 1; // and that it asks for at once: for READ set both
	greeting.retry_count = greeting.rnr_retry_count = 7; // of a lost packet; of a busy receiver
	ibv_wc done;

	if (client) {
		must("connect", !rdma_connect(id, &greeting));
		// the answer has brought the server's Where
		memcpy(&where, id->event->param.conn.private_data, sizeof(where));
		strncpy(buffer, argv[2], sizeof(buffer) - 1);
		must("write", !rdma_post_write(id, nullptr, buffer, sizeof(buffer), mr, 0,
					       where.address, where.rkey));
		must("send", !rdma_post_send(id, nullptr, buffer, 0, mr, 0));
		for (int i = 0; i < 2; i++)
			must_complete("completion", rdma_get_send_comp(id, &done) == 1, done);
	} else {
		must("receive", !rdma_post_recv(id, nullptr, buffer, 0, mr));
		greeting.private_data = &where;
		greeting.private_data_len = sizeof(where);
		must("accept", !rdma_accept(id, &greeting));
		must_complete("message", rdma_get_recv_comp(id, &done) == 1, done);
		printf("received: %s\n", buffer);
	}
	rdma_disconnect(id);
	return 0; // the kernel takes back what is left
}
