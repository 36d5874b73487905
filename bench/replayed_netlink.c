/* RDMA netlink as a folder of files, for programs that are given this library by LD_PRELOAD.
 *
 * $REPLAYED_NETLINK/COMMAND-DEVICE is the list that command number COMMAND returns for the device of that index (0 for a
 * command without one): for each datagram its length as 32 bits, then the datagram. A machine without RDMA devices can so
 * run `rdma` on the lists that the exporter decodes. Messages get the sequence number of the request. A request whose file
 * is missing gets an empty list.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DEV_INDEX = 1, COMMAND_MASK = 0x3ff };

static int wire = -1, list = -1;
static uint32_t sequence;

int socket(int domain, int type, int protocol)
{
    int (*next)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
    if (domain != AF_NETLINK || protocol != NETLINK_RDMA)
        return next(domain, type, protocol);
    return wire = next(domain, type, NETLINK_ROUTE); /* only its address is used */
}

static unsigned device_of(const char *message, size_t length)
{
    for (size_t at = NLMSG_HDRLEN; at + NLA_HDRLEN <= length;) {
        const struct nlattr *one = (const struct nlattr *)(message + at);
        if (one->nla_type == DEV_INDEX)
            return *(const uint32_t *)(message + at + NLA_HDRLEN);
        at += NLA_ALIGN(one->nla_len ? one->nla_len : NLA_HDRLEN);
    }
    return 0;
}

ssize_t sendto(int descriptor, const void *data, size_t length, int flags, const struct sockaddr *to, socklen_t size)
{
    ssize_t (*next)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) =
        (ssize_t(*)(int, const void *, size_t, int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "sendto");
    if (descriptor != wire)
        return next(descriptor, data, length, flags, to, size);
    const struct nlmsghdr *request = data;
    char name[4096];
    snprintf(name, sizeof name, "%s/%u-%u", getenv("REPLAYED_NETLINK"), request->nlmsg_type & COMMAND_MASK,
             device_of(data, length));
    sequence = request->nlmsg_seq;
    if (list >= 0)
        close(list);
    list = open(name, O_RDONLY | O_CLOEXEC);
    return length;
}

static ssize_t next_datagram(char *buffer, size_t room)
{
    uint32_t length;
    if (list < 0 || read(list, &length, sizeof length) != sizeof length) {
        struct nlmsghdr done = {NLMSG_LENGTH(sizeof(int)), NLMSG_DONE, NLM_F_MULTI, 0, 0};
        memset(buffer, 0, done.nlmsg_len);
        memcpy(buffer, &done, sizeof done);
        length = done.nlmsg_len;
    } else if (length > room || read(list, buffer, length) != length) {
        errno = EMSGSIZE;
        return -1;
    }
    for (size_t at = 0; at + NLMSG_HDRLEN <= length;) {
        struct nlmsghdr *one = (struct nlmsghdr *)(buffer + at);
        one->nlmsg_seq = sequence;
        at += NLMSG_ALIGN(one->nlmsg_len);
    }
    return length;
}

ssize_t recvmsg(int descriptor, struct msghdr *into, int flags)
{
    ssize_t (*next)(int, struct msghdr *, int) = (ssize_t(*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
    if (descriptor != wire)
        return next(descriptor, into, flags);
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    if (into->msg_name)
        memcpy(into->msg_name, &kernel, into->msg_namelen = sizeof kernel);
    into->msg_flags = 0;
    into->msg_controllen = 0;
    return next_datagram(into->msg_iov[0].iov_base, into->msg_iov[0].iov_len);
}
